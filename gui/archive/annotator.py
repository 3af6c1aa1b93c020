"""The champion's analysis of a whole file: in a thread beside the window, or for a command that waits. No pygame."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from engine.errors import one_line
from engine.players import PlayerError, WatchablePlayer
from engine.players.base import close_player

from ..game.endgame_info import EndgameInfo
from ..game.opponents import Opponents, adviser_of
from ..game.thinker import steady
from ..threads import in_thread
from .file_analysis import AnalysisProgress, FileAnalysis

SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds per position to choose from
USUAL_SECONDS = 0.2
_SHOWN = 500  # characters of an error


def time_text(seconds: float | None) -> str:
    """A time in hours and minutes, or seconds, as text; "" if it is unknown."""
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    return f"{round(seconds)} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def progress_text(progress: AnalysisProgress) -> str:
    """Games judged, rate, and time left, in one line."""
    parts = [f"{progress.done:,} of {progress.games:,} games"]
    if progress.moves:
        parts += [f"{progress.per_minute:,.0f} moves a minute", f"{time_text(progress.seconds_left)} left"]
    return ", ".join(parts)


class Annotator:
    """Lets the champion (or alpha-beta, if there are no networks) judge the games of a file.

    Args:
        opponents: makes the player.
        games, out, seconds: see ``FileAnalysis``; the file is read in ``run``.
    """

    def __init__(self, opponents: Opponents, games: Path, out: Path, seconds: float) -> None:
        self.games, self.out = games, out
        self._opponents, self._seconds = opponents, seconds
        self._analysis: FileAnalysis | None = None
        self._stopped = threading.Event()
        self._work: Future[bool] | None = None

    @property
    def progress(self) -> AnalysisProgress | None:
        """None while the file is being read."""
        return None if self._analysis is None else self._analysis.progress

    def run(self, tell: Callable[[AnalysisProgress], None] = lambda progress: None) -> FileAnalysis | None:
        """Judges the remaining games; returns None if it was stopped before the end.

        Raises:
            StorageError: see ``FileAnalysis``.
            PlayerError: there is no player that can judge.
        """
        spec = steady(adviser_of(self._opponents.kinds).changed(seconds=self._seconds))
        self._analysis = analysis = FileAnalysis(self.games, self.out, spec.name, self._seconds)
        player, endgame = self._opponents.make(spec), EndgameInfo()
        try:
            if not isinstance(player, WatchablePlayer):
                raise PlayerError(f"{spec.name} cannot analyse")
            return analysis if analysis.run(player, endgame.value, self._stopped.is_set, tell) else None
        finally:
            close_player(player)
            endgame.close()

    # --- beside the window

    def begin(self) -> None:
        """Starts ``run`` in a thread of its own."""
        self._work = in_thread("annotator", lambda: self.run() is not None)

    @property
    def at_work(self) -> bool:
        return self._work is not None and not self._work.done()

    def stop(self) -> None:
        """Asks the analysis to end soon; the games judged by then are kept for the next time."""
        self._stopped.set()

    @property
    def error(self) -> str:
        """Why the analysis failed, in one line; "" if it has not."""
        error = None if self._work is None or self.at_work else self._work.exception()
        return "" if error is None else one_line(error, _SHOWN)

    @property
    def unread(self) -> list[str]:
        """Why games could not be read, one line each; empty before the end."""
        return [] if self._analysis is None else self._analysis.result[1]

    def outcome(self) -> bool | None:
        """Whether all games are judged; None while the analysis runs. Raises the errors of ``run``."""
        return None if self._work is None or self.at_work else self._work.result()
