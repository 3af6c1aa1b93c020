"""Shots by plain recursion: what ``engine.search.shots`` must find."""

import numpy as np

from engine import movegen
from engine.bitboard import turned
from engine.search.shots import MAX_OFFERS, NO_SHOT

Words = tuple[int, int, int]


def moves_of(words: Words) -> list[tuple[bool, Words]]:
    """(captures, position seen by the other side) of the legal moves."""
    buffer = movegen.new_moves()
    count = movegen.generate(*(np.uint32(word) for word in words), buffer, True)
    return [
        (bool(move["code"] & 32), tuple(int(turned(move[key])) for key in ("opp", "own", "kings")))
        for move in buffer[:count]
    ]


def material(words: Words) -> int:
    own, opp, kings = words
    return sum(side * (2 * pieces.bit_count() + (pieces & kings).bit_count()) for side, pieces in ((1, own), (-1, opp)))


class Counter:
    def __init__(self) -> None:
        self.nodes = 0


def attack(words: Words, offers: int, counter: Counter) -> int:
    """What the attacker, to move, has at the end."""
    moves = moves_of(words)
    if moves and moves[0][0]:
        return max(defend(after, offers, counter) for _, after in moves)
    values = [material(words)]
    if offers:
        values += [defend(after, offers - 1, counter) for _, after in moves if captures(after)]
    return max(values)


def defend(words: Words, offers: int, counter: Counter) -> int:
    """What the attacker has at the end, the defender being to move."""
    counter.nodes += 1
    if not captures(words):
        return -material(words)
    return min(attack(after, offers, counter) for _, after in moves_of(words))


def captures(words: Words) -> bool:
    moves = moves_of(words)
    return bool(moves) and moves[0][0]


def plain_shot(words: Words) -> tuple[int, int, int]:
    """(move, gain, positions looked at), by trying everything."""
    counter = Counter()
    if captures(words):
        return NO_SHOT, 0, 0
    best, shot = material(words), NO_SHOT
    for number, (_, after) in enumerate(moves_of(words)):
        if captures(after) and (value := defend(after, MAX_OFFERS - 1, counter)) > best:
            best, shot = value, number
    gain = best - material(words)
    return (shot, gain, counter.nodes) if gain >= 2 else (NO_SHOT, 0, counter.nodes)
