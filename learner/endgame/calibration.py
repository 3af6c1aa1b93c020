"""Calibration of an oracle on the validation split: temperatures, and where to search at what cost."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .data import Values
from .extrapolation import rule_beyond
from .member import MAX_ROUNDS, Member, OracleError
from .networks import EndgameNetwork
from .oracle import Oracle
from .probabilities import log_probabilities, softmax
from .questions import Questions
from .resolve import CHANGED, MOST_AT_ONCE, MOST_EVALUATIONS, STEADY, Judge, Resolved, resolve, search_rounds

DEFAULT_BUDGET = 64.0
"""Evaluations per position, on the mean. Errors fall by about an eighth with every doubling of it, slower from here on;
one core still judges ten thousand positions a second, and nine positions in ten need no search at all."""
THRESHOLDS = (0.6, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998)
_CHUNK = 1 << 8
_TIRED = MOST_EVALUATIONS / DEFAULT_BUDGET  # times the budget: what one position may take
_GIVE_UP = 2.0  # times its share of the budget may one part of the positions take, before all do without that round
_TEMPERATURES = (0.05, 20.0)
FEWEST = 200  # positions to fit a temperature of their own on; below, it is fitted on more


class SearchChoice(NamedTuple):
    """How to search, and what that gave on the positions on which it was chosen.

    Attributes:
        threshold, rounds: see ``resolve``.
        error: fraction of wrong verdicts.
        evaluations: evaluations per position, on the mean.
    """

    threshold: float
    rounds: int
    error: float
    evaluations: float


def likelihood_loss(probabilities: np.ndarray, classes: np.ndarray) -> float:
    """Mean negative logarithm of the probabilities [N, 3] given to the right classes int64 [N]."""
    right = probabilities[np.arange(len(classes)), classes].astype(np.float64)
    return float(-np.log(np.maximum(right, np.finfo(np.float32).tiny)).mean())


def fit_temperature(logits: np.ndarray, classes: np.ndarray) -> float:
    """The temperature that makes the right classes int64 [N] most likely under logits float32 [N, 3]."""
    from scipy.optimize import minimize_scalar  # only training an oracle needs it

    low, high = np.log(_TEMPERATURES)
    found = minimize_scalar(
        lambda log: likelihood_loss(softmax(logits, float(np.exp(log))), classes), bounds=(low, high), method="bounded"
    )
    return float(np.exp(found.x))


def choose_search(
    positions: np.ndarray,
    classes: np.ndarray,
    judge: Judge,
    budget: float,
    thresholds: Sequence[float] = THRESHOLDS,
    max_rounds: int = MAX_ROUNDS,
    report: Callable[[float], object] = lambda done: None,
) -> SearchChoice:
    """The threshold and the number of rounds with the fewest errors among those within the budget.

    Args:
        positions: uint32 [N, 4]. classes: int64 [N], right ones.
        budget: most evaluations per position, on the mean. The capture search is allowed whatever it costs.
        report: told, after each threshold, what share of them is done.
    """
    base, tired = resolve(positions, judge), round(_TIRED * budget)
    size = min(_CHUNK, max(1, MOST_AT_ONCE // max(1, tired)))  # bounds the memory
    wrong = base.probabilities.argmax(1) != classes
    best = SearchChoice(0.0, 0, float(wrong.mean()), float(base.evaluations.mean()))
    for number, threshold in enumerate(thresholds):
        report(number / len(thresholds))
        unsure = base.confidence < threshold
        known = np.array([wrong[~unsure].sum(), base.evaluations[~unsure].sum()], np.float64)
        most = _GIVE_UP * (budget * len(positions) - known[1]) / max(1, unsure.sum())
        totals = np.tile(known, (max_rounds + 1, 1))
        places = np.flatnonzero(unsure)
        for start in range(0, len(places), size):
            part = places[start : start + size]
            totals += _totals(positions[part], classes[part], judge, max_rounds, threshold, most * len(part), tired)
        for rounds, (error, cost) in enumerate((totals / len(positions)).tolist()):
            if cost <= budget and (error, cost) < (best.error, best.evaluations):
                best = SearchChoice(threshold, rounds, error, cost)
    return best


def _totals(
    positions: np.ndarray, classes: np.ndarray, judge: Judge, max_rounds: int, threshold: float, most: float, tired: int
) -> np.ndarray:
    """float64 [max_rounds + 1, 2]: errors and evaluations by number of rounds; infinite where these exceed ``most``."""
    totals = np.full((max_rounds + 1, 2), np.inf)
    for rounds, found in enumerate(search_rounds(positions, judge, max_rounds, threshold, tired)):
        evaluations = float(found.evaluations.sum())
        if evaluations > most:
            totals[rounds:] = np.inf
            break
        totals[rounds:] = (found.probabilities.argmax(1) != classes).sum(), evaluations
    return totals


def calibrate_oracle(
    networks: Sequence[tuple[EndgameNetwork, tuple[int, int]]],
    tables: Values,
    budget: float = DEFAULT_BUDGET,
    positions: int = 100_000,
    seed: int = 1,
    report: Callable[[str, float | None], object] = lambda text, done: None,
    reached: np.ndarray | None = None,
    kept: Sequence[Member] = (),
) -> Oracle:
    """An oracle of these networks, with temperatures, thresholds and rounds that serve it best on the validation split.

    Every network is calibrated on the piece counts that it will be asked about, as far as the tables reach; the last
    one also gets the rule for more pieces than that (``trust``), if a smaller one can be tried beyond its own.

    Args:
        networks: each with the fewest and most pieces it is for.
        budget: most evaluations per position, on the mean.
        positions: to be drawn for each choice.
        report: told what is done, and what share of it, None where that is not known.
        reached: uint32 [N, 4], positions of games, of any number of pieces; half of the positions then lie around them.
        kept: calibrated members that belong to the oracle as they are; only the rule for more pieces is made anew.

    Raises:
        OracleError: no network, two for the same pieces, or one for more pieces than the tables have; or a budget that
            memory does not allow.
    """
    members, ranges = members_of(networks, budget, tables.pieces, kept)
    chosen_for = [(i, low, high) for i, (low, high) in enumerate(ranges) if not members[i].calibrated]
    source = Questions(tables, positions, seed, reached)
    for i, low, high in chosen_for:
        report(f"temperature for {low} to {high} pieces", None)
        batch = source.draw(low, high, i, quiet=True)
        temperature = fit_temperature(members[i].network.wdl_logits(batch.positions), batch.classes)
        members[i] = replace(members[i], temperature=temperature)
    judge = Oracle(members).network_probabilities
    for i, low, high in chosen_for:
        what = f"threshold for {low} to {high} pieces"
        report(what, 0.0)
        batch = source.draw(low, high, len(members) + i)
        choice = choose_search(batch.positions, batch.classes, judge, budget, report=partial(report, what))
        evaluations = round(_TIRED * budget)
        found = resolve(batch.positions, judge, choice.rounds, choice.threshold, evaluations)
        members[i] = replace(
            members[i],
            evaluations=evaluations,
            threshold=choice.threshold,
            rounds=choice.rounds,
            search_temperature=_searched_temperature(found, batch.classes, STEADY),
            changed_temperature=_searched_temperature(found, batch.classes, CHANGED),
            calibrated=high,
        )
    members[-1] = replace(members[-1], beyond=rule_beyond(members, source, report))
    return Oracle(members)


def members_of(
    networks: Sequence[tuple[EndgameNetwork, tuple[int, int]]], budget: float, pieces: int, kept: Sequence[Member] = ()
) -> tuple[list[Member], list[tuple[int, int]]]:
    """The networks as members, and the fewest and most pieces that each will be asked about.

    Args:
        budget, pieces, kept: see ``calibrate_oracle``; the most pieces of its tables.

    Raises:
        OracleError: see ``calibrate_oracle``.
    """
    if round(_TIRED * budget) > MOST_AT_ONCE:
        raise OracleError(f"a budget of {budget:,.0f} evaluations: at most {MOST_AT_ONCE / _TIRED:,.0f} are possible")
    members = [*(replace(member, beyond=None) for member in kept), *(Member(network, of) for network, of in networks)]
    members.sort(key=lambda member: member.pieces[1])
    return members, _ranges(members, pieces)


def _searched_temperature(found: Resolved, classes: np.ndarray, way: int) -> float:
    """The temperature for what rounds found of the positions judged in one way; 1 where there are few."""
    rows = found.ways == way
    if np.count_nonzero(rows) < FEWEST:
        rows = (found.ways == STEADY) | (found.ways == CHANGED)
    return fit_temperature(log_probabilities(found.probabilities[rows]), classes[rows]) if rows.any() else 1.0


def _ranges(members: Sequence[Member], pieces: int) -> list[tuple[int, int]]:
    """The piece counts that each member, from the fewest pieces on, will be asked about and the tables know."""
    ends = [1, *(member.pieces[1] for member in members)]
    for below, above in pairwise(ends):
        if below >= above:
            raise OracleError(f"two networks are for up to {above} pieces: give one")
        if below >= pieces:
            raise OracleError(
                f"a network for {below + 1} to {above} pieces needs tables of as many; these end at {pieces}"
            )
    return [(below + 1, min(above, pieces)) for below, above in pairwise(ends)]
