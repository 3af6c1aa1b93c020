"""Values and distances of the tables: against the plain solver, against one another, and against another library."""

import json
import random
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tablebase_reference as plain
from numba import njit
from solved_tables import solve_tables

from engine.bitboard import BIT_OF_SQUARE, turned
from engine.board import Board
from engine.fen import Color, format_fen, parse_fen
from engine.tablebase.count import count_pair
from engine.tablebase.dense import DenseDistances, DenseTables
from engine.tablebase.distance import KnownSlices, lookup_half
from engine.tablebase.layout import add_slice, layout_of, locate
from engine.tablebase.material import Material, materials, pairs_up_to
from engine.tablebase.solve import free_places, grid_of, place_word
from engine.tablebase.solver import Values, Workers, problem_of, solve_pair

COUNTS = Path(__file__).parents[2] / "shared" / "reference" / "tablebase_counts.json"
TOTALS = {  # win, draw, loss for the side to move
    2: (716, 2370, 402),
    3: (100250, 8477, 87305),
    4: (2574304, 1717922, 1917090),
    5: (71334772, 11122892, 56993144),
}
MOST = 4


def copied(values: Values) -> Values:
    """Copies values: those of a symmetric pair's second side are overwritten by the next symmetric pair."""
    return values[0].copy(), values[1].copy()


class Dated:
    """Values and distances of all positions of 2 to ``pieces`` pieces, with the arrays of the pairs."""

    def __init__(self, pieces: int) -> None:
        self.tables, self._distances = DenseTables(pieces), DenseDistances(pieces)
        self.values: dict[Material, Values] = {}
        self.halves: dict[Material, np.ndarray] = {}
        with Workers(1) as workers:
            for pair in pairs_up_to(pieces):
                self.values[pair] = copied(self.tables.solve(pair, workers))
                self.halves[pair] = self._distances.solve(pair, self.tables, self.values[pair], workers)

    def __call__(self, positions: np.ndarray) -> list[tuple[int, int]]:
        """(value, plies to the end) of positions, uint32 [N, 3]; 0 plies for draws."""
        found = np.zeros((len(positions), 2), np.int64)
        _date(positions, KnownSlices(self.tables.slices, self.tables.words, self._distances._rows), found)
        return [(value, 2 * half - (value == 1)) for value, half in found.tolist()]


@njit(cache=True)
def _date(positions, known, found):
    for i in range(len(positions)):
        own, opp, kings = positions[i]
        found[i, 0], found[i, 1] = lookup_half(own, opp, kings, known)


@cache
def dated() -> Dated:
    return Dated(MOST)


def words_of(positions: list[plain.Pieces]) -> np.ndarray:
    """Own, opponent's and kings' words, uint32 [N, 3]."""
    found = np.zeros((len(positions), 3), np.uint32)
    for row, pieces in zip(found, positions, strict=True):
        for number, piece in pieces:
            bit = np.uint32(1) << np.uint32(BIT_OF_SQUARE[number - 1])
            row[0 if piece in "bB" else 1] |= bit
            row[2] |= bit if piece.isupper() else np.uint32(0)
    return found


def negamax(after: list[tuple[int, int]]) -> tuple[int, int]:
    """Value and plies of a position from those of its successors: shortest win, longest loss."""
    wins = [plies for value, plies in after if value == -1]
    if wins:
        return 1, min(wins) + 1
    if all(value == 1 for value, _ in after):
        return -1, max((plies + 1 for _, plies in after), default=0)
    return 0, 0


# All positions of two and three pieces


def test_every_position_of_two_and_three_pieces() -> None:
    expected = plain.solve(3)
    positions = list(expected)
    found = dated()(words_of(positions))
    wrong = [(p, f, expected[p]) for p, f in zip(positions, found, strict=True) if f != expected[p]]
    assert not wrong, (len(wrong), wrong[:3])


