"""Kernels as plain Python, in a process of their own: Numba is switched off when it is imported."""

import os
import subprocess
import sys
from pathlib import Path


def test_kernels_are_right_without_numba() -> None:
    command = [sys.executable, "-m", "pytest", "--no-header", str(Path(__file__).with_name("uncompiled_cases.py"))]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout
