"""A page with something that takes time to read."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from ..menus import MenuScene
from ..threads import in_thread

if TYPE_CHECKING:
    from ..app import App

Found = TypeVar("Found")


class ReadingPage(MenuScene, Generic[Found]):
    """A menu that reads in a thread, so that no frame waits, and is filled again with what was found.

    Args:
        thread: name of the thread, see ``gui.threads``.
        read: reads; its errors are shown.

    Attributes:
        found: what was read; None before, and if it cannot be read.
    """

    def __init__(self, app: "App", thread: str, read: Callable[[], Found]) -> None:
        super().__init__(app)
        self._reading: Future[Found] = in_thread(thread, read)
        self._waiting = True
        self.found: Found | None = None
        self.say("Reading …")

    def poll(self) -> None:
        if self._waiting and self._reading.done() and not self.typing:
            self._waiting = False
            self.say("")
            self.attempt(self._receive)
            self.place()

    def _receive(self) -> None:
        self.found = self._reading.result()
