"""Progress displays on standard error: training and matches."""

from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Any

from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from engine.console import Display

from .matches.record import MatchGame

_RATE_SECONDS = 30.0


class TrainingProgress(Display):
    """Shows the progress of a training: a live line with time left, rates and loss; one line per judged candidate."""

    def __init__(self, quiet: bool) -> None:
        left, description = TextColumn("{task.fields[left]}"), TextColumn("{task.description}")
        super().__init__(quiet, TimeElapsedColumn(), BarColumn(20), left, description)
        self._task = self.add_task("starting", total=None, left="")
        self._limit: float | None = None
        self._samples: deque[tuple[float, int]] = deque()
        self._loss = ""

    def limit(self, minutes: float, limit: float | None) -> None:
        """Sets the minutes that the run has used (``minutes``) and may use (``limit``; None: no limit)."""
        self._limit = limit
        self.update(self._task, total=limit, completed=minutes)

    def __call__(self, event: str, figures: Mapping[str, Any]) -> None:
        if event == "begin":
            text = f"Training in {figures['run']}; the first start compiles functions before it plays."
            self.console.print(text)
        elif event == "learn":
            self._loss = f" loss {figures['loss']:.3f}"
        elif event == "gate":
            self._gate(figures)
        elif event == "anchor":
            self.console.print(
                f"  {figures['checkpoint']} v {figures['anchor']}: "
                f"+{figures['wins']} ={figures['draws']} -{figures['losses']}"
            )
        if "steps" in figures:
            self._show(figures)

    def _gate(self, figures: Mapping[str, Any]) -> None:
        verb = "promoted" if figures["decision"] == "promote" else "not promoted"
        self.console.print(
            f"{figures['minutes']:.1f} min: {figures['checkpoint']} {verb}: +{figures['wins']} ={figures['draws']} "
            f"-{figures['losses']}, Elo {figures['elo']:+.0f} ± {figures['elo_error']:.0f} ({figures['steps']} steps, "
            f"{figures['games']} games)"
        )

    def _show(self, figures: Mapping[str, Any]) -> None:
        now = monotonic()
        self._samples.append((now, figures["samples"]))
        while now - self._samples[0][0] > _RATE_SECONDS and len(self._samples) > 2:
            self._samples.popleft()
        (start, first), (_, last) = self._samples[0], self._samples[-1]
        rate = (last - first) / (now - start) if now > start else 0.0
        minutes = figures["minutes"]
        left = f"{max(0.0, self._limit - minutes):.1f} min left" if self._limit else ""
        text = (
            f"{figures['games']} games, {figures['samples']} samples ({rate:.0f}/s), {figures['steps']} steps,"
            f"{self._loss} best {figures['best']}"
        )
        self.update(self._task, completed=minutes, description=text, left=left)


class _Rate(ProgressColumn):
    """Column with games per minute."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{60 * rate:.3g} games/min", style="progress.data.speed")


class LadderProgress(Display):
    """Shows the progress of games: finished and all games, players of the last game, rate, time left.

    Args:
        games: number of all games.
        kept: number of games that were played before.
    """

    def __init__(self, games: int, quiet: bool, kept: int = 0) -> None:
        count = TextColumn("{task.completed}/{task.total} games")
        note = TextColumn("{task.description}", markup=False)  # names of players may be paths
        super().__init__(quiet, BarColumn(30), count, note, _Rate(), TimeRemainingColumn())
        self._task = self.add_task("", total=games, completed=kept)

    def game(self, game: MatchGame) -> None:
        self.update(self._task, advance=1, description=self._note(game))

    def _note(self, game: MatchGame) -> str:
        return f"{game.black} v {game.white}"


class MatchProgress(LadderProgress):
    """Shows the progress of a match, with the score so far in place of the players."""

    _points, _games = 0.0, 0

    def _note(self, game: MatchGame) -> str:
        self._games += 1
        self._points += game.score
        return f"score {self._points / self._games:.1%}"
