"""Plays the games of matches in several processes, on this machine or in a cluster.

If a process dies, another one plays its unfinished games again.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Self

from engine.players.spec import NetworkSpec

from ..games.openings import MatchError
from .players import Players
from .record import MatchGame
from .tasks import Pairing, Task
from .workers import MatchWorker, ProcessStarter, WorkerStarter

_PATIENCE_S = 1.0  # seconds to wait for a message; on some systems Ctrl-C works only after this wait
_MOST_DEATHS = 2  # processes that may die with the same game


class MatchPool:
    """Plays tasks; use it in a ``with`` statement.

    Args:
        jobs: number of processes; with 1 and no ``starter`` this process plays.
        starter: starts the processes; None: processes of this machine.
    """

    def __init__(self, jobs: int, starter: "WorkerStarter | None" = None) -> None:
        self.jobs = jobs
        self._players = Players() if jobs == 1 and starter is None else None
        self._starter = starter or ProcessStarter(jobs)
        self._workers: list[MatchWorker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._players is not None:
            self._players.close()
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def play(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, MatchGame]]:
        """Plays all tasks; yields each game as soon as it is over, with its task (perhaps without finished games).

        A run plays with the network that is its best one now: a later promotion changes nothing.

        Raises ``MatchError`` if ``_MOST_DEATHS`` processes have died with the same game, or a player cannot be made;
        what ``players.checkpoint_folder`` raises.
        """
        folders = _checkpoints(tasks)
        tasks = [replace(task, folders=folders) for task in tasks]
        if self._players is not None:
            for task in tasks:
                for game in self._players.play(task):
                    yield task, game
            return
        waiting = deque(tasks)
        deaths: Counter[tuple[Pairing, int]] = Counter()
        while waiting or any(worker.task for worker in self._workers):
            self._hand_out(waiting)
            busy = [worker for worker in self._workers if worker.task]
            for worker in self._starter.wait(busy, _PATIENCE_S if busy else 0.0):
                asked = worker.task
                assert asked is not None
                try:
                    over = worker.receive()
                except (EOFError, OSError):
                    self._drop(worker, asked, deaths)
                    if asked.starts:  # none are left if it died after its last game
                        waiting.appendleft(asked)
                    continue
                if over is not None:
                    left = tuple(start for start in asked.starts if start[0] != over.index)
                    worker.task = replace(asked, starts=left)
                    yield asked, over

    def _hand_out(self, waiting: deque[Task]) -> None:
        """Gives tasks to idle processes, and starts more processes if there are too few."""
        free = [worker for worker in self._workers if worker.task is None]
        room = min(self.jobs, self._starter.capacity()) - len(self._workers)
        started = [self._starter.start_worker() for _ in range(min(room, len(waiting) - len(free)))]
        self._workers += started
        for worker in [*free, *started]:
            if waiting and worker.is_ready():
                worker.send(waiting.popleft())

    def _drop(self, worker: MatchWorker, task: Task, deaths: Counter[tuple[Pairing, int]]) -> None:
        """Removes a dead process and counts the death for each game that it still had to play."""
        self._workers.remove(worker)
        worker.stop()
        how = worker.end()
        pairing = task.pairing
        for index, _ in task.starts:
            deaths[pairing, index] += 1
            if deaths[pairing, index] >= _MOST_DEATHS:
                names = " v ".join(player.text for player in pairing.players)
                raise MatchError(
                    f"{_MOST_DEATHS} processes have died with game {index + 1} of {names}, "
                    f"the last with {how}; the match is stopped"
                )


def _checkpoints(tasks: Sequence[Task]) -> dict[str, str]:
    """``Task.folders`` of all networks; raises what ``players.checkpoint_folder`` raises."""
    players = {player for task in tasks for player in task.pairing.players}
    named = {player.folder for player in players if isinstance(player, NetworkSpec)}
    if not named:
        return {}
    from ..players import checkpoint_folder  # loads torch, which other players do not need

    return {folder: str(checkpoint_folder(folder)) for folder in named}
