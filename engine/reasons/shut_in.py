"""Reasons about kings that are shut in: they cannot move without being captured."""

from ..board import Board, Move
from ..fen import Color
from .fault import Fault, behind
from .reason import Kind, Proof, Reason
from .words import pieces_on

_LEAST_TURNS = 2  # fewest turns for which a king must be shut in


def shut_in_reason(fault: Fault, proof: Proof) -> Reason | None:
    """More kings are shut in, throughout the expected play, than with the better move; else None."""
    board = fault.board
    after = behind(board, fault.move)
    shut = _shut_in(after, fault.reply, board.turn)
    free = _shut_in(behind(board, fault.better), fault.line[1:], board.turn)
    if shut is None or free is None or len(shut) <= len(free):
        return None
    squares = tuple(sorted(shut - free))
    name, kings = board.pdn(fault.move), pieces_on(after, squares)
    if all(square in _kings(board) and not _moves_safely(board, square) for square in squares):
        text = f"{name} leaves {kings} shut in: no move is safe there."
    else:
        text = f"{name} shuts in {kings}: no move is safe there any more."
    return Reason(Kind.TRAPPED, proof, text, squares, fault.reply)


def _shut_in(board: Board, line: tuple[Move, ...], color: Color) -> set[int] | None:
    """Squares of kings of ``color`` that cannot move safely during the whole line; None if the line is too short.

    Turns at which ``color`` must capture do not count.
    """
    after, found = Board(board.fen()), list[set[int]]()
    for move in (None, *line):
        if move is not None:
            after.push(move)
        if after.turn is color and not any(move.captured for move in after.legal_moves[:1]):
            found.append({square for square in _kings(after) if not _moves_safely(after, square)})
    return set.intersection(*found) if len(found) >= _LEAST_TURNS else None


def _kings(board: Board) -> list[int]:
    return [square for square, (owner, king) in board.piece_map().items() if king and owner is board.turn]


def _moves_safely(board: Board, square: int) -> bool:
    moves = [move for move in board.legal_moves if move.start == square]
    return any(all(move.end not in answer.captured for answer in behind(board, move).legal_moves) for move in moves)
