"""Names of openings: those that have one by tradition (``openings.csv``), and the three-move ballots by their number.

An opening is known by its position, on whatever way that was reached.
"""

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from .ballots import ballots
from .fen import START_FEN
from .position_keys import keys_of_game

LONGEST = 12  # plies; no name needs more


@cache
def _names() -> dict[int, str]:
    """Key of the position → name."""
    text = files(__package__).joinpath("openings.csv").read_text("utf-8")
    return {
        int(keys_of_game(START_FEN, row["moves"].split())[-1]): row["name"] for row in csv.DictReader(text.splitlines())
    }


@cache
def _numbers() -> dict[int, int]:
    """Key of the position → number of the ballot, the first one where two lead there."""
    return {int(keys_of_game(START_FEN, ballot.moves)[-1]): ballot.number for ballot in reversed(ballots())}


def opening_of(keys: Sequence[int]) -> str:
    """The opening of a game as ``Defiance, ballot 128``: the last name that its positions had, and its ballot.

    Args:
        keys: of its positions, see ``position_keys``.

    Returns:
        "" where the game does not begin from the normal position, or has no known beginning.
    """
    early = [int(key) for key in keys[: LONGEST + 1]]
    if not early or early[0] != _start():
        return ""
    name = next((_names()[key] for key in reversed(early) if key in _names()), "")
    number = _numbers().get(early[3]) if len(early) > 3 else None
    return ", ".join(filter(None, [name, f"ballot {number}" if number else ""]))


@cache
def _start() -> int:
    return int(keys_of_game(START_FEN, ())[0])
