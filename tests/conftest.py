"""Settings of all tests."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The first call of a compiled function loads or compiles it: no limit on the time of a single example.
settings.register_profile("crownhead", deadline=None)
settings.load_profile("crownhead")


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_programs() -> None:
    """A shell starts what runs in its background deaf to SIGINT, and so would be the programs that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_cache() -> Iterator[None]:
    """Tests neither see nor change the tables and the cache that this machine's user has."""
    before = os.environ.copy()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CROWNHEAD_TABLEBASE"] = str(Path(folder) / "tablebase")
        os.environ["XDG_CACHE_HOME"] = folder
        yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True, scope="session")
def trainings_have_one_thread() -> None:
    """What a network learns in a test must not depend on how long threads wait for one another."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="ch", dir="/tmp") as folder:
        yield Path(folder)
