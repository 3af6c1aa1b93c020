"""Clocks on a time that the tests move: none, per move, Fischer; pause, flag, undo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.board import Board
from engine.fen import Color
from engine.pdn import PdnNode
from engine.players.time_control import TimeControl, TimeControlError
from gui.game.clocks import Clock
from gui.game.pdn_files import note_clock
from gui.game.session import GameSession

BLACK, WHITE = Color.BLACK, Color.WHITE


class Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def go(self, seconds: float) -> None:
        self.seconds += seconds


def clock_of(text: str) -> tuple[Clock, Time]:
    now = Time()
    return Clock(TimeControl.parse(text), now), now


@pytest.mark.parametrize(
    ("text", "control", "label"),
    [
        ("-", TimeControl(), "no clock"),
        ("", TimeControl(), "no clock"),
        ("1/10", TimeControl("move", 10), "10 s per move"),
        (" 300+3 ", TimeControl("fischer", 300, 3), "5 min + 3 s"),
        ("90", TimeControl("fischer", 90), "1.5 min"),
        ("0.5+0.1", TimeControl("fischer", 0.5, 0.1), "0.5 s + 0.1 s"),
    ],
)
def test_time_controls(text: str, control: TimeControl, label: str) -> None:
    assert TimeControl.parse(text) == control
    assert TimeControl.parse(str(control)) == control
    assert control.label == label


@pytest.mark.parametrize("text", ["x", "1/", "1/0", "2/10", "0+3", "300+", "-5", "1e3", "99999999", "5+999999", "٣"])
def test_bad_time_controls(text: str) -> None:
    with pytest.raises(TimeControlError, match="clock"):
        TimeControl.parse(text)


def test_an_unknown_kind() -> None:
    with pytest.raises(TimeControlError, match="must be none, move or fischer"):
        TimeControl("hourglass")  # type: ignore[arg-type]
    with pytest.raises(TimeControlError):
        TimeControl("move", float("nan"))


def test_no_clock() -> None:
    clock, now = clock_of("-")
    clock.start(BLACK)
    now.go(5)
    clock.press(BLACK)
    now.go(1e6)
    assert clock.remaining(BLACK) is None
    assert clock.text(BLACK) == ""
    assert clock.flagged() is None


def test_fischer() -> None:
    clock, now = clock_of("60+2")
    now.go(100)
    assert clock.remaining(BLACK) == clock.remaining(WHITE) == 60
    clock.start(BLACK)
    now.go(10)
    assert (clock.remaining(BLACK), clock.remaining(WHITE)) == (50, 60)
    clock.press(BLACK)
    assert clock.running is WHITE
    now.go(30)
    assert (clock.remaining(BLACK), clock.remaining(WHITE)) == (52, 30)
    clock.press(WHITE)
    assert (clock.remaining(BLACK), clock.remaining(WHITE)) == (52, 32)
    now.go(51.9)
    assert clock.flagged() is None
    now.go(0.1 + 1e-9)
    assert clock.flagged() is BLACK
    clock.press(BLACK)  # too late
    assert clock.flagged() is BLACK
    assert clock.remaining(BLACK) == 0


def test_per_move() -> None:
    clock, now = clock_of("1/10")
    clock.start(BLACK)
    now.go(9)
    clock.press(BLACK)
    now.go(4)
    assert clock.remaining(WHITE) == 6
    clock.press(WHITE)
    assert clock.remaining(BLACK) == 10
    now.go(10)
    assert clock.flagged() is BLACK


def test_pause_and_stop() -> None:
    clock, now = clock_of("60+0")
    clock.start(BLACK)
    now.go(5)
    clock.pause()
    now.go(100)
    assert clock.paused
    assert clock.remaining(BLACK) == 55
    clock.pause()
    clock.pause(False)
    now.go(5)
    assert clock.remaining(BLACK) == 50
    clock.stop()
    now.go(100)
    assert clock.remaining(BLACK) == 50
    assert clock.running is None
    clock.reset(TimeControl.parse("1/7"))
    assert clock.remaining(WHITE) == 7


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (7200, "2:00:00"),
        (3723, "1:02:03"),
        (3599.2, "1:00:00"),
        (300, "5:00"),
        (244.3, "4:05"),
        (20.01, "0:21"),
        (20, "0:20"),
        (19.95, "0:20"),
        (19.9, "0:19.9"),
        (9.71, "0:09.8"),
        (0.04, "0:00.1"),
        (0, "0:00.0"),
    ],
)
def test_text(left: float, text: str) -> None:
    clock, now = clock_of("7200+0")
    clock.start(BLACK)
    now.go(7200 - left)
    assert clock.text(BLACK) == text


@given(st.lists(st.tuples(st.sampled_from(["press", "pause", "resume", "look"]), st.floats(0, 20)), max_size=30))
def test_no_second_is_lost_or_counted_twice(events: list[tuple[str, float]]) -> None:
    clock, now = clock_of("10000+3")
    clock.start(BLACK)
    spent, turn, paused, presses = {BLACK: 0.0, WHITE: 0.0}, BLACK, False, {BLACK: 0, WHITE: 0}
    for event, seconds in events:
        now.go(seconds)
        spent[turn] += 0 if paused else seconds
        if event == "press":
            clock.press(turn)
            presses[turn] += 1
            turn = turn.other
        elif event in ("pause", "resume"):
            paused = event == "pause"
            clock.pause(paused)
        for color in Color:
            assert clock.remaining(color) == pytest.approx(10000 - spent[color] + 3 * presses[color])


def test_undo_gives_the_time_back() -> None:
    clock, now = clock_of("100+1")
    session = GameSession()
    clock.start(BLACK)
    for text, seconds in (("11-15", 10), ("22-18", 20), ("15x22", 30)):
        now.go(seconds)
        mover = session.board.turn
        clock.press(mover)
        session.push(session.board.parse_pdn(text))
        note_clock(session.nodes[-1], clock.remaining(mover))
    now.go(40)
    session.go_to(1)
    clock.rewind(session.nodes[: session.ply], session.first_color)
    assert (clock.remaining(BLACK), clock.remaining(WHITE), clock.running) == (91, 100, WHITE)
    now.go(5)
    assert clock.remaining(WHITE) == 95
    clock.stop()
    clock.rewind([], WHITE)
    assert clock.running is None
    assert clock.remaining(BLACK) == 100


def test_a_note_takes_the_place_of_an_older_one() -> None:
    node = PdnNode(Board().legal_moves[0], comments=["good [%clk 0:01:00] move", "[%emt 0:00:02]"])
    note_clock(node, 61.26)
    assert node.clock == 61.3
    assert node.elapsed == 2
    assert node.comments == ["[%clk 0:01:01.3]", "good move", "[%emt 0:00:02]"]
    note_clock(node, None)
    assert node.clock == 61.3
    note_clock(node, 0)
    assert node.clock == 0
