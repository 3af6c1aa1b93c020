"""Evaluators that round to integers what they compute with, and are judged by what that does to their answers."""

import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..network import Network
from .calibration import CALIBRATION_POSITIONS, Calibration, calibrate, random_positions
from .evaluator import CPU_BUCKETS, NetworkEvaluator
from .fidelity import Fidelity, compare

Precision = Literal["float32", "bf16", "int8", "int16"]
ROUNDED: tuple[Precision, ...] = ("int8", "int16")
_LOG = logging.getLogger(__name__)


class JudgedEvaluator(NetworkEvaluator):
    """Evaluates in one of several precisions.

    Integers are judged at every ``update``: the answers to the calibration positions are compared with the network's.

    Args:
        network, batch_buckets: as for ``NetworkEvaluator``.
        precision: to compute in.
        bounded: where integers stray further from the network than ``fidelity`` allows, evaluate in float32 until the
            next update; a warning is logged.
        calibration: positions uint32 [N, 4]; by default ``random_positions``.

    Attributes:
        precision: the one in use; with ``bounded`` it may be float32 where integers were asked for.
        fidelity: of integers with the present weights, on the calibration positions; None if they were not asked for.
    """

    def __init__(
        self,
        network: Network,
        precision: Precision = "float32",
        bounded: bool = False,
        calibration: np.ndarray | None = None,
        batch_buckets: Sequence[int] = CPU_BUCKETS,
    ) -> None:
        self._asked: Precision = precision
        self._bounded = bounded
        self._calibration = random_positions(CALIBRATION_POSITIONS) if calibration is None else calibration
        self.precision: Precision = precision
        self.fidelity: Fidelity | None = None
        super().__init__(network, batch_buckets)

    def _load(self, folded: Network) -> None:
        self.precision = self._asked
        if self._asked not in ROUNDED:
            self._load_exact(folded)
            return
        found = calibrate(folded, self._calibration)
        self._load_rounded(folded, found)
        self.fidelity = compare(
            self._calibration, (found.policy_logits, found.wdl_logits), self._answers(self._calibration)
        )
        if self._bounded and not self.fidelity.acceptable:
            reason = f"{self.precision} strays too far from this network ({self.fidelity}): float32 is used instead"
            _LOG.warning(reason)
            self.precision = "float32"
            self._load_exact(folded)

    def _answers(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        largest = int(self._buckets[-1])
        parts = [
            tuple(array.copy() for array in self._evaluate_part(positions[start : start + largest]))
            for start in range(0, len(positions), largest)
        ]
        policy_logits, wdl_logits = (np.concatenate(column) for column in zip(*parts, strict=True))
        return policy_logits, wdl_logits

    @abstractmethod
    def _load_exact(self, folded: Network) -> None:
        """Evaluates a folded float32 network from now on, in ``self.precision``, which is float32 or bf16."""

    @abstractmethod
    def _load_rounded(self, folded: Network, found: Calibration) -> None:
        """The same in integers."""
