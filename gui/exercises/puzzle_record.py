"""The player's records: puzzles (Glicko-2 rating, streaks, last results), lessons, and endings. No pygame."""

import random
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from engine.files import atomic_write, make_folder
from engine.puzzles.glicko import START_DEVIATION, START_VOLATILITY, Rating, Result, rated
from engine.puzzles.puzzle import Puzzle, Theme
from engine.sealed import sealed, unsealed

from ..preferences import set_aside
from .endgame_trainer import EndingClass

MOST_FAILED = 100  # most failed positions of a class that are kept to be repeated
_LARGEST_FILE = 16 << 20  # bytes of the largest file that is read
_NEAREST = 20  # number of puzzles nearest to the player's rating, from which one is drawn
_BEGINNING = 1000.0  # rating of a new player: about that of the level "casual"
_LEAST_DEVIATION = 60.0  # smallest deviation, so that a rating still changes after hundreds of puzzles

_SHOTS = frozenset({Theme.SHOT_1, Theme.SHOT_2, Theme.SHOT_3, Theme.SHOT_4, Theme.CAPTURE})
_OPPOSITION = frozenset({Theme.OPPOSITION, Theme.FIRST_POSITION})
CHOICES: dict[str, Collection[Theme]] = {
    "all": frozenset(Theme),
    "shots": _SHOTS,
    "breakthroughs": frozenset({Theme.BREAKTHROUGH}),
    "opposition": _OPPOSITION,
    "endings": frozenset({Theme.ENDING, *_OPPOSITION}),
    "attack": frozenset({Theme.ATTACK}),
    "defence": frozenset({Theme.DEFENCE}),
}
"""Groups of themes to choose from: name → themes."""
THEME_NAMES: dict[Theme, str] = {
    Theme.SHOT_1: "a shot: one piece is offered",
    Theme.SHOT_2: "a shot: two pieces are offered",
    Theme.SHOT_3: "a shot: three pieces are offered",
    Theme.SHOT_4: "a shot: four pieces or more are offered",
    Theme.CAPTURE: "the right capture",
    Theme.BREAKTHROUGH: "a breakthrough",
    Theme.FIRST_POSITION: "the first position",
    Theme.OPPOSITION: "the opposition",
    Theme.ENDING: "an ending",
    Theme.ATTACK: "an attack",
    Theme.DEFENCE: "a defence",
}


