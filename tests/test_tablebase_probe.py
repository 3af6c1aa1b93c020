"""Probing tables: values, distances, missing and damaged files, a cache too small, several threads."""

import gc
import shutil
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit
from programs import PATIENCE
from solved_tables import solve_tables

from engine.bitboard import FAR_ROW, turned
from engine.board import Board
from engine.fen import Color, format_fen
from engine.files import StorageError
from engine.outcomes import DRAW, LOSS, UNKNOWN, WIN
from engine.tablebase import MissingTableError, Tablebase, open_tablebase, store
from engine.tablebase.build import Builder
from engine.tablebase.dense import DenseTables
from engine.tablebase.folder import FOLDER_VARIABLE, SHIPPED
from engine.tablebase.material import materials
from engine.tablebase.probe import DRAWN_PLIES
from engine.tablebase.probing import ABSENT, KNOWN, NOT_LOADED, Tables, probe_loaded
from engine.tablebase.slice_file import TableFileError
from engine.tablebase.store import MIN_CACHE_BLOCKS, BlockStore, find_copies, find_files
from engine.tablebase.wdl_codec import BlockCodec
from learner.endgame.data import EndgameSampler

PIECES = 4


@pytest.fixture(scope="module")
def dense() -> DenseTables:
    return solve_tables(PIECES)


@pytest.fixture(scope="module")
def positions(dense: DenseTables) -> np.ndarray:
    every = [material for n in range(2, PIECES + 1) for material in materials(n)]
    return EndgameSampler(dense, every, seed=3).draw(20_000).positions


@pytest.fixture
def tables() -> Iterator[Tablebase]:
    with open_tablebase(SHIPPED, shipped=False) as opened:
        yield opened


def successors(board: Board) -> list[Board]:
    after = []
    for move in board.legal_moves:
        after.append(board.copy())
        after[-1].push(move)
    return after


def test_every_kind_of_position_has_the_solver_s_value(tables: Tablebase, dense: DenseTables, positions: np.ndarray):
    assert (tables.probe_wdl_many(positions) == dense.lookup(positions)).all()


def test_distances_follow_from_those_of_the_successors(tables: Tablebase, positions: np.ndarray):
    check_distances(tables, positions[:300])


def check_distances(tables: Tablebase, positions: np.ndarray) -> None:
    for own, opp, kings, _ in positions.tolist():
        board = board_of(own, opp, kings)
        values = [tables.probe_wdl(after) for after in successors(board)]
        plies = [tables.probe_distance(after) for after in successors(board)]
        value = max((-v for v in values), default=-1)
        assert tables.probe_wdl(board) == value
        if value == 0:
            assert tables.probe_distance(board) is None
        else:
            ways = [p + 1 for v, p in zip(values, plies, strict=True) if v == -value and p is not None]
            assert tables.probe_distance(board) == (min(ways) if value == 1 else max(ways, default=0))


def test_the_shipped_distances_of_three_kings_against_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CROWNHEAD_TABLEBASE", str(tmp_path))
    squares = np.argsort(np.random.default_rng(6).random((40, 32)), axis=1)[:, :5]
    sides = [(sum(1 << s for s in row[:3]), sum(1 << s for s in row[3:])) for row in squares.tolist()]
    five = [(a, b, a | b, 0) for own, opp in sides for a, b in ((own, opp), (opp, own))]
    with open_tablebase() as tables:
        check_distances(tables, np.array(five, np.uint32))


def board_of(own: int, opp: int, kings: int) -> Board:
    return Board(format_fen(Color.BLACK, own, opp, kings))


def test_arrays_and_boards_agree(tables: Tablebase, positions: np.ndarray):
    few = positions[:200]
    boards = [board_of(own, opp, kings) for own, opp, kings, _ in few.tolist()]
    assert tables.probe_wdl_many(few).tolist() == [tables.probe_wdl(board) for board in boards]
    plies = [tables.probe_distance(board) for board in boards]
    assert tables.probe_distance_many(few).tolist() == [DRAWN_PLIES if p is None else p for p in plies]


