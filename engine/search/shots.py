"""Shots: moves that win material by force, because the opponent must capture the pieces that are offered.

Captures are mandatory, so there are few replies to a sacrifice, and a line of sacrifices and captures can be searched
to its end. A tree search finds shots late, because sacrifices have small priors. Where the attacker need not capture,
it may offer a piece with a quiet move, at most ``MAX_OFFERS`` times in a line, or stop. The defender only captures;
where it need not, the line ends. The result of a line is its material: a man counts 4, a man one step from crowning 5,
a king 6.
"""

import numpy as np
from numba import njit

from ..bitboard import mask_of, popcount, turned
from ..movegen import DISTINCT, MAX_MOVES, generate, is_capture, jumpers_of, new_moves
from ..records import record

MAX_OFFERS = 4
MAX_NODES = 2000  # most nodes of one search; a line that is not finished then does not count
MOST_TOGETHER = 0.9  # largest sum of the priors of all shots of a position, if they are raised
_PLIES = MAX_OFFERS + 24  # a ply that offers nothing captures one of at most 24 pieces
_BEST = 1000  # more than any material
_BITS = 64  # moves that one word can mark
_BEFORE_FAR_ROW, _BEFORE_NEAR_ROW = np.uint32(mask_of(range(24, 28))), np.uint32(mask_of(range(4, 8)))

FRAME = record(
    [
        ("best", np.int32),  # best material at the end of a line so far, seen by the attacker
        ("alpha", np.int32),  # material that the attacker has for certain by an earlier choice
        ("beta", np.int32),  # material to which the defender can limit the attacker by an earlier choice
        ("move", np.int32),  # next move to try
        ("num_moves", np.int32),
        ("offers", np.int32),  # sacrifices that the attacker may still make
    ]
)


def new_shot_frames() -> tuple[np.ndarray, np.ndarray]:
    """Buffers for a search of shots: [plies] of ``FRAME`` and [plies, MAX_MOVES] of ``MOVE``."""
    return np.zeros(_PLIES, FRAME), new_moves(_PLIES)


@njit(cache=True)
def _material(own, opp, kings):
    pieces = np.int32(popcount(own)) - np.int32(popcount(opp))
    crowned = np.int32(popcount(own & kings)) - np.int32(popcount(opp & kings))
    mine, theirs = own & ~kings & _BEFORE_FAR_ROW, opp & ~kings & _BEFORE_NEAR_ROW
    return 4 * pieces + 2 * crowned + np.int32(popcount(mine)) - np.int32(popcount(theirs))


@njit(cache=True)
def _open(frame, moves, own, opp, kings, attacks):
    """Opens a node whose window and offers are set; ``attacks``: whether the attacker is to move."""
    frame.move = frame.num_moves = 0
    captures = jumpers_of(own, opp, kings) != 0
    material = _material(own, opp, kings)
    if captures:
        frame.num_moves = generate(own, opp, kings, moves, DISTINCT)
        frame.best = -_BEST if attacks else _BEST
    elif attacks:
        frame.best = material
        if frame.offers > 0:
            frame.num_moves = generate(own, opp, kings, moves, DISTINCT)
    else:
        frame.best = -material


@njit(cache=True)
def find_shots(own, opp, kings, frames, moves):
    """The quiet moves that win material by force.

    Args:
        own, opp, kings: uint32, seen by the side to move, the attacker.
        frames, moves: see ``new_shot_frames``.

    Returns:
        uint64: bit i is set if move i in the order of ``generate(distinct=True)`` is a shot. Only the first 64 moves
        are searched. 0 if the side to move must capture.
    """
    found = np.uint64(0)
    if jumpers_of(own, opp, kings) != 0:
        return found
    root = frames[0]
    root.offers, root.alpha, root.beta = MAX_OFFERS, -_BEST, _BEST
    ply, nodes = 0, 0
    _open(root, moves[0], own, opp, kings, ply % 2 == 0)
    if MAX_MOVES > _BITS:  # flying kings may have more
        root.num_moves = min(root.num_moves, np.int32(_BITS))
    while True:
        frame, attacks = frames[ply], ply % 2 == 0
        cut = frame.best >= frame.beta if attacks else frame.best <= frame.alpha
        if frame.move < frame.num_moves and not cut and nodes < MAX_NODES:
            move = moves[ply, frame.move]
            frame.move += 1
            next_own, next_opp, next_kings = turned(move.opp), turned(move.own), turned(move.kings)
            offer = attacks and not is_capture(move.code)
            if offer and jumpers_of(next_own, next_opp, next_kings) == 0:
                continue  # nothing is offered
            nodes += 1
            child = frames[ply + 1]
            child.offers = frame.offers - np.int32(offer)
            child.alpha = max(frame.alpha, frame.best) if attacks else frame.alpha
            child.beta = frame.beta if attacks else min(frame.beta, frame.best)
            _open(child, moves[ply + 1], next_own, next_opp, next_kings, not attacks)
            ply += 1
            continue
        if ply == 0:
            break
        if nodes >= MAX_NODES and frame.move < frame.num_moves and not cut:
            break  # all shots in ``found`` are from finished lines
        score = frame.best
        ply -= 1
        parent = frames[ply]
        if ply % 2 == 1:
            parent.best = min(parent.best, score)
        elif score > parent.best:
            if ply > 0:
                parent.best = score
            else:
                found |= np.uint64(1) << np.uint64(parent.move - 1)
    return found


@njit(cache=True, inline="always")
def _is_shot(shots, move):
    return (MAX_MOVES <= _BITS or move < _BITS) and shots >> np.uint64(move) & np.uint64(1) != 0


@njit(cache=True)
def raise_priors(nodes, leaf, least, frames, moves):
    """Raises the priors of all shots of a leaf's side to move to at least ``least``; the sum of all priors stays 1.

    All shots count, because the one that wins the most material is not always the best move. If there are many, the
    limit is ``MOST_TOGETHER`` divided by their number.
    """
    shots = find_shots(turned(leaf.opp), turned(leaf.own), turned(leaf.kings), frames, moves)
    if shots == 0:
        return
    first, count = leaf.first_child, np.int64(leaf.num_children)
    number = 0
    for move in range(count):
        number += _is_shot(shots, move)
    wanted = min(least, np.float32(MOST_TOGETHER / number))
    raised, rest = np.float32(0.0), np.float32(0.0)
    for move in range(count):
        prior = nodes[first + move].prior
        if _is_shot(shots, move) and prior < wanted:
            raised += wanted
        else:
            rest += prior
    scale = (np.float32(1.0) - raised) / rest
    for move in range(count):
        child = nodes[first + move]
        if _is_shot(shots, move) and child.prior < wanted:
            child.prior = wanted
        else:
            child.prior *= scale
