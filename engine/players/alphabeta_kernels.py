"""The compiled part of the alpha-beta player: a search that can be paused and resumed after any number of nodes.

Numba cannot cache a function that calls itself. The nodes from the root to the current one are therefore kept in an
array of frames, and one loop opens, advances and closes them. All state of the search is in arrays, so the caller can
run it in slices of nodes and check the clock in between.

Rules of the search

* A leaf is a position at depth 0 whose side to move need not capture. Captures are always played out, since they are
  mandatory. A forced reply (the only legal move) costs no depth.
* The first repetition of a position since the root is a draw; a repetition of an earlier position of the game is a draw
  by the rules of the game (``kernels.repeated``). 80 reversible plies are a draw.
* The transposition table answers only with values of exactly the depth asked for, so it makes the search faster and
  changes no value. The exceptions are draws by repetition and by 80 plies: they depend on earlier moves, which are not
  in the table. Near 80 plies the table is used only to order moves.
* Moves are tried in this order: the table's move, captures by length, then by the history of cut-offs (Schaeffer 1989).

A search that ``prunes`` is no longer plain alpha-beta. A ``rate`` function orders the moves by probability and sets by
how many plies less each is searched (Tsuruoka et al. 2002, "Game-tree search algorithm based on realization
probability"). Moves after the first are searched with a null window, and again with the full window if their score is
higher than expected (principal variation search). The table also answers with values of deeper searches. Near leaves
the last two quiet moves that cut off a node at the same ply are tried before other quiet moves (killer moves).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..draw_rules import REVERSIBLE_PLIES_TO_DRAW
from ..movegen import (
    DISTINCT,
    MAX_MOVES,
    MOVE,
    count_moves,
    generate,
    is_capture,
    jumpers_of,
    move_direction,
    move_hops,
    move_start,
)
from ..position_keys import position_key
from ..records import record
from .evaluation import DRAW, LEAST_WIN, WIN, evaluate
from .kernels import new_line, play, repeated

MAX_PLY = 160  # lines of this length end with a static evaluation
INFINITY = 32_000
NO_MOVE = 255
EXACT, LOWER, UPPER = 1, 2, 3  # a table score is the true value, a lower or an upper bound of it; 0 marks a free entry
_OPEN, _DONE, _LEAF = 0, 1, 2  # a node's moves must be searched; its score is known; the judge has to give its score
_IN_FULL, _NARROW, _REDUCED = 0, 1, 2  # a move is searched with the full window, a null window, a null window less deep
_RATED_DEPTH = 2  # smallest depth of a node whose moves are rated
_RELIEF = 1  # plies by which reductions are smaller in nodes with more than a null window
_MOST_CUTOFFS = 1 << 30  # avoids overflow in a long analysis
_NEAR_DRAW = 16  # plies that forced replies and captures may add to the depth of a search

FRAME = record(
    [
        ("key", np.uint64),
        ("depth", np.int32),
        ("alpha", np.int32),  # lower bound of the window the node was opened with
        ("beta", np.int32),  # upper bound
        ("best", np.int32),  # best score so far
        ("best_move", np.int32),  # number of the move in the order of generate(distinct=True)
        ("move", np.int32),  # number of the move being searched
        ("table_move", np.int32),  # NO_MOVE if the table knows none
        ("num_moves", np.int32),
        ("tried", np.int32),  # moves searched, including the current one
        ("way", np.int32),  # how the current move is searched: _IN_FULL, _NARROW or _REDUCED
        ("reduction", np.int32),  # plies by which the depth is reduced if ``way`` is _REDUCED
    ]
)
ENTRY = record(
    [
        ("key", np.uint64),
        ("score", np.int16),  # plies of wins and losses are counted from this position, not from the root
        ("age", np.uint16),  # number of the search that wrote the entry
        ("depth", np.uint8),
        ("bound", np.uint8),
        ("move", np.uint8),
    ]
)
SEARCH = record(
    [
        ("salt", np.uint64),  # gives every search its own keys and its own noise
        ("nodes", np.int64),
        ("root", np.int64),  # index of the root in the line
        ("ply", np.int32),  # ply of the current frame
        ("first_move", np.int32),  # move that is tried first at the root
        ("noise", np.int32),  # largest random number added to or subtracted from a leaf's score
        ("age", np.uint16),  # number of this search
        ("prunes", np.bool_),  # see the module
        ("again", np.bool_),  # the current frame's move must be searched once more, in another way
    ]
)


class SearchState(NamedTuple):
    """The state of a search between two calls; made by ``new_state``, filled by ``start`` and ``search_nodes``.

    Attributes:
        search: [1] of ``SEARCH``.
        frames: [MAX_PLY + 1] of ``FRAME``, one per node from the root to the current one.
        line: uint32 [N, 4], see ``kernels``; frame ``ply`` is the position at ``root + ply``.
        moves: [MAX_PLY + 1, MAX_MOVES] of ``MOVE``, legal moves of each frame.
        order: int32 [MAX_PLY + 1, MAX_MOVES]; the move with the largest number is searched next, below 0: already
            searched.
        cutoffs: int32 [2, 32, 4], history of cut-offs by (side, start bit, direction) of a quiet move, weighted by the
            square of the depth; at most ``_MOST_CUTOFFS``.
        reductions: int32 [MAX_PLY + 1, MAX_MOVES], plies by which the depth of each move is reduced.
        killers: uint64 [MAX_PLY + 1, 2], codes of quiet moves that have cut off a node at this ply; 0: none.
        table: [slots, 2] of ``ENTRY``; slots is a power of two, or 0 for no table. The first entry of a slot keeps the
            deeper search of the current age; the second takes what does not replace the first.
    """

    search: np.ndarray
    frames: np.ndarray
    line: np.ndarray
    moves: np.ndarray
    order: np.ndarray
    cutoffs: np.ndarray
    reductions: np.ndarray
    killers: np.ndarray
    table: np.ndarray


def new_state(table_slots: int) -> SearchState:
    """Allocates a state; a slot of the table takes 32 bytes."""
    return SearchState(
        np.zeros(1, SEARCH),
        np.zeros(MAX_PLY + 1, FRAME),
        new_line(MAX_PLY + 1),
        np.zeros((MAX_PLY + 1, MAX_MOVES), MOVE),
        np.zeros((MAX_PLY + 1, MAX_MOVES), np.int32),
        np.zeros((2, 32, 4), np.int32),
        np.zeros((MAX_PLY + 1, MAX_MOVES), np.int32),
        np.zeros((MAX_PLY + 1, 2), np.uint64),
        np.zeros((table_slots, 2), ENTRY),
    )


@njit(cache=True)
def _find_entry(table, key):
    """Index (0 or 1) of the key's entry within its slot of the table, or -1."""
    if table.shape[0] > 0:
        slot = np.int64(key & np.uint64(table.shape[0] - 1))
        for place in range(2):
            if table[slot, place].bound != 0 and table[slot, place].key == key:
                return place
    return -1


