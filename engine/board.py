"""``Board``: a game of draughts in play, with the habits of python-chess."""

import enum
import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from . import movegen
from .bitboard import SQUARE_OF_BIT, turned
from .errors import IllegalMoveError
from .fen import START_FEN, Color, format_fen, parse_fen, pieces_of, to_number
from .rules import played

REPETITIONS_TO_DRAW: int = played.REPETITIONS_TO_DRAW
REVERSIBLE_PLIES_TO_DRAW: int = played.REVERSIBLE_PLIES_TO_DRAW
_SHOWN = 40  # characters of a wrong text that a message repeats
MOVE_TEXT = re.compile(rf"{played.SQUARE}(?:[-x:]{played.SQUARE})+")


@dataclass(frozen=True)
class Move:
    """A whole move. Two capture paths with the same start, end and captured men are the same move.

    Attributes:
        start, end: PDN numbers, 1-32.
        captured: PDN numbers of the men and kings taken, in increasing order.
        path: every square stood on, start and end included (one of the possible paths).
    """

    start: int
    end: int
    captured: tuple[int, ...] = ()
    path: tuple[int, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return _written(self.path or (self.start, self.end), bool(self.captured))


def _written(squares: tuple[int, ...], captures: bool) -> str:
    return (played.CAPTURE_SIGN if captures else "-").join(map(played.square_name, squares))


class Termination(enum.Enum):
    """Why a game ended."""

    NO_MOVES = "no legal move"
    REPETITION = "threefold repetition"
    REVERSIBLE_PLIES = f"{REVERSIBLE_PLIES_TO_DRAW} plies without capture or man move"


class Outcome(NamedTuple):
    """How a game ended; ``winner`` is None for a draw."""

    termination: Termination
    winner: Color | None

    @property
    def result(self) -> str:
        """PDN result, who moves first in the start position first: in English draughts ``1-0`` means Black won."""
        return RESULTS[self.winner]


FIRST_TO_MOVE = Color(played.FIRST_TO_MOVE)
RESULTS = {FIRST_TO_MOVE: "1-0", FIRST_TO_MOVE.other: "0-1", None: "1/2-1/2"}


class _State(NamedTuple):
    words: tuple[int, int, int]
    reversible_plies: int


class LegalMove(NamedTuple):
    """A legal capture path or step: the move, every square of it, and the position after it, seen by its player."""

    move: Move
    after: tuple[int, int, int]


_NUMBERS_OF_BITS = {color: tuple(to_number(int(square), color) for square in SQUARE_OF_BIT) for color in Color}


def code_to_path(code: int, turn: Color, taken: int = 0) -> tuple[int, ...]:
    """PDN numbers stood on by a move code of ``movegen`` made by ``turn``.

    Args:
        taken: word of the pieces that it takes; without it, a king that flies takes several on a line in one hop.
    """
    numbers = _NUMBERS_OF_BITS[turn]
    return tuple(numbers[bit] for bit in played.path_bits(code, taken))


def generated_moves(own: int, opp: int, kings: int, turn: Color, distinct: bool) -> list[LegalMove]:
    """The legal moves in the order of ``movegen.generate``."""
    buffer = movegen.new_moves()
    count = movegen.generate(np.uint32(own), np.uint32(opp), np.uint32(kings), buffer, distinct)
    numbers, legal = _NUMBERS_OF_BITS[turn], []
    for *after, code in buffer[:count].tolist():
        taken = opp & ~after[1]
        path = code_to_path(code, turn, taken)
        captured = tuple(sorted(numbers[bit] for bit in range(32) if taken >> bit & 1)) if taken else ()
        legal.append(LegalMove(Move(path[0], path[-1], captured, path), tuple(after)))
    return legal


class Board:
    """A position with the moves that led to it.

    Args:
        fen: position to start from; the normal start position if left out.

    Raises:
        FenError: the text is no position.
    """

    turn: Color

    def __init__(self, fen: str = START_FEN) -> None:
        self.set_fen(fen)

    def set_fen(self, fen: str) -> None:
        """Sets the position and forgets the moves made; on ``FenError`` the board stays as it was."""
        turn, own, opp, kings = parse_fen(fen)
        self.turn = turn
        self.start_fen = format_fen(turn, own, opp, kings)
        self.move_stack: list[Move] = []
        self._states = [_State((own, opp, kings), 0)]
        self._legal: list[LegalMove] | None = None

    def fen(self) -> str:
        """The position as FEN."""
        return format_fen(self.turn, *self.words())

    def copy(self) -> "Board":
        """A board of its own with the same position and history."""
        other = Board.__new__(Board)
        other.turn, other.start_fen, other._legal = self.turn, self.start_fen, self._legal
        other.move_stack, other._states = self.move_stack.copy(), self._states.copy()
        return other

    @property
    def ply(self) -> int:
        """Number of moves made since the set-up position."""
        return len(self.move_stack)

    @property
    def reversible_plies(self) -> int:
        """Plies since the last capture or man move."""
        return self._states[-1].reversible_plies

    def words(self) -> tuple[int, int, int]:
        """``own``, ``opp``, ``kings``: 32-bit words seen by the side to move (layout: ``engine.bitboard``)."""
        return self._states[-1].words

    def history(self) -> list[tuple[int, int, int]]:
        """The words of the positions since the last irreversible move, oldest first, the present one last.

        Each is seen by the side to move in it, so equal words two plies apart mean the same position.
        """
        return [state.words for state in self._states[-1 - self.reversible_plies :]]

    def piece_map(self) -> dict[int, tuple[Color, bool]]:
        """PDN number → (colour, is king) of every piece."""
        return pieces_of(self.turn, *self.words())

    def legal_paths(self) -> list[LegalMove]:
        """Every legal path; several may be one move."""
        if self._legal is None:
            self._legal = generated_moves(*self.words(), self.turn, distinct=False)
        return self._legal

    def _legal_path(self, move: Move) -> LegalMove:
        """The legal path that is this move, or one of them; raises ``IllegalMoveError`` if none is."""
        for legal in self.legal_paths():
            if legal.move == move and move.path in ((), legal.move.path):
                return legal
        raise IllegalMoveError(self._why_illegal(str(move)))

    @property
    def legal_moves(self) -> list[Move]:
        """The legal moves, each once (several paths of one capture are one move). Draw rules do not end the list."""
        return list(dict.fromkeys(legal.move for legal in self.legal_paths()))

    @property
    def distinct_moves(self) -> list[Move]:
        """The moves that lead to different positions, in the order of ``movegen.generate(distinct=True)``.

        A search that has chosen move number ``i`` of that order plays ``distinct_moves[i]``.
        """
        return [legal.move for legal in generated_moves(*self.words(), self.turn, distinct=True)]

    def push(self, move: Move) -> None:
        """Makes a move; raises ``IllegalMoveError`` if it is not legal here, and then the board stays as it was."""
        legal = self._legal_path(move)
        own, opp, kings = legal.after
        own_before, opp_before, kings_before = self.words()
        quiet = opp == opp_before and own_before & ~kings_before == own & ~kings
        words = int(turned(np.uint32(opp))), int(turned(np.uint32(own))), int(turned(np.uint32(kings)))
        self._states.append(_State(words, self.reversible_plies + 1 if quiet else 0))
        self.move_stack.append(legal.move)
        self.turn = self.turn.other
        self._legal = None

    def pop(self) -> Move:
        """Takes the last move back and returns it; raises ``IndexError`` if none has been made."""
        move = self.move_stack.pop()
        self._states.pop()
        self.turn = self.turn.other
        self._legal = None
        return move

    def peek(self) -> Move:
        """The last move made; raises ``IndexError`` if there is none."""
        return self.move_stack[-1]

    def pdn(self, move: Move) -> str:
        """The move in PDN: start and end, or every square where several capture paths share these.

        Raises:
            IllegalMoveError: the move is not legal here.
        """
        path, ends = self._legal_path(move).move.path, (move.start, move.end)
        sharing = sum((legal.move.start, legal.move.end) == ends for legal in self.legal_paths())
        squares = path if sharing > 1 else ends
        return _written(squares, bool(move.captured))

    def parse_pdn(self, text: str) -> Move:
        """The legal move that a PDN text names, in the short or the long form.

        Raises:
            IllegalMoveError: the text is no move, or fits no legal move, or several.
        """
        if not MOVE_TEXT.fullmatch(text):
            raise IllegalMoveError(f"{text[:_SHOWN]!r} is not a move (like {played.EXAMPLES})")
        squares = tuple(played.square_number(name) for name in re.split("[-x:]", text))
        paths = [legal.move for legal in self.legal_paths()]
        fits = [move for move in paths if move.path == squares]
        if not fits:
            fits = [move for move in paths if _names(squares, move.path)]
        if not fits:
            raise IllegalMoveError(self._why_illegal(text))
        if len(set(fits)) > 1:
            choices = " or ".join(map(str, fits))
            raise IllegalMoveError(f"{text} is ambiguous in {self.fen()}: write {choices}")
        return fits[0]

    def push_pdn(self, text: str) -> Move:
        """Reads a move as ``parse_pdn`` does and makes it."""
        move = self.parse_pdn(text)
        self.push(move)
        return move

    def _why_illegal(self, text: str) -> str:
        legal, text = self.legal_moves, text[:_SHOWN]
        if not legal:
            return f"{text} is illegal in {self.fen()}: {self.turn} has no legal move"
        shown = ", ".join(map(str, legal[:8])) + (", ..." if len(legal) > 8 else "")
        if legal[0].captured and not set("x:") & set(text):
            return f"{text} is illegal in {self.fen()}: {self.turn} must capture ({shown})"
        return f"{text} is illegal in {self.fen()}; legal: {shown}"

    def repetitions(self) -> int:
        """How often the present position has occurred, this time included, with the same side to move."""
        return self.history()[::-2].count(self.words())

    def outcome(self) -> Outcome | None:
        """How the game ended, or None while it goes on.

        A side without a move loses. The third occurrence of a position with the same side to move and
        ``REVERSIBLE_PLIES_TO_DRAW`` consecutive plies without a capture and without a man moving are draws.
        """
        if not self.legal_paths():
            return Outcome(Termination.NO_MOVES, self.turn.other)
        if self.repetitions() >= REPETITIONS_TO_DRAW:
            return Outcome(Termination.REPETITION, None)
        if self.reversible_plies >= REVERSIBLE_PLIES_TO_DRAW:
            return Outcome(Termination.REVERSIBLE_PLIES, None)
        return None

    def result(self) -> str:
        """PDN result of the position, see ``Outcome.result``; ``*`` while the game goes on."""
        outcome = self.outcome()
        return outcome.result if outcome else "*"

    def __str__(self) -> str:
        """The board as text, White at the bottom: b, w men, B, W kings."""
        letters = ["."] * 32
        for number, (color, king) in self.piece_map().items():
            letters[number - 1] = color.value if king else color.value.lower()
        rows = ("   ".join(letters[start : start + 4]) for start in range(0, 32, 4))
        return "\n".join(("" if index % 2 else "  ") + row for index, row in enumerate(rows))


def _names(squares: tuple[int, ...], path: tuple[int, ...]) -> bool:
    """Whether the squares name this path: start and end, and whatever lies between in order."""
    if squares[0] != path[0] or squares[-1] != path[-1] or len(squares) < 2:
        return False
    rest = iter(played.between(path))
    return all(square in rest for square in squares[1:-1])
