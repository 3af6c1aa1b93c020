"""Game records and their shards: reading gives what was written, and damage is always noticed."""

import copy
import errno
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from replayed import boards_of

from engine import files
from engine.board import Board
from engine.fen import START_FEN, Color
from engine.pdn import read_games
from engine.players.base import search_moves
from selfplay.games import shards
from selfplay.games.records import GameRecord, GameRecordBuilder, RecordError, Samples, offsets_of
from selfplay.games.shards import ShardError, read_shard, read_shard_info, write_shard
from selfplay.games_command import games_command
from selfplay.requests import GamesRequest, RequestError
from selfplay.run.reached import ReachedError

COLUMNS = ("positions", "policy_offsets", "move_probabilities", "search_wdl", "result", "has_policy", "ply", "kind")
KINGS_FEN = "W:W18,K25:BK7,11"


def make_record(seed: int, start_fen: str = START_FEN, max_plies: int = 200) -> GameRecord:
    """A random game with random policies; two in three searches are full ones, forced moves are not searched."""
    rng = np.random.default_rng(seed)
    builder = GameRecordBuilder(f"net{seed % 3}", start_fen)
    board = Board(start_fen)
    while board.outcome() is None and board.ply < max_plies:
        moves = search_moves(board)
        if len(moves) > 1:
            policy = rng.dirichlet(np.ones(len(moves))) if rng.random() < 2 / 3 else None
            builder.add_search([*board.words(), board.reversible_plies], rng.dirichlet(np.ones(3)), policy)
        index = int(rng.integers(len(moves)))
        builder.add_move(index)
        board.push(moves[index])
    outcome = board.outcome()
    if outcome is None:
        return builder.finish(0, "PLY_CAP")
    return builder.finish({Color.BLACK: 1, Color.WHITE: -1, None: 0}[outcome.winner], outcome.termination.name)


@pytest.fixture(scope="session")
def records() -> list[GameRecord]:
    return [make_record(seed) for seed in range(6)] + [make_record(7, KINGS_FEN), make_record(8, START_FEN, 9)]


@pytest.fixture
def shard_path(tmp_path: Path, records: list[GameRecord]) -> Path:
    path = tmp_path / "00000000.shard"
    write_shard(path, records)
    return path


def test_games_are_written_as_pdn(shard_path: Path, records: list[GameRecord]) -> None:
    out = shard_path.with_name("games.pdn")
    assert games_command(GamesRequest(shard_path.parent, out), True) == {"path": str(out), "games": len(records)}
    games = list(read_games(out.read_text()))
    assert len(games) == len(records)
    for game, record in zip(games, records, strict=True):
        *_, last = record.positions()
        assert [*game.board().words(), game.board().reversible_plies] == last.tolist()
        assert game.result == {1: "1-0", 0: "1/2-1/2", -1: "0-1"}[record.result]
        assert game.headers["Black"] == record.network
    before = out.read_bytes()
    with pytest.raises(RequestError, match="exists already"):
        games_command(GamesRequest(shard_path.parent, out), True)
    assert out.read_bytes() == before


def test_a_shard_that_cannot_be_read_is_named(shard_path: Path) -> None:
    """It was the PDN file that could not be written, as it was said."""
    shard_path.with_name("9.shard").mkdir()
    out = shard_path.with_name("games.pdn")
    with pytest.raises(files.StorageError, match=r"^cannot read .*9\.shard: "):
        games_command(GamesRequest(shard_path.parent, out), True)
    assert {path.name for path in shard_path.parent.iterdir()} == {shard_path.name, "9.shard"}


def test_a_folder_without_games_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReachedError, match="no games"):
        games_command(GamesRequest(tmp_path, tmp_path / "games.pdn"), True)


def assert_equal_records(left: GameRecord, right: GameRecord) -> None:
    for name in ("start_fen", "result", "termination", "network"):
        assert getattr(left, name) == getattr(right, name)
    np.testing.assert_array_equal(left.moves, right.moves)
    assert_equal_samples(left.samples, right.samples)


