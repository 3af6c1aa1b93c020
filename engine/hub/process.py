"""A child process that exchanges lines of text with us: reads have time limits, and its end is enforced."""

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import IO

from ..code_cache import foreign_environment
from .messages import MAX_LINE

_WAITING_LINES = 256  # lines that are read in advance; then the program has to wait
_LAST_WORDS = 5  # lines of its error output that are kept
_SHOWN = 200  # characters that are kept of a line of its error output
_LEAVE = 1.0  # seconds that a program gets to end after its farewell line, and again after SIGTERM


class LineProcess:
    """A running program. Neither ``send`` nor any amount of output of the program can block the caller.

    ``argv``: the program and its arguments, not passed through a shell. Raises ``OSError`` if it cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        # Its own process session: processes that it starts can be ended with it, and Ctrl-C reaches only us.
        self._process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env=foreign_environment()
        )
        self._incoming: queue.Queue[str | None] = queue.Queue(_WAITING_LINES)  # None marks the end
        self._outgoing: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # None marks the end
        self._errors: deque[str] = deque(maxlen=_LAST_WORDS)
        self._ended = False
        self._threads = [
            threading.Thread(target=work, args=(stream,), name=f"engine {name}", daemon=True)
            for name, work, stream in (
                ("input", self._write, self._process.stdin),
                ("output", self._read, self._process.stdout),
                ("errors", self._drain, self._process.stderr),
            )
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, line: str) -> None:
        """Sends a line; it is lost if the program has ended."""
        self._outgoing.put(line)

    def receive(self, seconds: float) -> str | None:
        """The next line, None if none arrives within ``seconds``; raises ``EOFError`` when the output is closed."""
        try:
            line = self._incoming.get(timeout=seconds) if seconds > 0 else self._incoming.get_nowait()
        except queue.Empty:
            return None
        if line is None:
            self._incoming.put(None)  # for the next call of ``receive``
            raise EOFError
        return line

    def last_words(self) -> str:
        """How the program ended, if it has, and the last line of its error output, if any; in one line."""
        with contextlib.suppress(subprocess.TimeoutExpired):  # its output may end a moment before the process does
            self._process.wait(_LEAVE / 4)
        code = self._process.poll()
        self._threads[2].join(_LEAVE / 4)
        if code is None:
            ending = ""
        elif code < 0:
            ending = f"ended by signal {-code}"
        else:
            ending = f"ended with exit code {code}"
        said = next((line for line in reversed(list(self._errors)) if line), "")
        return "; ".join(filter(None, (ending, f"it said: {said}" if said else "")))

    def close(self, farewell: str | None = None) -> None:
        """Ends the program and the processes it started; may be called again.

        Args:
            farewell: line that asks the program to end by itself; without it, SIGTERM is sent at once.
        """
        if self._ended:
            return
        self._ended = True
        try:
            if farewell is not None:
                self.send(farewell)
            self._outgoing.put(None)
            if farewell is None or not self._gone():
                self._signal("SIGTERM")
                self._gone()
        finally:  # after Ctrl-C, too
            self._signal("SIGKILL")  # ends the processes of its session that still run, too
            self._process.wait()
            self._let_go()

    def _gone(self) -> bool:
        """Whether the program ends within ``_LEAVE`` seconds; reads its output, since a full pipe would block it."""
        deadline = time.monotonic() + _LEAVE
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(EOFError):
                self.receive(0.01)
            time.sleep(0.001)
        return self._process.poll() is not None

    def _signal(self, name: str) -> None:
        """Sends a signal to the program's process group; kills the program on systems without such groups."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, getattr(signal, name))
            else:
                self._process.kill()

    def _let_go(self) -> None:
        """Waits for the threads and closes the pipes, except one that a process outside the session holds open."""
        deadline = time.monotonic() + _LEAVE
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._incoming.get_nowait()
            time.sleep(0.002)
        for thread, stream in zip(
            self._threads, (self._process.stdin, self._process.stdout, self._process.stderr), strict=True
        ):
            if stream is not None and not thread.is_alive():
                with contextlib.suppress(OSError):
                    stream.close()

    def _write(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError):
            while (line := self._outgoing.get()) is not None:
                stream.write(line.encode(errors="replace") + b"\n")
                stream.flush()
        with contextlib.suppress(OSError):
            stream.close()

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError):
            while line := stream.readline(MAX_LINE):
                self._incoming.put(line.decode(errors="replace"))
        self._incoming.put(None)

    def _drain(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError):
            while line := stream.readline(MAX_LINE):
                self._errors.append(" ".join(line[: 4 * _SHOWN].decode(errors="replace").split())[:_SHOWN])
