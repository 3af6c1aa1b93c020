"""A member of the endgame oracle: a network, the pieces it is for, and how it is calibrated and searched with."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .networks import EndgameNetwork

MAX_BOARD_PIECES = 24
MAX_ROUNDS = 6
UNTESTED_CONFIDENCE = 0.9
"""Most confidence stated about more pieces than a network was calibrated on. The shipped network for 2-5 pieces, asked
about three against three, claims 99.8 % and is right in 90.6 % of 19,295 positions (2026-11-21)."""


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
        search_temperature: the logarithms of what these rounds give are divided by it: they are right more often than
            their probabilities say, since a search finds reasons for both sides.
        calibrated: most pieces of the positions that temperatures, threshold and rounds were chosen on; 0 if they were
            not chosen but are the defaults.
    """

    SETTINGS: ClassVar = ("pieces", "temperature", "threshold", "rounds", "search_temperature")

    network: EndgameNetwork
    pieces: tuple[int, int] = (2, MAX_BOARD_PIECES)
    temperature: float = 1.0
    threshold: float = 0.98
    rounds: int = 2
    search_temperature: float = 1.0
    calibrated: int = 0

    def __post_init__(self) -> None:
        fewest, most = self.pieces
        if not 2 <= fewest <= most <= MAX_BOARD_PIECES:
            raise OracleError(f"pieces {fewest} to {most}: 2 to {MAX_BOARD_PIECES} are possible")
        for temperature in (self.temperature, self.search_temperature):
            if not 0 < temperature < np.inf:
                raise OracleError(f"temperature {temperature}: a positive number is needed")
        if not 0 <= self.calibrated <= MAX_BOARD_PIECES:
            raise OracleError(f"calibrated on {self.calibrated} pieces: 0 to {MAX_BOARD_PIECES} are possible")
        if not 0 <= self.threshold <= 1 or not 0 <= self.rounds <= MAX_ROUNDS:
            raise OracleError(
                f"threshold {self.threshold}, rounds {self.rounds}: 0 to 1 and 0 to {MAX_ROUNDS} are possible"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """How the network is used, by the names in ``SETTINGS``: a part of JSON."""
        return {name: getattr(self, name) for name in self.SETTINGS} | {"pieces": list(self.pieces)}

    def tested(self, pieces: int) -> bool:
        """Whether the network was calibrated on this number of pieces, or at least trained for it."""
        return pieces <= (self.calibrated or self.pieces[1])

    def probabilities(self, positions: np.ndarray) -> np.ndarray:
        """Calibrated win, draw, loss float32 [N, 3] of positions uint32 [N, 4] by the network alone."""
        return softmax(self.network.wdl_logits(positions), self.temperature)


def softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Probabilities float32 [N, 3] of logits divided by a temperature."""
    shares = np.exp((logits - logits.max(1, keepdims=True)) / np.float32(temperature), dtype=np.float32)
    return shares / shares.sum(1, keepdims=True)


def log_probabilities(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms float32 [N, 3] of probabilities, none below -69."""
    return np.log(np.maximum(probabilities, np.float32(1e-30)))