def assert_equal_samples(left: Samples, right: Samples) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
        assert getattr(left, name).dtype == getattr(right, name).dtype


# Records


def test_record_replays_to_the_positions_that_were_searched(records: list[GameRecord]) -> None:
    for record in records:
        samples = record.samples
        searched = dict(zip(samples.ply.tolist(), range(len(samples)), strict=True))
        winner = {1: Color.BLACK, -1: Color.WHITE, 0: None}[record.result]
        final, positions = None, record.positions()
        assert len(positions) == len(record.moves) + 1
        for ply, board in enumerate(boards_of(record)):
            final = board
            assert tuple(positions[ply]) == (*board.words(), board.reversible_plies)
            moves = [] if board.outcome() else search_moves(board)
            assert (ply in searched) == (len(moves) > 1 and ply < len(record.moves))
            if ply in searched:
                row = searched[ply]
                assert tuple(samples.positions[row]) == (*board.words(), board.reversible_plies)
                policy = np.diff(samples.policy_offsets)[row]
                assert policy == (len(moves) if samples.has_policy[row] else 0)
                expected = 1 if winner is None else 0 if winner is board.turn else 2
                assert samples.result[row] == expected
        assert final is not None
        if record.termination != "PLY_CAP":
            outcome = final.outcome()
            assert outcome is not None
            assert (outcome.winner, outcome.termination.name) == (winner, record.termination)


def test_record_with_a_move_that_does_not_exist() -> None:
    builder = GameRecordBuilder("net")
    builder.add_move(7)
    with pytest.raises(RecordError, match="ply 0: there is no move number 7"):
        builder.finish(0, "PLY_CAP").positions()


def test_builder_refuses_nonsense() -> None:
    def builder_with(wdl: list[float], policy: list[float] | None) -> GameRecordBuilder:
        builder = GameRecordBuilder("net")
        builder.add_search([*two_moves, 0], wdl, policy)
        return builder

    two_moves = Board("B:W32:B6").words()

    assert len(builder_with([0.5, 0.25, 0.25], [0.5, 0.5]).finish(1, "NO_MOVES").samples) == 1
    for wdl, policy in (
        ([0.5, 0.25, 0.2], [0.5, 0.5]),
        ([1.5, -0.5, 0.0], None),
        ([1.0, 0.0, 0.0], [0.5, 0.4]),
        ([1.0, 0.0, 0.0], [1.5, -0.5]),
        ([1.0, 0.0, 0.0], [float("nan"), 0.5]),
        ([1.0, 0.0, 0.0], []),
        ([1.0, 0.0, 0.0], [0.4, 0.3, 0.3]),
        ([1.0, 0.0, 0.0], [1 / 129] * 129),
    ):
        with pytest.raises(RecordError):
            builder_with(wdl, policy).finish(1, "NO_MOVES")
    with pytest.raises(RecordError, match="result is 2"):
        GameRecordBuilder("net").finish(2, "NO_MOVES")
    with pytest.raises(RecordError, match="128 is not an index"):
        GameRecordBuilder("net").add_move(128)
    with pytest.raises(RecordError, match="searched already"):
        builder_with([1, 0, 0], None).add_search([1, 2, 0, 0], [1, 0, 0], None)


def test_samples_cut_and_taken(records: list[GameRecord]) -> None:
    samples = records[0].samples

    def row(part: Samples, index: int) -> list[list[float]]:
        policy = part.move_probabilities[part.policy_offsets[index] : part.policy_offsets[index + 1]]
        columns = (part.positions[index], part.search_wdl[index], policy)
        scalars = [float(part.result[index]), float(part.has_policy[index]), float(part.ply[index])]
        return [*(column.tolist() for column in columns), scalars]

    part = samples[3:9]
    assert [row(part, i) for i in range(len(part))] == [row(samples, i) for i in range(3, 9)]
    assert part.policy_offsets[0] == 0
    assert part.policy_offsets[-1] == len(part.move_probabilities)
    assert len(part.move_probabilities) < len(samples.move_probabilities)
    chosen = np.array([5, 0, 5, len(samples) - 1, 2])
    assert [row(samples.take(chosen), i) for i in range(5)] == [row(samples, i) for i in chosen]
    again = part.take(np.array([0]))
    assert row(again, 0) == row(samples, 3)
    assert len(samples[4:2]) == 0
    assert len(samples.take(np.zeros(0, np.int64))) == 0
    with pytest.raises(IndexError, match="steps of 2"):
        samples[::2]


