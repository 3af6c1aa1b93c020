"""How hard a puzzle is: which levels find its moves, as a rating.

A level without a search draws its move from the policy, a level with one from its visits, both flattened or sharpened
by its temperature; so the probability that it finds a move is known without playing. The rating is the one at which
the probabilities that ratings say, 1 / (1 + 10 ** ((puzzle - level) / 400)), have the same sum over the levels.
"""

from collections.abc import Sequence

import numpy as np

from engine.board import Board
from engine.outcomes import LOSS, WIN
from engine.players.levels import LEVELS
from engine.search import Evaluator, LockstepSearch, SearchConfig, SearchResult

WEAKEST = 600
"""Rating of the weakest level: the scale of puzzles and of those who solve them."""
LEVEL_RATINGS = np.array([WEAKEST + level.elo for level in LEVELS], np.float64)
LEAST, MOST = 100, 3000
_RATINGS = np.arange(LEAST, MOST + 1)
_SCALE = np.log(10) / 400
_SLOTS = 64


class LevelSolver:
    """Knows how probable it is that each level finds a move."""

    def __init__(self, evaluator: Evaluator) -> None:
        most = max(level.simulations for level in LEVELS)
        self._evaluator = evaluator
        self._search = LockstepSearch(SearchConfig(num_simulations=most, noise_fraction=0.0), _SLOTS)

    def probabilities(self, boards: Sequence[Board], moves: Sequence[int]) -> np.ndarray:
        """How probable each level's playing of a move is, float64 [boards, levels].

        Args:
            moves: of each board, a number in the order of ``search_moves``.
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
    """Probability that each move is drawn from a search, float64 [moves]; see ``engine.search.root.choose_root``."""
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
    """Rating and deviation of a puzzle that the levels solve with these probabilities, float64 [levels]."""
    solved = _expected(_RATINGS[:, None]).sum(axis=1)
    rating = int(_RATINGS[np.abs(solved - probabilities.sum()).argmin()])
    expected = _expected(rating)
    deviation = 1.0 / (_SCALE * np.sqrt(float((expected * (1.0 - expected)).sum())))
    return rating, round(min(deviation, 350.0))


def _expected(rating: int | np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(_SCALE * (rating - LEVEL_RATINGS)))
