"""Oracles on disk: one folder with ``oracle.json`` and the networks' weights in half precision, never pickle."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
from pydantic import BaseModel, ConfigDict, JsonValue
from torch import Tensor

from engine.tablebase.material import MAX_PIECES
from engine.version import installed_version

from ..checkpoint import CheckpointError, naming_errors, one_line, read_fields, whole_folder, write_folder
from ..network import NetworkError, check_tensors
from ..report import make_writable_folder
from .member import Member, OracleError
from .networks import EndgameNetwork, StoredNetwork

SCHEMA_VERSION: Literal[1] = 1
ORACLE_FILE = "oracle.json"
ORACLE_FOLDER = "oracle"  # in the folder of a training, and of what is shipped


class MemberCard(StoredNetwork):
    """What ``oracle.json`` says of a member (``member.Member``); ``file`` holds its weights, beside ``oracle.json``.

    ``calibrated`` is None in a card from before this was written down: then what it is for, as far as tables reach.
    """

    file: str
    temperature: float
    threshold: float
    rounds: int
    search_temperature: float
    calibrated: int | None = None


class OracleCard(BaseModel):
    """Contents of ``oracle.json``: ``figures`` of training and calibration, and the version that wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = SCHEMA_VERSION
    members: tuple[MemberCard, ...]
    figures: dict[str, JsonValue]
    created: datetime
    crownhead: str


def save_oracle(folder: Path | str, members: Sequence[Member], figures: Mapping[str, Any] | None = None) -> OracleCard:
    """Writes the members of an oracle as a folder, whole or not at all; one that is already there is replaced.

    Weights are stored as 16-bit floating-point numbers: half the size, and verdicts change on fewer than one position
    in ten thousand. ``figures``: anything that JSON can hold.

    Raises:
        CheckpointError: it cannot be written; what was there before is still there.
    """
    folder = Path(folder)
    contents: dict[str, bytes] = {}
    cards = []
    for member in members:
        name = f"{member.network.kind}_{member.pieces[0]}_{member.pieces[1]}.safetensors"
        try:
            contents[name] = safetensors.torch.save(_halved(member.network))
        except NetworkError as error:
            raise CheckpointError(f"{folder}: {one_line(error)}") from error
        fields = StoredNetwork.fields_of(member.network, member.pieces, contents[name])
        cards.append(MemberCard(**{**fields, **member.settings}, file=name, calibrated=member.calibrated))
    card = OracleCard(
        members=tuple(cards), figures=dict(figures or {}), created=datetime.now(UTC), crownhead=installed_version()
    )
    contents[ORACLE_FILE] = (card.model_dump_json(indent=2) + "\n").encode()
    check_oracle_place(folder)
    with naming_errors(folder):
        write_folder(folder, contents)
    return card


def check_oracle_place(folder: Path | str) -> None:
    """Raises ``CheckpointError`` if an oracle cannot be written as this folder: told before the work, not after it."""
    folder = Path(folder)
    with naming_errors(folder):
        if folder.exists() and not (folder / ORACLE_FILE).exists():
            raise CheckpointError(f"{folder}: is in the way and no oracle; choose another name or remove it")
        make_writable_folder(folder.parent)


def _halved(network: EndgameNetwork) -> dict[str, Tensor]:
    """The network's tensors, floating-point ones in half precision; raises ``NetworkError`` if one overflows."""
    tensors = {}
    for name, tensor in network.state_dict().items():
        tensor = tensor.detach().contiguous()
        tensors[name] = tensor.half() if tensor.is_floating_point() else tensor
    check_tensors({name: tensor.float() for name, tensor in tensors.items()}, network.state_dict())
    return tensors


def read_oracle_card(folder: Path | str) -> OracleCard:
    """Reads ``oracle.json`` alone; raises ``CheckpointError`` if it is missing, damaged or of another version."""
    return read_fields(whole_folder(Path(folder)) / ORACLE_FILE, OracleCard, SCHEMA_VERSION)


def read_members(folder: Path | str) -> list[Member]:
    """The members of an oracle, their networks ready to judge; raises ``CheckpointError`` if one cannot be read."""
    folder = whole_folder(Path(folder))
    path, members = folder / ORACLE_FILE, []
    for card in read_oracle_card(folder).members:
        network = card.load(folder / Path(card.file).name, path)
        calibrated = min(card.pieces[1], MAX_PIECES) if card.calibrated is None else card.calibrated
        try:
            members.append(Member(network, **card.model_dump(include=set(Member.SETTINGS)), calibrated=calibrated))
        except OracleError as error:
            raise CheckpointError(f"{path}: {error}") from error
    if not members:
        raise CheckpointError(f"{path}: members: there is none")
    return members


def oracle_folder(folder: Path | str) -> Path | None:
    """The folder of the oracle that a folder is, or that a training has left in it; None where there is none."""
    for place in (Path(folder), Path(folder) / ORACLE_FOLDER):
        if (whole_folder(place) / ORACLE_FILE).exists():
            return place
    return None
