"""``crownhead annotate``: the champion judges every game of a PDN file."""

from pathlib import Path
from typing import TypedDict

from rich.progress import BarColumn, TaskProgressColumn, TextColumn

from engine.console import Console, Display
from engine.errors import PartlyReadError
from engine.fen import Color

from .archive.annotation import AnnotatedGame
from .archive.annotator import Annotator, progress_text
from .archive.file_analysis import AnalysisProgress, annotated_path
from .game.game_report import LEAST_LOSS
from .game.opponents import Opponents


class AnnotateFigures(TypedDict):
    """Result of ``crownhead annotate``; ``unread``: errors of games that could not be read."""

    source: str
    out: str
    seconds_per_position: float
    annotated: list[AnnotatedGame]
    unread: list[str]


class _Progress(Display):
    """Shows progress: one live line on a terminal, otherwise one line per game."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet, TextColumn("{task.description}"), BarColumn(10), TaskProgressColumn())
        self._task, self._said = self.add_task("reading the games", total=None), 0

    def show(self, progress: AnalysisProgress) -> None:
        total = progress.moves + progress.left
        self.update(self._task, description=progress_text(progress), total=total, completed=progress.moves)
        if self.disable and progress.done != self._said:
            self.console.print(progress_text(progress), markup=False, highlight=False)
        self._said = progress.done


def annotate_command(
    games: Path, out: Path | None, seconds: float, opponents: Opponents, quiet: bool
) -> AnnotateFigures:
    """Judges the games; see ``crownhead annotate --help``.

    Raises:
        StorageError: see ``FileAnalysis``.
        PartlyReadError: at the end, if games were left out.
        KeyboardInterrupt: the games judged so far are kept; the message says how to continue.
    """
    annotator = Annotator(opponents, games, out or annotated_path(games), seconds)
    try:
        with _Progress(quiet) as progress:
            analysis = annotator.run(progress.show)
    except KeyboardInterrupt as error:
        done = annotator.progress.done if annotator.progress is not None else 0
        raise KeyboardInterrupt(f"{done} games are judged and kept; the same command goes on") from error
    assert analysis is not None  # None only after ``stop``, which is not called here
    judged, unread = analysis.result
    figures: AnnotateFigures = {
        "source": str(games),
        "out": str(annotator.out),
        "seconds_per_position": seconds,
        "annotated": judged,
        "unread": unread,
    }
    if judged and not quiet:
        _print(figures)
    if unread:
        raise PartlyReadError(f"games left out of {games}: {len(unread)}; the first: {unread[0]}", figures)
    return figures


def _print(figures: AnnotateFigures) -> None:
    console, judged = Console(), figures["annotated"]
    console.print(f"{len(judged)} games in {figures['out']}", markup=False, highlight=False, soft_wrap=True)
    for color in Color:
        sides = [game["black"] if color is Color.BLACK else game["white"] for game in judged]
        marks = [side["accuracy"] for side in sides if side["accuracy"] is not None]
        words = [fault["judgement"] for side in sides for fault in side["faults"]]
        counts = ", ".join(f"{word}: {words.count(word)}" for word in LEAST_LOSS)
        mean = f"mean accuracy {sum(marks) / len(marks):.1f} %; " if marks else ""
        console.print(f"{color}: {mean}{counts}", markup=False, highlight=False)
