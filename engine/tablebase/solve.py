"""Kernels of retrograde analysis: values of a slice, for all squares of the roamer at once.

First, positions with moves out of the slice are *settled* as far as these moves decide: captures are mandatory and lead
to fewer pieces, promotions lead to fewer men, and such slices are solved before. Positions that are still open are
decided by *sweeps*, until nothing changes:

    won:   some step leads to a position that is lost for the opponent
    lost:  every step leads to a position that is won for the opponent (also if there is no step)

Positions that are never decided are draws. Draws by repetition and by the 80-ply rule are ignored. One step of one
piece leads from all positions of a word to those of another word (``layout``), so a sweep treats about 28 positions at
once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import FAR_ROW, borrowed, step, turned
from ..movegen import EVERY_PATH, generate
from ..outcomes import DRAW, LOSS, UNKNOWN, WIN
from .captures import capture_places, crowning_places
from .layout import ALL_SQUARES, NUM_KINDS, PLACES, Layout, Placements, lookup, placements

SAFE = 4  # in addition to the outcomes: unknown, but not lost, because some promotion draws


class Grid(NamedTuple):
    """A layout for kernels, with the side to move. The tables of the four kinds are concatenated; ``base`` is the start
    of each.

    Attributes:
        order, sizes, strides, base: int64 [4], see ``Layout``; ``order`` lists kinds, the others are by kind.
        masks: uint32 [R], squares of each rank.
        first: int64 [R + 1], index of each rank's first step.
        targets: uint32 [S], square that each step leads to.
        jumps: int64 [S], what each step adds to the number of a word.
        first_back, targets_back, jumps_back: the same for backward steps, which undo steps.
        words: number of words.
        roamer: kind of the roamer.
        second: whether the second side is to move.
    """

    order: np.ndarray
    sizes: np.ndarray
    strides: np.ndarray
    base: np.ndarray
    masks: np.ndarray
    first: np.ndarray
    targets: np.ndarray
    jumps: np.ndarray
    first_back: np.ndarray
    targets_back: np.ndarray
    jumps_back: np.ndarray
    words: int
    roamer: int
    second: bool

    @property
    def rows(self) -> int:
        """Number of rows: a row has the words with the same ranks of the three slower kinds."""
        return self.words // int(self.sizes[self.order[-1]])


def grid_of(layout: Layout, second: bool) -> Grid:
    """The grid of a layout with its second or its first side to move."""
    tables = [placements(kind, layout.counts[kind]) for kind in range(NUM_KINDS)]
    first, targets, jumps = _steps_of(layout, tables)
    backward = [placements(kind, layout.counts[kind], back=True) for kind in range(NUM_KINDS)]
    first_back, targets_back, jumps_back = _steps_of(layout, backward)
    return Grid(
        order=np.array(layout.order),
        sizes=np.array(layout.sizes),
        strides=np.array(layout.strides),
        base=np.cumsum([0] + [len(table.first) for table in tables])[:NUM_KINDS],
        masks=np.concatenate([np.append(table.masks, np.uint32(0)) for table in tables]),
        first=first,
        targets=targets,
        jumps=jumps,
        first_back=first_back,
        targets_back=targets_back,
        jumps_back=jumps_back,
        words=layout.words,
        roamer=layout.roamer,
        second=second,
    )


def _steps_of(layout: Layout, tables: list[Placements]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First, targets and jumps of the steps of all kinds, see ``Grid``."""
    starts = np.cumsum([0] + [len(table.targets) for table in tables])
    jumps = [
        (table.ranks - np.repeat(np.arange(len(table.masks)), np.diff(table.first))) * layout.strides[kind]
        for kind, table in enumerate(tables)
    ]
    first = np.concatenate([table.first + start for table, start in zip(tables, starts, strict=False)])
    return first, np.concatenate([table.targets for table in tables]), np.concatenate(jumps).astype(np.int64)


def grids_of(layout: Layout) -> tuple[Grid, Grid]:
    """The grids of a layout with its first and with its second side to move."""
    return grid_of(layout, False), grid_of(layout, True)


