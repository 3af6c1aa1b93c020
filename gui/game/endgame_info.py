"""Facts about an endgame: result and distance by the tables, and the oracle's verdict."""

import re
import threading
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Protocol

from engine.board import Board, Move
from engine.errors import one_line
from engine.fen import Color
from engine.knowledge.lines import known_moves, plies_of
from engine.tablebase import MissingTableError, Tablebase, open_tablebase

Exact = Literal["win", "draw", "loss"]
_EXACT: dict[int, Exact] = {1: "win", 0: "draw", -1: "loss"}
ORACLE_PIECES = 8  # largest number of pieces for the oracle: up to there its accuracy has been measured
TABLE_PIECES = 8  # largest number of pieces for the tables
_CACHE_BYTES = 2 << 20  # cache of the tables: enough for one look-up, so that memory does not grow from game to game
_open_tables = partial(open_tablebase, cache_bytes=_CACHE_BYTES)
_KEPT = 512  # verdicts that are kept
_LONGEST_LINE = 300  # plies of the line to the end of the game
_CLOSING = 0.5  # seconds that ``close`` waits for the thread
_MOST_SHOWN = 0.999  # largest confidence that is shown: an oracle can be wrong
_SHOWN = 200  # characters of an error that are shown
_FOLDERS = re.compile(r"(?<!\S)/\S*/")


class OracleAnswer(Protocol):
    """An oracle's answer for a position, seen by its side to move.

    Attributes:
        verdict: "win", "draw" or "loss".
        confidence: probability that the verdict is right.
    """

    @property
    def verdict(self) -> str: ...

    @property
    def confidence(self) -> float: ...