@njit(cache=True)
def exact_move(state, own, opp, kings):
    """Number of the table's best move for a position whose entry is ``EXACT``; else ``NO_MOVE``."""
    key = position_key(own, opp, kings, state.search[0].salt)
    place = _find_entry(state.table, key)
    if place < 0:
        return NO_MOVE
    entry = state.table[np.int64(key & np.uint64(state.table.shape[0] - 1)), place]
    return np.int64(entry.move) if entry.bound == EXACT else NO_MOVE


@njit(cache=True)
def _store(state, frame, ply):
    """Enters a finished node into the table."""
    if state.table.shape[0] == 0:
        return
    slot = state.table[np.int64(frame.key & np.uint64(state.table.shape[0] - 1))]
    age = state.search[0].age
    entry = slot[0]
    if entry.bound != 0 and entry.age == age and entry.key != frame.key and entry.depth > frame.depth:
        entry = slot[1]
    entry.key = frame.key
    entry.age = age
    entry.depth = frame.depth
    entry.move = frame.best_move
    entry.score = frame.best + (ply if frame.best > LEAST_WIN else -ply if frame.best < -LEAST_WIN else 0)
    if frame.best >= frame.beta:
        entry.bound = LOWER
    else:
        entry.bound = EXACT if frame.best > frame.alpha else UPPER


@njit(inline="always")
def _noise(search, own, opp, kings):
    """Noise to add to a leaf's score, from -``search.noise`` to ``search.noise``."""
    if search.noise == 0:
        return np.int32(0)
    span = np.uint64(2 * search.noise + 1)
    return np.int32(position_key(own, opp, kings, search.salt) % span) - search.noise


