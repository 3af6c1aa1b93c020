"""Samples of the exact tables: uniform, true to the tables, split by position, the same for the same seed."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from reference import Position, legal_moves
from scipy.stats import chisquare
from solved_tables import solve_tables

from engine.bitboard import FAR_ROW, SQUARE_OF_BIT, squares_of
from engine.tablebase.dense import DenseTables
from engine.tablebase.material import Material, materials, parse_name
from learner.endgame.data import (
    FLAG_CAPTURE,
    FLAG_NONE,
    FLAG_THREATENED,
    TEST,
    TRAIN,
    VALIDATION,
    EndgameDataError,
    EndgameSampler,
    count_positions,
    flags_of,
    split_of,
)

COUNTS = Path(__file__).parent.parent.parent / "shared/reference/tablebase_counts.json"
UP_TO_FOUR = [material for pieces in (2, 3, 4) for material in materials(pieces)]


@pytest.fixture(scope="module")
def tables() -> DenseTables:
    return solve_tables(4)


def places(kind: int) -> range:
    return (range(28), range(32), range(4, 32), range(32))[kind]


def brute_force_count(material: Material) -> int:
    """Counts all choices of squares for the pieces, without those with two pieces on one square."""
    kinds = [[set(squares) for squares in combinations(places(kind), count)] for kind, count in enumerate(material)]
    boards: list[set[int]] = [set()]
    for kind in kinds:
        boards = [board | squares for board in boards for squares in kind if not board & squares]
    return len(boards)


@pytest.mark.parametrize(
    "name", ["0011", "1001", "0110", "1100", "0021", "0012", "1011", "0111", "2001", "1200", "0121"]
)
def test_slices_are_counted_exactly(name: str) -> None:
    assert count_positions(parse_name(name)) == brute_force_count(parse_name(name))


def test_counts_are_the_published_ones() -> None:
    if not COUNTS.exists():
        pytest.skip("the folder ../shared with the published counts is not there")
    published = json.loads(COUNTS.read_text())["two_sided_positions"]
    for pieces in range(2, 8):
        assert sum(map(count_positions, materials(pieces))) == published[str(pieces)]


def test_all_positions_are_equally_likely(tables: DenseTables) -> None:
    sampler = EndgameSampler(tables, materials(2), seed=3)
    assert sampler.positions == 3488
    drawn = Counter(map(tuple, sampler.draw(100 * sampler.positions).positions.tolist()))
    assert len(drawn) == sampler.positions
    assert chisquare(list(drawn.values())).pvalue > 1e-4


def test_slices_are_drawn_by_their_size(tables: DenseTables) -> None:
    batch = EndgameSampler(tables, UP_TO_FOUR, seed=4).draw(300_000)
    drawn = Counter(batch.codes.tolist())
    expected = np.array([count_positions(material) for material in UP_TO_FOUR], float)
    expected *= len(batch.codes) / expected.sum()
    often = expected > 20
    found = np.array([drawn[material.code] for material in UP_TO_FOUR])
    assert chisquare(found[often], expected[often] * found[often].sum() / expected[often].sum()).pvalue > 1e-4


def test_samples_are_positions_of_their_slice_with_the_tables_value(tables: DenseTables) -> None:
    batch = EndgameSampler(tables, UP_TO_FOUR, seed=5).draw(20_000)
    own, opp, kings = batch.positions[:, 0], batch.positions[:, 1], batch.positions[:, 2]
    home_row = sum(1 << bit for bit in range(32) if SQUARE_OF_BIT[bit] < 4)
    assert not (own & opp).any()
    assert not (kings & ~(own | opp)).any()
    assert not (own & ~kings & np.uint32(FAR_ROW)).any()
    assert not (opp & ~kings & np.uint32(home_row)).any()
    assert not batch.positions[:, 3].any()
    counts = np.bitwise_count(np.stack([own & ~kings, own & kings, opp & ~kings, opp & kings], 1))
    assert [Material(*row).code for row in counts.tolist()] == batch.codes.tolist()
    assert (batch.values == tables.lookup(batch.positions)).all()
    assert (batch.classes == np.select([batch.values > 0, batch.values == 0], [0, 1], 2)).all()


def reference_position(own: int, opp: int, kings: int, turn: str) -> Position:
    """Reference position of words; squares are counted from the side to move (for Black: number - 1)."""
    pieces = {}
    for word, color in ((own, "b"), (opp, "w")):
        for square in squares_of(word):
            pieces[square + 1] = color.upper() if square in squares_of(kings) else color
    return Position(turn, pieces)


def test_flags_follow_the_rules(tables: DenseTables) -> None:
    batch = EndgameSampler(tables, UP_TO_FOUR, seed=6).draw(2_000)
    for position, flag in zip(batch.positions.tolist(), batch.flags, strict=True):
        own, opp, kings = position[:3]
        captures = any(move.taken for move in legal_moves(reference_position(own, opp, kings, "B")))
        threatened = any(move.taken for move in legal_moves(reference_position(own, opp, kings, "W")))
        assert flag == (FLAG_CAPTURE if captures else FLAG_THREATENED if threatened else FLAG_NONE)
    assert set(batch.flags.tolist()) == {FLAG_NONE, FLAG_CAPTURE, FLAG_THREATENED}
    assert (flags_of(batch.positions) == batch.flags).all()


def mixed_slowly(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def test_split_is_a_fixed_hash_of_the_position() -> None:
    positions = np.random.default_rng(0).integers(0, 2**32, (100_000, 3), np.uint32)
    splits = split_of(positions)
    for (own, opp, kings), split in zip(positions[:200].tolist(), splits, strict=False):
        percent = mixed_slowly(mixed_slowly(own << 32 | opp) ^ kings ^ 0x9E3779B97F4A7C15) % 100
        assert split == (TRAIN if percent < 70 else VALIDATION if percent < 80 else TEST)
    assert np.bincount(splits) / len(splits) == pytest.approx([0.7, 0.1, 0.2], abs=0.005)
    assert (split_of(np.pad(positions, ((0, 0), (0, 1)))) == splits).all()


def test_splits_share_no_position_and_make_up_all(tables: DenseTables) -> None:
    slices = materials(2)
    parts = [
        set(map(tuple, EndgameSampler(tables, slices, 7, split).draw(60_000).positions.tolist()))
        for split in (TRAIN, VALIDATION, TEST)
    ]
    assert sum(map(len, parts)) == len(set.union(*parts)) == sum(map(count_positions, slices))
    assert [len(part) / 3488 for part in parts] == pytest.approx([0.7, 0.1, 0.2], abs=0.03)


def test_quiet_samples_have_no_capture_and_are_uniform_too(tables: DenseTables) -> None:
    slices = materials(2)
    drawn = EndgameSampler(tables, slices, 8, quiet=True).draw(200_000)
    assert not (drawn.flags == FLAG_CAPTURE).any()
    everything = {tuple(p) for p in EndgameSampler(tables, slices, 3).draw(100 * 3488).positions.tolist()}
    quiet = flags_of(np.array(sorted(everything), np.uint32)) != FLAG_CAPTURE
    counted = Counter(map(tuple, drawn.positions.tolist()))
    assert len(counted) == quiet.sum()
    assert chisquare(list(counted.values())).pvalue > 1e-4


def test_same_seed_same_samples_and_a_state_goes_on(tables: DenseTables) -> None:
    first, second = (EndgameSampler(tables, UP_TO_FOUR, 9, TRAIN) for _ in range(2))
    other = EndgameSampler(tables, UP_TO_FOUR, 10, TRAIN)
    whole = first.draw(1000)
    halves = [second.draw(400).positions]
    third = EndgameSampler(tables, UP_TO_FOUR, 0, TRAIN)
    third.state = second.state
    halves.append(third.draw(600).positions)
    assert (whole.positions == np.concatenate(halves)).all()
    assert not (whole.positions == other.draw(1000).positions).all()


def test_what_cannot_be_drawn_is_refused(tables: DenseTables) -> None:
    with pytest.raises(EndgameDataError, match="no slice"):
        EndgameSampler(tables, [], 0)
    with pytest.raises(EndgameDataError, match="lack slice 1211"):
        EndgameSampler(tables, [parse_name("1211")], 0)
    with pytest.raises(EndgameDataError, match="split 3"):
        EndgameSampler(tables, materials(2), 0, split=3)
