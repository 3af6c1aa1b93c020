"""Reasons that only the expected play shows: it is followed to its end where no search finds forced play."""

from ..board import Board, Move
from ..fen import Color
from .crowning import crowning_reason
from .endings import Known
from .fault import Fault, behind
from .following import follow, until_won
from .material import MaterialSearch
from .reason import Kind, Proof, Reason
from .words import SHOWN, ending, net_pieces, pdn_line, value_word

Line = tuple[Move, ...]


def expected_reason(fault: Fault, search: MaterialSearch, known: Known) -> Reason | None:
    """What is lost or missed in the expected play; None if both lines have the same result or one is unknown."""
    if not fault.reply or not fault.line:
        return None
    return _of_tables(fault, known) or _of_pieces(fault, search)


def _of_tables(fault: Fault, known: Known) -> Reason | None:
    """The expected play reaches an ending in the tables that is worse than the one of the better line; else None."""
    board, color = fault.board, fault.board.turn
    after = behind(board, fault.move)
    reached, other = _first_known(after, fault.reply, color, known), _first_known(board, fault.line, color, known)
    if reached is None or other is None or reached[1] >= other[1]:
        return None
    line = fault.reply[: reached[0]]
    what = f"the {value_word(reached[1])} ending of {ending(behind(after, *line), color)}"
    better = f"{board.pdn(fault.better)} to a {value_word(other[1])} one"
    text = f"{board.pdn(fault.move)} leads to {what} in the expected play, {better}: {pdn_line(after, line)}."
    return Reason(Kind.ENDING, Proof.LINE, text, (fault.move.start, fault.move.end), line)


def _first_known(board: Board, line: Line, color: Color, known: Known) -> tuple[int, int] | None:
    """(plies, value) of the first position of a line that the tables know; the value is for ``color``. Else None."""
    after = Board(board.fen())
    for move in line:
        after.push(move)
        value = known(after) if after.legal_moves else None
        if value is not None:
            return after.ply, value if after.turn is color else -value
    return None


def _of_pieces(fault: Fault, search: MaterialSearch) -> Reason | None:
    """The expected play loses pieces, misses a gain of the better line, or lets a man be crowned; else None."""
    board, color, name = fault.board, fault.board.turn, fault.board.pdn(fault.move)
    after = behind(board, fault.move)
    reply, better = _to_the_end(search, after, fault.reply), _to_the_end(search, board, fault.line)
    played, keeps = follow(board, (fault.move, *reply), color), follow(board, better, color)
    if played.pieces < keeps.pieces:
        return None
    if played.pieces == keeps.pieces:
        reason = crowning_reason(fault, reply, better, Proof.LINE)
        return reason if reason is not None and len(reason.line) <= SHOWN else None  # the crowning has to be seen
    if (whole := until_won(board, (fault.move, *reply), color.other)) is not None:
        loses, shown = follow(board, whole, color), pdn_line(after, whole[1:])
        what = net_pieces(loses.men, loses.kings)
        text = f"{name} loses {what} in the expected play: {shown}."
        return Reason(Kind.EXPECTED_LOSS, Proof.LINE, text, (fault.move.start, fault.move.end), whole[1:])
    if (line := until_won(board, better, color)) is not None:
        wins = follow(board, line, color)
        what, shown = net_pieces(-wins.men, -wins.kings), pdn_line(board, line)
        text = f"{name} misses {shown}, which wins {what} in the expected play."
        return Reason(Kind.MISSED_GAIN, Proof.LINE, text, (line[0].start, line[0].end), line, instead=True)
    return None


def _to_the_end(search: MaterialSearch, board: Board, line: Line) -> Line:
    """A line, continued by the forced play that a search of material finds after its end."""
    end = behind(board, *line)
    if not end.legal_moves:
        return line
    return (*line, *(search.line(end, search.prospects(end)[-1]) or ()))
