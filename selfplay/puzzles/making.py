"""``crownhead puzzles make``: looks for puzzles in rounds of games and adds them to a file."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from engine.claims import claimed
from engine.console import Console
from engine.errors import PartlyReadError
from engine.players.spec import CHAMPION
from engine.puzzles.book import MOST_PUZZLES, PuzzleBook, PuzzleFileError, read_book, write_book
from engine.search import Evaluator
from engine.tablebase import open_tablebase
from learner.endgame.progress import OracleProgress
from learner.inference import BackendError, make_evaluator
from learner.student import load_student

from ..knowledge import shared_tablebase
from ..machines.threads import use_single_thread
from ..players import checkpoint_folder
from .finding import Finder
from .games import SELF_PLAY, RecordedGames, SelfPlay, boards_of
from .rating import LevelSolver
from .settling import Settler


class MadeFigures(TypedDict):
    """Contents of the file of ``crownhead puzzles make``; ``themes``, ``goals`` and ``proofs`` count puzzles by name.

    ``games`` and ``positions`` count what was searched; ``unread`` has a message for each game that cannot be read.
    """

    file: str
    source: str
    puzzles: int
    games: int
    positions: int
    themes: dict[str, int]
    goals: dict[str, int]
    proofs: dict[str, int]
    ratings: list[int]
    unread: list[str]


def champion_student() -> Evaluator:
    """The champion's student, which finds and judges puzzles; raises ``BackendError`` if there is none."""
    use_single_thread()
    student = load_student(checkpoint_folder(CHAMPION))
    if student is None:
        raise BackendError("the champion comes without its student, which makes puzzles")
    return make_evaluator(student.network)


def make_puzzles(
    out: Path, number: int, games: Path | None, folder: Path | None, simulations: int, seed: int, quiet: bool
) -> MadeFigures:
    """Adds puzzles to a file until it has ``number`` or there are no more games; see ``crownhead puzzles make --help``.

    The file is written after every round; a second call continues after the last round.

    Raises:
        PuzzleFileError: the file is damaged, or was made from other games or with other settings.
        StorageError: a file cannot be read or written.
        FileInUseError: another process makes or checks the puzzles of this file.
        PartlyReadError: at the end, if games could not be read.
    """
    with claimed(out):
        recorded = RecordedGames(games) if games is not None else None
        begun = PuzzleBook(recorded.source if recorded else SELF_PLAY, 0 if recorded else seed, simulations)
        book = _read_or_begin(out, begun)
        evaluator = champion_student()
        source = recorded or SelfPlay(evaluator, seed)
        with open_tablebase(folder) as tables, OracleProgress(quiet) as progress:
            settler = Settler(evaluator, tables, simulations, shared_tablebase())
            finder = Finder(settler, LevelSolver(evaluator), book.puzzles)
            progress.phase("finding puzzles", number)
            progress.done(len(book.puzzles))
            while len(book.puzzles) < number and (played := source.round(book.rounds)):
                boards = list(boards_of(played))
                puzzles = (*book.puzzles, *finder.find(boards))[:MOST_PUZZLES]
                games_seen, positions = book.games + len(played), book.positions + len(boards)
                book = replace(book, rounds=book.rounds + 1, games=games_seen, positions=positions, puzzles=puzzles)
                write_book(out, book)
                progress.done(len(book.puzzles))
    figures = _figures(out, book, recorded.unread if recorded else [])
    if not quiet:
        _print(figures)
    if unread := figures["unread"]:
        raise PartlyReadError(f"games left out of {games}: {len(unread)}; the first: {unread[0]}", figures)
    return figures


def _read_or_begin(out: Path, begun: PuzzleBook) -> PuzzleBook:
    """Reads the puzzles of the file if it exists; raises ``PuzzleFileError`` if it was made with other settings."""
    if not out.exists():
        write_book(out, begun)  # raises now if it cannot be written
        return begun
    book = read_book(out)
    for name in ("source", "seed", "simulations"):
        was, wanted = getattr(book, name), getattr(begun, name)
        if was != wanted:
            raise PuzzleFileError(f"{out} was made with {name} {was}, not {wanted}: use that, or name another file")
    return book


def _figures(out: Path, book: PuzzleBook, unread: list[str]) -> MadeFigures:
    puzzles = book.puzzles
    return {
        "file": str(out),
        "source": book.source,
        "puzzles": len(puzzles),
        "games": book.games,
        "positions": book.positions,
        "themes": dict(Counter(puzzle.theme.value for puzzle in puzzles).most_common()),
        "goals": dict(Counter(puzzle.goal.value for puzzle in puzzles)),
        "proofs": dict(Counter(puzzle.proof.value for puzzle in puzzles)),
        "ratings": [puzzle.rating for puzzle in puzzles],
        "unread": unread,
    }


def _print(figures: MadeFigures) -> None:
    console = Console()
    looked = f"{figures['games']} games with {figures['positions']} positions"
    console.print(f"{figures['puzzles']} puzzles in {figures['file']}, from {looked}", highlight=False)
    counts = {"themes": figures["themes"], "goals": figures["goals"], "proofs": figures["proofs"]}
    for kind, numbers in counts.items():
        counted = ", ".join(f"{name} {count}" for name, count in numbers.items())
        console.print(f"{kind}: {counted}", highlight=False)
    if ratings := sorted(figures["ratings"]):
        tenths = ", ".join(str(ratings[min(len(ratings) - 1, len(ratings) * part // 10)]) for part in (0, 1, 5, 9, 10))
        console.print(f"ratings (least, a tenth, half, nine tenths, most): {tenths}", highlight=False)
    for reason in figures["unread"][:10]:
        console.print(f"Left out: {reason}", highlight=False, soft_wrap=True)
