"""The file of puzzles: sealed JSON (``engine.sealed``), compressed by Zstandard."""

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import zstandard
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import DraughtsError
from ..files import atomic_write, read_bytes
from ..sealed import sealed, unsealed
from .puzzle import Goal, Proof, Puzzle, Theme

SHIPPED = Path(__file__).parent / "data" / "puzzles.json.zst"
MOST_PUZZLES = 100_000
_LARGEST = 64 << 20  # bytes of the largest JSON that is read
_LEVEL = 19  # compression level of Zstandard
_Row = tuple[str, str, int, Goal, Theme, Proof, int, int]  # the fields of ``Puzzle``; the moves of the line as one text


class PuzzleFileError(DraughtsError):
    """A file is damaged or is not a file of puzzles; the message names it."""


@dataclass(frozen=True)
class PuzzleBook:
    """Puzzles and how they were made, so that the same command can continue with more games.

    Attributes:
        source: origin of the games: ``self-play``, or the name and checksum of a file of games.
        seed: seed of self-play.
        simulations: simulations of the search after each move in positions that no table covers.
        rounds: rounds of games that have been searched for puzzles.
        games, positions: games, and positions in them, that have been searched for puzzles.
    """

    source: str
    seed: int
    simulations: int
    rounds: int = 0
    games: int = 0
    positions: int = 0
    puzzles: tuple[Puzzle, ...] = ()


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal["crownhead puzzles"] = "crownhead puzzles"
    version: Literal[1] = 1
    source: str = Field(max_length=300)
    seed: int = Field(ge=0)
    simulations: int = Field(ge=1)
    rounds: int = Field(ge=0)
    games: int = Field(ge=0)
    positions: int = Field(ge=0)
    puzzles: list[_Row] = Field(max_length=MOST_PUZZLES)


def write_book(path: Path, book: PuzzleBook) -> None:
    """Writes a file of puzzles; raises ``StorageError`` on failure, and then an existing file is unchanged."""
    rows = [_row_of(puzzle) for puzzle in book.puzzles]
    stored = _Stored(**{**vars(book), "puzzles": rows}).model_dump(mode="json")
    atomic_write(path, zstandard.ZstdCompressor(level=_LEVEL).compress(sealed(stored)))


def read_book(path: Path) -> PuzzleBook:
    """Reads a file of puzzles. Does not check that their moves are legal.

    Raises ``StorageError``, or ``PuzzleFileError`` if the file is damaged or is not a file of puzzles.
    """
    data = read_bytes(path)
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)) as reader:
            text = reader.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise PuzzleFileError(f"{path}: it holds more than {_LARGEST >> 20} MiB")
        stored = _Stored.model_validate(unsealed(text))
        puzzles = tuple(_puzzle_of(row) for row in stored.puzzles)
    except PuzzleFileError:
        raise
    except ValidationError as error:
        raise PuzzleFileError(f"{path}: not a file of puzzles of this version: {error.errors()[0]['msg']}") from error
    except (zstandard.ZstdError, ValueError) as error:
        raise PuzzleFileError(f"{path}: not a file of puzzles, or damaged: {error}") from error
    return PuzzleBook(**stored.model_dump(exclude={"format", "version", "puzzles"}), puzzles=puzzles)


def _row_of(puzzle: Puzzle) -> _Row:
    told = puzzle.goal, puzzle.theme, puzzle.proof, puzzle.rating, puzzle.deviation
    return puzzle.fen, " ".join(puzzle.line), puzzle.asked, *told


def _puzzle_of(row: _Row) -> Puzzle:
    fen, line, asked, goal, theme, proof, rating, deviation = row
    if not (1 <= asked <= len(line.split()) and asked % 2 and 0 <= rating <= 10_000 and 0 < deviation <= 1_000):
        raise ValueError(f"the numbers of the puzzle {fen[:80]} are out of range")
    return Puzzle(fen, tuple(line.split()), asked, goal, theme, proof, rating, deviation)


@cache
def shipped_puzzles() -> tuple[Puzzle, ...]:
    """The puzzles of the package; raises as ``read_book``."""
    return read_book(SHIPPED).puzzles
