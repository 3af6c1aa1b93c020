"""The pool whose actors are processes of this machine, so that they do not share an interpreter lock."""

import multiprocessing.connection
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any

from engine.interrupts import interrupt_noted

from ..machines.processes import follow_parent, give_way, no_interrupt, on_sigterm, player_context
from ..run.config import RunConfig
from .pool import Pool, PoolActor, Result, finished
from .worker import Worker

_worker: Worker | None = None


class ProcessPool(Pool):
    """Actors as processes of this machine; see ``Pool``."""

    dead = BrokenProcessPool

    def __init__(self, config: RunConfig, start: int) -> None:
        # Closing the pipe tells actors to stop. Setting an Event could block for ever if an actor was killed waiting.
        self._stopped, self._running = player_context().Pipe(duplex=False)  # by now its server imports
        super().__init__(config, start)

    def _start(self, actor: PoolActor, seed: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, player_context(), _begin, (self._config, actor.number, seed, self._stopped))

    def _ask(self, handle: ProcessPoolExecutor, method: str, *arguments: Any) -> Future[Result | None]:
        """See ``Pool._ask``. The first call starts the process; raises ``BrokenProcessPool`` if that cannot be."""
        try:
            with no_interrupt():
                return handle.submit(_call, method, *arguments)
        except (EOFError, ConnectionError) as error:  # the server that starts the processes is just being killed
            raise BrokenProcessPool(f"its process could not be started ({type(error).__name__})") from error

    def _release(self, handle: ProcessPoolExecutor) -> None:
        # Before Python 3.11.5 (gh-94777) a request that the dead process had not read kept the interpreter from ending.
        requests: Any = getattr(handle, "_call_queue", None)
        if requests is not None:
            requests._reader.close()
        handle.shutdown(wait=False)

    def close(self) -> list[Result]:
        """See ``Pool.close``."""
        self._running.close()
        running = [actor for actor in self._actors if actor.handle is not None]
        with interrupt_noted():  # a process that is starting would complain of a parent that has left
            for actor in running:
                actor.handle.shutdown(wait=True, cancel_futures=True)
        return self._take_kept() + finished(running)


def _begin(config: RunConfig, number: int, seed: int, stopped: Connection) -> None:
    """Prepares the actor's process; runs there once."""
    global _worker
    follow_parent()
    give_way(config.selfplay.nice)
    on_sigterm(signal.SIG_IGN)  # a scheduler sends it to the whole job; only the learner saves
    _worker = worker = Worker(config, number, seed)

    def stop() -> None:
        multiprocessing.connection.wait([stopped])
        worker.stop()

    threading.Thread(target=stop, daemon=True).start()


def _call(method: str, *arguments: Any) -> Result | None:
    """Answers a request; runs in the actor's process."""
    answer: Result | None = getattr(_worker, method)(*arguments)
    return answer
