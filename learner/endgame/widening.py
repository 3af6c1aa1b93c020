"""A pair network inside a wider one, which begins by judging as it does (Chen et al. 2016, "Net2Net")."""

import math

import numpy as np
import torch

from engine.tablebase.material import MIN_PIECES, materials_between

from .features import slice_table
from .networks import PairConfig, PairNetwork


def sizes_of(width: int, pieces: int) -> PairConfig:
    """The sizes of a network of this width for 2 to ``pieces`` pieces."""
    return PairConfig(width=width, experts=width, hidden=width // 2, pieces=max(pieces, PairConfig().pieces))


def widened(network: PairNetwork, config: PairConfig) -> PairNetwork:
    """A network of these sizes that judges as the given one does, slices that this one lacks included.

    New units hear all, at random, and have no say yet: the weights behind them are zero.

    Raises:
        ValueError: a size is smaller than the given network's.
    """
    old, new = network.config, PairNetwork(config)
    sizes = ("width", "experts", "hidden", "pieces")
    smaller = [name for name in sizes if getattr(config, name) < getattr(old, name)]
    if smaller:
        raise ValueError(f"{smaller[0]} {getattr(config, smaller[0])} is less than the network's own")
    half = old.width // 2
    kept = torch.cat([torch.arange(half), config.width // 2 + torch.arange(half)])  # gates, and what they gate
    rows = torch.from_numpy(_borrowed_rows(old.pieces, config.pieces))
    experts, hidden = slice(old.experts), slice(old.hidden)
    with torch.no_grad():
        new.pairs[:, kept] = network.pairs
        new.biases[:, kept] = network.biases[rows]
        fresh = torch.randn(1, config.width, config.experts).expand_as(new.expert_weights) / math.sqrt(config.width)
        new.expert_weights.copy_(fresh)
        new.expert_weights[:, :, experts] = 0.0
        new.expert_weights[:, kept, experts] = network.expert_weights
        new.expert_bias[experts] = network.expert_bias
        new.hidden_weights[:, hidden] = 0.0
        new.hidden_weights[experts, hidden] = network.hidden_weights
        new.hidden_bias[:, hidden] = network.hidden_bias[rows]
        new.out_weights.zero_()
        new.out_weights[hidden] = network.out_weights
        new.out_bias.copy_(network.out_bias)
    return new


def _borrowed_rows(few: int, many: int) -> np.ndarray:
    """int64: for every row of a table for 2 to ``many`` pieces the one that a table for 2 to ``few`` gives it."""
    slices = slice_table(few)[[material.code for material in materials_between(MIN_PIECES, many)]].astype(np.int64)
    return (2 * slices[:, None] + np.arange(2)).reshape(-1)
