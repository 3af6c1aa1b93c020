"""Shards: many game records, stored by columns in one compressed file with checksums.

Layout (numbers little-endian)::

    magic  8 bytes | header length  uint32 | SHA-256 of the header  32 bytes | header  JSON | payload

The payload has one zstd frame per column, in the order of the header's ``columns``. A column names its ``dtype``,
``shape``, and the ``offset`` and ``size`` of its frame in the payload in bytes. The header also holds the schema
version, the rules (with the order of moves that indices refer to), the counts, the digests of the networks, the names
of the terminations, and the SHA-256 of the payload.

``COLUMNS`` has the type and shape of each column for G games, M moves, S samples and P policy entries, in the order in
which they were played. Version 1, which can still be read, has no ``kind`` (all samples are positions of games), and
its ``sample_counts`` is uint16.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import numpy as np
import zstandard
from pydantic import BaseModel, Field, ValidationError

from engine.fen import Color, format_fen, parse_fen
from engine.files import atomic_write, cannot_read, read_bytes, sha256_of
from engine.frames import decompressed
from engine.game import check_game
from engine.outcomes import UNKNOWN
from engine.pdn import GAME_TYPE

from .records import GAME, OFFSHOOT, ROW_COLUMNS, GameRecord, Samples, fault_of, joined, offsets_of

MAGIC = b"CHSHARD\n"
SCHEMA_VERSION = 2
_READ_VERSIONS = (1, 2)
_GAMES = {"21": "english", "25": "russian"}  # how the rules of their shards begin
RULES = f"{GAME_TYPE}; moves in the order of movegen.generate(distinct=True), version 1"
SUFFIX = ".shard"

# Limits of the numbers in a header, so that a false one cannot fill the memory. Writers stay far below.
MAX_HEADER_BYTES = 2**22
MAX_GAMES = 2**17
MAX_SAMPLES = 2**23
MAX_COLUMN_BYTES = 2**28

_PREFIX_BYTES = len(MAGIC) + 4 + 32
COLUMNS: dict[str, tuple[str, tuple[str, *tuple[int, ...]]]] = {
    "start_positions": ("<u4", ("G", 4)),  # own, opp, kings, seen by the side to move; 1 if White is to move, else 0
    "game_result": ("|i1", ("G",)),  # 1 Black won, 0 draw, -1 White won
    "game_termination": ("|u1", ("G",)),  # index into the header's ``terminations``
    "game_network": ("<u2", ("G",)),  # index into the header's ``networks``
    "move_counts": ("<u2", ("G",)),  # moves of each game
    "sample_counts": ("<u4", ("G",)),  # samples of each game
    "moves": ("|u1", ("M",)),  # see ``records.GameRecord``
    "policy_counts": ("|u1", ("S",)),  # length of each sample's policy
    "move_probabilities": ("<f2", ("P",)),  # these and the rest: see ``records.Samples``
    "positions": ("<u4", ("S", 4)),
    "search_wdl": ("<f2", ("S", 3)),
    "result": ("|u1", ("S",)),
    "has_policy": ("|b1", ("S",)),
    "ply": ("<u2", ("S",)),
    "kind": ("|u1", ("S",)),
}
_FIRST_VERSION = {**COLUMNS, "sample_counts": ("<u2", ("G",))}
del _FIRST_VERSION["kind"]


class ShardError(ValueError):
    """A file is not a valid shard of a known version; the message names the file and says what is wrong."""


class _Column(BaseModel):
    dtype: str
    shape: tuple[int, ...]
    offset: Annotated[int, Field(ge=0)]
    size: Annotated[int, Field(ge=0, le=MAX_COLUMN_BYTES)]


class _Version(BaseModel):
    schema_version: int


class _Header(_Version, extra="forbid"):
    rules: str
    games: Annotated[int, Field(ge=1, le=MAX_GAMES)]
    moves: Annotated[int, Field(ge=0, le=MAX_COLUMN_BYTES)]
    samples: Annotated[int, Field(ge=0, le=MAX_SAMPLES)]
    policy_entries: Annotated[int, Field(ge=0, le=MAX_COLUMN_BYTES // 2)]
    networks: list[str]
    terminations: list[str]
    columns: dict[str, _Column]
    payload_sha256: str

    @property
    def layout(self) -> dict[str, tuple[str, tuple[str, *tuple[int, ...]]]]:
        """The columns that this version of the format has."""
        return COLUMNS if self.schema_version > 1 else _FIRST_VERSION

    def shape(self, column: str) -> tuple[int, ...]:
        """The shape of a column that follows from the counts."""
        rows, *others = COLUMNS[column][1]
        return ({"G": self.games, "M": self.moves, "S": self.samples, "P": self.policy_entries}[rows], *others)


class ShardInfo(NamedTuple):
    """What the header of a shard says.

    Attributes:
        games, moves, samples: numbers of them.
        networks: digests of the weights that played.
    """

    path: Path
    games: int
    moves: int
    samples: int
    networks: tuple[str, ...]
    file_bytes: int


@dataclass(frozen=True, eq=False)
class Shard:
    """A shard in memory. The arrays are read-only.

    Attributes:
        sample_offsets: int64 [games + 1]: first row of each game in ``samples``, then the end of the last game.
        move_offsets: int64 [games + 1]: the same for ``moves``.
        start_positions, game_result, game_termination, game_network: see ``COLUMNS``.
        terminations: names that ``game_termination`` refers to.
    """

    info: ShardInfo
    samples: Samples
    sample_offsets: np.ndarray
    moves: np.ndarray
    move_offsets: np.ndarray
    start_positions: np.ndarray
    game_result: np.ndarray
    game_termination: np.ndarray
    game_network: np.ndarray
    terminations: tuple[str, ...]

    def iter_games(self) -> Iterator[GameRecord]:
        """The games in the order in which they were written; their arrays are views of the shard's arrays."""
        for game in range(self.info.games):
            *words, white = (int(word) for word in self.start_positions[game])
            yield GameRecord(
                start_fen=format_fen(Color.WHITE if white else Color.BLACK, *words),
                moves=self.moves[self.move_offsets[game] : self.move_offsets[game + 1]],
                result=int(self.game_result[game]),
                termination=self.terminations[self.game_termination[game]],
                network=self.info.networks[self.game_network[game]],
                samples=self.samples[self.sample_offsets[game] : self.sample_offsets[game + 1]],
            )