def test_lookup_agrees_with_the_dated_values() -> None:
    rng = random.Random(1)
    positions = words_of([plain.random_position(rng, rng.randint(2, MOST)) for _ in range(2000)])
    expected = [value for value, _ in dated()(positions)]
    assert dated().tables.lookup(positions).tolist() == expected
    padded = np.concatenate([positions, positions[:, :1]], axis=1)
    assert dated().tables.lookup(padded).tolist() == expected
    assert set(expected) == {-1, 0, 1}


# Counts


def count(tables: DenseTables, pieces: int) -> Counter[str]:
    """Numbers of won, drawn and lost positions for the side to move."""
    total: Counter[str] = Counter()
    for material in materials(pieces):
        if material.leads:
            values = np.stack([tables.slice_rows(material), tables.slice_rows(material.swapped())])
            for counts in count_pair(layout_of(material), values).values():
                total.update(win=counts.win, draw=counts.draw, loss=counts.loss)
    return total


def check_counts(tables: DenseTables, pieces: int) -> None:
    total = count(tables, pieces)
    assert (total["win"], total["draw"], total["loss"]) == TOTALS[pieces]
    if COUNTS.exists():
        assert total.total() == json.loads(COUNTS.read_text())["two_sided_positions"][str(pieces)]


@pytest.mark.parametrize("pieces", range(2, MOST + 1))
def test_counts_of_wins_draws_and_losses(pieces: int) -> None:
    """Totals with one side to move; the numbers of positions are published (Wang 2023, Table 1)."""
    check_counts(dated().tables, pieces)


def test_counts_of_single_slices() -> None:
    """Every slice of two and three pieces, counted one position at a time."""
    expected: dict[str, Counter[int]] = {}
    longest: Counter[str] = Counter()
    for pieces, (value, plies) in plain.solve(3).items():
        letters = [piece for _, piece in pieces]
        name = "".join(str(letters.count(piece)) for piece in "BWbw")
        expected.setdefault(name, Counter())[value] += 1
        longest[name] = max(longest[name], plies if value == 1 else 0)
    found = {}
    for pair in pairs_up_to(3):
        found |= count_pair(layout_of(pair), dated().values[pair], dated().halves[pair])
    assert found.keys() == expected.keys()
    for name, counts in found.items():
        assert (counts.win, counts.draw, counts.loss) == tuple(expected[name][value] for value in (1, 0, -1)), name
        assert counts.longest_win == (longest[name] or None)


def test_longest_wins_are_shown() -> None:
    """The example has the pieces of the slice and takes as long as it says; nothing in the slice takes longer."""
    shown = 0
    for pair in pairs_up_to(MOST):
        for side, (name, counts) in enumerate(
            count_pair(layout_of(pair), dated().values[pair], dated().halves[pair]).items()
        ):
            won = np.unpackbits(dated().values[pair][side][:, :1].copy().view(np.uint8), axis=1, bitorder="little")
            plies = 2 * dated().halves[pair][side].astype(int) - 1
            assert counts.longest_win == (plies[won == 1].max() if won.any() else None), name
            if counts.longest_fen is None:
                assert counts.longest_win is None
                continue
            turn, *words = parse_fen(counts.longest_fen)
            assert turn is Color.BLACK
            letters = [piece for _, piece in letters_of(counts.longest_fen)]
            assert "".join(str(letters.count(piece)) for piece in "BWbw") == name
            assert dated()(np.array([words], np.uint32)) == [(1, counts.longest_win)]
            shown += 1
    assert shown > 30


def letters_of(fen: str) -> plain.Pieces:
    """The pieces of a position, seen by its side to move."""
    board = Board(fen)
    pieces = tuple(
        (number, color.value if king else color.value.lower())
        for number, (color, king) in sorted(board.piece_map().items())
    )
    return pieces if board.turn is Color.BLACK else plain.turned(pieces)


# Consistency


