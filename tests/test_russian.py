"""Moves of Russian draughts against plain rules and another library, and their policy and notation.

``in_russian.py`` tests the rest of the program, in a process that plays Russian draughts.
"""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import reference
import russian_reference
from reference import START, Position

from engine.bitboard import BIT_OF_SQUARE, NUM_SQUARES, SQUARE_OF_BIT, row_column, squares_of
from engine.fen import Color, format_fen, parse_fen, pieces_of, to_number, to_square
from engine.game import GAME_VARIABLE, OtherGameError, check_game
from engine.rules import russian
from engine.rules.moves import DISTINCT, EVERY_PATH, MOVE, is_capture, move_start

HERE = Path(__file__).parent
FIRST = Position("W", START)


class Made(NamedTuple):
    """A generated move: its code, the bits of the pieces taken, and the FEN after it."""

    code: np.uint64
    taken: int
    fen: str


def position_of(fen: str) -> Position:
    turn, *words = parse_fen(fen)
    pieces = pieces_of(turn, *words)
    return Position(
        turn.value, {n: color.value if king else color.value.lower() for n, (color, king) in pieces.items()}
    )


def generated(position: Position, distinct: np.bool_ = EVERY_PATH) -> list[Made]:
    turn, own, opp, kings = parse_fen(position.fen())
    buffer = np.zeros(russian.MAX_MOVES, MOVE)
    count = russian.generate(np.uint32(own), np.uint32(opp), np.uint32(kings), buffer, distinct)
    moves = []
    for move in buffer[:count]:
        after = int(move["own"]), int(move["opp"]), int(move["kings"])
        fen = format_fen(turn, *after).replace(turn.value, turn.other.value, 1)
        moves.append(Made(move["code"], opp & ~after[1], fen))
    return moves


def numbers(bits: list[int], position: Position) -> tuple[int, ...]:
    return tuple(to_number(int(SQUARE_OF_BIT[bit]), Color(position.turn)) for bit in bits)


def way(start: int, end: int) -> tuple[int, int]:
    """Direction from a square to another on its diagonal: signs of rows and columns."""
    (row, column), (last_row, last_column) = row_column(start), row_column(end)
    return (last_row > row) - (last_row < row), (last_column > column) - (last_column < column)


def turns(path: tuple[int, ...]) -> tuple[int, ...]:
    """Start, turns and end of a path."""
    kept = [path[0]]
    for before, (at, after) in zip(path, pairwise(path[1:]), strict=False):
        if way(before, at) != way(at, after):
            kept.append(at)
    return (*kept, path[-1])


def positions(seed: int, number: int, kings: float = 0.5) -> Iterator[Position]:
    """Positions of random games, and set-up ones."""
    rng = random.Random(seed)
    while number > 0:
        position = FIRST if rng.random() < 0.3 else reference.random_position(rng, rng.randint(2, 12), kings)
        for _ in range(60):
            yield position
            number -= 1
            moves = russian_reference.legal_moves(position)
            if not moves:
                break
            position = russian_reference.make(position, rng.choice(moves))


@pytest.mark.parametrize("kings", [0.1, 0.5, 1.0])
def test_moves_against_reference(kings: float) -> None:
    longest = 0
    for position in positions(1, 800, kings):
        legal = russian_reference.legal_moves(position)
        expected = {
            (turns(step.path), frozenset(step.taken), russian_reference.make(position, step).fen()) for step in legal
        }
        found = [
            (turns(numbers(russian.path_bits(int(code), taken), position)), taken, fen)
            for code, taken, fen in generated(position)
        ]
        turn = Color(position.turn)
        ours = [(path, frozenset(to_number(s, turn) for s in squares_of(word)), fen) for path, word, fen in found]
        assert Counter(ours) == Counter(expected), position.fen()
        kept = [made.fen for made in generated(position, DISTINCT)]
        assert Counter(kept) == Counter({fen for _, _, fen in expected}), position.fen()
        longest = max(longest, *(len(step.taken) for step in legal), 0)
    assert longest >= 3


def test_pieces_that_capture() -> None:
    for position in positions(2, 800):
        turn, own, opp, kings = parse_fen(position.fen())
        starts = {to_square(step.path[0], turn) for step in russian_reference.legal_moves(position) if step.taken}
        assert set(squares_of(int(russian.jumpers_of(np.uint32(own), np.uint32(opp), np.uint32(kings))))) == starts


