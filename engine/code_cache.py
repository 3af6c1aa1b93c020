"""Where Numba keeps compiled code, and until when."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import platformdirs

# Numba reads these, in the processes that this one starts, too.
VARIABLE = "NUMBA_CACHE_DIR"
LOCATORS_VARIABLE = "NUMBA_CACHE_LOCATOR_CLASSES"
_made: list[str] = []  # folders for compiled code


def provide_code_cache(source: Path = Path(__file__).parent) -> None:
    """Has Numba keep compiled code in a folder that lasts as long as this process, where it would end with an error.

    Numba keeps code beside the source, else in the user's cache, and fails where neither can be written to.
    """
    if os.environ.get(VARIABLE) or _writable(source) or _writable(platformdirs.user_cache_path("numba", False)):
        return
    try:
        folder = tempfile.mkdtemp(prefix="crownhead-")
    except OSError:  # ``code_locators.Nowhere`` tells of it
        return
    os.environ[VARIABLE] = folder
    _made.append(folder)
    atexit.register(drop_code_cache)
    print(f"crownhead: cannot write to {source} or to your cache: code is compiled anew each time", file=sys.stderr)


def drop_code_cache() -> None:
    """Removes the folder that ``provide_code_cache`` has made; a program that takes this one's place makes its own."""
    while _made:
        folder = _made.pop()
        shutil.rmtree(folder, ignore_errors=True)
        if os.environ.get(VARIABLE) == folder:
            del os.environ[VARIABLE]


def check_sources() -> None:
    """Has Numba compile anew what was compiled from sources that have changed; see ``code_locators``."""
    ours = [f"{__package__}.code_locators.{place}" for place in ("Provided", "InTree", "UserWide")]
    others = ["IPythonCacheLocator", "ZipCacheLocator", f"{__package__}.code_locators.Nowhere"]
    os.environ.setdefault(LOCATORS_VARIABLE, ",".join([*ours, *others]))
    if "numba" in sys.modules:  # it has read the environment already
        sys.modules["numba"].config.CACHE_LOCATOR_CLASSES = os.environ[LOCATORS_VARIABLE]


def foreign_environment() -> dict[str, str]:
    """The environment for programs that are not part of this one, whose Numba would not find our classes."""
    return {name: value for name, value in os.environ.items() if name != LOCATORS_VARIABLE}


def part_code_cache(game: str, source: Path = Path(__file__).parent) -> None:
    """Has Numba keep the code of a game in a folder of its own, below the one that it would use.

    A cache holds one version of a function, and the functions that call the rules are others in each game.
    """
    beside = source / "__pycache__" if _writable(source) else platformdirs.user_cache_path("numba", False)
    place = Path(os.environ.get(VARIABLE) or beside)
    if place.name != game:  # else it comes from the process that has started this one
        os.environ[VARIABLE] = str(place / game)
    if "numba" in sys.modules:  # it has read the environment already
        sys.modules["numba"].config.CACHE_DIR = os.environ[VARIABLE]


def _writable(folder: Path) -> bool:
    """Whether a file can be made in a folder, or in the one above it that is there."""
    while not os.path.exists(folder) and folder != folder.parent:  # Path.exists raises where it may not look
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
