"""Structured types that compiled functions see as records."""

from typing import Any

import numpy as np
from numba import config


def record(fields: list[tuple[str, Any]]) -> np.dtype:
    """An aligned structured type; where Numba is off (``NUMBA_DISABLE_JIT=1``), fields are attributes in Python too."""
    kind = np.dtype(fields, align=True)
    return np.dtype((np.record, kind)) if config.DISABLE_JIT else kind
