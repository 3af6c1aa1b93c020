"""A student as the search's evaluator."""

import threading
from collections.abc import Callable

import numpy as np
from torch import Tensor

from engine.bitboard import BIT_OF_SQUARE, NUM_SQUARES
from engine.encoding import NUM_POLICY
from engine.search.batches import BackupArguments, BatchCounts, SelectArguments

from ..phases import NUM_PHASES, PHASES
from ..student import NUM_PIECES, Student
from .lanes import WIDTH
from .numba_evaluator import blocked, filled, padded
from .student_kernels import TOGETHER, StudentBuffers, StudentWeights, evaluate_student, search_student
from .tiles import BLOCK, ROWS
from .winograd import filled_rows

LARGEST_BATCH = 64
_MOST_PIECES = 32


class StudentEvaluator:
    """Evaluates with a student: the ``engine.search.BatchSearcher`` for the board. Threads that share it take turns.

    It remembers nothing: to judge a position again takes less time than to look it up.

    Attributes:
        asked, hits: positions so far, and 0, see ``CachedEvaluator``.
    """

    backend = "student"
    searches = True

    def __init__(self, student: Student) -> None:
        self._weights = pack_student(student)
        self._buffers = _room_for(self._weights, LARGEST_BATCH)
        self._lock = threading.Lock()
        self.asked = self.hits = 0

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``NetworkEvaluator.evaluate``.

        Raises:
            ValueError: positions of another type or shape.
        """
        n = len(positions)
        self.asked += n
        if positions.dtype != np.uint32 or positions.shape != (n, 4):
            raise ValueError(f"positions are {positions.dtype} {list(positions.shape)}, not uint32 [N, 4]")
        policy_logits, wdl_logits = np.empty((n, NUM_POLICY), np.float32), np.empty((n, 3), np.float32)
        with self._lock:
            for start in range(0, n, LARGEST_BATCH):
                part = slice(start, start + LARGEST_BATCH)
                asked = np.ascontiguousarray(positions[part])
                evaluate_student(asked, self._weights, self._buffers, policy_logits[part], wdl_logits[part])
        return policy_logits, wdl_logits

    def search(self, select: SelectArguments, backup: BackupArguments, few: int, batches: int) -> BatchCounts:
        """See ``BatchSearcher.search``."""
        trees = tuple(select), tuple(backup), select.leaves
        with self._lock:
            judged, waiting = search_student(*trees, self._weights, self._buffers, few, batches)
        self.asked += judged
        return BatchCounts(judged, judged, waiting)


def pack_student(student: Student) -> StudentWeights:
    """The weights of a student on the CPU as the kernels read them."""
    phases = [phase.state_dict() for phase in student.phases]

    def joined(name: str, pack: Callable[[Tensor], np.ndarray]) -> np.ndarray:
        return np.concatenate([pack(phase[name]) for phase in phases])

    return StudentWeights(
        phases=PHASES,
        pieces=joined("wide.weight", _pieces),
        counter=joined("wide.weight", lambda weight: _numbers(weight[:, NUM_PIECES])),
        bias=joined("wide.bias", _numbers),
        policy=_numbers(student.policy.weight).ravel(),
        policy_bias=_numbers(student.policy.bias),
        hidden=joined("hidden.weight", _matrix),
        hidden_bias=joined("hidden.bias", _numbers),
        wdl=joined("wdl.weight", _matrix),
        wdl_bias=joined("wdl.bias", lambda bias: padded(_numbers(bias), BLOCK)),
    )


def _numbers(tensor: Tensor) -> np.ndarray:
    numbers: np.ndarray = tensor.detach().numpy().astype(np.float32)
    return numbers


def _pieces(weight: Tensor) -> np.ndarray:
    by_square = _numbers(weight).T[:NUM_PIECES].reshape(-1, NUM_SQUARES, len(weight))
    by_bit = np.empty_like(by_square)
    by_bit[:, BIT_OF_SQUARE] = by_square
    return by_bit.ravel()


def _matrix(weight: Tensor) -> np.ndarray:
    numbers = _numbers(weight).T
    return blocked(padded(numbers, len(numbers), filled(numbers.shape[1])))


def _room_for(weights: StudentWeights, positions: int) -> StudentBuffers:
    rows = filled_rows(positions) + NUM_PHASES * ROWS
    units, hidden = weights.bias.size // NUM_PHASES, weights.hidden_bias.size // NUM_PHASES
    return StudentBuffers(
        ones=np.ones(BLOCK, np.float32),
        places=np.zeros(positions, np.int64),
        ends=np.zeros(NUM_PHASES, np.int64),
        rows=np.zeros(_MOST_PIECES, np.int64),
        hops=np.zeros(NUM_POLICY + TOGETHER, np.int64),
        is_wanted=np.zeros(NUM_POLICY, np.bool_),
        sums=np.zeros(TOGETHER * WIDTH, np.float32),
        units=np.zeros(rows * units, np.float32),
        hidden=np.zeros(rows * hidden, np.float32),
        wdl=np.zeros(rows * BLOCK, np.float32),
    )
