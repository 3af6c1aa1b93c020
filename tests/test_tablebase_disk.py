"""Builds on disk: the same bytes, also after a kill; and the memory that a build needs at a time."""

import contextlib
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tablebase_reference as plain
from solved_tables import solve_tables
from tablebase_disk import REPOSITORY, contents, shipped

from engine.tablebase import disk_tables, solver
from engine.tablebase.arena import PAGE, Arena
from engine.tablebase.build import Builder
from engine.tablebase.costs import lacking_bytes
from engine.tablebase.dense import DenseDistances, DenseTables
from engine.tablebase.disk_tables import RECORD_FILE, WORDS_FILE, DiskTables, OnDisk
from engine.tablebase.folder import SHIPPED
from engine.tablebase.layout import layout_of
from engine.tablebase.material import Material, pairs_up_to, parse_name, slices_of
from engine.tablebase.parts import parts_of, waves_of
from engine.tablebase.plan import Room, Task, drop_spent, needed_bytes, needs, room_for, rooms, successors, to_fill
from engine.tablebase.slice_file import write_slice
from engine.tablebase.solver import Over, Problem, Workers
from engine.tablebase.verify import Verifier

PAIRS = pairs_up_to(4)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("build", "verify"):
        monkeypatch.setattr(f"engine.tablebase.{module}.room_for", lambda task: rooms(task)[-1])


def leave(folder: Path, pieces: int, pairs: list[Material], only: list[Material] | None = None) -> set[Material]:
    """Leaves in a folder what a build (of some) leaves that is killed after these pairs; returns the slices."""
    tables = DiskTables(pieces, folder, only)
    with Workers(1) as workers:
        for pair in pairs:
            tables.solve(pair, workers)
    tables.close()
    return tables.filled()


def material_of(pieces: plain.Pieces) -> Material:
    letters = [piece for _, piece in pieces]
    return Material(*map(letters.count, "bBwW"))


# Arenas


@pytest.mark.parametrize("on_disk", [False, True])
def test_an_arena_is_zero_where_it_was_cleared(tmp_path: Path, on_disk: bool) -> None:
    arena = Arena(20 * PAGE, tmp_path / "arena" if on_disk else None)
    assert not arena.bytes.any()
    rng, expected = random.Random(1), np.zeros(20 * PAGE, np.uint8)
    for _ in range(200):
        low, high = sorted(rng.sample(range(20 * PAGE), 2))
        arena.bytes[low:high] = expected[low:high] = rng.randint(1, 255)
        low, high = sorted(rng.sample(range(20 * PAGE), 2))
        arena.clear(low, high)
        expected[low:high] = 0
        assert np.array_equal(arena.bytes, expected)


def test_an_arena_is_zero_where_nothing_can_be_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arena, "_give_back", lambda *_: False)
    arena = Arena(4 * PAGE, tmp_path / "arena")
    arena.bytes[:] = 1
    arena.clear(5, 3 * PAGE + 5)
    assert np.flatnonzero(arena.bytes).tolist() == [*range(5), *range(3 * PAGE + 5, 4 * PAGE)]


@pytest.mark.skipif(sys.platform != "linux", reason="holes in files")
def test_what_is_cleared_is_given_back(tmp_path: Path) -> None:
    arena = Arena(1000 * PAGE, tmp_path / "arena")
    arena.bytes[:] = 1
    arena.save(0, 1000 * PAGE)
    before = (tmp_path / "arena").stat().st_blocks
    arena.clear(100 * PAGE, 900 * PAGE)
    assert (tmp_path / "arena").stat().st_blocks < before / 3


# What leads where


def test_every_move_leads_to_a_successor_or_stays() -> None:
    rng, seen = random.Random(1), set()
    for _ in range(3000):
        position = plain.random_position(rng, rng.randint(2, 6))
        here = material_of(position)
        for there in map(material_of, plain.successors(position)):
            if there.own_men + there.own_kings:  # else the game has ended
                assert there in successors(here) or there == here.swapped()
                seen.add((here, there))
    assert len(seen) > 300


