"""Finds why a move is bad: the first reason that can be confirmed, trying the most reliable kind of proof first."""

from collections.abc import Callable
from dataclasses import replace

from ..players.alphabeta import MAX_DEPTH
from .comparing import gap_of
from .endings import Change, Known, ending_reason, opposition_reason
from .expected import expected_reason
from .fault import Fault, behind
from .forced import forced_reason, missed_win
from .material import NODES, MaterialSearch
from .quoting import RuleQuotes
from .reason import Kind, Proof, Reason
from .shut_in import shut_in_reason

_LONGER = 8


class Explainer:
    """Finds reasons; not thread-safe.

    Args:
        known: function that returns the tables' value of a position for its side to move: 1 win, 0 draw, -1 loss, None
            if unknown.
        nodes: nodes of each search for forced play; if it finds nothing, one with ``_LONGER`` times as many follows.
        depth: largest depth of these searches in plies.
        check: called often; ``explain`` passes its exceptions on.
    """

    def __init__(
        self,
        known: Known = lambda board: None,
        nodes: int = NODES,
        depth: int = MAX_DEPTH,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._known, self._quotes = known, RuleQuotes()
        self._search, self._longer = (MaterialSearch(most, depth, check) for most in (nodes, _LONGER * nodes))

    def explain(self, fault: Fault) -> Reason | None:
        """The reason why the move is bad; None if none can be confirmed."""
        if not behind(fault.board, fault.better).legal_moves:
            return missed_win(fault, (fault.better,))
        change = Change(fault, self._known)
        reason = self._forced(fault, self._search) or ending_reason(fault, change) or self._forced(fault, self._longer)
        if reason is not None:
            tables = "" if reason.kind is Kind.ENDING else change.text
            return replace(reason, text=f"{reason.text}{tables}{self._rule(fault, change)}")
        of_line = opposition_reason(fault, Proof.LINE) or shut_in_reason(fault, Proof.LINE)
        return of_line or expected_reason(fault, self._search, self._known)

    def _rule(self, fault: Fault, change: Change) -> str:
        """The rule for the position after the move, if the tables' value has got worse."""
        if not change.text or change.after is None:
            return ""
        quoted = self._quotes.quote(behind(fault.board, fault.move), -change.after)
        return quoted and f" {quoted}"

    def _forced(self, fault: Fault, search: MaterialSearch) -> Reason | None:
        gap = gap_of(search, fault)
        return forced_reason(fault, gap) if gap is not None else None
