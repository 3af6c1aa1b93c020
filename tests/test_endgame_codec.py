"""The lossless neural codec: whole-number networks against plain Python, round trips value for value, bad files."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from solved_tables import solve_tables

from engine.files import StorageError
from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.material import pairs_up_to
from engine.tablebase.slice_file import SliceFile, file_name
from learner.checkpoint import CheckpointError
from learner.endgame.codec import CodecError, code_tables
from learner.endgame.codec_commands import decode_command, encode_command, train_codec_network
from learner.endgame.codec_file import read_coded, read_header, write_coded
from learner.endgame.data import EndgameSampler
from learner.endgame.integer_network import (
    BITS,
    FINE_STEP,
    ROUNDED_STEP,
    STEPS,
    IntegerNetwork,
    IntegerNetworkError,
    decode_weights,
    encode_weights,
    finish_rounded,
    judge_integer,
    new_buffers,
    pack,
    quantise,
    train_rounded,
    unpack,
)
from learner.endgame.member import Member
from learner.endgame.mixing import ONE, SQUASH, STRETCH, TOP, UNIT, add_logits, learn, predict
from learner.endgame.networks import PairConfig, PairNetwork, WangNetwork, save_endgame_network
from learner.endgame.oracle import open_oracle, save_oracle
from learner.endgame.progress import OracleProgress
from learner.endgame.training import EndgameTrainer, TrainingSettings

SMALL = PairConfig(width=4, experts=6, hidden=5, pieces=4)


def small_network(seed: int, config: PairConfig = SMALL) -> PairNetwork:
    torch.manual_seed(seed)
    network = PairNetwork(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += torch.randn_like(parameter) * 0.3
    return network


def all_rows(config: PairConfig) -> np.ndarray:
    return np.arange(len(PairNetwork(config).biases))


def integer_of(network: PairNetwork) -> IntegerNetwork:
    step, quantised = quantise(network, all_rows(network.config))
    return unpack(network.config, step, pack(quantised))


def assert_same(tables: DenseTables, others: DenseTables, pieces: int) -> None:
    for pair in pairs_up_to(pieces):
        for material in {pair, pair.swapped()}:
            np.testing.assert_array_equal(tables.slice_rows(material), others.slice_rows(material), material.name)


@pytest.fixture(scope="module")
def tables() -> DenseTables:
    """All values of 2-4 pieces."""
    return solve_tables(4, threads=1)


@pytest.fixture(scope="module")
def trained(tables: DenseTables) -> PairNetwork:
    """Trained on a million positions."""
    torch.manual_seed(1)
    network = PairNetwork(PairConfig(width=8, experts=16, hidden=8, pieces=4))
    sampler = EndgameSampler(tables, pairs_up_to(4), 1, quiet=True)
    EndgameTrainer(network, sampler, TrainingSettings(warmup_steps=20), positions=1_000_000).run()
    return network


@pytest.fixture(scope="module")
def untrained_file(tables: DenseTables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2-4 pieces, encoded with an untrained network."""
    path = tmp_path_factory.mktemp("coded") / "four"
    write_coded(path, tables, 4, small_network(7), threads=1)
    return path