def test_white_to_move_is_seen_by_white(tables: Tablebase):
    assert tables.probe_wdl(Board("W:WK10,K11:BK30")) == 1
    assert tables.probe_wdl(Board("B:WK10,K11:BK30")) == -1


def test_a_finished_game_is_lost(tables: Tablebase):
    blocked = Board("B:W32:B28")
    assert not blocked.legal_moves
    assert (tables.probe_wdl(blocked), tables.probe_distance(blocked)) == (-1, 0)
    alone = np.array([[0, 1 << 9, 0]], np.uint32)  # the side to move has lost its last piece
    assert tables.probe_wdl_many(alone).tolist() == [-1]
    assert tables.probe_distance_many(alone).tolist() == [0]


def test_a_search_is_told_outcomes_and_plies(tables: Tablebase, positions: np.ndarray):
    many = np.concatenate([positions[:500], np.array([[*Board().words(), 0]], np.uint32)])
    outcomes, plies = tables.judge(many)
    values = tables.probe_wdl_many(positions[:500])
    assert outcomes.dtype == np.uint8
    assert plies.dtype == np.int16
    assert outcomes.tolist() == [{1: WIN, 0: DRAW, -1: LOSS}[v] for v in values.tolist()] + [UNKNOWN]
    assert plies.tolist() == [*tables.probe_distance_many(positions[:500]).tolist(), -1]


KINGS = (1 << 9, 1 << 20, 1 << 9 | 1 << 20)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (None, "NoneType"),
        ([list(KINGS)], "list"),
        (np.array([KINGS[:2]], np.uint32), r"uint32 \[1, 2\], not uint32 \[N, 3 or more\]"),
        (np.array(KINGS, np.uint32), r"uint32 \[3\]"),
        (np.array([[KINGS]], np.uint32), r"uint32 \[1, 1, 3\]"),
        (np.zeros((0, 0), np.uint32), r"uint32 \[0, 0\]"),
        (np.array([KINGS], np.int64) + (1 << 32), r"int64 \[1, 3\]"),
        (np.array([KINGS], np.float64), r"float64 \[1, 3\]"),
        (np.full((1, 3), np.nan), r"float64 \[1, 3\]"),
        (np.array([KINGS, (3 << 9, 1 << 9, 3 << 9)], np.uint32), "position 1 is impossible .own 0x00000600"),
        (np.array([(1 << 9, 1 << 20, 7 << 9)], np.uint32), "position 0 is impossible"),
        (np.array([(FAR_ROW & -FAR_ROW, 1 << 9, 1 << 9)], np.uint32), "promotion row"),
        (np.array([(1 << 9, int(turned(FAR_ROW)) & -int(turned(FAR_ROW)), 1 << 9)], np.uint32), "promotion row"),
        (np.zeros((2, 3), np.uint32), "position 0 is impossible"),
    ],
)
def test_what_is_no_array_of_positions_is_refused(tables: Tablebase, positions: Any, message: str):
    asked = (tables.probe_wdl_many, lambda p: tables.get_wdl_many(p, 9), tables.probe_distance_many, tables.judge)
    for ask in asked:
        with pytest.raises(ValueError, match=message) as caught:
            ask(positions)
        assert "\n" not in str(caught.value)


def test_arrays_in_any_order_of_memory_are_positions(tables: Tablebase, positions: np.ndarray):
    expected = tables.probe_wdl_many(positions).tolist()
    for same in (positions[:, :3], np.asfortranarray(positions), np.repeat(positions, 2, axis=0)[::2]):
        assert tables.probe_wdl_many(same).tolist() == expected
    assert tables.probe_wdl_many(positions[:0]).tolist() == []


