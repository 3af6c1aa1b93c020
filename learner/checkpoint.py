"""Checkpoints and training states on disk: safetensors and JSON, checked by digest, never pickle.

A checkpoint is a folder with ``weights.safetensors`` and ``checkpoint.json``. It is written beside its place under a
hidden name and then renamed, so that a kill at any moment leaves a whole checkpoint or none. Every failure is a
``CheckpointError`` of one line that names the file.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import safetensors.torch
import torch
from pydantic import BaseModel, JsonValue, ValidationError
from safetensors import SafetensorError
from torch import Tensor, nn

from engine.errors import one_line
from engine.files import atomic_write, sha256_of, sync_folder
from engine.game import ENGLISH, GAME, check_game
from engine.sealed import ChecksumError, sealed, unsealed
from engine.version import installed_version

from .network import Network, NetworkConfig, check_registered, make_network, setting_name
from .network_base import NetworkError, check_tensors

SCHEMA_VERSION: Literal[1] = 1
Fields = TypeVar("Fields", bound=BaseModel)
WEIGHTS_FILE = "weights.safetensors"
INFO_FILE = "checkpoint.json"
_ADVICE = "copy it anew from where it came, or use another"


class CheckpointError(ValueError):
    """A checkpoint or training state that cannot be read or written; the message names the file."""


class CheckpointInfo(BaseModel, frozen=True, extra="forbid"):
    """Contents of ``checkpoint.json``.

    Attributes:
        digest: sha256 of ``weights.safetensors``, in hexadecimal; it names the checkpoint.
        parent: digest of the checkpoint that this one was trained from, or None.
        figures: what is known of its training (steps, losses, games, ...).
        created: time of writing, with time zone.
        crownhead: version of the program that wrote it.
        game: that the network plays, of ``engine.game.GAMES``.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    network: NetworkConfig
    figures: dict[str, JsonValue]
    parent: str | None
    digest: str
    created: datetime
    crownhead: str
    game: str = ENGLISH


class Checkpoint(NamedTuple):
    """A network, in evaluation mode on the CPU, and what is known of it."""

    network: Network
    info: CheckpointInfo


def save_checkpoint(
    folder: Path | str, network: Network, figures: Mapping[str, Any] | None = None, parent: str | None = None
) -> CheckpointInfo:
    """Writes a checkpoint; one that is already there is replaced.

    Args:
        figures: anything that JSON can hold.
        parent: digest of the checkpoint that this one was trained from.

    Raises:
        CheckpointError: it cannot be written; what was there before is still there.
    """
    folder = Path(folder)
    try:
        check_registered(network)
        weights = weights_of(network, finite=True)
        info = CheckpointInfo(
            network=network.config,
            figures=dict(figures or {}),
            parent=parent,
            digest=sha256_of(weights),
            created=datetime.now(UTC),
            crownhead=installed_version(),
            game=GAME,
        )
    except ValueError as error:
        raise CheckpointError(f"{folder}: {one_line(error)}") from error
    with naming_errors(folder):
        if folder.exists() and not (folder / INFO_FILE).exists() and not _is_empty(folder):
            raise CheckpointError(f"{folder}: is in the way and no checkpoint; choose another name or remove it")
        write_folder(folder, {WEIGHTS_FILE: weights, INFO_FILE: sealed(info.model_dump(mode="json"))})
    return info


def weights_of(network: nn.Module, finite: bool = False) -> bytes:
    """A network's weights as a safetensors file; with ``finite``, raises ``NetworkError`` if a number is not."""
    tensors = {name: _plain(tensor) for name, tensor in network.state_dict().items()}
    if finite:
        check_tensors(tensors, tensors)
    return safetensors.torch.save(tensors)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def load_checkpoint(folder: Path | str) -> Checkpoint:
    """Reads a checkpoint.

    Raises:
        CheckpointError: a file is missing, cut off, changed, of another version, or no checkpoint at all.
        OtherGameError: the network plays another game than this process.
    """
    info = read_info(folder)
    check_game(str(folder), info.game)
    path = whole_folder(Path(folder)) / WEIGHTS_FILE
    data = read_weights(path, info.digest, INFO_FILE)
    try:
        weights = safetensors.torch.load(data)
        network = make_network(info.network).eval()
        network.set_weights(weights)
    except (SafetensorError, NetworkError) as error:
        raise CheckpointError(f"{path}: {one_line(error)}") from error
    return Checkpoint(network, info)


def read_info(folder: Path | str) -> CheckpointInfo:
    """Reads ``checkpoint.json`` alone; raises what ``read_fields`` does."""
    return read_fields(whole_folder(Path(folder)) / INFO_FILE, CheckpointInfo, SCHEMA_VERSION)