@pytest.mark.parametrize("pieces", [3, 4, 7, 8])
def test_whatever_is_lacking_what_is_needed_is_filled_in_before(pieces: int) -> None:
    rng, pairs = random.Random(pieces), pairs_up_to(pieces)
    everything = [material for pair in pairs for material in slices_of(pair)]
    for _ in range(20):
        lacking = set(rng.sample(pairs, rng.randint(1, 3)))
        held = set(rng.sample(everything, rng.randint(0, len(everything))))
        filled = to_fill(pairs, lacking, held)
        assert lacking <= set(filled)
        for number, pair in enumerate(filled):
            assert needs([pair]) <= held, pair.name
            held |= {*slices_of(pair)}
            held &= needs(filled[number + 1 :])


def test_nothing_is_filled_in_for_nothing() -> None:
    assert to_fill(PAIRS, [], ()) == []
    everything = {material for pair in PAIRS for material in slices_of(pair)}
    assert to_fill(PAIRS, [PAIRS[-1]], everything) == [PAIRS[-1]]


# Memory


def open_bytes(pair: Material) -> tuple[int, int]:
    """Bytes that are open at the same time while a pair is solved, and the bytes of the rows of one side."""
    seen = []

    class Noted(solver.Open):
        def __init__(self, values: np.ndarray, first: int) -> None:
            super().__init__(values, first)
            seen.append(self.todo.nbytes + self.mark().nbytes)

    with pytest.MonkeyPatch.context() as patch, Workers(1) as workers:
        patch.setattr(solver, "Open", Noted)
        tables = DenseTables(pair.pieces)
        for before in PAIRS[: PAIRS.index(pair)]:
            tables.solve(before, workers)
        seen.clear()
        first, _ = tables.solve(pair, workers)
    return sum(seen), first.nbytes


@pytest.mark.parametrize("name", ["0011", "2100"])
def test_all_that_is_open_in_a_pair_is_counted(name: str) -> None:
    pair = parse_name(name).pair
    opened, rows = open_bytes(pair)
    held = rows * 2
    assert needed_bytes(Task((pair,))).memory == opened + held


def test_a_symmetric_pair_s_second_side_is_gone_after_the_pair(tmp_path: Path) -> None:
    builder = Builder(tmp_path, 3, distance=True, threads=1)
    for step in builder.run():
        for array in (builder._tables, builder._distances):
            assert array is not None
            assert not array._second_side.any(), step.pair.name


# On disk


def test_builds_on_disk_are_those_in_memory(
    tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "WHOLE_WORDS", 0)  # so that the second sides of symmetric pairs are given back
    monkeypatch.setattr(disk_tables, "_SAVE_S", 0)
    list(Builder(tmp_path, 4, threads=2).run())
    assert contents(tmp_path) == shipped(4)


@pytest.mark.parametrize("seconds", [0, 60])  # between two saves
def test_a_symmetric_pair_s_second_side_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    monkeypatch.setattr(solver, "WHOLE_WORDS", 0)
    monkeypatch.setattr(disk_tables, "_SAVE_S", seconds)
    pair, tables, expected = Material(1, 1, 1, 1), DiskTables(4, tmp_path), solve_tables(4, threads=1)
    with Workers(1) as workers:
        for before in PAIRS[: PAIRS.index(pair)]:
            tables.solve(before, workers)
        first, second = tables.solve(pair, workers)
    assert np.array_equal(first, expected.slice_rows(pair))
    parts = second.reshape(parts_of(layout_of(pair)).total, -1)
    kept = np.flatnonzero(parts.any(axis=1))
    assert 0 < len(kept) < len(parts) / 2
    assert kept.max() < 8  # those of men that have not moved are the last


class KilledError(Exception):
    pass


