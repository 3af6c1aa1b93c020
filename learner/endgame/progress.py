"""Progress of the oracle's commands on standard error."""

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from engine.console import Display
from engine.tablebase.dense import Step

from .training import CurvePoint


class OracleProgress(Display):
    """One live line: what is being done, how far, and the time left; nothing where that is not a terminal.

    On a terminal of 80 columns there is room for a description of 56 letters.
    """

    def __init__(self, quiet: bool) -> None:
        columns = TextColumn("{task.description}"), BarColumn(10), TaskProgressColumn(), TimeRemainingColumn()
        super().__init__(quiet, *columns)
        self._task = self.add_task("starting", total=None)

    def phase(self, description: str, total: float | None = None) -> None:
        """Begins something else, of ``total`` parts if that is known."""
        self.remove_task(self._task)  # one that had a total cannot be told that there is none
        self._task = self.add_task(description, total=total)

    def part(self, description: str, share: float | None) -> None:
        """Shows the share, 0 to 1, of something that is done; None where it is not known."""
        task, total = self.tasks[0], None if share is None else 1.0
        if total != task.total or (share or 0.0) < task.completed:
            self.phase(description, total)
        self.done(share or 0.0, description)

    def done(self, completed: float, description: str | None = None) -> None:
        self.update(self._task, completed=completed, description=description)

    def tables(self, step: Step) -> None:
        """A pair of slices has been brought into memory."""
        self.update(self._task, completed=step.done, total=step.total)

    def training(self, point: CurvePoint) -> None:
        """A point of the learning curve; the task's total is the training's seconds."""
        right = "" if point.accuracy is None else f", {point.accuracy:.3%} right"
        text = f"{point.positions / 1e6:.1f} M positions ({point.rate / 1e3:.0f} k/s), loss {point.loss:.4f}{right}"
        self.done(point.seconds, text)

    def rate(self, what: str, point: CurvePoint) -> None:
        """Shows a point of the learning curve in few words, after the name of what is trained."""
        self.done(point.seconds, f"{what}, {point.rate / 1e3:.1f} k/s")
