"""A page with something that takes time to read."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..menus import MenuScene
from ..threads import in_thread

if TYPE_CHECKING:
    from ..app import App

Found = TypeVar("Found")
_READING = "Reading …"


class ReadingPage(MenuScene, Generic[Found]):
    """A menu that reads in a thread, so that no frame waits, and is filled again with what was found.

    Attributes:
        found: what was read; None before, and if it could not be read.
    """

    def __init__(self, app: "App") -> None:
        super().__init__(app)
        self.found: Found | None = None
        self._reading: Future[Found] | None = None
        self._begun = False

    def read(self, thread: str, work: Callable[[], Found]) -> None:
        """Begins to read, once.

        Args:
            thread: name of the thread, see ``gui.threads``.
            work: reads; its errors are shown.
        """
        if not self._begun:
            self._reading, self._begun = in_thread(thread, work), True
            self.say(_READING)

    def poll(self) -> None:
        reading = self._reading
        if reading is not None and reading.done() and not self.typing:
            self._reading = None
            if self._foot[0] == _READING:
                self.say("")
            self.attempt(lambda: setattr(self, "found", reading.result()))
            chosen = len(self._selectable()) > 1  # not the only button that there was
            self.place()
            if not chosen:
                self.menu.select_widget(self._selectable()[0])

    def _selectable(self) -> list[Any]:
        return [widget for widget in self.menu.get_widgets() if widget.is_selectable]
