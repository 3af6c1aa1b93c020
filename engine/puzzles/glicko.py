"""Ratings of players who solve puzzles, by Glicko-2.

Source: M. E. Glickman, "Example of the Glicko-2 system", 2012 (revised 2022), glicko.net/glicko/glicko2.pdf. Step
numbers below are those of this paper. The library ``glicko2`` has no types and no release since 2024; the formulas are
short.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

SCALE = 173.7178  # step 2: rating points per unit of the internal scale
START_RATING, START_DEVIATION, START_VOLATILITY = 1500.0, 350.0, 0.06
TAU = 0.5  # limits changes of the volatility; the paper recommends 0.3 to 1.2
_CLOSE_ENOUGH = 0.000001  # step 5
_MOST_STEPS = 100


class Rating(NamedTuple):
    """A player's estimated strength: ``rating`` and its standard ``deviation`` in points; ``volatility``: how much the
    strength changes."""

    rating: float = START_RATING
    deviation: float = START_DEVIATION
    volatility: float = START_VOLATILITY


class Result(NamedTuple):
    """One game of a rating period: the opponent's rating and deviation, and the score, 1 for a win, 0 for a loss."""

    rating: float
    deviation: float
    score: float


def rated(player: Rating, results: Sequence[Result], tau: float = TAU) -> Rating:
    """The player's rating after a rating period with these results. Without results, only the deviation grows."""
    mu, phi = (player.rating - START_RATING) / SCALE, player.deviation / SCALE
    if not results:
        grown = math.hypot(phi, player.volatility)
        return player._replace(deviation=min(START_DEVIATION, SCALE * grown))
    information = gain = 0.0  # step 3: 1 / v; step 4: delta / v
    for result in results:
        weight = _weight(result.deviation / SCALE)
        expected = 1.0 / (1.0 + math.exp(-weight * (mu - (result.rating - START_RATING) / SCALE)))
        information += weight * weight * expected * (1.0 - expected)
        gain += weight * (result.score - expected)
    variance = 1.0 / information
    volatility = _volatility(phi, player.volatility, variance, variance * gain, tau)
    phi = 1.0 / math.sqrt(1.0 / (phi * phi + volatility * volatility) + information)  # steps 6 and 7
    mu += phi * phi * gain
    return Rating(START_RATING + SCALE * mu, SCALE * phi, volatility)


def _weight(phi: float) -> float:
    """g of step 3: weight of a result against an opponent with deviation ``phi``."""
    return 1.0 / math.sqrt(1.0 + 3.0 * phi * phi / (math.pi * math.pi))


def _volatility(phi: float, before: float, variance: float, delta: float, tau: float) -> float:
    """Step 5: the new volatility, by the Illinois algorithm."""
    start = math.log(before * before)

    def f(x: float) -> float:
        spread = phi * phi + variance + math.exp(x)
        return math.exp(x) * (delta * delta - spread) / (2.0 * spread * spread) - (x - start) / (tau * tau)

    low = start
    if delta * delta > phi * phi + variance:
        high = math.log(delta * delta - phi * phi - variance)
    else:
        step = 1
        while f(start - step * tau) < 0.0 and step < _MOST_STEPS:
            step += 1
        high = start - step * tau
    at_low, at_high = f(low), f(high)
    for _ in range(_MOST_STEPS):
        if abs(high - low) <= _CLOSE_ENOUGH:
            break
        middle = low + (low - high) * at_low / (at_high - at_low)
        at_middle = f(middle)
        if at_middle * at_high <= 0.0:
            low, at_low = high, at_high
        else:
            at_low /= 2.0
        high, at_high = middle, at_middle
    return math.exp(low / 2.0)
