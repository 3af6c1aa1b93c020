"""Reasons that a search of material proves: what a move loses or misses by force, and by which moves."""

import numpy as np

from ..bitboard import turned
from ..board import Board, Move
from ..fen import format_fen
from ..players.evaluation import LEAST_WIN
from ..puzzles.themes import trade_of
from .comparing import Gap
from .crowning import crowning_reason
from .fault import Fault, behind
from .following import Course, follow, until_won
from .reason import Kind, Proof, Reason
from .words import counted, net_pieces, pdn_line, pieces_on

Line = tuple[Move, ...]


def forced_reason(fault: Fault, gap: Gap) -> Reason | None:
    """The reason for a gap between two moves; None if there are no words for this kind of gap."""
    color, name = fault.board.turn, fault.board.pdn(fault.move)
    after, better = behind(fault.board, fault.move), (fault.better, *gap.continuation)
    if gap.played.score > LEAST_WIN:
        return _lost_game(after, gap.refutation, name)
    if gap.better.score < -LEAST_WIN:
        return missed_win(fault, better)
    keeps = follow(fault.board, better, color)
    played = follow(fault.board, (fault.move, *gap.refutation), color)
    if played.pieces > keeps.pieces:
        if played.pieces > 0:
            return _loss(fault, gap.refutation, played.pieces, keeps.pieces, name)
        return _missed_gain(fault, better, keeps, name)
    crowning = crowning_reason(fault, gap.refutation, better, Proof.SEARCH)
    return crowning or _of_kings(fault, gap.refutation, better, played, keeps)


def _lost_game(after: Board, line: Line, name: str) -> Reason:
    loser = after.turn.other
    left = follow(after, line, loser).end.piece_map()
    squares = tuple(square for square, (owner, _) in left.items() if owner is loser)
    how = f"is left without a {'move' if squares else 'piece'}"
    text = f"{name} loses by force: {loser} {how} after {pdn_line(after, line)}."
    return Reason(Kind.NO_MOVE, Proof.SEARCH, text, squares, line)


def missed_win(fault: Fault, line: Line) -> Reason:
    """The reason that the played move misses a win: at the end of ``line`` the opponent cannot move."""
    loser, name = fault.board.turn.other, fault.board.pdn(fault.move)
    left = follow(fault.board, line, loser).end.piece_map()
    squares = tuple(square for square, (owner, _) in left.items() if owner is loser)
    how = f"leaves {loser} without a {'move' if squares else 'piece'}"
    text = f"{name} misses the win {pdn_line(fault.board, line)}, which {how}."
    return Reason(Kind.MISSED_WIN, Proof.SEARCH, text, squares, line, instead=True)


def _loss(fault: Fault, line: Line, lost: int, spared: int, name: str) -> Reason:
    """The opponent wins pieces: by a capture, an exchange or a shot that begins at once, by an attack, or later.

    Args:
        lost: number of pieces that the move and the line lose; what the move itself captures is not lost.
        spared: number of pieces that are lost with the better move, too.
    """
    after, gained = behind(fault.board, fault.move), len(fault.move.captured)
    first, trade = line[0], trade_of(line)
    at_once = trade.taken - trade.given - gained
    if at_once <= max(0, spared):
        at_once = 0  # the better move loses as many at once
    line = until_won(after, line, after.turn, (at_once or lost) + gained) or line
    loses, shown = follow(fault.board, (fault.move, *line), after.turn.other), pdn_line(after, line)
    what, squares = net_pieces(loses.men, loses.kings), (first.start, first.end)
    if at_once > 0 and trade.given == 0:
        text = f"{name} leaves {pieces_on(after, first.captured)} to be taken: {shown}."
        return Reason(Kind.CAPTURE, Proof.SEARCH, text, first.captured, line)
    if at_once > 0:
        kind, how = (Kind.EXCHANGE, "in the exchange") if first.captured else (Kind.SHOT, "by the shot")
        return Reason(kind, Proof.SEARCH, f"{name} loses {what} {how} {shown}.", squares, line)
    if attacked := _attacked(after, line):
        threat = f"{pieces_on(after, attacked)}, which {after.pdn(first)} attacks and nothing defends"
        return Reason(Kind.ATTACK, Proof.SEARCH, f"{name} loses {threat}: {shown}.", attacked, line)
    return Reason(Kind.FORCED_LOSS, Proof.SEARCH, f"{name} loses {what} by force: {shown}.", squares, line)


