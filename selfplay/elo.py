"""Elo: how much stronger one player is than another, and how sure that is.

A difference of ``d`` Elo means an expected score of ``1 / (1 + 10 ** (-d / 400))``, draws counted as half a point.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

CONFIDENCE_95 = 1.959964  # two-sided 95 % quantile of the normal distribution
_ELO_PER_NAT = 400 / math.log(10)
_NEWTON_STEPS = 100
_PAIR_POINTS = np.arange(5) / 2  # points that the first player takes from a pair
_SINGLE_POINTS = np.arange(3) / 2


def expected_score(elo: float) -> float:
    """Expected score (0 to 1) of a player who is ``elo`` stronger."""
    return 1 / (1 + 10 ** (-elo / 400))


def elo_from_score(score: float) -> float:
    """The Elo difference at which ``score`` (between 0 and 1, both excluded) is expected."""
    return _ELO_PER_NAT * math.log(score / (1 - score))


class EloDiff(NamedTuple):
    """Elo difference of the first player, half the width of its 95 % confidence interval, and the score (0 to 1)."""

    elo: float
    elo_error: float
    score: float


@dataclass
class Tally:
    """Results of a match, counted for the first player.

    Games are played in pairs: one opening, colours swapped. What the opening gives to one side cancels within a pair,
    so the spread of the pairs (five possible sums, "pentanomial") is smaller than that of the games, and errors come
    out right although the games of a pair are not independent.

    Attributes:
        pairs: number of pairs with 0, 1/2, 1, 3/2 and 2 points.
        singles: number of unpaired games with 0, 1/2 and 1 points.
        losses, draws, wins: of all games, paired or not.
    """

    pairs: list[int] = field(default_factory=lambda: [0] * 5)
    singles: list[int] = field(default_factory=lambda: [0] * 3)
    losses: int = 0
    draws: int = 0
    wins: int = 0

    def add(self, scores: Sequence[float]) -> None:
        """Counts a pair, or a single game: one or two scores of the first player, each 0, 1/2 or 1.

        Raises:
            ValueError: anything else; nothing is counted.
        """
        if len(scores) not in (1, 2) or any(score not in (0, 0.5, 1) for score in scores):
            raise ValueError(f"{scores!r} is no result of one game or of a pair: one or two of 0, 0.5, 1")
        counts = self.pairs if len(scores) == 2 else self.singles
        counts[int(2 * sum(scores))] += 1
        for score in scores:
            self.losses += int(score == 0)
            self.draws += int(score == 0.5)
            self.wins += int(score == 1)

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Points of the first player."""
        return self.wins + self.draws / 2

    def elo_diff(self) -> EloDiff:
        """Elo difference with its error; see ``elo_diff``."""
        return elo_diff(self.pairs, self.singles)


def elo_diff(pairs: Sequence[int], singles: Sequence[int] = (0, 0, 0)) -> EloDiff:
    """Elo difference of two players from the results of their games, always finite.

    A score of 0 % or 100 % is no Elo difference; it counts as if one more game had been drawn: n wins in n games as
    (n + 1/2) / (n + 1). The error is that of the mean score, carried over by the slope of the Elo curve (delta method).
    Its spread is taken over the pairs and, apart, over the single games, each with one more imagined result spread
    evenly over all possible ones: a few equal results do not make an error of zero.

    Args:
        pairs: number of pairs in which the first player took 0, 1/2, 1, 3/2 and 2 points.
        singles: number of unpaired games in which it took 0, 1/2 and 1 points.

    Raises:
        ValueError: no games.
    """
    games = 2 * sum(pairs) + sum(singles)
    if games == 0:
        raise ValueError("no games, no Elo difference")
    points = float(_PAIR_POINTS @ pairs + _SINGLE_POINTS @ singles)
    score = points / games
    mean = variance = 0.0  # of the points of all games, the imagined result weighed in
    for counts, values in ((pairs, _PAIR_POINTS), (singles, _SINGLE_POINTS)):
        number = sum(counts)
        if number:
            weights = (np.array(counts) + 1 / len(values)) / (number + 1)
            mean += number * float(weights @ values)
            variance += number * float(weights @ (values - weights @ values) ** 2)
    smooth = mean / games
    slope = _ELO_PER_NAT / (smooth * (1 - smooth))
    error = CONFIDENCE_95 * math.sqrt(variance) / games * slope
    edge = 0.5 / (games + 1)
    return EloDiff(elo_from_score(min(max(score, edge), 1 - edge)), error, score)