def pack_shard(records: Sequence[GameRecord]) -> bytes:
    """Encodes game records as a shard; raises ``ShardError`` if there are none, or too many for one shard."""
    networks = sorted({record.network for record in records})
    terminations = sorted({record.termination for record in records})
    if not 0 < len(records) <= MAX_GAMES or sum(len(record.samples) for record in records) > MAX_SAMPLES:
        raise ShardError(f"a shard holds 1 to {MAX_GAMES} games with up to {MAX_SAMPLES} samples")
    if len(networks) > 2**16 or len(terminations) > 2**8:
        raise ShardError(f"a shard names up to {2**16} networks and {2**8} terminations")
    columns = _to_columns(records, networks, terminations)
    compressor = zstandard.ZstdCompressor(level=3)
    frames = {name: compressor.compress(array.tobytes()) for name, array in columns.items()}
    payload = b"".join(frames.values())
    offsets = offsets_of(np.array([len(frame) for frame in frames.values()]))
    header = _Header(
        schema_version=SCHEMA_VERSION,
        rules=RULES,
        games=len(records),
        moves=len(columns["moves"]),
        samples=len(columns["positions"]),
        policy_entries=len(columns["move_probabilities"]),
        networks=networks,
        terminations=terminations,
        columns={
            name: _Column(dtype=COLUMNS[name][0], shape=array.shape, offset=int(offset), size=len(frames[name]))
            for (name, array), offset in zip(columns.items(), offsets[:-1], strict=True)
        },
        payload_sha256=sha256_of(payload),
    )
    text = header.model_dump_json().encode()
    return MAGIC + len(text).to_bytes(4, "little") + bytes.fromhex(sha256_of(text)) + text + payload


