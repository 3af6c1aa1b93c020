"""Modules that the user has named, imported for the families of networks that they register.

No other place imports what is not written in the source, and nothing that is read from a file names a module.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from .network_base import NetworkError

MODULES_VARIABLE = "CROWNHEAD_IMPORT"
"""Environment variable: names or files of modules, separated as in ``PATH``. Processes of a run inherit it."""


def name_modules(modules: Sequence[str]) -> None:
    """Has this process and those that it starts import modules, names or files ``*.py``, as ``import_modules`` does."""
    places = [str(Path(module).absolute()) if module.endswith(".py") else module for module in modules]
    os.environ[MODULES_VARIABLE] = os.pathsep.join(places)


def import_modules() -> None:
    """Imports the modules that the user has named in ``MODULES_VARIABLE``.

    Raises:
        NetworkError: there is no such module, or it is not valid Python.
    """
    for module in filter(None, os.environ.get(MODULES_VARIABLE, "").split(os.pathsep)):
        (_import_file if module.endswith(".py") else _import)(module)


def module_files() -> list[str]:
    """The source files of the modules that the user has named, as far as they are found."""
    named = filter(None, os.environ.get(MODULES_VARIABLE, "").split(os.pathsep))
    files = [module if module.endswith(".py") else getattr(find_spec(module), "origin", None) for module in named]
    return [file for file in files if file is not None and os.path.isfile(file)]


def _import_file(file: str) -> None:
    path = Path(file)
    if not path.is_file():
        raise NetworkError(f"{file}: there is no such file to import")
    if "." in path.stem:
        raise NetworkError(f"{file}: the name of a module has no dot; rename the file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # processes that are started find it there
    found = getattr(_import(path.stem), "__file__", None)
    if found is None or not path.samefile(found):
        raise NetworkError(f"{file}: another module is called {path.stem!r}; rename the file")


def _import(name: str) -> ModuleType:
    if name.startswith("."):
        raise NetworkError(f"no module {name!r} to import: name an installed one, or a file *.py")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and lacks another one
        raise NetworkError(f"no module {name!r} to import: name an installed one, or a file *.py") from error
    except SyntaxError as error:
        raise NetworkError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