@pytest.mark.parametrize("name", ["1111", "2101", "0022"])
@pytest.mark.parametrize("last", [1, 2, 5])
def test_a_pair_goes_on_with_the_waves_that_were_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, last: int
) -> None:
    """Killed after some waves, while parts of the next one were solved; the finished waves are not solved again."""
    monkeypatch.setattr(solver, "WHOLE_WORDS", 0)
    monkeypatch.setattr(disk_tables, "_SAVE_S", 0)
    pair, expected = parse_name(name), solve_tables(4, threads=1)
    waves = waves_of(layout_of(pair))
    solved: list[int] = []

    def count(problem: Problem, part: int, over: Over) -> None:
        solved.append(part)
        solve_part(problem, part, over)

    def kill(pair: Material, part: float) -> None:
        if part >= sum(map(len, waves[:last])) / sum(map(len, waves)):
            raise KilledError

    with Workers(1) as workers:
        tables = DiskTables(4, tmp_path)
        for before in PAIRS[: PAIRS.index(pair)]:
            tables.solve(before, workers)
        solve_part = Problem.solve_part
        monkeypatch.setattr(Problem, "solve_part", count)
        tables.report = kill
        with pytest.raises(KilledError):
            tables.solve(pair, workers)
        for side in tables.pair_rows(pair):  # what was at work
            side.reshape(parts_of(layout_of(pair)).total, -1)[waves[last]] = 0xFFFFFFFF
        tables.close()
        again = DiskTables(4, tmp_path)
        first, second = again.solve(pair, workers)
    assert np.array_equal(first, expected.slice_rows(pair))
    if not pair.symmetric:
        assert np.array_equal(second, expected.slice_rows(pair.swapped()))
    once = [part for wave in waves[: last - 1] for part in wave]
    assert not {part for part in once if solved.count(part) != 1}
    assert set(solved) == set(range(parts_of(layout_of(pair)).total))