def plain_logits(network: PairNetwork, position: np.ndarray) -> list[int]:
    """Logits of one position, from the rounded weights, in Python's own integers."""
    w: dict[str, list] = {}
    for name, parameter in network.named_parameters():
        unit = STEPS.get(name, FINE_STEP)
        w[name] = (np.rint(parameter.detach().numpy().astype(float) * 2**BITS / unit).astype(int) * unit).tolist()
    features, counts, rows, groups = (part[0].tolist() for part in network.encode(position[None]))
    x = list(w["biases"][rows])
    for a in features[:counts]:
        for b in features[:counts]:
            if a >= b:
                x = [s + p for s, p in zip(x, w["pairs"][a * (a + 1) // 2 + b], strict=True)]
    half = len(x) // 2
    gates = [min(max(v, 0), 4 << BITS) for v in x[:half]]
    pooled = gates + [g * v >> BITS for g, v in zip(gates, x[half:], strict=True)]

    def layer(inputs: list[int], weights: list[list[int]], bias: list[int]) -> list[int]:
        return [
            (b << BITS) + sum(v * row[o] for v, row in zip(inputs, weights, strict=True)) for o, b in enumerate(bias)
        ]

    first = [max(v >> BITS, 0) for v in layer(pooled, w["expert_weights"][groups], w["expert_bias"])]
    second = [max(v >> BITS, 0) for v in layer(first, w["hidden_weights"], w["hidden_bias"][rows])]
    return [v * UNIT >> 2 * BITS for v in layer(second, w["out_weights"], w["out_bias"])]


def judge_many(network: IntegerNetwork, positions: np.ndarray) -> np.ndarray:
    """int64 [N, 3]: win, draw, loss logits in ``1 / UNIT``."""
    logits, buffers = np.zeros((len(positions), 3), np.int64), new_buffers(network)
    for (own, opp, kings, _), row in zip(positions, logits, strict=True):
        judge_integer(own, opp, kings, network, buffers, row)
    return logits


def test_integer_network_is_that_of_plain_integers_and_close_to_the_float_one(tables: DenseTables) -> None:
    network = small_network(3)
    positions = EndgameSampler(tables, pairs_up_to(4), 5).draw(200).positions
    logits = judge_many(integer_of(network), positions)
    assert logits.tolist() == [plain_logits(network, position) for position in positions]
    exact = network.wdl_logits(positions)
    assert (
        np.corrcoef(logits.ravel() / UNIT, exact.ravel())[0, 1] > 0.85
    )  # its pairs were rounded by a third of their size


def test_weights_keep_their_signs_and_extremes() -> None:
    step, quantised = quantise(small_network(6), all_rows(SMALL))
    quantised["out_bias"][:] = [16383, -16383, -1]
    quantised["pairs"][:2, :3] = [[127, -127, 0], [-1, 1, -2]]
    network = unpack(SMALL, step, pack(quantised))
    for name, weights in quantised.items():
        np.testing.assert_array_equal(getattr(network, name), weights.astype(int) * STEPS.get(name, step), name)


def test_unused_rows_vanish_and_rounded_training_reaches_its_grid() -> None:
    network = small_network(4)
    _, quantised = quantise(network, np.array([0, 3]))
    assert set(np.flatnonzero(quantised["biases"].any(axis=1)).tolist()) == {0, 3}
    before = network.pairs.detach().clone()
    train_rounded(network)
    network.pairs.sum().backward()
    original = network.parametrizations["pairs"].original  # type: ignore[index, union-attr]
    assert original.grad is not None
    assert (original.grad == 1).all()  # straight through
    finish_rounded(network)
    grid = ROUNDED_STEP / 2**BITS
    torch.testing.assert_close(network.pairs.detach(), (before / grid).round() * grid)
    step, quantised = quantise(network, all_rows(SMALL))
    assert step == ROUNDED_STEP
    np.testing.assert_allclose(quantised["pairs"] * grid, network.pairs.detach().numpy(), atol=1e-6)


def test_packed_weights_that_do_not_fit_are_refused() -> None:
    step, quantised = quantise(small_network(1), all_rows(SMALL))
    packed = pack(quantised)
    for at, data in ((step, packed[:-3]), (step, packed + b"0"), (step, b""), (step, packed[:5]), (0, packed)):
        with pytest.raises(IntegerNetworkError, match="its weights"):
            unpack(SMALL, at, data)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 16_000), st.booleans(), st.integers(0, 2**32))
def test_coded_weights_come_back(rows: int, columns: int, most: int, triangular: bool, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(-most, most, (rows, columns), endpoint=True)
    coded = encode_weights(weights, triangular)
    np.testing.assert_array_equal(decode_weights(coded, (rows, columns), triangular), weights)


def test_alike_weights_cost_little() -> None:
    rng = np.random.default_rng(3)
    scale = rng.choice([0, 1, 8], (400, 1))
    weights = np.rint(rng.normal(size=(400, 16)) * scale).astype(int)
    counts = np.bincount(weights.ravel() + 100)
    entropy = -(counts[counts > 0] * np.log2(counts[counts > 0] / weights.size)).sum() / 8
    assert len(encode_weights(weights, False)) < 0.9 * entropy


def test_tables_of_logarithms() -> None:
    x = np.arange(-TOP, TOP + 1) / UNIT
    np.testing.assert_allclose(SQUASH / ONE, 1 / (1 + np.exp(-x)), atol=1.0 / ONE)
    p = (np.arange(len(STRETCH)) + 0.5) / len(STRETCH)
    np.testing.assert_allclose(STRETCH[4:-4] / UNIT, np.log(p / (1 - p))[4:-4], atol=1.2 / UNIT)
    assert (np.diff(STRETCH.astype(int)) >= 0).all()
    assert (np.negative(STRETCH[::-1]) == STRETCH).mean() > 0.99
    for a, b in ((0, 0), (300, -200), (-5000, 100), (700, 701)):
        assert abs(add_logits(a, b) / UNIT - np.logaddexp(a / UNIT, b / UNIT)) < 2 / UNIT
        assert add_logits(a, b) == add_logits(b, a)


def test_mixer_learns_whom_to_believe() -> None:
    rng = np.random.default_rng(2)
    models = np.full(8, 1 << 31, np.uint32)
    weights, inputs, used = np.full(3, 20_000, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
    bits = rng.integers(0, 2, 4000)
    cost = []
    for bit in bits.tolist():
        inputs[0] = 0
        used[1], used[2] = 1 + bit, 3 + int(rng.integers(2))  # the first context knows the bit, the second does not
        probability = predict(models, used, weights, inputs)
        cost.append(-np.log2((probability if bit else ONE - probability) / ONE))
        learn(models, used, weights, inputs, probability, bit)
    assert np.mean(cost[:10]) > 0.2
    assert np.mean(cost[-1000:]) < 0.005
    assert weights[1] > abs(weights[2])


def test_untrained_network_round_trip_up_to_four_pieces(tables: DenseTables, untrained_file: Path) -> None:
    decoded, header = read_coded(untrained_file, threads=1)
    assert_same(tables, decoded, 4)
    # Contexts alone halve what the ordinary tables need.
    assert header.corrections_bytes < 70_000
    assert 0 < header.exceptions < 0.1 * header.positions


def test_trained_network_needs_fewer_corrections(
    tables: DenseTables, trained: PairNetwork, untrained_file: Path, tmp_path: Path
) -> None:
    header = write_coded(tmp_path / "four", tables, 4, trained, threads=1)
    untrained = read_header(untrained_file)[0]
    assert (header.positions, header.digest) == (untrained.positions, untrained.digest)
    assert header.corrections_bytes < 0.92 * untrained.corrections_bytes
    assert header.exceptions < 0.92 * untrained.exceptions
    assert_same(tables, read_coded(tmp_path / "four", threads=1)[0], 4)


def test_training_for_the_codec_ends_rounded(tables: DenseTables) -> None:
    network = train_codec_network(tables, 3, 0.02, 1, OracleProgress(quiet=True))
    assert quantise(network, all_rows(network.config))[0] == ROUNDED_STEP
    assert network.biases.abs().max() > 0


def test_the_same_file_every_time_and_with_any_number_of_threads(tables: DenseTables, tmp_path: Path) -> None:
    for name, threads in (("a", 1), ("b", 3)):
        write_coded(tmp_path / name, tables, 3, small_network(5), threads)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_damaged_and_foreign_files_are_refused_by_name(tables: DenseTables, tmp_path: Path) -> None:
    path = tmp_path / "coded"
    write_coded(path, tables, 2, small_network(5), threads=1)
    good = path.read_bytes()
    flipped = [bytes([*good[:at], good[at] ^ 4, *good[at + 1 :]]) for at in (0, 9, 40, len(good) // 2, len(good) - 1)]
    for bad in (*flipped, good[:-1], good[:20], b"", b"CRWNNEU2", b"something else altogether" * 9, good + b"\0"):
        path.write_bytes(bad)
        with pytest.raises(CodecError, match="coded") as caught:
            read_coded(path)
        assert "\n" not in str(caught.value)
        with pytest.raises(CodecError):
            decode_command(path, tmp_path / "out", quiet=True)
        assert not (tmp_path / "out").exists()
    path.write_bytes(good)
    assert_same(tables, read_coded(path)[0], 2)


def test_a_foreign_file_is_not_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "coded"
    with path.open("wb") as file:
        file.truncate(1 << 28)
    tracemalloc.start()
    with pytest.raises(CodecError, match="holds no neurally coded tables"):
        decode_command(path, tmp_path / "out", quiet=True)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_values_that_differ_from_those_encoded_are_noticed(
    tables: DenseTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "coded"
    write_coded(path, tables, 2, small_network(5), threads=1)
    header, weights, corrections = read_header(path)
    changed = bytes([corrections[0] ^ 1, *corrections[1:]])
    monkeypatch.setattr("learner.endgame.codec_file.read_header", lambda _: (header, weights, changed))
    with pytest.raises(CodecError, match="other values"):
        read_coded(path)


def test_tables_that_contradict_themselves_are_refused(tables: DenseTables) -> None:
    wrong = DenseTables(2)
    for pair in pairs_up_to(2):
        wrong.fill(pair, np.stack([tables.slice_rows(pair), tables.slice_rows(pair.swapped())]))
    pair = pairs_up_to(2)[1].swapped()  # its values follow from those of the other side
    rows = wrong.slice_rows(pair)
    word = int(np.flatnonzero(rows[:, 0])[0])
    rows[word, 0] &= rows[word, 0] - np.uint32(1)
    with pytest.raises(CodecError, match=pair.swapped().name):
        code_tables(wrong, 2, integer_of(small_network(5)))


def test_commands_write_the_tables_that_were_encoded(
    tables: DenseTables, trained: PairNetwork, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_endgame_network(tmp_path / "net", trained, (2, 4))
    coded, out = tmp_path / "three", tmp_path / "out" / "tables"
    figures = encode_command(tmp_path, 3, coded, tmp_path / "net", 1.0, 1, quiet=True)
    assert figures["bytes"] == coded.stat().st_size > figures["weights_bytes"] + figures["corrections_bytes"]
    assert (figures["plain_bytes"], figures["chinook_bytes"], figures["training_seconds"]) == (None, None, 0.0)
    back = decode_command(coded, out, quiet=True)
    assert back["digest"] == read_header(coded)[0].digest
    assert capsys.readouterr().out == ""
    assert back["plain_bytes"] == sum(path.stat().st_size for path in out.iterdir())
    for pair in pairs_up_to(3):
        SliceFile(out / file_name(pair, "wdl"), checked=True).close()
    assert_same(tables, load_tables(out, 3, 1), 3)
    figures = encode_command(out, 3, coded, tmp_path / "net", 1.0, 1, quiet=False)
    assert figures["plain_bytes"] == back["plain_bytes"]
    assert f"{figures['bytes']:,} bytes" in capsys.readouterr().out
    figures = encode_command(None, 3, coded, tmp_path / "net", 1.0, 1, quiet=True)  # they come with the package
    assert figures["plain_bytes"] == back["plain_bytes"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("/dev/null", marks=pytest.mark.skipif(os.name == "nt", reason="its devices have no folder")),
        "x" * 250,
    ],
)
def test_what_cannot_be_written_is_refused_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("learner.endgame.codec_commands.load_tables", lambda *_, **__: pytest.fail("it began"))
    with pytest.raises(StorageError, match="cannot write"):
        encode_command(None, 2, tmp_path / name, None, 1.0, 1, quiet=True)
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learner.endgame.codec_commands.load_tables", lambda *_, **__: pytest.fail("it began"))
    games = tmp_path / "games.pdn"
    games.write_text("1. 11-15 *")
    with pytest.raises(StorageError, match=r"games\.pdn exists already and holds no coded tables"):
        encode_command(None, 2, games, None, 1.0, 1, quiet=True)
    assert games.read_text() == "1. 11-15 *"


def test_the_network_of_an_oracle_codes_as_it_does_alone(tmp_path: Path) -> None:
    save_oracle(tmp_path / "oracle", [Member(small_network(pieces), (2, pieces)) for pieces in (3, 4)])
    for network, (_, pieces) in open_oracle(tmp_path / "oracle").networks:  # which holds rounded weights
        save_endgame_network(tmp_path / f"{pieces}", network, (2, pieces))
        for net in ("oracle", f"{pieces}"):
            encode_command(None, pieces, tmp_path / f"by {net}", tmp_path / net, 1.0, 1, quiet=True)
        assert (tmp_path / "by oracle").read_bytes() == (tmp_path / f"by {pieces}").read_bytes()


def test_a_network_that_is_not_there_is_told_of_before_the_tables_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.endgame.codec_commands.load_tables", lambda *_, **__: pytest.fail("it began"))
    with pytest.raises(CheckpointError, match="nowhere"):
        encode_command(None, 2, tmp_path / "out", tmp_path / "nowhere", 1.0, 1, quiet=True)


def test_commands_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    save_endgame_network(tmp_path / "wang", WangNetwork(), (2, 3))
    with pytest.raises(StorageError, match="it is a folder; name a file"):
        encode_command(None, 3, tmp_path, None, 1.0, 1, quiet=True)
    with pytest.raises(CodecError, match="9"):
        encode_command(None, 9, tmp_path / "out", None, 1.0, 1, quiet=True)
    with pytest.raises(StorageError, match="No such file or directory"):
        encode_command(None, 2, tmp_path / "no" / "out", None, 1.0, 1, quiet=True)
    with pytest.raises(CodecError, match="wang"):
        encode_command(tmp_path, 2, tmp_path / "out", tmp_path / "wang", 1.0, 1, quiet=True)
    with pytest.raises(StorageError, match=r"cannot read .*missing"):
        decode_command(tmp_path / "missing", tmp_path / "tables", quiet=True)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "tables").exists()


def test_memory_that_does_not_suffice_is_told_of_at_once(
    tmp_path: Path, untrained_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.endgame.codec_commands.load_tables", lambda *_, **__: pytest.fail("it began"))
    monkeypatch.setattr("engine.memory.available_memory", lambda: DenseTables.size(4) + 1)
    for command in (
        lambda: encode_command(None, 4, tmp_path / "file", None, 1.0, 1, quiet=True),
        lambda: decode_command(untrained_file, tmp_path / "tables", quiet=True),
    ):
        with pytest.raises(ValueError, match=r"4 pieces .* of memory"):
            command()