def read_fields(path: Path, kind: type[Fields], version: int) -> Fields:
    """Reads a JSON file that describes weights.

    Raises:
        CheckpointError: it is missing, cut off, of another version, or something else.
    """
    with naming_errors(path):
        text = path.read_bytes()
    fields = parse_json(path, text)
    check_version(path, fields, version)
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise CheckpointError(f"{path}: {setting_name(first['loc'])}: {first['msg']}") from error


def read_weights(path: Path, digest: str, recorded_in: str) -> bytes:
    """Reads a file of weights.

    Raises:
        CheckpointError: it is missing, or not the one whose digest was recorded.
    """
    with naming_errors(path):
        data = path.read_bytes()
    if sha256_of(data) != digest:
        raise CheckpointError(f"{path}: damaged, its sha256 is not the one recorded in {recorded_in}; {_ADVICE}")
    return data


def check_version(path: Path, fields: Any, expected: int) -> None:
    """Raises ``CheckpointError`` unless ``fields`` is a dict with this ``schema_version``."""
    found = fields.get("schema_version") if isinstance(fields, dict) else None
    if not isinstance(found, int):
        raise CheckpointError(f"{path}: not written by this program (no schema_version)")
    if found != expected:
        raise CheckpointError(
            f"{path}: written in version {found} of the format; this program reads version {expected}"
        )


def write_tensors(path: Path | str, tensors: Mapping[str, Tensor], info: dict[str, Any]) -> None:
    """Writes tensors and ``info`` (JSON) to one safetensors file with a checksum, whole or not at all.

    Raises:
        CheckpointError: it cannot be written; what was there before is still there.
    """
    path = Path(path)
    plain = {name: _plain(tensor) for name, tensor in tensors.items()}
    text = json.dumps(info)
    data = safetensors.torch.save(plain, {"info": text, "sha256": _digest(plain, text)})
    with naming_errors(path):
        atomic_write(path, data)


def read_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads a file of ``write_tensors``.

    Raises:
        CheckpointError: it is missing, cut off, changed or something else.
    """
    path = Path(path)
    with naming_errors(path):
        data = path.read_bytes()
    try:
        tensors = safetensors.torch.load(data)
    except SafetensorError as error:
        raise CheckpointError(f"{path}: cut off or no safetensors file ({one_line(error)}); {_ADVICE}") from error
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])  # safetensors: length, JSON header, tensors
    notes = header.get("__metadata__") or {}
    if not {"info", "sha256"} <= notes.keys():
        raise CheckpointError(f"{path}: not written by this program (no checksum)")
    if _digest(tensors, notes["info"]) != notes["sha256"]:
        raise CheckpointError(f"{path}: damaged, its contents do not have the sha256 recorded in it; {_ADVICE}")
    return tensors, parse_json(path, notes["info"])


def with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with ``prefix``, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """Writes a folder under a hidden name, then renames it; an older one steps aside and is removed last. A link stays
    one."""
    folder = Path(os.path.realpath(folder))
    fresh, old = _beside(folder, "new"), _beside(folder, "old")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove(fresh)
    if folder.exists():
        _remove(old)
    try:
        fresh.mkdir()
        for name, data in files.items():
            atomic_write(fresh / name, data)
        if folder.exists():
            os.rename(folder, old)
        os.rename(fresh, folder)
        sync_folder(folder.parent)
    except OSError:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        _remove(fresh)
        raise
    _remove(old)


def whole_folder(folder: Path) -> Path:
    """The folder, or the older one that had stepped aside when the program was killed between the two renames."""
    old = _beside(folder, "old")
    with naming_errors(folder):  # a name that is too long, or a folder that may not be entered
        return old if not folder.exists() and old.exists() else folder


def _beside(folder: Path, suffix: str) -> Path:
    folder = Path(os.path.realpath(folder))
    return folder.with_name(f".{folder.name}.{suffix}")


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """sha256 of the text and of every tensor with its name, type and shape."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _plain(tensor: Tensor) -> Tensor:
    """A copy on the CPU, in row-major order, as safetensors stores it: it refuses tensors that share memory, as those
    of a layer do that a network uses twice."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def parse_json(path: Path, text: bytes | str) -> Any:
    try:
        return unsealed(text)
    except ChecksumError as error:
        raise CheckpointError(f"{path}: {error}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: cut off or no JSON ({one_line(error)}); {_ADVICE}") from error


def _remove(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


@contextlib.contextmanager
def naming_errors(path: Path) -> Iterator[None]:
    """Turns an ``OSError`` into a ``CheckpointError`` that names the file."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise CheckpointError(f"{path}: {reason}") from error