def test_a_missing_table_is_named(tables: Tablebase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    six = Board("W:WK10,K11,22:B9,1,2")
    assert tables.get_wdl(six) is None
    assert tables.get_wdl(six, default="unknown") == "unknown"
    with pytest.raises(MissingTableError, match=r"slice 2013.*build --pieces 6`"):
        tables.probe_wdl(six)
    with pytest.raises(MissingTableError, match="there are tables of at most 8 pieces; this position has 24"):
        tables.probe_wdl(Board())
    with pytest.raises(MissingTableError, match="with 8 pieces, there are only tables of as many on both sides"):
        tables.probe_wdl(Board("W:WK10,K11,22,23,24:B9,1,2"))
    folder = tmp_path / "my tables"
    folder.mkdir()
    with pytest.raises(StorageError, match=rf"my tables holds no tables: .*build --dir '{folder}'`"):
        open_tablebase(folder)
    shutil.copy(SHIPPED / "0011.wdl", folder)
    with open_tablebase(folder) as elsewhere, pytest.raises(MissingTableError, match=f"--pieces 6 --dir '{folder}'`"):
        elsewhere.probe_wdl(six)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "none"))
    nowhere = str(tmp_path / "none")
    with open_tablebase(shipped=False) as none, pytest.raises(MissingTableError, match=f"no table in {nowhere} covers"):
        none.probe_wdl(six)
    position = np.array([six.words()], np.uint32)
    assert tables.get_wdl_many(position, default=7).tolist() == [7]
    with pytest.raises(MissingTableError):
        tables.probe_wdl_many(position)


def test_values_without_distances(tmp_path: Path):
    for path in SHIPPED.glob("*.wdl"):
        shutil.copy(path, tmp_path)
    board = Board("W:WK10,K11:BK30")
    with open_tablebase(tmp_path, shipped=False) as tables:
        assert tables.probe_wdl(board) == 1
        with pytest.raises(MissingTableError, match=r"distances.*--distance"):
            tables.probe_distance(board)
        outcomes, plies = tables.judge(np.array([[*board.words(), 0]], np.uint32))
        assert (outcomes.tolist(), plies.tolist()) == ([WIN], [-1])


def test_a_folder_that_is_half_there_answers_what_it_can(tmp_path: Path, dense: DenseTables, positions: np.ndarray):
    gone = "1100"
    for path in SHIPPED.glob("*.wdl"):
        if not path.name.startswith(gone):
            shutil.copy(path, tmp_path)
    values = dense.lookup(positions)
    with open_tablebase(tmp_path, shipped=False) as tables:
        found = tables.get_wdl_many(positions, default=9)
        assert (found[found != 9] == values[found != 9]).all()
        unknown = np.bitwise_count(positions[:, 0] | positions[:, 1])[found == 9]
        assert 0 < len(unknown) < len(positions) / 4
        assert tables.get_wdl(Board("W:WK10:BK30")) is None
    with open_tablebase(tmp_path) as tables:
        assert (tables.probe_wdl_many(positions) == values).all()


def test_a_small_cache_gives_the_same_answers(dense: DenseTables, positions: np.ndarray):
    blocks = BlockStore(find_copies([SHIPPED]), cache_bytes=1)
    caches = (blocks._blocks.values, blocks._blocks.halves)
    for cache in caches:
        assert len(cache.ticks) == min(MIN_CACHE_BLOCKS, len(cache.slots))
    values, halves = (cache._replace(data=cache.data[:9], ticks=cache.ticks[:9]) for cache in caches)
    wanted = blocks._blocks.wanted[:, :3].copy()
    blocks._blocks = blocks._blocks._replace(values=values, halves=halves, wanted=wanted)
    blocks._blocks_at = [np.full(9, -1, np.int64) for _ in caches]
    few = positions[:400]
    scores, states = blocks.probe(few, False)
    assert (states == 0).all()
    assert (scores == dense.lookup(few)).all()
    with open_tablebase(SHIPPED) as tables:
        plies = tables.probe_distance_many(few)
    scores, _ = blocks.probe(few, True)
    assert (np.where(scores == 0, DRAWN_PLIES, 1000 - np.abs(scores)) == plies).all()
    blocks.close()


