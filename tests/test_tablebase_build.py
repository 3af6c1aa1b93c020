"""Building table files: the same bytes in one build, in parts or after a kill; damaged files are never used."""

import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from solved_tables import solve_tables

from engine.tablebase import slice_file
from engine.tablebase.build import Builder
from engine.tablebase.dense import DenseTables, Step, load_tables
from engine.tablebase.folder import FOLDER_VARIABLE, SHIPPED, default_folder
from engine.tablebase.layout import layout_of
from engine.tablebase.material import MAX_PIECES, materials, pairs_up_to, parse_name, slices_of
from engine.tablebase.plan import needs
from engine.tablebase.slice_file import SliceFile, TableFileError, file_name
from selfplay.machines.ray_tables import _RayBuilder

REPOSITORY = Path(__file__).parents[1]
TOTALS = {2: (716, 2370, 402), 3: (100250, 8477, 87305), 4: (2574304, 1717922, 1917090)}  # win, draw, loss
KINDS = ("wdl", "distance")
DAMAGED = "2011.wdl"


def build(folder: Path, pieces: int, distance: bool = True, threads: int = 1) -> list[Step]:
    return list(Builder(folder, pieces, distance, threads=threads).run())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names(pieces: int, *kinds: str) -> set[str]:
    """The files of 2 to ``pieces`` pieces."""
    return {f"{pair.name}.{kind}" for pair in pairs_up_to(pieces) for kind in kinds}


def of_pieces(whole: dict[str, bytes], pieces: int) -> dict[str, bytes]:
    return {name: whole[name] for name in sorted(names(pieces, *KINDS))}


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of 2-4 pieces with distances; tests must not change them."""
    folder = tmp_path_factory.mktemp("four")
    build(folder, 4)
    return folder


@pytest.fixture(scope="module")
def whole(four: Path) -> dict[str, bytes]:
    return contents(four)


@pytest.fixture
def copy(four: Path, tmp_path: Path) -> Path:
    """A copy of ``four``, which a test may change."""
    return Path(shutil.copytree(four, tmp_path / "copy"))


# In one go


def test_a_build_makes_every_file_and_reports_every_pair(tmp_path: Path, whole: dict[str, bytes]) -> None:
    steps = build(tmp_path / "new" / "folder", 3)
    assert contents(tmp_path / "new" / "folder") == of_pieces(whole, 3)
    assert [step.pair for step in steps] == pairs_up_to(3)
    assert all(step.solved for step in steps)
    words = [layout_of(step.pair).words for step in steps]
    assert [step.done for step in steps] == np.cumsum(words).tolist()
    assert {step.total for step in steps} == {sum(words)}


def test_four_pieces(whole: dict[str, bytes]) -> None:
    assert whole.keys() == names(4, *KINDS)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_a_byte(tmp_path: Path, whole: dict[str, bytes], threads: int) -> None:
    build(tmp_path, 3, threads=threads)
    assert contents(tmp_path) == of_pieces(whole, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_files_say_how_many_positions_are_won(four: Path, kind: slice_file.Kind) -> None:
    for pieces, expected in TOTALS.items():
        total = np.zeros(3, int)
        for pair in (material for material in materials(pieces) if material.leads):
            with SliceFile(four / slice_file.file_name(pair, kind)) as file:
                assert file.header.slices.keys() == {pair.name, pair.swapped().name}
                total += sum(np.array([counts.win, counts.draw, counts.loss]) for counts in file.header.slices.values())
                for counts in file.header.slices.values():
                    unknown = kind == "wdl" or counts.win == 0
                    assert (counts.longest_win is None) == (counts.longest_fen is None) == unknown
        assert tuple(total) == expected


@pytest.mark.parametrize("pieces", [-1, 0, 1, MAX_PIECES + 1, 100])
def test_a_wrong_number_of_pieces_is_refused(tmp_path: Path, pieces: int) -> None:
    with pytest.raises(ValueError, match=f"tables have 2 to 8 pieces, not {pieces}"):
        Builder(tmp_path / "folder", pieces)
    assert not (tmp_path / "folder").exists()


# Bit by bit


def test_what_is_there_is_kept(copy: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A build does not write to a complete folder at all."""

    def refuse(*_: object) -> None:
        raise AssertionError("something is written")

    monkeypatch.setattr(slice_file, "atomic_write", refuse)
    steps = build(copy, 4)
    assert not any(step.solved for step in steps)
    assert steps[-1].done == steps[-1].total
    assert contents(copy) == whole


