"""Ratings of puzzles: how hard they are for the levels.

A level without search draws its move by the policy, a level with search by its visits, both with its temperature. So
the probability that a level finds a move is known without playing. The rating of a puzzle is chosen so that the
expected scores of the levels, 1 / (1 + 10 ** ((puzzle - level) / 400)), have the same sum as these probabilities.
"""

from collections.abc import Sequence

import numpy as np

from engine.board import Board
from engine.outcomes import LOSS, WIN
from engine.players.levels import LEVELS
from engine.search import Evaluator, LockstepSearch, SearchConfig, SearchResult

WEAKEST = 600
"""Rating of the weakest level; it fixes the scale of the ratings of puzzles and solvers."""
LEVEL_RATINGS = np.array([WEAKEST + level.elo for level in LEVELS], np.float64)
LEAST, MOST = 100, 3000
_RATINGS = np.arange(LEAST, MOST + 1)
_SCALE = np.log(10) / 400
_SLOTS = 64


class LevelSolver:
    """Computes the probability that each level finds a move."""

    def __init__(self, evaluator: Evaluator) -> None:
        most = max(level.simulations for level in LEVELS)
        self._evaluator = evaluator
        self._search = LockstepSearch(SearchConfig(num_simulations=most, noise_fraction=0.0), _SLOTS)

    def probabilities(self, boards: Sequence[Board], moves: Sequence[int]) -> np.ndarray:
        """Probability that each level plays the given move of each board: float64 [boards, levels].

        Args:
            moves: index of a move of each board, in the order of ``search_moves``.
        """
        parts = [
            self._part(boards[first : first + _SLOTS], moves[first : first + _SLOTS])
            for first in range(0, len(boards), _SLOTS)
        ]
        return np.concatenate([np.empty((0, len(LEVELS))), *parts])

    def _part(self, boards: Sequence[Board], moves: Sequence[int]) -> np.ndarray:
        search, found = self._search, np.zeros((len(boards), len(LEVELS)))
        for slot, board in enumerate(boards):
            search.set_board(slot, board)
            search.start(slot, 0, False)
        search.run(self._evaluator)
        for column, level in enumerate(LEVELS):
            if level.simulations:
                for slot in range(len(boards)):
                    search.extend(slot, level.simulations)
                search.run(self._evaluator)
            for slot, move in enumerate(moves):
                found[slot, column] = choice_probabilities(search.result(slot), level.temperature)[move]
        return found


def choice_probabilities(result: SearchResult, temperature: float) -> np.ndarray:
    """Probability that each move is chosen after a search: float64 [moves]; see ``engine.search.root.choose_root``."""
    won = result.proofs == WIN
    if won.any():
        shortest = np.where(won, result.proof_plies, np.iinfo(np.int32).max).argmin()
        return (np.arange(len(won)) == shortest).astype(np.float64)
    kept = result.proofs != LOSS
    if not kept.any():
        return (np.arange(len(won)) == result.proof_plies.argmax()).astype(np.float64)
    visits = np.where(kept, result.visits, 0).astype(np.float64)
    weights = visits if visits.any() else np.where(kept, result.priors, 0.0).astype(np.float64)
    weights = (weights / weights.max()) ** (1.0 / temperature)
    return weights / weights.sum()


def rating_of(probabilities: np.ndarray) -> tuple[int, int]:
    """Rating and its deviation, of a puzzle that the levels solve with ``probabilities`` (float64 [levels])."""
    solved = _expected(_RATINGS[:, None]).sum(axis=1)
    rating = int(_RATINGS[np.abs(solved - probabilities.sum()).argmin()])
    expected = _expected(rating)
    deviation = 1.0 / (_SCALE * np.sqrt(float((expected * (1.0 - expected)).sum())))
    return rating, round(min(deviation, 350.0))


def _expected(rating: int | np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(_SCALE * (rating - LEVEL_RATINGS)))
