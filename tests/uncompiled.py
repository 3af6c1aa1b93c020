"""Plain Python versions of the Numba intrinsics, for running kernels with ``NUMBA_DISABLE_JIT=1``."""

from collections.abc import Callable
from typing import Any

import numba.extending
import numpy as np

INTRINSICS: dict[str, Callable[..., Any]] = {
    "_ctpop": lambda word: np.uint32(int(word).bit_count()),
    "_cttz": lambda word: np.uint32((int(word) & -int(word)).bit_length() - 1),
    "_bitreverse": lambda word: np.uint32(int(f"{int(word):032b}"[::-1], 2)),
    "_float_of_bits": lambda word: np.int32(word).view(np.float32),
    "borrowed": lambda arrays: arrays,
    "prefetch": lambda nodes, index: None,
}


def use_python_intrinsics() -> None:
    """Makes modules that are imported later use these functions in place of intrinsics."""
    numba.extending.intrinsic = lambda function: INTRINSICS.get(function.__name__, function)
