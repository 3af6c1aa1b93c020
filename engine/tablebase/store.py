"""A bounded cache of blocks of table files, which drops the block that was read longest ago."""

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event, Lock

import numpy as np

from ..files import StorageError
from .layout import add_slice, layout_of, no_slices
from .material import Material, parse_name
from .probing import (
    BLOCK_ROWS,
    FULL,
    NO_FILE,
    NOT_LOADED,
    UNLOADED,
    Blocks,
    Cache,
    Tables,
    new_blocks,
    new_cache,
    new_stack,
    probe_many,
)
from .slice_file import Kind, SliceFile, TableFileError, file_name
from .solve import grid_of
from .wdl_codec import BLOCK_WORDS, BlockCodec, num_blocks

KINDS: tuple[Kind, Kind] = ("wdl", "distance")
MIN_CACHE_BLOCKS = 256
_LOG = logging.getLogger(__name__)
_FEWEST_CODECS = 4  # fewest codecs kept; more while they take at most ``_CODEC_BYTES``
_CODEC_BYTES = 8 << 20
_MOST_WANTED = 64  # most blocks that wait to be loaded; less than the cache, so that they do not replace one another
_AT_LEISURE = 16  # most of these for which nobody waits
_REST = 4.0  # pause after such a block, in times that it took to load
_SHARED_POSITIONS = 1 << 13  # fewest positions that are probed by several threads
_COMPARED = 256  # number of places compared: a new block takes the one that was read longest ago


def find_files(folders: Iterable[Path]) -> dict[tuple[Material, Kind], Path]:
    """The table files of folders by pair and kind; if several folders have a file, that of the first folder.

    Raises ``StorageError`` if a folder does not exist or cannot be read.
    """
    return {key: paths[0] for key, paths in find_copies(folders).items()}


def find_copies(folders: Iterable[Path]) -> dict[tuple[Material, Kind], list[Path]]:
    """As ``find_files``, with all copies of each file, in the order of the folders."""
    found: dict[tuple[Material, Kind], list[Path]] = {}
    for folder in folders:
        try:
            entries = sorted(os.listdir(folder))
        except OSError as error:
            raise StorageError(error.errno, f"cannot read the folder {folder}: {error.strerror}") from error
        for entry in entries:
            name, _, kind = entry.partition(".")
            with contextlib.suppress(ValueError):  # not named like a table
                pair = parse_name(name)
                for known in KINDS:
                    if kind == known and file_name(pair, known) == entry:
                        found.setdefault((pair, known), []).append(folder / entry)
    return found


