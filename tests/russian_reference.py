"""A slow, plain implementation of the rules of Russian draughts, as ``reference`` for English draughts.

Squares and pieces are written as there. Each landing square of a flying king gives a different path.
"""

from collections.abc import Iterator

from reference import DIRECTIONS, Position, Step, _crowns, neighbour


def _line(at: int, direction: tuple[int, int]) -> Iterator[int]:
    """All squares from a square to the edge in a direction."""
    following = neighbour(at, *direction)
    while following is not None:
        yield following
        following = neighbour(following, *direction)


def _jumps(at: int, piece: str, others: dict[int, str], taken: tuple[int, ...]) -> Iterator[tuple[int, list[int]]]:
    """The pieces that can be captured from a square, each with its landing squares."""
    for direction in DIRECTIONS:
        line = list(_line(at, direction))
        reach = len(line) if piece.isupper() else min(1, len(line))
        before = next((place for place, number in enumerate(line) if number in others), len(line))
        if before >= reach or others[line[before]].lower() == piece.lower() or line[before] in taken:
            continue
        behind = line[before + 1 :]
        free = next((place for place, number in enumerate(behind) if number in others), len(behind))
        if free:
            yield line[before], behind[: free if piece.isupper() else 1]


def _captures_from(at: int, piece: str, others: dict[int, str], taken: tuple[int, ...]) -> list[Step]:
    """All complete capture paths from a square on; one empty path if there is no capture."""
    found = []
    for over, landings in _jumps(at, piece, others, taken):
        ways = []
        for land in landings:
            moved = piece.upper() if _crowns(piece, land) else piece
            ways.append(_captures_from(land, moved, others, (*taken, over)))
        on = [way for way in ways if way[0].taken]  # if it can go on capturing, it must
        for way in on or ways:
            found += [Step((at, *step.path), (over, *step.taken)) for step in way]
    return found or [Step((at,))]


def legal_moves(position: Position) -> list[Step]:
    """All legal moves; different landings are different moves."""
    captures, quiet = [], []
    for at, piece in sorted(position.pieces.items()):
        if piece.upper() != position.turn:
            continue
        others = {number: other for number, other in position.pieces.items() if number != at}
        captures += [step for step in _captures_from(at, piece, others, ()) if step.taken]
        forward = 1 if piece.upper() == "B" else -1
        for direction in DIRECTIONS:
            for land in list(_line(at, direction))[: None if piece.isupper() else int(direction[0] == forward)]:
                if land in others:
                    break
                quiet.append(Step((at, land)))
    return captures or quiet


def make(position: Position, step: Step) -> Position:
    """The position after a move."""
    pieces = dict(position.pieces)
    piece = pieces.pop(step.path[0])
    for number in step.taken:
        del pieces[number]
    crowned = any(_crowns(piece, number) for number in step.path[1:])
    pieces[step.path[-1]] = piece.upper() if crowned else piece
    return Position("W" if position.turn == "B" else "B", pieces)
