"""The page about the rules: each with a board, how often it decides, how often it errs, and where."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine import svg
from engine.board import Board
from engine.fen import Color, format_fen
from engine.files import atomic_write, make_folder, read_bytes
from engine.knowledge.rules import OUTCOMES, RuleList

from .rules_learning import Positions, measure

PAGE = "rules.md"
_FOLDER = "rules"  # folder of the pictures, beside the page
_HEAD = """# Rules found in the tables

{rules} rules say who wins a quiet endgame, one in which neither side could capture, were it to move. They stand in
order: the first rule whose conditions are all met decides. This page is written by `crownhead rules --out
docs/endgames`, the list that comes with the package (`engine/knowledge/rules.json`) by `crownhead rules --learn FILE`.
The words are explained at the end. Examples have Black to move, down the board.

{table}

Positions of five pieces, here and below, are a random sample; the others are all that there are.

With only some of the rules, chosen one by one where they help most, quiet positions of 2 to 4 pieces are judged right
in: {curve}.
"""
_WORDS = """## Words

- *Safe move*: one that loses no piece to the captures that follow it.
- *Shot*: a quiet move after which forced captures win a piece.
- *The move* (the opposition): counted on your own back row and every second row from there; an odd number of pieces
  means that the side whose turn it is has it.
- *Double corner*: squares 1 and 5, or 28 and 32. *Single corners*: 4 and 29. *Centre*: 10, 11, 14, 15, 18,
  19, 22 and 23. *Bridge*: men on 1 and 3 (White: 30 and 32). *Dog hole*: 28 for a black man behind which a white man
  stands on 32, 5 for a white one.
- *Steps from crowning*: rows that a man has yet to go. *Crowns first*: its nearest man has fewer than the other
  side's, or as many while it is its turn.
- *Would win one against one*: these two pieces alone on the board, by the tables of two pieces; *moving second*: the
  opponent's turn.
- *No single enemy king can stop*: a man alone against a king alone is crowned.
- What the opponent can do is meant as if it were its turn; whether a king can stop its men is not.
"""


class RulePart(NamedTuple):
    """What a rule does on quiet positions.

    Attributes:
        covered, errors: by number of pieces, positions that it decides, and those of them that it gets wrong.
        example, exception: FENs of a position that it gets right, and of one that it does not, if there are any.
    """

    covered: dict[int, int]
    errors: dict[int, int]
    example: str | None
    exception: str | None


def rule_parts(rules: RuleList, positions: Sequence[Positions], seed: int) -> list[RulePart]:
    """What each rule does on sets of positions; examples are drawn by the seed, from the first set that has any."""
    parts = [RulePart({}, {}, None, None) for _ in rules.rules]
    rng = np.random.default_rng(seed)
    for some in positions:
        decided, right = measure(rules, some)
        for number in np.unique(some.pieces).tolist():
            here = some.pieces == number
            covered = np.bincount(decided[here], minlength=len(parts))
            errors = np.bincount(decided[here & ~right], minlength=len(parts))
            for place, part in enumerate(parts):
                part.covered[number], part.errors[number] = int(covered[place]), int(errors[place])
        for place, part in enumerate(parts):
            mine = decided == place
            example, exception = (_drawn(some, mine & kind, rng) for kind in (right, ~right))
            parts[place] = part._replace(example=part.example or example, exception=part.exception or exception)
    return parts


def _drawn(positions: Positions, chosen: np.ndarray, rng: np.random.Generator) -> str | None:
    places = np.flatnonzero(chosen)
    if not len(places):
        return None
    own, opp, kings = positions.words[rng.choice(places)].tolist()
    return format_fen(Color.BLACK, own, opp, kings)


def read_page(path: Path) -> str:
    """A page of ``write_page``; raises ``ValueError`` for other files, ``StorageError`` if it cannot be read."""
    text = read_bytes(path).decode("utf-8", "replace")
    if not text.startswith(_HEAD.partition("\n")[0]):
        raise ValueError(path)
    return text


def write_page(folder: Path, rules: RuleList, parts: Sequence[RulePart], right: Sequence[float]) -> Path:
    """Writes the page and its pictures into a folder; returns the page's path. Raises ``StorageError``.

    Args:
        right: share of right answers with k of the rules, from 1 on.
    """
    make_folder(folder / _FOLDER)
    for old in (folder / _FOLDER).glob("rule-*.svg"):
        old.unlink()
    text = _HEAD.format(rules=len(rules.rules), table="\n".join(_table(parts)), curve=", ".join(_curve(right)))
    for number, (rule, part) in enumerate(zip(rules.rules, parts, strict=True), 1):
        text += "\n" + "\n".join(_section(number, str(rule), OUTCOMES[rule.outcome], part))
        if part.example is not None:
            atomic_write(folder / _FOLDER / f"rule-{number}.svg", svg.board(Board(part.example)).encode())
    atomic_write(folder / PAGE, (text + "\n" + _WORDS).encode())
    return folder / PAGE


def _table(parts: Sequence[RulePart]) -> Iterator[str]:
    yield "| pieces | quiet positions | right |"
    yield "|---|---|---|"
    for number in sorted(parts[0].covered):
        covered, errors = sum(part.covered[number] for part in parts), sum(part.errors[number] for part in parts)
        yield f"| {number} | {covered:,} | {1 - errors / covered:.2%} |"


def _curve(right: Sequence[float]) -> Iterator[str]:
    for k in sorted({1, 2, 3, 5, *range(10, len(right), 10), len(right)} & set(range(1, len(right) + 1))):
        yield f"{k} rules {right[k - 1]:.2%}" if k > 1 else f"1 rule {right[0]:.2%}"


def _section(number: int, text: str, outcome: str, part: RulePart) -> Iterator[str]:
    covered, errors = sum(part.covered.values()), sum(part.errors.values())
    yield f"## {number}. {outcome.capitalize()}"
    yield ""
    yield text
    yield ""
    shares = (
        f"{n} pieces: {part.covered[n]:,}, {part.errors[n]:,} wrong" for n in sorted(part.covered) if part.covered[n]
    )
    wrong = f"{errors / covered:.2%} of them wrong" if covered else "none of them wrong"
    yield f"It decides {covered:,} positions, {wrong} ({'; '.join(shares)})."
    yield ""
    if part.example is not None:
        yield f"![Example of rule {number}]({_FOLDER}/rule-{number}.svg)"
        yield ""
        yield f"Example: `{part.example}`. " + (
            f"Exception: `{part.exception}`." if part.exception else "No exception."
        )
        yield ""
