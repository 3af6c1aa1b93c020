"""Where compiled code is kept if neither the package nor the user's cache can be written to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import code_cache
from engine.code_cache import VARIABLE, drop_code_cache, part_code_cache, provide_code_cache

NOWHERE = Path("/dev/null/cache")


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")  # and back to what it was
    monkeypatch.delenv(VARIABLE)


def test_where_there_is_a_place_nothing_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    provide_code_cache(tmp_path)
    assert VARIABLE not in os.environ
    monkeypatch.setattr(code_cache.platformdirs, "user_cache_path", lambda *_: tmp_path / "not" / "there")
    provide_code_cache(NOWHERE)
    assert VARIABLE not in os.environ
    assert capsys.readouterr().err == ""


def test_where_there_is_none_one_is_made_and_said_in_a_line(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(code_cache.platformdirs, "user_cache_path", lambda *_: NOWHERE)
    provide_code_cache(NOWHERE)
    assert Path(os.environ[VARIABLE]).is_dir()
    assert capsys.readouterr().err.count("\n") == 1
    provide_code_cache(NOWHERE)  # as in a process that this one starts
    assert capsys.readouterr().err == ""


def test_the_folder_goes_with_its_process_and_with_a_program_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache.platformdirs, "user_cache_path", lambda *_: NOWHERE)
    provide_code_cache(NOWHERE)
    folder = Path(os.environ[VARIABLE])
    drop_code_cache()
    assert not folder.exists()
    assert VARIABLE not in os.environ


def test_a_home_that_may_not_be_looked_into_is_no_place(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "exists", refuse)  # as in Python 3.11 in the home of another user
    monkeypatch.setattr(code_cache.platformdirs, "user_cache_path", lambda *_: NOWHERE)
    provide_code_cache(NOWHERE)
    assert os.path.isdir(os.environ[VARIABLE])
    assert capsys.readouterr().err.count("\n") == 1


def test_the_place_goes_with_the_process() -> None:
    script = """
import os
from pathlib import Path
from engine import code_cache
code_cache.platformdirs.user_cache_path = lambda *_: Path("/dev/null/cache")
code_cache.provide_code_cache(Path("/dev/null/cache"))
print(os.environ["NUMBA_CACHE_DIR"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip()
    assert not Path(done.stdout.strip()).exists()


def test_each_game_has_a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", "")  # and back to what it was
    part_code_cache("russian", tmp_path)
    assert os.environ[VARIABLE] == str(tmp_path / "__pycache__" / "russian")
    part_code_cache("russian", tmp_path)  # as in a process that this one starts
    assert os.environ[VARIABLE] == str(tmp_path / "__pycache__" / "russian")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "chosen"))
    part_code_cache("russian", tmp_path)
    assert os.environ[VARIABLE] == str(tmp_path / "chosen" / "russian")