# Shards


def test_shard_gives_back_the_records(shard_path: Path, records: list[GameRecord]) -> None:
    shard = read_shard(shard_path)
    for written, read in zip(records, shard.iter_games(), strict=True):
        assert_equal_records(written, read)
    assert shard.info == read_shard_info(shard_path)
    assert shard.info.games == len(records)
    assert shard.info.moves == sum(len(record.moves) for record in records)
    assert shard.info.samples == sum(len(record.samples) for record in records) == len(shard.samples)
    assert shard.info.networks == ("net0", "net1", "net2")
    assert shard.info.file_bytes == shard_path.stat().st_size
    assert shard.info.file_bytes < sum(column.nbytes for column in vars(shard.samples).values())


def test_shard_of_games_without_samples(tmp_path: Path) -> None:
    empty = GameRecordBuilder("net").finish(0, "PLY_CAP")
    write_shard(tmp_path / "a.shard", [empty])
    (game,) = read_shard(tmp_path / "a.shard").iter_games()
    assert_equal_records(empty, game)


def test_shard_is_the_same_file_twice(tmp_path: Path, records: list[GameRecord]) -> None:
    for name in ("a", "b"):
        write_shard(tmp_path / name, records)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = list(read_shard(tmp_path / "a").iter_games())
    write_shard(tmp_path / "c", again)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


def test_no_shard_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="1 to"):
        write_shard(tmp_path / "a.shard", [])
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_is_found(shard_path: Path) -> None:
    whole = shard_path.read_bytes()
    step = max(1, len(whole) // 150)
    for length in [*range(0, 60), *range(60, len(whole), step), len(whole) - 1]:
        shard_path.write_bytes(whole[:length])
        for read in (read_shard, read_shard_info):
            with pytest.raises(ShardError, match=r"00000000\.shard"):
                read(shard_path)
    shard_path.write_bytes(whole + b"\0")
    with pytest.raises(ShardError, match="bytes of payload"):
        read_shard_info(shard_path)


@settings(max_examples=150, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(tmp_path_factory: pytest.TempPathFactory, place: float, bit: int) -> None:
    path = tmp_path_factory.getbasetemp() / "flipped.shard"
    if not path.exists():
        write_shard(path, [make_record(3)])
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[int(place * len(whole))] ^= 1 << bit
    path.write_bytes(damaged)
    try:
        with pytest.raises(ShardError, match=r"flipped\.shard"):
            read_shard(path)
    finally:
        path.write_bytes(whole)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200), magic=st.booleans())
def test_foreign_files_give_the_documented_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, magic: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "foreign.shard"
    path.write_bytes(shards.MAGIC * magic + data)
    cut_off = magic or (data and shards.MAGIC.startswith(data))
    with pytest.raises(ShardError, match="damaged" if cut_off else "not a shard"):
        read_shard(path)


def test_shards_of_the_first_version_are_read() -> None:
    """The file was written by an old version, in which all samples were positions of games."""
    games = list(read_shard(Path(__file__).parent / "data" / "version1.shard").iter_games())
    assert len(games) == 3
    for seed, game in enumerate(games):
        assert_equal_records(game, make_record(seed, max_plies=30))


