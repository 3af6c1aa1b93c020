"""Compiled code lasts until a file that it was made from changes, and no shorter."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import crownhead_program

from engine import code_locators
from engine.code_cache import LOCATORS_VARIABLE
from engine.code_locators import imported_files, source_files, source_stamp
from engine.hub.process import LineProcess

ROOT = Path(__file__).parent.parent
SCRIPT = """
import engine, kernels.area as area
print(area.area(3), sum(area.area.stats.cache_hits.values()))
"""


def area_of_three(folder: Path) -> tuple[int, int]:
    """The result of the compiled function in a new process, and how often its code was found."""
    command = [sys.executable, "-c", SCRIPT]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment)
    result, hits = map(int, done.stdout.split())
    return result, hits


@pytest.mark.parametrize("place", ["beside", "chosen"])
def test_a_constant_of_another_file_changes(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache") if place == "chosen" else "")
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    (kernels / "__init__.py").write_text("")
    (kernels / "sizes.py").write_text("HEIGHT = 2\n")
    (kernels / "shapes.py").write_text(
        "from numba import njit\nfrom .sizes import HEIGHT\n\n\n@njit\ndef times(width):\n    return width * HEIGHT\n"
    )
    (kernels / "other.py").write_text("DEPTH = 1\n")
    (kernels / "area.py").write_text(
        "from numba import njit\nfrom kernels.shapes import (\n    times,\n)\n\n\n"
        "@njit(cache=True)\ndef area(width):\n    return times(width)\n"
    )
    assert area_of_three(tmp_path) == (6, 0)
    (kernels / "other.py").write_text("DEPTH = 3\n")  # of no concern
    assert area_of_three(tmp_path) == (6, 1)
    (kernels / "sizes.py").write_text(
        "HEIGHT = 50  # of another length: Python itself compares only lengths and seconds\n"
    )
    assert area_of_three(tmp_path) == (150, 0)
    assert area_of_three(tmp_path) == (150, 1)


def imported_by_syntax(file: Path) -> set[str]:
    """What ``imported_files`` finds, from the syntax tree and one import after another."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        paths = []
        if isinstance(node, ast.Import):
            paths = [ROOT.joinpath(*alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            place = file.parents[node.level - 1] if node.level else ROOT
            module = place.joinpath(*(node.module or "").split("."))
            paths = [module, *(module / alias.name for alias in node.names)]
        for path in paths:
            found |= {str(at) for at in (path.parent / f"{path.name}.py", path / "__init__.py") if at.is_file()}
    return found


def test_all_imports_are_found() -> None:
    files = [file for room in ("engine", "learner", "selfplay") for file in (ROOT / room).rglob("*.py")]
    assert len(files) > 200
    for file in files:
        extra = imported_files(str(file)) - imported_by_syntax(file)
        assert imported_by_syntax(file) <= imported_files(str(file)), file
        assert len(extra) <= 1, (file, extra)  # a text may look like an import


def test_the_search_depends_on_the_rules_and_the_numbers_of_outcomes() -> None:
    found = source_files(str(ROOT / "engine" / "search" / "kernels.py"))
    for name in ("outcomes.py", "movegen.py", "rules/english/movegen.py", "search/tree.py"):
        assert str(ROOT / "engine" / name) in found, name
    assert str(ROOT / "engine" / "players" / "spec.py") not in found
    assert source_stamp(str(ROOT / "engine" / "outcomes.py")) != source_stamp(str(ROOT / "engine" / "game.py"))


def test_installed_libraries_are_left_out(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    for name in ("big", "mine"):
        (installed / name).mkdir(parents=True)
        (installed / name / "__init__.py").write_text("")
        (installed / name / "sizes.py").write_text("")
    kernel = installed / "mine" / "kernel.py"
    kernel.write_bytes(b"# \xe9\nimport big.sizes\nimport mine.sizes\nfrom engine import outcomes\n")
    expected = {installed / "mine" / "sizes.py", ROOT / "engine" / "__init__.py", ROOT / "engine" / "outcomes.py"}
    assert imported_files(str(kernel)) == set(map(str, expected))


def test_other_programs_do_not_hear_of_our_classes() -> None:
    assert "engine.code_locators" in os.environ[LOCATORS_VARIABLE]
    program = LineProcess([sys.executable, "-c", f"import os; print(os.environ.get({LOCATORS_VARIABLE!r}))"])
    try:
        assert program.receive(60.0) == "None\n"
    finally:
        program.close()


def test_games_that_share_a_folder_share_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game's own folder cannot be used everywhere; code of English draughts was then taken for that of another."""
    file = str(ROOT / "engine" / "movegen.py")
    source_stamp.cache_clear()
    english = source_stamp(file)
    monkeypatch.setattr(code_locators, "GAME", "russian")
    source_stamp.cache_clear()
    assert source_stamp(file) != english
    source_stamp.cache_clear()


def test_where_code_can_be_kept_nowhere_that_is_told_in_one_line() -> None:
    last = os.environ[LOCATORS_VARIABLE].rpartition(",")[2]
    environment = {**os.environ, LOCATORS_VARIABLE: last}  # as if all others had found no place
    done = subprocess.run(
        crownhead_program("perft", 1), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("crownhead: compiled code can be kept nowhere, neither beside ")
    assert done.stderr.endswith("name a folder that can be written to in the variable NUMBA_CACHE_DIR\n")
