"""Move generation against published counts, against the plain rules of reference.py, and against another library."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import reference
from reference import START, Position, Step

from engine import movegen
from engine.bitboard import mask_of, squares_of
from engine.board import Board
from engine.fen import MAX_PIECES, START_FEN, format_fen, parse_fen, to_number
from engine.move import code_to_path
from engine.perft import count, divide

PERFT = json.loads((Path(__file__).parent / "data" / "perft.json").read_text())
START_COUNTS = PERFT["positions"][START_FEN]
CIRCLE = "B:W6,7,14,15:BK2"  # a king can take all four men either way round and end where it began


def words(fen: str) -> tuple[np.uint32, np.uint32, np.uint32]:
    _, own, opp, kings = parse_fen(fen)
    return np.uint32(own), np.uint32(opp), np.uint32(kings)


def perft(fen: str, depth: int, distinct: bool = False) -> int:
    return movegen.perft(*words(fen), depth, movegen.new_moves(max(depth, 1)), distinct)


def engine_moves(fen: str, distinct: bool) -> list[tuple[Step, str]]:
    """All generated moves in the reference's form (captured pieces in increasing order), each with the FEN after it."""
    turn, _, opp, _ = parse_fen(fen)
    buffer = movegen.new_moves()
    count = movegen.generate(*words(fen), buffer, distinct)
    moves = []
    for move in buffer[:count]:
        after = int(move["own"]), int(move["opp"]), int(move["kings"])
        taken = sorted(to_number(square, turn) for square in squares_of(opp & ~after[1]))
        step = Step(code_to_path(int(move["code"]), turn), tuple(taken))
        moves.append((step, format_fen(turn, *after).replace(turn.value, turn.other.value, 1)))
    return moves


def reference_moves(position: Position) -> list[tuple[Step, str]]:
    return [
        (Step(step.path, tuple(sorted(step.taken))), reference.make(position, step).fen())
        for step in reference.legal_moves(position)
    ]


def check_position(position: Position) -> None:
    fen = position.fen()
    expected = reference_moves(position)
    assert Counter(engine_moves(fen, distinct=False)) == Counter(expected), fen
    assert movegen.count_moves(*words(fen), movegen.new_moves()) == len(expected), fen
    kept = engine_moves(fen, distinct=True)
    assert set(kept) <= set(expected), fen
    assert Counter(after for _, after in kept) == Counter({after for _, after in expected}), fen


def play(position: Position, rng: random.Random, plies: int) -> int:
    """Checks every position of a random game; returns their number."""
    for ply in range(plies):
        check_position(position)
        moves = reference.legal_moves(position)
        if not moves:
            return ply + 1
        position = reference.make(position, rng.choice(moves))
    return plies


@pytest.mark.parametrize("depth", range(1, 11))
def test_perft_from_the_start(depth: int) -> None:
    assert perft(START_FEN, depth) == START_COUNTS[depth - 1]
    assert perft(START_FEN, depth, distinct=True) == START_COUNTS[depth - 1]


@pytest.mark.slow
def test_perft_from_the_start_deep() -> None:
    """One depth is enough: whatever is wrong one ply earlier is wrong here."""
    assert perft(START_FEN, 12) == START_COUNTS[11]
    assert perft(START_FEN, 12, distinct=True) == PERFT["distinct"]["12"]


@pytest.mark.parametrize("fen", [fen for fen in PERFT["positions"] if fen != START_FEN])
def test_perft_from_other_positions(fen: str) -> None:
    for depth, expected in enumerate(PERFT["positions"][fen], 1):
        assert perft(fen, depth) == expected


@pytest.mark.parametrize("distinct", [False, True])
def test_a_long_count_is_made_in_parts(monkeypatch: pytest.MonkeyPatch, distinct: bool) -> None:
    monkeypatch.setattr("engine.perft._AT_ONCE", 2)
    for fen in (START_FEN, CIRCLE, "W:WK14,K18,25:B1,5,9,K32"):
        whole = perft(fen, 6, distinct)
        assert count(Board(fen), 6, distinct) == whole
        assert sum(divide(Board(fen), 6, distinct).values()) == whole


def test_perft_of_nothing_and_of_a_lost_position() -> None:
    assert perft(START_FEN, 0) == 1
    assert perft("B:W21:B", 1) == 0
    assert perft("B:W21:B", 3) == 0


def test_reference_perft() -> None:
    assert [reference.perft(Position("B", START), depth) for depth in range(1, 6)] == START_COUNTS[:5]


