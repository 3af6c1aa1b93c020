"""A member of the endgame oracle: a network, the pieces it is for, and how it is calibrated and searched with."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .networks import EndgameNetwork
from .probabilities import bounded, log_probabilities, softmax
from .resolve import CHANGED, MOST_AT_ONCE, MOST_EVALUATIONS, PROVEN, STEADY, Resolved
from .trust import Beyond, is_close

MAX_BOARD_PIECES = 24
MAX_ROUNDS = 9
UNTESTED_CONFIDENCE = 0.9
"""Most confidence stated about more pieces than a network was calibrated on, where no rule was fitted for them
(``trust``). The first network for 2-5 pieces, asked about three against three, claimed 99.8 % and was right in 90.6 %
of 19,295 positions (2026-11-21)."""


class OracleError(ValueError):
    """An oracle that cannot be made or asked."""


@dataclass(frozen=True)
class Member:
    """A network and how it is used.

    Attributes:
        pieces: fewest and most pieces it is for; the oracle asks it about more pieces only if no other is for them.
        temperature: its logits are divided by it (Guo et al. 2017).
        threshold: from this confidence on, what captures lead to is not searched further.
        rounds: most rounds of quiet moves, 0 to ``MAX_ROUNDS``, for positions below the threshold.
        evaluations: a position that has taken as many gets no further round.
        search_temperature: the logarithms of what these rounds give are divided by it: they are right more often than
            their probabilities say, since a search finds reasons for both sides.
        changed_temperature: the same where the rounds did not agree on the verdict; None: no other than where they did.
        calibrated: most pieces of the positions that temperatures, threshold and rounds were chosen on; 0 if they were
            not chosen but are the defaults.
        beyond: how it is believed about more pieces; None: a confidence of at most ``UNTESTED_CONFIDENCE``.
    """

    SETTINGS: ClassVar = (
        "pieces", "temperature", "threshold", "rounds", "evaluations", "search_temperature", "changed_temperature",
        "beyond",
    )  # fmt: skip

    network: EndgameNetwork
    pieces: tuple[int, int] = (2, MAX_BOARD_PIECES)
    temperature: float = 1.0
    threshold: float = 0.98
    rounds: int = 2
    search_temperature: float = 1.0
    calibrated: int = 0
    evaluations: int = MOST_EVALUATIONS
    changed_temperature: float | None = None
    beyond: Beyond | None = None

    def __post_init__(self) -> None:
        fewest, most = self.pieces
        if not 2 <= fewest <= most <= MAX_BOARD_PIECES:
            raise OracleError(f"pieces {fewest} to {most}: 2 to {MAX_BOARD_PIECES} are possible")
        for temperature in (self.temperature, self.search_temperature, self.changed_temperature):
            if temperature is not None and not 0 < temperature < np.inf:
                raise OracleError(f"temperature {temperature}: a positive number is needed")
        if not 0 <= self.calibrated <= MAX_BOARD_PIECES:
            raise OracleError(f"calibrated on {self.calibrated} pieces: 0 to {MAX_BOARD_PIECES} are possible")
        if not 1 <= self.evaluations <= MOST_AT_ONCE:
            raise OracleError(f"{self.evaluations} evaluations: 1 to {MOST_AT_ONCE} are possible")
        if not 0 <= self.threshold <= 1 or not 0 <= self.rounds <= MAX_ROUNDS:
            raise OracleError(
                f"threshold {self.threshold}, rounds {self.rounds}: 0 to 1 and 0 to {MAX_ROUNDS} are possible"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """How the network is used, by the names in ``SETTINGS``: a part of JSON."""
        values = {name: getattr(self, name) for name in self.SETTINGS} | {"pieces": list(self.pieces)}
        return values | {"beyond": None if self.beyond is None else self.beyond.model_dump(mode="json")}

    @property
    def edge(self) -> int:
        """Most pieces that the network was calibrated on, or at least trained for."""
        return self.calibrated or self.pieces[1]

    def believed(self, found: Resolved, positions: np.ndarray | None) -> np.ndarray:
        """Calibrated win, draw, loss float32 [N, 3] of what this member's search found of positions.

        Args:
            positions: uint32 [N, 4]: where they have more pieces than ``edge``, less is believed; None: nowhere.
        """
        changed = self.search_temperature if self.changed_temperature is None else self.changed_temperature
        shares = found.probabilities.copy()
        for way, temperature in ((STEADY, self.search_temperature), (CHANGED, changed)):
            rows = np.flatnonzero(found.ways == way)
            shares[rows] = softmax(log_probabilities(shares[rows]), temperature)
        if positions is None:
            return shares
        pieces = np.bitwise_count(positions[:, 0] | positions[:, 1])
        further = np.maximum(0, pieces.astype(np.int64) - self.edge)
        if self.beyond is not None:
            return self.beyond.applied(found._replace(probabilities=shares), further, is_close(positions))
        rows = np.flatnonzero((further > 0) & (found.evaluations > 0) & (found.ways != PROVEN))
        shares[rows] = bounded(shares[rows], UNTESTED_CONFIDENCE)
        return shares

    def probabilities(self, positions: np.ndarray) -> np.ndarray:
        """Calibrated win, draw, loss float32 [N, 3] of positions uint32 [N, 4] by the network alone."""
        return softmax(self.network.wdl_logits(positions), self.temperature)
