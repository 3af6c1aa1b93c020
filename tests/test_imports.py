"""Which modules may import which, checked in the sources: directions between packages, Ray in one place, no pickle."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("engine", "learner", "selfplay", "gui", "papers")
FRONT_DOOR, BOARD = "crownhead", "crownhead_board"
BARRED = {  # room → top-level modules it must not import
    "engine": {"learner", "selfplay", "gui", "papers", FRONT_DOOR, BOARD, "torch", "ray", "pygame", "pygame_menu"},
    "learner": {"selfplay", "gui", "papers", FRONT_DOOR, BOARD, "ray", "pygame", "pygame_menu"},
    "selfplay": {"gui", "papers", FRONT_DOOR, BOARD, "pygame", "pygame_menu"},
    "gui": {"learner", "selfplay", "papers", FRONT_DOOR, BOARD, "torch", "ray"},
    "papers": {"gui", FRONT_DOOR, BOARD, "ray", "pygame", "pygame_menu"},
    FRONT_DOOR: {"pygame", "pygame_menu"},
    BOARD: {FRONT_DOOR, "pygame", "pygame_menu"},
}
FLOORS = {
    "selfplay": ("games", "rating", "machines", "run", "matches", "actors", "training", "measures"),
    "gui": ("game", "archive", "exercises", "views", "app"),
}  # packages and modules inside a room: each may import those before it
OWN_MODULES = "learner/own_modules.py"  # imports what the user names on the command line
PICKLERS = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
PICKLING_CALLS = {"torch.load", "torch.save"}

Files = dict[str, ast.Module]


def sources(root: Path) -> Files:
    """Path below ``root`` → syntax tree of every file of the project but the tests."""
    files = [file for room in ROOMS for file in (root / room).rglob("*.py")] + list(root.glob("*.py"))
    return {file.relative_to(root).as_posix(): ast.parse(file.read_text(), str(file)) for file in sorted(files)}


def imported(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, full module name) of every import in a file, wherever it stands; relative ones resolved."""
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            for alias in node.names:
                yield node.lineno, ".".join([*base, *([node.module] if node.module else []), alias.name])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            name = node.args[0]
            yield node.lineno, name.value if isinstance(name, ast.Constant) else "?"


def floor(path: str, room: str) -> int:
    """Place of a path among those of ``FLOORS`` in a room; -1 if it is in none of them."""
    first, second, *_ = [*path.split("/"), ""]
    floors = FLOORS.get(room, ())
    name = second.removesuffix(".py")
    return floors.index(name) if first == room and name in floors else -1


def violations(files: Files) -> list[str]:
    """Every import that breaks a rule, as ``file:line: module``."""
    broken, homes_of_ray = [], set()
    for path, tree in files.items():
        room = path.split("/")[0].removesuffix(".py")
        barred = BARRED.get(room, set()) | PICKLERS | ({"?"} if path != OWN_MODULES else set())
        for line, module in imported(path, tree):
            top = module.split(".")[0]
            if top in barred or -1 < floor(path, room) < floor(module.replace(".", "/"), room):
                broken.append(f"{path}:{line}: {module}")
            if top == "ray":
                homes_of_ray.add(path)
    if len(homes_of_ray) > 1:
        broken.append(f"ray in {len(homes_of_ray)} modules: {', '.join(sorted(homes_of_ray))}")
    return broken


def pickling(files: Files) -> list[str]:
    """Calls that pickle without importing it."""
    found = []
    for path, tree in files.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                allows = [k for k in node.keywords if k.arg == "allow_pickle" and ast.unparse(k.value) != "False"]
                if allows or ast.unparse(node.func) in PICKLING_CALLS:
                    found.append(f"{path}:{node.lineno}: {ast.unparse(node.func)}")
    return found


def compiled_recursion(files: Files) -> list[str]:
    """Compiled functions that reach themselves through functions of their own file: Numba cannot cache these."""
    found = []
    for path, tree in files.items():
        calls = {
            node.name: {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list)
        }
        for name in calls:
            reached, waiting = set(), [name]
            while waiting:
                for callee in (calls.get(waiting.pop(), set()) & calls.keys()) - reached:
                    reached.add(callee)
                    waiting.append(callee)
            if name in reached:
                found.append(f"{path}: {name}")
    return found


@pytest.fixture(scope="module")
def files() -> Files:
    """Those of the project, read once."""
    return sources(ROOT)


def test_import_directions(files: Files) -> None:
    assert {path.split("/")[0] for path in files} >= {"engine", "learner", "selfplay"}
    assert violations(files) == []