class BlockStore:
    """Probes positions in files. A thread reads the wanted blocks. Thread-safe.

    Args:
        copies: files by pair and kind, preferred ones first; pairs without a file of values are ignored. If a file is
            damaged, the next copy is read and a warning is logged.
        cache_bytes: limit of each of the two caches, for values and for distances.

    Raises:
        TableFileError: a file is damaged or foreign, and there is no other copy.
        OSError: a file cannot be read.
    """

    def __init__(self, copies: Mapping[tuple[Material, Kind], Sequence[Path]], cache_bytes: int) -> None:
        self.pairs = sorted(pair for pair, kind in copies if kind == "wdl")
        slices = no_slices()
        self._files: tuple[list[SliceFile | None], list[SliceFile | None]] = ([], [])
        self._checked: set[SliceFile] = set()
        self._codecs: dict[int, BlockCodec] = {}  # by index of the pair, the one used longest ago first
        self._copies = [[list(copies.get((pair, kind), ())) for pair in self.pairs] for kind in KINDS]
        with contextlib.ExitStack() as self._closing:
            for files, of_kind in zip(self._files, self._copies, strict=True):
                files.extend(self._next_of(paths) if paths else None for paths in of_kind)
            self._closing = self._closing.pop_all()
        self._starts = np.cumsum([0] + [num_blocks(layout_of(pair)) for pair in self.pairs])
        for pair, start in zip(self.pairs, self._starts.tolist(), strict=False):
            for material in {pair, pair.swapped()}:
                add_slice(slices, material, start * BLOCK_WORDS)
        caches = self._new_cache(0, cache_bytes), self._new_cache(1, cache_bytes)
        self._blocks_at = [np.full(len(cache.ticks), -1, np.int64) for cache in caches]
        self._next_place = [0, 0]
        self._blocks = new_blocks(slices, *caches, _MOST_WANTED)
        self._stack, self._epoch, self._resting = new_stack(), np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._lock = Lock()  # held while the caches are read or changed
        self._loader = ThreadPoolExecutor(1, "tables")
        self._loading: list[Future[None]] = []
        self._at_leisure = 0  # number of blocks to load for which nobody waits
        self._hurry = Event()  # set while somebody waits for blocks, and in the end
        self._in_a_hurry = 0  # number of threads that wait
        self._closed = False

    def _next_of(self, paths: list[Path]) -> SliceFile:
        """Opens the first of these copies that can be opened, and removes it and those before it from the list."""
        while True:
            path = paths.pop(0)
            try:
                return self._closing.enter_context(SliceFile(path))
            except TableFileError as error:
                self._warn(error, paths)

    def _warn(self, error: TableFileError, copies: Sequence[Path]) -> None:
        """Logs which copy is read now; raises the error if there is none."""
        if not copies:
            raise error
        _LOG.warning("%s; until then %s is read", error, copies[0])

    def _new_cache(self, number: int, cache_bytes: int) -> Cache:
        blocks = int(self._starts[-1])
        block_bytes = BLOCK_WORDS * BLOCK_ROWS[number].itemsize
        capacity = min(max(cache_bytes // block_bytes, MIN_CACHE_BLOCKS), max(blocks, 1))
        slots = np.full(blocks, UNLOADED, np.int32)
        for i, file in enumerate(self._files[number]):
            if file is None:
                slots[self._starts[i] : self._starts[i + 1]] = NO_FILE
        return new_cache(number, slots, capacity)

    @property
    def _caches(self) -> tuple[Cache, Cache]:
        return self._blocks.values, self._blocks.halves

    def probe(self, positions: np.ndarray, distances: bool, patient: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Scores int64 [N] and states uint8 [N] (``KNOWN`` or ``ABSENT``) of positions uint32 [N, 3 or more].

        Args:
            patient: whether to wait for blocks that are not in memory. If not, they are read in the background, and
            states may be ``NOT_LOADED``.

        Raises:
            TableFileError: a file is damaged.
            ValueError: the tables are closed.
        """
        scores = np.zeros(len(positions), np.int64)
        states = np.full(len(positions), NOT_LOADED, np.uint8)
        if len(positions) >= _SHARED_POSITIONS:
            self._probe_loaded(positions, distances, scores, states)
        todo, most = np.flatnonzero(states & NOT_LOADED), len(positions)
        while len(todo):
            now = todo[:most]
            with self._lock:
                self._check_open()
                self._blocks.clock[0] += 1
                probe_many(positions, now, FULL if distances else 1, self._blocks, self._stack, scores, states)
                self._load_wanted(patient)
            if patient:
                self._hasten(1)
                try:
                    wait(self._loading)
                finally:
                    self._hasten(-1)
            self._forget_loaded()
            if not patient:
                break
            left = (states[now] & NOT_LOADED) != 0
            # Fewer at a time, in case their blocks replace one another in the cache
            most = max(1, most // 2) if left.all() else len(positions)
            todo = np.concatenate([now[left], todo[len(now) :]])
        return scores, states

    def _hasten(self, change: int) -> None:
        """Counts the threads that wait for blocks; while there are any, the loader does not rest."""
        with self._lock:
            self._in_a_hurry += change
            if self._in_a_hurry or self._closed:
                self._hurry.set()
            else:
                self._hurry.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("these tables were closed; open them again")

    def _probe_loaded(self, positions: np.ndarray, distances: bool, scores: np.ndarray, states: np.ndarray) -> None:
        """Probes the blocks in memory with all cores."""
        threads = os.cpu_count() or 1
        edges = np.linspace(0, len(positions), 4 * threads + 1).astype(int)

        def part(low: int, high: int) -> None:
            rows, full = np.arange(low, high), FULL if distances else 1
            probe_many(positions, rows, full, self._without_wishes(), new_stack(), scores, states)

        with self._lock, ThreadPoolExecutor(threads) as pool:
            self._check_open()
            list(pool.map(part, edges[:-1].tolist(), edges[1:].tolist()))

    def _without_wishes(self) -> Blocks:
        """The blocks for a reader that does not request missing ones."""
        return self._blocks._replace(wanted=np.zeros((2, 0), np.int64), num_wanted=np.zeros(2, np.int64))

    def _load_wanted(self, patient: bool) -> None:
        """Starts loading wanted blocks, if nobody waits at most ``_AT_LEISURE``; the others must be requested again."""
        most = _MOST_WANTED if patient else _AT_LEISURE - len(self._loading)
        for number, (of_kind, cache) in enumerate(zip(self._blocks.wanted, self._caches, strict=True)):
            for block in of_kind[: self._blocks.num_wanted[number]].tolist():
                if most > 0:
                    self._at_leisure += not patient
                    self._resting[0] = self._at_leisure > 0
                    load = self._load if patient else self._load_at_leisure
                    self._loading.append(self._loader.submit(load, number, block))
                else:
                    cache.slots[block] = UNLOADED
                most -= 1
        self._blocks.num_wanted[:] = 0

    def _forget_loaded(self) -> None:
        """Removes finished loads from the list, and raises the first of their errors."""
        with self._lock:
            done = [future for future in self._loading if future.done()]
            self._loading = [future for future in self._loading if not future.done()]
        for future in done:
            future.result()

    def _load_at_leisure(self, number: int, block: int) -> None:
        """Loads a block, and rests longer than that took: a search at work on the same core needs its time."""
        begun = time.perf_counter()
        try:
            self._load(number, block)
            self._hurry.wait(_REST * (time.perf_counter() - begun))
        finally:
            with self._lock:
                self._at_leisure -= 1
                self._resting[0] = self._at_leisure > 0

    def _load(self, number: int, block: int) -> None:
        try:
            data = self._read(number, block)
        except BaseException:
            self._caches[number].slots[block] = UNLOADED
            raise
        with self._lock:
            self._keep(number, block, data)

    def _keep(self, number: int, block: int, data: np.ndarray) -> None:
        """Puts a block into its cache, in place of one that has not been read for long."""
        cache, place = self._caches[number], self._place(number)
        replaced = self._blocks_at[number][place]
        if replaced >= 0:
            self._epoch += 1  # searches that read it at this moment must ignore it
            cache.slots[replaced] = UNLOADED
        cache.data[place] = data
        cache.slots[block], cache.ticks[place] = place, self._blocks.clock[0]
        self._blocks_at[number][place] = block
        if replaced >= 0:
            self._epoch += 1

    def _place(self, number: int) -> int:
        ticks, first = self._caches[number].ticks, self._next_place[number]
        place = first + int(np.argmin(ticks[first : first + _COMPARED]))
        self._next_place[number] = (place + 1) % len(ticks)
        return place

    def _read(self, number: int, block: int) -> np.ndarray:
        """Decodes a block; at the first one of a file, checks the checksum of the whole file."""
        i = int(np.searchsorted(self._starts, block, side="right")) - 1
        file = self._sound_file(number, i)
        place = block - int(self._starts[i])
        return file.distances(place) if number == 1 else self._codec(i, file).decode(place, file.block(place))

    def _codec(self, i: int, file: SliceFile) -> BlockCodec:
        """The codec of a pair. Making one takes milliseconds, so those used longest ago can be dropped."""
        codec = self._codecs.pop(i, None) or BlockCodec(grid_of(layout_of(self.pairs[i]), False), file.priors())
        self._codecs[i] = codec
        while len(self._codecs) > _FEWEST_CODECS and sum(one.nbytes for one in self._codecs.values()) > _CODEC_BYTES:
            del self._codecs[next(iter(self._codecs))]
        return codec

    def _sound_file(self, number: int, i: int) -> SliceFile:
        file = self._files[number][i]
        assert file is not None, "only blocks that have a file are ever wanted"
        while file not in self._checked:
            try:
                file.check()
                self._checked.add(file)
            except TableFileError as error:
                self._warn(error, self._copies[number][i])
                self._files[number][i] = file = self._next_of(self._copies[number][i])
        return file

    def compiled(self) -> Tables:
        """``Tables`` of the blocks in memory for one compiled search, see ``probing.probe_loaded``."""
        most = max((pair.pieces for pair in self.pairs), default=0)
        waits = np.ones(1, np.int64)
        return Tables(np.array([most]), self._without_wishes(), new_stack(), self._epoch, self._resting, waits)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._hurry.set()
        self._loader.shutdown()  # what is asked for is still read: threads may wait for it
        self._closing.close()
