"""Settings of all tests."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The first call of a compiled function loads or compiles it: no limit on the time of a single example.
settings.register_profile("crownhead", deadline=None)
settings.load_profile("crownhead")


@pytest.fixture(autouse=True, scope="session")
def own_cache() -> Iterator[None]:
    """Tests neither see nor change what this machine's user has: tables, and measured speeds of backends."""
    before = os.environ.copy()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CROWNHEAD_TABLEBASE"] = str(Path(folder) / "tablebase")
        os.environ["XDG_CACHE_HOME"] = folder
        yield
    os.environ.clear()
    os.environ.update(before)
