"""Learns an ordered list of rules over yes-or-no features: the first rule that applies decides.

The list grows from its end. It begins with one rule that always applies; then, again and again, the rule is put in
front that takes away most errors (as in decision lists of exceptions: Rivest 1987, "Learning Decision Lists"; found
here by beam search over conjunctions). A full list is polished: each rule in turn is taken out, and the best one for
its place is put there instead.

Positions with the same features are one example, with the number of positions of each class.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from engine.knowledge.rules import Literal, Rule, decide_many, masks_of

NUM_CLASSES = 3  # win, draw, loss, as the logits of networks
_WORD = 64
_MOST_CONDITIONS = 4  # of a rule


class Examples(NamedTuple):
    """Features uint64 [U, words] of U different examples, and counts int64 [U, 3] of their positions by class."""

    features: np.ndarray
    counts: np.ndarray


def gather(features: np.ndarray, classes: np.ndarray) -> Examples:
    """Examples of positions, in the order of their features.

    Args:
        features: uint64 [N, words].
        classes: int64 [N], 0 to 2.
    """
    order = np.lexsort(features.T)
    features, classes = features[order], classes[order]
    first = np.ones(len(features), bool)
    first[1:] = (features[1:] != features[:-1]).any(axis=1)
    index = np.cumsum(first) - 1
    counts = np.zeros((int(first.sum()), NUM_CLASSES), np.int64)
    np.add.at(counts, (index, classes), 1)
    return Examples(features[first], counts)


def applies(rule: Rule, features: np.ndarray) -> np.ndarray:
    """Which examples, uint64 [U, words], meet a rule's conditions: bool [U]."""
    masks = masks_of((rule,))
    wanted, unwanted = masks.wanted[0], masks.unwanted[0]
    return (((features & wanted) == wanted) & ((features & unwanted) == 0)).all(axis=1)


def decide(rules: list[Rule], features: np.ndarray) -> np.ndarray:
    """The number of the rule that decides each example, int64 [U]; the last rule applies to all."""
    decided = np.zeros(len(features), np.int64)
    decide_many(features, masks_of(tuple(rules)), decided)
    return decided


def classes_of(rules: list[Rule], decided: np.ndarray) -> np.ndarray:
    """The class that the deciding rules give, int64 [U]."""
    return np.array([rule.outcome for rule in rules], np.int64)[decided]


def errors_of(rules: list[Rule], examples: Examples) -> int:
    """Positions that a list gives another class than theirs."""
    chosen = classes_of(rules, decide(rules, examples.features))
    right = np.take_along_axis(examples.counts, chosen[:, None], axis=1).sum()
    return int(examples.counts.sum() - right)


@njit(cache=True)
def _bit_of(low):
    """The place of the only bit that is set in a uint64."""
    bit = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if low >> np.uint64(shift) != 0:
            low >>= np.uint64(shift)
            bit += shift
    return bit


@njit(cache=True, nogil=True)
def _add_up(features, gains, rows, sums, totals):
    """Adds up what rows would gain and what they would lose by each class.

    Args:
        features: uint64 [U, words].
        gains: int64 [U, 3], errors that each class would take away, below 0 where it would add some.
        rows: the rows, int64 [n].
        sums: int64 [features, 6], set: of the rows with each feature, gained by each class, then lost.
        totals: int64 [6], set: of all rows.
    """
    here = np.zeros(2 * NUM_CLASSES, np.int64)
    for i in range(rows.shape[0]):
        row = rows[i]
        idle = True
        for c in range(NUM_CLASSES):
            gain = gains[row, c]
            here[c], here[NUM_CLASSES + c] = max(gain, 0), max(-gain, 0)
            idle &= gain == 0
        if idle:
            continue
        totals += here
        for w in range(features.shape[1]):
            word = features[row, w]
            while word != 0:
                at = w * _WORD + _bit_of(word & (~word + np.uint64(1)))
                word &= word - np.uint64(1)
                for c in range(2 * NUM_CLASSES):
                    sums[at, c] += here[c]


class _Candidate(NamedTuple):
    """A rule, the errors that it takes away, and those that it adds."""

    won: int
    lost: int
    rule: Rule

    @property
    def gain(self) -> int:
        return self.won - self.lost


