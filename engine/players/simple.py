"""The players without a search, ``random`` and ``tablebase``; and how any player without a network is made."""

from pathlib import Path

import numpy as np

from ..board import Board, Move
from ..game import ENGLISH, check_game
from ..tablebase import Tablebase, open_tablebase
from ..tablebase.store import find_files
from .alphabeta import AlphaBetaPlayer
from .base import OneByOne, Player, PlayerSpecError
from .hub import HubPlayer
from .rollout import RolloutPlayer
from .rules import RulesPlayer
from .spec import AlphaBetaSpec, HubSpec, RandomSpec, RolloutSpec, RulesSpec, SimpleSpec, TablebaseSpec

_WON_AT_ONCE = 1 << 14


class RandomPlayer(OneByOne):
    """Plays uniformly at random among the moves that lead to different positions: the weakest reference player."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        return moves[self._random.integers(len(moves))]


class TablebasePlayer(OneByOne):
    """Wins as fast as possible, loses as slowly as possible, and keeps draws; picks at random among equal moves.

    The tables do not include draws by repetition and the 80-ply rule.

    Args:
        folder: folder of tables with distances, opened on first use; the default folder if None.
        seed: seed of the random numbers.

    Raises:
        MissingTableError: in ``choose``: no table with distances covers the position after a move.
        TableFileError: in ``choose``: a table is damaged or foreign.
        OSError: in ``choose``: the folder does not exist.
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
        """Score of a move: above 0 wins, 0 draws, below 0 loses; higher for shorter wins and longer losses."""
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
    """Makes the player of a specification. Tables are opened and programs started when it is first asked for a move.

    Args:
        seconds: seconds per move, for ``alphabeta`` (in addition to its depth) and external engines.
        seed: seed of the random numbers.

    Raises:
        PlayerSpecError: the program of an external engine does not exist, or it is a player with a network.
        PlayerError: ``seconds`` is not above 0.
        OtherGameError: the player knows English draughts only.
        RulesError, OSError: the file of rules cannot be used, or the folder of tables not be read.
    """
    if not isinstance(spec, RandomSpec | RolloutSpec | AlphaBetaSpec):
        check_game(f"the player {spec.text}", ENGLISH)
    match spec:
        case RandomSpec():
            return RandomPlayer(seed)
        case RolloutSpec(simulations):
            return RolloutPlayer(simulations, seed=seed)
        case AlphaBetaSpec(depth):
            return AlphaBetaPlayer(depth, seconds, seed)
        case TablebaseSpec(folder):
            if folder is not None:
                find_files([Path(folder)])
            return TablebasePlayer(folder, seed)
        case RulesSpec(path):
            return RulesPlayer(path)
        case HubSpec(command):
            return HubPlayer(command, seconds)
    raise PlayerSpecError(f"{spec.text} is a network: selfplay.players.make_player makes its player")
