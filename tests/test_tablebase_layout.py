"""The layout of the tables: names and order of the slices, words and bits, compared with plain enumeration."""

import json
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bitboard import FAR_ROW, lowest_bit, mask_of, popcount, squares_of, step, turned
from engine.tablebase.layout import (
    DIRECTIONS,
    FIRST_SQUARE,
    NUM_KINDS,
    NUM_PLACES,
    PLACES,
    add_slice,
    code_of,
    layout_of,
    locate,
    lookup,
    no_slices,
    placements,
    rank_of,
)
from engine.tablebase.material import MAX_PIECES, NUM_CODES, Material, materials, pairs_up_to, parse_name
from engine.tablebase.plan import promotions
from engine.tablebase.solve import canonical_places, free_places, grid_of, place_word

COUNTS = Path(__file__).parents[2] / "shared" / "reference" / "tablebase_counts.json"
ALL = [material for pieces in range(2, MAX_PIECES + 1) for material in materials(pieces)]
FEW = [material for material in ALL if material.pieces <= 5]


def directory(*slices: Material) -> np.ndarray:
    """A directory in which each of these slices begins at word 0."""
    found = no_slices()
    for material in slices:
        add_slice(found, material, 0)
    return found


def unpacked(word: int, material: Material) -> tuple[np.ndarray, np.uint32, np.ndarray]:
    """For a word of a slice's pair: squares by kind without the roamer, occupied squares, and ranks."""
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    taken = place_word(grid_of(layout_of(material), not material.leads), word, ranks, pieces)
    return pieces, np.uint32(taken), ranks


def seen_by_mover(pieces: np.ndarray, material: Material) -> tuple[np.uint32, np.uint32, np.uint32]:
    """Own, opponent's and kings' squares of pieces by kind, as the side to move of a slice sees them."""
    first, second, kings = pieces[0] | pieces[1], pieces[2] | pieces[3], pieces[1] | pieces[3]
    return (first, second, kings) if material.leads else (turned(second), turned(first), turned(kings))


# Names and order


def test_a_name_gives_kings_then_men() -> None:
    assert Material(own_men=1, own_kings=2, opp_men=0, opp_kings=3).name == "2310"
    assert parse_name("2310") == Material(own_men=1, own_kings=2, opp_men=0, opp_kings=3)


@pytest.mark.parametrize("material", ALL, ids=lambda material: material.name)
def test_names_codes_and_pairs(material: Material) -> None:
    assert parse_name(material.name) == material
    assert 0 <= material.code < NUM_CODES
    assert material.swapped().swapped() == material
    assert material.symmetric == (material.swapped() == material)
    assert material.leads or material.swapped().leads
    assert (material.leads and material.swapped().leads) == material.symmetric
    assert material.pair == material.swapped().pair
    assert material.pair.leads
    own, opp = material.own_men + material.own_kings, material.opp_men + material.opp_kings
    assert not (material.leads and own < opp)


