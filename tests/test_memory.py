"""Available memory: of the system, and of control groups with a limit."""

from pathlib import Path

import pytest

from engine import memory

GB = 1 << 30


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 16 GB, on which this process is in the group ``jobs/mine``."""
    (tmp_path / "meminfo").write_text(f"MemTotal: {24 * GB // 1024} kB\nMemAvailable:   {16 * GB // 1024} kB\n")
    (tmp_path / "own").write_text("0::/jobs/mine\n")
    monkeypatch.setattr(memory, "_LINUX", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    (tmp_path / "groups" / "jobs" / "mine").mkdir(parents=True)
    return tmp_path / "groups"


def limit(folder: Path, most: int | None, used: int, cached: int) -> None:
    (folder / "memory.max").write_text("max\n" if most is None else f"{most}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - cached}\ninactive_file {cached}\n")


def test_without_limits_it_is_the_system_s(groups: Path) -> None:
    assert memory.available_memory() == 16 * GB
    limit(groups / "jobs" / "mine", None, 5 * GB, 0)
    assert memory.available_memory() == 16 * GB


def test_the_least_of_all_limits_counts(groups: Path) -> None:
    limit(groups / "jobs" / "mine", 8 * GB, 3 * GB, GB)
    assert memory.available_memory() == 6 * GB
    limit(groups / "jobs", 10 * GB, 9 * GB, GB)
    assert memory.available_memory() == 2 * GB
    limit(groups / "jobs", 10 * GB, 11 * GB, 0)
    assert memory.available_memory() == 0
    with pytest.raises(ValueError, match=r"^tables take 1\.0 GB of memory, and 0\.0 GB are free: choose fewer$"):
        memory.check_memory(10**9, "tables", "choose fewer")


def test_systems_without_these_files(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_OWN_GROUP", groups / "none")
    monkeypatch.setattr(memory, "_LINUX", groups / "none")
    there = memory.available_memory()
    assert there is None or there > GB / 10
