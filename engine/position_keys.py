"""Hashes of positions, for searches and for finding positions in many games.

Two positions have the same key if the pieces and the side to move are the same; the moves before do not matter.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from . import movegen
from .bitboard import BIT_OF_SQUARE, turned
from .board import Board
from .errors import DraughtsError, InvalidMoveError
from .fen import NUMBERS, Color, to_square
from .move import squares_written
from .random_words import mix
from .rules import played

move_end = played.move_end

_BITS = np.array(
    [[0, *(int(BIT_OF_SQUARE[to_square(number, color)]) for number in range(1, 33))] for color in Color], np.uint32
)  # [side to move (Black, White), PDN number]: the square's bit, seen by the side to move
_WHITE = np.uint64(0x9E3779B97F4A7C15)  # salt of positions with White to move


@njit(cache=True)
def position_key(own, opp, kings, salt):
    """Hash (uint64) of a position; another ``salt`` (uint64) gives other hashes."""
    pieces = np.uint64(own) | (np.uint64(opp) << np.uint64(32))
    return mix(mix(pieces ^ salt) + np.uint64(kings))


@njit(cache=True)
def _follow(words, squares, row, bits, moves):
    """Plays moves from position ``words[0]`` until one is illegal or ambiguous; returns the number of moves played.

    Args:
        words: uint32 [plies + 1, 3]; the positions after the moves are written into it, each seen by its side to move.
        squares: int64 [plies, 2], PDN numbers of start and end.
        row: 0 if Black moves first, else 1.
        bits: ``_BITS``.
        moves: buffer of ``MOVE``.
    """
    for ply in range(len(squares)):
        count = movegen.generate(words[ply, 0], words[ply, 1], words[ply, 2], moves, movegen.DISTINCT)
        start, end, found = bits[row, squares[ply, 0]], bits[row, squares[ply, 1]], -1
        for index in range(count):
            code = moves[index].code
            if movegen.move_start(code) == start and move_end(code) == end:
                if found >= 0:
                    return ply
                found = index
        if found < 0:
            return ply
        words[ply + 1, 0] = turned(moves[found].opp)
        words[ply + 1, 1] = turned(moves[found].own)
        words[ply + 1, 2] = turned(moves[found].kings)
        row = 1 - row
    return len(squares)


@njit(cache=True)
def _keys(words, white):
    """The keys, int64 [N], of consecutive positions uint32 [N, 3]; ``white``: 1 if White is to move in the first."""
    keys = np.empty(len(words), np.int64)
    for ply in range(len(words)):
        salt = _WHITE if (ply + white) % 2 == 1 else np.uint64(0)
        keys[ply] = np.int64(position_key(words[ply, 0], words[ply, 1], words[ply, 2], salt))
    return keys


def key_of(board: Board) -> int:
    """The key of a board's position: 64 bits, signed."""
    return int(_keys(np.array([board.words()], np.uint32), int(board.turn is Color.WHITE))[0])


def keys_of_game(fen: str, moves: Sequence[str]) -> np.ndarray:
    """The keys of a game's positions, int64 [plies + 1], from the start position on.

    At a move (in PDN) that cannot be played, the keys end with the position before it. Of captures, only start and end
    count. Raises ``FenError`` if ``fen``, the start position, is none.
    """
    board = Board(fen)
    white = int(board.turn is Color.WHITE)
    words = np.zeros((len(moves) + 1, 3), np.uint32)
    words[0] = board.words()
    made = _follow(words, _squares_of(moves), white, _BITS, movegen.new_moves())
    if made < len(moves):  # illegal, or ambiguous by start and end alone: ``Board`` decides
        made = _play(board, moves, words)
    return _keys(words[: made + 1], white)


def _squares_of(moves: Sequence[str]) -> np.ndarray:
    """PDN numbers of start and end, int64 [plies, 2], up to the first text that cannot be a move on this board."""
    squares = []
    for text in moves:
        try:
            start, *_, end = squares_written(text)
        except InvalidMoveError:
            break
        if not 1 <= start <= NUMBERS or not 1 <= end <= NUMBERS:
            break
        squares.append((start, end))
    return np.array(squares, np.int64).reshape(-1, 2)


def _play(board: Board, moves: Sequence[str], words: np.ndarray) -> int:
    for ply, text in enumerate(moves):
        try:
            board.push_pdn(text)
        except DraughtsError:
            return ply
        words[ply + 1] = board.words()
    return len(moves)
