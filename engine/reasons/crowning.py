"""Reasons about men that become kings after one move but not after another."""

from ..board import Move
from ..fen import Color
from .fault import Fault, behind
from .following import Crowning, follow
from .reason import Kind, Proof, Reason
from .words import pdn_line

_BACK_ROW = {Color.BLACK: range(1, 5), Color.WHITE: range(29, 33)}


def crowning_reason(fault: Fault, reply: tuple[Move, ...], better: tuple[Move, ...], proof: Proof) -> Reason | None:
    """A king that the opponent gets, or that the side that moved misses, only with the played move; else None.

    A man that the expected play crowns as well, however late, is not named.

    Args:
        reply: play after the played move.
        better: play with the better move, beginning with it.
    """
    board, name = fault.board, fault.board.pdn(fault.move)
    played, keeps = follow(board, (fault.move, *reply), board.turn), follow(board, better, board.turn)
    where = " in the expected play" if proof is Proof.LINE else ""
    expected, instead = follow(board, (fault.move, *fault.reply), board.turn), follow(board, fault.line, board.turn)
    through = _first_new(played.others, (*keeps.others, *instead.others))
    missed = _first_new(keeps.crownings, (*played.crownings, *expected.crownings))
    if len(played.others) > len(keeps.others) and through is not None:
        crowned, guard = through, fault.move.start
        line = reply[: crowned.ply - 1] if proof is Proof.LINE else reply
        shown = pdn_line(behind(board, fault.move), line)
        if guard in _BACK_ROW[board.turn] and crowned.end == guard:
            text = f"{name} gives up the guard on {guard}: the man on {crowned.start} is crowned there{where}: {shown}."
            return Reason(Kind.BACK_ROW, proof, text, (guard, crowned.start), line)
        text = f"{name} lets the man on {crowned.start} through to king{where}: {shown}."
        return Reason(Kind.CROWNING, proof, text, crowned[:2], line)
    if len(keeps.crownings) > len(played.crownings) and missed is not None:
        line = better[: missed.ply] if proof is Proof.LINE else better
        text = f"{name} misses crowning the man on {missed.start}{where}: {pdn_line(board, line)}."
        return Reason(Kind.MISSED_CROWNING, proof, text, missed[:2], line, instead=True)
    return None


def _first_new(crownings: tuple[Crowning, ...], others: tuple[Crowning, ...]) -> Crowning | None:
    """The first crowning of a man that is not crowned among ``others``; None if there is none."""
    starts = {crowned.start for crowned in others}
    return next((crowned for crowned in crownings if crowned.start not in starts), None)
