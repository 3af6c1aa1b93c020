"""The progress lines of commands: fractions, rates, times and phases of unknown length."""

import io
import re

import pytest
from rich.console import Console

from engine.board import Board
from engine.fen import Color
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import materials_between
from learner.endgame.data import TEST, EndgameSampler
from learner.endgame.labels import FileTables
from learner.endgame.progress import OracleProgress
from learner.endgame.training import CurvePoint
from selfplay.matches.record import MatchGame
from selfplay.progress import MatchProgress


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> OracleProgress:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr("engine.console.progress_console", lambda _: terminal)
    return OracleProgress(quiet=False)


def line(progress: OracleProgress) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(progress.get_renderable())
    return re.sub(r"[━╸╺\s]+", " ", console.file.getvalue()).strip()  # type: ignore[attr-defined]


def test_a_phase_of_unknown_length_has_no_share_whatever_was_before(progress: OracleProgress) -> None:
    progress.phase("training", 60.0)
    progress.done(30.0)
    assert line(progress).startswith("training 50%")
    progress.phase("testing")
    assert "%" not in line(progress)
    progress.part("temperature", None)
    assert line(progress).startswith("temperature")
    assert "%" not in line(progress)
    progress.part("threshold", 0.25)
    assert line(progress).startswith("threshold 25%")
    progress.part("threshold", 0.75)
    assert line(progress).startswith("threshold 75%")
    progress.part("another", 0.0)
    assert line(progress).startswith("another 0%")


def test_a_description_that_changes_keeps_the_time_left(
    progress: OracleProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress, "get_time", lambda: now[0])
    progress.phase("training", 60.0)
    for seconds in (10.0, 20.0, 30.0):
        now[0] = 100 + seconds
        progress.done(seconds, f"{seconds:.0f} steps")
    assert line(progress) == "30 steps 50% 0:00:30"


def test_the_longest_lines_show_the_time_left_at_80_columns(progress: OracleProgress) -> None:
    point = CurvePoint(30.0, 123_400_000, 0.1234, 0.99123, 1e-3, 1_234_000.0)
    progress.phase("training", 60.0)
    progress.training(point)
    assert line(progress).endswith("99.123% right 50% -:--:--")
    progress.rate("training 12/22, then 12.9 min: Wang's network", point)
    assert line(progress) == "training 12/22, then 12.9 min: Wang's network, 1234.0 k/s 50% -:--:--"


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_commands_are_quiet_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with MatchProgress(4, quiet) as progress:
        progress.console.print("event")
        for index in range(2):
            progress.game(MatchGame(index, "start", "a", "b", True, Board().fen(), (), Color.BLACK, "NO_MOVES"))
    assert ("event" in shown.getvalue()) == (terminal or not quiet)
    assert ("2/4 games" in shown.getvalue()) == terminal


def test_a_match_tells_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr("engine.console.progress_console", lambda _: terminal)
    display, now = MatchProgress(10, quiet=False), [100.0]
    monkeypatch.setattr(display, "get_time", lambda: now[0])
    for index in range(3):
        now[0] += 4.0
        display.game(MatchGame(index, "start", "a", "b", True, Board().fen(), (), Color.WHITE, "NO_MOVES"))
    console = Console(file=io.StringIO(), width=100)
    console.print(display.get_renderable())
    shown = re.sub(r"[━╸╺\s]+", " ", console.file.getvalue()).strip()  # type: ignore[attr-defined]
    assert shown == "3/10 games score 0.0% 15 games/min 0:00:28"


def test_positions_drawn_between_do_not_hide_what_is_done_with_them(progress: OracleProgress) -> None:
    with FileTables(SHIPPED, lambda part: progress.part("reading tables", part)) as tables:
        sampler = EndgameSampler(tables, materials_between(2, 3), 1, TEST)
        progress.phase("judging", 10_000)
        sampler.draw(1 << 10)
        progress.done(1_000)
    assert line(progress).startswith("judging 10%")
