"""An adversary: an actor whose games are against a fixed network, to find what that one does wrong.

Adversarial policies (Gleave et al. 2020; against Go networks, Wang et al. 2023): the opponent never learns, so the
network in training comes to play what works against this one.
"""

import numpy as np

from engine.board import Board
from engine.fen import Color
from engine.search import Ending, Evaluator, LockstepSearch, SearchConfig

from ..games.endgame import EndgameKnowledge
from ..run.config import SelfPlayConfig
from .actor import Actor

_SEED_OF_OPPONENT = 1 << 33


class Adversary(Actor):
    """Plays one side of each game, drawn by lot; only the positions that it has searched become samples.

    The opponent plays as in matches: the best move of its search, without noise.

    Args:
        opponent: evaluator of the opponent.
        opponent_search: settings of its searches.
        others: see ``Actor``.
    """

    def __init__(
        self,
        config: SelfPlayConfig,
        search: SearchConfig,
        evaluator: Evaluator,
        seed: int,
        network: str = "",
        knowledge: EndgameKnowledge | None = None,
        *,
        opponent: Evaluator,
        opponent_search: SearchConfig,
    ) -> None:
        slots, most = config.games_in_lockstep, opponent_search.num_simulations
        oracle = knowledge.leaf_oracle if knowledge is not None and opponent_search.oracle != "off" else None
        self._opponent = opponent
        self._replies = LockstepSearch(opponent_search, slots, most, seed + _SEED_OF_OPPONENT, oracle)
        self._side = [Color.BLACK] * slots  # of the adversary
        self._replying = np.zeros(slots, bool)  # whether it is the opponent's move
        super().__init__(config, search, evaluator, seed, network, knowledge)

    def _set_board(self, slot: int, board: Board) -> Ending:
        self._replying[slot] = False
        self._side[slot] = Color.BLACK if self._search.generator(slot).random() < 0.5 else Color.WHITE
        self._replies.set_board(slot, board)
        return super()._set_board(slot, board)

    def _step(self) -> int:
        evaluations = super()._step()
        self._replies.many_steps(self._opponent)
        answered = np.flatnonzero(self._replying & ~self._replies.active())
        if len(answered):
            self._play(answered, self._replies, [0.0] * len(answered))
        return evaluations

    def _finished_searches(self) -> np.ndarray:
        return np.flatnonzero(~self._search.active() & ~self._replying)

    def _search_next(self, slots: list[int]) -> None:
        theirs = [slot for slot in slots if self._games[slot].turn is not self._side[slot]]
        self._replying[slots] = False
        self._replying[theirs] = True
        count = len(theirs)
        simulations = np.full(count, self._replies.config.num_simulations)
        self._replies.start_all(np.array(theirs, np.int64), simulations, [False] * count)
        super()._search_next([slot for slot in slots if not self._replying[slot]])

    def _note_moves(self, slot: int, index: int, plies: int) -> None:
        """Records moves that one search has played, and plays them in the other one."""
        super()._note_moves(slot, index, plies)
        follower = self._search if self._replying[slot] else self._replies
        follower.play(slot, index, through_forced=True)
