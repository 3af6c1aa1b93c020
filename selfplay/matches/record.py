"""Records of a match: its games with all moves, and its result."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from engine.board import Board, Move
from engine.fen import Color, parse_fen
from engine.outcomes import RESULTS
from engine.pdn import PdnGame, PdnNode, format_game

from ..rating.elo import Tally, TallyFigures

_LATE_S, _LATE = 0.005, 0.05  # a move is late if it overruns its time by more than both: seconds and fraction of it
PLY_CAP, FORFEIT, FLAG = "PLY_CAP", "FORFEIT", "TIME"
_EVAL = re.compile(r"\[%eval\s+([-+]?[0-9]{1,3}(?:\.[0-9]{1,9})?)\s*\]")
_COMMANDS = re.compile(r"\[%[^\]]*\]\s*")
_WINNERS = {result: winner for winner, result in RESULTS.items()}


@dataclass(frozen=True)
class MoveNote:
    """Times and evaluation of a move.

    Attributes:
        elapsed_s: seconds that the move took; None if it was forced, belongs to the opening, or was chosen in a batch
            with moves of other games.
        clock_s: seconds on the player's clock after the move, with the increment.
        value: the player's evaluation of the position before its move, P(win) - P(loss), in [-1, 1].
    """

    elapsed_s: float | None = None
    clock_s: float | None = None
    value: float | None = None

    def comment(self) -> str:
        """Text for a PDN comment, like ``[%clk 0:00:58.300] [%emt 0:00:01.200] [%eval 0.250]``; "" if all are None."""
        parts = [f"[%clk {_hours(self.clock_s)}]"] if self.clock_s is not None else []
        parts += [f"[%emt {_hours(self.elapsed_s)}]"] if self.elapsed_s is not None else []
        parts += [f"[%eval {self.value:.3f}]"] if self.value is not None else []
        return " ".join(parts)

    @staticmethod
    def of(node: PdnNode) -> "MoveNote":
        """Reads the note from the comments of a move."""
        values = [float(found) for comment in node.comments for found in _EVAL.findall(comment)]
        return MoveNote(node.elapsed, node.clock, values[0] if values else None)


def _hours(seconds: float) -> str:
    thousandths = max(0, round(seconds * 1000))
    minutes = thousandths // 60_000
    return f"{minutes // 60}:{minutes % 60:02}:{thousandths // 1000 % 60:02}.{thousandths % 1000:03}"


@dataclass(frozen=True)
class MatchGame:
    """One game of a match.

    Attributes:
        index: number of the game, from 0; games 2k and 2k + 1 have the same opening.
        opening: name of the opening.
        first_is_black: whether the match's first player has Black.
        start_fen, moves: the whole game, the opening's moves included.
        winner: None for a draw.
        termination: name of an ``engine.board.Termination``, ``PLY_CAP`` (adjudicated a draw), ``TIME`` (lost on time)
            or ``FORFEIT``.
        error: what the player that forfeited did wrong, or by how much its clock was overrun.
        notes: one for each move, or none at all.
    """

    index: int
    opening: str
    black: str
    white: str
    first_is_black: bool
    start_fen: str
    moves: tuple[Move, ...]
    winner: Color | None
    termination: str
    error: str | None = None
    notes: tuple[MoveNote, ...] = ()

    @property
    def score(self) -> float:
        """Score of the match's first player: 1, 1/2 or 0."""
        return 0.5 if self.winner is None else float((self.winner is Color.BLACK) == self.first_is_black)

    def moved_first(self, ply: int) -> bool:
        """Whether the match's first player made the move at ``ply`` (counted from 0)."""
        black = (parse_fen(self.start_fen)[0] is Color.BLACK) == (ply % 2 == 0)
        return black == self.first_is_black

    @property
    def result(self) -> str:
        """PDN result, Black first."""
        return RESULTS[self.winner]

    def to_pdn(self, headers: Mapping[str, str] | None = None) -> str:
        """The game as PDN text; ``headers`` are tags to add to those of the game itself."""
        board = Board(self.start_fen)
        for move in self.moves:
            board.push(move)
        tags = {
            **(headers or {}),
            "Round": f"{self.index // 2 + 1}.{self.index % 2 + 1}",
            "Black": self.black,
            "White": self.white,
            "Result": self.result,
            "Opening": self.opening,
            "Termination": self.termination,
        }
        game = PdnGame.from_board(board, tags)
        for node, note in zip(game.moves, self.notes, strict=False):
            node.comments.extend(filter(None, [note.comment()]))
        if self.error:
            (game.moves[-1] if game.moves else game).comments.append(self.error)
        return format_game(game)

    @staticmethod
    def from_pdn(game: PdnGame, index: int, first_is_black: bool) -> "MatchGame":
        """Reads a game that ``to_pdn`` has written; raises ``ValueError`` if it has no result."""
        if game.result not in _WINNERS:
            raise ValueError(f"the game has no result, but {game.result}")
        notes = tuple(MoveNote.of(node) for node in game.moves)
        last = game.moves[-1].comments if game.moves else game.comments
        return MatchGame(
            index=index,
            opening=game.headers.get("Opening", ""),
            black=game.headers.get("Black", ""),
            white=game.headers.get("White", ""),
            first_is_black=first_is_black,
            start_fen=game.start_fen,
            moves=tuple(node.move for node in game.moves),
            winner=_WINNERS[game.result],
            termination=game.headers.get("Termination", ""),
            error=" ".join(filter(None, (_COMMANDS.sub("", comment).strip() for comment in last))) or None,
            notes=notes if any(note != MoveNote() for note in notes) else (),
        )