class PairingResult(NamedTuple):
    """Games between two players, counted for the first."""

    player_a: str
    player_b: str
    wins: int
    draws: int
    losses: int


class EloRating(NamedTuple):
    """A line of an Elo table: rating, half its 95 % interval's width (0 for an anchor), games and score (0 to 1)."""

    player: str
    rating: float
    error: float
    games: int
    score: float


def elo_table(
    results: Iterable[PairingResult], anchors: Mapping[str, float], prior_draws: float = 1.0
) -> list[EloRating]:
    """Ratings of many players from their games, most likely under the Elo model (Bradley-Terry; a draw is half a win).

    Every two players who met are given ``prior_draws`` imagined drawn games besides, so that a player who won or lost
    everything has a finite rating. Errors come from the curvature of the likelihood; they leave out that draws and
    colour-swapped pairs make results steadier than coin tosses, and so are rather too wide than too narrow.

    Args:
        results: games between two players; the same two may come several times, in either order.
        anchors: players whose ratings are fixed.
        prior_draws: more than 0.

    Returns:
        Strongest first; players of equal rating by name.

    Raises:
        ValueError: a player has met no anchor, not even through others, or has played itself; a negative count.
    """
    wins = _winning_points(results)
    players = sorted({player for pairing in wins for player in pairing} | set(anchors))
    index = {player: number for number, player in enumerate(players)}
    points = np.zeros((len(players), len(players)))
    for (player, opponent), value in wins.items():
        points[index[player], index[opponent]] = value
    met = points + points.T > 0
    _check_connected(players, met, anchors)
    games, totals = (points + points.T).sum(axis=1), points.sum(axis=1)
    points = points + prior_draws / 2 * met
    ratings, errors = _most_likely(points, np.array([anchors.get(player, np.nan) for player in players], float))
    table = [
        EloRating(player, float(rating), float(error), round(played), float(total / played) if played else 0.0)
        for player, rating, error, played, total in zip(players, ratings, errors, games, totals, strict=True)
    ]
    return sorted(table, key=lambda line: (-line.rating, line.player))


def _winning_points(results: Iterable[PairingResult]) -> dict[tuple[str, str], float]:
    """(player, opponent) → points taken from that opponent; both orders of every two who met are there."""
    points: dict[tuple[str, str], float] = {}
    for player_a, player_b, wins, draws, losses in results:
        if player_a == player_b or min(wins, draws, losses) < 0:
            raise ValueError(f"{player_a} against {player_b}, +{wins} ={draws} -{losses}: no result of two players")
        for pairing, gained in (((player_a, player_b), wins), ((player_b, player_a), losses)):
            points[pairing] = points.get(pairing, 0.0) + gained + draws / 2
    return points


def _check_connected(players: Sequence[str], met: np.ndarray, anchors: Mapping[str, float]) -> None:
    reached = np.array([player in anchors for player in players], bool)
    for _ in players:
        reached |= met[:, reached].any(axis=1)
    if not reached.all():
        lost = ", ".join(player for player, found in zip(players, reached, strict=True) if not found)
        known = ", ".join(anchors) or "there is none"
        raise ValueError(f"no rating for {lost}: no games link them to an anchor ({known})")


def _most_likely(points: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ratings and 95 % half-widths [n] from points[i, j] that i took from j; ``fixed`` is NaN where free."""
    free = np.isnan(fixed)
    games = points + points.T
    ratings = np.where(free, np.nanmean(fixed), fixed) / _ELO_PER_NAT
    covariance = np.zeros((0, 0))
    for _ in range(_NEWTON_STEPS if free.any() else 0):
        score = 1 / (1 + np.exp(ratings[None, :] - ratings[:, None]))
        gradient = (points - games * score).sum(axis=1)
        information = games * score * (1 - score)
        covariance = np.linalg.inv((np.diag(information.sum(axis=1)) - information)[np.ix_(free, free)])
        step = np.zeros(len(fixed))
        step[free] = covariance @ gradient[free]
        size = float(np.abs(step[:, None] - step[None, :])[games > 0].max())
        if size < 1e-9:
            break
        # With this damping Newton's method converges from anywhere on a sum of logistic losses (Sun, Tran-Dinh 2019).
        ratings += step * (math.log1p(size) / size)
    errors = np.zeros(len(fixed))
    errors[free] = CONFIDENCE_95 * _ELO_PER_NAT * np.sqrt(np.diag(covariance))
    return ratings * _ELO_PER_NAT, errors
