"""What the network sees and says: planes, hops and logits against a plain board, and no logit shared by two moves."""

import random
from itertools import pairwise

import numpy as np
import pytest
import reference
from numba import njit

from engine.bitboard import FAR_ROW, popcount, turned
from engine.board import Board
from engine.encoding import (
    MAX_HOPS,
    NO_HOP,
    NUM_PLANES,
    NUM_POLICY,
    encode_planes,
    hop_indices,
    hop_table,
    move_logit,
)
from engine.fen import START_FEN, Color, parse_fen, to_square
from engine.movegen import MAX_MOVES, MOVE, generate, is_capture, move_hops, new_moves

START = parse_fen(START_FEN)[1:]
CIRCLE = "B:W6,7,14,15:BK2"  # the king takes all four men, either way round
DIRECTIONS = ((1, 1), (1, -1), (-1, -1), (-1, 1))  # row step and column step of each direction, seen by Black


def random_boards(seed: int, count: int) -> list[Board]:
    """The start, a position with a circular capture, another one, and random positions that have a legal move."""
    rng = random.Random(seed)
    boards = [Board(), Board(CIRCLE), Board("W:WK31:B18,19,26,27")]
    while len(boards) < count:
        board = Board(reference.random_position(rng, 12, rng.random()).fen())
        if board.legal_moves:
            boards.append(board)
    return boards


def stack(boards: list[Board]) -> np.ndarray:
    return np.array([[*board.words(), 7 * i % 81] for i, board in enumerate(boards)], np.uint32)


