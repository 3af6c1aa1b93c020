"""The replay window: the newest samples of a run, loaded from shards on disk into bounded memory."""

import logging
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, Field

from engine.files import StorageError, atomic_write, make_folder, remove_stale_temporaries, sha256_of
from engine.game import OtherGameError
from learner.batch import TrainingBatch, make_batch
from learner.loss import mix_wdl

from .records import GAME, ROW_COLUMNS, Samples
from .shards import COLUMNS, SUFFIX, ShardError, ShardInfo, parse_shard, read_shard, read_shard_info

DAMAGED_SUFFIX = ".damaged"
LEDGER_NAME = "deleted.json"
_GROWTH = 1.25  # new arrays are larger than their content by this factor, for samples to come
_NUMBERED = re.compile(rf"([0-9]{{8,}}){re.escape(SUFFIX)}")
_LOG = logging.getLogger(__name__)
T = TypeVar("T")
_RESULTS = np.eye(4, 3, dtype=np.float32)  # ``Samples.result`` → win/draw/loss; row ``UNKNOWN`` is not used


class ReplayConfig(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Settings of the replay window; see ``window_size``."""

    window_start: int = Field(250_000, ge=1, description="up to this number, the window has all samples")
    window_exponent: float = Field(0.75, gt=0, le=1)
    window_slope: float = Field(0.4, ge=0, le=1)
    max_memory_bytes: int = Field(2**29, ge=2**20, description="most memory of samples; the oldest are dropped first")
    most_behind: int | None = Field(
        None, ge=0, description="refuse games of a network once more than this many promotions have followed it"
    )
    keep_shards: bool = Field(True, description="keep shards that have left the window; else they are deleted")


def window_size(total_samples: int, config: ReplayConfig) -> int:
    """Number of newest samples that training draws from when the run has ``total_samples``.

    With c, alpha, beta = ``window_start``, ``window_exponent``, ``window_slope``, and N = ``total_samples``::

        N_window = c (1 + beta ((N / c) ** alpha - 1) / alpha)        for N > c, else N

    This is a power law, scaled and shifted so that at N = c it equals N and has slope beta (KataGo: Wu 2019,
    "Accelerating Self-Play Learning in Go"; there c = 250,000, alpha = 0.75, beta = 0.4).
    """
    start, exponent, slope = config.window_start, config.window_exponent, config.window_slope
    if total_samples <= start:
        return total_samples
    return int(start * (1 + slope * ((total_samples / start) ** exponent - 1) / exponent))


class _PackedSamples:
    """A queue of samples stored by columns: appended at the end, dropped at the front; bounded in bytes.

    When the space after the last row is used up, the columns are copied to new arrays one after another, so that only
    one column at a time needs double memory.
    """

    def __init__(self, max_bytes: int) -> None:
        self._live_bytes = int((max_bytes - 8) / _GROWTH)  # 8: there is one offset more than rows
        self._first = self._last = 0
        shapes = ((name, *COLUMNS[name]) for name in ROW_COLUMNS)
        self._rows = {name: np.empty((0, *shape[1:]), dtype) for name, dtype, shape in shapes}
        self._offsets = np.zeros(1, np.int64)
        self._policy = np.empty(0, np.float16)

    def __len__(self) -> int:
        return self._last - self._first

    def samples(self) -> Samples:
        """All rows as views, valid until the next change."""
        rows = {name: array[self._first : self._last] for name, array in self._rows.items()}
        offsets = self._offsets[self._first : self._last + 1]
        return Samples(policy_offsets=offsets, move_probabilities=self._policy, **rows)

    def drop(self, rows: int) -> None:
        """Drops the first (oldest) rows."""
        self._first += rows

    def append(self, samples: Samples) -> int:
        """Appends rows; returns the number of oldest rows (old and new) dropped because of the memory limit."""
        new = samples[self._excess(samples.policy_offsets, self._live_bytes) :]
        left = self._live_bytes - self._packed_bytes(new.policy_offsets)[0]
        excess = self._excess(self.samples().policy_offsets, left)
        self.drop(excess)
        self._make_room(len(new), len(new.move_probabilities))
        begin, rows = self._offsets[self._last], slice(self._last, self._last + len(new))
        self._policy[begin : begin + len(new.move_probabilities)] = new.move_probabilities
        self._offsets[rows.start + 1 : rows.stop + 1] = begin + new.policy_offsets[1:]
        for name, array in self._rows.items():
            array[rows] = getattr(new, name)
        self._last = rows.stop
        return int(excess + len(samples) - len(new))

    def _packed_bytes(self, offsets: np.ndarray) -> np.ndarray:
        """Bytes of rows i to n - 1 for each i: [n + 1]; the last one is 0."""
        arrays = (*self._rows.values(), self._offsets)
        row_bytes = sum(math.prod(array.shape[1:]) * array.itemsize for array in arrays)
        return row_bytes * np.arange(len(offsets))[::-1] + self._policy.itemsize * (offsets[-1] - offsets)

    def _excess(self, offsets: np.ndarray, budget: int) -> int:
        """Number of rows to drop at the front so that the rest takes at most ``budget`` bytes."""
        return int(np.argmax(self._packed_bytes(offsets) <= budget))

    def _make_room(self, rows: int, entries: int) -> None:
        live = slice(self._first, self._last)
        policy = slice(*self._offsets[[self._first, self._last]])
        if live.stop + rows < len(self._offsets) and policy.stop + entries <= len(self._policy):
            return
        rows = int(_GROWTH * (len(self) + rows))
        for name, array in self._rows.items():
            self._rows[name] = _moved(array[live], rows)
        self._offsets = _moved(self._offsets[live.start : live.stop + 1] - policy.start, rows + 1)
        self._policy = _moved(self._policy[policy], int(_GROWTH * (policy.stop - policy.start + entries)))
        self._first, self._last = 0, live.stop - live.start


def _moved(rows: np.ndarray, capacity: int) -> np.ndarray:
    array = np.empty((capacity, *rows.shape[1:]), rows.dtype)
    array[: len(rows)] = rows
    return array


class _Ledger(BaseModel, extra="forbid"):
    """Counts of games and samples in deleted shards, so that the totals of a run stay right.

    Attributes:
        deleting: names of shards that are counted here and may not be deleted yet.
    """

    schema_version: Literal[1] = 1
    games: Annotated[int, Field(ge=0)] = 0
    samples: Annotated[int, Field(ge=0)] = 0
    deleting: list[str] = []
    checksum: str = ""

    def sealed(self) -> "_Ledger":
        """A copy with its checksum."""
        text = self.model_dump_json(exclude={"checksum"})
        return self.model_copy(update={"checksum": sha256_of(text.encode())})


class ReplayBuffer:
    """The replay window of a folder of shards; not thread-safe.

    All state is on disk: opened again, it counts the same games and samples. Shards are ordered by name at opening;
    later ones follow as they are stored. A damaged shard is renamed to ``*.damaged`` with a warning.

    Attributes:
        next_number: number of the next shard, larger than that of any earlier shard in the folder.
        total_samples, total_games: totals of the run, with deleted shards.
        refused: number of shards refused as too old (``most_behind``) since opening.

    Raises:
        StorageError: the folder cannot be made.
        ShardError: the file with the counts of deleted shards is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str], config: ReplayConfig | None = None) -> None:
        self.folder = Path(folder)
        self.config = config or ReplayConfig()
        make_folder(self.folder)
        remove_stale_temporaries(self.folder)
        self._memory_warned = False
        self.refused = 0
        self._ledger = self._read_ledger()
        self._finish_deleting()
        self._shards: list[ShardInfo] = []
        self.total_samples, self.total_games = self._ledger.samples, self._ledger.games
        for shard in self._scan():
            self._count(shard)
        numbered = filter(None, map(_NUMBERED.match, os.listdir(folder)))
        self.next_number = 1 + max((int(match[1]) for match in numbered), default=-1)
        self._load_window()
        self._delete_outside()

    @property
    def window_samples(self) -> int:
        """Number of samples in the window, from which ``sample`` draws."""
        return len(self._packed)

    def store(self, data: bytes, behind: Callable[[ShardInfo], int] = lambda shard: 0) -> ShardInfo | None:
        """Writes a shard of an actor to disk and adds it to the window; the oldest samples leave the window.

        Args:
            data: the bytes of the shard.
            behind: returns the number of promotions since the networks of a shard; see ``most_behind``.

        Returns:
            Information on the shard, also if it is refused; None if it is damaged (it is then kept as ``*.damaged``).

        Raises:
            StorageError: the shard cannot be written.
        """
        path = self.folder / f"{self.next_number:08d}{SUFFIX}"
        self.next_number += 1
        try:
            shard = parse_shard(data, path)
        except (ShardError, OtherGameError) as reason:
            _LOG.warning("%s; set aside as %s%s", reason, path.name, DAMAGED_SUFFIX)
            atomic_write(path.with_name(path.name + DAMAGED_SUFFIX), data)
            return None
        if self.config.most_behind is not None and behind(shard.info) > self.config.most_behind:
            self.refused += 1
            return shard.info
        atomic_write(path, data)
        self._count(shard.info)
        self._append(shard.samples)
        self._delete_outside()
        return shard.info

    def _count(self, shard: ShardInfo) -> None:
        self._shards.append(shard)
        self.total_samples += shard.samples
        self.total_games += shard.games

    def sample(self, batch_size: int, rng: np.random.Generator) -> Samples:
        """Draws samples uniformly from the window, with replacement; the window and ``rng`` determine them.

        Raises ``ValueError`` if the window is empty.
        """
        if self.window_samples == 0:
            raise ValueError(f"no samples in {self.folder}: play games before training")
        return self._packed.samples().take(rng.integers(self.window_samples, size=batch_size))

    def _append(self, samples: Samples) -> None:
        lost = self._packed.append(samples)
        if lost and not self._memory_warned:
            _LOG.warning("max_memory_bytes limits the window to about %d samples", self.window_samples)
            self._memory_warned = True
        self._packed.drop(max(0, self.window_samples - window_size(self.total_samples, self.config)))

    def _inside(self) -> list[ShardInfo]:
        """The newest shards that the window reaches, oldest first."""
        missing = window_size(self.total_samples, self.config)
        first = len(self._shards)
        while first > 0 and missing > 0:
            first -= 1
            missing -= self._shards[first].samples
        return self._shards[first:]

    def _load_window(self) -> None:
        while True:
            self._packed = _PackedSamples(self.config.max_memory_bytes)
            for info in self._inside():
                shard = _read(read_shard, info.path)
                if shard is None:  # damaged: the window now reaches further back, so load it again
                    self._shards.remove(info)
                    self.total_samples -= info.samples
                    self.total_games -= info.games
                    break
                self._append(shard.samples)
            else:
                return

    def _scan(self) -> list[ShardInfo]:
        paths = (path for path in sorted(self.folder.glob(f"*{SUFFIX}")) if path.name not in self._ledger.deleting)
        return [info for path in paths if (info := _read(read_shard_info, path))]

    def _read_ledger(self) -> _Ledger:
        path = self.folder / LEDGER_NAME
        try:
            ledger = _Ledger.model_validate_json(path.read_bytes())
            if ledger != ledger.sealed():
                raise ValueError("its checksum is wrong")
            return ledger
        except FileNotFoundError:
            return _Ledger()
        except ValueError as error:
            why = " ".join(str(error).split())
            raise ShardError(
                f"{path} is damaged ({why}): it counts the shards that were deleted, and without it the learner would "
                "wait for as many games again; restore it from a copy, or begin a new run"
            ) from error

    def _delete_outside(self) -> None:
        """Deletes shards that have left the window, unless ``keep_shards``; first it saves their counts."""
        if self.config.keep_shards:
            return
        outside = self._shards[: len(self._shards) - len(self._inside())]
        if not outside:
            return
        ledger = _Ledger(
            games=self._ledger.games + sum(shard.games for shard in outside),
            samples=self._ledger.samples + sum(shard.samples for shard in outside),
            deleting=[*self._ledger.deleting, *(shard.path.name for shard in outside)],
        ).sealed()
        try:
            atomic_write(self.folder / LEDGER_NAME, ledger.model_dump_json(indent=1).encode())
        except StorageError as error:
            _LOG.warning("old shards are kept: %s", error)
            return
        self._ledger = ledger
        self._shards = self._shards[len(outside) :]
        self._finish_deleting()

    def _finish_deleting(self) -> None:
        left = []
        for name in self._ledger.deleting:
            try:
                (self.folder / Path(name).name).unlink(missing_ok=True)
            except OSError as error:
                _LOG.warning("cannot delete %s, to be tried again: %s", self.folder / name, error)
                left.append(name)
        self._ledger = self._ledger.model_copy(update={"deleting": left}).sealed()


