"""Kernels of retrograde analysis: who wins in a slice, for all places of the roamer at once.

First every position that leaves the slice is *settled*: captures are compulsory and lead to fewer pieces, promotions to
fewer men, both solved before. What stays open is decided by *sweeps* until nothing changes any more:

    won:   some step leads to a position that the opponent has lost
    lost:  every step leads to a position that the opponent has won (so also if there is none)

What is never decided is a draw. Draws by repetition or by the 80-ply rule are not looked at. One step of one piece
takes a whole word of positions to a whole word (``layout``), so a sweep does for 28 positions what is usually done
for one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..bitboard import FAR_ROW, borrowed, step, turned
from ..movegen import EVERY_PATH, generate
from ..outcomes import DRAW, LOSS, UNKNOWN, WIN
from .captures import capture_places, crowning_places
from .layout import ALL_SQUARES, NUM_KINDS, PLACES, Layout, Placements, lookup, placements

SAFE = 4  # beside the outcomes: not known yet, but some promotion does not lose


class Grid(NamedTuple):
    """A layout as the kernels read it. Tables of all kinds lie one after the other; ``base`` is where each begins.

    Attributes:
        order, sizes, strides, base: int64 [4], see ``Layout``; ``order`` lists kinds, the others are by kind.
        masks: uint32 [R], the squares of each rank. first: int64 [R + 1], where its steps begin.
        targets: uint32 [S], the square stepped to. jumps: int64 [S], how many words further that leads.
        first_back, targets_back, jumps_back: the same of steps that may have led there, taken back.
        words: number of words. roamer: kind of the roamer. second: the second side is to move.
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
        """Words come in rows, one for each rank of the three slower kinds."""
        return self.words // int(self.sizes[self.order[-1]])


def grid_of(layout: Layout, second: bool) -> Grid:
    """The grid of a layout with its second side to move, or its first."""
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
    """Puts the three slower kinds of a row on the board: their ranks int64 [4] and squares uint32 [4] by kind.

    Returns:
        The squares taken, all of them where two kinds share one and the row stays empty; the row's first word.
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
    """Adds the fastest kind to a row; returns the squares taken, all of them where two kinds share one."""
    kind = grid.order[NUM_KINDS - 1]
    ranks[kind] = rank
    pieces[kind] = grid.masks[grid.base[kind] + rank]
    return np.uint32(ALL_SQUARES) if taken & pieces[kind] != 0 else np.uint32(taken | pieces[kind])


@njit(cache=True)
def place_word(grid, word, ranks, pieces):
    """Puts the pieces of one word on the board; returns the squares taken, see ``place_fast``."""
    size = grid.sizes[grid.order[NUM_KINDS - 1]]
    taken, _ = place_row(grid, word // size, ranks, pieces)
    return place_fast(grid, word % size, taken, ranks, pieces)


@njit(cache=True)
def free_places(roamer, taken):
    """The squares where a roamer of this kind may stand."""
    return np.uint32(PLACES[roamer] & ~taken)


@njit(cache=True)
def canonical_places(roamer, taken, fellows):
    """The places that are below all other pieces of the same kind, so that each position is met once."""
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
    """Outcome of a position with a capture: WIN, DRAW or LOSS."""
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
    """Settles what leaving the slice decides of the positions of rows ``low`` to ``high``.

    Args:
        slices, words: the slices solved before, see ``layout.lookup``.
        values: uint32 [words, 2], won and lost positions are added.
        todo: uint32 [words, 2], positions still open, and those of them that may be lost, are added.
        first: the word of the slice at which ``values`` and ``todo`` begin.
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
    """(positions with a step to a lost one, positions all of whose steps lead to won ones) of one word.

    Args:
        taken: squares of all pieces but the roamer.
        theirs: uint32 [words, 2], what the other side has won and lost when it is to move.
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
    """Marks the words from which a step of the side that is not to move may lead to one; see ``sweep_rows``."""
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
    """Decides what can be decided now in rows ``low`` to ``high``; returns the number of words that changed.

    See ``settle_rows`` for the arguments, ``sweep_word`` for ``theirs``.

    Args:
        marks: uint8 [words], the words to look at, which are those from where a step leads to what has changed since
            the last sweep; set to zero. [0]: all words.
        their_marks: the same of the other side; set where steps lead to what changes here. [0]: nobody asks.
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