def test_a_larger_build_goes_on_from_a_smaller_one(tmp_path: Path, whole: dict[str, bytes]) -> None:
    for pieces in (2, 3):
        steps = build(tmp_path, pieces)
        assert [step.solved for step in steps] == [step.pair.pieces == pieces for step in steps]
        assert contents(tmp_path) == of_pieces(whole, pieces)


def test_distances_can_be_added_later(tmp_path: Path, whole: dict[str, bytes]) -> None:
    build(tmp_path, 3, distance=False)
    values = contents(tmp_path)
    assert values.keys() == names(3, "wdl")
    build(tmp_path, 3)
    found = contents(tmp_path)
    assert found.keys() == names(3, *KINDS)
    for name, data in found.items():
        assert data == (values if name in values else whole)[name]


@pytest.mark.parametrize("seed", range(6))
def test_missing_files_are_built_again(tmp_path: Path, whole: dict[str, bytes], seed: int) -> None:
    """Any files of both kinds: values are restored from the other files, and every byte is as before."""
    rng = random.Random(seed)
    kept = {name: data for name, data in of_pieces(whole, 3).items() if rng.random() < (seed + 1) / 8}
    for name, data in kept.items():
        (tmp_path / name).write_bytes(data)
    steps = build(tmp_path, 3)
    assert contents(tmp_path) == of_pieces(whole, 3)
    for step in steps:
        assert step.solved == any(f"{step.pair.name}.{kind}" not in kept for kind in KINDS)


@pytest.mark.parametrize("name", ["0022.wdl", "0022.distance", "1111.wdl", "2200.distance", "0130.wdl", "1100.wdl"])
def test_one_missing_file_is_built_again(copy: Path, whole: dict[str, bytes], name: str) -> None:
    (copy / name).unlink()
    steps = build(copy, 4)
    assert [step.pair.name for step in steps if step.solved] == [name[:4]]
    assert contents(copy) == whole


# Killed

KILLED_BUILD = """
    import os, signal, sys
    from pathlib import Path
    from engine.tablebase.build import Builder

    calls, last, fsync = 0, int(sys.argv[2]), os.fsync

    def killing(descriptor):
        global calls
        calls += 1
        if calls == last:
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        fsync(descriptor)

    os.fsync = killing
    for step in Builder(Path(sys.argv[1]), 3, distance=True, threads=1).run():
        print(step.pair.name, flush=True)
    print("done", flush=True)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("call", [1, 3, 19])
def test_killed_while_a_file_is_written(tmp_path: Path, whole: dict[str, bytes], call: int) -> None:
    """Before a file is synced to disk: it does not exist under its name, and all others are complete."""
    with start(KILLED_BUILD, tmp_path, call) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "done" not in output
    left = contents(tmp_path)
    (temporary,) = (name for name in left if name.endswith(".tmp"))
    del left[temporary]
    assert len(left) == call // 2  # each file forces itself and its folder to the disk
    assert all(whole[name] == data for name, data in left.items())
    assert ".".join(temporary.split(".")[:2]) not in left
    os.utime(tmp_path / temporary, (0, 0))
    build(tmp_path, 3)
    assert contents(tmp_path) == of_pieces(whole, 3)


LONG_BUILD = """
    import sys
    from pathlib import Path
    from engine.tablebase.build import Builder

    for step in Builder(Path(sys.argv[1]), 4, distance=True, threads=1).run():
        print(step.pair.name, flush=True)
