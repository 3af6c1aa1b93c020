"""Commands about puzzles: ``puzzles make`` and ``puzzles check``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Seed, Tables, request_command

if TYPE_CHECKING:
    from ..puzzles.checking import CheckFigures
    from ..puzzles.making import MadeFigures

puzzles = typer.Typer(help="Puzzles: find positions with one right move, and check them.", no_args_is_help=True)
_MOST_SIMULATIONS = 200_000
_MOST = 100_000  # ``engine.puzzles.book.MOST_PUZZLES``


@dataclass(frozen=True)
class MakePuzzlesRequest:
    """Find puzzles in games of self-play or in recorded games: positions where exactly one move wins, or draws.

    Run again to continue. To play the puzzles: crownhead play --puzzles FILE
    """

    out: Annotated[Path, typer.Argument(metavar="FILE", help="File for the puzzles, like mine.json.zst.")]
    number: Annotated[int, typer.Option(min=1, max=_MOST, help="Number of puzzles wanted.")] = 200
    games: Annotated[Path | None, typer.Option(help="Games in PDN to look through, instead of self-play.")] = None
    simulations: Annotated[
        int, typer.Option(min=100, max=_MOST_SIMULATIONS, help="Simulations after each move that tables do not know.")
    ] = 3000
    seed: Annotated[int | None, typer.Option(min=0, max=(1 << 32) - 1, help="Seed of self-play [1].")] = None
    folder: Tables = None

    def execute(self, quiet: bool) -> "MadeFigures":
        from ..puzzles.making import make_puzzles

        if self.games is not None and self.seed is not None:
            raise ValueError("--seed is for self-play: leave it out, or --games")
        seed = 1 if self.seed is None else self.seed
        return make_puzzles(self.out, self.number, self.games, self.folder, self.simulations, seed, quiet)


@dataclass(frozen=True)
class CheckPuzzlesRequest:
    """Measure how many puzzles still have exactly one solution after searches that are ten times as long."""

    file: Annotated[
        Path | None, typer.Argument(help="File of puzzles; if left out, those that come with Crownhead.")
    ] = None
    sample: Annotated[int, typer.Option(min=1, help="Number of puzzles to check, drawn at random.")] = 100
    times: Annotated[float, typer.Option(min=1, max=100, help="Factor by which searches are longer.")] = 10.0
    seed: Seed = 1
    skip: Annotated[int, typer.Option(min=0, help="Number of drawn puzzles to skip, as checked earlier.")] = 0
    drop: Annotated[bool, typer.Option("--drop", help="Remove puzzles that fail from the file.")] = False
    folder: Tables = None

    def execute(self, quiet: bool) -> "CheckFigures":
        from ..puzzles.checking import check_puzzles

        return check_puzzles(self.file, self.sample, self.times, self.folder, self.seed, quiet, self.skip, self.drop)


puzzles.command("make")(request_command(MakePuzzlesRequest, MakePuzzlesRequest.execute))
puzzles.command("check")(request_command(CheckPuzzlesRequest, CheckPuzzlesRequest.execute))
