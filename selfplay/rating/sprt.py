"""The sequential probability ratio test of a match: it ends as soon as the results are clear enough."""

import re
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from ..games.openings import MatchError
from .elo import Tally
from .gate import llr_bounds, log_likelihood_ratio

ALPHA = BETA = 0.05  # probabilities of accepting H1 if H0 is true, and H0 if H1 is true
_LARGEST = 1000.0
Decision = Literal["H0", "H1"]


class SprtFigures(TypedDict):
    """A test for JSON: its hypotheses (Elo), the error probabilities, the log-likelihood ratio and its bounds."""

    elo0: float
    elo1: float
    alpha: float
    beta: float
    llr: float
    lower: float
    upper: float
    pairs: int
    decision: Decision | None


@dataclass
class Sprt:
    """Tests H0, that the first player is ``elo0`` stronger, against H1, that it is ``elo1`` stronger.

    Pairs must be added in the order of the openings, not in the order in which games end: else short games count first.

    Attributes:
        decision: the accepted hypothesis; None while there is none.

    Raises:
        MatchError: ``elo1`` is not above ``elo0``, or one of them is beyond ±1000.
    """

    elo0: float
    elo1: float
    tally: Tally = field(default_factory=Tally)
    decision: Decision | None = None

    def __post_init__(self) -> None:
        if not -_LARGEST <= self.elo0 < self.elo1 <= _LARGEST:
            raise MatchError(
                f"sprt: {self.elo0:g},{self.elo1:g} is not ELO0,ELO1 with ELO1 above ELO0, both within ±{_LARGEST:g}"
            )

    @staticmethod
    def parse(text: str) -> "Sprt":
        """Reads ``ELO0,ELO1``; raises ``MatchError``."""
        match = re.fullmatch(r"\s*([-+]?[0-9]{1,4}(?:\.[0-9]{1,6})?)\s*,\s*([-+]?[0-9]{1,4}(?:\.[0-9]{1,6})?)\s*", text)
        if match is None:
            raise MatchError(f"sprt: {text[:40]!r} is not ELO0,ELO1, like 0,10")
        return Sprt(float(match[1]), float(match[2]))

    def add(self, first: float, second: float) -> Decision | None:
        """Adds a pair: the first player's scores in its two games. Returns the decision, which never changes."""
        if self.decision is None:
            self.tally.add((first, second))
            lower, upper = self.bounds
            llr = self.llr
            self.decision = "H1" if llr >= upper else "H0" if llr <= lower else None
        return self.decision

    @property
    def llr(self) -> float:
        """Log-likelihood ratio of H1 to H0; see ``gate.log_likelihood_ratio``."""
        return log_likelihood_ratio(self.tally.pairs, self.elo0, self.elo1)

    @property
    def bounds(self) -> tuple[float, float]:
        """Values of ``llr`` at which H0 (at most the first) and H1 (at least the second) are accepted."""
        return llr_bounds(ALPHA, BETA)

    def report(self) -> SprtFigures:
        lower, upper = self.bounds
        return {
            "elo0": self.elo0,
            "elo1": self.elo1,
            "alpha": ALPHA,
            "beta": BETA,
            "llr": self.llr,
            "lower": lower,
            "upper": upper,
            "pairs": sum(self.tally.pairs),
            "decision": self.decision,
        }

    def __str__(self) -> str:
        lower, upper = self.bounds
        verdict = {
            "H1": f"accepted: {self.elo1:+g} Elo rather than {self.elo0:+g}",
            "H0": f"accepted: {self.elo0:+g} Elo rather than {self.elo1:+g}",
            None: "undecided",
        }[self.decision]
        return f"SPRT {self.elo0:g},{self.elo1:g}: LLR {self.llr:.2f} ({lower:.2f} to {upper:.2f}), {verdict}"