class ExactMove(NamedTuple):
    """A legal move, its result by the tables for the side that makes it, and plies to the game's end with it."""

    move: Move
    pdn: str
    exact: Exact
    plies: int | None

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key, smaller for better moves: short wins first and long losses first; unknown distances come last."""
        known = _LONGEST_LINE if self.plies is None else self.plies
        length = -known if self.exact == "loss" and self.plies is not None else known
        return ("win", "draw", "loss").index(self.exact), length


class Verdict(NamedTuple):
    """What is known about a position, seen by its side to move.

    Attributes:
        exact: result by the tables, without draws by repetition and the 80-ply rule; None where they do not reach.
        plies: plies to the end of the game, by tables with distances; None for draws and where these do not reach.
        error: one line, if tables or oracle failed.
        moves: all legal moves, the best first; empty if the tables do not cover all of them.
        line: best play to the end of the game, by tables with distances; empty for draws and where these do not reach.
        line_pdn: ``line`` in PDN.
    """

    fen: str
    turn: Color
    exact: Exact | None = None
    plies: int | None = None
    oracle: OracleAnswer | None = None
    error: str | None = None
    moves: tuple[ExactMove, ...] = ()
    line: tuple[Move, ...] = ()
    line_pdn: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        lines = []
        if self.exact is not None:
            distance = "" if self.plies is None else f" in {self.plies} {'ply' if self.plies == 1 else 'plies'}"
            lines.append(f"{self._result(self.exact)}{distance} (tables)")
        if self.oracle is not None:
            sure = min(self.oracle.confidence, _MOST_SHOWN)
            lines.append(f"Oracle: {self._result(self.oracle.verdict)}, {sure:.1%} sure")
        return (*lines, self.error) if self.error else tuple(lines)

    def _result(self, result: str) -> str:
        winners = {"win": self.turn, "loss": self.turn.other}
        return f"{winners[result]} wins" if result in winners else "Draw"


class EndgameInfo:
    """Looks positions up in a thread, because tables are read from disk and the oracle may search.

    Args:
        read_tables: opens the tables; called once, at the first position with few pieces.
        oracle: judges a position, or returns None.
    """

    def __init__(
        self,
        read_tables: Callable[[], Tablebase] = _open_tables,
        oracle: Callable[[Board], OracleAnswer | None] | None = None,
    ) -> None:
        self._read_tables: Callable[[], Tablebase] | None = read_tables
        self._oracle = oracle
        self._tables: Tablebase | None = None
        self._opening = threading.Lock()
        self._known: dict[str, Verdict] = {}  # FEN → verdict, the oldest first
        self._closed = False
        self._thread: threading.Thread | None = None  # only one position is looked up at a time

    def ask(self, board: Board) -> Verdict | None:
        """What is known about the position; None while it is looked up, or if it has too many pieces.

        Call it in every frame.
        """
        if self.looking_up(board) and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._look_up, args=(board.copy(),), name="endgames", daemon=True)
            self._thread.start()
        return self._known.get(board.fen())

    def value(self, board: Board) -> int | None:
        """The tables' value for the side to move: 1 win, 0 draw, -1 loss; None if unknown. May read from disk."""
        try:
            tables = self._tables_for(board)
            return None if tables is None else tables.get_wdl(board)
        except Exception:  # the verdict shows the error
            return None

    def looking_up(self, board: Board) -> bool:
        """Whether the position is being looked up, or will be at the next ``ask``."""
        asked = _pieces(board) <= max(TABLE_PIECES, ORACLE_PIECES)
        return asked and not self._closed and board.fen() not in self._known

    def close(self) -> None:
        """Waits a moment for the thread and closes the tables; may be called again."""
        self._closed = True
        if self._thread is not None:
            self._thread.join(_CLOSING)
        tables, self._tables = self._tables, None
        if tables is not None:
            tables.close()

    def _look_up(self, board: Board) -> None:
        verdict = self._verdict(board)
        self._known[verdict.fen] = verdict
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]

    def _verdict(self, board: Board) -> Verdict:
        verdict, errors = Verdict(board.fen(), board.turn), []
        if not board.legal_moves:
            return verdict
        try:
            tables = self._tables_for(board)
            if tables is not None and (value := tables.get_wdl(board)) is not None:
                verdict = verdict._replace(exact=_EXACT[value], plies=plies_of(tables, board))
                verdict = verdict._replace(moves=_moves(tables, board))
                line = _line(tables, board, verdict.moves)
                verdict = verdict._replace(
                    line=tuple(step.move for step in line), line_pdn=tuple(step.pdn for step in line)
                )
        except Exception as error:  # such as a damaged file: the game goes on without tables
            errors.append(_one_line("tables", error))
        try:
            if self._oracle is not None and _pieces(board) <= ORACLE_PIECES:
                verdict = verdict._replace(oracle=self._oracle(board))
        except Exception as error:
            errors.append(_one_line("oracle", error))
        return verdict._replace(error="; ".join(errors) or None)

    def _tables_for(self, board: Board) -> Tablebase | None:
        """The tables; None if there are none for this number of pieces."""
        tables = self._open_tables() if _pieces(board) <= TABLE_PIECES else None
        return tables if tables is not None and _pieces(board) <= tables.max_pieces else None

    def _open_tables(self) -> Tablebase | None:
        """Returns the tables, opened at the first call. If that fails, it raises once and later returns None."""
        with self._opening:  # the thinking thread asks, too
            if self._read_tables is not None:
                read, self._read_tables = self._read_tables, None
                self._tables = read()
            return self._tables


def _pieces(board: Board) -> int:
    own, opp, _ = board.words()
    return (own | opp).bit_count()


def _moves(tables: Tablebase, board: Board) -> tuple[ExactMove, ...]:
    """All legal moves, the best first; () if a table is missing."""
    try:
        known = known_moves(tables, board)
    except MissingTableError:
        return ()
    found = (ExactMove(one.move, board.pdn(one.move), _EXACT[one.value], one.plies) for one in known)
    return tuple(sorted(found, key=lambda exact: exact.rank))


def _line(tables: Tablebase, board: Board, moves: tuple[ExactMove, ...]) -> list[ExactMove]:
    """The line of best play that begins with the first of ``moves``."""
    after, line = board.copy(), list[ExactMove]()
    while moves and moves[0].plies is not None and len(line) < _LONGEST_LINE:
        line.append(moves[0])
        after.push(moves[0].move)
        moves = _moves(tables, after)
    return line


def _one_line(what: str, error: Exception) -> str:
    """``what`` and its error in one line, with the names of files without their folders: there is little room."""
    return f"{what}: {_FOLDERS.sub('', one_line(error))}"[:_SHOWN]