def _read(read: Callable[[Path], T], path: Path) -> T | None:
    """Returns ``read(path)``; None if the shard is damaged, after renaming it to ``*.damaged``."""
    try:
        return read(path)
    except (ShardError, OtherGameError) as reason:
        _LOG.warning("%s; set aside as %s%s", reason, path.name, DAMAGED_SUFFIX)
    try:
        os.replace(path, path.with_name(path.name + DAMAGED_SUFFIX))
    except OSError as error:
        _LOG.warning("cannot rename %s, left where it is: %s", path, error)
    return None


def to_training_batch(samples: Samples, search_value_weight: float = 0.5) -> TrainingBatch:
    """Converts samples to a batch for the learner.

    The value target mixes the result of the game with the search's win/draw/loss; samples that are not of kind ``GAME``
    have the search's alone. Each row of targets is normalised to sum 1, which removes the rounding to half precision.

    Args:
        search_value_weight: 0 (only the result) to 1 (only the search), see ``learner.loss.mix_wdl``.

    Raises:
        ValueError: the weight is out of range.
        BatchError: a policy does not fit its position.
    """
    search = samples.search_wdl.astype(np.float32)
    search /= search.sum(axis=1, keepdims=True)
    wdl = mix_wdl(_RESULTS[samples.result], search, search_value_weight)
    wdl = np.where((samples.kind == GAME)[:, None], wdl, search)
    rows = np.repeat(np.arange(len(samples)), np.diff(samples.policy_offsets))
    policy = samples.move_probabilities.astype(np.float32)
    policy /= np.bincount(rows, policy, len(samples))[rows]
    return make_batch(samples.positions, policy, samples.policy_offsets, samples.has_policy, wdl)
