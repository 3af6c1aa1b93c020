"""How fast a network searches one position: simulations and evaluations per second by time."""

import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from engine.board import Board
from engine.players.network_text import NetworkText
from engine.players.search_player import SearchPlayer
from engine.search import CachedEvaluator
from learner.checkpoint import load_checkpoint

from .knowledge import leaf_oracle
from .players import BoardEvaluator, board_evaluator, board_search, checkpoint_folder, search_with
from .threads import use_single_thread

TIMES_S = (0.1, 1.0, 10.0)
POSITIONS = 5
_WARM_UP_S = 0.02  # what has been compiled is read from disk, and touched for the first time
_PLIES = (6, 12, 18, 24, 30)  # of random games that the positions come from
_SEED = 1


@dataclass(frozen=True)
class BoardRate:
    """Medians over positions.

    Attributes:
        seconds: time of one search.
        simulations, evaluations: per second; what the cache remembered is no evaluation.
        remembered: share of the leaves that the cache knew.
    """

    seconds: float
    simulations: float
    evaluations: float
    remembered: float


def board_rates(text: str, times_s: tuple[float, ...] | None = None, backend: str = "auto") -> list[BoardRate]:
    """Measures a network (see ``NetworkText``).

    Raises:
        PlayerError, CheckpointError, BackendError: see ``players.make_player``.
    """
    named = NetworkText.parse(text)
    folder = checkpoint_folder(named.folder)
    loaded = load_checkpoint(folder)
    rates, boards = [], _positions()
    use_single_thread()
    evaluator = board_evaluator(folder, loaded, named.backend or backend, "cpu", timed=True)
    config = search_with(evaluator, board_search(named))
    for seconds in times_s or TIMES_S:
        player = SearchPlayer(text, evaluator, config, seconds, leaf_oracle(config))
        for board in boards:
            _search(player, evaluator, board, _WARM_UP_S)
        measured = [_search(player, evaluator, board, seconds) for board in boards]
        medians = (statistics.median(column) for column in zip(*measured, strict=True))
        rates.append(BoardRate(seconds, *medians))
    return rates


def _positions() -> list[Board]:
    """Positions with a choice of moves, out of random games."""
    rng = np.random.default_rng(_SEED)
    boards: list[Board] = []
    while len(boards) < POSITIONS:
        board = Board()
        while board.ply < _PLIES[len(boards)] and board.legal_moves:
            board.push(board.legal_moves[rng.integers(len(board.legal_moves))])
        if len(board.distinct_moves) > 2:
            boards.append(Board(board.fen()))
    return boards


def _search(player: SearchPlayer, evaluator: BoardEvaluator, board: Board, seconds: float) -> tuple[float, ...]:
    if isinstance(evaluator, CachedEvaluator):
        evaluator.clear()
    asked, hits, begun = evaluator.asked, evaluator.hits, time.perf_counter()
    thinking = player.begin(board)
    thinking.advance(seconds)
    elapsed = time.perf_counter() - begun
    asked, hits = evaluator.asked - asked, evaluator.hits - hits
    return thinking.thought().count / elapsed, (asked - hits) / elapsed, hits / max(asked, 1)


def board_rates_command(text: str, quiet: bool, backend: str = "auto") -> dict[str, Any]:
    """See ``crownhead bench --board``."""
    rates = board_rates(text, backend=backend)
    if not quiet:
        table = Table("seconds", "simulations/s", "evaluations/s", "remembered", title=text)
        for rate in rates:
            numbers = f"{rate.simulations:,.0f}", f"{rate.evaluations:,.0f}", f"{rate.remembered:.0%}"
            table.add_row(f"{rate.seconds:g}", *numbers)
        Console().print(table)
    return {"player": text, "rates": [asdict(rate) for rate in rates]}
