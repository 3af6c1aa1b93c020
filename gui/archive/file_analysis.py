"""Judges all games of a PDN file and writes an annotated copy of the file. No pygame.

Judged games are kept in a journal next to the copy (an SQLite file with a transaction for each game) until all are
judged. If the process ends earlier, the same analysis later continues after the last judged game.
"""

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from os.path import exists
from pathlib import Path
from typing import BinaryIO, NamedTuple

from engine.board import Board
from engine.claims import claimed
from engine.errors import DraughtsError
from engine.files import StorageError, atomic_write, check_writable, read_text, sha256_of
from engine.pdn import format_game
from engine.players import WatchablePlayer

from ..game.game_report import GameReview
from ..game.pdn_files import ANNOTATED, PdnGames
from .annotation import AnnotatedGame, annotated, figures_of

JOURNAL = ".part"  # suffix that the journal's name adds to that of the copy
_VERSION = 1  # version of the journal
_SLICE = 0.02  # seconds of search between two checks of ``stopped``
_TABLES = """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE games (number INTEGER PRIMARY KEY, plies INTEGER, pdn TEXT, figures TEXT, error TEXT);
"""


class AnalysisProgress(NamedTuple):
    """Progress of an analysis.

    Attributes:
        done, games: number of judged games, and of all games.
        moves: number of moves that this process has judged, in ``seconds``.
        left: number of moves that are not judged yet.
    """

    done: int
    games: int
    moves: int
    left: int
    seconds: float

    @property
    def per_minute(self) -> float:
        """Judged moves per minute."""
        return 60 * self.moves / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the end; None before the first move."""
        return self.left * self.seconds / self.moves if self.moves else None


def annotated_path(games: Path) -> Path:
    """Default path of the annotated copy of a file."""
    return games.with_name(games.stem + ANNOTATED)


def seconds_of(out: Path) -> float | None:
    """Seconds per position of the analysis into ``out`` that was stopped; None if there is none, or nobody can tell."""
    journal = out.with_name(out.name + JOURNAL)
    if not exists(journal):
        return None
    try:
        with contextlib.closing(sqlite3.connect(journal)) as facts:
            return float(facts.execute("SELECT value FROM facts WHERE name = 'seconds'").fetchone()[0])
    except (sqlite3.Error, TypeError, ValueError):
        return None


class FileAnalysis:
    """Judges the games of a file. Makes a journal, or continues with an existing one.

    Args:
        games: PDN file.
        out: path of the annotated copy, which must not exist yet.
        judge: name of the judging player.
        seconds: seconds per position.

    Attributes:
        progress: progress of the analysis.
        result: at the end, the judged games and the error messages of games that could not be read.

    Raises:
        StorageError: the file cannot be read or has no game; the copy exists already; or the journal is of another
            analysis.
    """

    def __init__(self, games: Path, out: Path, judge: str, seconds: float) -> None:
        self.out, self._judge, self._seconds = out, judge, seconds
        self.result: tuple[list[AnnotatedGame], list[str]] = [], []
        self.journal = out.with_name(out.name + JOURNAL)
        self._check_place()
        self._games = PdnGames(read_text(games))
        if not self._games.titles:
            raise StorageError(None, f"there is no game in {games}")
        self._facts = {
            "version": str(_VERSION),
            "games": sha256_of(games),
            "judge": judge,
            "seconds": f"{seconds:g}",
        }
        with self._opened() as journal:
            done = dict(journal.execute("SELECT number, plies FROM games").fetchall())
        total = sum(self._games.plies)
        self.progress = AnalysisProgress(len(done), len(self._games.titles), 0, total - sum(done.values()), 0.0)

    def _check_place(self) -> None:
        if exists(self.out):
            raise StorageError(None, f"{self.out} is there already: choose another name for the annotated games")
        check_writable(self.out)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Opens the journal and checks that it is of this analysis."""
        try:
            with contextlib.closing(sqlite3.connect(self.journal)) as journal:
                if not journal.execute("SELECT 1 FROM sqlite_master").fetchone():
                    with journal:
                        journal.executescript(_TABLES)
                        journal.executemany("INSERT INTO facts VALUES (?, ?)", self._facts.items())
                if dict(journal.execute("SELECT name, value FROM facts")) != self._facts:
                    raise StorageError(
                        None,
                        f"{self.journal} is of another analysis: go on with that one (same games, same time), remove "
                        "it, or choose another name for the annotated games",
                    )
                yield journal
        except sqlite3.DatabaseError as error:
            raise StorageError(None, f"cannot use {self.journal}: {error}") from error

    def run(
        self,
        player: WatchablePlayer,
        known: Callable[[Board], int | None],
        stopped: Callable[[], bool] = lambda: False,
        tell: Callable[[AnalysisProgress], None] = lambda progress: None,
    ) -> bool:
        """Judges the remaining games and writes the copy; returns False if it was stopped before the end.

        There is no copy if no game could be read.

        Args:
            player, known: see ``GameReview``.
            stopped: called often; True ends the analysis, without the game that is being judged.
            tell: called with the progress after every move.

        Raises:
            StorageError: the journal or the copy cannot be written.
            FileInUseError: another process judges games for the same copy.
        """
        with claimed(self.out):
            self._check_place()  # another process may have written the copy since
            with self._opened() as journal:
                done = {number for (number,) in journal.execute("SELECT number FROM games")}
                for number in range(1, len(self._games.titles) + 1):
                    if number in done:
                        continue
                    row = None if stopped() else self._judged(number, player, known, stopped, tell)
                    if row is None:
                        return False
                    with journal:
                        journal.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?)", row)
                    tell(self.progress)
                if journal.execute("SELECT 1 FROM games WHERE pdn IS NOT NULL").fetchone():
                    self._check_place()
                    atomic_write(self.out, lambda file: _write(journal, file))
                self.result = self._result(journal)
            self.journal.unlink(missing_ok=True)
        return True

    def _judged(
        self,
        number: int,
        player: WatchablePlayer,
        known: Callable[[Board], int | None],
        stopped: Callable[[], bool],
        tell: Callable[[AnalysisProgress], None],
    ) -> tuple[int, int, str | None, str | None, str | None] | None:
        """Judges a game and returns its row of the journal; None if it was stopped."""
        plies = self._games.plies[number - 1]
        begin = self.progress
        try:
            game = self._games.game(number)
            board = game.board()
        except DraughtsError as error:
            self.progress = begin._replace(done=begin.done + 1, left=begin.left - plies)
            return number, plies, None, None, str(error)
        review, clock = GameReview(board, player, self._seconds, known), time.perf_counter()
        while review.advance(_SLICE):
            if stopped():
                self.progress = begin
                return None
            made = len(review.report.moves)
            if made != self.progress.moves - begin.moves:
                spent = begin.seconds + time.perf_counter() - clock
                self.progress = begin._replace(moves=begin.moves + made, left=begin.left - made, seconds=spent)
                tell(self.progress)
        spent = begin.seconds + time.perf_counter() - clock
        made = begin.moves + len(board.move_stack)
        self.progress = begin._replace(done=begin.done + 1, moves=made, left=begin.left - plies, seconds=spent)
        judge = f"{self._judge}, {self._seconds:g} s a position; % is what Black can expect"
        text = format_game(annotated(game, review.report, judge))
        return number, plies, text, json.dumps(figures_of(number, game, review.report)), None

    def _result(self, journal: sqlite3.Connection) -> tuple[list[AnnotatedGame], list[str]]:
        rows = journal.execute("SELECT figures, error FROM games ORDER BY number").fetchall()
        return [json.loads(figures) for figures, _ in rows if figures], [error for _, error in rows if error]


def _write(journal: sqlite3.Connection, file: BinaryIO) -> None:
    for place, (text,) in enumerate(journal.execute("SELECT pdn FROM games WHERE pdn IS NOT NULL ORDER BY number")):
        file.write((("\n" if place else "") + text).encode())
