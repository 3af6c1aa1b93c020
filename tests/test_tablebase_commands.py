"""``crownhead tablebase``: verification finds what is wrong, statistics count right, errors take one line."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from programs import crownhead_here
from solved_tables import solve_tables

from engine.bitboard import mask_of
from engine.memory import available_memory
from engine.tablebase import solver
from engine.tablebase import verify as module
from engine.tablebase.commands import StepProgress, build_command, info_command, stats_command, verify_command
from engine.tablebase.costs import table_costs
from engine.tablebase.count import count_pair
from engine.tablebase.dense import Step, load_tables
from engine.tablebase.distance import decode_distances, encode_distances
from engine.tablebase.folder import FOLDER_VARIABLE, SHIPPED, SHIPPED_KINGS
from engine.tablebase.layout import layout_of
from engine.tablebase.material import MAX_PIECES, pairs_up_to, parse_name
from engine.tablebase.plan import Task, needed_bytes
from engine.tablebase.slice_file import SliceFile, TableFileError, rebuild_advice, write_slice
from engine.tablebase.solve import free_places, grid_of, place_word
from engine.tablebase.solver import Workers
from engine.tablebase.verified import VERIFIED_FILE
from engine.tablebase.verify import Verifier
from engine.tablebase.wdl_codec import encode_slice
from selfplay.command_line.options import MOST_PIECES

TOTALS = {  # pieces → wins, draws, losses of both sides to move
    "2": (716, 2370, 402),
    "3": (100250, 8477, 87305),
    "4": (2574304, 1717922, 1917090),
    "5": (71334772, 11122892, 56993144),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables of 2 and 3 pieces with distances."""
    for path in SHIPPED.iterdir():
        if sum(map(int, path.stem)) <= 3:
            shutil.copy(path, tmp_path)
    return tmp_path


def verify(folder: Path, pieces: int = 3, distance: bool = True) -> int:
    return len(list(Verifier(folder, pieces, pieces if distance else 0).run()))


def rewrite(folder: Path, name: str, change: object) -> None:
    """Writes the file of a pair again, correct except for what ``change`` does to the first side's values."""
    layout = layout_of(parse_name(name))
    tables = solve_tables(layout.material.pieces)
    values = np.stack([tables.slice_rows(layout.material), tables.slice_rows(layout.material.swapped())])
    assert callable(change)
    change(values[0])
    with Workers(1) as workers:
        write_slice(
            folder,
            layout.material,
            "wdl",
            count_pair(layout, values),
            *encode_slice(grid_of(layout, False), values[0], workers),
        )


def test_shipped_tables_are_right() -> None:
    figures = verify_command(SHIPPED, None, quiet=True)
    assert figures["positions"] == sum(sum(counts) for counts in TOTALS.values())
    assert (figures["pieces"], figures["distances"]) == (5, 4)


def test_a_sound_folder_passes(folder: Path) -> None:
    assert verify(folder) == 9
    assert verify(folder, 2) == 3


def test_a_wrong_value_is_named_with_its_position(folder: Path) -> None:
    def make_draws(values: np.ndarray) -> None:
        values[100:110, 0] = 0

    rewrite(folder, "2100", make_draws)
    with pytest.raises(
        TableFileError, match=r"2100\.wdl is wrong: B:W\S+ is stored as a draw, but its successors make it a win"
    ) as caught:
        verify(folder, distance=False)
    (folder / "2100.wdl").unlink()
    follow(caught.value)
    assert verify(folder) == 9


