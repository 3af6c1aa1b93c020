"""Settings of all tests."""

import functools
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import settings
from numba import config as numba_config
from numba.core.dispatcher import Dispatcher
from programs import wait_until
from training_runs import FAST, TrainedRun, trained
from uncompiled import use_python_intrinsics

FAST_FILES = {
    "test_ballots",
    "test_board",
    "test_board_habits",
    "test_checkpoint",
    "test_elo",
    "test_encoding",
    "test_fen",
    "test_gate",
    "test_hub_messages",
    "test_imports",
    "test_loss",
    "test_movegen",
    "test_pdn",
    "test_pdn_writing",
    "test_replay",
    "test_retired",
    "test_russian",
    "test_sealed",
    "test_search",
    "test_search_graph",
    "test_search_oracle",
    "test_search_rules",
    "test_shards",
    "test_step_loop",
    "test_tablebase_files",
    "test_time_control",
}
"""The files that ``-m fast`` runs: rules, notation, storage, the gate, and the search against slow references."""

LONG_FILES = {
    "test_gui_window",
    "test_process_pool",
    "test_ray",
    "test_ray_cluster",
    "test_russian",
    "test_search",
    "test_teacher",
    "test_training",
}
"""Files that are run first, so that no worker still runs one of them when all others have finished."""

# The first call of a compiled function loads or compiles it: no limit on the time of a single example.
settings.register_profile("crownhead", deadline=None)
settings.load_profile("crownhead")


def compile_untraced() -> None:
    """Has Numba compile without being traced by coverage, which only slows it."""
    compiled = Dispatcher.compile

    @functools.wraps(compiled)
    def untraced(*arguments: Any) -> Any:
        trace = sys.gettrace()
        sys.settrace(None)
        try:
            return compiled(*arguments)
        finally:
            sys.settrace(trace)

    Dispatcher.compile = untraced


if numba_config.DISABLE_JIT:
    use_python_intrinsics()
else:
    compile_untraced()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m fast``, other files are not imported, so that their requirements are not needed."""
    is_test = collection_path.stem.startswith("test_")
    return True if config.option.markexpr == "fast" and is_test and collection_path.stem not in FAST_FILES else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem not in LONG_FILES)
    for item in items:
        if item.path.stem in FAST_FILES and item.get_closest_marker("slow") is None:
            item.add_marker("fast")


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_programs() -> None:
    """Enables SIGINT for the programs that tests interrupt: they would inherit that a shell's background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_cache() -> Iterator[None]:
    """Makes tests use their own folders for tables and caches, not those of the user."""
    before = os.environ.copy()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CROWNHEAD_TABLEBASE"] = str(Path(folder) / "tablebase")
        os.environ["XDG_CACHE_HOME"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each program that a test starts compiles all its modules
        yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True, scope="session")
def trainings_have_one_thread() -> None:
    """Makes trainings use one thread, so that their results do not depend on timing."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> TrainedRun:
    """A short run of two iterations; tests must not change it. The first worker that needs it makes it for all."""
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    folder, figures = shared / "trained" / "run", shared / "trained.json"
    with wait_until(lambda: free(shared / "trained.lock")):
        if not figures.exists():
            figures.write_text(json.dumps(trained("--preset", "smoke", "--run", folder, *FAST)))
    return TrainedRun(folder, json.loads(figures.read_text()))


def free(path: Path) -> BinaryIO | None:
    """The lock, unless another worker holds it."""
    from engine.files import open_locked

    try:
        return open_locked(path)
    except OSError:
        return None


@pytest.fixture
def run_copy(trained_run: TrainedRun, tmp_path: Path) -> Path:
    """A copy of ``trained_run``'s folder, which a test may change."""
    return Path(shutil.copytree(trained_run.folder, tmp_path / "run"))


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path that is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="ch", dir="/tmp") as folder:
        yield Path(folder)
