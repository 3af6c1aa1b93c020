"""Numba's places for compiled code, with code that is compiled anew once any file that it was made from has changed.

Numba itself looks only at the file of the function. What the function calls, and the constants that it uses, may come
from other files: code that was compiled from older ones would give wrong results without a word.

Every process asks for all its sources when it starts, so paths are strings here, which are faster than ``Path``.
"""

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import InTreeCacheLocator, UserProvidedCacheLocator, UserWideCacheLocator

from .files import StorageError
from .game import ENGLISH, GAME

_ROOT = os.path.realpath(f"{__file__}/../..")  # of absolute imports within this program
_PACKAGES = {"engine", "learner", "selfplay", "gui", "papers"}
_INSTALLED = {"site-packages", "dist-packages"}
_FROM = r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)"
_IMPORT = r"^[ \t]*import[ \t]+([^\n]*)"
_IMPORTS = re.compile(f"{_FROM}|{_IMPORT}", re.MULTILINE)
_NAME = re.compile(r"[\w.]+")


@cache
def imported_files(file: str) -> frozenset[str]:
    """The source files that a file imports directly: of this program, and of the file's own package or folder.

    What looks like an import in a text counts too: a file too many costs only a compilation.
    """
    return frozenset(found for module in _imports(file) if (found := _module(module)))


def _imports(file: str) -> Iterator[str]:
    """Paths, without a suffix, of what may be a module or a package."""
    folder = os.path.dirname(file)
    for dots, module, names, plain in _IMPORTS.findall(Path(file).read_text(encoding="utf-8", errors="replace")):
        for name in ("", *_NAME.findall(plain or names)):
            dotted = f"{module}.{name}".strip(".")
            places = (folder + "/.." * (len(dots) - 1),) if dots else _places(folder, dotted.partition(".")[0])
            for place in places:
                yield f"{place}/{dotted.replace('.', '/')}"


@cache
def _places(folder: str, package: str) -> tuple[str, ...]:
    """Folders that an absolute import of a package by a file in ``folder`` may mean; none for installed libraries."""
    top = folder
    while os.path.isfile(f"{top}/__init__.py"):
        top = os.path.dirname(top)
    ours = (_ROOT,) if package in _PACKAGES else ()
    foreign = os.path.basename(top) in _INSTALLED and folder[len(top) + 1 :].partition("/")[0] != package
    return ours if foreign else (*ours, top)


@cache
def _module(path: str) -> str | None:
    """The file of a module or of a package, if there is one."""
    files = (f"{path}.py", f"{path}/__init__.py")
    return next((os.path.realpath(file) for file in files if os.path.isfile(file)), None)


def source_files(file: str) -> set[str]:
    """A source file and all files that it imports, directly or not."""
    found, waiting = {file}, [file]
    while waiting:
        new = imported_files(waiting.pop()) - found
        found |= new
        waiting += new
    return found


@cache
def source_stamp(file: str) -> bytes:
    """SHA-256 over the contents of ``source_files`` and the game; constant while this process runs."""
    game = b"" if GAME == ENGLISH else GAME.encode()  # where a game has no folder of its own, all games share one
    return hashlib.sha256(game + b"".join(sorted(map(_content, source_files(file))))).digest()


@cache
def _content(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


class _Stamped:
    """A place whose code lasts until a source changes."""

    _source: str

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        self = super().from_function(py_func, py_file)  # type: ignore[misc]
        if self is not None:
            self._source = os.path.realpath(py_file)
        return self

    def get_source_stamp(self) -> bytes:
        return source_stamp(self._source)


class Provided(_Stamped, UserProvidedCacheLocator):
    """The folder that ``NUMBA_CACHE_DIR`` names."""


class InTree(_Stamped, InTreeCacheLocator):
    """``__pycache__`` beside the source."""


class UserWide(_Stamped, UserWideCacheLocator):
    """The user's cache."""


class Nowhere:
    """What is asked last: Numba itself would end with a traceback."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Raises ``StorageError``."""
        raise StorageError(
            errno.EROFS,
            f"compiled code can be kept nowhere, neither beside {py_file} nor in your cache nor in a temporary folder: "
            "name a folder that can be written to in the variable NUMBA_CACHE_DIR",
        )
