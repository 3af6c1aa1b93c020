"""Networks that judge endgames: win, draw and loss logits for the side to move, from positions alone."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import safetensors.torch
import torch
from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from engine.encoding import encode_planes
from engine.errors import one_line
from engine.files import sha256_of
from engine.sealed import sealed
from engine.tablebase.material import MAX_PIECES, MIN_PIECES, materials_between
from engine.version import installed_version

from ..checkpoint import (
    INFO_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    load_checkpoint,
    naming_errors,
    read_fields,
    read_weights,
    weights_of,
    whole_folder,
    write_folder,
)
from ..network import NetworkConfig, make_network
from ..network_base import NetworkError, check_tensors
from ..residual import DARK_SQUARES
from .features import MAX_FEATURES, NUM_GROUPS, NUM_PAIRS, encode_many, slice_table
from .kernels import judge_positions, pool_backward, pool_forward

SCHEMA_VERSION: Literal[1] = 1
CARD_FILE = "endgame.json"
_INFERENCE_BATCH = 4096
Kind = Literal["wang", "pair", "selfplay"]


class EndgameNetwork(nn.Module, ABC):
    """What all networks here have in common.

    ``forward`` takes positions uint32 [N, 4] and gives logits [N, 3] of win, draw, loss with gradients;
    ``wdl_logits`` gives the same as float32 numbers, faster, always as in evaluation.
    """

    kind: ClassVar[Kind]
    config: BaseModel
    _frozen: tuple[nn.Module, ...] = ()

    @property
    def parameter_count(self) -> int:
        """Number of learned numbers, batch-norm statistics not counted."""
        return sum(parameter.numel() for parameter in self.parameters())

    def freeze(self, *parts: nn.Module) -> None:
        """Keeps these parts as they are in training, batch-norm statistics included."""
        self._frozen += parts
        for part in parts:
            part.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for part in self._frozen:
            part.eval()
        return self

    @abstractmethod
    def forward(self, positions: np.ndarray) -> Tensor: ...

    @torch.no_grad()
    def wdl_logits(self, positions: np.ndarray) -> np.ndarray:
        """float32 [N, 3]: win, draw, loss logits for the side to move of positions uint32 [N, 4]."""
        was_training = self.training
        self.eval()
        parts = [
            self(positions[start : start + _INFERENCE_BATCH]).numpy()
            for start in range(0, len(positions), _INFERENCE_BATCH)
        ]
        self.train(was_training)
        return np.concatenate(parts) if parts else np.zeros((0, 3), np.float32)


class WangConfig(BaseModel, frozen=True, extra="forbid"):
    """Sizes of a ``WangNetwork``; the defaults are those of Wang 2023."""

    blocks: int = Field(default=5, ge=1, le=20)
    channels: int = Field(default=8, ge=1, le=64)
    hidden: int = Field(default=512, ge=1, le=2048)


class _WangUnit(nn.Module):
    """3×3 convolution, Mish, then batch norm."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(nn.functional.mish(self.conv(x)))


