"""A program that is talked to in lines: started, fed, read with time limits, and ended for certain."""

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

from .messages import MAX_LINE

_WAITING_LINES = 256  # read ahead; then the program has to wait
_LAST_WORDS = 5  # lines of its error output that are kept
_SHOWN = 200  # characters of a line of its error output
_LEAVE = 1.0  # seconds that a program gets to end by itself, and again after it has been told to


class LineProcess:
    """A running program. Neither ``send`` nor the program's own output, however much, can block the caller.

    Args:
        argv: the program and its arguments; no shell has a look at them.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        # A session of its own: what it starts in turn can be ended with it, and Ctrl-C is for us to handle.
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        self._incoming: queue.Queue[str | None] = queue.Queue(_WAITING_LINES)  # None: there will be no more
        self._outgoing: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # None: there will be no more
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
        """Sends a line; what a program that has ended does not read is lost."""
        self._outgoing.put(line)

    def receive(self, seconds: float) -> str | None:
        """The next line, None if none comes within ``seconds``; raises ``EOFError`` when the output is closed."""
        try:
            line = self._incoming.get(timeout=seconds) if seconds > 0 else self._incoming.get_nowait()
        except queue.Empty:
            return None
        if line is None:
            self._incoming.put(None)  # the next reader must see the end, too
            raise EOFError
        return line

    def last_words(self) -> str:
        """How it ended, if it has, and the last line of its error output, if there is one; in one line."""
        with contextlib.suppress(subprocess.TimeoutExpired):  # its output may end a moment before it does
            self._process.wait(_LEAVE / 4)
        code = self._process.poll()
        self._threads[2].join(_LEAVE / 4)
        if code is None:
            ending = ""
        elif code < 0:
            ending = f"ended by signal {-code}"
        else:
            ending = f"ended with exit code {code}"
        said = next((line for line in reversed(self._errors) if line), "")
        return "; ".join(filter(None, (ending, f"it said: {said}" if said else "")))

    def close(self, farewell: str | None = None) -> None:
        """Ends the program and all that it started; may be called again.

        Args:
            farewell: a line on which it should end by itself; without one it is given no time to do so.
        """
        if self._ended:
            return
        self._ended = True
        if farewell is not None:
            self.send(farewell)
        self._outgoing.put(None)
        if farewell is None or not self._gone():
            self._signal("SIGTERM")
            self._gone()
        self._signal("SIGKILL")  # what is left of its session, too
        self._process.wait()
        self._let_go()

    def _gone(self) -> bool:
        """Whether it ends within ``_LEAVE`` seconds; it is read on, for one that waits to be read does not end."""
        deadline = time.monotonic() + _LEAVE
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(EOFError):
                self.receive(0.01)
            time.sleep(0.001)
        return self._process.poll() is not None

    def _signal(self, name: str) -> None:
        """Sends a signal to its session; where there are none, ends the program."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, getattr(signal, name))
            else:
                self._process.kill()

    def _let_go(self) -> None:
        """Waits for the threads and closes the pipes. Who has left the session may hold one open: it is left to him."""
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
