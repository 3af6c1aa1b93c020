"""Elo differences and ratings of players, with their errors.

A difference of ``d`` Elo means an expected score of ``1 / (1 + 10 ** (-d / 400))``; a draw is half a point.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

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
    """Elo difference at which ``score`` is expected; 0 < ``score`` < 1."""
    return _ELO_PER_NAT * math.log(score / (1 - score))


class EloDiff(NamedTuple):
    """Elo of the first player above the second, half the width of its 95 % interval, and the score (0 to 1)."""

    elo: float
    elo_error: float
    score: float


class TallyFigures(TypedDict):
    """Results of the first player for JSON: score 0 to 1, Elo with half its 95 % interval; None without games."""

    games: int
    wins: int
    draws: int
    losses: int
    score: float | None
    elo: float | None
    elo_error: float | None


@dataclass
class Tally:
    """Results of a match, counted for the first player.

    Games are played in pairs: the same opening with colours swapped. The advantage of one side in the opening cancels
    within a pair, so the points of pairs (five possible sums, "pentanomial") vary less than those of single games.
    Errors from pairs are right although the two games of a pair are not independent.

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

    @staticmethod
    def of_games(wins: int, draws: int, losses: int) -> "Tally":
        """A tally of games whose pairs are unknown: all count as single games."""
        return Tally(singles=[losses, draws, wins], losses=losses, draws=draws, wins=wins)

    def add(self, scores: Sequence[float]) -> None:
        """Counts a pair or a single game: one or two scores (0, 1/2, 1) of the first player; raises ``ValueError``."""
        if len(scores) not in (1, 2) or any(score not in (0, 0.5, 1) for score in scores):
            raise ValueError(f"{scores!r} is not the result of a game or of a pair: give one or two of 0, 0.5, 1")
        counts = self.pairs if len(scores) == 2 else self.singles
        counts[int(2 * sum(scores))] += 1
        for score in scores:
            self.losses += int(score == 0)
            self.draws += int(score == 0.5)
            self.wins += int(score == 1)

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        return self.wins + self.draws / 2

    def elo_diff(self) -> EloDiff:
        return elo_diff(self.pairs, self.singles)

    def figures(self) -> TallyFigures:
        diff = self.elo_diff() if self.games else None
        return {
            "games": self.games,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "score": diff.score if diff else None,
            "elo": diff.elo if diff else None,
            "elo_error": diff.elo_error if diff else None,
        }


def elo_diff(pairs: Sequence[int], singles: Sequence[int] = (0, 0, 0)) -> EloDiff:
    """Elo difference of two players from the results of their games, as ``Tally`` counts them; always finite.

    A score of 0 % or 100 % has no finite Elo; it counts as if one more game had been drawn: n wins in n games as
    (n + 1/2) / (n + 1). The error is that of the mean score times the slope of the Elo curve (delta method). The
    variance of pairs and that of single games are estimated separately, each with one imagined result added, spread
    evenly over all possible results: so a few equal results do not give an error of zero.

    Raises:
        ValueError: there are no games.
    """
    games = 2 * sum(pairs) + sum(singles)
    if games == 0:
        raise ValueError("no games, no Elo difference")
    points = float(_PAIR_POINTS @ pairs + _SINGLE_POINTS @ singles)
    score = points / games
    mean, variance = _spread(pairs, singles)
    smooth = mean / games
    slope = _ELO_PER_NAT / (smooth * (1 - smooth))
    error = CONFIDENCE_95 * math.sqrt(variance) / games * slope
    edge = 0.5 / (games + 1)
    return EloDiff(elo_from_score(min(max(score, edge), 1 - edge)), error, score)


def _spread(pairs: Sequence[int], singles: Sequence[int]) -> tuple[float, float]:
    """Mean and variance of the points of all games, with the imagined results of ``elo_diff``."""
    mean = variance = 0.0
    for counts, values in ((pairs, _PAIR_POINTS), (singles, _SINGLE_POINTS)):
        number = sum(counts)
        if number:
            weights = (np.array(counts) + 1 / len(values)) / (number + 1)
            mean += number * float(weights @ values)
            variance += number * float(weights @ (values - weights @ values) ** 2)
    return mean, variance


class PairingResult(NamedTuple):
    """Games between two players, counted for the first."""

    player_a: str
    player_b: str
    wins: int
    draws: int
    losses: int


class EloRating(NamedTuple):
    """A line of an Elo table: rating, half the width of its 95 % interval (0 for an anchor), games, score (0 to 1)."""

    player: str
    rating: float
    error: float
    games: int
    score: float


class EloFit(NamedTuple):
    """Maximum-likelihood ratings of many players.

    Attributes:
        table: strongest player first; players with equal ratings by name.
        players: order of the rows and columns of ``covariance``.
        covariance: [n, n], covariance of the ratings in Elo squared; 0 for anchors.
    """

    table: tuple[EloRating, ...]
    players: tuple[str, ...]
    covariance: np.ndarray

    def difference(self, player: str, other: str) -> tuple[float, float]:
        """Elo of ``player`` above ``other``, and half the width of its 95 % interval.

        The errors of the two ratings are correlated, so the interval is not the sum of theirs.
        """
        ratings = {line.player: line.rating for line in self.table}
        i, j = self.players.index(player), self.players.index(other)
        variance = self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j]
        return ratings[player] - ratings[other], CONFIDENCE_95 * math.sqrt(max(0.0, variance))


