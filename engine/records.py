"""Structured types that compiled functions see as records."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import config


def record(fields: Sequence[tuple[Any, ...]]) -> np.dtype:
    """An aligned structured type; where Numba is off (``NUMBA_DISABLE_JIT=1``), fields are attributes in Python too."""
    kind = np.dtype(list(fields), align=True)
    return np.dtype((np.record, kind)) if config.DISABLE_JIT else kind  # type: ignore[attr-defined]
