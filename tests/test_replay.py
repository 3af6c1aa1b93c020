"""The replay window against a plain list, and with damage that can happen to a folder of shards."""

import dataclasses
import json
import logging
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from test_shards import assert_equal_samples, make_record

from engine import files
from learner.batch import BatchError
from selfplay.games import replay
from selfplay.games.records import ROW_COLUMNS, GameRecord, Samples, offsets_of
from selfplay.games.replay import ReplayBuffer, ReplayConfig, to_training_batch, window_size
from selfplay.games.shards import ShardError, pack_shard


@pytest.fixture(scope="session")
def games() -> list[GameRecord]:
    return [make_record(seed) for seed in range(24)]


def fill(buffer: ReplayBuffer, games: list[GameRecord], per_shard: int = 3) -> list[Samples]:
    """Adds shards of several games each; returns their samples in order."""
    rows = []
    for first in range(0, len(games), per_shard):
        added = buffer.store(pack_shard(games[first : first + per_shard]))
        new = [game.samples[i : i + 1] for game in games[first : first + per_shard] for i in range(len(game.samples))]
        assert added is not None
        assert added.samples == len(new)
        rows += new
    return rows


def window_of(buffer: ReplayBuffer) -> Samples:
    """All samples of the window in order, as ``sample`` draws them."""

    class InOrder:
        def integers(self, high: int, size: int) -> np.ndarray:
            assert high == size
            return np.arange(size)

    return buffer.sample(buffer.window_samples, InOrder())  # type: ignore[arg-type]


def assert_holds(buffer: ReplayBuffer, rows: list[Samples]) -> None:
    window = window_of(buffer)
    assert len(window) == len(rows)
    for i, row in enumerate(rows):
        assert_equal_samples(window[i : i + 1], row)


def test_window_size() -> None:
    config = ReplayConfig()
    assert [window_size(n, config) for n in (0, 1, 250_000)] == [0, 1, 250_000]
    # Wu 2019 states the formula, and that it was made to leave N = c with slope beta.
    assert window_size(350_000, config) - window_size(250_000, config) == pytest.approx(0.4 * 100_000, rel=0.05)
    assert window_size(16 * 250_000, config) == int(250_000 * (1 + 0.4 * (8 - 1) / 0.75))  # 16 ** 0.75 = 8
    steps = np.diff([window_size(n, config) for n in range(0, 3_000_000, 10_000)])
    assert (steps > 0).all()
    assert (steps[:25] == 10_000).all()
    assert (np.diff(steps[25:]) <= 1).all()  # ever slower, up to rounding


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ValidationError):
        ReplayConfig(window=3)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        ReplayConfig(window_exponent=1.5)


@pytest.mark.parametrize("start", [40, 300, 10_000])
def test_window_holds_the_newest_samples(tmp_path: Path, games: list[GameRecord], start: int) -> None:
    config = ReplayConfig(window_start=start)
    buffer = ReplayBuffer(tmp_path, config)
    rows: list[Samples] = []
    for first in range(0, len(games), 6):
        rows += fill(buffer, games[first : first + 6])
        expected = rows[-window_size(len(rows), config) :]
        assert_holds(buffer, expected)
        assert (buffer.total_samples, buffer.total_games) == (len(rows), first + 6)
    assert_holds(ReplayBuffer(tmp_path, config), expected)  # and the same when it is opened again


