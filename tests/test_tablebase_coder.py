"""The coder and the codecs of the tables: decoding gives what was encoded, also for values that no table has."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit

from engine.movegen import jumpers_of
from engine.tablebase.coder import STATE_SIZE, code_bit, finish_encoding, model, start_decoding, start_encoding
from engine.tablebase.dense import DenseDistances, DenseTables, decode_file, restore_pair
from engine.tablebase.distance import decode_distances, encode_distances
from engine.tablebase.layout import layout_of
from engine.tablebase.material import Material, pairs_up_to, parse_name
from engine.tablebase.slice_file import SliceFile, file_name, write_slice
from engine.tablebase.solve import canonical_places, grid_of, place_word
from engine.tablebase.solver import Values, Workers, problem_of
from engine.tablebase.wdl_codec import BLOCK_WORDS, NUM_MODELS, BlockCodec, encode_slice, num_blocks

SMALL = parse_name("1011")  # one block
LARGE = parse_name("2110")  # 28 blocks, the roamer having no fellow
FELLOWS = parse_name("2200")  # 16 blocks, the roamer having one


# The coder


@njit(cache=True)
def _code(state, data, models, indices, bits, decoding):
    for i in range(len(bits)):
        bits[i] = code_bit(state, data, models, indices[i], bits[i], decoding)


def encode(indices: np.ndarray, bits: np.ndarray, models: np.ndarray) -> bytes:
    state, data = np.zeros(STATE_SIZE, np.int64), np.zeros(4 * len(bits) + 8, np.uint8)
    start_encoding(state)
    _code(state, data, models, indices, bits.copy(), False)
    return data[: finish_encoding(state, data)].tobytes()


def decode(data: bytes, indices: np.ndarray, models: np.ndarray, before: bytes = b"", after: bytes = b"") -> np.ndarray:
    state, bits = np.zeros(STATE_SIZE, np.int64), np.full(len(indices), -1, np.int64)
    buffer = np.frombuffer(before + data + after + bytes(1), np.uint8).copy()
    start_decoding(state, buffer, len(before), len(before) + len(data))
    _code(state, buffer, models, indices, bits, True)
    return bits


PROBABILITY = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 2**-22, 1 - 2**-22, 2**-16]))
MODELS = st.lists(st.builds(model, PROBABILITY, st.integers(0, 300)), min_size=1, max_size=4)


@given(MODELS, st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=400))
@example([model(1.0, 255)], [(0, False)] * 300)
@example([model(0.0, 255)], [(0, True)] * 300)
@example([model(1 - 2**-22, 0)], [(0, True)] * 300 + [(0, False)])
def test_coded_bits_come_back(models: list[int], message: list[tuple[int, bool]]) -> None:
    """With any models; both directions adapt them equally. Bytes around the message are not changed."""
    indices = np.array([index % len(models) for index, _ in message], np.int64)
    bits = np.array([bit for _, bit in message], np.int64)
    writing, reading, again = (np.array(models, np.uint32) for _ in range(3))
    data = encode(indices, bits, writing)
    assert decode(data, indices, reading).tolist() == bits.tolist()
    assert writing.tolist() == reading.tolist()
    assert decode(data, indices, again, b"\xff\x00", b"\xff\xff").tolist() == bits.tolist()


def test_random_messages_come_back() -> None:
    """Long messages, in which the interval gets narrow at many values."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        chance = rng.random() ** 4
        bits = (rng.random(2000) < chance).astype(np.int64)
        indices = rng.integers(0, 3, len(bits))
        start = np.array([model(rng.random(), int(rng.integers(256))) for _ in range(3)], np.uint32)
        data = encode(indices, bits, start.copy())
        assert np.array_equal(decode(data, indices, start.copy()), bits)


@pytest.mark.parametrize("chance", [0.5, 0.1, 0.01, 0.999])
def test_a_message_is_as_short_as_its_entropy(chance: float) -> None:
    bits = (np.random.default_rng(2).random(200_000) < chance).astype(np.int64)
    data = encode(np.zeros_like(bits), bits, np.array([model(0.5, 0)], np.uint32))
    entropy = -(chance * math.log2(chance) + (1 - chance) * math.log2(1 - chance))
    assert 0.98 * entropy < 8 * len(data) / len(bits) < 1.05 * entropy + 0.002


def test_an_empty_message_takes_no_bytes() -> None:
    none = np.zeros(0, np.int64)
    assert encode(none, none, np.array([model(0.5, 0)], np.uint32)) == b""


@pytest.mark.parametrize("probability", [-1.0, 0.0, 0.25, 1.0, 2.0])
@pytest.mark.parametrize("count", [0, 60, 255, 9999])
def test_a_model_keeps_to_its_bits(probability: float, count: int) -> None:
    word = model(probability, count)
    assert 0 < word >> 10 < 1 << 22
    assert word & 1023 == min(count, 255)
    if 0 < probability < 1:
        assert word >> 10 == probability * (1 << 22)


def test_first_probabilities_are_the_same_on_every_machine() -> None:
    """They come from ``exp``, whose last digit differs between machines, so none may be near a rounding limit."""
    scaled = (1 << 22) / (1 + np.exp(-np.arange(-127, 128) / 8.0))
    assert (np.abs(scaled - np.floor(scaled) - 0.5) > 1e-6).all()


# The codecs


class Solved:
    """Values uint32 [2, words, 2] and half distances uint8 [2, words, 32] of pairs of 2-4 pieces."""

    def __init__(self) -> None:
        self.tables, distances = DenseTables(4), DenseDistances(4)
        self.values: dict[Material, Values] = {}
        self.halves: dict[Material, np.ndarray] = {}
        with Workers(1) as workers:
            for pair in pairs_up_to(4):
                first, second = self.tables.solve(pair, workers)
                self.values[pair] = first.copy(), second.copy()
                self.halves[pair] = distances.solve(pair, self.tables, self.values[pair], workers)


