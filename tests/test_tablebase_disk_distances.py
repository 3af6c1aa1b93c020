"""Builds of distances that do not fit into memory: the same bytes, also after a kill."""

import functools
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tablebase_disk import REPOSITORY, contents, shipped

from engine.tablebase import disk_tables, solver
from engine.tablebase.build import Builder
from engine.tablebase.dense import DenseDistances, DenseTables
from engine.tablebase.disk_tables import HALVES_FILE, WORDS_FILE, DiskDistances, DiskTables
from engine.tablebase.material import Material, pairs_up_to
from engine.tablebase.plan import Room, Task, needed_bytes, room_for, rooms
from engine.tablebase.solver import Workers
from engine.tablebase.verify import Verifier

PAIRS = pairs_up_to(4)
FOUR = Task(tuple(PAIRS), 4)
ROOMS = rooms(FOUR)
HALVES_ON_DISK, ALL_ON_DISK = ROOMS[1:]


@pytest.fixture
def memory_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[Room], None]:
    """Leaves just the memory that a build of 2-4 pieces needs in a room."""

    def leave(room: Room) -> None:
        there = needed_bytes(FOUR, room).memory
        monkeypatch.setattr("engine.tablebase.plan.available_memory", lambda: there)

    return leave


@functools.cache
def solved_in_memory() -> DenseDistances:
    tables, distances = DenseTables(4), DenseDistances(4)
    with Workers(1) as workers:
        for pair in PAIRS:
            distances.solve(pair, tables, tables.solve(pair, workers), workers)
    return distances


def test_what_memory_does_not_hold_lies_on_disk(memory_for: Callable[[Room], None]) -> None:
    needs = [needed_bytes(FOUR, room) for room in ROOMS]
    assert [needed.memory for needed in needs] == sorted((needed.memory for needed in needs), reverse=True)
    assert needs[0].disk == 0 < needs[1].disk < needs[2].disk
    for room in ROOMS:
        memory_for(room)
        assert room_for(FOUR) == room


@pytest.mark.parametrize("room", ROOMS)
def test_builds_are_the_same_wherever_they_work(tmp_path: Path, memory_for: Callable[[Room], None], room: Room) -> None:
    memory_for(room)
    found: set[str] = set()
    for _ in Builder(tmp_path, 4, distance=True, threads=2).run():
        found |= {HALVES_FILE, WORDS_FILE} & set(contents(tmp_path))
    assert (WORDS_FILE in found, HALVES_FILE in found) == room
    assert contents(tmp_path) == shipped(4, "wdl", "distance")


def test_distances_know_both_sides_of_a_symmetric_pair_that_was_solved_on_disk(
    tmp_path: Path, memory_for: Callable[[Room], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solved in waves, it keeps the values with the first side to move alone."""
    monkeypatch.setattr(solver, "WHOLE_WORDS", 0)
    monkeypatch.setattr(disk_tables, "_SAVE_S", 0)
    memory_for(ALL_ON_DISK)
    list(Builder(tmp_path, 4, distance=True, threads=1).run())
    assert contents(tmp_path) == shipped(4, "wdl", "distance")


BUILD = """
    import sys
    from pathlib import Path
    from engine.tablebase import build, plan
    plan.available_memory = lambda: int(sys.argv[2])
    for step in build.Builder(Path(sys.argv[1]), 4, True, threads=1).run():
        print(step.pair.name, flush=True)
"""


@pytest.mark.parametrize(("room", "pairs"), [(HALVES_ON_DISK, 9), (ALL_ON_DISK, 1), (ALL_ON_DISK, 14)])
def test_a_killed_build_goes_on_with_what_lies_on_disk(
    tmp_path: Path, memory_for: Callable[[Room], None], monkeypatch: pytest.MonkeyPatch, room: Room, pairs: int
) -> None:
    memory = str(needed_bytes(FOUR, room).memory)
    command = [sys.executable, "-c", textwrap.dedent(BUILD), str(tmp_path), memory]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        names = [process.stdout.readline().strip() for _ in range(pairs)]
        process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    assert names == [pair.name for pair in PAIRS[:pairs]]
    left, expected = DiskDistances(4, tmp_path), solved_in_memory()
    there = left.filled()
    for material in there:
        assert np.array_equal(left.slice_rows(material), expected.slice_rows(material)), material.name
    left.close()
    solved, solve = [], DenseDistances.solve

    def note(self: DenseDistances, pair: Material, *rest: object) -> object:
        solved.append(pair)
        return solve(self, pair, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(DenseDistances, "solve", note)
    memory_for(room)
    steps = list(Builder(tmp_path, 4, distance=True, threads=1).run())
    assert not any(step.solved for step in steps[:pairs])
    assert not {pair for pair in solved if pair in there and pair.swapped() in there and pair in PAIRS[:pairs]}
    for path in tmp_path.glob("*.tmp"):  # of a file that was being written
        path.unlink()
    assert contents(tmp_path) == shipped(4, "wdl", "distance")


def test_a_lost_file_of_a_pair_that_lies_on_disk_is_written_again(
    tmp_path: Path, memory_for: Callable[[Room], None]
) -> None:
    """Killed between the distances of a symmetric pair and their file: its second side is no longer there."""
    memory_for(ALL_ON_DISK)
    tables, distances = DiskTables(4, tmp_path), DiskDistances(4, tmp_path)
    with Workers(1) as workers:
        for pair in PAIRS[:9]:
            distances.solve(pair, tables, tables.solve(pair, workers), workers)
    tables.close()
    distances.close()
    list(Builder(tmp_path, 4, distance=True, threads=1).run())
    assert contents(tmp_path) == shipped(4, "wdl", "distance")


def test_distances_are_verified_with_little_memory(tmp_path: Path, memory_for: Callable[[Room], None]) -> None:
    for name, data in shipped(4, "wdl", "distance").items():
        (tmp_path / name).write_bytes(data)
    memory_for(ALL_ON_DISK)
    assert [step.pair for step in Verifier(tmp_path, 4, 4, threads=2).run()] == PAIRS
    assert contents(tmp_path) == shipped(4, "wdl", "distance")