def test_only_shards_in_the_window_are_read(
    tmp_path: Path, games: list[GameRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ReplayConfig(window_start=60, window_slope=0.0)
    rows = fill(ReplayBuffer(tmp_path, config), games)
    read, read_shard = [], replay.read_shard

    def noted(path: Path) -> object:
        read.append(path.name)
        return read_shard(path)

    monkeypatch.setattr(replay, "read_shard", noted)
    buffer = ReplayBuffer(tmp_path, config)
    assert buffer.total_samples == len(rows)
    last = sum(len(game.samples) for game in games[-3:])
    assert read == (["00000007.shard"] if last >= 60 else ["00000006.shard", "00000007.shard"])
    assert_holds(buffer, rows[-60:])


def test_sampling_is_uniform_and_reproducible(tmp_path: Path, games: list[GameRecord]) -> None:
    config = ReplayConfig(window_start=100, window_slope=0.0)
    buffer = ReplayBuffer(tmp_path, config)
    fill(buffer, games)
    window = window_of(buffer)
    first, again = (buffer.sample(512, np.random.default_rng(5)) for _ in range(2))
    assert_equal_samples(first, again)
    assert_equal_samples(first, ReplayBuffer(tmp_path, config).sample(512, np.random.default_rng(5)))
    assert not np.array_equal(first.positions, buffer.sample(512, np.random.default_rng(6)).positions)
    rows = [tuple(row) for row in window.positions.tolist()]
    drawn = Counter(tuple(row) for row in buffer.sample(100_000, np.random.default_rng(0)).positions.tolist())
    assert set(drawn) == set(rows)
    for row, times in Counter(rows).items():
        assert abs(drawn[row] - 1000 * times) < 6 * (1000 * times) ** 0.5


def bytes_of(packed: replay._PackedSamples) -> int:
    """Number of bytes allocated."""
    return sum(array.nbytes for array in (*packed._rows.values(), packed._offsets, packed._policy))


def test_empty_window(tmp_path: Path) -> None:
    buffer = ReplayBuffer(tmp_path / "new" / "folder")
    assert (buffer.total_samples, buffer.window_samples, bytes_of(buffer._packed)) == (0, 0, 8)
    with pytest.raises(ValueError, match="no samples"):
        buffer.sample(4, np.random.default_rng(0))


def big_samples(number: int, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 20, number)
    return Samples(
        positions=rng.integers(0, 2**32, (number, 4), np.uint32),
        policy_offsets=offsets_of(counts),
        move_probabilities=rng.random(counts.sum()).astype(np.float16),
        search_wdl=rng.random((number, 3)).astype(np.float16),
        result=rng.integers(0, 3, number).astype(np.uint8),
        has_policy=counts > 0,
        ply=rng.integers(0, 99, number).astype(np.uint16),
        kind=rng.integers(0, 3, number).astype(np.uint8),
    )


def test_memory_is_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Packed samples against plain concatenation, in memory for about 14,000 of 53 bytes each."""
    limit = 2**20
    packed = replay._PackedSamples(limit)
    everything: list[Samples] = []
    lost = 0
    for i, number in enumerate([10, 0, 3000, 9000, 4000, 700, 50_000, 200, 1, 12_000]):
        new = big_samples(number, i)
        lost += packed.append(new)
        if i == 4:
            packed.drop(1500)
            lost += 1500
        everything.append(new)
        assert bytes_of(packed) <= limit
        held = packed.samples().take(np.arange(len(packed)))
        for name in ROW_COLUMNS:
            joined = np.concatenate([getattr(part, name) for part in everything])
            np.testing.assert_array_equal(getattr(held, name), joined[lost:])
        counts = np.concatenate([np.diff(part.policy_offsets) for part in everything])[lost:]
        np.testing.assert_array_equal(np.diff(held.policy_offsets), counts)
        policy = np.concatenate([part.move_probabilities for part in everything])
        np.testing.assert_array_equal(held.move_probabilities, policy[len(policy) - counts.sum() :])
    assert lost > 50_000
    assert bytes_of(packed) > limit / 2
    config = ReplayConfig(max_memory_bytes=limit)
    buffer = ReplayBuffer(tmp_path, config)
    with caplog.at_level(logging.WARNING):
        for i in range(3):
            buffer._append(big_samples(20_000, i))
    (warning,) = caplog.messages  # said once
    assert "max_memory_bytes limits the window" in warning
    assert bytes_of(buffer._packed) <= limit


def test_damaged_shards_are_set_aside(
    tmp_path: Path, games: list[GameRecord], caplog: pytest.LogCaptureFixture
) -> None:
    config = ReplayConfig(window_start=150, window_slope=0.0)
    fill(ReplayBuffer(tmp_path, config), games)
    sizes = [sum(len(game.samples) for game in games[first : first + 3]) for first in range(0, 24, 3)]
    flipped = tmp_path / "00000007.shard"
    data = bytearray(flipped.read_bytes())
    data[-1] ^= 1
    flipped.write_bytes(data)  # found when its columns are read
    cut = tmp_path / "00000002.shard"
    cut.write_bytes(cut.read_bytes()[:100])  # found by its header
    with caplog.at_level(logging.WARNING):
        buffer = ReplayBuffer(tmp_path, config)
    assert buffer.total_samples == sum(sizes) - sizes[7] - sizes[2]
    assert buffer.window_samples == 150
    rows = [game.samples[i : i + 1] for game in games[:21] for i in range(len(game.samples))]
    assert_holds(buffer, rows[-150:])
    aside = sorted(path.name for path in tmp_path.glob("*.damaged"))
    assert aside == ["00000002.shard.damaged", "00000007.shard.damaged"]
    assert len(caplog.records) == 2
    assert "checksum of its payload is wrong; set aside as 00000007.shard.damaged" in caplog.text
    assert buffer.next_number == 8  # no name is used twice


def senseless(games: list[GameRecord], **columns: object) -> bytes:
    """A shard with correct checksums but invalid samples."""
    record = games[0]
    return pack_shard([dataclasses.replace(record, samples=dataclasses.replace(record.samples, **columns))])


def test_what_comes_in_damaged_or_senseless_is_set_aside(
    tmp_path: Path, games: list[GameRecord], caplog: pytest.LogCaptureFixture
) -> None:
    buffer = ReplayBuffer(tmp_path)
    rows = fill(buffer, games[:3])
    samples = games[0].samples
    torn = samples.positions.copy()
    torn[3, 2] = ~(torn[3, 0] | torn[3, 1])
    whole = pack_shard(games[:2])
    flipped = whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:]
    nan = np.full_like(samples.search_wdl, np.nan)
    received = {
        "not a shard": b"garbage",
        "checksum of its payload": flipped,
        "search_wdl are not probabilities": senseless(games, search_wdl=nan),
        "move_probabilities are not probabilities": senseless(games, move_probabilities=0 * samples.move_probabilities),
        "king is on an empty one": senseless(games, positions=torn),
        "one probability for each legal move": senseless(games, positions=np.roll(samples.positions, 1, 0)),
    }
    for number, (reason, data) in enumerate(received.items(), 1):
        caplog.clear()
        assert buffer.store(data) is None
        name = f"{number:08d}.shard.damaged"
        assert (tmp_path / name).read_bytes() == data
        assert reason in caplog.text
        assert f"set aside as {name}" in caplog.text
    assert buffer.total_games == 3
    assert_holds(buffer, rows)
    assert buffer.store(whole) is not None
    assert ReplayBuffer(tmp_path).total_games == 5


def test_a_senseless_shard_in_the_folder_is_set_aside(
    tmp_path: Path, games: list[GameRecord], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "00000000.shard").write_bytes(senseless(games, search_wdl=0 * games[0].samples.search_wdl))
    assert ReplayBuffer(tmp_path).total_samples == 0
    assert "00000000.shard cannot be learnt from" in caplog.text
    assert (tmp_path / "00000000.shard.damaged").exists()


def test_games_of_networks_too_far_behind_are_refused(tmp_path: Path, games: list[GameRecord]) -> None:
    buffer = ReplayBuffer(tmp_path, ReplayConfig(most_behind=1))
    data = pack_shard(games[:3])
    promotions = iter((0, 2, 1))
    for _ in range(3):
        assert buffer.store(data, lambda shard: next(promotions)) is not None
    assert (buffer.refused, buffer.total_games) == (1, 6)
    again = ReplayBuffer(tmp_path)
    assert (again.total_games, again.next_number) == (6, 3)


def test_old_shards_are_deleted_and_still_counted(tmp_path: Path, games: list[GameRecord]) -> None:
    config = ReplayConfig(window_start=100, window_slope=0.1, keep_shards=False)
    buffer = ReplayBuffer(tmp_path, config)
    rows = fill(buffer, games)
    names = sorted(path.name for path in tmp_path.glob("*.shard"))
    assert 0 < len(names) < 8
    assert names[-1] == "00000007.shard"
    for _ in range(2):
        assert (buffer.total_samples, buffer.total_games) == (len(rows), len(games))
        assert_holds(buffer, rows[-window_size(len(rows), config) :])
        assert buffer.next_number == 8
        buffer = ReplayBuffer(tmp_path, config)


def test_killed_between_counting_and_deleting(
    tmp_path: Path, games: list[GameRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ReplayConfig(window_start=100, window_slope=0.1, keep_shards=False)
    buffer = ReplayBuffer(tmp_path, config)
    rows = fill(buffer, games[:3])
    unlink = Path.unlink

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".shard":
            raise PermissionError(f"{path} is in use")
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        rows += fill(buffer, games[3:])
        assert len(list(tmp_path.glob("*.shard"))) == 8
        assert buffer.total_samples == len(rows)
        assert ReplayBuffer(tmp_path, config).total_samples == len(rows)
    reopened = ReplayBuffer(tmp_path, config)
    assert reopened.total_samples == len(rows)
    assert len(list(tmp_path.glob("*.shard"))) < 8
    assert_holds(reopened, rows[-window_size(len(rows), config) :])


def test_full_disk_keeps_old_shards(
    tmp_path: Path, games: list[GameRecord], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = ReplayConfig(window_start=100, window_slope=0.1, keep_shards=False)
    buffer = ReplayBuffer(tmp_path, config)

    def full(path: Path, data: bytes) -> None:
        if path.name == replay.LEDGER_NAME:
            raise files.StorageError(28, f"cannot write {path}: No space left on device")
        files.atomic_write(path, data)

    monkeypatch.setattr(replay, "atomic_write", full)
    rows = fill(buffer, games)
    assert len(list(tmp_path.glob("*.shard"))) == 8
    assert buffer.total_samples == len(rows)
    assert "old shards are kept: cannot write" in caplog.text


def test_a_damaged_ledger_is_refused(tmp_path: Path, games: list[GameRecord]) -> None:
    config = ReplayConfig(window_start=100, window_slope=0.1, keep_shards=False)
    fill(ReplayBuffer(tmp_path, config), games)
    ledger = tmp_path / replay.LEDGER_NAME
    whole = json.loads(ledger.read_text())
    for text in (json.dumps({**whole, "samples": 1}), "{", json.dumps({**whole, "schema_version": 2})):
        ledger.write_text(text)
        with pytest.raises(ShardError, match=r"deleted\.json is damaged .*: it counts the shards that were deleted"):
            ReplayBuffer(tmp_path, ReplayConfig(window_start=100, window_slope=0.1))
        assert ledger.read_text() == text


def test_stale_temporaries_go_when_opened(tmp_path: Path) -> None:
    left = tmp_path / "00000000.shard.77-0123abcd.tmp"
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    ReplayBuffer(tmp_path)
    assert not left.exists()


def test_training_batch(tmp_path: Path, games: list[GameRecord]) -> None:
    buffer = ReplayBuffer(tmp_path)
    fill(buffer, games)
    samples = buffer.sample(64, np.random.default_rng(1))
    for weight in (0.0, 0.25, 1.0):
        batch = to_training_batch(samples, weight)
        assert len(batch) == 64
        for i in range(64):
            result = [float(samples.result[i] == outcome) for outcome in range(3)]
            search = samples.search_wdl[i].astype(float)
            expected = [(1 - weight) * r + weight * s / search.sum() for r, s in zip(result, search, strict=True)]
            np.testing.assert_allclose(batch.wdl[i].numpy(), expected, atol=1e-6)
            policy = samples.move_probabilities[samples.policy_offsets[i] : samples.policy_offsets[i + 1]].astype(float)
            row = batch.policy[i].numpy()
            if samples.has_policy[i]:
                np.testing.assert_allclose(row[: len(policy)], policy / policy.sum(), atol=1e-6)
                assert row.sum() == pytest.approx(1, abs=1e-6)
            assert not row[len(policy) :].any()
        np.testing.assert_array_equal(batch.positions.numpy().view(np.uint32), samples.positions)
    with pytest.raises(ValueError, match="not between 0 and 1"):
        to_training_batch(samples, 1.5)
    moved = Samples(**{**vars(samples), "positions": np.roll(samples.positions, 1, axis=0)})
    with pytest.raises(BatchError, match="legal moves"):
        to_training_batch(moved)
