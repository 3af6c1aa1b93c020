"""Calibration: the ranges that a network's activations take, from which their int8 scales follow.

Ranges are the least and greatest values met on some positions of random games. Measured on self-play positions with
two trained networks (3x32 and 5x64), 32 to 1024 such positions are as good as 2000 positions of the self-play itself,
and as ranges that leave out the outermost 0.001 to 0.01 % of the values; without the outermost 0.1 % int8 is three
times less true to the network.
"""

import copy
from collections.abc import Mapping
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from engine.board import Board
from engine.encoding import encode_planes

from ..network_base import Network
from ..residual import Block

CALIBRATION_POSITIONS = 64
_MAX_PLIES = 120

Ranges = Mapping[str, tuple[float, float]]
"""Name of a module (``Network.named_modules``) → least and greatest value it puts out."""


@cache
def random_positions(number: int, seed: int = 0) -> np.ndarray:
    """Positions of random games, from the opening to the endgame: uint32 [number, 4]; shared, not to be changed."""
    rng = np.random.default_rng(seed)
    positions: list[tuple[int, ...]] = []
    board = Board()
    while len(positions) < number:
        legal = board.legal_moves
        if not legal or board.ply >= _MAX_PLIES or board.outcome():
            board = Board()
            continue
        positions.append((*board.words(), board.reversible_plies))
        board.push(legal[rng.integers(len(legal))])
    return np.array(positions, np.uint32).reshape(number, 4)


@torch.inference_mode()
def calibrate(folded: Network, positions: np.ndarray) -> Ranges:
    """The ranges of what the trunk of a folded network (``Network.folded``) puts out on positions uint32 [N, 4]."""
    network = copy.deepcopy(folded)
    ranges: dict[str, tuple[float, float]] = {}

    def watch(name: str, module: nn.Module) -> None:
        def note(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            low, high = output.aminmax()  # at once: what follows works in place
            ranges[name] = (float(low), float(high))

        module.register_forward_hook(note)

    watch("stem", network.stem)
    for number, block in enumerate(network.blocks):
        assert isinstance(block, Block)
        watch(f"blocks.{number}.first", block.first)
        watch(f"blocks.{number}.second.conv", block.second.conv)
        watch(f"blocks.{number}.second", block.second)
    network(torch.from_numpy(encode_planes(positions)))
    return ranges
