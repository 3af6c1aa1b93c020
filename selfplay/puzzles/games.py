"""Games to look for puzzles in: recorded games, or self-play between different levels, which make mistakes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from engine.board import Board, Move
from engine.errors import PdnError
from engine.files import StorageError, read_text, sha256_of
from engine.pdn import read_games
from engine.players.levels import LEVELS, LevelPlayer
from engine.players.search_player import SearchPlayer
from engine.search import Evaluator

from ..games.openings import selfplay_opening

ROUND = 64  # games
SELF_PLAY = "self-play"
_MOST_SIMULATIONS = 128  # of the levels that play: stronger ones are slow and make few mistakes
_BALLOTS, _RANDOM_PLIES = 0.7, 6  # fraction of games that start from a ballot; most random plies before the others
_MOST_PLIES = 200

Game = tuple[Board, tuple[Move, ...]]
"""First position, and moves."""


class SelfPlay:
    """Rounds of ``ROUND`` games between levels; the same seed and number give the same round."""

    def __init__(self, evaluator: Evaluator, seed: int) -> None:
        self._seed = seed
        self._players = [
            LevelPlayer(level, SearchPlayer(level.name, evaluator, level.search, explore=True))
            for level in LEVELS
            if level.simulations <= _MOST_SIMULATIONS
        ]

    def round(self, number: int) -> list[Game]:
        rng = np.random.default_rng((self._seed, number))
        for player in self._players:
            player.seed(int(rng.integers(1 << 32)))
        boards = [selfplay_opening(rng, _BALLOTS, _RANDOM_PLIES) for _ in range(ROUND)]
        seats = rng.integers(len(self._players), size=(ROUND, 2))
        while running := [board for board in boards if _goes_on(board)]:
            seated = {id(board): seat[board.ply % 2] for board, seat in zip(boards, seats, strict=True)}
            for index, player in enumerate(self._players):
                turn = [board for board in running if seated[id(board)] == index]
                for board, move in zip(turn, player.choose(turn) if turn else [], strict=True):
                    board.push(move)
        return [(Board(board.start_fen), tuple(board.move_stack)) for board in boards]


def _goes_on(board: Board) -> bool:
    return board.ply < _MOST_PLIES and board.outcome() is None


class RecordedGames:
    """Rounds of the games in a PDN file.

    Attributes:
        unread: one message for each game that cannot be read.
        source: name and digest of the file.

    Raises:
        StorageError: the file cannot be read, or there is no game in it.
    """

    def __init__(self, path: Path) -> None:
        self.unread: list[str] = []
        self._text = read_text(path)
        if next(self._read(), None) is None and not self.unread:
            raise StorageError(None, f"there is no game in {path}")
        self.unread.clear()
        self.source = f"{path.name[:200]} {sha256_of(path)[:16]}"
        self._games = self._read()
        self._next = 0

    def _read(self) -> Iterator[Game]:
        for game in read_games(self._text, self._note):
            yield Board(game.start_fen), tuple(node.move for node in game.moves)

    def _note(self, error: PdnError) -> None:
        self.unread.append(str(error))

    def round(self, number: int) -> list[Game]:
        """The games of a round; empty if there are no more. Must be called with increasing numbers."""
        skipped = ROUND * (number - self._next)
        self._next = number + 1
        return list(islice(self._games, skipped, skipped + ROUND))


def boards_of(games: Sequence[Game]) -> Iterator[Board]:
    """Every position of the games in which the side to move has a choice, without its history."""
    for start, moves in games:
        board = start.copy()
        for move in moves:
            if len(board.distinct_moves) > 1:
                yield Board(board.fen())
            board.push(move)
