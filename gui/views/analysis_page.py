"""The page that starts the analysis of all games of a file, which goes on during play."""

from functools import partial
from os.path import exists
from pathlib import Path

from ..archive.annotator import SECONDS, USUAL_SECONDS, Annotator, progress_text
from ..archive.file_analysis import annotated_path, seconds_of
from ..game.pdn_files import clean, typed_file
from ..menus import MenuScene
from .library_pages import LibraryPage
from .program import Program


class AnalysisPage(MenuScene):
    """Starts, shows and stops an analysis; ``games``: the file to analyse, unless another analysis runs."""

    title = "Analysis of a file"

    def __init__(self, app: Program, games: Path) -> None:
        super().__init__(app)
        running = app.annotator
        self._games = running.games if running is not None and running.at_work else games
        self._out = running.out if running is not None and running.games == self._games else annotated_path(games)
        self._typed: str | None = None  # path of the annotated games, unless it is as proposed
        self._seconds = seconds_of(self._out) or USUAL_SECONDS
        self._untold = self._here() is not None  # whether progress or outcome are to be told

    def _here(self) -> Annotator | None:
        """The analysis of this page's file; None if it was not begun."""
        running = self.app.annotator
        return running if running is not None and running.games == self._games else None

    def fill(self) -> None:
        here = self._here()
        if here is not None and here.at_work:
            self.menu.add.label(clean(self._games.name))
            self.button("Stop", here.stop, "Judged games are kept; a new start continues after them")
        else:
            if exists(self._out):
                self.button("Open the annotated games", self._open, str(self._out))
            going_on = seconds_of(self._out) is not None
            meaning = "The champion judges every move; it goes on while you play"
            self.button("Go on" if going_on else "Start", self._start, meaning)
            items = [(f"{seconds:g} s", seconds) for seconds in sorted({*SECONDS, self._seconds})]
            meaning = "More is better; all games take long"
            self.selector("Time per position", items, self._seconds, self.setter("_seconds"), meaning)
            meaning = "A new file: the games themselves are never changed"
            into = str(self._out) if self._typed is None else self._typed
            self.text_input("Into", into, 500, meaning, onchange=self.guard(self.setter("_typed")))

    def _start(self) -> None:
        self.attempt(self._begin)

    def _begin(self) -> None:
        if self._typed is not None:
            self._out = typed_file(self._typed, self._games.parent)
        self.app.annotator = Annotator(self.app.opponents, self._games, self._out, self._seconds)
        self.app.annotator.begin()
        self.say("Reading the games")
        self._untold = True
        self.rebuild()

    def _open(self) -> None:
        library = self.app.shelf.open(self._out, self.app.go.libraries())
        self.app.go.show(partial(LibraryPage, library=library))

    def poll(self) -> None:
        here = self._here()
        if here is None or not self._untold:
            return
        progress = here.progress
        if progress is not None:
            text = progress_text(progress)
            if self._foot[0] != text:
                self.say(text)
        if here.at_work:
            return
        self._untold = False
        if here.error:
            self.say(here.error, alarm=True)
        elif here.unread:
            self.say(f"Games left out: {len(here.unread)}; the first: {here.unread[0]}", alarm=True)
        else:
            done = f"{progress.done:,} of {progress.games:,} games are judged" if progress else "nothing is judged yet"
            self.say("All games are judged" if here.outcome() else f"Stopped: {done}")
        self.rebuild()
