"""Rules about endgames, learnt from the exact tables: the quiet positions, the list, and what it gets wrong."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from engine.knowledge.exchanges import is_quiet, new_buffers
from engine.knowledge.features import NUM_FEATURES, features_of
from engine.knowledge.progress import NUM_QUANTITIES, write_many
from engine.knowledge.rules import Rule, RuleList
from engine.tablebase import Tablebase
from engine.tablebase.dense import DenseTables
from engine.tablebase.layout import NUM_KINDS, layout_of
from engine.tablebase.material import MIN_PIECES, Material, materials, materials_between
from engine.tablebase.solve import Grid, canonical_places, grid_of, place_word, seen_by_mover

from .data import FLAG_NONE, EndgameSampler, codes_of
from .decision_list import ListLearner, classes_of, decide, gather

EXHAUSTED_PIECES = 4  # all quiet positions with at most this number of pieces are looked at; of one more, a sample
_CHUNK = 100_000  # positions between two reports
_RIDGE = 1e-3
_PAIRS_COUNT, _PART, _OF_FIVE = 10, 0.12, 100_000
_CURVE_SAMPLE = 40_000


class Positions(NamedTuple):
    """N quiet positions: words uint32 [N, 3], values int8 [N] (1, 0, -1), features uint64 [N, words]."""

    words: np.ndarray
    values: np.ndarray
    features: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        """int64 [N], places in ``rules.OUTCOMES``."""
        return 1 - self.values.astype(np.int64)

    @property
    def pieces(self) -> np.ndarray:
        """int64 [N], pieces on the board."""
        return np.bitwise_count(self.words[:, 0] | self.words[:, 1]).astype(np.int64)


@njit(cache=True, nogil=True)
def _quiet_words(grid, values, words, found):
    """Writes the quiet positions of a slice and their values as far as there is room; returns their number.

    Args:
        values: uint32 [words, 2], won and lost positions of the slice.
        words, found: uint32 [N, 3] and int8 [N], set.
    """
    ranks, pieces = np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    n = 0
    for word in range(grid.words):
        taken = place_word(grid, word, ranks, pieces)
        others = pieces[grid.roamer]
        places = canonical_places(grid.roamer, taken, others)
        while places != 0:
            bit = np.uint32(places & (~places + np.uint32(1)))
            places ^= bit
            pieces[grid.roamer] = others | bit
            own, opp, kings = seen_by_mover(grid, pieces)
            if not is_quiet(own, opp, kings):
                continue
            if n < words.shape[0]:
                words[n, 0], words[n, 1], words[n, 2] = own, opp, kings
                won, lost = values[word, 0] & bit != 0, values[word, 1] & bit != 0
                found[n] = np.int8(won) - np.int8(lost)
            n += 1
        pieces[grid.roamer] = others
    return n


def quiet_positions(tables: DenseTables, pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """All quiet positions of 2 to ``pieces`` pieces: words uint32 [N, 3], values int8 [N]. Each stands there once."""
    slices = materials_between(MIN_PIECES, pieces)
    found = [_quiet_slice(grid_of(layout_of(one), not one.leads), tables.slice_rows(one)) for one in slices]
    return np.concatenate([words for words, _ in found]), np.concatenate([values for _, values in found])


def _quiet_slice(grid: Grid, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    count = _quiet_words(grid, rows, np.zeros((0, 3), np.uint32), np.zeros(0, np.int8))
    words, values = np.zeros((count, 3), np.uint32), np.zeros(count, np.int8)
    _quiet_words(grid, rows, words, values)
    return words, values


def quiet_sample(tables: DenseTables, pieces: int, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random quiet positions with exactly this number of pieces, all equally likely; shaped as ``quiet_positions``."""
    sampler = EndgameSampler(tables, materials(pieces), seed, quiet=True)
    words, values = np.zeros((0, 3), np.uint32), np.zeros(0, np.int8)
    while len(words) < number:
        batch = sampler.draw(number)
        quiet = batch.flags == FLAG_NONE
        words = np.concatenate([words, batch.positions[quiet, :3]])
        values = np.concatenate([values, batch.values[quiet]])
    return words[:number], values[:number]


def with_features(
    words: np.ndarray, values: np.ndarray, report: Callable[[int], None] = lambda done: None
) -> Positions:
    """Positions with their features; ``report`` is told how many are done."""
    parts = []
    for first in range(0, len(words), _CHUNK):
        parts.append(features_of(words[first : first + _CHUNK]))
        report(min(first + _CHUNK, len(words)))
    return Positions(words, values, np.concatenate(parts))