def test_random_games_against_reference() -> None:
    rng = random.Random(1)
    assert sum(play(Position("B", START), rng, 200) for _ in range(25)) > 1000


def test_king_endgames_against_reference() -> None:
    rng = random.Random(2)
    positions = [reference.random_position(rng, most=3, kings=0.9) for _ in range(100)]
    assert sum(play(position, rng, 30) for position in positions) > 1000


def test_random_positions_against_reference() -> None:
    rng = random.Random(3)
    for kings in (0.0, 0.3, 1.0):
        for _ in range(700):
            check_position(reference.random_position(rng, kings=kings))


@pytest.mark.parametrize("most", [4, 12])
def test_colours_are_treated_alike(most: int) -> None:
    """Rotating the board and exchanging the colours, the game's only symmetry, changes no counts."""
    rng = random.Random(most)
    for _ in range(300):
        position = reference.random_position(rng, most=most)
        turned = Position(
            "W" if position.turn == "B" else "B",
            {33 - number: {"b": "w", "w": "b", "B": "W", "W": "B"}[piece] for number, piece in position.pieces.items()},
        )
        moves = Counter(step for step, _ in engine_moves(position.fen(), distinct=False))
        mirrored = Counter(
            Step(tuple(33 - number for number in step.path), tuple(sorted(33 - number for number in step.taken)))
            for step, _ in engine_moves(turned.fen(), distinct=False)
        )
        assert moves == mirrored


def test_random_games_against_pydraughts() -> None:
    draughts = pytest.importorskip("draughts", reason="pydraughts (a development dependency) is not installed")
    rng = random.Random(4)
    plies = 0
    for game in range(16):
        position = Position("B", START) if game % 2 else reference.random_position(rng, most=6, kings=0.6)
        board = draughts.Board(variant="english", fen=position.fen())
        for _ in range(40):
            theirs = {
                ((hops[0][0], *(hop[1] for hop in hops)), tuple(sorted(move.captures or [])))
                for move in board.legal_moves()
                for hops in [move.board_move]
            }
            ours = {(step.path, step.taken) for step, _ in engine_moves(position.fen(), distinct=False)}
            assert ours == theirs, position.fen()
            if not ours:
                break
            step = rng.choice(reference.legal_moves(position))
            board.push(draughts.Move(board, steps_move=list(step.path)))
            position = reference.make(position, step)
            plies += 1
    assert plies > 200


def paths(fen: str) -> set[tuple[int, ...]]:
    return {step.path for step, _ in engine_moves(fen, distinct=False)}


def test_circular_capture_ends_where_it_began() -> None:
    assert paths(CIRCLE) == {(2, 9, 18, 11, 2), (2, 11, 18, 9, 2)}
    assert [after for _, after in engine_moves(CIRCLE, distinct=True)] == ["W:W:BK2"]
    assert movegen.count_moves(*words(CIRCLE), movegen.new_moves()) == 2
    assert perft(CIRCLE, 1) == 2
    assert perft(CIRCLE, 1, distinct=True) == 1


def test_king_crosses_its_start_square() -> None:
    """The king can jump round the circle in both directions and across its start: 18 is empty while it jumps."""
    assert paths("B:W6,7,14,15,22:BK18") == {(18, 9, 2, 11, 18, 25), (18, 11, 2, 9, 18, 25), (18, 25)}


def test_no_piece_is_taken_twice() -> None:
    rng = random.Random(5)
    longest = 0
    for _ in range(500):
        for step, _ in engine_moves(reference.random_position(rng, most=12, kings=1.0).fen(), distinct=False):
            assert not step.taken or len(step.taken) == len(step.path) - 1
            longest = max(longest, len(step.taken))
    assert longest >= 4


def test_promotion_ends_the_move() -> None:
    """The man takes 25 and is crowned on 30; the new king could go on over 26."""
    fen = "B:W25,26,27:B21"
    assert engine_moves(fen, distinct=False) == [(Step((21, 30), (25,)), "W:W26,27:BK30")]
    assert paths("B:W26,27:BK30") == {(30, 23, 32)}


def test_captures_are_compulsory_but_none_is_preferred() -> None:
    fen = "B:W15,17,25:B10,13,K1"  # 13x22x29 takes two, 10x19 one; the king has no capture and may not move
    assert paths(fen) == {(10, 19), (13, 22, 29)}
    assert paths("B:W17:BK13,12") == {(13, 22)}


