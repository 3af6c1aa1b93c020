"""The step loop of a search with a residual network, computed by the kernels of ``winograd``."""

from numba import njit

from engine.search.step_loop import search_steps

from .winograd import forward

LARGEST_BATCH = 16
"""Positions of one pass: weights are read once for it, and what lies between two layers stays in the cache."""


@njit(nogil=True, cache=True)
def forward_many(positions, network, policy_logits, wdl_logits):
    """``winograd.forward`` for any number of positions; ``network`` are its weights and buffers."""
    weights, buffers = network
    for first in range(0, positions.shape[0], LARGEST_BATCH):
        part = slice(first, min(first + LARGEST_BATCH, positions.shape[0]))
        forward(positions[part], weights, buffers, policy_logits[part], wdl_logits[part])


@njit(nogil=True, cache=True)
def _judge(state, network, n):
    forward_many(state.leaves[:n], network, state.policy, state.wdl)
    return True


@njit(nogil=True, cache=True)
def search_residual(state, settings, tables, weights, buffers, steps):
    """``step_loop.search_steps`` with a residual network."""
    return search_steps(state, settings, tables, _judge, (weights, buffers), steps)