def forge(path: Path, **changes: object) -> None:
    """Rewrites a shard's header with correct checksums, as an attacker could."""
    whole = path.read_bytes()
    start = len(shards.MAGIC) + 4 + 32
    end = start + int.from_bytes(whole[len(shards.MAGIC) : len(shards.MAGIC) + 4], "little")
    header = json.loads(whole[start:end])
    for name, value in changes.items():
        header[name] = value(header[name]) if callable(value) else value
    text = json.dumps(header).encode()
    prefix = shards.MAGIC + len(text).to_bytes(4, "little") + bytes.fromhex(files.sha256_of(text))
    path.write_bytes(prefix + text + whole[end:])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 3}, r"has schema version 3; this program reads \(1, 2\)"),
        ({"schema_version": 1}, "unreadable header: the columns are"),
        ({"schema_version": "x"}, "unreadable header: schema_version"),
        ({"rules": "20,W,10,10"}, "other rules"),
        ({"games": 2**40}, "unreadable header: games"),
        ({"games": lambda games: games - 1}, "does not fit the counts"),
        ({"samples": 2**62}, "unreadable header: samples"),
        ({"surprise": 1}, "unreadable header: surprise"),
        ({"networks": []}, "contradict each other"),
        ({"terminations": []}, "contradict each other"),
        ({"columns": {}}, "the columns are"),
        ({"columns": lambda columns: dict(reversed(columns.items()))}, "the columns are"),
        ({"columns": lambda columns: {**columns, "ply": {**columns["ply"], "dtype": "|O"}}}, "column ply"),
        ({"columns": lambda columns: {**columns, "ply": {**columns["ply"], "offset": 0}}}, "column ply"),
        ({"payload_sha256": "00"}, "checksum of its payload"),
    ],
)
def test_forged_headers(shard_path: Path, changes: dict[str, object], message: str) -> None:
    forge(shard_path)
    read_shard(shard_path)
    forge(shard_path, **changes)
    with pytest.raises(ShardError, match=message) as caught:
        read_shard(shard_path)
    assert "00000000.shard" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_header_of_deeply_nested_json(tmp_path: Path) -> None:
    text = b"[" * 100_000
    prefix = shards.MAGIC + len(text).to_bytes(4, "little") + bytes.fromhex(files.sha256_of(text))
    (tmp_path / "a.shard").write_bytes(prefix + text)
    with pytest.raises(ShardError, match="unreadable header"):
        read_shard(tmp_path / "a.shard")


@pytest.mark.parametrize("stated", [True, False])
def test_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: bool) -> None:
    """A column that unpacks to a gigabyte, with all checksums right, is refused before it is unpacked."""
    chunk = zstandard.ZstdCompressor().compressobj(size=2**30) if stated else zstandard.ZstdCompressor().compressobj()
    bomb = b"".join(chunk.compress(bytes(2**24)) for _ in range(64)) + chunk.flush()
    honest = zstandard.ZstdCompressor()
    frames: list[bytes] = []

    class Bomber:
        def __init__(self, level: int) -> None:
            pass

        def compress(self, data: bytes) -> bytes:
            frames.append(bomb if len(frames) == 6 else honest.compress(data))
            return frames[-1]

    with monkeypatch.context() as patch:
        patch.setattr(shards.zstandard, "ZstdCompressor", Bomber)
        write_shard(tmp_path / "a.shard", [make_record(1)])
    with pytest.raises(ShardError, match="column moves: it does not hold"):
        read_shard(tmp_path / "a.shard")


def test_columns_that_contradict_each_other(tmp_path: Path, records: list[GameRecord]) -> None:
    samples = records[0].samples
    wrong = np.ones_like(samples.has_policy)
    bad = GameRecord(
        START_FEN, records[0].moves, 0, "PLY_CAP", "net", Samples(**{**vars(samples), "has_policy": wrong})
    )
    write_shard(tmp_path / "a.shard", [bad])
    with pytest.raises(ShardError, match="contradict"):
        read_shard(tmp_path / "a.shard")


def test_missing_shard_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(files.StorageError, match="cannot read"):
        read_shard(tmp_path / "a.shard")


# Files