def write_shard(path: str | os.PathLike[str], records: Sequence[GameRecord]) -> ShardInfo:
    """Writes game records to a shard, completely or not at all; raises ``ShardError`` and ``StorageError``."""
    atomic_write(Path(path), pack_shard(records))
    return read_shard_info(path)


def read_shard_info(path: str | os.PathLike[str]) -> ShardInfo:
    """Reads the header of a shard. Damage in the columns is only found by ``read_shard``.

    Raises:
        ShardError: the file is not a shard, of an unknown version, cut off, or its header is damaged.
        OtherGameError: its games are of another game than this process plays.
        StorageError: the file cannot be opened or read.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            return _info(path, _read_header(file, path, size), size)
    except OSError as error:
        raise cannot_read(path, error) from error


def read_shard(path: str | os.PathLike[str]) -> Shard:
    """Reads a shard and checks it completely.

    Raises:
        ShardError: the file is not a shard, of an unknown version, cut off or damaged, or its samples are invalid.
        OtherGameError: its games are of another game than this process plays.
        StorageError: the file cannot be opened or read.
    """
    return parse_shard(read_bytes(path), Path(path))


def parse_shard(data: bytes, path: Path) -> Shard:
    """Decodes and checks the bytes of a shard, see ``read_shard``; ``path`` is for its ``info`` and for messages."""
    file = BytesIO(data)
    header = _read_header(file, path, len(data))
    payload = data[file.tell() :]
    if sha256_of(payload) != header.payload_sha256:
        raise ShardError(f"{path} is damaged: the checksum of its payload is wrong")
    columns = {name: _decompress(path, header, name, payload) for name in header.layout}
    columns.setdefault("kind", np.full(header.samples, GAME, np.uint8))
    policy_offsets = offsets_of(columns["policy_counts"])
    move_offsets = offsets_of(columns["move_counts"])
    sample_offsets = offsets_of(columns["sample_counts"])
    agrees = (
        policy_offsets[-1] == header.policy_entries
        and move_offsets[-1] == header.moves
        and sample_offsets[-1] == header.samples
        and columns["game_network"].max() < len(header.networks)
        and columns["game_termination"].max() < len(header.terminations)
        and columns["kind"].max(initial=0) <= OFFSHOOT
        and columns["result"].max(initial=0) <= UNKNOWN
        and np.array_equal(columns["result"] == UNKNOWN, columns["kind"] != GAME)
        and np.isin(columns["game_result"], (-1, 0, 1)).all()
        and np.array_equal(columns["policy_counts"] > 0, columns["has_policy"])
    )
    if not agrees:
        raise ShardError(f"{path} is damaged: its columns contradict each other")
    samples = Samples(
        policy_offsets=policy_offsets,
        move_probabilities=columns["move_probabilities"],
        **{name: columns[name] for name in ROW_COLUMNS},
    )
    fault = fault_of(samples)
    if fault is not None:
        raise ShardError(f"{path} cannot be learnt from: {fault}")
    return Shard(
        info=_info(path, header, len(data)),
        samples=samples,
        sample_offsets=sample_offsets,
        move_offsets=move_offsets,
        moves=columns["moves"],
        terminations=tuple(header.terminations),
        **{name: columns[name] for name in ("start_positions", "game_result", "game_termination", "game_network")},
    )


def _to_columns(
    records: Sequence[GameRecord], networks: Sequence[str], terminations: Sequence[str]
) -> dict[str, np.ndarray]:
    def start(fen: str) -> tuple[int, ...]:
        turn, *words = parse_fen(fen)
        return (*words, int(turn is Color.WHITE))

    samples = joined([record.samples for record in records])
    columns = {
        "start_positions": np.array([start(record.start_fen) for record in records]),
        "game_result": np.array([record.result for record in records]),
        "game_termination": np.array([terminations.index(record.termination) for record in records]),
        "game_network": np.array([networks.index(record.network) for record in records]),
        "move_counts": np.array([len(record.moves) for record in records]),
        "sample_counts": np.array([len(record.samples) for record in records]),
        "moves": np.concatenate([record.moves for record in records]),
        "policy_counts": np.diff(samples.policy_offsets),
        "move_probabilities": samples.move_probabilities,
        **{name: getattr(samples, name) for name in ROW_COLUMNS},
    }
    return {name: columns[name].astype(dtype) for name, (dtype, _) in COLUMNS.items()}


def _read_header(file: BinaryIO, path: Path, size: int) -> _Header:
    """Reads and checks the header of a shard of ``size`` bytes; leaves the file at the start of the payload."""
    prefix = file.read(_PREFIX_BYTES)
    if not prefix.startswith(MAGIC[: len(prefix)]) or not prefix:
        raise ShardError(f"{path} is not a shard: it does not begin with {MAGIC!r}")
    length = int.from_bytes(prefix[len(MAGIC) : len(MAGIC) + 4], "little")
    text = file.read(min(length, MAX_HEADER_BYTES))
    if len(prefix) < _PREFIX_BYTES or len(text) < length:
        raise ShardError(f"{path} is damaged: cut off in its header, or the header's length is wrong")
    if bytes.fromhex(sha256_of(text)) != prefix[-32:]:
        raise ShardError(f"{path} is damaged: the checksum of its header is wrong")
    try:
        version = _Version.model_validate_json(text).schema_version
        if version not in _READ_VERSIONS:
            raise ShardError(f"{path} has schema version {version}; this program reads {_READ_VERSIONS}")
        header = _Header.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ShardError(f"{path} has an unreadable header: {where}: {first['msg']}") from error
    if (game := _GAMES.get(header.rules.partition(",")[0])) is not None:
        check_game(str(path), game)
    if header.rules != RULES:
        raise ShardError(f"{path} was played by other rules ({header.rules[:80]!r}, not {RULES!r})")
    _check_layout(path, header, size - file.tell())
    return header


def _check_layout(path: Path, header: _Header, payload_bytes: int) -> None:
    offset = 0
    if list(header.columns) != list(header.layout):
        raise ShardError(f"{path} has an unreadable header: the columns are {', '.join(header.columns)[:200]}")
    for name, column in header.columns.items():
        expected = (header.layout[name][0], header.shape(name), offset)
        if (column.dtype, column.shape, column.offset) != expected:
            raise ShardError(f"{path} has an unreadable header: column {name} does not fit the counts")
        offset += column.size
    if payload_bytes != offset:
        raise ShardError(f"{path} is damaged: {payload_bytes} bytes of payload, not {offset}")


def _decompress(path: Path, header: _Header, name: str, payload: bytes) -> np.ndarray:
    column = header.columns[name]
    frame = payload[column.offset : column.offset + column.size]
    expected = math.prod(column.shape) * np.dtype(column.dtype).itemsize
    if expected > MAX_COLUMN_BYTES:
        raise ShardError(f"{path} is damaged: column {name} would have {expected} bytes")
    try:
        data = decompressed(frame, expected)
    except ValueError as error:
        raise ShardError(f"{path} is damaged: column {name}: {error}") from error
    return np.frombuffer(data, column.dtype).reshape(column.shape)


def _info(path: Path, header: _Header, file_bytes: int) -> ShardInfo:
    return ShardInfo(path, header.games, header.moves, header.samples, tuple(header.networks), file_bytes)
