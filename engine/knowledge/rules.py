"""An ordered list of rules about endgames, learnt from the exact tables: the first rule that applies says who wins.

A file of rules is JSON with a checksum. It holds the conditions of each rule, in the words of ``features.FEATURES``,
and the points (weights) of the quantities that estimate the plies to the end of the game (``progress``).
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..bitboard import turned
from ..files import atomic_write, read_bytes
from ..outcomes import OUTCOMES
from ..sealed import sealed, unsealed
from ..tablebase.layout import code_of
from ..tablebase.material import NUM_CODES, Material, parse_name
from .features import FEATURES, WORDS, Lookup, new_lookup, write_features
from .progress import NUM_QUANTITIES, QUANTITIES, write_quantities

VERSION = 1
SHIPPED = Path(__file__).with_name("rules.json")
_CONSTANT, _OTHERS = "constant", "others"
_BITS = 64
_LITERALS = {
    text: (number, positive)
    for number, feature in enumerate(FEATURES)
    for text, positive in ((feature.yes, True), (feature.no, False))
}

Literal = tuple[int, bool]
"""A feature's number, and whether the feature must hold (True) or must not (False)."""


class RulesError(ValueError):
    """A file of rules cannot be used; the message says why."""


class Rule(NamedTuple):
    """Conditions that must all hold, and the outcome for the side to move as an index of ``OUTCOMES``."""

    conditions: tuple[Literal, ...]
    outcome: int

    @property
    def words(self) -> tuple[str, ...]:
        """The conditions in the words of ``FEATURES``."""
        return tuple(FEATURES[number].yes if positive else FEATURES[number].no for number, positive in self.conditions)

    def __str__(self) -> str:
        if not self.conditions:
            return f"Otherwise it is a {OUTCOMES[self.outcome]}."
        return f"If {', and '.join(self.words)}, it is a {OUTCOMES[self.outcome]}."


class RuleList(NamedTuple):
    """Rules, and the points that estimate how many plies a win takes.

    Attributes:
        rules: in order; the last one has no condition, so that it always applies.
        points: by material, seen by the winner: a constant, then the points of each of ``progress.QUANTITIES``. The
            key None holds the points for all other material.
        source: how the list was learnt.
    """

    rules: tuple[Rule, ...]
    points: dict[Material | None, tuple[float, ...]]
    source: dict[str, Any]


class Masks(NamedTuple):
    """Rules for kernels: features that must hold and that must not, each uint64 [R, WORDS]; outcomes int64 [R]."""

    wanted: np.ndarray
    unwanted: np.ndarray
    outcomes: np.ndarray


