"""Words for moves, pieces and endings."""

from collections.abc import Sequence

from ..board import Board, Move
from ..fen import Color

_NUMBERS = "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"
SHOWN = 12  # plies of a line that are shown
_VALUES = {1: "won", 0: "drawn", -1: "lost"}
_RESULTS = {0: "a draw", -1: "a loss"}


def pdn_line(board: Board, moves: Sequence[Move]) -> str:
    """Moves from a position in PDN; cut after ``SHOWN`` plies."""
    return " ".join([*board.pdn_line(moves[:SHOWN]), *(["and so on"] if len(moves) > SHOWN else [])])


def counted(number: int, noun: str) -> str:
    """``a man``, ``two men``."""
    if number == 1:
        return f"a {noun}"
    return f"{_NUMBERS[number]} {'men' if noun == 'man' else noun + 's'}"


def net_pieces(men: int, kings: int) -> str:
    """A net loss of men and kings in words: ``two men``, ``a king``, ``a piece``."""
    if kings == 0:
        return counted(men, "man")
    return counted(kings, "king") if men == 0 else counted(men + kings, "piece")


def pieces_on(board: Board, squares: Sequence[int]) -> str:
    """``the man on 14``, ``the pieces on 14 and 18``."""
    kings = {board.piece_map()[square][1] for square in squares}
    noun = "piece" if len(kings) > 1 else "king" if True in kings else "man"
    if len(squares) == 1:
        return f"the {noun} on {squares[0]}"
    plural = "men" if noun == "man" else noun + "s"
    return f"the {plural} on {', '.join(map(str, squares[:-1]))} and {squares[-1]}"


def ending(board: Board, color: Color) -> str:
    """The material of both sides, that of ``color`` first: ``two kings and a man against three kings``."""
    return f"{_side(board, color)} against {_side(board, color.other)}"


def _side(board: Board, color: Color) -> str:
    kings = [king for owner, king in board.piece_map().values() if owner is color]
    counts = ((kings.count(True), "king"), (kings.count(False), "man"))
    return " and ".join(counted(number, noun) for number, noun in counts if number)


def value_word(value: int) -> str:
    """The value of an ending as a word: ``won``, ``drawn`` or ``lost``."""
    return _VALUES[value]


def becomes(before: int, after: int) -> str:
    """The change of an ending's value in words: ``a won ending becomes a draw``."""
    return f"a {_VALUES[before]} ending becomes {_RESULTS[after]}"