def test_codes_tell_all_slices_apart() -> None:
    assert len({material.code for material in ALL}) == len(ALL)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "11",
        "11000",
        "0000",
        "1000",
        "0010",
        "2020",
        "4500",
        "5300",
        "9911",
        "11 0",
        "-110",
        "1a00",
        "١١٠٠",
        "²110",
        "K1K1",
    ],
)
def test_what_is_no_slice_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no slice: write own kings") as caught:
        parse_name(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pieces", range(2, MAX_PIECES + 1))
def test_materials_are_all_there_is(pieces: int) -> None:
    found = materials(pieces)
    counts = range(pieces + 1)
    expected = {
        Material(a, b, c, d)
        for a in counts
        for b in counts
        for c in counts
        for d in counts
        if a + b + c + d == pieces and a + b and c + d and (pieces < 8 or a + b == 4)
    }
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_order_can_be_solved() -> None:
    """Every capture and promotion leads to a pair solved before; only steps stay within the pair."""
    place = {pair: i for i, pair in enumerate(pairs_up_to(MAX_PIECES))}
    assert len(place) == len({material.pair for material in ALL})
    for own_men, own_kings, opp_men, opp_kings in ALL:
        here = Material(own_men, own_kings, opp_men, opp_kings)
        after = [(own_men - 1, own_kings + 1, opp_men, opp_kings)] if own_men else []
        for men, kings in [(own_men, own_kings), *([(own_men - 1, own_kings + 1)] if own_men else [])]:
            after += [
                (men, kings, left_men, left_kings)
                for left_men in range(opp_men + 1)
                for left_kings in range(opp_kings + 1)
                if 0 < left_men + left_kings < opp_men + opp_kings
            ]
        for there in after:
            assert place[Material(*there).pair] < place[here.pair], (here.name, Material(*there).name)


def test_slices_of_a_pair_follow_one_another() -> None:
    for pieces in range(2, MAX_PIECES + 1):
        found = materials(pieces)
        for i, material in enumerate(found):
            if not material.leads:
                assert found[i - 1] == material.swapped()


def test_promotions_keep_the_split_and_take_a_man() -> None:
    assert promotions(parse_name("2200")) == set()
    assert promotions(parse_name("0121")) == {parse_name("1111"), parse_name("0220").pair}
    for pair in pairs_up_to(MAX_PIECES):
        for after in promotions(pair):
            assert after.leads
            assert after.own_men + after.opp_men == pair.own_men + pair.opp_men - 1
            sides = sorted((after.own_men + after.own_kings, after.opp_men + after.opp_kings))
            assert sides == sorted((pair.own_men + pair.own_kings, pair.opp_men + pair.opp_kings))


# Ranks and steps


@pytest.mark.parametrize("kind", range(NUM_KINDS))
@pytest.mark.parametrize("count", range(4))
def test_placements_are_ranked_one_by_one(kind: int, count: int) -> None:
    masks = placements(kind, count).masks.tolist()
    squares = range(FIRST_SQUARE[kind], FIRST_SQUARE[kind] + NUM_PLACES[kind])
    assert set(masks) == {mask_of(chosen) for chosen in combinations(squares, count)}
    assert len(masks) == comb(NUM_PLACES[kind], count)
    assert [rank_of(np.uint32(mask), kind) for mask in masks] == list(range(len(masks)))


@given(st.integers(0, NUM_KINDS - 1), st.data())
def test_ranks_of_many_pieces(kind: int, data: st.DataObject) -> None:
    """The combinatorial number system, computed with plain binomials."""
    squares = sorted(data.draw(st.sets(st.integers(0, NUM_PLACES[kind] - 1), max_size=6)))
    mask = mask_of(square + FIRST_SQUARE[kind] for square in squares)
    assert rank_of(np.uint32(mask), kind) == sum(comb(square, i + 1) for i, square in enumerate(squares))


@pytest.mark.parametrize("kind", range(NUM_KINDS))
@pytest.mark.parametrize("count", range(1, 4))
def test_steps_lead_where_pieces_step(kind: int, count: int) -> None:
    table = placements(kind, count)
    assert table.first[0] == 0
    assert table.first[-1] == len(table.targets) == len(table.ranks)
    for rank in range(0, len(table.masks), 7):
        mask = table.masks[rank]
        expected = []
        for square in squares_of(int(mask)):
            piece = np.uint32(mask_of([square]))
            for direction in DIRECTIONS[kind]:
                land = step(piece, direction) & ~mask & np.uint32(PLACES[kind])
                if land:
                    expected.append((int(land), rank_of(np.uint32((mask ^ piece) | land), kind)))
        steps = slice(table.first[rank], table.first[rank + 1])
        found = zip(table.targets[steps].tolist(), table.ranks[steps].tolist(), strict=True)
        assert sorted(found) == sorted(expected)


def test_men_stand_everywhere_but_where_they_are_crowned() -> None:
    assert PLACES[0] == mask_of(range(28))
    assert PLACES[2] == mask_of(range(4, 32))
    assert PLACES[1] == PLACES[3] == mask_of(range(32))
    assert PLACES[2] == turned(np.uint32(PLACES[0]))
    assert FAR_ROW & PLACES[0] == 0


# Words and bits


@pytest.mark.parametrize("material", ALL, ids=lambda material: material.name)
def test_a_layout_counts_its_words(material: Material) -> None:
    layout = layout_of(material)
    assert layout == layout_of(material.swapped())
    assert layout.material == material.pair
    counts = list(layout.counts)
    counts[layout.roamer] += 1
    assert Material(*counts) == material.pair
    expected = 1
    for kind in range(NUM_KINDS):
        assert layout.sizes[kind] == comb(28 if kind % 2 == 0 else 32, layout.counts[kind])
        expected *= layout.sizes[kind]
    assert layout.words == expected
    last = sum(stride * (size - 1) for stride, size in zip(layout.strides, layout.sizes, strict=True))
    assert last == layout.words - 1
    stride = 1
    for kind in reversed(layout.order):
        assert layout.strides[kind] == stride
        stride *= layout.sizes[kind]


@pytest.mark.parametrize("material", [m for m in ALL if m.pieces <= 3], ids=lambda material: material.name)
def test_every_position_has_a_place_of_its_own(material: Material) -> None:
    """All words and bits of a small slice: ``locate`` finds the canonical ones, and their number is right."""
    slices, layout, places = directory(material), layout_of(material), 0
    for word in range(layout.words):
        pieces, taken, _ = unpacked(word, material)
        for square in squares_of(int(canonical_places(layout.roamer, taken, pieces[layout.roamer]))):
            bit = np.uint32(mask_of([square]))
            full = pieces.copy()
            full[layout.roamer] |= bit
            assert sum(map(popcount, full)) == material.pieces
            assert locate(*seen_by_mover(full, material), slices) == (word, lowest_bit(bit))
            places += 1
    assert places == number_of_positions(material)


def number_of_positions(material: Material) -> int:
    """Positions of a slice, counted by how many own men stand where the opponent's men are crowned."""
    own_men, own_kings, opp_men, opp_kings = material
    total = 0
    for high in range(own_men + 1):  # men off the home row
        men = comb(24, high) * comb(4, own_men - high) * comb(28 - high, opp_men)
        total += men * comb(32 - own_men - opp_men, own_kings) * comb(32 - own_men - opp_men - own_kings, opp_kings)
    return total


def test_positions_are_as_many_as_published() -> None:
    if not COUNTS.exists():
        pytest.skip("the sibling folder ../shared with the published counts is not there")
    published = json.loads(COUNTS.read_text())["two_sided_positions"]
    for pieces in range(2, 8):
        assert sum(map(number_of_positions, materials(pieces))) == published[str(pieces)]
    evenly = [m for m in ALL if max(m.own_men + m.own_kings, m.opp_men + m.opp_kings) <= 4]
    assert sum(map(number_of_positions, evenly)) == 132_537_738_625  # of 2-8 pieces, at most four a side


@st.composite
def positions(draw: st.DrawFn) -> tuple[Material, np.ndarray]:
    """A slice of 2-5 pieces, and pieces by kind, seen by the first side of its pair."""
    material = draw(st.sampled_from(FEW))
    free, pieces = set(range(32)), np.zeros(NUM_KINDS, np.uint32)
    for kind in sorted(range(NUM_KINDS), key=lambda kind: kind % 2):
        allowed = sorted(free & set(squares_of(PLACES[kind])))
        chosen = draw(st.permutations(allowed))[: material.pair[kind]]
        free -= set(chosen)
        pieces[kind] = mask_of(chosen)
    return material, pieces


@given(positions())
def test_located_positions_are_found_again(case: tuple[Material, np.ndarray]) -> None:
    """The word and bit of a position give the position again; they are the same for both sides to move."""
    material, pieces = case
    words = {side: seen_by_mover(pieces, side) for side in (material, material.swapped())}
    for side, position in words.items():
        assert code_of(*position) == side.code
    layout = layout_of(material)
    word, bit = locate(*words[material], directory(material, material.swapped()))
    assert 0 <= word < layout.words
    if not material.symmetric:
        assert locate(*words[material.swapped()], directory(material, material.swapped())) == (word, bit)
    found, taken, ranks = unpacked(word, material)
    assert word == sum(rank * stride for rank, stride in zip(ranks.tolist(), layout.strides, strict=True))
    roamer = np.uint32(1) << np.uint32(bit)
    assert free_places(layout.roamer, taken) & roamer
    found[layout.roamer] |= roamer
    assert found.tolist() == pieces.tolist()


@given(positions(), st.integers(0, 10**6))
def test_a_slice_begins_where_the_directory_says(case: tuple[Material, np.ndarray], start: int) -> None:
    material, pieces = case
    position = seen_by_mover(pieces, material)
    slices = no_slices()
    assert locate(*position, slices)[0] == -1
    add_slice(slices, material, start)
    word, bit = locate(*position, slices)
    assert (word - start, bit) == locate(*position, directory(material))


def test_words_with_two_pieces_on_one_square_are_empty() -> None:
    """All squares count as occupied, so that there is no square for the roamer."""
    material = parse_name("2110")
    layout = layout_of(material)
    clashes = 0
    for word in range(layout.words):
        pieces, taken, _ = unpacked(word, material)
        apart = sum(map(popcount, pieces)) == popcount(np.bitwise_or.reduce(pieces))
        clashes += not apart
        assert (free_places(layout.roamer, taken) == 0) == (not apart)
    assert 0 < clashes < layout.words / 4


def test_a_side_without_pieces_has_lost() -> None:
    nothing, words = no_slices(), np.zeros((1, 2), np.uint32)
    king = np.uint32(16)
    assert lookup(king, np.uint32(0), king, nothing, words) == 1
    assert lookup(np.uint32(0), king, king, nothing, words) == -1
