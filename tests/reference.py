"""A slow, plain implementation of the rules of English draughts: squares in a dict, recursion, no bitboards.

It shares no code with ``engine``, which tests compare with it. A square is its PDN number, 1-32; a man is ``b`` or
``w``, a king ``B`` or ``W``.
"""

import random
from collections import Counter
from dataclasses import dataclass

DIRECTIONS = ((1, -1), (1, 1), (-1, -1), (-1, 1))  # row step (White's side is row 7), column step
START = {**dict.fromkeys(range(1, 13), "b"), **dict.fromkeys(range(21, 33), "w")}


@dataclass(frozen=True)
class Step:
    """A complete move: all squares of its path, and the squares of the captured pieces in order of capture."""

    path: tuple[int, ...]
    taken: tuple[int, ...] = ()


@dataclass
class Position:
    """The side to move (``B`` or ``W``), and the pieces."""

    turn: str
    pieces: dict[int, str]

    def fen(self) -> str:
        def side(color: str) -> str:
            men = [str(number) for number in sorted(self.pieces) if self.pieces[number] == color.lower()]
            kings = [f"K{number}" for number in sorted(self.pieces) if self.pieces[number] == color]
            return color + ",".join(men + kings)

        return f"{self.turn}:{side('W')}:{side('B')}"


def neighbour(number: int, row_step: int, column_step: int) -> int | None:
    """The next square in a direction, or None beyond the edge."""
    row, place = divmod(number - 1, 4)
    column = 2 * place + (1 if row % 2 == 0 else 0)
    row, column = row + row_step, column + column_step
    if not (0 <= row < 8 and 0 <= column < 8):
        return None
    return 4 * row + column // 2 + 1


def _directions(piece: str) -> tuple[tuple[int, int], ...]:
    if piece.isupper():
        return DIRECTIONS
    return DIRECTIONS[:2] if piece == "b" else DIRECTIONS[2:]


def _crowns(piece: str, number: int) -> bool:
    return (piece == "b" and number >= 29) or (piece == "w" and number <= 4)


def _captures_from(at: int, piece: str, others: dict[int, str]) -> list[Step]:
    """All complete capture paths from a square on; one empty path if there is no capture."""
    found = []
    for row_step, column_step in _directions(piece):
        over = neighbour(at, row_step, column_step)
        if over is None or others.get(over, piece).lower() == piece.lower():
            continue
        land = neighbour(over, row_step, column_step)
        if land is None or land in others:
            continue
        left = {number: other for number, other in others.items() if number != over}
        ways = [Step((land,))] if _crowns(piece, land) else _captures_from(land, piece, left)
        found += [Step((at, *way.path), (over, *way.taken)) for way in ways]
    return found or [Step((at,))]


def legal_moves(position: Position) -> list[Step]:
    """All legal moves; different capture paths are different moves."""
    captures, quiet = [], []
    for at, piece in sorted(position.pieces.items()):
        if piece.upper() != position.turn:
            continue
        others = {number: other for number, other in position.pieces.items() if number != at}
        captures += [step for step in _captures_from(at, piece, others) if step.taken]
        for row_step, column_step in _directions(piece):
            land = neighbour(at, row_step, column_step)
            if land is not None and land not in others:
                quiet.append(Step((at, land)))
    return captures or quiet


def make(position: Position, step: Step) -> Position:
    """The position after a move."""
    pieces = dict(position.pieces)
    piece = pieces.pop(step.path[0])
    for number in step.taken:
        del pieces[number]
    pieces[step.path[-1]] = piece.upper() if _crowns(piece, step.path[-1]) else piece
    return Position("W" if position.turn == "B" else "B", pieces)


def perft(position: Position, depth: int) -> int:
    """Number of leaf positions after ``depth`` plies."""
    return 1 if depth == 0 else sum(perft(make(position, step), depth - 1) for step in legal_moves(position))


class Game:
    """A game with its draw rules, counted over the whole history."""

    def __init__(self, position: Position) -> None:
        self.positions = [position]
        self.reversible_plies = 0

    @property
    def position(self) -> Position:
        return self.positions[-1]

    def push(self, step: Step) -> None:
        man = self.position.pieces[step.path[0]].islower()
        self.reversible_plies = 0 if man or step.taken else self.reversible_plies + 1
        self.positions.append(make(self.position, step))

    def result(self) -> str:
        """Black first; ``*`` while the game goes on."""
        if not legal_moves(self.position):
            return "0-1" if self.position.turn == "B" else "1-0"
        seen = Counter(position.fen() for position in self.positions)
        return "1/2-1/2" if seen[self.position.fen()] >= 3 or self.reversible_plies >= 80 else "*"


def random_position(rng: random.Random, most: int = 12, kings: float = 0.5) -> Position:
    """A position with up to ``most`` pieces of each side on random squares, each a king with probability ``kings``."""
    blacks, whites = rng.randint(1, most), rng.randint(1, most)
    pieces = {}
    for i, number in enumerate(rng.sample(range(1, 33), blacks + whites)):
        man = "b" if i < blacks else "w"
        pieces[number] = man.upper() if rng.random() < kings or _crowns(man, number) else man
    return Position(rng.choice("BW"), pieces)