@njit(cache=True)
def _answered_by_table(state, frame, ply, reversible_plies):
    """Looks the node up in the table and sets ``frame.table_move``.

    Returns True, and sets ``frame.best``, if the table has the node's value or a bound that causes a cut-off.
    """
    frame.table_move = NO_MOVE
    place = _find_entry(state.table, frame.key)
    if place < 0:
        return False
    entry = state.table[np.int64(frame.key & np.uint64(state.table.shape[0] - 1)), place]
    frame.table_move = entry.move
    deep = entry.depth == frame.depth or (state.search[0].prunes and entry.depth > frame.depth)
    searched = np.int64(entry.depth)  # by an entry that is deeper than the frame, further
    if ply == 0 or not deep or reversible_plies + searched + _NEAR_DRAW > REVERSIBLE_PLIES_TO_DRAW:
        return False
    score = np.int32(entry.score)
    if score > LEAST_WIN:
        score -= ply
    elif score < -LEAST_WIN:
        score += ply
    suffices = score >= frame.beta if entry.bound == LOWER else score <= frame.alpha
    if entry.bound != EXACT and not suffices:
        return False
    frame.best = score
    return True


@njit(cache=True)
def _put_in_order(state, frame, ply):
    """Sets ``order`` of the frame's moves, and their reductions to 0."""
    for i in range(frame.num_moves):
        code = state.moves[ply, i].code
        state.reductions[ply, i] = 0
        if i == frame.table_move:
            state.order[ply, i] = np.iinfo(np.int32).max
        elif is_capture(code):
            state.order[ply, i] = move_hops(code)
        elif code == state.killers[ply, 0] or code == state.killers[ply, 1]:
            state.order[ply, i] = np.iinfo(np.int32).max - 1
        else:
            state.order[ply, i] = state.cutoffs[ply & 1, move_start(code), move_direction(code, 0)]


@njit(cache=True)
def _open(state, ply):
    """Opens the node of frame ``ply``, whose depth and window are set already.

    Returns ``_OPEN``; ``_DONE`` if ``best`` is the node's final score; or ``_LEAF``.
    """
    frame, now = state.frames[ply], state.search[0].root + ply
    own, opp, kings, reversible_plies = state.line[now, 0], state.line[now, 1], state.line[now, 2], state.line[now, 3]
    frame.best_move = NO_MOVE
    frame.tried = 0
    if ply > 0 and repeated(state.line, now, state.search[0].root):
        frame.best = DRAW
        return _DONE
    capture = jumpers_of(own, opp, kings) != 0
    if (frame.depth == 0 and not capture) or ply == MAX_PLY:
        if not capture and count_moves(own, opp, kings, state.moves[ply]) == 0:
            frame.best = ply - WIN
            return _DONE
        frame.best = DRAW
        return _DONE if reversible_plies >= REVERSIBLE_PLIES_TO_DRAW else _LEAF
    frame.key = position_key(own, opp, kings, state.search[0].salt)
    if _answered_by_table(state, frame, ply, np.int64(reversible_plies)):
        return _DONE
    frame.num_moves = generate(own, opp, kings, state.moves[ply], DISTINCT)
    frame.best = ply - WIN if frame.num_moves == 0 else -INFINITY
    if frame.num_moves > 0 and ply > 0 and reversible_plies >= REVERSIBLE_PLIES_TO_DRAW:
        frame.num_moves = 0
        frame.best = DRAW
    if ply == 0:
        frame.table_move = state.search[0].first_move
    _put_in_order(state, frame, ply)
    return _DONE if frame.num_moves == 0 else _OPEN


@njit(cache=True)
def _next_move(state, ply):
    """Selects the unsearched move with the largest ``order``; -1 if there is none or the node is cut off."""
    frame, order = state.frames[ply], state.order[ply]
    if frame.best >= frame.beta:
        return -1
    next_move = -1
    for i in range(frame.num_moves):
        if order[i] >= 0 and (next_move < 0 or order[i] > order[next_move]):
            next_move = i
    if next_move >= 0:
        order[next_move] = -1
        frame.move = next_move
        frame.tried += 1
        frame.way = _way(state, frame, ply)
    return next_move


@njit(inline="always")
def _way(state, frame, ply):
    """The way in which the frame's move is searched first; sets ``frame.reduction``."""
    if not state.search[0].prunes or frame.tried == 1:
        return _IN_FULL
    reduction = state.reductions[ply, frame.move] - (_RELIEF if frame.beta - frame.alpha > 1 else 0)
    frame.reduction = max(0, min(reduction, frame.depth - 1))
    return _REDUCED if frame.reduction > 0 else _NARROW


