"""The game that the command line asks for, and the way from there to the window."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import crownhead_here
from training_runs import assert_refused

from engine.errors import DraughtsError
from engine.fen import START_FEN, Color
from engine.players import PlayerSpecError
from gui.game.opponents import GAME_SEARCH, OpponentError
from gui.launch import plan_for, spec_of

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("text", "kind", "amount"),
    [("random", "random", 0), ("rollout:300", "rollout", 300), ("alphabeta:6", "alphabeta", 6)],
)
def test_players_without_a_network(text: str, kind: str, amount: int) -> None:
    spec = spec_of(text)
    assert (spec.kind, spec.amount) == (kind, amount)


def test_networks_with_oracles_and_strengths() -> None:
    assert spec_of("champion").checkpoint is None
    assert spec_of("runs/quick").checkpoint == "runs/quick"
    spec = spec_of("runs/quick@off", simulations=33)
    assert (spec.checkpoint, spec.search.oracle, spec.search.num_simulations) == ("runs/quick", "off", 33)
    assert spec.search.draw_value == GAME_SEARCH.draw_value
    assert spec_of("champion@impartial").search == GAME_SEARCH.impartial()
    assert (spec_of("champion@numba").backend, spec_of("champion").backend) == ("numba", "auto")
    assert spec_of("odd@name").checkpoint == "odd@name"
    timed = spec_of("champion@off", seconds=0.5)
    assert (timed.checkpoint, timed.search.oracle, timed.by_time, timed.amount) == (None, "off", True, 0.5)


def test_external_engines() -> None:
    spec = spec_of("hub:engine --level '3 4'")
    assert (spec.kind, spec.command) == ("external", "engine --level '3 4'")
    for text in ("hub:", "hub:  ", "hub:engine 'unclosed"):
        with pytest.raises(PlayerSpecError, match="is no player"):
            spec_of(text)
    with pytest.raises(OpponentError, match="cannot be an opponent at the board"):
        spec_of("tablebase")


@pytest.mark.parametrize("text", ["rollout", "rollout:x", "alphabeta:0", "random:3"])
def test_what_begins_like_a_player_and_is_none(text: str) -> None:
    with pytest.raises(PlayerSpecError, match="is no player"):
        spec_of(text)


def test_an_amount_beyond_the_board_s_range_is_one_line() -> None:
    with pytest.raises(OpponentError, match="rollouts") as refused:
        spec_of("rollout:500000")
    assert "\n" not in str(refused.value)


def test_sides_and_positions() -> None:
    spec = spec_of("random")
    sides = {"black": {Color.BLACK}, "white": {Color.WHITE}, "both": set(Color), "none": set()}
    for side, humans in sides.items():
        plan = plan_for(spec, side)
        assert plan.humans == humans
        assert plan.fen == START_FEN
        assert set(plan.agents.values()) == {spec}
    assert plan_for(spec, fen="W:WK10:BK30").fen == "W:WK10:BK30"
    with pytest.raises(OpponentError, match="choose black, white, both, none"):
        plan_for(spec, "green")
    for fen in ("W:W:BK30", "W:WK30:B"):
        with pytest.raises(DraughtsError, match=r"the game is over, .* has no pieces"):
            plan_for(spec, fen=fen)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--opponent", "nobody"), "'nobody' is no player"),
        (("--opponent", "alphabeta:99999"), "its number is not in 1 to"),
        (("--side", "green"), "choose black, white, both, none"),
        (("--fen", "nonsense"), "nonsense"),
        (("--opponent", str(ROOT / "engine")), "is no player"),
    ],
)
def test_bad_input_is_told_before_a_window_opens(
    tmp_path: Path, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr("pygame.display.set_mode", lambda *_, **__: pytest.fail("a window opens"))
    assert_refused(crownhead_here("play", *arguments), message)


def test_without_a_display_one_line_says_so(tmp_path: Path) -> None:
    others = {key: value for key, value in os.environ.items() if not key.startswith("SDL_")}
    others |= {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "crownhead.py"), "play"],
        env=others | {"SDL_VIDEODRIVER": "x11", "DISPLAY": ":4711"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert ":4711" in done.stderr
    assert "not set" not in done.stderr
    assert done.stderr.count("\n") == 1
