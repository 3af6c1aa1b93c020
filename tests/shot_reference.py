"""A plain recursive search for shots, as a reference for ``engine.search.shots``."""

from functools import lru_cache

import numpy as np

from engine import movegen
from engine.bitboard import mask_of, squares_of, turned
from engine.search.shots import MAX_OFFERS

Words = tuple[int, int, int]


@lru_cache(1 << 16)  # cached: each position is used for its captures and then for its moves
def moves_of(words: Words) -> list[tuple[bool, Words]]:
    """(captures, position seen by the other side) of the legal moves."""
    buffer = movegen.new_moves()
    count = movegen.generate(*(np.uint32(word) for word in words), buffer, True)
    return [
        (bool(code & 32), (int(turned(opp)), int(turned(own)), int(turned(kings))))
        for own, opp, kings, code in buffer[:count].tolist()
    ]


def material(words: Words) -> int:
    own, opp, kings = words
    return sum(worth(square, words[2]) for square in squares_of(own)) - sum(
        worth(square, int(turned(kings))) for square in squares_of(int(turned(opp)))
    )


def worth(square: int, kings: int) -> int:
    """Value of a piece on a square; square and kings are seen by its owner."""
    if kings & mask_of([square]):
        return 6
    return 5 if square // 4 == 6 else 4


class Counter:
    def __init__(self) -> None:
        self.nodes = 0


def attack(words: Words, offers: int, counter: Counter) -> int:
    """Material of the attacker at the end of the line; the attacker is to move."""
    moves = moves_of(words)
    if moves and moves[0][0]:
        return max(defend(after, offers, counter) for _, after in moves)
    values = [material(words)]
    if offers:
        values += [defend(after, offers - 1, counter) for _, after in moves if captures(after)]
    return max(values)


def defend(words: Words, offers: int, counter: Counter) -> int:
    """Material of the attacker at the end of the line; the defender is to move."""
    counter.nodes += 1
    if not captures(words):
        return -material(words)
    return min(attack(after, offers, counter) for _, after in moves_of(words))


def captures(words: Words) -> bool:
    moves = moves_of(words)
    return bool(moves) and moves[0][0]


def plain_shots(words: Words) -> tuple[dict[int, int], int]:
    """Material that each shot wins, by the move's number; and the number of positions of the full search."""
    counter = Counter()
    if captures(words):
        return {}, 0
    gains = {
        number: defend(after, MAX_OFFERS - 1, counter) - material(words)
        for number, (_, after) in enumerate(moves_of(words))
        if captures(after)
    }
    return {number: gain for number, gain in gains.items() if gain > 0}, counter.nodes
