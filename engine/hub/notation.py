"""Positions and moves in the notation of the Hub protocol, for English draughts.

A position is the side to move, ``B`` or ``W``, and a letter for each of the squares 1 to 32: ``b``, ``w`` for men,
``B``, ``W`` for kings, ``e`` for an empty square. A quiet move is ``11-15``. A capture names start, end and the squares
of the captured pieces in increasing order: ``15x31x18x26``. Squares have their PDN numbers.

The protocol was designed for international draughts, where White moves first. Some programs (pydraughts) keep this rule
and write positions of English draughts *turned*: the board rotated by 180 degrees and the colours exchanged, so that
the side that began is called white. The start position is then ``Wbbbbbbbbbbbbeeeeeeeewwwwwwwwwwww``. They write moves
without this change. ``read_game`` finds out which form is meant.
"""

import re
from collections.abc import Iterable, Sequence

from ..board import Board, Move
from ..errors import DraughtsError
from ..fen import MAX_PIECES, NUMBERS, Color, Piece, fen_of_pieces
from .messages import HubError, shown

_POS = re.compile(rf"[BW][bwBWe]{{{NUMBERS}}}")
_SWAPPED = str.maketrans("bwBW", "wbWB")


def format_pos(board: Board) -> str:
    letters = ["e"] * NUMBERS
    for number, piece in board.piece_map().items():
        letters[number - 1] = piece.symbol()
    return board.turn.value + "".join(letters)


def parse_pos(text: str) -> Board:
    """A board with the position of a text; raises ``HubError``, or ``FenError`` if the rules do not allow it."""
    if not _POS.fullmatch(text):
        raise HubError(f"{shown(text)} is no position: B or W, then one of b, w, B, W, e for each of {NUMBERS} squares")
    letters = [(number, letter) for number, letter in enumerate(text) if number > 0 and letter != "e"]
    pieces = {number: Piece.from_symbol(letter) for number, letter in letters}
    return Board(fen_of_pieces(Color(text[0]), pieces))


def turned_pos(text: str) -> str:
    """The same position seen from the other side, with the colours exchanged."""
    return (text[:1] + text[:0:-1]).translate(_SWAPPED)


def format_move(move: Move) -> str:
    """The text of a move; a capture includes the squares of the captured pieces."""
    return ("x" if move.captured else "-").join(map(str, (move.start, move.end, *move.captured)))


def parse_move(board: Board, text: str) -> Move:
    """The legal move that a text names, either with the squares of the captured pieces or in a form of PDN.

    The two forms cannot be confused: the square of a captured piece is occupied, a square passed in PDN is empty.
    Raises ``IllegalMoveError`` as ``Board.parse_pdn`` does.
    """
    if re.fullmatch("[0-9]{1,2}(?:[-x:][0-9]{1,2}){2,}", text):
        start, end, *taken = (int(number) for number in re.split("[-x:]", text))
        wanted = Move(start, end, tuple(sorted(taken)))
        for move in board.legal_moves:
            if move == wanted:
                return move
    return board.parse_pdn(text)


def play_moves(board: Board, moves: Iterable[str]) -> Board:
    """Plays moves on ``board`` itself and returns it; raises ``IllegalMoveError`` as ``parse_move`` does."""
    for text in moves:
        board.push(parse_move(board, text))
    return board


def read_game(pos: str, moves: Sequence[str], turned: bool | None = None) -> tuple[Board, bool | None]:
    """Reads the arguments of a ``pos`` command; raises a ``DraughtsError`` if it cannot.

    Args:
        turned: whether this program's positions are turned, None if not known yet. A position with all 24 men can show
            it by itself, which then counts instead.

    Returns:
        The board after the moves; and whether the position is turned, None if that is not known. A position is then
        read as not turned.
    """
    straight = parse_pos(pos)
    told = _looks_turned(straight)
    turned = turned if told is None else told
    if turned is not None:
        return play_moves(parse_pos(turned_pos(pos)) if turned else straight, moves), turned
    if not moves:
        return straight, None
    try:
        other = play_moves(parse_pos(turned_pos(pos)), moves)
    except DraughtsError:
        return play_moves(straight, moves), False
    try:
        return play_moves(straight, moves), None
    except DraughtsError:
        return other, True


def _looks_turned(board: Board) -> bool | None:
    """Whether a position is turned, None if it does not show this.

    Black moves first. Before the first capture, Black has made as many steps as White when Black is to move, and one
    more when White is to move. In a turned position the colours are exchanged.
    """
    steps, pieces = {Color.BLACK: 0, Color.WHITE: 0}, board.piece_map()
    if len(pieces) < 2 * MAX_PIECES or any(king for _, king in pieces.values()):
        return None
    for number, (color, _) in pieces.items():
        row = (number - 1) // 4
        steps[color] += row if color is Color.BLACK else 7 - row
    ahead = steps[Color.BLACK] - steps[Color.WHITE]
    if ahead == (board.turn is Color.WHITE):
        return False
    return True if -ahead == (board.turn is Color.BLACK) else None