def test_men_capture_forward_only() -> None:
    assert paths("B:W10:B14") == {(14, 17), (14, 18)}
    assert paths("B:W10:BK14") == {(14, 7)}
    assert paths("W:W14:B18") == {(14, 9), (14, 10)}


def jump_sets() -> list[tuple[list[int], list[int]]]:
    """The four sets of squares that are connected by jumps, each with the squares that these jumps pass over."""
    sets = []
    for first in (1, 2, 5, 6):
        squares, overs = [first], set()
        for number in squares:  # grows while it is walked
            for direction in reference.DIRECTIONS:
                over = reference.neighbour(number, *direction)
                land = reference.neighbour(over, *direction) if over else None
                if over and land:
                    overs.add(over)
                    squares += [land] if land not in squares else []
        sets.append((sorted(squares), sorted(overs)))
    return sets


def subset_words(numbers: list[int]) -> list[np.uint32]:
    """The words of all subsets of these squares; subset ``i`` holds the squares of the set bits of ``i``."""
    return [
        np.uint32(mask_of(number - 1 for place, number in enumerate(numbers) if i >> place & 1))
        for i in range(1 << len(numbers))
    ]


def most_captures(squares: list[int], overs: list[int]) -> list[int]:
    """Largest number of capture paths of kings on ``squares`` over n opponents on ``overs``, for n = 0, 1, ..., 9."""
    most = [0] * (len(overs) + 1)
    buffer = movegen.new_moves()
    own_words = subset_words(squares)[1:]
    for subset, opp in enumerate(subset_words(overs)):
        n = subset.bit_count()
        for own in own_words:
            kings = own | opp
            if movegen.generate(own, opp, kings, buffer, False) and movegen.is_capture(buffer[0]["code"]):
                most[n] = max(most[n], movegen.count_moves(own, opp, kings, buffer))
    return most


def test_no_position_fills_the_move_buffer() -> None:
    """Twelve pieces have at most 48 steps. Proof that no position has as many captures:

    The jumps of a piece stay within one of four sets of eight squares and pass over nine squares, the same nine for two
    of the sets. Change a position by making men kings, removing pieces in the way, or adding an opponent on one of the
    nine squares. Every complete capture path remains the beginning of a complete path, and different paths of different
    ones. So the number of paths of a set is largest with nothing on the board but its kings and the opponents that are
    jumped over, and the numbers of the sets add up.
    """
    sets = jump_sets()
    assert sorted(number for squares, _ in sets for number in squares) == list(range(1, 33))
    (overs_a, overs_b), pairs = sorted({tuple(overs) for _, overs in sets}), [[], []]
    for squares, overs in sets:
        assert (len(squares), len(overs)) == (8, 9)
        pairs[tuple(overs) == overs_b].append(most_captures(squares, overs))
    assert overs_a != overs_b
    totals = [[sum(counts) for counts in zip(*pair, strict=True)] for pair in pairs]
    bound = max(a + b for n, a in enumerate(totals[0]) for m, b in enumerate(totals[1]) if n + m <= MAX_PIECES)
    assert bound < 4 * MAX_PIECES <= movegen.MAX_MOVES


def test_most_steps() -> None:
    """No position has more steps (integer programming)."""
    assert perft("B:W:BK5,K6,K7,K8,K15,K16,K17,K18,K24,K25,K26,K27", 1) == 42


def climb(rng: random.Random, steps: int) -> int:
    """Largest number of capture paths of kings found by changing squares at random while the number does not fall."""
    buffer = movegen.new_moves()

    def paths_of(sides: list[set[int]]) -> int:
        own, opp = (np.uint32(mask_of(side)) for side in sides)
        count = movegen.generate(own, opp, own | opp, buffer, False)
        return count if count and movegen.is_capture(buffer[0]["code"]) else 0

    best, kept = 0, [set(range(10)), set(range(20, 30))]
    for _ in range(steps):
        sides = [side.copy() for side in kept]
        for square in rng.sample(range(32), rng.choice((1, 1, 2, 3))):
            for side in sides:
                side.discard(square)
            side = rng.choice((*sides, None))
            if side is not None and len(side) < MAX_PIECES:
                side.add(square)
        if (count := paths_of(sides)) >= best:
            best, kept = count, sides
    return best


def test_most_captures_found() -> None:
    """34 is also what an exhaustive search over the jump sets gives."""
    rng = random.Random(6)
    assert max(climb(rng, 4000) for _ in range(6)) == 34