def test_what_decodes_blocks_takes_little_memory(
    dense: DenseTables, positions: np.ndarray, monkeypatch: pytest.MonkeyPatch
):
    made = weakref.WeakSet[BlockCodec]()

    def make(*arguments: Any) -> BlockCodec:
        codec = BlockCodec(*arguments)
        made.add(codec)
        return codec

    monkeypatch.setattr(store, "BlockCodec", make)
    monkeypatch.setattr(store, "_CODEC_BYTES", 0)
    blocks = BlockStore(find_copies([SHIPPED]), cache_bytes=1)
    order = np.random.default_rng(0).permutation(len(positions))[:2000]
    for part in np.array_split(positions[order], 20):
        scores, states = blocks.probe(part, False)
        assert (scores == dense.lookup(part)).all()
        assert (states == KNOWN).all()
    gc.collect()
    assert 0 < len(made) <= store._FEWEST_CODECS
    blocks.close()


def test_who_does_not_wait_is_told_as_soon_as_blocks_are_there(dense: DenseTables, positions: np.ndarray):
    values = dense.lookup(positions)
    with open_tablebase(SHIPPED, shipped=False) as tables:
        outcomes, plies = tables.judge(positions, patient=False)
        unknown = outcomes == UNKNOWN
        assert unknown.any()
        assert (plies[unknown] == -1).all()
        rounds = 0
        while unknown.any():  # what is asked for is read meanwhile, a bounded number of blocks at once
            assert len(tables._store._loading) <= 64
            time.sleep(0.01)
            outcomes[unknown], plies[unknown] = tables.judge(positions[unknown], patient=False)
            unknown = outcomes == UNKNOWN
            rounds += 1
            assert rounds < 3000
        assert (outcomes == np.array([LOSS, DRAW, WIN])[values + 1]).all()
        with open_tablebase(SHIPPED) as patient:
            assert (np.stack(patient.judge(positions)) == np.stack(tables.judge(positions))).all()


def test_a_damaged_file_is_told_of_even_who_does_not_wait(tmp_path: Path):
    data = bytearray((SHIPPED / "1100.wdl").read_bytes())
    data[-100] ^= 4
    (tmp_path / "1100.wdl").write_bytes(data)
    board = np.array([Board("W:WK10:BK19").words()], np.uint32)

    def ask_often(tables: Tablebase) -> None:
        for _ in range(1000):
            assert (tables.judge(board, patient=False)[0] == UNKNOWN).all()
            time.sleep(0.01)

    damaged = pytest.raises(TableFileError, match=r"1100\.wdl is damaged")
    with open_tablebase(tmp_path, shipped=False) as tables, damaged:
        ask_often(tables)


@njit(cache=True, nogil=True)
def look_up_all(positions, tables, values, plies, states):
    """``probe_loaded`` of every position, without Python's lock."""
    for i in range(positions.shape[0]):
        own, opp, kings = positions[i, 0], positions[i, 1], positions[i, 2]
        values[i], plies[i], states[i] = probe_loaded(own, opp, kings, tables)