def learning_set(tables: DenseTables, words: np.ndarray, values: np.ndarray, seed: int) -> Positions:
    """What rules are learnt from: few pieces again and again, so that their endings get rules of their own, too.

    All quiet positions of two pieces, ``_PAIRS_COUNT`` times, and of three; ``_PART`` of those of four, and as many of
    five as ``_OF_FIVE``.

    Args:
        tables: of 2 to 5 pieces.
        words, values: all quiet positions of up to four pieces.
    """
    pieces = np.bitwise_count(words[:, 0] | words[:, 1])
    kept = (pieces < EXHAUSTED_PIECES) | (np.random.default_rng(seed).random(len(words)) < _PART)
    chosen = np.concatenate([np.flatnonzero(kept), *[np.flatnonzero(pieces == MIN_PIECES)] * (_PAIRS_COUNT - 1)])
    five, of_five = quiet_sample(tables, EXHAUSTED_PIECES + 1, _OF_FIVE, seed)
    return with_features(np.concatenate([words[chosen], five]), np.concatenate([values[chosen], of_five]))


def learn_rules(
    positions: Positions, most: int, polishings: int, report: Callable[[str, int], None] = lambda what, done: None
) -> list[Rule]:
    """A list of at most ``most`` rules, learnt from positions alike.

    Args:
        polishings: how often the list is gone through again.
        report: told what is done, and how many rules of it.
    """
    learner = ListLearner(gather(positions.features, positions.classes), list(range(NUM_FEATURES)))
    rules = learner.learn(most, lambda rules: report("learning rules", len(rules)))
    for _ in range(polishings):
        rules = learner.polish(rules, lambda place: report("polishing rules", place))
    return rules


def fit_points(words: np.ndarray, plies: np.ndarray) -> tuple[float, ...]:
    """Points of a constant and ``progress.QUANTITIES`` that estimate the plies of won positions best (least squares).

    Args:
        words: uint32 [N, 3], won for the side to move.
        plies: int16 [N].
    """
    quantities = np.zeros((len(words), NUM_QUANTITIES))
    write_many(words, new_buffers(), quantities)
    table = np.column_stack([np.ones(len(words)), quantities])
    used = np.flatnonzero(np.abs(table).sum(axis=0))
    square = table[:, used].T @ table[:, used]
    points = np.zeros(table.shape[1])
    points[used] = np.linalg.solve(square + _RIDGE * np.eye(len(square)), table[:, used].T @ plies.astype(np.float64))
    return tuple(round(float(value), 3) for value in points)


def fit_progress(
    words: np.ndarray, values: np.ndarray, tables: Tablebase, number: int, seed: int
) -> dict[Material | None, tuple[float, ...]]:
    """``fit_points`` of at most ``number`` won positions of every material, and of all these together.

    Raises:
        MissingTableError: the tables have no distances of these positions.
    """
    rng = np.random.default_rng(seed)
    won = words[values == 1]
    codes = codes_of(won)
    points: dict[Material | None, tuple[float, ...]] = {}
    samples = []
    for code in np.unique(codes).tolist():
        some = rng.permutation(won[codes == code])[:number]
        plies = tables.probe_distance_many(some)
        points[Material.of_code(code)] = fit_points(some, plies)
        samples.append((some, plies))
    return {None: fit_points(*(np.concatenate(parts) for parts in zip(*samples, strict=True))), **points}


def measure(rules: RuleList, positions: Positions) -> tuple[np.ndarray, np.ndarray]:
    """The deciding rules, int64 [N], and whether they are right, bool [N]."""
    decided = decide(list(rules.rules), positions.features)
    return decided, classes_of(list(rules.rules), decided) == positions.classes


def curve(rules: RuleList, positions: Positions, seed: int) -> list[float]:
    """The share of right answers with k of the rules, k from 1 to all, each k one rule more, and always the last rule.

    Added is the rule that helps most where it stands in the list, as measured on ``_CURVE_SAMPLE`` positions.
    """
    some = np.random.default_rng(seed).permutation(len(positions.words))[:_CURVE_SAMPLE]
    sample = Positions(*(part[some] for part in positions))
    chosen, found = [len(rules.rules) - 1], []
    while True:
        found.append(_share_right(rules, sorted(chosen), positions))
        left = sorted(set(range(len(rules.rules))) - set(chosen))
        if not left:
            return found
        chosen.append(max(left, key=lambda place: _share_right(rules, sorted([*chosen, place]), sample)))


def _share_right(rules: RuleList, places: list[int], positions: Positions) -> float:
    _, right = measure(rules._replace(rules=tuple(rules.rules[place] for place in places)), positions)
    return float(right.mean())
