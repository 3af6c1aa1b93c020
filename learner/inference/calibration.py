"""Calibration: the ranges that a network's activations take, from which their int8 scales follow.

Ranges are the least and greatest values met on some positions of random games. Measured on self-play positions with
two trained networks (3x32 and 5x64), 32 to 1024 such positions are as good as 2000 positions of the self-play itself,
and as ranges that leave out the outermost 0.001 to 0.01 % of the values; without the outermost 0.1 % int8 is three
times less true to the network.
"""

import copy
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import convert_conv2d_weight_memory_format

from engine.board import Board
from engine.encoding import encode_planes

from ..network import Network, choose_dtype
from ..residual import Block

CALIBRATION_POSITIONS = 64
_MAX_PLIES = 120


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


class Calibration(NamedTuple):
    """What a network did with the calibration positions.

    Attributes:
        ranges: name of a module (``Network.named_modules``) → least and greatest value it put out.
        policy_logits, wdl_logits: float32 [N, 128] and [N, 3], its answers.
    """

    ranges: dict[str, tuple[float, float]]
    policy_logits: np.ndarray
    wdl_logits: np.ndarray


@torch.inference_mode()
def calibrate(folded: Network, positions: np.ndarray) -> Calibration:
    """Runs a folded network (``Network.folded``) over positions uint32 [N, 4] and notes what its trunk puts out.

    It runs in bf16 where the processor has it: ranges need no more, and an actor waits for them.
    """
    device = torch.device("cpu")
    dtype = choose_dtype(device, "auto")
    layout = folded.layout(device, dtype)
    network = copy.deepcopy(folded).to(dtype)
    convert_conv2d_weight_memory_format(network, layout)
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
    planes = torch.from_numpy(encode_planes(positions)).to(dtype).contiguous(memory_format=layout)
    policy_logits, wdl_logits = (output.float().numpy() for output in network(planes))
    return Calibration(ranges, policy_logits, wdl_logits)