@njit(cache=True)
def _make(state, ply):
    """Plays the move of frame ``ply`` and sets depth and window of frame ``ply + 1``."""
    frame, child = state.frames[ply], state.frames[ply + 1]
    play(state.line, state.search[0].root + ply, state.moves[ply, frame.move])
    child.depth = frame.depth if frame.num_moves == 1 else max(0, frame.depth - 1)
    least = max(frame.alpha, frame.best)
    child.alpha = -frame.beta if frame.way == _IN_FULL else -least - 1
    child.beta = -least
    if frame.way == _REDUCED:
        child.depth -= frame.reduction


@njit(cache=True)
def _take(state, ply, score):
    """Enters the score of frame ``ply``'s current move; True if the move must be searched again in another way."""
    frame = state.frames[ply]
    surprises = frame.way != _IN_FULL and score > max(frame.alpha, frame.best)
    if surprises and (frame.way == _REDUCED or score < frame.beta):
        frame.way = _NARROW if frame.way == _REDUCED and frame.beta - frame.alpha > 1 else _IN_FULL
        return True
    if score > frame.best:
        frame.best = score
        frame.best_move = frame.move
    if score < frame.beta:
        return False
    code = state.moves[ply, frame.move].code
    if not is_capture(code):
        if state.search[0].prunes and state.killers[ply, 0] != code:
            state.killers[ply, 1], state.killers[ply, 0] = state.killers[ply, 0], code
        side, start, direction = ply & 1, move_start(code), move_direction(code, 0)
        count = state.cutoffs[side, start, direction] + frame.depth * frame.depth
        state.cutoffs[side, start, direction] = min(count, _MOST_CUTOFFS)
    return False


@njit(cache=True)
def start(state, depth):
    """Opens the root, at index ``search.root`` of the line, for a search to ``depth``; it must have a legal move."""
    frame = state.frames[0]
    frame.depth = depth
    frame.alpha = -INFINITY
    frame.beta = INFINITY
    state.search[0].ply = 0
    state.search[0].again = False
    _open(state, np.int64(0))  # not a literal, for which it would be compiled once more


@njit(inline="always")
def search_with(state, budget, judge, rate, knowledge):
    """``search_nodes`` with another evaluation of leaves.

    Args:
        judge: compiled function ``judge(line, now, knowledge)`` that returns the score of position ``now`` of the line.
        rate: compiled function ``rate(state, ply, knowledge)`` that sets ``order`` (at least 0) and ``reductions`` of
            the moves of frame ``ply``, except the table's move. Called only if the search prunes.
        knowledge: passed on to ``judge`` and ``rate``.
    """
    search = state.search[0]
    limit = search.nodes + budget
    ply = np.int64(search.ply)
    just_opened = state.frames[ply].tried == 0
    while search.nodes < limit:
        if just_opened and _is_rated(state, ply):
            rate(state, ply, knowledge)
        just_opened = False
        if search.again or _next_move(state, ply) >= 0:
            search.nodes += 1
            _make(state, ply)
            opened = _open(state, ply + 1)
            if opened == _OPEN:
                ply, search.again, just_opened = ply + 1, False, True
                continue
            if opened == _LEAF:
                now = search.root + ply + 1
                noise = _noise(search, state.line[now, 0], state.line[now, 1], state.line[now, 2])
                state.frames[ply + 1].best = np.int32(judge(state.line, now, knowledge)) + noise
        else:
            _store(state, state.frames[ply], ply)
            if ply == 0:
                return True
            ply -= 1
        search.again = _take(state, ply, -state.frames[ply + 1].best)
    search.ply = ply
    return False


@njit(inline="always")
def _is_rated(state, ply):
    frame = state.frames[ply]
    return state.search[0].prunes and frame.num_moves > 1 and frame.depth >= _RATED_DEPTH


@njit(inline="always")
def _judge(line, now, _):
    return evaluate(line[now, 0], line[now, 1], line[now, 2])


@njit(inline="always")
def rate_nothing(state, ply, _):
    """The ``rate`` of a search that does not prune."""


@njit(cache=True, nogil=True)
def search_nodes(state, budget):
    """Continues a search that ``start`` began, for at most ``budget`` nodes; returns True when it is finished.

    ``frames[0]`` then holds the root's score and best move. Before that, it holds the best of the root's moves searched
    so far, or ``NO_MOVE`` as the best move if none has been searched.
    """
    return search_with(state, budget, _judge, rate_nothing, 0)
