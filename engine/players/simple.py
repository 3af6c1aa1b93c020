"""The players without a search of their own, random and by tables, and how all players without a network are made."""

from pathlib import Path

import numpy as np

from ..board import Board, Move
from ..tablebase import Tablebase, open_tablebase
from .alphabeta import AlphaBetaPlayer
from .base import OneByOne, Player
from .hub import HubPlayer
from .rollout import RolloutPlayer
from .rules import RulesPlayer
from .spec import AlphaBetaSpec, HubSpec, RandomSpec, RolloutSpec, RulesSpec, SimpleSpec, TablebaseSpec

_WON_AT_ONCE = 1 << 14


class RandomPlayer(OneByOne):
    """Plays uniformly among the moves that lead to different positions: the weakest anchor of every scale."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        return moves[self._random.integers(len(moves))]


class TablebasePlayer(OneByOne):
    """Wins by the shortest way, loses by the longest, and keeps draws; among equal moves it draws one at random.

    Perfect as the tables are: they know neither draws by repetition nor the 80-ply rule.

    Args:
        folder: of tables with distances, opened when they are first needed; the default folder if None.

    Raises:
        MissingTableError: ``choose``: no table of distances covers the position behind a move.
        TableFileError: ``choose``: a table is damaged or foreign.
        OSError: ``choose``: the folder is not there.
    """

    def __init__(self, folder: str | Path | None = None, seed: int = 0) -> None:
        self.name = "tablebase" if folder is None else f"tablebase:{folder}"
        self._folder = folder
        self._tables: Tablebase | None = None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        scores = np.array([self._score(board, move) for move in moves])
        return moves[self._random.choice(np.flatnonzero(scores == scores.max()))]

    def _score(self, board: Board, move: Move) -> int:
        """Above 0 for a win, the more the shorter; 0 for a draw; below 0 for a loss, the less the longer."""
        after = board.copy()
        after.push(move)
        if not after.legal_moves:
            return _WON_AT_ONCE
        if self._tables is None:
            self._tables = open_tablebase(self._folder)
        plies = self._tables.probe_distance(after)
        if plies is None:
            return 0
        return (_WON_AT_ONCE - plies) * (1 if self._tables.probe_wdl(after) < 0 else -1)


def make_simple_player(spec: SimpleSpec, seconds: float | None = None, seed: int = 0) -> Player:
    """The player of a specification. Files are opened and programs started when it is first asked for a move.

    Args:
        seconds: time limit per move of ``alphabeta``, beside its depth, and of an external engine.
        seed: of its random numbers.

    Raises:
        PlayerSpecError: there is no such program.
        PlayerError: ``seconds`` is not above 0.
    """
    match spec:
        case RandomSpec():
            return RandomPlayer(seed)
        case RolloutSpec(simulations):
            return RolloutPlayer(simulations, seed=seed)
        case AlphaBetaSpec(depth):
            return AlphaBetaPlayer(depth, seconds, seed)
        case TablebaseSpec(folder):
            return TablebasePlayer(folder, seed)
        case RulesSpec(path):
            return RulesPlayer(path)
        case HubSpec(command):
            return HubPlayer(command, seconds)
