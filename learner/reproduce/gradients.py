"""Gradients against differences: every operation that Maddocks's own autodiff had, and the loss trained on here.

``torch.autograd.gradcheck`` judges in float64; the largest error is taken from central differences beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from engine.board import Board

from ..batch import TrainingBatch, make_batch
from ..loss import training_loss

STEP = 1e-6  # of the differences
TOLERANCE = 1e-6  # of gradcheck, absolute and relative
_PLIES = (0, 9, 24, 40)  # of a random game, whose positions the loss is taken at


@dataclass(frozen=True)
class Operation:
    """A differentiable function, and its float64 inputs, away from kinks and poles: gradients by all are checked."""

    name: str
    function: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class GradientCheck:
    """What a check found.

    Attributes:
        derivatives: outputs times inputs.
        error: the largest distance of a derivative from its difference, by max(1, their size).
        passed: the word of ``torch.autograd.gradcheck``.
    """

    name: str
    derivatives: int
    error: float
    passed: bool


def check_gradients(operation: Operation) -> GradientCheck:
    """Compares all derivatives of an operation with central differences."""
    inputs = tuple(tensor.detach().clone().requires_grad_() for tensor in operation.inputs)
    passed = torch.autograd.gradcheck(
        operation.function, inputs, eps=STEP, atol=TOLERANCE, rtol=TOLERANCE, raise_exception=False
    )
    jacobians = torch.autograd.functional.jacobian(operation.function, inputs)
    derivatives, error = 0, 0.0
    for number, jacobian in enumerate(jacobians):
        differences = _differences(operation.function, inputs, number)
        found = jacobian.reshape(-1, inputs[number].numel())
        derivatives += found.numel()
        error = max(error, float(((found - differences).abs() / differences.abs().clamp(min=1)).max()))
    return GradientCheck(operation.name, derivatives, error, passed)


def _differences(function: Callable[..., Tensor], inputs: Sequence[Tensor], number: int) -> Tensor:
    """Central differences [outputs, elements] by the elements of one input."""
    columns = []
    with torch.no_grad():
        for element in range(inputs[number].numel()):
            sides = []
            for step in (STEP, -STEP):
                moved = [tensor.detach().clone() for tensor in inputs]
                moved[number].view(-1)[element] += step
                sides.append(function(*moved).reshape(-1))
            columns.append((sides[0] - sides[1]) / (2 * STEP))
    return torch.stack(columns, 1)


def alphazero_loss(value: Tensor, policy_logits: Tensor, result: Tensor, policy: Tensor) -> Tensor:
    """(z - v)² - π·log p, the mean over a batch (Silver et al. 2017), without the decay of the weights.

    ``value`` and ``result`` (-1 to 1) are [N]; ``policy_logits`` and ``policy`` (probabilities) [N, K].
    """
    return ((result - value) ** 2 - (policy * functional.log_softmax(policy_logits, 1)).sum(1)).mean()


def operations(seed: int) -> list[Operation]:
    """The operations of Maddocks's library, and the losses."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def positive(*shape: int) -> Tensor:
        """Between 1/2 and 3/2."""
        return torch.rand(*shape, generator=generator, dtype=torch.float64) + 0.5

    def bent(*shape: int) -> Tensor:
        """Of either sign, at least 1/2 away from 0."""
        return positive(*shape) * normal(*shape).sign()

    def targets(*shape: int) -> Tensor:
        return torch.softmax(normal(*shape), -1)

    two = (normal(3, 4), normal(4))  # of different shapes, so that one is broadcast
    image, kernels = normal(2, 3, 5, 5), normal(4, 3, 3, 3)
    labels, results, policies = positive(3, 4) - 0.5, torch.tanh(normal(5)), targets(5, 6)
    batch = _real_batch(seed)
    return [
        Operation("add", torch.add, two),
        Operation("neg", torch.neg, two[:1]),
        Operation("mul", torch.mul, two),
        Operation("div", torch.div, (normal(3, 4), bent(4))),
        Operation("matmul", torch.matmul, (normal(2, 3, 4), normal(4, 5))),
        Operation("pow", lambda x: x**2.5, (positive(3, 4),)),
        Operation("mean", lambda x: x.mean(1), two[:1]),
        Operation("sum", lambda x: x.sum(0), two[:1]),
        Operation("log", torch.log, (positive(3, 4),)),
        Operation("exp", torch.exp, two[:1]),
        Operation("transpose", lambda x: x.transpose(0, 2), (normal(2, 3, 4),)),
        Operation("pad", lambda x: functional.pad(x, (1, 2, 2, 1)), (image[:1],)),
        Operation("conv2d", functional.conv2d, (image, kernels)),
        Operation("dense", functional.linear, (normal(3, 4), normal(5, 4), normal(5))),
        Operation("conv", lambda x, w, b: functional.conv2d(x, w, b, 2, 1), (image, kernels, normal(4))),
        Operation("reshape", lambda x: x.reshape(6, 4), (normal(2, 3, 4),)),
        Operation("ReLU", torch.relu, (bent(3, 4),)),
        Operation("softmax", lambda x: torch.softmax(x, 1), two[:1]),
        Operation("sigmoid", torch.sigmoid, two[:1]),
        Operation("tanh", torch.tanh, two[:1]),
        Operation("MSE", lambda x: functional.mse_loss(x, labels), (normal(3, 4),)),
        Operation("BCE", lambda x: functional.binary_cross_entropy(torch.sigmoid(x), labels), (normal(3, 4),)),
        Operation("AlphaZero loss", lambda v, p: alphazero_loss(v, p, results, policies), (normal(5), normal(5, 6))),
        Operation(
            "loss used here",
            lambda policy, wdl: training_loss(policy, wdl, batch)[0],
            (normal(len(batch), 128), normal(len(batch), 3)),
        ),
    ]


def _real_batch(seed: int) -> TrainingBatch:
    """Positions of a random game, the last one without a policy target, with random targets in float64."""
    rng = np.random.default_rng(seed)
    positions: list[tuple[tuple[int, ...], int]] = []
    board = Board()
    while len(positions) < len(_PLIES):
        if board.outcome():
            board = Board()
            positions.clear()
        if board.ply == _PLIES[len(positions)]:
            positions.append(((*board.words(), board.reversible_plies), len(board.distinct_moves)))
        board.push(board.legal_moves[rng.integers(len(board.legal_moves))])
    moves = [number for _, number in positions]
    has_policy = np.array([True] * (len(positions) - 1) + [False])
    policy = np.concatenate([rng.dirichlet(np.ones(number)) for number in moves])
    wdl = rng.dirichlet(np.ones(3), len(positions))
    words = np.array([words for words, _ in positions], np.uint32)
    batch = make_batch(words, policy, np.cumsum([0, *moves]), has_policy, wdl)
    return TrainingBatch(batch.positions, batch.hops, batch.policy.double(), batch.wdl.double())