def test_planes() -> None:
    """Compared with the piece map, square by square; for White the board is turned by 180 degrees."""
    boards = random_boards(1, 300)
    positions = stack(boards)
    planes = encode_planes(positions)
    assert planes.shape == (300, NUM_PLANES, 8, 4)
    assert planes.dtype == np.float32
    for board, position, seen in zip(boards, positions, planes, strict=True):
        expected = np.zeros((6, 32), np.float32)
        for number, (color, is_king) in board.piece_map().items():
            expected[2 * (color is not board.turn) + is_king, to_square(number, board.turn)] = 1
        expected[4] = position[3] / 80
        expected[5] = [square // 4 % 2 for square in range(32)]
        np.testing.assert_array_equal(seen, expected.reshape(6, 8, 4).astype(np.float32))
    assert encode_planes(positions[:0]).shape == (0, 6, 8, 4)


def test_planes_do_not_know_colours() -> None:
    """A position turned by 180 degrees with colours exchanged has the same planes."""
    black, white = Board("B:W18,K23:B1,K30"), Board("W:B15,K10:W32,K3")
    assert black.words() == white.words()
    assert black.turn is Color.BLACK


def expected_hops(board: Board, path: tuple[int, ...]) -> list[int]:
    """Policy indices of a path of PDN numbers, by rows and columns of the plain board."""
    hops = []
    for start, end in pairwise(path):
        for direction, (row_step, column_step) in enumerate(DIRECTIONS):
            sign = 1 if board.turn is Color.BLACK else -1
            over = reference.neighbour(start, sign * row_step, sign * column_step)
            beyond = over and reference.neighbour(over, sign * row_step, sign * column_step)
            if end in (over, beyond):
                hops.append(32 * direction + to_square(start, board.turn))
    assert len(hops) == len(path) - 1
    return hops


def test_hop_table_is_the_boards_paths() -> None:
    boards = random_boards(2, 400)
    table, counts = hop_table(stack(boards))
    assert table.dtype == np.uint8
    assert table.shape[0] == len(boards)
    assert table.shape[1] == counts.max()
    longest = 0
    for board, rows, count in zip(boards, table, counts, strict=True):
        found = [tuple(int(hop) for hop in row if hop != NO_HOP) for row in rows]
        assert not any(found[count:])
        by_position: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
        for legal in board.legal_paths():
            by_position.setdefault(legal.after, []).append(tuple(expected_hops(board, legal.move.path)))
        assert count == len(by_position)
        for hops, ways in zip(found[:count], by_position.values(), strict=True):  # in the order of generation
            assert hops == ways[0]
        longest = max(longest, *map(len, found))
        assert all(
            row[len(hops) :].tolist() == [NO_HOP] * (len(row) - len(hops))
            for row, hops in zip(rows, found, strict=True)
        )
    assert table.shape[2] == longest >= 4


def test_hop_table_of_nothing() -> None:
    for positions in (np.zeros((0, 4), np.uint32), np.zeros((2, 4), np.uint32)):
        table, counts = hop_table(positions)
        assert table.shape == (len(positions), 1, 1)
        assert not counts.any()
        assert (table == NO_HOP).all()


def test_move_logit_is_the_sum_of_hops() -> None:
    boards = random_boards(3, 200)
    positions = stack(boards)
    logits = np.random.default_rng(0).normal(size=(len(boards), NUM_POLICY)).astype(np.float32)
    table, counts = hop_table(positions)
    padded = np.concatenate([logits, np.zeros((len(boards), 1), np.float32)], axis=1)  # NO_HOP counts nothing
    for i, board in enumerate(boards):
        buffer = new_moves()
        assert generate(*positions[i, :3], buffer, True) == counts[i] > 0, board.fen()
        for j in range(counts[i]):
            assert move_logit(logits, i, buffer[j]["code"]) == pytest.approx(padded[i, table[i, j]].sum(), abs=1e-5)


@njit(cache=True)
def _next_random(state):
    """xorshift64*; returns 32 random bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.uint32((x * np.uint64(2685821657736338717)) >> np.uint64(32))


@njit(cache=True)
def _random_square(state):
    return np.uint32(np.uint32(1) << np.uint32(_next_random(state) & np.uint32(31)))


@njit(cache=True)
def _set_up(state):
    """A random position, up to twelve pieces a side, from few kings to kings alone."""
    own = opp = kings = np.uint32(0)
    own_count, opp_count = 1 + _next_random(state) % 12, 1 + _next_random(state) % 12
    share = _next_random(state) % 9
    while popcount(own) < own_count:
        own = np.uint32(own | _random_square(state))
    while popcount(opp) < opp_count:
        opp = np.uint32((opp | _random_square(state)) & ~own)
    for bit in range(32):
        if _next_random(state) % 8 < share:
            kings = np.uint32(kings | np.uint32(np.uint32(1) << np.uint32(bit)))
    crowned = np.uint32((own & np.uint32(FAR_ROW)) | (opp & turned(np.uint32(FAR_ROW))))
    return own, opp, np.uint32((kings | crowned) & (own | opp))


@njit(cache=True)
def _hop_masks(code, masks, i):
    """Writes to ``masks[i]``, one mask per direction, from which squares a move hops; returns whether a hop repeats."""
    masks[i] = 0
    hops = np.zeros(MAX_HOPS, np.int64)
    twice = False
    for hop in hops[: hop_indices(code, hops)]:
        square = np.uint32(np.uint32(1) << np.uint32(hop % 32))
        twice |= (masks[i, hop // 32] & square) != 0
        masks[i, hop // 32] |= square
    return twice


@njit(cache=True)
def _same_position(a, b):
    return a.own == b.own and a.opp == b.opp and a.kings == b.kings


@njit(cache=True)
def _check_position(moves, count, distinct, kept, masks, totals):
    """Adds to ``totals``: broken rules, multi-jumps, captures that reach a position by another way."""
    doubles = 0
    for i in range(count):
        totals[0] += _hop_masks(moves[i].code, masks, i)
        totals[1] += is_capture(moves[i].code) and move_hops(moves[i].code) > 1
        other_way = False
        for j in range(i):
            if _same_position(moves[i], moves[j]):
                other_way = True
            else:
                totals[0] += (masks[i] == masks[j]).all()
        doubles += other_way
        found = 0
        for j in range(kept):
            found += _same_position(moves[i], distinct[j])
        totals[0] += found != 1
    totals[0] += kept != count - doubles
    totals[2] += doubles


@njit(cache=True)
def _check_random_play(seed, positions, plies):
    """Checks every position of random games: from the start (``plies`` 0) or from random positions for some plies.

    Returns:
        Broken rules, multi-jumps, captures that reach a position by another way, positions with kings to move.
    """
    state = np.full(1, seed, np.uint64)
    moves, distinct = np.empty(MAX_MOVES, MOVE), np.empty(MAX_MOVES, MOVE)
    masks = np.zeros((MAX_MOVES, 4), np.uint32)
    totals = np.zeros(4, np.int64)
    own, opp, kings = np.uint32(START[0]), np.uint32(START[1]), np.uint32(START[2])
    ply = 0
    while positions > 0:
        count = generate(own, opp, kings, moves, False)
        if count == 0 or ply == (plies if plies > 0 else 200):
            own, opp, kings = np.uint32(START[0]), np.uint32(START[1]), np.uint32(START[2])
            if plies > 0:
                own, opp, kings = _set_up(state)
            ply = 0
            continue
        _check_position(moves, count, distinct, generate(own, opp, kings, distinct, True), masks, totals)
        totals[3] += (own & kings) != 0
        move = moves[_next_random(state) % np.uint32(count)]
        own, opp, kings = turned(move.opp), turned(move.own), turned(move.kings)
        ply += 1
        positions -= 1
    return totals


@pytest.mark.parametrize(("plies", "multi_jumps", "doubles"), [(0, 30_000, 5), (3, 150_000, 1_000)])
def test_no_two_moves_share_a_logit(plies: int, multi_jumps: int, doubles: int) -> None:
    """On a million positions of random games, and as many near random positions with many kings and multi-jumps.

    The logit of a move is the sum over its hops. No hop occurs twice in a move, and two moves that lead to different
    positions have different *sets* of hops, so there are hop logits that distinguish them. (Proof: hops are directed
    edges between squares, and a move is a trail. Two open trails with the same edges have the same start and end. Two
    closed trails with different starts would begin at different pieces, each of which would block the other. With the
    same start, end and captures, the moves reach the same position.)
    """
    broken, found_multi_jumps, found_doubles, with_kings = _check_random_play(np.uint64(2024), 1_000_000, plies)
    assert broken == 0
    assert found_multi_jumps > multi_jumps
    assert found_doubles > doubles
    assert with_kings > 400_000


def test_a_circle_is_one_move() -> None:
    """Both directions of a circular capture reach the same position: they are one move, with the hops of the first."""
    board = Board(CIRCLE)
    table, counts = hop_table(stack([board]))
    assert counts.tolist() == [1]
    assert len(board.legal_paths()) == 2
    assert table[0, 0].tolist() == expected_hops(board, board.legal_paths()[0].move.path)