@njit(cache=True)
def place_row(grid, row, ranks, pieces):
    """Sets ``ranks`` (int64 [4]) and squares ``pieces`` (uint32 [4]) of the three slower kinds of a row.

    Returns:
        The occupied squares, or all squares if two pieces are on the same one, so that the row is empty; and the row's
        first word.
    """
    taken, word, rest = np.uint32(0), np.int64(0), row
    clash = False
    for i in range(NUM_KINDS - 2, -1, -1):
        kind = grid.order[i]
        ranks[kind] = rest % grid.sizes[kind]
        rest //= grid.sizes[kind]
        pieces[kind] = grid.masks[grid.base[kind] + ranks[kind]]
        word += ranks[kind] * grid.strides[kind]
        clash |= taken & pieces[kind] != 0
        taken |= pieces[kind]
    return np.uint32(ALL_SQUARES) if clash else taken, word


@njit(cache=True)
def place_fast(grid, rank, taken, ranks, pieces):
    """Adds the fastest kind to a row; returns the occupied squares, or all squares if two pieces share one."""
    kind = grid.order[NUM_KINDS - 1]
    ranks[kind] = rank
    pieces[kind] = grid.masks[grid.base[kind] + rank]
    return np.uint32(ALL_SQUARES) if taken & pieces[kind] != 0 else np.uint32(taken | pieces[kind])