_WEIGHTS = 1.0, 0.5, 0.25, 0.1
"""Weights of the errors that a rule adds while it grows: conditions that it still gets may spare some of them."""


class ListLearner:
    """Learns a list.

    Args:
        examples: what is learnt from.
        usable: numbers of the features that rules may use.
        width: rules kept in each step of the search for one (the beam).
    """

    def __init__(self, examples: Examples, usable: list[int], width: int = 16) -> None:
        self._examples, self._usable = examples, np.array(usable)
        self._width = width

    def learn(self, most_rules: int, report: Callable[[list[Rule]], None] = lambda rules: None) -> list[Rule]:
        """A list of at most ``most_rules`` rules; ``report`` is told of each list on the way."""
        rules = [Rule((), int(self._examples.counts.sum(axis=0).argmax()))]
        while len(rules) < most_rules:
            found = self._best_rule([], rules)
            if found is None:
                break
            rules = [found, *rules]
            report(rules)
        return rules

    def polish(self, rules: list[Rule], report: Callable[[int], None] = lambda done: None) -> list[Rule]:
        """The list with every rule, the last one aside, replaced by the best for its place, one after the other.

        ``report`` is told how many have been looked at.
        """
        for i in range(len(rules) - 1):
            before, behind = rules[:i], rules[i + 1 :]
            found = self._best_rule(before, behind)
            changed = before + ([] if found is None else [found]) + behind
            if errors_of(changed, self._examples) < errors_of(rules, self._examples) and len(changed) == len(rules):
                rules = changed
            report(i + 1)
        return rules

    def _best_rule(self, before: list[Rule], behind: list[Rule]) -> Rule | None:
        """The rule that takes away most errors between these; None if none does."""
        features, counts = self._examples
        free = np.ones(len(features), bool)
        for rule in before:
            free &= ~applies(rule, features)
        chosen = classes_of(behind, decide(behind, features))
        gains = counts - np.take_along_axis(counts, chosen[:, None], axis=1)
        gains[~free] = 0
        beam, best = [Rule((), outcome) for outcome in range(NUM_CLASSES)], _Candidate(0, 0, Rule((), 0))
        for _ in range(_MOST_CONDITIONS):
            found = {self._key(one.rule): one for rule in beam for one in self._refined(rule, gains)}
            if not found:
                break
            best = max(best, *found.values(), key=lambda one: one.gain)
            beam = self._widest(list(found.values()))
        return best.rule if best.gain > 0 else None

    def _widest(self, found: list[_Candidate]) -> list[Rule]:
        """Conditions that may begin a good rule: the best by each weight, the same number of each."""
        beam: dict[tuple[frozenset[Literal], int], Rule] = {}
        for weight in _WEIGHTS:
            ranked = sorted(found, key=lambda one: (weight * one.lost - one.won, one.rule))
            beam |= {self._key(one.rule): one.rule for one in ranked[: self._width // len(_WEIGHTS)]}
        return list(beam.values())

    @staticmethod
    def _key(rule: Rule) -> tuple[frozenset[Literal], int]:
        return frozenset(rule.conditions), rule.outcome

    def _refined(self, rule: Rule, gains: np.ndarray) -> list[_Candidate]:
        """The rule with one more condition, in the ways that are best by some weight."""
        features, outcome = self._examples.features, rule.outcome
        rows = np.flatnonzero(applies(rule, features))
        sums = np.zeros((features.shape[1] * _WORD, 2 * NUM_CLASSES), np.int64)
        totals = np.zeros(2 * NUM_CLASSES, np.int64)
        _add_up(features, gains, rows, sums, totals)
        columns = [outcome, NUM_CLASSES + outcome]
        used, candidates = {feature for feature, _ in rule.conditions}, []
        usable = np.array([at for at in self._usable.tolist() if at not in used])
        for positive in (True, False):
            won, lost = (sums[:, columns] if positive else totals[columns] - sums[:, columns])[usable].T
            chosen = {
                i for w in _WEIGHTS for i in np.argsort(w * lost - won, kind="stable")[: self._width // 4].tolist()
            }
            for i in sorted(chosen):
                refined = Rule((*rule.conditions, (int(usable[i]), positive)), outcome)
                candidates.append(_Candidate(int(won[i]), int(lost[i]), refined))
        return [one for one in candidates if one.won > 0]
