"""FEN of draughts (PDN 3.0, section "FEN tag"): ``B:W21,22,K23:B1-4,K30``; squares are written as in the game's moves.

What other programs write is read as well: small letters, and counters of moves behind the sides (``:H0:F1``), which
are left aside.

Words of bits here are seen by the side to move, as everywhere in ``engine``.
"""

import enum
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from .bitboard import mask_of, squares_of
from .errors import FenError, shortened
from .rules import played

START_FEN: str = played.START_FEN
EMPTY_FEN = f"{played.FIRST_TO_MOVE}:W:B"
NUMBERS = 32
MAX_PIECES = 12  # a side never has more than it started with
_LONGEST = 120  # characters of a wrong text that a message repeats; the start position has 67
_REMEMBERED = 4096  # texts and positions: a self-play actor meets the same openings again and again
_COUNTER = re.compile(r"[HF][0-9]{1,4}")
_name = played.square_name
_PIECES = re.compile(rf"(K?)({played.SQUARE})(?:-({played.SQUARE}))?")


class Color(enum.Enum):
    """The two sides. Black starts on 1-12; in English draughts it moves first."""

    BLACK = "B"
    WHITE = "W"

    @property
    def other(self) -> "Color":
        return Color.WHITE if self is Color.BLACK else Color.BLACK

    def __str__(self) -> str:
        return self.name.capitalize()


class Piece(NamedTuple):
    """A man or a king."""

    color: Color
    king: bool = False

    @classmethod
    def from_symbol(cls, symbol: str) -> "Piece":
        """The piece of a letter that ``symbol`` gives; raises ``ValueError`` for another text."""
        if symbol not in ("b", "w", "B", "W"):
            raise ValueError(f"{_shown(symbol)} is no piece: b, w for men, B, W for kings")
        return cls(Color(symbol.upper()), symbol.isupper())

    def symbol(self) -> str:
        """``b`` or ``w`` for a man, ``B`` or ``W`` for a king."""
        return self.color.value if self.king else self.color.value.lower()

    def __str__(self) -> str:
        return f"{str(self.color).lower()} {'king' if self.king else 'man'}"


def to_number(square: int, turn: Color) -> int:
    """PDN number (1-32) of a square (0-31) counted from the side of ``turn``."""
    return square + 1 if turn is Color.BLACK else NUMBERS - square


def to_square(number: int, turn: Color) -> int:
    """Square (0-31) counted from the side of ``turn`` of a PDN number (1-32)."""
    return number - 1 if turn is Color.BLACK else NUMBERS - number


def _shown(fen: str) -> str:
    """A text as messages repeat it: a hostile one not in full."""
    return repr(shortened(fen, _LONGEST))


def _parse_side(text: str, shown: str) -> tuple[set[int], set[int]]:
    men: set[int] = set()
    kings: set[int] = set()
    for token in map(str.strip, text.split(",") if text else []):
        match = _PIECES.fullmatch(token)
        if match is None:
            raise FenError(
                f"FEN {shown}: {_shown(token)} is not a square (like {_name(7)}, K{_name(7)} or {_name(1)}-{_name(4)})"
            )
        first, last = played.square_number(match[2]), played.square_number(match[3] or match[2])
        if not 1 <= first <= last <= NUMBERS:
            raise FenError(f"FEN {shown}: {_shown(token)} is outside squares {_name(1)} to {_name(NUMBERS)}")
        squares = set(range(first, last + 1))
        if squares & (men | kings):
            raise FenError(f"FEN {shown}: square {_name(min(squares & (men | kings)))} is given twice")
        (kings if match[1] else men).update(squares)
    return men, kings


def parse_fen(fen: str) -> tuple[Color, int, int, int]:
    """Side to move and the words ``own``, ``opp``, ``kings`` seen by it; raises ``FenError``."""
    return _parsed(fen) if len(fen) <= _LONGEST else _parsed.__wrapped__(fen)


@lru_cache(_REMEMBERED)
def _parsed(fen: str) -> tuple[Color, int, int, int]:
    """``parse_fen``; what is remembered is of bounded length."""
    shown = _shown(fen)
    text = fen.strip().removesuffix(".").upper()
    parts = text.split(":")
    while len(parts) > 3 and _COUNTER.fullmatch(parts[-1]):
        parts.pop()
    if len(parts) != 3:
        raise FenError(f"FEN {shown}: {len(parts)} parts between colons, not 3 (side to move, and the two sides)")
    if parts[0] not in ("B", "W"):
        raise FenError(f"FEN {shown}: side to move is {_shown(parts[0])}, not B or W")
    turn = Color(parts[0])
    sides = {}
    for part in parts[1:]:
        if part[:1] not in ("B", "W"):
            raise FenError(f"FEN {shown}: the pieces {_shown(part)} do not begin with B or W")
        if Color(part[0]) in sides:
            raise FenError(f"FEN {shown}: the pieces of {part[0]} are given twice")
        sides[Color(part[0])] = _parse_side(part[1:], shown)
    (black_men, black_kings), (white_men, white_kings) = sides[Color.BLACK], sides[Color.WHITE]
    shared = (black_men | black_kings) & (white_men | white_kings)
    if shared:
        raise FenError(f"FEN {shown}: square {_name(min(shared))} holds pieces of both sides")
    for color, (men, kings) in sides.items():
        if len(men) + len(kings) > MAX_PIECES:
            raise FenError(f"FEN {shown}: {color} has {len(men) + len(kings)} pieces, more than {MAX_PIECES}")
        crowned = [number for number in men if to_square(number, color) >= NUMBERS - 4]
        if crowned:
            square = _name(min(crowned))
            raise FenError(f"FEN {shown}: a man of {color} on {square}, its promotion row (write K{square})")

    def word(numbers: set[int]) -> int:
        return mask_of(to_square(number, turn) for number in numbers)

    (own_men, own_kings), (opp_men, opp_kings) = sides[turn], sides[turn.other]
    return turn, word(own_men | own_kings), word(opp_men | opp_kings), word(own_kings | opp_kings)


def pieces_of(turn: Color, own: int, opp: int, kings: int) -> dict[int, Piece]:
    """The pieces of a position by their PDN numbers."""
    sides = ((turn, own), (turn.other, opp))
    crowned = set(squares_of(kings))
    return {to_number(s, turn): Piece(color, s in crowned) for color, word in sides for s in squares_of(word)}


@lru_cache(_REMEMBERED)
def format_fen(turn: Color, own: int, opp: int, kings: int) -> str:
    """The FEN of a position, see ``fen_of_pieces``."""
    return fen_of_pieces(turn, pieces_of(turn, own, opp, kings))


def fen_of_pieces(turn: Color, pieces: Mapping[int, Piece]) -> str:
    """The FEN of pieces given as PDN number → (colour, is king); the rules are not asked.

    No ranges, spaces or dot; White first; men before kings, each in increasing order. Raises ``FenError`` if the turn
    or a piece is of no ``Color``, like ``Piece(True, Color.BLACK)``.
    """
    if not isinstance(turn, Color):
        raise FenError(f"the side to move is {turn!r}: neither Color.BLACK nor Color.WHITE")
    for number, piece in pieces.items():
        if not isinstance(piece[0], Color):
            raise FenError(f"the piece on {number} is {piece!r}: its colour is neither Color.BLACK nor Color.WHITE")

    def side(color: Color) -> str:
        squares = sorted((bool(king), number) for number, (owner, king) in pieces.items() if owner is color)
        return color.value + ",".join(f"{'K' * king}{_name(number)}" for king, number in squares)

    return f"{turn.value}:{side(Color.WHITE)}:{side(Color.BLACK)}"