def test_nothing_is_pickled(files: Files) -> None:
    assert pickling(files) == []


def test_no_compiled_function_calls_itself(files: Files) -> None:
    assert compiled_recursion(files) == []


def test_importing_a_room_loads_no_barred_module(files: Files) -> None:
    """What a dependency pulls in counts too: the rules must be usable where torch, Ray and pygame are absent."""
    modules = [path[:-3].replace("/", ".").removesuffix(".__init__") for path in files if path.startswith("engine/")]
    code = f"import sys, importlib\nfor m in {modules}: importlib.import_module(m)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "engine.search.lockstep" in loaded.split()
    assert not {name.split(".")[0] for name in loaded.split()} & BARRED["engine"]


def private_names(files: Files) -> list[str]:
    """Private names of other packages that ``papers`` imports; it must use only public names."""
    return [
        f"{path}:{line}: {module}"
        for path, tree in files.items()
        if path.startswith("papers/")
        for line, module in imported(path, tree)
        if any(part.startswith("_") for part in module.split(".") if part != "__future__")
    ]


def test_the_core_knows_no_paper(files: Files) -> None:
    """Papers use public names only; the rooms under them work where ``papers`` is absent, and have no preset of it."""
    assert private_names(files) == []
    assert private_names({"papers/x.py": ast.parse("from learner.trainer import _step")})
    code = "import sys; sys.modules['papers'] = None\nfrom selfplay import commands\n"
    code += "from selfplay.run.config import PRESETS; print(*PRESETS)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["smoke", "quick", "laptop", "gpu"]


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("engine/search/x.py", "import torch.nn as nn", "torch.nn"),
        ("engine/x.py", "from learner.network import Network", "learner.network.Network"),
        ("engine/players/x.py", "def f():\n    from ...selfplay import match", "selfplay.match"),
        ("learner/x.py", "import numpy, ray", "ray"),
        ("learner/x.py", "if TYPE_CHECKING:\n    from selfplay import match", "selfplay.match"),
        ("selfplay/x.py", "import importlib\nimportlib.import_module('pygame')", "pygame"),
        ("selfplay/x.py", "__import__(name)", "?"),
        ("selfplay/games/x.py", "from ..run import config", "selfplay.run.config"),
        ("gui/game/x.py", "from gui.views.scene import Scene", "gui.views.scene.Scene"),
        ("gui/views/x.py", "from ..app import App", "gui.app.App"),
        ("selfplay/x.py", "from papers.settings import POPIC", "papers.settings.POPIC"),
        ("papers/x.py", "import ray", "ray"),
        ("gui/x.py", "from learner import checkpoint", "learner.checkpoint"),
        ("crownhead.py", "from pickle import loads", "pickle.loads"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, path: str, text: str, named: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    assert violations(sources(tmp_path)) == [f"{path}:{text.count(chr(10)) + 1}: {named}"]


def test_a_second_home_of_ray_is_found(tmp_path: Path) -> None:
    (tmp_path / "selfplay").mkdir()
    (tmp_path / "selfplay" / "one.py").write_text("import ray")
    assert violations(sources(tmp_path)) == []
    (tmp_path / "crownhead.py").write_text("def f():\n    from ray import util")
    assert violations(sources(tmp_path)) == ["ray in 2 modules: crownhead.py, selfplay/one.py"]


def test_right_imports_pass(tmp_path: Path) -> None:
    (tmp_path / "engine" / "search").mkdir(parents=True)
    (tmp_path / "engine" / "search" / "x.py").write_text("from ..board import Board\nfrom . import tree\nimport numpy")
    (tmp_path / "engine" / "raytrace.py").write_text("import pickled_cucumbers, torchvision_not_torch")
    assert violations(sources(tmp_path)) == []


def test_hidden_pickling_and_recursion_are_found() -> None:
    files = {"learner/x.py": ast.parse("import numpy as np\nnp.load(f, allow_pickle=True)\ntorch.load(f)\nnp.load(f)")}
    assert pickling(files) == ["learner/x.py:2: np.load", "learner/x.py:3: torch.load"]
    functions = ("f(x): return g(x)", "g(x): return f(x)", "h(x): return f(x)", "k(x): return k(x)")
    text = "".join(f"@njit(cache=True)\ndef {function}\n" for function in functions) + "def plain(): plain()"
    assert compiled_recursion({"engine/x.py": ast.parse(text)}) == [
        "engine/x.py: f",
        "engine/x.py: g",
        "engine/x.py: k",
    ]