def test_atomic_write_replaces_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.atomic_write(path, b"one")
    assert path.read_bytes() == b"one"
    files.atomic_write(path, lambda file: file.write(b"two"))
    assert path.read_bytes() == b"two"

    def half(file: object) -> None:
        file.write(b"th")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.atomic_write(path, half)
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert files.sha256_of(path) == files.sha256_of(b"two")
    assert files.sha256_of(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_full_disk(tmp_path: Path, records: list[GameRecord], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.shard"
    path.write_bytes(b"before")

    def no_room(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(files.StorageError) as caught:
        write_shard(path, records)
    assert caught.value.errno == errno.ENOSPC
    assert str(caught.value) == f"cannot write {path}: {os.strerror(errno.ENOSPC)}"
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.shard"]
    twin = copy.copy(caught.value)  # made anew from its arguments, as when it comes from another process
    assert (str(twin), twin.errno) == (str(caught.value), errno.ENOSPC)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a process's files")
def test_disk_that_fills_up_in_the_middle(tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(files.StorageError, match=r"cannot write .*file: File too large"):
            files.atomic_write(tmp_path / "file", bytes(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written(tmp_path: Path, records: list[GameRecord]) -> None:
    with pytest.raises(files.StorageError, match=r"cannot write .*a\.shard: No such file or directory"):
        write_shard(tmp_path / "missing" / "a.shard", records)
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises(files.StorageError, match="cannot make the folder"):
        files.make_folder(tmp_path / "plain" / "folder")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_read_only_folder(records: list[GameRecord]) -> None:
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.shard"
        Path(folder).chmod(0o555)
        if root:  # nothing is read-only to the superuser
            os.seteuid(65534)
        try:
            with pytest.raises(files.StorageError, match=r"cannot write .*a\.shard: Permission denied"):
                write_shard(path, records)
        finally:
            if root:
                os.seteuid(0)
            Path(folder).chmod(0o755)


def test_windows_waits_for_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, attempts = os.replace, []

    def busy(source: Path, target: Path) -> None:
        attempts.append(source)
        if len(attempts) < 3:
            raise PermissionError(errno.EACCES, "in use")
        replace(source, target)

    monkeypatch.setattr(os, "replace", busy)
    monkeypatch.setattr(files, "_REPLACE_PAUSE_S", 0.0)
    with pytest.raises(files.StorageError, match="in use"):
        files.atomic_write(tmp_path / "file", b"one")
    monkeypatch.setattr(files, "WINDOWS", True)
    attempts.clear()
    files.atomic_write(tmp_path / "file", b"one")
    assert len(attempts) == 3
    assert (tmp_path / "file").read_bytes() == b"one"


def test_stale_temporaries_go(tmp_path: Path) -> None:
    names: list[Path] = []
    for _ in range(2):
        files.atomic_write(tmp_path / "a.shard", lambda file: names.append(Path(file.name)))
    old, new = names
    others = [tmp_path / "a.shard", tmp_path / "notes.tmp", tmp_path / "x.1-ab.tmp"]
    for path in (old, new, *others):
        path.write_bytes(b"")
        if path != new:
            os.utime(path, (0, 0))
    files.remove_stale_temporaries(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([new, *others])


def test_offsets_of() -> None:
    assert offsets_of(np.array([2, 0, 3], np.uint8)).tolist() == [0, 2, 2, 5]
    assert offsets_of(np.full(3, 200, np.uint8)).tolist() == [0, 200, 400, 600]
    assert offsets_of(np.zeros(0, np.uint8)).tolist() == [0]


@pytest.mark.skipif(os.name == "nt", reason="permissions of Unix")
def test_the_permissions_of_a_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.atomic_write(path, b"new")
    made = path.stat().st_mode
    (tmp_path / "plain").touch()
    assert made == (tmp_path / "plain").stat().st_mode
    for mode in (0o600, 0o640, 0o664):
        path.chmod(mode)
        files.atomic_write(path, b"again")
        assert path.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.name == "nt", reason="pipes and links of Unix")
def test_devices_and_pipes_are_refused_and_links_stay(tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    with pytest.raises(files.StorageError, match=r"pipe: it is a device or pipe; name a file"):
        files.atomic_write(pipe, b"one")
    assert pipe.is_fifo()
    link.symlink_to(file)
    files.atomic_write(link, b"one")
    assert link.is_symlink()
    assert file.read_bytes() == b"one"
    assert set(os.listdir(tmp_path)) == {"pipe", "link", "file"}