@pytest.mark.parametrize("pieces", [3, 4])
def test_values_and_distances_follow_from_the_successors(pieces: int) -> None:
    rng = random.Random(pieces)
    positions = [plain.random_position(rng, pieces) for _ in range(3000)]
    after = [sorted(plain.successors(position)) for position in positions]
    everyone = [each for list_ in after for each in list_]
    bare = {each for each in everyone if not any(piece in "bB" for _, piece in each)}
    known = dict(zip(everyone, dated()(words_of(everyone)), strict=True))
    assert all(known[each] == (-1, 0) for each in bare)
    for position, found, each in zip(positions, dated()(words_of(positions)), after, strict=True):
        assert found == negamax([known[one] for one in each]), position


def test_playing_on_ends_when_the_tables_say() -> None:
    """From won positions, both sides play by the tables on a ``Board``: the game ends after exactly the given plies."""
    rng = random.Random(5)
    played = 0
    while played < 12:
        board = Board(format_fen(Color.BLACK, *words_of([plain.random_position(rng, MOST)])[0].tolist()))
        ((value, plies),) = dated()(np.array([board.words()], np.uint32))
        if value != 1 or plies < 5:
            continue
        winner = board.turn
        for left in range(plies, 0, -1):
            scores = []
            for move in board.legal_moves:
                board.push(move)
                ((value, soon),) = dated()(np.array([board.words()], np.uint32))
                board.pop()
                scores.append(((-value, value * soon), move))
            (value, soon), move = max(scores, key=lambda score: score[0])
            assert value == (1 if board.turn is winner else -1)
            assert abs(soon) == left - 1
            board.push(move)
        assert not board.legal_moves
        assert board.turn is winner.other
        played += 1


@njit(cache=True)
def _differing_copies(grid, values, halves, here):
    """Copies of positions, and those of them that differ from the copy that ``locate`` finds."""
    ranks, pieces = np.zeros(4, np.int64), np.zeros(4, np.uint32)
    copies = differ = stray = 0
    for word in range(grid.words):
        taken = place_word(grid, word, ranks, pieces)
        places = free_places(grid.roamer, taken)
        stray += (values[word, 0] | values[word, 1]) & ~places != 0 or values[word, 0] & values[word, 1] != 0
        others = pieces[grid.roamer]
        for b in range(32):
            bit = np.uint32(1) << np.uint32(b)
            if places & bit == 0:
                continue
            pieces[grid.roamer] = others | bit
            own, opp, kings = pieces[0] | pieces[1], pieces[2] | pieces[3], pieces[1] | pieces[3]
            if grid.second:
                own, opp, kings = turned(opp), turned(own), turned(kings)
            at, place = locate(own, opp, kings, here)
            if at != word or place != b:
                copies += 1
                for outcome in range(2):
                    differ += (values[word, outcome] >> b ^ values[at, outcome] >> place) & 1 != 0
                differ += halves[word, b] != halves[at, place]
        pieces[grid.roamer] = others
    return copies, differ, stray


@pytest.mark.parametrize("pair", pairs_up_to(MOST), ids=lambda pair: pair.name)
def test_copies_of_a_position_agree(pair: Material) -> None:
    """With other pieces of the roamer's kind, a position has copies in several words. Bits without a position are 0."""
    slices, layout = dated().tables.slices.copy(), layout_of(pair)
    for side, material in enumerate([pair] if pair.symmetric else [pair, pair.swapped()]):
        add_slice(slices, material, 0)
        grid = grid_of(layout, side == 1)
        values, halves = dated().values[pair][side], dated().halves[pair][side]
        copies, differ, stray = _differing_copies(grid, values, halves, slices)
        assert (differ, stray) == (0, 0)
        assert (copies > 0) == (pair[layout.roamer] > 1)


