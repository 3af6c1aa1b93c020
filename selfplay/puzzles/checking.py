"""``crownhead puzzles check``: how many puzzles still have one solution after searches that are ten times as long."""

import hashlib
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypedDict

from engine.board import Board
from engine.claims import claimed
from engine.console import Console
from engine.players.base import search_moves
from engine.puzzles.book import SHIPPED, PuzzleFileError, read_book, write_book
from engine.puzzles.puzzle import Puzzle
from engine.tablebase import open_tablebase
from learner.endgame.progress import OracleProgress
from learner.endgame.validation import wilson_interval

from .making import champion_student
from .settling import PLAIN, Settler, only_move

_BATCH = 8
_SHOWN = 10


class Failure(TypedDict):
    """A puzzle that fails: the position, the move of its solution, and the value of each move by the longer search."""

    fen: str
    solution: str
    values: dict[str, float]


class ProofFigures(TypedDict):
    """Puzzles with one kind of proof: how many were checked, and how many of them have one solution."""

    puzzles: int
    unique: int


class CheckFigures(TypedDict):
    """Results of ``crownhead puzzles check``.

    ``share`` is unique / checked (0 to 1), ``interval`` its 95 % interval. ``puzzles`` is the number in the file before
    ``dropped`` ones were removed.
    """

    file: str
    puzzles: int
    checked: int
    simulations: int
    unique: int
    share: float
    interval: tuple[float, float]
    by_proof: dict[str, ProofFigures]
    failures: list[Failure]
    dropped: int


def check_puzzles(
    file: Path | None,
    sample: int,
    times: float,
    folder: Path | None,
    seed: int,
    quiet: bool,
    skip: int = 0,
    drop: bool = False,
) -> CheckFigures:
    """Searches random puzzles of a file again; see ``crownhead puzzles check --help``.

    Every move that the solver must find is checked, by the bounds ``settling.PLAIN``. A puzzle fails if a second move
    is as good, or if its solution is no better than other moves.

    Args:
        skip: number of puzzles to skip in the random order. The order depends only on the seed and the positions, so a
            long check with ``drop`` can be made in parts: each part skips as many puzzles as were unique before.
        drop: whether to remove puzzles that fail from the file.

    Raises:
        PuzzleFileError: the file is damaged, has no puzzles, or one that cannot be played.
        StorageError: the file cannot be read or written.
        FileInUseError: another process makes or checks the puzzles of this file, and ``drop`` is set.
    """
    path = file or SHIPPED
    with claimed(path) if drop else nullcontext():
        book = read_book(path)
        if not book.puzzles:
            raise PuzzleFileError(f"{path}: there are no puzzles in it")
        chosen = sorted(book.puzzles, key=partial(_place, seed))[skip : skip + sample]
        if not chosen:
            raise PuzzleFileError(f"{path}: it holds {len(book.puzzles)} puzzles; none are left after the first {skip}")
        simulations = round(book.simulations * times)
        failures: list[Failure] = []
        failed: set[Puzzle] = set()
        by_proof: dict[str, ProofFigures] = {}
        evaluator = champion_student()
        with open_tablebase(folder) as tables, OracleProgress(quiet) as progress:
            settler = Settler(evaluator, tables, simulations, tables)
            progress.phase(f"searching with {simulations} simulations a move", len(chosen))
            for first in range(0, len(chosen), _BATCH):
                for puzzle, failure in _looked_at(settler, path, chosen[first : first + _BATCH]):
                    counts = by_proof.setdefault(puzzle.proof.value, {"puzzles": 0, "unique": 0})
                    counts["puzzles"] += 1
                    counts["unique"] += failure is None
                    if failure is not None:
                        failures.append(failure)
                        failed.add(puzzle)
                progress.done(min(first + _BATCH, len(chosen)))
        if drop and failed:
            write_book(path, replace(book, puzzles=tuple(puzzle for puzzle in book.puzzles if puzzle not in failed)))
    unique = len(chosen) - len(failures)
    figures: CheckFigures = {
        "file": str(path),
        "puzzles": len(book.puzzles),
        "checked": len(chosen),
        "simulations": simulations,
        "unique": unique,
        "share": unique / len(chosen),
        "interval": wilson_interval(unique, len(chosen)),
        "by_proof": by_proof,
        "failures": failures,
        "dropped": len(failed) if drop else 0,
    }
    if not quiet:
        _print(figures)
    return figures


def _place(seed: int, puzzle: Puzzle) -> bytes:
    """Sort key of a puzzle in the random order of a seed."""
    return hashlib.blake2b(f"{seed} {puzzle.fen}".encode()).digest()


def _looked_at(settler: Settler, path: Path, puzzles: list[Puzzle]) -> list[tuple[Puzzle, Failure | None]]:
    """Each puzzle with its failure; None if it does not fail."""
    steps: list[tuple[int, Board, int]] = []  # puzzle, board, number of the right move
    for number, puzzle in enumerate(puzzles):
        board = Board(puzzle.fen)
        try:
            for place, text in enumerate(puzzle.line[: puzzle.asked]):
                moves, move = search_moves(board), board.parse_pdn(text)
                if place % 2 == 0 and len(moves) > 1:
                    steps.append((number, board.copy(), moves.index(move)))
                board.push(move)
        except ValueError as error:
            raise PuzzleFileError(f"{path}: the puzzle {puzzle.fen} cannot be played: {error}") from error
    failed: dict[int, Failure] = {}
    for (number, board, right), values in zip(steps, settler.values([board for _, board, _ in steps]), strict=True):
        only = only_move(values, PLAIN)
        if only is None or only.place != right or only.goal is not puzzles[number].goal:
            told = {board.pdn(one.move): round(one.value, 3) for one in values}
            failed.setdefault(number, {"fen": board.fen(), "solution": board.pdn(values[right].move), "values": told})
    return [(puzzle, failed.get(number)) for number, puzzle in enumerate(puzzles)]


def _print(figures: CheckFigures) -> None:
    console = Console()
    low, high = figures["interval"]
    console.print(
        f"{figures['unique']} of {figures['checked']} puzzles have the one solution with {figures['simulations']} "
        f"simulations after each move: {figures['share']:.1%} (95 %: {low:.1%} to {high:.1%})",
        highlight=False,
        soft_wrap=True,
    )
    for name, counts in figures["by_proof"].items():
        console.print(f"proof {name}: {counts['unique']} of {counts['puzzles']}", highlight=False)
    if figures["dropped"]:
        text = f"{figures['dropped']} removed from {figures['file']}"
        console.print(text, highlight=False, soft_wrap=True)
    for failure in figures["failures"][:_SHOWN]:
        told = ", ".join(f"{move} {value:+.2f}" for move, value in failure["values"].items())
        console.print(f"{failure['fen']} {failure['solution']}: {told}", highlight=False, soft_wrap=True)