def looked_up(positions: np.ndarray, tables: Tables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values, plies, states = (np.full(len(positions), 77, np.int64) for _ in range(3))
    look_up_all(positions, tables, values, plies, states)
    return values, plies, states


OUTCOMES = np.array([DRAW, WIN, LOSS], np.uint8)  # by value


def test_what_is_in_memory_can_be_looked_up_in_compiled_code(tables: Tablebase, positions: np.ndarray):
    compiled = tables.compiled()
    assert int(compiled.max_pieces[0]) == tables.max_pieces
    _, _, states = looked_up(positions, compiled)
    assert (states == NOT_LOADED).mean() > 0.9, "the others follow from captures of the last piece"
    assert set(states) == {KNOWN, NOT_LOADED}
    outcomes, plies = tables.judge(positions)
    values, found, states = looked_up(positions, compiled)
    assert (states == KNOWN).all()
    assert (OUTCOMES[values] == outcomes).all()
    assert (np.where(values == 0, -1, found) == np.where(outcomes == DRAW, -1, plies)).all()
    assert (plies[outcomes != DRAW] >= 0).all()


def test_looking_up_says_what_there_is_no_table_of(tmp_path: Path, positions: np.ndarray):
    for path in SHIPPED.glob("*.wdl"):
        if path.name != "1001.wdl":
            shutil.copy(path, tmp_path)
    with open_tablebase(tmp_path, shipped=False) as tables:
        outcomes, judged = tables.judge(positions)
        values, plies, states = looked_up(positions, tables.compiled())
    known = states == KNOWN
    assert ((outcomes != UNKNOWN) == known).all()
    assert (OUTCOMES[values[known]] == outcomes[known]).all()
    assert (plies[known] == judged[known]).all()
    assert (plies[known] == -1).mean() > 0.8, "there are no distances, but some win by captures alone"
    assert set(states[~known]) == {ABSENT}
    assert 0 < known.sum() < len(known)


def test_no_reader_believes_a_block_that_is_being_replaced(tables: Tablebase, positions: np.ndarray):
    few = positions[:200]
    tables.judge(few)
    compiled = tables.compiled()
    compiled.epoch[0] += 1  # odd: a block is being replaced
    values, plies, states = looked_up(few, compiled)
    assert (states == NOT_LOADED).all()
    assert not values.any()
    assert (plies == -1).all()
    compiled.epoch[0] += 1
    assert (looked_up(few, compiled)[2] == KNOWN).all()


def test_readers_beside_a_thread_that_replaces_blocks(
    dense: DenseTables, positions: np.ndarray, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store, "MIN_CACHE_BLOCKS", 12)
    monkeypatch.setattr(store, "_MOST_WANTED", 3)
    expected = dense.lookup(positions)
    with open_tablebase(SHIPPED, cache_bytes=1) as tables, ThreadPoolExecutor(1) as pool:
        compiled, known = tables.compiled(), 0
        looked_up(positions[:1], compiled)  # compiles
        replacing = pool.submit(lambda: [tables.judge(positions[i : i + 20]) for i in range(0, 1000, 20)])
        while not replacing.done():
            values, _, states = looked_up(positions, compiled)
            there = states == KNOWN
            assert (values[there] == expected[there]).all()
            known += int(there.sum())
        replacing.result()
        assert known > 0
        assert compiled.epoch[0] > 50


def test_threads_share_a_tablebase(tables: Tablebase, dense: DenseTables, positions: np.ndarray):
    parts = np.array_split(positions, 8)
    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(tables.probe_wdl_many, parts))
    assert (np.concatenate(found) == dense.lookup(positions)).all()


def test_closed_tables_say_so():
    with open_tablebase(SHIPPED) as tables:
        pass
    with pytest.raises(ValueError, match="closed"):
        tables.probe_wdl(Board("W:WK10:BK30"))
    tables.close()


def test_a_flipped_bit_is_found_when_it_is_read(tmp_path: Path):
    for path in SHIPPED.glob("*.wdl"):
        shutil.copy(path, tmp_path)
    damaged = tmp_path / "2200.wdl"
    data = bytearray(damaged.read_bytes())
    data[-100] ^= 4
    damaged.write_bytes(data)
    with open_tablebase(tmp_path, shipped=False) as tables:
        assert tables.probe_wdl(Board("W:WK10,K11:BK30")) == 1
        for _ in range(2):
            with pytest.raises(TableFileError, match=r"2200\.wdl is damaged"):
                tables.probe_wdl(Board("W:WK10,K11:BK30,K1"))


@pytest.mark.parametrize("place", [0, 100, -100])
def test_of_a_damaged_file_the_copy_of_the_package_is_read(tmp_path: Path, place: int, caplog):
    """With damage that is noticed on opening, or when the file is read for the first time."""
    damaged = tmp_path / "2200.wdl"
    data = bytearray((SHIPPED / "2200.wdl").read_bytes())
    data[place] ^= 4
    damaged.write_bytes(data)
    with open_tablebase(tmp_path) as tables, open_tablebase(SHIPPED) as sound:
        for fen in ("W:WK10,K11:BK30,K1", "W:WK10,K11:BK29,K1", "B:WK10,K11:BK29,K1"):
            assert tables.probe_wdl(Board(fen)) == sound.probe_wdl(Board(fen))
    (record,) = caplog.records
    assert str(damaged) in record.getMessage()
    assert f"{SHIPPED / '2200.wdl'} is read" in record.getMessage()


