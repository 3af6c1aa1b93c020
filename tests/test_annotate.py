"""The analysis of whole files: what is written, that it continues after a kill, and that nothing is overwritten."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from programs import ROOT, crownhead_here, crownhead_program, until, wait_until

from engine.board import Board
from engine.claims import FileInUseError, claimed
from engine.errors import PartlyReadError
from engine.files import StorageError
from engine.pdn import format_game, read_game, read_games
from engine.players import AlphaBetaPlayer
from gui.annotate_command import annotate_command
from gui.archive.annotation import annotated, figures_of
from gui.archive.annotator import Annotator, progress_text, time_text
from gui.archive.file_analysis import AnalysisProgress, FileAnalysis, seconds_of
from gui.game.game_report import GameReview
from gui.game.opponents import Opponents

# 1... 22-18 gives a man away; the other moves are quiet
SHOT = (
    '[Event "shot"] [Black "A"] [White "B"] [FEN "B:W22,29,30,31:B14,1,3,4"] [SetUp "1"] '
    "1. 4-8 22-18! { forced? } 14x23 0-1\n"
)
QUIET = '[Event "quiet"] [Black "C"] [White "A"] 1. 11-15 23-19 2. 8-11 22-17 *\n'


def unknown(board: Board) -> None:
    """No tables."""


@pytest.fixture
def games(tmp_path: Path) -> Path:
    path = tmp_path / "games.pdn"
    path.write_text(SHOT + "\n" + QUIET * 3)
    return path


def analysis_of(games: Path, seconds: float = 0.001) -> FileAnalysis:
    return FileAnalysis(games, games.with_name("out.pdn"), "test", seconds)


def test_faults_get_a_glyph_an_evaluation_and_the_better_line() -> None:
    game = read_game(SHOT.replace("!", ""))
    review = GameReview(game.board(), AlphaBetaPlayer(6))
    while review.advance(1.0):
        pass
    shown = annotated(game, review.report, "me")
    blunder = shown.moves[1]
    assert blunder.nags == [4]
    assert blunder.comments[0] == "forced?"
    assert "better 31-26" in blunder.comments[1]
    assert blunder.variations[0][0].move != blunder.move
    assert all(node.comments[-1].removeprefix("Black ").split("%")[0].isdigit() for node in shown.moves)
    assert (shown.headers["Annotator"], "Annotator" in game.headers) == ("me", False)
    assert game.moves[1].nags == []  # the game itself is as it was
    figures = figures_of(7, game, review.report)
    assert [fault["judgement"] for fault in figures["white"]["faults"]] == ["blunder"]
    assert (figures["number"], figures["plies"], figures["black"]["name"]) == (7, 3, "A")
    assert read_game(format_game(shown)).moves == shown.moves


def test_a_glyph_of_the_file_stays() -> None:
    game = read_game(SHOT)
    review = GameReview(game.board(), AlphaBetaPlayer(6))
    while review.advance(1.0):
        pass
    assert annotated(game, review.report, "me").moves[1].nags == [1]


def test_all_games_are_judged_and_the_journal_is_gone(games: Path) -> None:
    analysis, told = analysis_of(games), []
    assert analysis.progress == AnalysisProgress(0, 4, 0, 15, 0.0)
    assert analysis.run(AlphaBetaPlayer(2), unknown, tell=told.append)
    out = list(read_games(analysis.out.read_text()))
    assert [game.headers["Event"] for game in out] == ["shot", "quiet", "quiet", "quiet"]
    assert [len(game.moves) for game in out] == [3, 4, 4, 4]
    assert all(node.comments for game in out for node in game.moves)
    assert [one["number"] for one in analysis.result[0]] == [1, 2, 3, 4]
    assert (analysis.progress.done, analysis.progress.left, analysis.progress.moves) == (4, 0, 15)
    assert told[-1] == analysis.progress
    assert not analysis.journal.exists()


def test_what_was_stopped_goes_on_behind_the_last_game(games: Path) -> None:
    first = analysis_of(games)
    assert not first.run(AlphaBetaPlayer(2), unknown, stopped=lambda: first.progress.done == 2)
    assert first.journal.exists()
    assert seconds_of(first.out) == 0.001
    assert seconds_of(games) is None
    assert not first.out.exists()
    second = analysis_of(games)
    assert (second.progress.done, second.progress.left) == (2, 8)
    assert second.run(AlphaBetaPlayer(2), unknown)
    assert second.progress.moves == 8
    assert len(list(read_games(second.out.read_text()))) == 4


def test_nothing_is_overwritten(games: Path) -> None:
    out = games.with_name("out.pdn")
    out.write_text("mine")
    with pytest.raises(StorageError, match="is there already"):
        analysis_of(games)
    out.unlink()
    analysis = analysis_of(games)
    with pytest.raises(StorageError, match="is there already"):
        analysis.run(AlphaBetaPlayer(2), unknown, tell=lambda progress: _write_mine(out))
    assert out.read_text() == "mine"
    assert analysis.journal.exists()


def test_only_one_process_judges_games_for_a_copy(games: Path) -> None:
    analysis = analysis_of(games)
    with claimed(analysis.out), pytest.raises(FileInUseError, match=r"out\.pdn is in use by another process"):
        analysis.run(AlphaBetaPlayer(2), unknown)
    assert analysis.run(AlphaBetaPlayer(2), unknown)


def test_a_copy_that_another_process_has_made_meanwhile_is_seen_before_the_work(games: Path) -> None:
    first, second = analysis_of(games), analysis_of(games)
    assert first.run(AlphaBetaPlayer(1), unknown)
    with pytest.raises(StorageError, match="is there already"):
        second.run(AlphaBetaPlayer(1), unknown)
    assert second.progress.moves == 0
    assert {path.suffix for path in games.parent.iterdir()} <= {".pdn", ".lock"}


def test_a_copy_in_a_folder_that_is_not_there_is_named(games: Path) -> None:
    with pytest.raises(StorageError, match=re.escape(f"cannot write {games.with_name('nowhere') / 'out.pdn'}: ")):
        FileAnalysis(games, games.with_name("nowhere") / "out.pdn", "judge", 0.05)


def _write_mine(out: Path) -> None:
    out.write_text("mine")


@pytest.mark.parametrize("change", ["seconds", "games", "broken"])
def test_a_journal_of_another_analysis_is_refused(games: Path, change: str) -> None:
    first = analysis_of(games)
    if change == "games":
        games.write_text(QUIET)
    elif change == "broken":
        first.journal.write_bytes(b"no database " * 1000)
    with pytest.raises(StorageError, match=r"out\.pdn\.part"):
        analysis_of(games, 0.5 if change == "seconds" else 0.001)


def test_games_that_cannot_be_read_are_left_out_and_said(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    games.write_text(QUIET + '[Event "bad"] 1. 11-15 9-9 *\n' + QUIET)
    with pytest.raises(PartlyReadError, match="left out") as error:
        annotate_command(games, None, 0.05, Opponents(), True)
    figures = error.value.figures
    assert isinstance(figures, dict)
    assert [one["number"] for one in figures["annotated"]] == [1, 3]
    assert len(figures["unread"]) == 1
    assert len(list(read_games(Path(figures["out"]).read_text()))) == 2
    assert json.dumps(figures)
    assert capsys.readouterr().out == ""


def test_of_what_is_no_game_there_is_no_copy(tmp_path: Path) -> None:
    text = tmp_path / "README.md"
    text.write_text("# Words\n\n1. 11-15 nonsense *\n")
    with pytest.raises(PartlyReadError, match="games left out"):
        annotate_command(text, None, 0.05, Opponents(), True)
    assert list(tmp_path.iterdir()) == [text]
    text.write_text("{no game here}\n")
    with pytest.raises(StorageError, match="no game in"):
        annotate_command(text, None, 0.05, Opponents(), True)
    assert list(tmp_path.iterdir()) == [text]


def test_it_runs_beside_the_window_and_can_be_stopped(games: Path) -> None:
    games.write_text(QUIET * 50)
    annotator = Annotator(Opponents(), games, games.with_name("out.pdn"), 0.05)
    annotator.begin()
    until(lambda: annotator.progress is not None and annotator.progress.done >= 1, "a game")
    assert annotator.at_work
    annotator.stop()
    until(lambda: not annotator.at_work, "the end")
    assert annotator.outcome() is False
    assert annotator.progress is not None
    assert 1 <= annotator.progress.done < 50


def test_texts_of_time_and_rate() -> None:
    assert [time_text(seconds) for seconds in (None, 5, 600, 10_000)] == ["", "5 s", "10 min", "2.8 h"]
    assert progress_text(AnalysisProgress(0, 3, 0, 90, 0.0)) == "0 of 3 games"
    assert progress_text(AnalysisProgress(1, 3, 30, 60, 15.0)) == "1 of 3 games, 120 moves a minute, 30 s left"


@pytest.mark.slow
def test_kill_loses_one_game_at_most(games: Path) -> None:
    games.write_text(QUIET * 9)
    command = "annotate", games, "--seconds", 0.05, "--json"
    process = subprocess.Popen(crownhead_program(*command), cwd=ROOT, stdout=subprocess.DEVNULL)
    journal = games.with_name("games.annotated.pdn.part")
    wait_until(lambda: _done(journal) >= 2, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = _done(journal)
    assert kept >= 2
    again = crownhead_here(*command)
    assert again.returncode == 0, again.stderr
    figures = json.loads(again.stdout)
    assert len(figures["annotated"]) == 9
    assert len(list(read_games(Path(figures["out"]).read_text()))) == 9


def _done(journal: Path) -> int:
    import sqlite3
    from contextlib import closing

    if not journal.exists():
        return 0
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True, timeout=10)) as database:
        try:
            (count,) = database.execute("SELECT count(*) FROM games").fetchone()
        except sqlite3.OperationalError:
            return 0
    return int(count)
