"""Saved games continue between the same players: players and remaining time are stored beside the game."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import PATIENCE

from engine.fen import Color
from engine.players.time_control import TimeControl
from gui.game.autosave import Autosave
from gui.game.clocks import Clock
from gui.game.controller import GameController
from gui.game.endgame_info import EndgameInfo
from gui.game.opponents import Opponents, OpponentSpec
from gui.game.plan import BOTH, GamePlan
from gui.game.seats import Seats, read_seats, seats_path, take_up
from gui.game.thinker import Thinker

ALPHABETA = OpponentSpec(kind="alphabeta", depth=2)
RANDOM = OpponentSpec(kind="random")
OTHERS = GamePlan(frozenset({Color.WHITE}), dict.fromkeys(Color, RANDOM), control=TimeControl.parse("1/5"))


class Window:
    """The parts of a window that do not draw."""

    def __init__(self, folder: Path, *kinds: str) -> None:
        self.now = 0.0
        self.thinker, self.endgame, self.autosave = Thinker(Opponents()), EndgameInfo(), Autosave(folder)
        kinds = kinds or ("random", "alphabeta")
        self.controller = GameController(self.thinker, self.endgame, self.autosave, kinds, lambda: self.now)

    def play(self, text: str, seconds: float = 0.0) -> None:
        self.now += seconds
        self.controller.make(self.controller.session.board.parse_pdn(text))
        self.autosave.flush()

    def close(self) -> None:
        """Ends like a crash: nothing more is saved."""
        self.thinker.close()
        self.endgame.close()
        self.autosave.close()


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Window]:
    """Black, a person, has made a move against White, alpha-beta."""
    window = Window(tmp_path)
    window.controller.start(
        GamePlan(frozenset({Color.BLACK}), dict.fromkeys(Color, ALPHABETA), control=TimeControl.parse("300+2"))
    )
    window.play("11-15", seconds=10)
    yield window
    window.close()


def kept(window: Window) -> Path:
    (path,) = window.autosave.folder.glob("*.pdn")
    return path


def test_the_game_goes_on_as_it_was(first: Window, tmp_path: Path) -> None:
    first.play("22-18", seconds=20)
    first.close()
    second = Window(tmp_path)
    take_up(second.controller, kept(first), OTHERS)
    controller = second.controller
    assert controller.humans == {Color.BLACK}
    assert controller.agents == dict.fromkeys(Color, ALPHABETA)
    assert controller.session.names == {Color.BLACK: "Human", Color.WHITE: "alphabeta:2"}
    assert str(controller.clock.control) == "300+2"
    assert (controller.clock.remaining(Color.BLACK), controller.clock.remaining(Color.WHITE)) == (292, 282)
    second.now += 7
    assert controller.clock.remaining(Color.BLACK) == 285
    second.play("15x22")
    deadline = time.monotonic() + PATIENCE
    while len(controller.session.nodes) < 4:
        assert time.monotonic() < deadline
        controller.tick()
        time.sleep(0.002)
    assert controller.session.names[Color.WHITE] == "alphabeta:2"
    assert kept(second) == kept(first)
    second.close()


def test_sides_that_changed_hands_are_kept(first: Window, tmp_path: Path) -> None:
    first.controller.take_over()
    first.autosave.flush()
    first.close()
    second = Window(tmp_path)
    take_up(second.controller, kept(first), OTHERS)
    assert second.controller.humans == {Color.WHITE}
    assert second.controller.session.names == {Color.BLACK: "alphabeta:2", Color.WHITE: "Human"}
    second.close()


@pytest.mark.parametrize("why", ["older", "broken", "other version", "not to be had"])
def test_without_its_players_the_game_names_those_who_play_now(first: Window, tmp_path: Path, why: str) -> None:
    first.close()
    path = seats_path(kept(first))
    if why == "older":
        path.unlink()
    elif why == "broken":
        path.write_text("{")
    elif why == "other version":
        path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    second = Window(tmp_path, *(("random",) if why == "not to be had" else ()))
    take_up(second.controller, kept(first), OTHERS)
    assert second.controller.humans == {Color.BLACK}  # as the game's names say
    assert second.controller.agents[Color.WHITE] == RANDOM
    assert second.controller.session.names == {Color.BLACK: "Human", Color.WHITE: "random"}
    assert str(second.controller.clock.control) == "1/5"
    second.autosave.flush()
    assert '[White "random"]' in kept(first).read_text()
    seats = read_seats(kept(first))
    assert seats is not None
    assert seats.plan.agents[Color.WHITE] == RANDOM
    second.close()


def test_a_finished_game_keeps_its_names_whoever_looks_at_it(first: Window, tmp_path: Path) -> None:
    first.controller.resign()
    first.autosave.flush()
    first.close()
    seats_path(kept(first)).unlink()
    second = Window(tmp_path)
    take_up(second.controller, kept(first), OTHERS)
    assert second.controller.session.is_over
    assert second.controller.session.names == {Color.BLACK: "Human", Color.WHITE: "alphabeta:2"}
    second.close()


def test_a_game_read_from_elsewhere_keeps_its_names_in_a_crash(tmp_path: Path) -> None:
    one = Window(tmp_path)
    one.controller.session.load_pdn('[Black "Tinsley"]\n[White "Lafferty"]\n\n1. 11-15 22-18 *')
    one.controller.loaded()
    one.autosave.flush()
    one.close()
    two = Window(tmp_path)
    take_up(two.controller, kept(one), OTHERS)
    assert two.controller.humans == BOTH
    assert list(two.controller.session.names.values()) == ["Tinsley", "Lafferty"]
    assert two.controller.clock.remaining(Color.BLACK) is None
    two.close()


def test_a_removed_game_takes_its_players_along(tmp_path: Path) -> None:
    window = Window(tmp_path)
    window.autosave.keep = 1
    for opening in ("11-15", "9-13"):
        window.controller.start(GamePlan(BOTH, dict.fromkeys(Color, RANDOM)))
        window.play(opening)
    assert seats_path(kept(window)).exists()
    assert len(list(tmp_path.glob("*.json"))) == 1
    window.close()


@pytest.mark.parametrize(
    "change",
    [
        {"humans": ["green"]},
        {"agents": {}},
        {"time_control": "soon"},
        {"seconds_left": {"black": -1.0, "white": 3.0}},
        {"seconds_left": {"black": 1.0}},
        {"colour": 1},
    ],
)
def test_what_does_not_fit_counts_as_missing(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "game.pdn"
    seats = Seats.of(frozenset({Color.WHITE}), dict.fromkeys(Color, ALPHABETA), Clock(TimeControl.parse("60+1")))
    seats_path(path).write_bytes(seats.data())
    assert read_seats(path) == seats
    assert seats.left == {Color.BLACK: 60, Color.WHITE: 60}
    seats_path(path).write_text(json.dumps(json.loads(seats.data()) | change))
    assert read_seats(path) is None