def test_a_damaged_header_is_refused_at_once(tmp_path: Path):
    (tmp_path / "1100.wdl").write_bytes(b"CRWNTAB0" + bytes(100))
    message = r"1100\.wdl is not a table of this version"
    with pytest.raises(TableFileError, match=message), open_tablebase(tmp_path, shipped=False):
        pass


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(OSError, match="cannot read the folder"), open_tablebase(tmp_path / "none"):
        pass


def test_other_files_are_left_alone(tmp_path: Path):
    for name in ("1100.wdl.123-abc.tmp", "notes.txt", "0000.wdl", "0110.wdl"):  # no slice, and one that is not a pair's
        (tmp_path / name).write_text("x")
    assert find_files([tmp_path]) == {}


def test_the_default_folder_need_not_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CROWNHEAD_TABLEBASE", str(tmp_path / "none"))
    with open_tablebase() as tables:
        assert tables.max_pieces == 5
        assert tables.probe_wdl(Board("W:WK10,K11:BK30")) == 1
    for _ in Builder(tmp_path / "none", 2).run():
        pass
    with open_tablebase(shipped=False) as tables:
        assert tables.max_pieces == 2


def test_closing_tables_ends_the_waiting_of_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are asked for by a thread, and the tables closed by another before all of them are read."""
    store, load, begun = BlockStore(find_copies([SHIPPED]), 64 << 20), BlockStore._load, threading.Event()

    def slow(self: BlockStore, *block: Any) -> Any:
        begun.set()
        time.sleep(0.1)
        return load(self, *block)

    fens = ["B:WK10:BK19", "B:WK10,K11:BK19", "B:WK10,K11:BK19,K20", "B:WK10,K11,K12:BK19,K20", "B:W21,22:B3,K20"]
    words = np.array([Board(fen).words() for fen in fens], np.uint32)
    said: list[BaseException] = []

    def probe() -> None:
        try:
            store.probe(words, False)
        except ValueError as error:
            said.append(error)

    monkeypatch.setattr(BlockStore, "_load", slow)
    prober = threading.Thread(target=probe, daemon=True)
    prober.start()
    assert begun.wait(PATIENCE)
    store.close()
    prober.join(PATIENCE)
    assert not prober.is_alive()
    assert all("closed" in str(error) for error in said)


def test_a_search_that_does_not_wait_asks_for_no_more_until_the_loader_has_rested(
    positions: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, load = threading.Event(), BlockStore._load

    def held_back(self: BlockStore, *block: Any) -> None:
        counted.wait(PATIENCE)
        load(self, *block)

    monkeypatch.setattr(BlockStore, "_load", held_back)
    with open_tablebase(SHIPPED, shipped=False) as tables:
        compiled = tables.compiled()
        assert (compiled.resting[0], compiled.waits[0]) == (0, 1)
        assert (tables.judge(positions, patient=False)[0] == UNKNOWN).any()
        assert (compiled.resting[0], tables._store._at_leisure) == (1, len(tables._store._loading))
        assert 0 < tables._store._at_leisure <= store._AT_LEISURE
        counted.set()
        tables.judge(positions)  # who waits gets all, before the rests are over
        while compiled.resting[0]:
            time.sleep(0.001)
        assert tables._store._at_leisure == 0
        assert (tables.judge(positions, patient=False)[0] != UNKNOWN).all()
        assert compiled.resting[0] == 0


def test_the_loader_rests_longer_than_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    worked: list[float] = []
    load = BlockStore._load

    def timed(self: BlockStore, *block: Any) -> None:
        begun = time.perf_counter()
        load(self, *block)
        worked.append(time.perf_counter() - begun)

    monkeypatch.setattr(BlockStore, "_load", timed)
    board = np.array([Board("W:WK10,K11:BK19,K20").words()], np.uint32)
    with open_tablebase(SHIPPED, shipped=False) as tables:
        tables._store._hurry = SimpleNamespace(wait=rests.append, set=lambda: None)  # type: ignore[assignment]
        while (tables.judge(board, patient=False)[0] == UNKNOWN).any():
            time.sleep(0.001)
        tables._store._loader.shutdown()
    assert len(rests) == len(worked) > 0
    assert store._REST > 1
    assert all(rest >= store._REST * work for rest, work in zip(rests, worked, strict=True))