class _WangBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = _WangUnit(channels, channels), _WangUnit(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(self.first(x))


class WangNetwork(EndgameNetwork):
    """The residual network of Wang 2023: four binary 8×8 planes, classifier 512 → 512 → 512 → 3."""

    kind: ClassVar[Kind] = "wang"
    dark_squares: Tensor

    def __init__(self, config: WangConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or WangConfig()
        self.stem = _WangUnit(4, config.channels)
        self.blocks = nn.Sequential(*(_WangBlock(config.channels) for _ in range(config.blocks)))
        self.classifier = nn.Sequential(
            nn.Linear(config.channels * 64, config.hidden),
            nn.Mish(),
            nn.Linear(config.hidden, config.hidden),
            nn.Mish(),
            nn.Linear(config.hidden, 3),
        )
        self.register_buffer("dark_squares", torch.tensor(DARK_SQUARES), persistent=False)

    def forward(self, positions: np.ndarray) -> Tensor:
        planes = torch.from_numpy(encode_planes(positions)[:, :4])
        board = planes.new_zeros(len(planes), 4, 64)
        board[:, :, self.dark_squares] = planes.flatten(2)
        return self.classifier(self.blocks(self.stem(board.unflatten(2, (8, 8)))).flatten(1))


class PairConfig(BaseModel, frozen=True, extra="forbid"):
    """Sizes of a ``PairNetwork``.

    Attributes:
        width: numbers per pair of piece-squares, even.
        experts, hidden: units of the two layers after it.
        pieces: most pieces that have a bias of their own for each slice; positions with more borrow one.
    """

    width: int = Field(default=64, ge=2, le=512, multiple_of=2)
    experts: int = Field(default=64, ge=1, le=512)
    hidden: int = Field(default=32, ge=1, le=512)
    pieces: int = Field(default=6, ge=2, le=MAX_PIECES)


class _Pool(torch.autograd.Function):
    """``kernels.pool_forward`` with its gradient."""

    @staticmethod
    def forward(ctx: Any, pairs: Tensor, biases: Tensor, features: Any, counts: Any, rows: Any) -> Tensor:
        outputs = torch.empty(len(counts), pairs.shape[1])
        sums = np.empty((len(counts), pairs.shape[1]), np.float32)
        pool_forward(features, counts, rows, pairs.detach().numpy(), biases.detach().numpy(), sums, outputs.numpy())
        ctx.encoded, ctx.sums, ctx.shapes = (features, counts, rows), sums, (pairs.shape, biases.shape)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        pairs, biases = (torch.zeros(shape) for shape in ctx.shapes)
        features, counts, rows = ctx.encoded
        pool_backward(features, counts, rows, ctx.sums, grad.contiguous().numpy(), pairs.numpy(), biases.numpy())
        return pairs, biases, None, None, None


class PairNetwork(EndgameNetwork):
    """Learned vectors of all pairs of pieces, summed and gated, then a small network chosen by who has more pieces.

    The first layer's sums have a bias for each slice and parity (``features``), as has the last hidden layer; the
    layer between them has weights of its own for each group. What a position costs grows with the pairs on the board.
    """

    kind: ClassVar[Kind] = "pair"
    config: PairConfig

    def __init__(self, config: PairConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or PairConfig()
        rows = 2 * len(materials_between(MIN_PIECES, config.pieces))
        width, experts, hidden = config.width, config.experts, config.hidden
        self.pairs = nn.Parameter(torch.randn(NUM_PAIRS, width) * 0.05)
        self.biases = nn.Parameter(torch.zeros(rows, width))
        self.expert_weights = nn.Parameter(torch.randn(1, width, experts).repeat(NUM_GROUPS, 1, 1) / math.sqrt(width))
        self.expert_bias = nn.Parameter(torch.zeros(experts))
        self.hidden_weights = nn.Parameter(torch.randn(experts, hidden) / math.sqrt(experts))
        self.hidden_bias = nn.Parameter(torch.zeros(rows, hidden))
        self.out_weights = nn.Parameter(torch.randn(hidden, 3) / math.sqrt(hidden))
        self.out_bias = nn.Parameter(torch.zeros(3))
        self._slices = slice_table(config.pieces)

    def encode(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Features, counts, rows and groups of positions (``features.encode_many``)."""
        n = len(positions)
        features, rows = np.zeros((n, MAX_FEATURES), np.uint8), np.empty(n, np.int64)
        counts, groups = np.empty(n, np.uint8), np.empty(n, np.uint8)
        encode_many(positions, self._slices, features, counts, rows, groups)
        return features, counts, rows, groups

    def forward(self, positions: np.ndarray) -> Tensor:
        features, counts, rows, groups = self.encode(positions)
        order = np.argsort(groups, kind="stable")  # so that each expert multiplies one block
        features, counts, rows = features[order], counts[order], rows[order]
        pooled = _Pool.apply(self.pairs, self.biases, features, counts, rows)
        sizes = np.bincount(groups, minlength=NUM_GROUPS).tolist()
        blocks = [part @ self.expert_weights[g] for g, part in enumerate(pooled.split(sizes)) if sizes[g]]
        x = torch.relu(torch.cat(blocks) + self.expert_bias)
        bias = nn.functional.embedding(torch.from_numpy(rows), self.hidden_bias)
        x = torch.relu(torch.addmm(bias, x, self.hidden_weights))
        logits = torch.addmm(self.out_bias, x, self.out_weights)
        return torch.empty_like(logits).index_copy(0, torch.from_numpy(order), logits)

    def wdl_logits(self, positions: np.ndarray) -> np.ndarray:
        logits = np.empty((len(positions), 3), np.float32)
        w = {name: parameter.detach().numpy() for name, parameter in self.named_parameters()}
        pool = self._slices, w["pairs"], w["biases"]
        layers = w["expert_weights"], w["expert_bias"], w["hidden_weights"], w["hidden_bias"]
        judge_positions(positions, pool, layers, w["out_weights"], w["out_bias"], logits)
        return logits


class SelfPlayNetwork(EndgameNetwork):
    """A self-play network (``learner.network``) seen through its win/draw/loss head; ``freeze_body`` trains that
    alone."""

    kind: ClassVar[Kind] = "selfplay"

    def __init__(self, config: NetworkConfig, freeze_body: bool = False) -> None:
        super().__init__()
        self.config, self.network = config, make_network(config)
        self.freeze(*self.network.policy_parts(), *(self.network.body_parts() if freeze_body else ()))

    @classmethod
    def from_checkpoint(cls, folder: Path | str, freeze_body: bool = False) -> "SelfPlayNetwork":
        """The network of a self-play checkpoint; raises ``CheckpointError`` if that cannot be read."""
        network = load_checkpoint(folder).network
        endgame = cls(network.config, freeze_body)
        endgame.network.set_weights(network.state_dict())
        return endgame.eval()

    def forward(self, positions: np.ndarray) -> Tensor:
        return self.network(torch.from_numpy(encode_planes(positions)))[1]


_KINDS: dict[str, tuple[TypeAdapter[Any], type[EndgameNetwork]]] = {
    "wang": (TypeAdapter(WangConfig), WangNetwork),
    "pair": (TypeAdapter(PairConfig), PairNetwork),
    "selfplay": (TypeAdapter(NetworkConfig), SelfPlayNetwork),
}


def new_network(kind: str, config: Mapping[str, Any] | None = None) -> EndgameNetwork:
    """A fresh network; without ``config``, of the default size, which "selfplay" lacks.

    Raises:
        ValueError: an unknown kind, or a configuration that is not its own.
    """
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is no kind of endgame network: choose {', '.join(_KINDS)}")
    config_type, network_type = _KINDS[kind]
    return network_type(config_type.validate_python(config or {}))


class StoredNetwork(BaseModel, frozen=True, extra="forbid"):
    """What a card says of a network.

    Attributes:
        parameters: number of learned numbers.
        pieces: fewest and most pieces of the positions it was trained on.
        digest: sha256 of the file of its weights, in hexadecimal.
    """

    kind: Kind
    config: dict[str, JsonValue]
    parameters: int
    pieces: tuple[int, int]
    digest: str

    @staticmethod
    def fields_of(network: EndgameNetwork, pieces: tuple[int, int], weights: bytes) -> dict[str, Any]:
        """The fields that describe a network, with the contents of its file of weights."""
        return {
            "kind": network.kind,
            "config": network.config.model_dump(mode="json"),
            "parameters": network.parameter_count,
            "pieces": pieces,
            "digest": sha256_of(weights),
        }

    def load(self, path: Path, card: Path) -> EndgameNetwork:
        """The network, ready to judge, with the weights in ``path``; ``card`` is the file that describes it.

        Raises:
            CheckpointError: the weights are missing, damaged, or not those of such a network.
        """
        data = read_weights(path, self.digest, card.name)
        try:
            tensors = safetensors.torch.load(data)
            network = new_network(self.kind, self.config)
            check_tensors(tensors, network.state_dict())
        except ValidationError as error:
            raise CheckpointError(f"{card}: config: {error.errors()[0]['msg']}") from error
        except (SafetensorError, NetworkError) as error:
            raise CheckpointError(f"{path}: {one_line(error)}") from error
        network.load_state_dict(tensors)  # copies into the network's own single precision
        return network.eval()


class EndgameCard(StoredNetwork):
    """Contents of ``endgame.json``, beside the weights: ``figures`` of the training, and the version that wrote it."""

    schema_version: Literal[1] = SCHEMA_VERSION
    figures: dict[str, JsonValue]
    created: datetime
    crownhead: str


def save_endgame_network(
    folder: Path | str, network: EndgameNetwork, pieces: tuple[int, int], figures: Mapping[str, Any] | None = None
) -> EndgameCard:
    """Writes a network as a folder, whole or not at all; one that is already there is replaced.

    Args:
        pieces: fewest and most pieces of the positions it was trained on.
        figures: anything that JSON can hold.

    Raises:
        CheckpointError: it cannot be written; what was there before is still there.
    """
    folder = Path(folder)
    try:
        weights = weights_of(network, finite=True)
        card = EndgameCard(
            **StoredNetwork.fields_of(network, pieces, weights),
            figures=dict(figures or {}),
            created=datetime.now(UTC),
            crownhead=installed_version(),
        )
    except ValueError as error:
        raise CheckpointError(f"{folder}: {one_line(error)}") from error
    with naming_errors(folder):
        if folder.exists() and not (folder / CARD_FILE).exists():
            raise CheckpointError(f"{folder}: is in the way and no endgame network; choose another name or remove it")
        write_folder(folder, {WEIGHTS_FILE: weights, CARD_FILE: sealed(card.model_dump(mode="json"))})
    return card


def read_card(folder: Path | str) -> EndgameCard:
    """Reads ``endgame.json`` alone; raises ``CheckpointError`` if it is missing, damaged or of another version."""
    return read_fields(whole_folder(Path(folder)) / CARD_FILE, EndgameCard, SCHEMA_VERSION)


def load_endgame_network(folder: Path | str) -> EndgameNetwork:
    """The network in a folder of ``save_endgame_network``, or a self-play checkpoint's; ready to judge.

    Raises:
        CheckpointError: a file is missing, damaged, of another version, or no network at all.
    """
    whole = whole_folder(Path(folder))
    if (whole / INFO_FILE).exists():
        return SelfPlayNetwork.from_checkpoint(folder)
    return read_card(folder).load(whole / WEIGHTS_FILE, whole / CARD_FILE)