class StoredRecord(BaseModel):
    """A record of one player, stored under ``file_name`` next to the folder of games."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    file_name: ClassVar[str]

    version: Literal[1] = 1


Record = TypeVar("Record", bound=StoredRecord)


class PuzzleRecord(StoredRecord):
    """The puzzle record; ``results``: FEN → whether the first answer was right, the last time."""

    file_name = "puzzles.json"

    rating: float = Field(_BEGINNING, ge=-10_000, le=10_000)
    deviation: float = Field(START_DEVIATION, gt=0, le=START_DEVIATION)
    volatility: float = Field(START_VOLATILITY, gt=0, le=1)
    streak: int = Field(0, ge=0)
    best_streak: int = Field(0, ge=0)
    results: dict[str, bool] = Field({}, max_length=200_000)

    def enter(self, puzzle: Puzzle, solved: bool) -> float:
        """Notes a result and returns the change of the rating in points. A puzzle that was tried before counts for the
        streak and the results, but not for the rating, since its solution may be remembered."""
        before = self.rating
        if puzzle.fen not in self.results:
            now = Rating(self.rating, self.deviation, self.volatility)
            after = rated(now, [Result(puzzle.rating, puzzle.deviation, float(solved))])
            self.rating, self.volatility = after.rating, after.volatility
            self.deviation = min(START_DEVIATION, max(_LEAST_DEVIATION, after.deviation))
        self.results[puzzle.fen] = solved
        self.streak = self.streak + 1 if solved else 0
        self.best_streak = max(self.best_streak, self.streak)
        return self.rating - before

    def choose(self, puzzles: Sequence[Puzzle], choice: str, rng: random.Random) -> Puzzle | None:
        """Draws the next puzzle near the player's rating: a new one, else one that was not solved, else any. None if
        there is none with these themes.

        Args:
            choice: a key of ``CHOICES``.
        """
        fitting = [puzzle for puzzle in puzzles if puzzle.theme in CHOICES[choice]]
        for wanted in (None, False, True):
            left = [puzzle for puzzle in fitting if self.results.get(puzzle.fen) is wanted]
            if left:
                nearest = sorted(left, key=lambda puzzle: abs(puzzle.rating - self.rating))
                return rng.choice(nearest[:_NEAREST])
        return None

    @property
    def summary(self) -> str:
        """Rating with half of its 95 % interval, streaks, and number of solved puzzles, in one line."""
        tried, solved = len(self.results), sum(self.results.values())
        streak = f"{self.streak} in a row (best {self.best_streak})"
        return f"You: {self.rating:.0f} ± {1.96 * self.deviation:.0f} · {streak} · {solved} of {tried} solved"


class LessonRecord(StoredRecord):
    """Finished lessons; ``done``: title → whether it was finished without a hint or a wrong move."""

    file_name = "lessons.json"

    done: dict[str, bool] = Field({}, max_length=1000)

    def enter(self, title: str, flawless: bool) -> None:
        """Notes a finished lesson; one that was flawless once remains so."""
        self.done[title] = flawless or self.done.get(title, False)


class EndingResults(BaseModel):
    """Results in one class of endings.

    Attributes:
        tried, flawless: numbers of positions tried, and of those without a hint, a wrong move or too many moves.
        half_points: half points that wrong moves gave away.
        plies, shortest: sums over wins whose shortest way is known: plies needed, and plies of the shortest way.
        failed: FENs of positions to repeat, the latest last.
    """

    model_config = ConfigDict(extra="forbid")

    tried: int = Field(0, ge=0)
    flawless: int = Field(0, ge=0)
    half_points: int = Field(0, ge=0)
    plies: int = Field(0, ge=0)
    shortest: int = Field(0, ge=0)
    failed: list[str] = Field([], max_length=MOST_FAILED)

    def enter(self, fen: str, flawless: bool) -> None:
        """Notes a finished position; one that was not flawless will be repeated until it is."""
        self.tried += 1
        self.flawless += flawless
        failed = [other for other in self.failed if other != fen]
        self.failed = failed if flawless else [*failed, fen][-MOST_FAILED:]

    @property
    def summary(self) -> str:
        """The results in one line; "" before the first."""
        if not self.tried:
            return ""
        parts = [f"{self.flawless} of {self.tried} flawless"]
        if self.shortest:
            parts.append(f"{self.plies / self.shortest:.2f} times the shortest way")
        if self.half_points:
            parts.append(f"half points thrown away: {self.half_points}")
        if self.failed:
            parts.append(f"to repeat: {len(self.failed)}")
        return " · ".join(parts)


EndingKey = Annotated[str, AfterValidator(lambda key: EndingClass.of_key(key).key)]


class EndingRecord(StoredRecord):
    """Results of the endgame trainer; ``classes``: ``EndingClass.key`` → results, the last one being trained last."""

    file_name = "endings.json"

    classes: dict[EndingKey, EndingResults] = Field({}, max_length=1000)

    def of(self, kind: EndingClass) -> EndingResults:
        """The results of a class, which becomes the last of ``classes``."""
        self.classes[kind.key] = results = self.classes.pop(kind.key, EndingResults())
        return results


def load_record(path: Path, kind: type[Record]) -> tuple[Record, str]:
    """Reads a record; makes a new one if there is no file or it is damaged. A damaged file is renamed. Never raises.

    Returns:
        The record; and a one-line message that says what was wrong, "" if nothing.
    """
    try:
        with path.open("rb") as file:
            return kind.model_validate(unsealed(file.read(_LARGEST_FILE))), ""
    except FileNotFoundError:
        return kind(), ""
    except OSError as error:  # a new record must not replace it
        why = f"cannot be read ({error.strerror or error})"
    except ValueError:
        why = "was damaged"
    return kind(), f"{path.stem}: the record {why} and {set_aside(path)}; a new one begins"


def save_record(record: StoredRecord, path: Path) -> None:
    """Writes the record; raises ``StorageError`` on failure, and then the file is unchanged."""
    make_folder(path.parent)
    atomic_write(path, sealed(record.model_dump(mode="json")))
