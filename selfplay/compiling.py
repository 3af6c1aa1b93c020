"""The first start after an installation: the search is compiled by a second process while this one gets ready."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import engine
from engine.players import first_search


@contextmanager
def search_compiled_beside() -> Iterator[None]:
    """Where the search is not compiled yet and there is a second core, that happens beside what is done within.

    After the block this process takes a part of it, too, and waits until the opening can be searched; the tables follow
    while the game begins. What goes wrong in the other process does no harm: this one compiles then.
    """
    if first_search.search_is_compiled() or (os.cpu_count() or 1) < 2:
        yield
        return
    root = str(Path(engine.__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", first_search.__name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )
    except OSError:
        yield
        return
    assert process.stdout is not None
    try:
        yield
        first_search.compile_the_rest()
        process.stdout.readline()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        process.stdout.close()