def points_table(points: dict[Material | None, tuple[float, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """The points as an array, float64 [materials, 1 + quantities], and the row of each ``Material.code``."""
    rows = np.zeros(NUM_CODES, np.int64)
    ordered = [None, *sorted(material for material in points if material is not None)]
    for row, material in enumerate(ordered):
        if material is not None:
            rows[material.code] = row
    return np.array([points[material] for material in ordered]), rows


def masks_of(rules: tuple[Rule, ...]) -> Masks:
    masks = np.zeros((2, len(rules), WORDS), np.uint64)
    for place, rule in enumerate(rules):
        for number, positive in rule.conditions:
            masks[0 if positive else 1, place, number // _BITS] |= np.uint64(1) << np.uint64(number % _BITS)
    return Masks(masks[0], masks[1], np.array([rule.outcome for rule in rules], np.int64))


@njit(cache=True)
def deciding_rule(words, masks):
    """The number of the first rule that applies to features ``words``, uint64 [WORDS]; the last if no other does."""
    last = masks.wanted.shape[0] - 1
    for place in range(last):
        met = True
        for w in range(WORDS):
            wanted = masks.wanted[place, w]
            met &= words[w] & wanted == wanted and words[w] & masks.unwanted[place, w] == 0
        if met:
            return place
    return last


@njit(cache=True, nogil=True)
def decide_many(words, masks, decided):
    """Sets ``decided``, int64 [N], to ``deciding_rule`` of each row of ``words``, uint64 [N, WORDS]."""
    for i in range(words.shape[0]):
        decided[i] = deciding_rule(words[i], masks)


@njit(cache=True)
def _judge(own, opp, kings, tables, masks, points, rows, words, quantities):
    """(rule, plies) of a position, see ``Judge.judge``; ``words`` and ``quantities`` are buffers."""
    write_features(own, opp, kings, tables, words)
    rule = deciding_rule(words, masks)
    outcome = masks.outcomes[rule]
    if outcome == 1:
        return rule, 0.0
    write_quantities(own, opp, kings, outcome == 0, tables.buffers, quantities)
    code = code_of(own, opp, kings) if outcome == 0 else code_of(turned(opp), turned(own), turned(kings))
    row = points[rows[code]]
    plies = row[0]
    for i in range(quantities.shape[0]):
        plies += row[i + 1] * quantities[i]
    return rule, plies


class Judge:
    """Judges positions by a list of rules; the rules are meant for quiet positions. Not thread-safe."""

    def __init__(self, rules: RuleList) -> None:
        self.rules = rules
        self._masks, (self._points, self._rows) = masks_of(rules.rules), points_table(rules.points)
        self._tables: Lookup | None = None
        self._words, self._quantities = np.zeros(WORDS, np.uint64), np.zeros(NUM_QUANTITIES)

    def judge(self, own: int, opp: int, kings: int) -> tuple[int, float]:
        """The number of the rule that decides a position, seen by its side to move, and the estimated plies to the
        game's end: 0 for a draw."""
        self._tables = self._tables or new_lookup()
        position = np.uint32(own), np.uint32(opp), np.uint32(kings)
        knowledge = self._masks, self._points, self._rows
        rule, plies = _judge(*position, self._tables, *knowledge, self._words, self._quantities)
        return int(rule), float(plies)


def rule_of(words: list[str], outcome: str) -> Rule:
    """The rule with these conditions and this outcome; raises ``RulesError`` if one of the texts is unknown."""
    unknown = [text for text in words if text not in _LITERALS] + ([outcome] if outcome not in OUTCOMES else [])
    if unknown:
        advice = "learn new rules with `crownhead rules --learn FILE`"
        raise RulesError(f"{unknown[0]!r} is an unknown condition or outcome: {advice}")
    return Rule(tuple(_LITERALS[text] for text in words), OUTCOMES.index(outcome))


def _shown(points: tuple[float, ...]) -> dict[str, float]:
    """The points that are not 0, by name."""
    return {name: value for name, value in zip((_CONSTANT, *QUANTITIES), points, strict=True) if value}


def _points(shown: dict[str, float]) -> tuple[float, ...]:
    unknown = shown.keys() - {_CONSTANT, *QUANTITIES}
    if unknown:
        raise RulesError(f"{min(unknown)!r} is an unknown quantity")
    points = tuple(float(shown.get(name, 0.0)) for name in (_CONSTANT, *QUANTITIES))
    if not all(map(math.isfinite, points)):
        raise RulesError("its plies hold a number that is not finite")
    return points


def save_rules(path: Path, rules: RuleList) -> None:
    """Writes a file of rules; raises ``StorageError``."""
    fields = {
        "version": VERSION,
        "source": rules.source,
        "rules": [{"if": list(rule.words), "then": OUTCOMES[rule.outcome]} for rule in rules.rules],
        "plies": {
            _OTHERS if material is None else material.name: _shown(points) for material, points in rules.points.items()
        },
    }
    atomic_write(path, sealed(fields))


def load_rules(path: Path | None = None) -> RuleList:
    """Reads the rules of a file; the rules of the package if ``path`` is None.

    Raises ``StorageError``, or ``RulesError`` if the file is damaged or has another version.
    """
    if path is None:
        return _shipped()
    data = read_bytes(path)
    try:
        return _parse(unsealed(data))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise RulesError(f"{path}: not a file of rules ({error!s})") from error


@cache
def _shipped() -> RuleList:
    return load_rules(SHIPPED)


def _parse(fields: Any) -> RuleList:
    if fields["version"] != VERSION:
        raise RulesError(f"it is of version {fields['version']}, not {VERSION}")
    rules = tuple(rule_of(one["if"], one["then"]) for one in fields["rules"])
    if not rules or rules[-1].conditions:
        raise RulesError("the last rule must have no condition")
    if _OTHERS not in fields["plies"]:
        raise RulesError(f"its plies lack {_OTHERS!r}")
    plies = {None if name == _OTHERS else parse_name(name): _points(shown) for name, shown in fields["plies"].items()}
    return RuleList(rules, plies, json.loads(json.dumps(fields["source"])))
