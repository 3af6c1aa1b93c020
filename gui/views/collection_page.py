"""The page to choose the games that the opening tree counts in addition to the user's own."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..game_index import sources_in
from ..pdn_files import is_folder, is_there
from .file_pages import LoadPage

if TYPE_CHECKING:
    from ..app import App


class CollectionPage(LoadPage):
    """Chooses a PDN file or a folder of them; ``chosen`` is called with its path, or "" for no collection."""

    title = "Games for the openings"

    def __init__(self, app: "App", chosen: Callable[[str], None]) -> None:
        super().__init__(app)
        self._chosen = chosen

    def fill(self) -> None:
        if kept := self.app.preferences.collection:
            self.button("None but my own", lambda: self._choose(""), f"Now: {kept}")
        super().fill()

    def _open(self, path: Path) -> None:
        if not is_there(path):
            self.say(f"there is no {path}", alarm=True)
        elif is_folder(path) and not sources_in(path):
            self.say(f"{path} has no PDN files; crownhead games writes those of a run", alarm=True)
        elif not (name := str(path.resolve())).isprintable():
            self.say(f"the name of {path} is no text: rename it first", alarm=True)
        else:
            self._choose(name)

    def _choose(self, path: str) -> None:
        self.leave()
        self._chosen(path)
