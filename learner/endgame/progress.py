"""Progress of the oracle's commands on standard error."""

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from engine.tablebase.build import Step

from .training import CurvePoint


class OracleProgress:
    """One live line: what is being done, how far, and the time left; nothing if ``quiet`` or not on a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        columns = (TextColumn("{task.description}"), BarColumn(20), TaskProgressColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=self.console, disable=quiet or not self.console.is_terminal)
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def phase(self, description: str, total: float | None = None) -> None:
        """Begins something else, of ``total`` parts if that is known."""
        self._progress.reset(self._task, description=description, total=total)

    def part(self, description: str, share: float | None) -> None:
        """So much, 0 to 1, of something is done; None where that is not known."""
        total = None if share is None else 1.0
        self._progress.update(self._task, description=description, total=total, completed=share or 0.0)

    def done(self, completed: float) -> None:
        """So many parts are done."""
        self._progress.update(self._task, completed=completed)

    def tables(self, step: Step) -> None:
        """A pair of slices has been brought into memory."""
        self._progress.update(self._task, completed=step.done, total=step.total)

    def training(self, point: CurvePoint) -> None:
        """A point of the learning curve; the task's total is the training's seconds."""
        right = "" if point.accuracy is None else f", {point.accuracy:.3%} right"
        text = f"{point.positions / 1e6:.1f} M positions ({point.rate / 1e3:.0f} k/s), loss {point.loss:.4f}{right}"
        self._progress.update(self._task, completed=point.seconds, description=text)