def test_moves_against_pydraughts() -> None:
    draughts = pytest.importorskip("draughts", reason="pydraughts (a development dependency) is not installed")

    def ours(position: Position) -> set[tuple[int, int, tuple[int, ...]]]:
        """Start, end and pieces taken of every move, in pydraughts' numbers: a1 is 1, h8 is 32."""
        moves = set()
        for made in generated(position):
            path = numbers(russian.path_bits(int(made.code), made.taken), position)
            taken = [to_number(square, Color(position.turn)) for square in squares_of(made.taken)]
            moves.add((theirs(path[0]), theirs(path[-1]), tuple(sorted(map(theirs, taken)))))
        return moves

    def theirs(number: int) -> int:
        row, place = divmod(number - 1, 4)
        return 4 * (7 - row) + place + 1

    def fen(position: Position) -> str:
        def side(color: str) -> str:
            pieces = {number: piece for number, piece in position.pieces.items() if piece.upper() == color}
            return color + ",".join("K" * piece.isupper() + russian.square_name(n) for n, piece in pieces.items())

        return f"{position.turn}:{side('W')}:{side('B')}"

    captures = 0
    for position in positions(3, 150):
        board = draughts.Board(variant="russian", fen=fen(position))
        expected = set()
        for move in board.legal_moves():
            hops = move.board_move
            expected.add((hops[0][0], hops[-1][1], tuple(sorted(move.captures or []))))
        assert ours(position) == expected, fen(position)
        captures += any(taken for *_, taken in expected)
    assert captures > 20


def test_no_two_moves_share_their_hops() -> None:
    """Moves to different positions have different sums of logits; and each hop is a step of the path."""
    hops = np.zeros(russian.MAX_HOPS, np.int64)
    logits = np.random.default_rng(1).normal(size=(1, 128)).astype(np.float32)
    for position in positions(4, 800):
        seen: dict[tuple[int, ...], str] = {}
        for code, taken, fen in generated(position, DISTINCT):
            count = russian.hop_indices(code, hops)
            key = tuple(sorted(hops[:count].tolist()))
            assert seen.setdefault(key, fen) == fen, position.fen()
            assert russian.move_logit(logits, 0, code) == pytest.approx(logits[0, hops[:count]].sum(), abs=1e-4)
            path = russian.path_bits(int(code), taken)
            assert path[0] == move_start(code)
            assert path[-1] == russian.move_end(code)
            assert bool(is_capture(code)) == (taken != 0)
            passed = [path[0], *(int(BIT_OF_SQUARE[hop % NUM_SQUARES]) for hop in hops[1:count]), path[-1]]
            assert [bit for bit in passed if bit in path] == path or len(set(path)) < len(path)


@pytest.mark.parametrize(
    ("fen", "distinct", "every_path"),
    [
        ("W:WK1,K3,K12,K28,K29,K30,K32:B9,10,17,25,26,K11,K18,K19,K27", None, 88),
        ("W:WK1,K20,K28,K29,K30,K32:B9,15,16,24,K7,K8,K17,K23,K25", 68, None),
    ],
)
def test_most_moves(fen: str, distinct: int | None, every_path: int | None) -> None:
    """Positions with many moves, found by random changes from several hundred start positions."""
    position = position_of(fen)
    assert distinct is None or len(generated(position, DISTINCT)) == distinct < russian.MAX_MOVES
    assert every_path is None or len(generated(position)) == every_path < russian.MAX_MOVES


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        ("W:W14:B1", {"14-10", "14-9"}),
        ("W:W18:B14,22", {"18-9", "18-25"}),  # backwards, too
        ("W:W11:B7,8", {"11-2", "11-4"}),
        ("W:W11:B6,7", {"11-2-9", "11-2-13"}),  # crowned on the way, on as a king
        ("W:WK29:B25", {"29-22", "29-18", "29-15", "29-11", "29-8", "29-4"}),
        ("W:WK29:B25,14", {"29-18-9", "29-18-5"}),  # it lands where it can take on
        ("W:WK29:B25,15", {"29-22-11", "29-22-8", "29-22-4"}),  # straight on
    ],
)
def test_captures_of_one_piece(fen: str, moves: set[str]) -> None:
    position = position_of(fen)
    paths = [numbers(russian.path_bits(int(made.code), made.taken), position) for made in generated(position)]
    assert {"-".join(map(str, path)) for path in paths} == moves


@pytest.mark.slow
def test_a_whole_process_plays_russian_draughts() -> None:
    """Runs ``in_russian.py`` (boards, notation, search and training) in a process that plays this game."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "in_russian.py")],
        env={**os.environ, GAME_VARIABLE: "russian"},
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_a_game_that_is_not_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import engine"],
        env={**os.environ, GAME_VARIABLE: "dutch"},
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr == "crownhead: CROWNHEAD_GAME is 'dutch': choose one of english, russian\n"


def test_what_is_of_another_game() -> None:
    check_game("this", "english")
    with pytest.raises(OtherGameError, match="this is of russian draughts") as caught:
        check_game("this", "russian")
    assert caught.value.game == "russian"