@pytest.mark.parametrize("name", ["2101", "0022"])
def test_a_pair_goes_on_though_distances_are_asked_for_now(
    tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Earlier pairs are read again for their distances; a symmetric one takes the second side of another."""
    monkeypatch.setattr(solver, "WHOLE_WORDS", 0)
    monkeypatch.setattr(disk_tables, "_SAVE_S", 0)
    pair, begin = parse_name(name), DiskTables._begin
    began: dict[str, int] = {}

    def kill(at: Material, part: float) -> None:
        if at == pair and part > 0.3:
            raise KilledError

    def note(tables: DiskTables, at: Material) -> tuple[Problem, int]:
        problem, solved = begin(tables, at)
        began[at.name] = solved
        return problem, solved

    builder = Builder(tmp_path, 4, only=[pair], threads=1)
    builder._tables.report = kill
    with pytest.raises(KilledError):
        list(builder.run())
    builder._tables.give_up()  # type: ignore[attr-defined]
    monkeypatch.setattr(DiskTables, "_begin", note)
    list(Builder(tmp_path, 4, distance=True, only=[pair], threads=1).run())
    assert (began[name] > 1) == (not pair.symmetric)
    assert contents(tmp_path) == shipped(to_fill(PAIRS, [pair], ()), "wdl", "distance")


@pytest.mark.parametrize("name", ["2101", "0022"])
@pytest.mark.parametrize("kind", ["wdl", "distance", "dating", None])
def test_a_pair_that_lacks_only_its_file_is_not_solved_again(
    tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch, name: str, kind: str | None
) -> None:
    """Killed while a file is written (no distances if None), or between values and distances."""
    solved: list[tuple[type, str]] = []
    pair = parse_name(name)

    def kill(_: Path, at: Material, written: str, *rest: object) -> None:
        if (at, written) == (pair, kind or "wdl"):
            raise KilledError
        write_slice(_, at, written, *rest)  # type: ignore[arg-type]

    def noted(of: type[DenseTables | DenseDistances]) -> Callable[..., object]:
        solve = of.solve

        def note(self: object, at: Material, *rest: object) -> object:
            solved.append((of, at.name))
            if kind == "dating" and of == DenseDistances and solved.count((of, name)) == 1 and at == pair:
                raise KilledError
            return solve(self, at, *rest)  # type: ignore[arg-type]

        return note

    for of in (DenseTables, DenseDistances):
        monkeypatch.setattr(of, "solve", noted(of))
    with monkeypatch.context() as patch:
        patch.setattr("engine.tablebase.build.write_slice", kill)
        builder = Builder(tmp_path, 4, kind is not None, [pair], threads=1)
        with pytest.raises(KilledError):
            list(builder.run())
    for array in (builder._tables, builder._distances):
        if isinstance(array, OnDisk):
            array.give_up()
    list(Builder(tmp_path, 4, kind is not None, [pair], threads=1).run())
    assert solved.count((DenseTables, name)) == 1
    assert solved.count((DenseDistances, name)) == {None: 0, "dating": 2}.get(kind, 1)
    kinds = ("wdl",) if kind is None else ("wdl", "distance")
    assert contents(tmp_path) == shipped(to_fill(PAIRS, [pair], ()), *kinds)


BUILD = """
    import sys
    from pathlib import Path
    from engine.tablebase import build, plan
    build.room_for = lambda task: plan.rooms(task)[-1]
    for step in build.Builder(Path(sys.argv[1]), 4, threads=1).run():
        print(step.pair.name, flush=True)
"""


@functools.cache
def solved_in_memory() -> DenseTables:
    return solve_tables(4, threads=1)


@pytest.mark.parametrize("pairs", [1, 9, 14])
def test_a_killed_build_goes_on_with_what_lies_on_disk(tmp_path: Path, little_memory: None, pairs: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(BUILD), str(tmp_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        names = [process.stdout.readline().strip() for _ in range(pairs)]
        process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    assert names == [pair.name for pair in PAIRS[:pairs]]
    tables, expected = DiskTables(4, tmp_path), solved_in_memory()
    assert tables.filled()
    for material in tables.filled():
        assert np.array_equal(tables.slice_rows(material), expected.slice_rows(material)), material.name
    tables.close()
    steps = list(Builder(tmp_path, 4, threads=1).run())
    assert not any(step.solved for step in steps[:pairs])
    for path in tmp_path.glob("*.tmp"):  # of a file that was being written
        path.unlink()
    assert contents(tmp_path) == shipped(4)


def spoil_record(folder: Path) -> None:
    (folder / RECORD_FILE).write_bytes(b"{")


def other_record(folder: Path) -> None:
    text = (folder / RECORD_FILE).read_text()
    (folder / RECORD_FILE).write_text(text.replace('"layout":"', '"layout":"0'))


def no_words(folder: Path) -> None:
    (folder / WORDS_FILE).unlink()


def cut_words(folder: Path) -> None:
    os.truncate(folder / WORDS_FILE, PAGE)


@pytest.mark.parametrize("spoil", [spoil_record, other_record, no_words, cut_words])
def test_what_cannot_be_gone_on_with_is_begun_anew(
    tmp_path: Path, little_memory: None, spoil: Callable[[Path], None]
) -> None:
    filled = leave(tmp_path, 3, pairs_up_to(2))
    again = DiskTables(3, tmp_path)
    assert again.filled() == filled
    again.close()
    spoil(tmp_path)
    new = DiskTables(3, tmp_path)
    assert not new.filled()
    new.close()
    list(Builder(tmp_path, 3, threads=1).run())
    assert contents(tmp_path) == shipped(3)


def test_what_lies_in_files_already_is_read_and_the_rest_solved(tmp_path: Path, little_memory: None) -> None:
    for name in shipped(4):
        if name != "1111.wdl":
            shutil.copy(SHIPPED / name, tmp_path)
    steps = list(Builder(tmp_path, 4, threads=1).run())
    assert [step.pair.name for step in steps if step.solved] == ["1111"]
    assert contents(tmp_path) == shipped(4)


def test_tables_are_verified_with_little_memory(tmp_path: Path, little_memory: None) -> None:
    for name, data in shipped(4).items():
        (tmp_path / name).write_bytes(data)
    assert [step.pair for step in Verifier(tmp_path, 4, 0, threads=2).run()] == PAIRS
    assert contents(tmp_path) == shipped(4)


def test_two_processes_verify_with_files_of_their_own(
    tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, data in shipped(2).items():
        (tmp_path / name).write_bytes(data)
    names = set()
    monkeypatch.setattr(Path, "unlink", lambda path, **_: names.add(path.name))  # where files in use are not removed
    for process in (1, 2):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        Verifier(tmp_path, 2, 0)
    assert names == {"verify.1.words", "verify.2.words"}


def test_a_build_that_is_refused_leaves_no_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tablebase.plan.available_memory", lambda: 1 << 20)
    (tmp_path / "old").mkdir()
    for name in ("new", "old"):
        with pytest.raises(ValueError, match="choose fewer pieces"):
            Builder(tmp_path / name, 7)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_one_build_at_a_time(tmp_path: Path, little_memory: None) -> None:
    first = Builder(tmp_path, 3, threads=1)
    with pytest.raises(ValueError, match="another build is running in"):
        Builder(tmp_path, 3)
    list(first.run())
    assert contents(tmp_path) == shipped(3)


def test_what_a_killed_build_left_outlasts_a_full_disk(
    tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = leave(tmp_path, 3, pairs_up_to(2))
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage(tmp_path)
        patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=-(1 << 40)))
        with pytest.raises(ValueError, match="choose fewer pieces"):
            Builder(tmp_path, 3)
    again = DiskTables(3, tmp_path)
    assert again.filled() == filled


def test_the_disk_has_room_for_the_tables_as_well(
    tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, usage = Task(tuple(pairs_up_to(4)), 4), shutil.disk_usage(tmp_path)
    rows, tables = needed_bytes(task, rooms(task)[-1]).disk, lacking_bytes(tmp_path, task)
    assert tables == pytest.approx(sum(map(len, shipped(4, "wdl", "distance").values())), rel=0.01)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=rows + tables // 2))
    with pytest.raises(ValueError, match=r"GB of disk, beside .* GB of tables; .* choose fewer pieces"):
        Builder(tmp_path, 4, distance=True)
    for name, data in shipped(4, "wdl", "distance").items():
        (tmp_path / name).write_bytes(data)
    assert lacking_bytes(tmp_path, task) == 0
    list(Builder(tmp_path, 4, distance=True, threads=1).run())


def test_neither_memory_nor_disk(tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10_000_000))
    with pytest.raises(ValueError, match=r"^values of 2-8 pieces take .* GB of memory, or .* GB of disk") as caught:
        Builder(tmp_path, 8)
    assert "\n" not in str(caught.value)
    assert not os.listdir(tmp_path)
    with pytest.raises(ValueError, match=r"^values and distances of 2-8 pieces take .* choose fewer pieces"):
        Builder(tmp_path, 8, distance=True)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("redo", [DiskTables.solve, lambda tables, pair, workers: tables._empty(pair)])
def test_a_pair_that_is_solved_again_is_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redo: Callable[[DiskTables, Material, Workers], object]
) -> None:
    """Killed before the file of a pair is written, and again while the pair is solved anew."""
    pair = parse_name("2100").pair
    with Workers(1) as workers:
        tables = DiskTables(3, tmp_path)
        for before in PAIRS[: PAIRS.index(pair) + 1]:
            tables.solve(before, workers)
        assert pair in tables

        def killed(*_: object) -> None:
            raise KilledError

        monkeypatch.setattr("engine.tablebase.dense.solve_pair", killed)
        with contextlib.suppress(KilledError):
            redo(tables, pair, workers)
        tables.close()
    again = DiskTables(3, tmp_path)
    assert pair not in again
    assert pair.swapped() not in again


def test_a_killed_build_on_disk_goes_on_there_though_memory_suffices_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(tmp_path, 4, PAIRS[:9])
    assert room_for(Task(tuple(PAIRS))) == Room()
    restored, restore = [], DiskTables._enter

    def note(self: DiskTables, pair: Material) -> None:
        restored.append(pair)
        restore(self, pair)

    monkeypatch.setattr(DiskTables, "_enter", note)
    list(Builder(tmp_path, 4, threads=1).run())
    assert restored
    assert contents(tmp_path) == shipped(4)


@pytest.mark.parametrize(("built", "kept"), [(3, False), (2, True)])
def test_what_a_killed_build_left_goes_with_a_complete_one_of_as_many_pieces(
    tmp_path: Path, built: int, kept: bool
) -> None:
    leave(tmp_path, 3, pairs_up_to(2))
    steps = list(Builder(tmp_path, built, threads=1).run())
    assert len(steps) == len(pairs_up_to(built))
    assert (tmp_path / WORDS_FILE).exists() == (tmp_path / RECORD_FILE).exists() == kept


def test_slices_take_the_memory_of_those_that_they_lead_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kings = parse_name("4400").pair
    few = to_fill(pairs_up_to(8), [kings], ())
    needed = needed_bytes(Task(tuple(few))).memory
    assert needed < needed_bytes(Task(tuple(pairs_up_to(8)))).memory / 5
    monkeypatch.setattr("engine.tablebase.plan.available_memory", lambda: needed)
    Builder(tmp_path, 8, only=[kings])
    assert not (tmp_path / WORDS_FILE).exists()


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder with what a killed build of 2-4 pieces has left."""
    leave(tmp_path, 4, PAIRS[:9])
    return tmp_path


def test_a_full_disk_does_not_stop_what_fits_into_memory(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(left)
    monkeypatch.setattr(DiskTables, "left_bytes", lambda _: 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    list(Builder(left, 4, threads=1).run())
    assert contents(left) == shipped(4)


def test_a_build_of_some_slices_leaves_the_work_of_another(left: Path) -> None:
    list(Builder(left, 4, only=[parse_name("1100").pair], threads=1).run())
    assert {WORDS_FILE, RECORD_FILE, "1100.wdl"} <= set(os.listdir(left))


@pytest.mark.parametrize(("pieces", "only"), [(3, None), (4, ["1100"]), (4, ["2200", "0022"])])
def test_a_build_of_other_tables_does_not_overwrite_what_a_killed_one_left(
    left: Path, little_memory: None, pieces: int, only: list[str] | None
) -> None:
    before = contents(left)
    pairs = None if only is None else [parse_name(name).pair for name in only]
    with pytest.raises(
        ValueError,
        match=r"^another build was begun in .*build --pieces 4 .* or remove build.words",
    ):
        Builder(left, pieces, only=pairs)
    assert contents(left) == before
    list(Builder(left, 4, threads=1).run())
    assert contents(left) == shipped(4)


@pytest.mark.parametrize("only", [["2200"], ["2200", "1100"], None])
def test_a_killed_build_of_some_slices_goes_on_in_one_that_makes_them_too(
    tmp_path: Path, little_memory: None, only: list[str] | None
) -> None:
    pairs = None if only is None else [parse_name(name) for name in only]
    leave(tmp_path, 4, [parse_name("1100")], [parse_name("2200")])
    with pytest.raises(ValueError, match=r"^another build was begun in .*--pieces 4 --slices 2200 "):
        Builder(tmp_path, 4, only=[parse_name("0022").pair])
    builder = Builder(tmp_path, 4, only=pairs, threads=1)
    assert builder._tables.filled() == {parse_name("1100")}
    list(builder.run())
    assert {WORDS_FILE, RECORD_FILE}.isdisjoint(os.listdir(tmp_path))


def test_a_record_of_an_earlier_version_is_gone_on_with(left: Path, little_memory: None) -> None:
    record = json.loads((left / RECORD_FILE).read_text())
    del record["only"]
    (left / RECORD_FILE).write_text(json.dumps(record))
    builder = Builder(left, 4, threads=1)
    assert {material.name for material in builder._tables.filled()} == set(record["slices"])
    list(builder.run())
    assert contents(left) == shipped(4)


def test_a_build_that_is_complete_leaves_one_at_work_alone(left: Path) -> None:
    other = DiskTables(4, left)
    DiskTables.remove_spent(4, left)
    other.close()
    assert (left / WORDS_FILE).exists()
    DiskTables.remove_spent(4, left)
    assert not os.listdir(left)


def test_too_little_memory_for_any_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tablebase.plan.available_memory", lambda: 1 << 30)
    with pytest.raises(ValueError, match=r"^values and distances of 2-7 .*; 1\.1 GB of memory are free: choose"):
        Builder(tmp_path, 7, distance=True)
    assert not os.listdir(tmp_path)


def test_a_check_needs_no_room_for_distances_that_it_does_not_check(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = tuple(pairs_up_to(7))
    values, some = needed_bytes(Task(pairs)), needed_bytes(Task(pairs, 4))
    assert values.memory <= some.memory < 1.01 * values.memory
    on_disk = Room(values_on_disk=True)
    eight = tuple(pairs_up_to(8))
    built, checked = (needed_bytes(Task(eight, whole_sides=whole), on_disk) for whole in (False, True))
    assert built.disk < checked.disk


def test_slices_of_a_pair_that_is_still_to_be_written_stay() -> None:
    tables, done, waits = DenseTables(3), parse_name("1011").pair, parse_name("2100").pair
    with Workers(1) as workers:
        for pair in (done, waits):
            tables.fill_from(SHIPPED, pair, workers)
    drop_spent([waits], tables)
    assert tables.filled() >= {*slices_of(waits)}
    assert not tables.filled() & {*slices_of(done)}
