"""A slow, plain solver of endgames by the rules of ``reference.py``: dictionaries, one position at a time.

It shares no code with ``engine``, whose tables are compared with it. A position is a tuple of (PDN number, piece) in
increasing order with Black to move; one with White to move is turned first.
"""

import random
from collections import defaultdict, deque
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

import reference

Pieces = tuple[tuple[int, str], ...]
SWAPPED = {"b": "w", "w": "b", "B": "W", "W": "B"}


def is_position(pieces: Pieces) -> bool:
    """Whether both sides have pieces and no man is on its promotion row."""
    sides = {piece.upper() for _, piece in pieces}
    crowned = any((piece == "b" and number > 28) or (piece == "w" and number < 5) for number, piece in pieces)
    return len(sides) == 2 and not crowned


def all_positions(count: int) -> Iterator[Pieces]:
    """Every position with exactly ``count`` pieces."""
    for numbers in combinations(range(1, 33), count):
        for letters in product("bBwW", repeat=count):
            pieces = tuple(zip(numbers, letters, strict=True))
            if is_position(pieces):
                yield pieces


def random_position(rng: random.Random, count: int) -> Pieces:
    """A random position with exactly ``count`` pieces; all positions are equally likely."""
    while True:
        numbers = sorted(rng.sample(range(1, 33), count))
        pieces = tuple((number, rng.choice("bBwW")) for number in numbers)
        if is_position(pieces):
            return pieces


def turned(pieces: Pieces) -> Pieces:
    """The same position with the colours exchanged, seen from the other side of the board."""
    return tuple((33 - number, SWAPPED[piece]) for number, piece in reversed(pieces))


def successors(pieces: Pieces) -> set[Pieces]:
    """The positions after all moves of Black, turned."""
    position = reference.Position("B", dict(pieces))
    after = [reference.make(position, step) for step in reference.legal_moves(position)]
    return {turned(tuple(sorted(each.pieces.items()))) for each in after}


@cache
def solve(most: int) -> dict[Pieces, tuple[int, int]]:
    """(value, plies to the end) of all positions of 2 to ``most`` pieces: 1, 0, -1 for Black; 0 plies for draws.

    The winner takes the shortest way, the loser the longest. Works backwards from the positions without a move, so that
    positions are found in the order of their distances.
    """
    undecided_moves = {}
    predecessors = defaultdict(list)
    for position in (position for count in range(2, most + 1) for position in all_positions(count)):
        after = successors(position)
        undecided_moves[position] = len(after)
        for each in after:
            predecessors[each].append(position)
    bare = [position for position in predecessors if position not in undecided_moves]  # no pieces left
    ends = bare + [position for position, moves in undecided_moves.items() if moves == 0]
    decided = dict.fromkeys(ends, (-1, 0))
    queue = deque(ends)
    while queue:
        position = queue.popleft()
        value, plies = decided[position]
        for earlier in predecessors[position]:
            undecided_moves[earlier] -= value == 1
            if earlier not in decided and (value == -1 or undecided_moves[earlier] == 0):
                decided[earlier] = (-value, plies + 1)
                queue.append(earlier)
    return {position: decided.get(position, (0, 0)) for position in undecided_moves}
