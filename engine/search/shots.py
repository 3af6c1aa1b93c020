"""Shots: moves that win material by force, because the opponent has to capture what is offered.

A capture is compulsory, so a sacrifice leaves few answers, and a line of sacrifices and captures can be searched to its
end where a search by visits, to whose network giving men away looks bad, comes late. The attacker may offer a piece
with a quiet move, ``MAX_OFFERS`` times in a line, or stop where it need not capture; the defender only captures: where
it need not, the line ends. What a line wins is counted in material alone: a man 4, one that a single step crowns 5, a
king 6.
"""

import numpy as np
from numba import njit

from ..bitboard import mask_of, popcount, turned
from ..movegen import DISTINCT, MAX_MOVES, generate, is_capture, jumpers_of, new_moves
from ..records import record

MAX_OFFERS = 4
MAX_NODES = 2000  # most nodes of one search; a line that is not finished by then does not count
MOST_TOGETHER = 0.9  # probability of all shots of a position that have theirs raised
_PLIES = MAX_OFFERS + 24  # a ply that offers nothing captures one of at most 24 pieces
_BEST = 1000
_BITS = 64  # moves that a word can name
_BEFORE_FAR_ROW, _BEFORE_NEAR_ROW = np.uint32(mask_of(range(24, 28))), np.uint32(mask_of(range(4, 8)))

FRAME = record(
    [
        ("best", np.int32),  # material at the end of the line, seen by the attacker
        ("alpha", np.int32),  # the attacker has this elsewhere
        ("beta", np.int32),  # and the defender this
        ("move", np.int32),  # next to be tried
        ("num_moves", np.int32),
        ("offers", np.int32),  # sacrifices that the attacker may still make
    ]
)


def new_shot_frames() -> tuple[np.ndarray, np.ndarray]:
    """Room for a search: [plies] of ``FRAME`` and [plies, MAX_MOVES] of ``MOVE``."""
    return np.zeros(_PLIES, FRAME), new_moves(_PLIES)


@njit(cache=True)
def _material(own, opp, kings):
    pieces = np.int32(popcount(own)) - np.int32(popcount(opp))
    crowned = np.int32(popcount(own & kings)) - np.int32(popcount(opp & kings))
    mine, theirs = own & ~kings & _BEFORE_FAR_ROW, opp & ~kings & _BEFORE_NEAR_ROW
    return 4 * pieces + 2 * crowned + np.int32(popcount(mine)) - np.int32(popcount(theirs))


@njit(cache=True)
def _open(frame, moves, own, opp, kings, attacks):
    """Begins a node, ``attacks`` if the attacker is to move in it; its window and offers are set."""
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
        uint64, bit i set: move i in the order of ``generate(distinct=True)`` is one. (Of more than 64 quiet moves the
        first 64 are looked at.) Whoever must capture has none.
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
            break  # what has been found is from lines that were finished
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
    """Gives the shots of a leaf's side to move a prior of at least ``least`` each; the sum stays 1.

    All of them, because what wins the most material at once is not always the best. Where they are many, each has at
    least an equal part of ``MOST_TOGETHER``.
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