@njit(cache=True)
def place_word(grid, word, ranks, pieces):
    """Sets ``ranks`` and ``pieces`` for one word; returns the occupied squares, see ``place_fast``."""
    size = grid.sizes[grid.order[NUM_KINDS - 1]]
    taken, _ = place_row(grid, word // size, ranks, pieces)
    return place_fast(grid, word % size, taken, ranks, pieces)


@njit(cache=True)
def free_places(roamer, taken):
    """The squares where a roamer of kind ``roamer`` may stand."""
    return np.uint32(PLACES[roamer] & ~taken)


@njit(cache=True)
def canonical_places(roamer, taken, fellows):
    """The roamer's squares below all other pieces of its kind (``fellows``), so that each position counts once."""
    places = free_places(roamer, taken)
    return places if fellows == 0 else np.uint32(places & ((fellows & (~fellows + np.uint32(1))) - np.uint32(1)))


@njit(cache=True, inline="always")
def seen_by_mover(grid, pieces):
    """(own, opp, kings) of the side to move, from the squares of each kind, uint32 [4]."""
    first, second = np.uint32(pieces[0] | pieces[1]), np.uint32(pieces[2] | pieces[3])
    kings = np.uint32(pieces[1] | pieces[3])
    if grid.second:
        return turned(second), turned(first), turned(kings)
    return first, second, kings


@njit(cache=True)
def settle_capture(own, opp, kings, slices, words, moves):
    """Outcome of a position with a capture for its side to move: WIN, DRAW or LOSS."""
    worst = np.int64(1)
    for i in range(generate(own, opp, kings, moves, EVERY_PATH)):
        worst = min(worst, lookup(turned(moves[i].opp), turned(moves[i].own), turned(moves[i].kings), slices, words))
        if worst == -1:
            return WIN
    return DRAW + worst


@njit(cache=True)
def _settle_promotions(own, opp, kings, slices, words):
    safe = False
    free = np.uint32(~(own | opp) & np.uint32(FAR_ROW))
    for direction in range(2):
        landings = np.uint32(step(own & ~kings, direction) & free)
        while landings != 0:
            land = np.uint32(landings & (~landings + np.uint32(1)))
            landings ^= land
            after = np.uint32(own ^ (land | step(land, direction ^ 2)))
            value = lookup(turned(opp), turned(after), turned(kings | land), slices, words)
            if value == -1:
                return WIN
            safe |= value == 0
    return SAFE if safe else UNKNOWN


@njit(cache=True, nogil=True)
def settle_rows(low, high, grid, slices, words, values, todo, first, moves):
    """Settles positions of rows ``low`` to ``high - 1`` that captures and promotions decide.

    Args:
        slices, words: slices solved before, see ``layout.lookup``.
        values: uint32 [words, 2]; won and lost positions are added.
        todo: uint32 [words, 2]; open positions, and those of them that may be lost, are added.
        first: word of the slice at which ``values`` and ``todo`` begin.
        moves: buffer [MAX_MOVES] of ``MOVE``.
    """
    slices, words, moves, grid = borrowed(slices), borrowed(words), borrowed(moves), borrowed(grid)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    for row in range(low, high):
        taken_by_row, word_of_row = place_row(grid, row, ranks, pieces)
        for rank in range(grid.sizes[grid.order[NUM_KINDS - 1]]):
            here = word_of_row + rank - first
            taken = place_fast(grid, rank, taken_by_row, ranks, pieces)
            others = pieces[grid.roamer]
            places = free_places(grid.roamer, taken)
            if places == 0:
                continue
            captures = np.uint32(places & capture_places(grid, pieces, taken))
            leaving = np.uint32(places & (captures | crowning_places(grid, pieces, taken)))
            todo[here, 0] |= places & ~leaving
            todo[here, 1] |= places & ~leaving
            while leaving != 0:
                bit = np.uint32(leaving & (~leaving + np.uint32(1)))
                leaving ^= bit
                pieces[grid.roamer] = others | bit
                own, opp, kings = seen_by_mover(grid, pieces)
                if captures & bit != 0:
                    state = settle_capture(own, opp, kings, slices, words, moves)
                else:
                    state = _settle_promotions(own, opp, kings, slices, words)
                values[here, 0] |= bit if state == WIN else np.uint32(0)
                values[here, 1] |= bit if state == LOSS else np.uint32(0)
                todo[here, 0] |= bit if state >= UNKNOWN else np.uint32(0)
                todo[here, 1] |= bit if state == UNKNOWN else np.uint32(0)
            pieces[grid.roamer] = others


@njit(cache=True)
def sweep_word(grid, ranks, taken, word, theirs):
    """(positions with a step to a lost position, positions all of whose steps lead to won positions) of one word.

    Args:
        taken: squares of all pieces except the roamer.
        theirs: uint32 [words, 2], won and lost positions with the other side to move.
    """
    won, lost = np.uint32(0), np.uint32(0xFFFFFFFF)
    side = 1 if grid.second else 0
    for kind in range(2 * side, 2 * side + 2):
        entry = grid.base[kind] + ranks[kind]
        for i in range(grid.first[entry], grid.first[entry + 1]):
            target = grid.targets[i]
            if target & taken == 0:
                after = word + grid.jumps[i]
                won |= theirs[after, 1]
                lost &= theirs[after, 0] | target
    if grid.roamer >> 1 == side:
        places = free_places(grid.roamer, taken)
        king = grid.roamer & 1
        for direction in range(4):
            if king or direction >> 1 == side:
                back = direction ^ 2
                won |= step(theirs[word, 1], back)
                lost &= ~step(places, back) | step(theirs[word, 0], back)
    return won, lost


@njit(cache=True)
def _mark_before(grid, ranks, taken, here, marks):
    """Marks the words from which a step of the other side may lead to this one; see ``sweep_rows``."""
    if marks.shape[0] == 0:
        return
    side = 0 if grid.second else 1
    for kind in range(2 * side, 2 * side + 2):
        entry = grid.base[kind] + ranks[kind]
        for i in range(grid.first_back[entry], grid.first_back[entry + 1]):
            before = here + grid.jumps_back[i]
            if grid.targets_back[i] & taken == 0 and 0 <= before < marks.shape[0]:
                marks[before] = 1
    if grid.roamer >> 1 == side:
        marks[here] = 1


@njit(cache=True, nogil=True)
def sweep_rows(low, high, grid, values, todo, marks, first, theirs, their_marks):
    """Decides the positions that can be decided now in rows ``low`` to ``high - 1``; returns the number of changed
    words.

    See ``settle_rows`` for the arguments, ``sweep_word`` for ``theirs``.

    Args:
        marks: uint8 [words], words to look at, from which a step leads to a word that has changed since the last sweep;
            set to zero. If empty, all words are looked at.
        their_marks: marks of the other side; set for words from which a step leads to a word that changes here. If
            empty, nothing is marked.
    """
    values, todo, theirs = borrowed(values), borrowed(todo), borrowed(theirs)
    marks, their_marks, grid = borrowed(marks), borrowed(their_marks), borrowed(grid)
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    changed = 0
    for row in range(low, high):
        taken_by_row, word_of_row = place_row(grid, row, ranks, pieces)
        for rank in range(grid.sizes[grid.order[NUM_KINDS - 1]]):
            word = word_of_row + rank
            here = word - first
            if marks.shape[0] != 0:
                if marks[here] == 0:
                    continue
                marks[here] = 0
            if todo[here, 0] == 0:
                continue
            taken = place_fast(grid, rank, taken_by_row, ranks, pieces)
            won, lost = sweep_word(grid, ranks, taken, word, theirs)
            won &= todo[here, 0]
            lost &= todo[here, 1]
            if won | lost != 0:
                values[here, 0] |= won
                values[here, 1] |= lost
                todo[here, 0] &= ~(won | lost)
                todo[here, 1] &= ~(won | lost)
                _mark_before(grid, ranks, taken, here, their_marks)
                changed += 1
    return changed
