"""Builds endgame tables on the nodes of a Ray cluster: independent pairs of slices are solved at the same time.

Each node has one process that solves with all its CPUs, because a solver needs the values of all smaller slices in
memory. Finished files are sent to the nodes that need them; only the calling process writes to the folder. The files
are the same, byte for byte, as those of a build on one machine.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.files import atomic_write, make_folder, remove_stale_temporaries
from engine.tablebase.build import Builder, missing_files
from engine.tablebase.dense import Step
from engine.tablebase.layout import layout_of
from engine.tablebase.material import Material, pairs_up_to
from engine.tablebase.plan import promotions
from engine.tablebase.slice_file import file_name

from .cluster import Cluster, ClusterError, Patience, ProcessFolder, reason_of

_WAIT_S = 1.0
_LOOK_S = 2.0  # seconds between two queries of the cluster
_MOST_DEATHS = 5  # processes that may die with the same pair
_RESTART_S = 60.0  # pause after a process that could not be started
_LOG = logging.getLogger(__name__)


class _RayBuilder:
    """A Ray actor on a node that solves pairs of slices."""

    def __init__(self, pieces: int, threads: int) -> None:
        self._folder = ProcessFolder("tables")
        self._pieces, self._threads = pieces, threads

    @cached_property
    def _builder(self) -> Builder:
        """Made with the first pair, because Ray tells an error while an actor starts as the death of its process."""
        return Builder(self._folder.path, self._pieces, threads=self._threads)

    def here(self) -> None:
        """Answers as soon as the process runs, which it does when all CPUs of its node are free."""

    def build(self, pair: Material, left: Sequence[Material], names: Sequence[str], *files: bytes) -> bytes:
        """Solves a pair of slices and returns its file.

        Args:
            left: pairs that are not solved yet; what none of them needs is dropped from memory.
            names, files: files of pairs that this process has not received before.
        """
        for name, data in zip(names, files, strict=True):
            atomic_write(self._builder.folder / name, data)
        self._builder.keep_for(left)
        return self._builder.build_values(pair).read_bytes()


@dataclass
class _Node:
    """A node with its actor.

    Attributes:
        greeting: Ray's reference to the actor's first answer, which comes when it has started.
        pair: the pair that it solves now; None if idle.
        answer: Ray's reference to the pending result.
        has: pairs whose files it has received or made.
    """

    actor: Any
    greeting: Any
    pair: Material | None = None
    answer: Any = None
    has: set[Material] = field(default_factory=set)


class _Build:
    """A build in progress: finished pairs, and the nodes with their pairs."""

    def __init__(self, folder: Path, pieces: int, cluster: Cluster) -> None:
        self.folder, self.pieces, self.cluster = folder, pieces, cluster
        self.pairs = pairs_up_to(pieces)
        self.files: dict[Material, Any] = {}  # finished pairs: references to their contents
        self.deaths: dict[Material, int] = {}
        self.nodes: dict[str, _Node] = {}
        self.unstarted: dict[str, int] = {}  # failed starts of a node's process in a row
        self.start_at: dict[str, float] = {}  # when it is started again
        self._class: Any = cluster.ray.remote(max_restarts=0)(_RayBuilder)
        self._look_at = 0.0
        self.patience = Patience("a node solves slices when all of its CPUs are; a training also takes them")
        self._words = sum(layout_of(pair).words for pair in self.pairs)

    def done(self, pair: Material, data: bytes, solved: bool) -> Step:
        self.files[pair] = self.cluster.ray.put(data)
        return Step(pair, sum(layout_of(other).words for other in self.files), self._words, solved)

    def look(self) -> None:
        """Starts a process on each new node, and drops idle nodes that have left."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_S
        alive = self.cluster.cpus()
        for name, cpus in alive.items():
            if cpus and name not in self.nodes and time.monotonic() >= self.start_at.get(name, 0.0):
                options = {"num_cpus": cpus, "scheduling_strategy": self.cluster.on_node(name)}
                actor = self._class.options(**options).remote(self.pieces, cpus)
                self.nodes[name] = _Node(actor, actor.here.remote())
        for name in self.nodes.keys() - alive.keys():
            if self.nodes[name].pair is None:
                del self.nodes[name]

    def hand_out(self) -> None:
        """Gives each idle node whose process has started the next pair: one with the fewest pieces of which all
        promotions are solved."""
        taken = {node.pair for node in self.nodes.values()}
        fewest = min((pair.pieces for pair in self.pairs if pair not in self.files), default=0)
        ready = [
            pair
            for pair in self.pairs
            if pair.pieces == fewest and pair not in self.files and pair not in taken and self._known(pair)
        ]
        for name, node in list(self.nodes.items()):
            if node.pair is None and ready and self._has_started(name):
                self._ask(node, ready.pop(0))

    def _has_started(self, name: str) -> bool:
        """Whether a node's process runs; one that could not be started is started again after a pause.

        Raises ``ClusterError`` if there is no other node, and this one has failed ``_MOST_DEATHS`` times in a row.
        """
        if not self.cluster.is_done(self.nodes[name].greeting):
            return False
        try:
            self.cluster.result(self.nodes[name].greeting)
        except self.cluster.ray.exceptions.RayError as error:
            reason = reason_of(error)
            del self.nodes[name]
            self.unstarted[name] = self.unstarted.get(name, 0) + 1
            self.start_at[name] = time.monotonic() + _RESTART_S
            if not self.nodes and self.unstarted[name] >= _MOST_DEATHS:
                raise ClusterError(f"no node can start its process, the last: {reason}") from error
            _LOG.warning("a node cannot start its process, to be tried again in %.0f s: %s", _RESTART_S, reason)
            return False
        self.unstarted.pop(name, None)
        return True

    def _known(self, pair: Material) -> bool:
        return all(after in self.files for after in promotions(pair))

    def _ask(self, node: _Node, pair: Material) -> None:
        new = [other for other in self.files if other not in node.has]
        left = [other for other in self.pairs if other not in self.files]
        names = [file_name(other, "wdl") for other in new]
        node.answer = node.actor.build.remote(pair, left, names, *(self.files[other] for other in new))
        node.pair = pair
        node.has |= {*new, pair}

    def collect(self) -> Iterator[Step]:
        """Saves solved pairs and yields their steps; waits up to ``_WAIT_S`` seconds for the first one."""
        asked = {node.answer: name for name, node in self.nodes.items() if node.pair is not None}
        if not asked:
            self.patience.wait(_WAIT_S)
            return
        self.patience.reset()
        ray = self.cluster.ray
        for answer in ray.wait(list(asked), timeout=_WAIT_S)[0]:
            node = self.nodes[asked[answer]]
            pair, node.pair = node.pair, None
            assert pair is not None
            try:
                data = self.cluster.result(answer)
            except ray.exceptions.RayError as error:
                self._lost(asked[answer], pair, error)
                continue
            atomic_write(self.folder / file_name(pair, "wdl"), data)
            yield self.done(pair, data, True)

    def _lost(self, name: str, pair: Material, error: Exception) -> None:
        del self.nodes[name]
        self.deaths[pair] = self.deaths.get(pair, 0) + 1
        reason = reason_of(error)
        if self.deaths[pair] >= _MOST_DEATHS:
            raise ClusterError(f"{_MOST_DEATHS} processes have died solving {pair.name}, the last: {reason}")
        _LOG.warning("the process that solved %s has died, another solves it again: %s", pair.name, reason)


def build_over_cluster(folder: Path, pieces: int, address: str) -> Iterator[Step]:
    """Builds the values that are missing in a folder, on all nodes of a cluster, also those that join later.

    Raises:
        ClusterError: the cluster cannot be joined, or ``_MOST_DEATHS`` processes have died with the same pair.
        ValueError: ``pieces`` is out of range, or a node has too little memory.
        TableFileError: a file in the folder is damaged or foreign.
        StorageError: a file cannot be written.
    """
    make_folder(folder)
    remove_stale_temporaries(folder)
    build = _Build(folder, pieces, Cluster(address))
    for pair in build.pairs:
        if not missing_files(folder, pair, False):
            yield build.done(pair, (folder / file_name(pair, "wdl")).read_bytes(), False)
    build.patience.reset()
    while len(build.files) < len(build.pairs):
        build.look()
        build.hand_out()
        yield from build.collect()
