"""Explains in one line why a move is refused."""

from engine.board import Board
from engine.fen import Color, Piece

from .squares import row_column, square_between

_SHOWN = 3  # most captures that a message names


def capture_message(board: Board) -> str:
    """The message that the side to move must capture: ``you must capture: 15x22 or 18x25``."""
    moves = sorted(board.legal_moves, key=lambda move: (move.start, move.end, move.path))
    captures = [board.pdn(move) for move in moves]
    if len(captures) > _SHOWN:
        return f"you must capture: {', '.join(captures[:_SHOWN])} or another"
    return f"you must capture: {' or '.join(captures)}"


def why_no_game(board: Board) -> list[str]:
    """Why no game can begin at a position: a side has no pieces, or there is no legal move; [] if one can."""
    colors = {color for color, _ in board.piece_map().values()}
    missing = [f"{color} has no pieces" for color in Color if color not in colors]
    if missing or board.legal_moves:
        return missing
    return [f"{board.turn} has no legal move and loses at once"]


def why_not_piece(board: Board, square: int) -> str:
    """Why the piece on a square cannot move; "" if it can."""
    pieces = board.piece_map()
    if (outcome := board.outcome()) is not None:
        return f"the game is over: {outcome.termination.value}"
    if square not in pieces:
        return f"there is no piece on {square}"
    color, king = pieces[square]
    if color is not board.turn:
        return f"it is {board.turn}'s move"
    moves = board.legal_moves
    if any(move.start == square for move in moves):
        return ""
    if moves[0].captured:
        return capture_message(board)
    return f"the {'king' if king else 'man'} on {square} is blocked"


def why_not(board: Board, start: int, end: int) -> str:
    """Why no legal move leads from one square to another; "" if one does."""
    pieces = board.piece_map()
    moves = board.legal_moves
    if any((move.start, move.end) == (start, end) for move in moves):
        return ""
    if board.outcome() is not None or start not in pieces or pieces[start][0] is not board.turn:
        return why_not_piece(board, start)
    if end in pieces:
        return f"{end} is occupied"
    if moves[0].captured:
        return capture_message(board)
    return _why_not_geometry(pieces, start, end)


def _why_not_geometry(pieces: dict[int, Piece], start: int, end: int) -> str:
    """Why a piece cannot move to an empty square, if it is not a capture."""
    color, king = pieces[start]
    (row, column), (end_row, end_column) = row_column(start), row_column(end)
    ahead = (end_row - row) * (1 if color is Color.BLACK else -1)
    distance, aside = abs(end_row - row), abs(end_column - column)
    if not king and ahead < 0 and distance == aside and distance <= 2:
        return "men move forward only" if distance == 1 else "men move and capture forward only"
    if distance == aside == 2:
        between = square_between(start, end)
        if between not in pieces:
            return f"there is nothing to capture on {between}"
        if pieces[between][0] is color:
            return f"you cannot jump over your own piece on {between}"
    if king:
        return "a king moves one square along a diagonal"
    return "a man moves one square diagonally forward"