def _attacked(after: Board, line: Line) -> tuple[int, ...]:
    """Squares of pieces that the first move of a line attacks and the third captures without loss; else ()."""
    if len(line) < 3 or line[0].captured or line[1].captured or not line[2].captured:
        return ()
    threatens = _passed(behind(after, line[0])).legal_moves
    targets = set(line[2].captured)
    if trade_of(line[2:]).given or not any(targets <= set(move.captured) for move in threatens):
        return ()
    return line[2].captured if targets <= set(after.piece_map()) else ()


def _passed(board: Board) -> Board:
    """The same pieces with the other side to move."""
    own, opp, kings = board.words()
    flipped = [int(turned(np.uint32(word))) for word in (opp, own, kings)]
    return Board(format_fen(board.turn.other, *flipped))


def _missed_gain(fault: Fault, line: Line, keeps: Course, name: str) -> Reason:
    line = until_won(fault.board, line, fault.board.turn, -keeps.pieces) or line
    shown = pdn_line(fault.board, line)
    if fault.move.captured:
        kind, text = Kind.WRONG_CAPTURE, f"{name} takes the wrong way: better {shown}."
        return Reason(kind, Proof.SEARCH, text, fault.better.captured, line, instead=True)
    wins = follow(fault.board, line, fault.board.turn)  # behind it a king may be given for a man
    what = net_pieces(-wins.men, -wins.kings) if wins.pieces == keeps.pieces else net_pieces(-keeps.men, -keeps.kings)
    trade = trade_of(line)
    if 0 < trade.given <= trade.taken + keeps.pieces:
        text = f"{name} misses the shot {shown}, which wins {what}."
        return Reason(Kind.MISSED_SHOT, Proof.SEARCH, text, (line[0].start, line[0].end), line, instead=True)
    text = f"{name} misses winning {what}: {shown}."
    return Reason(Kind.MISSED_GAIN, Proof.SEARCH, text, (line[0].start, line[0].end), line, instead=True)


def _of_kings(fault: Fault, line: Line, better: Line, played: Course, keeps: Course) -> Reason | None:
    """A king is lost or could be won, for a man or in the place of one; else None."""
    board, name, after = fault.board, fault.board.pdn(fault.move), behind(fault.board, fault.move)
    if line and played.kings > max(0, keeps.kings) and played.men < 0:
        given, taken = counted(played.kings, "king"), counted(-played.men, "man")
        text = f"{name} loses {given} for {taken}: {pdn_line(after, line)}."
        return Reason(Kind.EXCHANGE, Proof.SEARCH, text, (line[0].start, line[0].end), line)
    if line and played.kings > max(0, keeps.kings) and played.pieces == keeps.pieces:
        lost, less = net_pieces(played.men, played.kings), net_pieces(keeps.men, keeps.kings)
        text = f"{name} loses {lost}, {board.pdn(fault.better)} only {less}: {pdn_line(after, line)}."
        return Reason(Kind.FORCED_LOSS, Proof.SEARCH, text, (line[0].start, line[0].end), line)
    if keeps.kings >= min(0, played.kings):
        return None
    if fault.move.captured:
        text = f"{name} takes the wrong way: better {pdn_line(board, better)}."
        return Reason(Kind.WRONG_CAPTURE, Proof.SEARCH, text, fault.better.captured, better, instead=True)
    what = counted(-keeps.kings, "king") + (f" for {counted(keeps.men, 'man')}" if keeps.men > 0 else "")
    text = f"{name} misses winning {what}: {pdn_line(board, better)}."
    return Reason(Kind.MISSED_GAIN, Proof.SEARCH, text, (better[0].start, better[0].end), better, instead=True)
