"""At the first start a second process compiles the search; with processes of a few lines in its place."""

import subprocess
import sys
import time

import pytest

from engine.board import Board
from engine.players import first_search
from selfplay import compiling


@pytest.fixture
def helper(monkeypatch, tmp_path):
    """Nothing is compiled; the second process runs these lines. Returns the folder of what they write."""

    def use(lines):
        script = tmp_path / "helper"
        script.write_text(
            f"#!{sys.executable}\nimport pathlib, time\nhere = pathlib.Path({str(tmp_path)!r})\n{lines}\n"
        )
        script.chmod(0o755)
        monkeypatch.setattr(first_search, "search_is_compiled", lambda: False)
        monkeypatch.setattr(compiling.os, "cpu_count", lambda: 2)
        monkeypatch.setattr(sys, "executable", str(script))
        return tmp_path

    return use


def appears(path):
    """Whether a file comes into being within half a minute."""
    return any(path.exists() or time.sleep(0.05) for _ in range(600))


def test_a_compiled_search_needs_no_second_process(monkeypatch):
    for board in first_search.search_once():
        assert isinstance(board, Board)
    assert first_search.search_is_compiled()
    monkeypatch.setattr(subprocess, "Popen", None)
    with compiling.search_compiled_beside():
        pass


def test_the_rest_is_what_the_search_needs():
    """In a process of its own, where nothing else has called them with other types."""
    lines = (
        "from engine.players.first_search import compile_the_rest, search_once\n"
        "from engine.search import kernels, root\n"
        "def known(): return [f.signatures for f in (kernels.backup_leaves, root.choose_root, root.read_root)]\n"
        "compile_the_rest()\n"
        "before = known()\n"
        "for board in search_once(): pass\n"
        "assert known() == before and all(len(types) == 1 for types in before), before\n"
    )
    subprocess.run([sys.executable, "-c", lines], check=True)


def test_the_opening_is_waited_for_and_the_tables_are_not(helper):
    folder = helper(
        "time.sleep(0.5); (here / 'opening').touch(); print('opening', flush=True)\n"
        "while not (here / 'begun').exists(): time.sleep(0.05)\n"
        "(here / 'tables').touch()"
    )
    with compiling.search_compiled_beside():
        assert not (folder / "opening").exists(), "it runs beside this"
    assert (folder / "opening").exists()
    assert not (folder / "tables").exists()
    (folder / "begun").touch()
    assert appears(folder / "tables")


@pytest.mark.parametrize("lines", ["raise SystemExit(1)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_what_goes_wrong_there_does_no_harm(helper, lines):
    folder = helper(f"(here / 'begun').touch()\n{lines}")
    with compiling.search_compiled_beside():
        pass
    assert (folder / "begun").exists()


def test_no_process_does_no_harm(helper, monkeypatch):
    folder = helper("pass")
    monkeypatch.setattr(sys, "executable", str(folder / "missing"))
    with compiling.search_compiled_beside():
        (folder / "begun").touch()
    assert (folder / "begun").exists()


def test_an_error_ends_it(helper):
    folder = helper("(here / 'begun').touch(); time.sleep(1)\n(here / 'late').touch()")

    def interrupted():
        with compiling.search_compiled_beside():
            assert appears(folder / "begun")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    time.sleep(1.5)
    assert not (folder / "late").exists()
