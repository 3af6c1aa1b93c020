"""Kernels as plain Python, in a process of their own: Numba is switched off when it is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_kernels_are_right_without_numba(request: pytest.FixtureRequest) -> None:
    measured = ["-m", "coverage", "run", "--parallel-mode"] if request.config.pluginmanager.hasplugin("_cov") else []
    cases = Path(__file__).with_name("uncompiled_cases.py")
    command = [sys.executable, *measured, "-m", "pytest", "--no-header", str(cases)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout
