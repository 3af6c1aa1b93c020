"""At the first start a second process compiles the search; here scripts of a few lines stand in for that process."""

import os
import subprocess
import sys
import time

import pytest
from search_reference import HashEvaluator

from engine.board import Board
from engine.players import first_search
from engine.players.search_player import SearchPlayer
from selfplay.machines import compiling


@pytest.fixture
def helper(monkeypatch, tmp_path):
    """Makes the search seem uncompiled and the second process run ``lines``; returns the folder for their files."""

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
    """Whether a file appears within two minutes."""
    return any(path.exists() or time.sleep(0.05) for _ in range(2400))


def test_a_compiled_search_needs_no_second_process(monkeypatch):
    for board in first_search.search_once():
        assert isinstance(board, Board)
    assert first_search.search_is_compiled()
    monkeypatch.setattr(subprocess, "Popen", None)
    assert compiling.made_beside_compiling(lambda: 7) == 7


def test_what_is_compiled_beside_is_what_the_search_needs():
    """In a new process, where nothing else has called the function with other types."""
    lines = (
        "from engine.players.first_search import compile_backup, search_once\n"
        "from engine.search.kernels import backup_leaves\n"
        "compile_backup()\n"
        "before = backup_leaves.signatures\n"
        "for board in search_once(): pass\n"
        "assert backup_leaves.signatures == before and len(before) == 1, before\n"
    )
    subprocess.run([sys.executable, "-c", lines], check=True)


def test_the_opening_is_waited_for_and_the_tables_are_not(helper):
    folder = helper(
        "time.sleep(0.5); (here / 'opening').touch(); print('opening', flush=True)\n"
        "while not (here / 'begun').exists(): time.sleep(0.05)\n"
        "(here / 'tables').touch()"
    )
    assert compiling.made_beside_compiling((folder / "opening").exists) is False, "it runs beside this"
    assert (folder / "opening").exists()
    assert not (folder / "tables").exists()
    (folder / "begun").touch()
    assert appears(folder / "tables")


@pytest.mark.parametrize("lines", ["raise SystemExit(1)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_what_goes_wrong_there_does_no_harm(helper, lines):
    folder = helper(f"(here / 'begun').touch()\n{lines}")
    player = SearchPlayer("flat", HashEvaluator())  # waits for the search, too
    assert compiling.made_beside_compiling(lambda: player) is player
    assert (folder / "begun").exists()


def test_no_process_does_no_harm(helper, monkeypatch):
    folder = helper("pass")
    monkeypatch.setattr(sys, "executable", str(folder / "missing"))
    assert compiling.made_beside_compiling(lambda: 7) == 7


def test_an_error_ends_it(helper):
    folder = helper(
        "import os\n(here / 'number').write_text(str(os.getpid())); (here / 'begun').touch(); time.sleep(600)"
    )

    def interrupted():
        assert appears(folder / "begun")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiling.made_beside_compiling(interrupted)
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "number").read_text()), 0)  # it was killed, and waited for
