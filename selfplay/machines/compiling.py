"""The first start after an installation: a second process compiles the search while this one makes the player."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import engine
from engine.players import first_search
from engine.players.search_player import SearchPlayer

P = TypeVar("P")


def made_beside_compiling(make: Callable[[], P]) -> P:
    """Makes a player; meanwhile a second process compiles the search, if it is not compiled and there are two cores.

    This process compiles a part of the search, too, and waits until positions of the opening can be searched. The
    functions for endgame tables are compiled later, while the game begins. If the second process fails, this one
    compiles everything.
    """
    if first_search.search_is_compiled() or (os.cpu_count() or 1) < 2:
        return make()
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
        return make()
    assert process.stdout is not None
    try:
        player = make()
        first_search.compile_backup()
        if isinstance(player, SearchPlayer):
            while not first_search.search_is_compiled() and process.poll() is None:
                time.sleep(0.05)
            player.prepare(endgames=False)  # the other process compiles the functions for endgames
        process.stdout.readline()
        return player
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        process.stdout.close()
