"""Reasons that exact tables prove: the value of an ending before a move and after it."""

from collections.abc import Callable

from ..board import Board, Move
from ..knowledge.squares import has_the_move
from .fault import Fault, behind
from .reason import Kind, Proof, Reason
from .shut_in import shut_in_reason
from .words import becomes, ending, pdn_line, value_word

_DOUBLE_CORNERS = ({1, 5}, {28, 32})
_FEW = 10  # largest number of pieces: with more, the move (the opposition) changes sides too often
Known = Callable[[Board], int | None]


class Change:
    """The tables' values of the positions after the better and after the played move, for the side that moved.

    Attributes:
        before: value with the better move: 1 win, 0 draw, -1 loss; None where the tables do not reach.
        after: value with the played move.
    """

    def __init__(self, fault: Fault, known: Known) -> None:
        self.before, self.after = (_value(behind(fault.board, move), known) for move in (fault.better, fault.move))

    @property
    def text(self) -> str:
        """`` By the tables a won ending becomes a draw.``; "" where the value is unknown or does not get worse."""
        if self.before is None or self.after is None or self.after >= self.before:
            return ""
        return f" By the tables {becomes(self.before, self.after)}."


def _value(board: Board, known: Known) -> int | None:
    if not board.legal_moves:
        return 1
    value = known(board)
    return None if value is None else -value


def ending_reason(fault: Fault, change: Change) -> Reason | None:
    """A reason that the tables prove; None where they do not reach, or the value does not get worse."""
    if not change.text or change.before is None or change.after is None:
        return None
    board, color = fault.board, fault.board.turn
    name, better = board.pdn(fault.move), board.pdn(fault.better)
    line = fault.reply
    shut_in = shut_in_reason(fault, Proof.TABLES)
    if reason := opposition_reason(fault, Proof.TABLES) or _corner_reason(fault, change) or shut_in:
        return reason
    after, result = behind(board, fault.move), value_word(change.after)
    if fault.move.captured:
        deed = f"takes into the ending of {ending(after, color)}"
    elif change.before == 1:
        deed = f"gives away the win in the ending of {ending(board, color)}"
    else:
        deed = f"leaves the drawn ending of {ending(board, color)}, which {better} holds"
    text = f"{name} {deed}: by the tables it is {result} now."
    return Reason(Kind.ENDING, Proof.TABLES, text, (fault.move.start, fault.move.end), line)


def _corner_reason(fault: Fault, change: Change) -> Reason | None:
    """A king leaves the double corner, which loses a drawn ending; None if it leaves with the better move, too."""
    board, move, better = fault.board, fault.move, fault.better
    corner = next((corner for corner in _DOUBLE_CORNERS if move.start in corner), set[int]())
    if change.before != 0 or not board.piece_map()[move.start][1] or move.end in corner:
        return None
    if corner and (better.start != move.start or better.end in corner):  # a capture may leave no other choice
        text = f"{board.pdn(move)} gives up the double corner, where the king was safe."
        return Reason(Kind.DOUBLE_CORNER, Proof.TABLES, text, (move.start,), fault.reply)
    return None


def opposition_reason(fault: Fault, proof: Proof) -> Reason | None:
    """The move (the opposition) is lost by an exchange, or by not making one, or not gained by one; else None.

    Quiet moves never change which side has it. It matters when both sides have the same number of pieces, and few.
    """
    board, color = fault.board, fault.board.turn
    own, opp, _ = board.words()
    if own.bit_count() != opp.bit_count():
        return None
    ends = [_settled(board, line) for line in ((fault.better, *fault.line[1:]), (fault.move, *fault.reply))]
    if any(not _even(end) for end in ends):
        return None
    had, has = (has_the_move(end) == (end.turn is color) for end in ends)
    if not had or has:
        return None
    name = board.pdn(fault.move)
    line = fault.reply
    owned = has_the_move(board)
    deed = "gives up the move (the opposition)" if owned else f"leaves the move (the opposition) to {color.other}"
    text = f"{name} {deed}"
    if not fault.better.captured and any(reply.captured for reply in fault.line[1:2]):
        exchange = f"the exchange {pdn_line(board, tuple(ends[0].move_stack))}"
        text += f", which {exchange} keeps" if owned else f"; {exchange} gains it"
    return Reason(Kind.OPPOSITION, proof, f"{text}.", (fault.move.start, fault.move.end), line)


def _settled(board: Board, line: tuple[Move, ...]) -> Board:
    """The position after the first move of a line and the captures that directly follow it."""
    after = Board(board.fen())
    for place, move in enumerate(line):
        if place and not move.captured:
            break
        after.push(move)
    return after


def _even(board: Board) -> bool:
    own, opp, _ = board.words()
    captures = any(move.captured for move in board.legal_moves[:1])
    return own.bit_count() == opp.bit_count() <= _FEW // 2 and not captures
