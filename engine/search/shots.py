"""Shots: moves that win material by force, because the opponent has to capture what is offered.

A capture is compulsory, so a sacrifice leaves few answers, and a line of sacrifices and captures can be searched to its
end where a search by visits, to whose network giving men away looks bad, comes late. The attacker may offer a piece
with a quiet move, ``MAX_OFFERS`` times in a line, or stop where it need not capture; the defender only captures: where
it need not, the line ends. What a line wins is counted in material alone, a man 2 and a king 3.
"""

import numpy as np
from numba import njit

from ..bitboard import popcount, turned
from ..movegen import generate, is_capture, jumpers_of, new_moves

MAX_OFFERS = 4
MAX_NODES = 2000  # of one search; a line that is not finished then counts for nothing
NO_SHOT = -1
_PLIES = MAX_OFFERS + 24  # a ply that offers nothing captures one of at most 24 pieces
_LEAST_GAIN = 2
_BEST = 1000

FRAME = np.dtype(
    [
        ("best", np.int32),  # material at the end of the line, seen by the attacker
        ("alpha", np.int32),  # the attacker has this elsewhere
        ("beta", np.int32),  # and the defender this
        ("move", np.int32),  # next to be tried
        ("num_moves", np.int32),
        ("offers", np.int32),  # that the attacker may still make
    ],
    align=True,
)


def new_shot_frames() -> tuple[np.ndarray, np.ndarray]:
    """Room for a search: [plies] of ``FRAME`` and [plies, MAX_MOVES] of ``MOVE``."""
    return np.zeros(_PLIES, FRAME), new_moves(_PLIES)


@njit(cache=True)
def _material(own, opp, kings):
    men = np.int32(popcount(own)) - np.int32(popcount(opp))
    return 2 * men + np.int32(popcount(own & kings)) - np.int32(popcount(opp & kings))


@njit(cache=True)
def _open(frame, moves, own, opp, kings, attacks):
    """Begins a node, ``attacks`` if the attacker is to move in it; its window and offers are set."""
    frame.move = frame.num_moves = 0
    captures = jumpers_of(own, opp, kings) != 0
    material = _material(own, opp, kings)
    if captures:
        frame.num_moves = generate(own, opp, kings, moves, True)
        frame.best = -_BEST if attacks else _BEST
    elif attacks:
        frame.best = material
        if frame.offers > 0:
            frame.num_moves = generate(own, opp, kings, moves, True)
    else:
        frame.best = -material


@njit(cache=True)
def find_shot(own, opp, kings, frames, moves):
    """The quiet move that wins the most material by force, as a number in the order of ``generate(distinct=True)``.

    Args:
        own, opp, kings: uint32, seen by the side to move, the attacker.
        frames, moves: see ``new_shot_frames``.

    Returns:
        Number of the move, the first of several, and what it wins; ``NO_SHOT`` and 0 if that is not at least a man, or
        if the side to move must capture.
    """
    if jumpers_of(own, opp, kings) != 0:
        return NO_SHOT, 0
    root = frames[0]
    root.offers, root.alpha, root.beta = MAX_OFFERS, -_BEST, _BEST
    _open(root, moves[0], own, opp, kings, True)
    before, shot = root.best, NO_SHOT
    ply, nodes = 0, 0
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
            break  # what stands at the root is from lines that were finished
        score = frame.best
        ply -= 1
        parent = frames[ply]
        if ply % 2 == 1:
            parent.best = min(parent.best, score)
        elif score > parent.best:
            parent.best = score
            shot = parent.move - 1 if ply == 0 else shot
    gain = root.best - before
    return (shot, gain) if gain >= _LEAST_GAIN else (NO_SHOT, 0)


@njit(cache=True)
def raise_prior(nodes, leaf, least, frames, moves):
    """Gives the shot of a leaf's side to move, if there is one, a prior of at least ``least``; the sum stays 1."""
    shot, _ = find_shot(turned(leaf.opp), turned(leaf.own), turned(leaf.kings), frames, moves)
    if shot == NO_SHOT:
        return
    first = leaf.first_child
    prior = nodes[first + shot].prior
    if prior >= least:
        return
    scale = (np.float32(1.0) - least) / (np.float32(1.0) - prior)
    for child in range(first, first + np.int64(leaf.num_children)):
        nodes[child].prior *= scale
    nodes[first + shot].prior = least