def test_wins_only_because_of_one_another_are_found(folder: Path) -> None:
    """Draws become wins and losses, by the number of men and kings on odd rows, which each move changes."""

    def make_cycles(values: np.ndarray) -> None:
        grid, pieces = grid_of(layout_of(parse_name("1100")), False), np.zeros(4, np.uint32)
        odd_rows = mask_of(square for square in range(32) if square // 4 % 2)
        for word in range(grid.words):
            taken = int(place_word(grid, word, np.zeros(4, np.int64), pieces))
            for square in range(32):
                bit = 1 << square
                if int(free_places(grid.roamer, np.uint32(taken))) & bit and not int(values[word].sum()) & bit:
                    values[word, 1 - ((taken | bit) & odd_rows).bit_count() % 2] |= np.uint32(bit)

    rewrite(folder, "1100", make_cycles)
    steps = Verifier(folder, 2, 0).run()
    assert next(steps).pair == parse_name("1100").pair  # all follow from their successors
    with pytest.raises(TableFileError, match=r"1100\.wdl is wrong: some of its positions are won only because"):
        verify(folder, 2)
    done = crownhead_here("tablebase", "verify", "--dir", folder, "--pieces", 2)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_wrong_counts_are_found(folder: Path) -> None:
    layout = layout_of(parse_name("2100"))
    with SliceFile(folder / "2100.wdl") as file:
        counts, priors = file.header.slices, file.priors()
        blocks = [file.block(number) for number in range(file.header.blocks)]
    counts["2100"].win += 1
    write_slice(folder, layout.material, "wdl", counts, priors, blocks)
    with pytest.raises(TableFileError, match=r"2100\.wdl is wrong: the counts"):
        verify(folder, distance=False)


def test_wrong_distances_are_found(folder: Path) -> None:
    layout = layout_of(parse_name("2100"))
    with SliceFile(folder / "2100.distance") as file:
        counts, halves = file.header.slices, decode_distances(file.block(0)).copy()
    grid, values = grid_of(layout, False), solve_tables(3).slice_rows(layout.material)
    halves[400] += 1
    blocks = [encode_distances(0, grid, values, halves)]
    write_slice(folder, layout.material, "distance", counts, None, blocks)
    assert verify(folder, distance=False) == 9
    with pytest.raises(TableFileError, match=r"2100\.distance is wrong") as caught:
        verify(folder)
    (folder / "2100.distance").unlink()
    follow(caught.value)
    assert verify(folder) == 9


def checked_by(verifier: Verifier) -> set[str]:
    """The pairs that a check has compared with their successors, not only read."""
    return {step.pair.name for step in verifier.run() if step.solved}


def test_a_check_that_ended_early_goes_on(folder: Path) -> None:
    every = checked_by(Verifier(folder, 3, 3))
    steps = Verifier(folder, 3, 3, resume=True).run()
    done = {next(steps).pair.name for _ in range(5)}
    steps.close()
    assert checked_by(Verifier(folder, 3, 3)) == every  # not asked to go on
    figures = verify_command(folder, 3, quiet=True, resume=True)
    assert 0 < figures["found_before"] < figures["positions"]
    assert not (folder / VERIFIED_FILE).exists()

    steps = Verifier(folder, 3, 3, resume=True).run()
    for _ in range(5):
        next(steps)
    steps.close()
    assert checked_by(Verifier(folder, 3, 3, resume=True)) == every - done
    assert checked_by(Verifier(folder, 3, 3, resume=True)) == every  # the last check has ended


def test_a_check_of_fewer_pieces_keeps_what_a_larger_one_has_found(folder: Path) -> None:
    steps = Verifier(folder, 3, 0, resume=True).run()
    pairs = [next(steps).pair for _ in range(6)]
    steps.close()
    assert pairs[-1].pieces == 3
    list(Verifier(folder, 2, 0, resume=True).run())
    assert Verifier(folder, 3, 0, resume=True).before == tuple(pairs)
    list(Verifier(folder, 3, 0, resume=True).run())
    assert not (folder / VERIFIED_FILE).exists()


def test_a_file_that_changed_is_checked_again_with_all_that_follow(folder: Path) -> None:
    """The file written anew has the same values, but another checksum."""
    steps = Verifier(folder, 3, 0, resume=True).run()
    pairs = [next(steps).pair for _ in range(6)]
    steps.close()
    third = pairs[2].name
    with SliceFile(folder / f"{third}.wdl") as file:
        counts, priors = file.header.slices, file.priors()
        blocks = [file.block(number) for number in range(file.header.blocks)]
    longest = counts[third].model_copy(update={"longest_win": 1})
    write_slice(folder, pairs[2], "wdl", counts | {third: longest}, priors, blocks)
    assert Verifier(folder, 3, 0, resume=True).before == tuple(pairs[:2])
    assert Verifier(folder, 3, 3, resume=True).before == ()  # distances were not checked
    write_slice(folder, pairs[2], "wdl", counts, priors, blocks)
    assert Verifier(folder, 3, 0, resume=True).before == tuple(pairs)


def test_a_wrong_value_after_the_pairs_found_right_is_found(folder: Path) -> None:
    steps = Verifier(folder, 3, 0, resume=True).run()
    while next(steps).pair.pieces == 2:
        pass
    steps.close()

    def make_draws(values: np.ndarray) -> None:
        values[100:110, 0] = 0

    rewrite(folder, "2100", make_draws)
    with pytest.raises(TableFileError, match=r"2100\.wdl is wrong: B:W\S+ is stored as a draw"):
        list(Verifier(folder, 3, 0, resume=True).run())


@pytest.mark.parametrize("text", ["", "{}", "[1]", "7", '{"format": 1, "files": [1]}', '{"format": 2, "files": {}}'])
def test_a_record_of_a_check_that_is_none_is_named(folder: Path, text: str) -> None:
    (folder / VERIFIED_FILE).write_text(text)
    done = crownhead_here("tablebase", "verify", "--resume", "--dir", folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "does not say which tables were found right: remove it" in done.stderr
    assert (folder / VERIFIED_FILE).read_text() == text


def test_a_check_tells_how_far_it_is_in_a_pair(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "WHOLE_WORDS", 0)  # small pairs have parts, too
    monkeypatch.setattr(module, "_WORDS_AT_ONCE", 1)
    told: dict[str, list[float]] = {}
    list(Verifier(folder, 3, 0, report=lambda pair, part: told.setdefault(pair.name, []).append(part)).run())
    assert len(told) == 9
    assert any(len(parts) > 1 for parts in told.values())
    for parts in told.values():
        assert parts == sorted(parts)
        assert parts[-1] == 1.0


def test_files_that_are_missing_are_named(folder: Path) -> None:
    (folder / "2100.wdl").unlink()
    with pytest.raises(ValueError, match=r"lacks 1 of the 9 files of 2-3 pieces \(2100\.wdl\); complete it with"):
        verify(folder, distance=False)


def advised(error: BaseException) -> list[str]:
    """The arguments of the command that a message advises, after ``crownhead tablebase``."""
    found = re.search("`crownhead tablebase (.*)`", str(error))
    assert found is not None, str(error)
    return shlex.split(found[1])


def follow(error: BaseException) -> None:
    """Follows the advice of an error message."""
    arguments = advised(error)
    assert arguments[0] == "build"
    folder, pieces = (arguments[arguments.index(option) + 1] for option in ("--dir", "--pieces"))
    names = arguments[arguments.index("--slices") + 1].split(",") if "--slices" in arguments else None
    build_command(Path(folder), int(pieces), "--distance" in arguments, quiet=True, names=names)


@pytest.fixture
def spaced(folder: Path) -> Path:
    """The same tables in a folder whose name has a space."""
    spaced = folder / "some tables"
    spaced.mkdir()
    for path in folder.glob("*.*"):
        path.rename(spaced / path.name)
    return spaced


def test_the_advice_for_files_that_are_missing_works(spaced: Path) -> None:
    (spaced / "2100.wdl").unlink()
    with pytest.raises(ValueError, match=r"2100\.wdl") as caught:
        verify_command(spaced, None, quiet=True)
    follow(caught.value)
    (spaced / "2100.distance").unlink()
    with pytest.raises(ValueError, match=r"2100\.distance") as caught:
        verify(spaced)
    follow(caught.value)
    assert verify_command(spaced, None, quiet=True)["distances"] == 3


@pytest.mark.parametrize(("name", "complete"), [("2100.distance", 2), ("1001.distance", 0)])
def test_values_are_verified_though_some_distances_are_missing(
    spaced: Path, capsys: pytest.CaptureFixture[str], name: str, complete: int
) -> None:
    (spaced / name).unlink()
    assert verify_command(spaced, None, quiet=False)["distances"] == complete
    told = capsys.readouterr().out
    assert "Not checked are distances of 3 pieces" in told
    follow(ValueError(told))
    assert verify_command(spaced, None, quiet=False)["distances"] == 3
    assert "Not checked" not in capsys.readouterr().out


def test_files_of_other_numbers_of_pieces_are_not_read(folder: Path) -> None:
    damaged = folder / "2100.wdl"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert verify_command(folder, 2, quiet=True)["pieces"] == 2
    assert list(stats_command(folder, 2, quiet=True)["pieces"]) == ["2"]
    with pytest.raises(TableFileError, match=r"2100\.wdl"):
        stats_command(folder, 3, quiet=True)


@pytest.mark.parametrize("name", ["2100.distance", "2100.wdl"])
@pytest.mark.parametrize("byte", [3, 40, -1])
def test_the_advice_for_damaged_files_works(folder: Path, name: str, byte: int) -> None:
    data = bytearray((folder / name).read_bytes())
    data[byte] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(TableFileError, match=name.replace(".", r"\.")) as caught:
        verify_command(folder, None, quiet=True)
    with pytest.raises(TableFileError, match=name.replace(".", r"\.")):
        stats_command(folder, None, quiet=True)
    for distance in (False, True):  # neither build takes a damaged file for a good one
        with pytest.raises(TableFileError, match=name.replace(".", r"\.")) as refused:
            build_command(folder, 3, distance, quiet=True)
        assert str(refused.value) == str(caught.value)
    (folder / name).unlink()
    follow(caught.value)
    assert verify_command(folder, None, quiet=True)["distances"]


def test_a_damaged_file_is_built_again_alone(tmp_path: Path) -> None:
    build_command(tmp_path, 4, False, quiet=True, names=["1111"])
    files = sorted(path.name for path in tmp_path.iterdir())
    (tmp_path / "1111.wdl").write_bytes(b"")
    with pytest.raises(TableFileError, match=r"1111\.wdl") as caught:
        stats_command(tmp_path, None, quiet=True)
    (tmp_path / "1111.wdl").unlink()
    follow(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_advice_names_the_folder_only_where_that_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    for command in (verify_command, stats_command):
        with pytest.raises(ValueError, match="build --pieces 6`"):
            command(tmp_path, 6, quiet=True)


def test_statistics_are_of_the_folder_alone(folder: Path) -> None:
    figures = stats_command(folder, None, quiet=True)
    assert list(figures["pieces"]) == ["2", "3"]


def test_the_command_line_knows_the_most_pieces() -> None:
    assert MOST_PIECES == MAX_PIECES


def test_slices_alone_and_what_they_need(tmp_path: Path) -> None:
    figures = build_command(tmp_path, 4, False, True, ["2200", "1100"])
    assert {path.name for path in tmp_path.iterdir()} == {"1100.wdl", "2100.wdl", "2200.wdl"}
    assert figures["slices_built"] == 3
    assert build_command(tmp_path, 4, False, True, ["2200", " 1100"])["slices_kept"] == 2
    with pytest.raises(ValueError, match=r"^4400 has more than 7 pieces: add --pieces 8$"):
        build_command(tmp_path, 7, False, True, ["4400"])
    with pytest.raises(ValueError, match="'K1' is no slice"):
        build_command(tmp_path, 7, False, True, ["K1"])


def test_time_left_counts_what_was_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("engine.tablebase.commands.perf_counter", lambda: now[0])
    progress = StepProgress("building", quiet=True)
    pair = parse_name("2100")
    words = layout_of(pair).words
    total = 100 * words
    now[0] += 1
    kept = Step(pair, 40 * words, total, solved=False)
    progress(kept)
    assert progress.text("after 2100") == "building after 2100"
    now[0] += 9
    worked = Step(pair, 50 * words, total, solved=True)
    progress(worked)
    left, _, rest = progress.text("after 2100").partition(" left, ")
    assert left == "0:08:20"  # half of all words, one pair in ten seconds
    assert rest.startswith("building after 2100, ")
    assert len(progress.text("after 2100")) <= 48
    progress.within(pair, 0.0)
    progress.within(pair, 0.5)
    left, _, rest = progress.text("in 2100", 5 * words).partition(" left, ")
    assert left == "0:01:15"  # six pairs in ten seconds
    assert rest.startswith("building in 2100, ")


def test_what_a_killed_build_had_solved_of_a_pair_is_no_work_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("engine.tablebase.commands.perf_counter", lambda: now[0])
    progress, before, pair = StepProgress("building", quiet=True), parse_name("2100"), parse_name("2200")
    words = layout_of(pair).words
    progress(Step(before, 10, 10 + words, solved=False))
    progress.within(pair, 0.8)
    now[0] += 60
    progress.within(pair, 0.82)
    left, _, _ = progress.text("in 2200", round(0.82 * words)).partition(" left, ")
    assert left in ("0:08:59", "0:09:00", "0:09:01")
    now[0] += 540
    progress(Step(pair, 10 + words, 10 + words, solved=True))
    assert progress.text("after 2200").endswith(f"{0.2 * words / 600e3:,.0f} k words/s")


def test_more_memory_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = tuple(pairs_up_to(5))
    values, both = needed_bytes(Task(pairs)).memory, needed_bytes(Task(pairs, 5)).memory
    assert 10e6 < values < 25e6  # of 53 MB, most of which is given back on the way
    assert 4 * values < both < 10 * values
    monkeypatch.setattr("engine.memory.available_memory", lambda: values + 1)
    with pytest.raises(ValueError, match=r"values of 2-7 pieces take 19\.7 GB of memory, and 0\.0 GB are free"):
        load_tables(SHIPPED, 7)


def test_how_much_memory_there_is() -> None:
    there = available_memory()
    assert there is None or 10e6 < there < 100e12


def test_statistics(folder: Path) -> None:
    figures = stats_command(None, None, quiet=True)
    for pieces, (win, draw, loss) in TOTALS.items():
        row = figures["pieces"][pieces]
        assert (row["win"], row["draw"], row["loss"]) == (win, draw, loss)
    assert figures["pieces"]["3"]["longest_win"] == 61
    assert figures["slices"]["3200"]["longest_win"] == 67  # these distances alone come with the package
    few = stats_command(folder, 3, quiet=True)
    assert list(few["pieces"]) == ["3"]
    assert few["slices"]["2100"] == figures["slices"]["2100"]
    assert set(few["slices"]["2100"]) == {"win", "draw", "loss", "longest_win", "longest_win_fen"}
    assert sum(row["win"] for row in few["slices"].values()) == TOTALS["3"][0]
    with pytest.raises(ValueError, match="has no table of 6 pieces; build it with"):
        stats_command(folder, 6, quiet=True)


def test_incomplete_pieces_have_no_total(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tablebase.commands.SHIPPED", folder / "none")
    (folder / "2100.wdl").unlink()
    (folder / "2100.distance").unlink()
    figures = stats_command(folder, None, quiet=True)
    assert list(figures["pieces"]) == ["2"]
    assert {"2100", "1200"}.isdisjoint(figures["slices"])


def test_the_longest_win_is_known_only_where_all_slices_have_distances(folder: Path) -> None:
    (folder / "2100.distance").unlink()
    figures = stats_command(folder, None, quiet=True)
    assert figures["pieces"]["2"]["longest_win"] == 13
    assert figures["pieces"]["3"]["longest_win"] is figures["pieces"]["3"]["longest_win_fen"] is None
    assert figures["slices"]["2001"]["longest_win"] is not None


def test_build_reports_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = build_command(tmp_path / "new", 2, False, quiet=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2  # long lines are not broken
    assert "neither draws by repetition nor the 80-ply rule" in lines[1]
    again = build_command(tmp_path / "new", 2, False, quiet=True)
    assert (first["files"], first["slices_built"], first["slices_kept"]) == (3, 3, 0)
    assert (again["slices_built"], again["slices_kept"], again["bytes"]) == (0, 3, first["bytes"])


def test_commands(folder: Path) -> None:
    for name, keys in (
        ("build", {"folder", "pieces", "files", "bytes", "slices_built", "slices_kept", "seconds"}),
        ("verify", {"folder", "pieces", "positions", "distances", "found_before", "seconds"}),
        ("stats", {"pieces", "slices"}),
    ):
        done = crownhead_here("tablebase", name, "--dir", folder, "--pieces", 3, "--json")
        assert done.returncode == 0, done.stderr
        assert set(json.loads(done.stdout.splitlines()[-1])) == keys
    damaged = folder / "1100.wdl"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    for name in ("build", "verify"):
        done = crownhead_here("tablebase", name, "--dir", folder, "--pieces", 3)
        assert done.returncode == 2
        assert str(damaged) in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_info_says_what_is_there_and_what_more_costs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "2100.wdl").unlink()
    figures = info_command(folder, quiet=False)
    costs = {cost["pieces"]: cost for cost in figures["pieces"]}
    assert figures["distances"] == 3
    assert list(costs) == [2, 3, 4, 5, 6, 7, 8]
    assert [costs[n]["pairs_there"] for n in costs] == [3, 5, 0, 0, 0, 0, 0]
    assert [costs[n]["pairs"] for n in costs] == [3, 6, 14, 22, 37, 52, 15]
    assert costs[2]["bytes_more"] == costs[2]["core_seconds_more"] == 0
    assert 0 < costs[3]["bytes_more"] < costs[3]["bytes_there"]
    assert costs[7]["memory"] == needed_bytes(Task(tuple(pairs_up_to(7)))).memory > 4e9
    assert "minutes" in capsys.readouterr().out


@pytest.mark.parametrize("pieces", [2, 3, 4, 5])
def test_costs_of_files_are_those_of_the_tables_that_come_with_the_package(pieces: int) -> None:
    there = {cost["pieces"]: cost for cost in table_costs([SHIPPED])}[pieces]
    lacking = {cost["pieces"]: cost for cost in table_costs([])}[pieces]
    assert there["bytes_there"] == lacking["bytes_more"]
    assert there["pairs_there"] == there["pairs"]
    assert there["bytes_more"] == lacking["bytes_there"] == 0


def test_a_long_build_of_distances_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def none(place: Path) -> Iterator[Step]:
        yield from ()

    for path in SHIPPED.glob("*.wdl"):
        shutil.copy(path, folder)
    build_command(folder, 5, False, False, None, none)
    assert "of one core's time" not in capsys.readouterr().out
    build_command(folder, 5, True, False, None, none)
    first = capsys.readouterr().out.splitlines()[0]
    assert re.match(r"This takes about 27\.7 MB of files, 38 s of one core's time, and .* of disk\.$", first)
    build_command(folder, 6, True, False, None, none)
    assert re.match(r"This takes about 416\.0 MB of files, 20 minutes ", capsys.readouterr().out)


def test_a_folder_without_distances_is_said_to_have_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert info_command(tmp_path, quiet=False)["distances"] == 0
    told = capsys.readouterr().out
    assert "no distances" in told
    assert "0 pieces" not in told


def test_a_build_says_first_what_it_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def none(place: Path) -> Iterator[Step]:
        assert "of one core's time" in capsys.readouterr().out
        yield from ()

    build_command(tmp_path, 6, False, False, None, none)
    build_command(tmp_path, 3, False, False)
    assert "of one core's time" not in capsys.readouterr().out


@pytest.mark.parametrize("folder", [SHIPPED, SHIPPED_KINGS])
def test_damaged_files_of_the_package_are_built_where_users_have_theirs(folder: Path) -> None:
    assert "--dir" not in rebuild_advice(next(folder.iterdir()))


def test_a_folder_of_an_unknown_user_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, "~nobody9/tables")
    done = crownhead_here("tablebase", "info")
    assert done.returncode == 2
    assert done.stderr == f"crownhead: {FOLDER_VARIABLE} is '~nobody9/tables': there is no such user\n"