@pytest.fixture(scope="module")
def solved() -> Solved:
    return Solved()


@njit(cache=True)
def _kept(grid, kept):
    ranks, pieces = np.zeros(4, np.int64), np.zeros(4, np.uint32)
    for word in range(grid.words):
        taken = place_word(grid, word, ranks, pieces)
        others = pieces[grid.roamer]
        places = canonical_places(grid.roamer, taken, others)
        for b in range(32):
            bit = np.uint32(1) << np.uint32(b)
            if places & bit != 0:
                pieces[grid.roamer] = others | bit
                own, opp = pieces[0] | pieces[1], pieces[2] | pieces[3]
                if jumpers_of(own, opp, pieces[1] | pieces[3]) == 0:
                    kept[word] |= bit
        pieces[grid.roamer] = others


def kept_places(pair: Material) -> np.ndarray:
    """Positions that a file stores, uint32 [words]: first side to move, no capture, the roamer's bit the lowest."""
    kept = np.zeros(layout_of(pair).words, np.uint32)
    _kept(grid_of(layout_of(pair), False), kept)
    return kept


def decoded(codec: BlockCodec, blocks: list[bytes], words: int) -> np.ndarray:
    return np.concatenate([codec.decode(number, block).copy() for number, block in enumerate(blocks)])[:words]


@pytest.mark.parametrize("pair", pairs_up_to(4), ids=lambda pair: pair.name)
def test_blocks_of_values_come_back(pair: Material, solved: Solved) -> None:
    grid, values, kept = grid_of(layout_of(pair), False), solved.values[pair][0], kept_places(pair)
    with Workers(2) as workers:
        priors, blocks = encode_slice(grid, values, workers)
    assert priors.shape == (NUM_MODELS, 2)
    assert len(blocks) == num_blocks(grid) == math.ceil(len(values) / BLOCK_WORDS)
    codec = BlockCodec(grid, priors)
    assert np.array_equal(decoded(codec, blocks, len(values)) & kept[:, None], values & kept[:, None])
    number = len(blocks) // 2  # each by itself, and after others
    alone = BlockCodec(grid, priors).decode(number, blocks[number])
    assert np.array_equal(alone, codec.decode(number, blocks[number]))
    assert codec.encode(number, values) == blocks[number]


@settings(max_examples=25)
@given(st.sampled_from([SMALL, LARGE, FELLOWS]), st.integers(0, 2**32 - 1), st.booleans())
def test_blocks_of_any_values_come_back(pair: Material, seed: int, surveyed: bool) -> None:
    """Arbitrary values, with initial probabilities that do not fit them."""
    rng, grid, kept = np.random.default_rng(seed), grid_of(layout_of(pair), False), kept_places(pair)
    won = rng.integers(0, 2**32, grid.words, np.uint32)
    values = np.stack([won, rng.integers(0, 2**32, grid.words, np.uint32) & ~won], axis=1)
    priors = np.stack([rng.integers(-127, 128, NUM_MODELS), rng.integers(0, 61, NUM_MODELS)], axis=1).astype(np.int8)
    codec = BlockCodec(grid, priors)
    codec = BlockCodec(grid, codec.survey(values)) if surveyed else codec
    number = int(rng.integers(num_blocks(grid)))
    rows = slice(number * BLOCK_WORDS, (number + 1) * BLOCK_WORDS)
    found = codec.decode(number, codec.encode(number, values))[: len(values[rows])]
    assert np.array_equal(found & kept[rows, None], values[rows] & kept[rows, None])


@pytest.mark.parametrize("pair", pairs_up_to(4), ids=lambda pair: pair.name)
def test_blocks_of_distances_come_back(pair: Material, solved: Solved) -> None:
    grid, values, halves = grid_of(layout_of(pair), False), solved.values[pair][0], solved.halves[pair][0]
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    kept = (kept_places(pair) & (values[:, 0] | values[:, 1]))[:, None] & bits != 0
    blocks = [decode_distances(encode_distances(n, grid, values, halves)) for n in range(num_blocks(grid))]
    assert all(block.shape == (BLOCK_WORDS, 32) for block in blocks)
    found = np.concatenate(blocks)[: len(halves)]
    assert np.array_equal(found[kept], halves[kept])


@pytest.mark.parametrize("data", [b"", b"not zstd", b"\x28\xb5\x2f\xfd"])
def test_what_is_no_block_of_distances_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="error when determining"):
        decode_distances(data)


@pytest.mark.parametrize("pair", pairs_up_to(4), ids=lambda pair: pair.name)
def test_both_sides_come_back_from_one_file(pair: Material, solved: Solved, tmp_path: Path) -> None:
    layout, kept = layout_of(pair), kept_places(pair)[:, None]
    with Workers(2) as workers:
        write_slice(tmp_path, pair, "wdl", {}, *encode_slice(grid_of(layout, False), solved.values[pair][0], workers))
        with SliceFile(tmp_path / file_name(pair, "wdl")) as file:
            values, *found = np.zeros((3, layout.words, 2), np.uint32)
            decode_file(file, layout, workers, values)
            tables = solved.tables.slices, solved.tables.words
            restore_pair(file, problem_of(layout, *tables, (found[0], found[1])), workers)
    assert np.array_equal(values & kept, solved.values[pair][0] & kept)
    assert np.array_equal(found, solved.values[pair])
