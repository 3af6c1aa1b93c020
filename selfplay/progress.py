"""Progress displays on standard error: training and matches."""

from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Any

from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from engine.console import Display

from .match_record import MatchGame

_RATE_SECONDS = 30.0


class TrainingProgress(Display):
    """Listener of a training: one live line with time left, rates and loss; a line for every judged candidate."""

    def __init__(self, quiet: bool) -> None:
        left, description = TextColumn("{task.fields[left]}"), TextColumn("{task.description}")
        super().__init__(quiet, TimeElapsedColumn(), BarColumn(20), left, description)
        self._task = self.add_task("starting", total=None, left="")
        self._limit: float | None = None
        self._samples: deque[tuple[float, int]] = deque()
        self._loss = ""

    def limit(self, minutes: float, limit: float | None) -> None:
        """How much time the run has used, and how much it may use."""
        self._limit = limit
        self.update(self._task, total=limit, completed=minutes)

    def __call__(self, event: str, figures: Mapping[str, Any]) -> None:
        if event == "begin":
            self.console.print(f"Training in {figures['run']}; where functions are not compiled yet, that comes first.")
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
    """Games a minute."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{60 * rate:.3g} games/min", style="progress.data.speed")


class LadderProgress(Display):
    """Progress of games: how many of all, who plays, rate, time left.

    Args:
        games: in all; ``kept``: those that have been played before.
    """

    def __init__(self, games: int, quiet: bool, kept: int = 0) -> None:
        count = TextColumn("{task.completed}/{task.total} games")
        note = TextColumn("{task.description}")
        super().__init__(quiet, BarColumn(30), count, note, _Rate(), TimeRemainingColumn())
        self._task = self.add_task("", total=games, completed=kept)

    def game(self, game: MatchGame) -> None:
        self.update(self._task, advance=1, description=self._note(game))

    def _note(self, game: MatchGame) -> str:
        return f"{game.black} v {game.white}"


class MatchProgress(LadderProgress):
    """Progress of a match, with the score so far in place of who plays."""

    _points, _games = 0.0, 0

    def _note(self, game: MatchGame) -> str:
        self._games += 1
        self._points += game.score
        return f"score {self._points / self._games:.1%}"