@pytest.mark.parametrize("pair", [pair for pair in pairs_up_to(MOST) if pair.symmetric], ids=lambda pair: pair.name)
def test_equal_sides_have_equal_chances(pair: Material) -> None:
    """The two halves of a symmetric pair have the same positions, turned."""
    (first, second), slices = dated().values[pair], dated().tables.slices.copy()
    assert np.bitwise_count(first).sum() == np.bitwise_count(second).sum()
    add_slice(slices, pair, 0)
    rng, seen = random.Random(pair.code), 0
    while seen < 200:
        position = plain.random_position(rng, pair.pieces)
        letters = [piece for _, piece in position]
        if [letters.count(piece) for piece in "bBwW"] != list(pair):
            continue
        own, opp, kings = words_of([position])[0]
        word, bit = locate(own, opp, kings, slices)  # the mover being the first side, and being the second
        there, place = locate(turned(opp), turned(own), turned(kings), slices)
        for outcome in range(2):
            assert first[word, outcome] >> bit & 1 == second[there, outcome] >> place & 1
        seen += 1


def test_threads_do_not_change_values() -> None:
    pair = Material(1, 1, 1, 1)
    with Workers(3) as workers:
        tables = dated().tables
        for _ in range(3):
            first, second = np.zeros((2, layout_of(pair).words, 2), np.uint32)
            solve_pair(problem_of(layout_of(pair), tables.slices, tables.words, (first, second)), workers)
            assert np.array_equal((first, second), dated().values[pair])


# Positions that lie outside


@pytest.mark.parametrize(
    "fen",
    [
        "B:W24:B1,K2,K32,K31",  # one piece more than there are tables for
        "B:WK1,K2,K3,K4,K5,K6,K7,K8:BK32",  # eight kings must not be taken for one man more
        "B:WK32:BK1,K2,K3,K4,K5,K6,K7,K8",
        "B:WK32:BK1,K2,K3,K4,K5,K6,K7,K8,K9",
    ],
)
def test_what_is_not_filled_in_is_refused(fen: str) -> None:
    tables = solve_tables(3, threads=1)
    positions = np.array([parse_fen("B:WK32:BK1")[1:], parse_fen(fen)[1:]], np.uint32)
    with pytest.raises(KeyError, match="not filled in"):
        tables.lookup(positions)


def test_a_pair_taken_out_is_refused_and_can_come_back() -> None:
    tables = solve_tables(2, threads=1)
    pair = Material(0, 1, 0, 1)
    positions = np.array([parse_fen("B:WK32:BK1")[1:], parse_fen("B:WK14:BK1")[1:]], np.uint32)
    values, expected = tables.slice_rows(pair).copy(), tables.lookup(positions)
    tables.drop(pair)
    assert pair not in tables
    with pytest.raises(KeyError, match="not filled in"):
        tables.lookup(positions)
    tables.fill(pair, np.stack([values, values]))
    assert pair in tables
    assert np.array_equal(tables.lookup(positions), expected)


# Other rules of the same game


def test_values_by_the_moves_of_pydraughts() -> None:
    draughts = pytest.importorskip("draughts", reason="pydraughts (a development dependency) is not installed")
    rng = random.Random(6)
    for _ in range(250):
        fen = format_fen(Color.BLACK, *words_of([plain.random_position(rng, MOST)])[0].tolist())
        board, after = draughts.Board(variant="english", fen=fen), []
        for move in board.legal_moves():
            board.push(move)
            after.append(parse_fen(board.fen)[1:])
            board.pop()
        scores = dated()(np.array(after, np.uint32).reshape(-1, 3))
        assert dated()(np.array([parse_fen(fen)[1:]], np.uint32)) == [negamax(scores)], fen


@pytest.mark.slow
def test_five_pieces() -> None:
    """Counts, and positions against their successors by the plain rules."""
    tables, rng = solve_tables(5, threads=1), random.Random(7)
    check_counts(tables, 5)
    positions = [plain.random_position(rng, 5) for _ in range(8000)]
    after = [sorted(plain.successors(position)) for position in positions]
    everyone = sorted({each for list_ in after for each in list_ if any(piece in "bB" for _, piece in each)})
    known = dict(zip(everyone, tables.lookup(words_of(everyone)).tolist(), strict=True))
    for position, value, each in zip(positions, tables.lookup(words_of(positions)).tolist(), after, strict=True):
        assert value == max((-known.get(one, -1) for one in each), default=-1), position