class PunctualityFigures(TypedDict):
    """How well a player kept to a time per move: timed moves, late moves, and the worst delay in seconds.

    A move is late if it overran its time by more than 5 % and more than 5 ms.
    """

    player: str
    moves: int
    late: int
    worst_s: float


class MatchSummary(TallyFigures):
    """Results of a match, counted for ``player_a``."""

    player_a: str
    player_b: str


@dataclass(frozen=True)
class MatchResult:
    """Result of a match: the names of the players, and the games in order."""

    player_a: str
    player_b: str
    played: tuple[MatchGame, ...]

    @property
    def pairs(self) -> list[tuple[float, ...]]:
        """Scores of the first player in the games of each pair; the last pair may have one game."""
        scores = [game.score for game in self.played]
        return [tuple(scores[first : first + 2]) for first in range(0, len(scores), 2)]

    @cached_property
    def tally(self) -> Tally:
        """The results counted for the first player."""
        tally = Tally()
        for pair in self.pairs:
            tally.add(pair)
        return tally

    @property
    def errors(self) -> list[str]:
        return [f"game {game.index + 1}: {game.error}" for game in self.played if game.error]

    def punctuality(self, budget_s: float) -> list[PunctualityFigures]:
        """How well each player (the first player first) kept to ``budget_s`` seconds per move."""
        figures = []
        for name, is_first in ((self.player_a, True), (self.player_b, False)):
            over = [
                note.elapsed_s - budget_s
                for game in self.played
                for ply, note in enumerate(game.notes)
                if note.elapsed_s is not None and game.moved_first(ply) == is_first
            ]
            late = sum(seconds > max(_LATE_S, _LATE * budget_s) for seconds in over)
            worst = round(max(0.0, *over), 4) if over else 0.0
            figures.append(PunctualityFigures(player=name, moves=len(over), late=late, worst_s=worst))
        return figures

    def summary(self) -> MatchSummary:
        return {"player_a": self.player_a, "player_b": self.player_b, **self.tally.figures()}


class GamesInOrder:
    """Counts games in the order of their indices, whatever the order in which they end: short games do not come first.

    Args:
        on_game: called with each game in order of index; if it returns True, later games do not count.

    Attributes:
        played: the games that count.
        waiting: index → finished game, where an earlier game is missing.
        ended: whether no more games count.
    """

    def __init__(self, on_game: Callable[[MatchGame], bool | None]) -> None:
        self.played: list[MatchGame] = []
        self.waiting: dict[int, MatchGame] = {}
        self.ended = False
        self._on_game = on_game

    def add(self, games: Iterable[MatchGame]) -> None:
        """Adds finished games; a game that is known already does not count again."""
        self.waiting |= {game.index: game for game in games if game.index >= len(self.played)}
        while not self.ended and len(self.played) in self.waiting:
            game = self.waiting.pop(len(self.played))
            self.played.append(game)
            self.ended = bool(self._on_game(game))