"""


def test_killed_at_any_moment(tmp_path: Path, whole: dict[str, bytes]) -> None:
    """Killed from outside, while it builds the pairs after the first nine."""
    pairs = 9
    with start(LONG_BUILD, tmp_path) as process:
        assert process.stdout is not None
        for _ in range(pairs):
            assert process.stdout.readline()
        process.kill()
    left = {name: data for name, data in contents(tmp_path).items() if not name.endswith(".tmp")}
    assert names(4, *KINDS) > left.keys()
    assert all(whole[name] == data for name, data in left.items())
    steps = build(tmp_path, 4)
    assert not any(step.solved for step in steps[:pairs])
    found = {name: data for name, data in contents(tmp_path).items() if not name.endswith(".tmp")}
    assert found == whole


# Damaged folders


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) * 2 // 3] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["1100.wdl", DAMAGED, "2011.distance", "2100.distance"])
def test_a_damaged_file_stops_the_build(copy: Path, name: str) -> None:
    """The message names it; it is not overwritten, and nothing is built from it."""
    damage(copy / name)
    (copy / "0031.wdl").unlink()
    before = contents(copy)
    with pytest.raises(TableFileError, match="checksum") as caught:
        build(copy, 4)
    assert str(copy / name) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(copy) == before


def test_another_slice_under_this_name_stops_the_build(copy: Path) -> None:
    shutil.copy(copy / "2200.wdl", copy / DAMAGED)
    before = contents(copy)
    with pytest.raises(TableFileError, match=r"2011\.wdl holds slice 2200"):
        build(copy, 4)
    assert contents(copy) == before


def test_damaged_distances_are_named_even_where_nobody_asked_for_them(copy: Path) -> None:
    damage(copy / "2100.distance")
    before = contents(copy)
    with pytest.raises(TableFileError, match=r"2100\.distance is damaged.*build --pieces 3 --distance"):
        build(copy, 4, distance=False)
    assert contents(copy) == before
    (copy / "2100.distance").unlink()
    assert not any(step.solved for step in build(copy, 4, distance=False))


# Into memory


def same_tables(found: DenseTables, expected: DenseTables) -> None:
    for pair in pairs_up_to(expected.pieces):
        for material in (pair, pair.swapped()):
            assert material in found
            assert np.array_equal(found.slice_rows(material), expected.slice_rows(material)), material.name


@pytest.fixture(scope="module")
def solved() -> DenseTables:
    return solve_tables(4, threads=1)


@pytest.mark.parametrize("threads", [1, 3])
def test_loaded_tables_are_the_solved_ones(four: Path, solved: DenseTables, threads: int) -> None:
    steps: list[Step] = []
    same_tables(load_tables(four, 4, threads, steps.append), solved)
    assert [step.pair for step in steps] == pairs_up_to(4)
    assert not any(step.solved for step in steps)
    assert steps[-1].done == steps[-1].total


def test_what_a_folder_lacks_is_solved_and_not_written(copy: Path, solved: DenseTables, tmp_path: Path) -> None:
    lacking = [parse_name(name) for name in ("1100", "2011", "2200", "0022")]
    for pair in lacking:
        (copy / f"{pair.name}.wdl").unlink()
    before, steps = contents(copy), list[Step]()
    same_tables(load_tables(copy, 4, 1, steps.append), solved)
    assert [step.pair for step in steps if step.solved] == sorted(lacking, key=pairs_up_to(4).index)
    assert contents(copy) == before
    same_tables(load_tables(tmp_path / "absent", 3, 1), solve_tables(3, 1))
    assert not (tmp_path / "absent").exists()


def test_a_damaged_file_is_not_loaded(copy: Path) -> None:
    damage(copy / DAMAGED)
    with pytest.raises(TableFileError, match="checksum") as caught:
        load_tables(copy, 4, 1)
    assert str(copy / DAMAGED) in str(caught.value)


def test_default_folder(monkeypatch: pytest.MonkeyPatch, copy: Path) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(copy))
    assert FOLDER_VARIABLE == "CROWNHEAD_TABLEBASE"
    assert default_folder() == copy
    damage(copy / "1100.wdl")
    with pytest.raises(TableFileError, match=r"1100\.wdl"):
        load_tables(None, 2, 1)
    cache = platformdirs.user_cache_path("crownhead", appauthor=False)
    for unset in (lambda: monkeypatch.setenv(FOLDER_VARIABLE, ""), lambda: monkeypatch.delenv(FOLDER_VARIABLE)):
        unset()
        assert default_folder().parent == cache


def test_a_process_of_a_cluster_holds_only_what_is_needed_again() -> None:
    builder, pairs = _RayBuilder(4, 1), pairs_up_to(4)
    for number, pair in enumerate(pairs):
        left = pairs[number:]
        data = builder.build(pair, left, [])
        assert data == (SHIPPED / file_name(pair, "wdl")).read_bytes()
        needed = needs(left) | {material for other in left for material in slices_of(other)}
        assert builder._builder._tables.filled() <= needed


def test_a_process_of_a_cluster_with_too_little_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tablebase.plan.available_memory", lambda: 1 << 20)
    builder, pairs = _RayBuilder(7, 1), pairs_up_to(7)  # an error here would be told of as its death
    with pytest.raises(ValueError, match="choose fewer pieces"):
        builder.build(pairs[0], pairs, [])
