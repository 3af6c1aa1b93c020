"""The data of a reason why a move is bad."""

from dataclasses import dataclass
from enum import StrEnum

from ..board import Move


class Kind(StrEnum):
    """What a move gives away, and how."""

    SHOT = "shot"
    CAPTURE = "capture"
    EXCHANGE = "exchange"
    ATTACK = "attack"
    FORCED_LOSS = "forced-loss"
    WRONG_CAPTURE = "wrong-capture"
    MISSED_SHOT = "missed-shot"
    MISSED_GAIN = "missed-gain"
    CROWNING = "crowning"
    BACK_ROW = "back-row"
    MISSED_CROWNING = "missed-crowning"
    NO_MOVE = "no-move"
    MISSED_WIN = "missed-win"
    OPPOSITION = "opposition"
    DOUBLE_CORNER = "double-corner"
    TRAPPED = "trapped"
    ENDING = "ending"
    EXPECTED_LOSS = "expected-loss"


class Proof(StrEnum):
    """What confirms a reason: a search of all replies, exact tables, or only the expected play."""

    SEARCH = "search"
    TABLES = "tables"
    LINE = "line"


@dataclass(frozen=True)
class Reason:
    """Why a move is bad.

    Attributes:
        text: one or two sentences.
        squares: PDN numbers of the squares to highlight.
        line: moves that show the reason: after the played move or, if ``instead``, in its place.
    """

    kind: Kind
    proof: Proof
    text: str
    squares: tuple[int, ...]
    line: tuple[Move, ...]
    instead: bool = False