def fit_elo(
    tallies: Iterable[tuple[str, str, Tally]], anchors: Mapping[str, float], prior_draws: float = 1.0
) -> EloFit:
    """Fits the ratings of many players to their games by maximum likelihood (Bradley-Terry; a draw is half a win).

    Each two players who met get ``prior_draws`` imagined draws in addition, so that a player who won or lost all games
    has a finite rating. The model treats games as coin tosses. Draws and colour-swapped pairs make real results vary
    less, so the covariance uses the measured variance of the results ("sandwich" estimator, Huber 1967).

    Args:
        tallies: (player, other player, results of the first); the same two may appear several times, in any order.
        anchors: player → fixed rating.

    Raises:
        ValueError: no chain of games links a player to an anchor, or a player has played itself.
    """
    tallies = list(tallies)
    for player_a, player_b, _ in tallies:
        if player_a == player_b:
            raise ValueError(f"{player_a} against {player_b}: games need two different players")
    players = sorted({player for pairing in tallies for player in pairing[:2]} | set(anchors))
    index = {player: number for number, player in enumerate(players)}
    points, spread = np.zeros((2, len(players), len(players)))
    met = np.zeros(points.shape, bool)
    for player_a, player_b, tally in tallies:
        i, j = index[player_a], index[player_b]
        points[i, j] += tally.points
        points[j, i] += tally.games - tally.points
        variance = _spread(tally.pairs, tally.singles)[1]
        spread[i, j] += variance
        spread[j, i] += variance
        met[i, j] = met[j, i] = tally.games > 0 or met[i, j]
    rated = linked(((player_a, player_b) for player_a, player_b, tally in tallies if tally.games > 0), anchors)
    if lost := [player for player in players if player not in rated]:
        known = ", ".join(anchors) or "there is none"
        raise ValueError(f"no rating for {', '.join(lost)}: no games link them to an anchor ({known})")
    games, totals = (points + points.T).sum(axis=1), points.sum(axis=1)
    fixed = np.array([anchors.get(player, np.nan) for player in players], float)
    ratings, covariance = _most_likely(points, spread, prior_draws * met, fixed)
    errors = CONFIDENCE_95 * np.sqrt(np.diag(covariance))
    table = [
        EloRating(player, float(rating), float(error), round(played), float(total / played) if played else 0.0)
        for player, rating, error, played, total in zip(players, ratings, errors, games, totals, strict=True)
    ]
    return EloFit(tuple(sorted(table, key=lambda line: (-line.rating, line.player))), tuple(players), covariance)


def rating_beside(player: str, tally: Tally, other: EloRating, prior_draws: float = 1.0) -> EloRating:
    """The rating that ``fit_elo`` gives a player who has met only ``other``: these games change no other rating."""
    games = tally.games + prior_draws
    score = (tally.points + prior_draws / 2) / games
    spread = _spread(tally.pairs, tally.singles)[1] + prior_draws * score * (1 - score)
    error = CONFIDENCE_95 * _ELO_PER_NAT * math.sqrt(spread) / (games * score * (1 - score))
    rating = other.rating + elo_from_score(score)
    return EloRating(player, rating, math.hypot(error, other.error), tally.games, tally.points / tally.games)


def linked(pairs: Iterable[tuple[str, str]], players: Iterable[str]) -> set[str]:
    """The players whom a chain of pairs links to one of ``players``, and these."""
    met = defaultdict[str, set[str]](set)
    for player_a, player_b in pairs:
        met[player_a].add(player_b)
        met[player_b].add(player_a)
    fresh = list(players)
    found = set(fresh)
    while fresh:
        others = met[fresh.pop()] - found
        found |= others
        fresh += others
    return found


def _most_likely(
    points: np.ndarray, spread: np.ndarray, imagined: np.ndarray, fixed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Maximum-likelihood ratings [n] and their covariance [n, n].

    Args:
        points: [n, n], points that player i took from player j.
        spread: [n, n], variance of these points.
        imagined: [n, n], number of imagined draws between i and j.
        fixed: [n], ratings of anchors; NaN for other players.
    """
    free = np.isnan(fixed)
    points = points + imagined / 2
    games = points + points.T
    ratings = np.where(free, np.nanmean(fixed), fixed) / _ELO_PER_NAT
    covariance = np.zeros(games.shape)
    block = np.ix_(free, free)
    for _ in range(_NEWTON_STEPS if free.any() else 0):
        score = 1 / (1 + np.exp(ratings[None, :] - ratings[:, None]))
        gradient = (points - games * score).sum(axis=1)
        inverse = np.linalg.inv(_laplacian(games * score * (1 - score))[block])
        covariance[block] = inverse @ _laplacian(spread + imagined * score * (1 - score))[block] @ inverse
        step = np.zeros(len(fixed))
        step[free] = inverse @ gradient[free]
        size = float(np.abs(step[:, None] - step[None, :])[games > 0].max())
        if size < 1e-9:
            break
        # With this damping Newton's method converges from anywhere on a sum of logistic losses (Sun, Tran-Dinh 2019).
        ratings += step * (math.log1p(size) / size)
    return ratings * _ELO_PER_NAT, covariance * _ELO_PER_NAT**2


def _laplacian(weights: np.ndarray) -> np.ndarray:
    """Matrix [n, n] of the quadratic form of x: the sum of weights[i, j] (x_i - x_j)**2 over all i < j."""
    return np.diag(weights.sum(axis=1)) - weights
