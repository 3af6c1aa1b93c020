"""How fast a network searches a single position: simulations and evaluations per second for each time limit."""

import statistics
import time
from dataclasses import replace
from typing import TypedDict

import numpy as np

from engine.board import Board
from engine.console import Console, Table
from engine.players.search_player import SearchPlayer
from engine.players.spec import NetworkSpec, parse_tree_player
from engine.players.time_control import TimeControl
from learner.inference import NetworkEvaluator

from ..conditions import Conditions
from ..games.openings import random_board
from ..matches.commands import tell_ignored
from ..players import make_player
from ..requests import BenchRequest

TIMES_S = (0.1, 1.0, 10.0)
POSITIONS = 5
_WARM_UP_S = 0.02  # loads compiled functions from disk and fills caches
_PLIES = (6, 12, 18, 24, 30)  # plies of the random games that the positions come from
_SEED = 1


class BoardRate(TypedDict):
    """Simulations and evaluations per second in searches of ``seconds``: medians over positions."""

    seconds: float
    simulations: float
    evaluations: float
    threads: int


class BoardFigures(TypedDict):
    """How fast a player searches, for each time limit."""

    player: str
    rates: list[BoardRate]


def board_rates(spec: NetworkSpec, times_s: tuple[float, ...], backend: str = "auto") -> list[BoardRate]:
    """Measures a network with one thread, for each of ``times_s``.

    Raises:
        PlayerError, CheckpointError, BackendError: see ``players.make_player``.
    """
    rates: list[BoardRate] = []
    boards = _positions()
    for seconds in times_s:
        player = make_player(spec, Conditions(seconds=seconds, backend=backend, device="cpu"))
        assert isinstance(player, SearchPlayer)
        for board in boards:
            _search(player, board, _WARM_UP_S)
        measured = [_search(player, board, seconds) for board in boards]
        simulations, evaluations = (statistics.median(column) for column in zip(*measured, strict=True))
        rates.append(BoardRate(seconds=seconds, simulations=simulations, evaluations=evaluations, threads=1))
    return rates


def _positions() -> list[Board]:
    """Positions from random games, with more than two moves to choose from."""
    rng = np.random.default_rng(_SEED)
    boards: list[Board] = []
    while len(boards) < POSITIONS:
        board = random_board(_PLIES[len(boards)], rng)
        if len(board.distinct_moves) > 2:
            boards.append(Board(board.fen()))
    return boards


def _search(player: SearchPlayer, board: Board, seconds: float) -> tuple[float, ...]:
    evaluator = player.evaluator
    assert isinstance(evaluator, NetworkEvaluator)
    asked, begun = evaluator.asked, time.perf_counter()
    thinking = player.begin(board)
    thinking.advance(seconds)
    elapsed = time.perf_counter() - begun
    return thinking.thought().count / elapsed, (evaluator.asked - asked) / elapsed


def board_rates_command(request: BenchRequest, quiet: bool) -> BoardFigures:
    """See ``crownhead bench --board``."""
    assert request.board is not None
    spec = replace(parse_tree_player(request.board), ponder=False)
    if not quiet:
        tell_ignored([spec], TimeControl("move", TIMES_S[0]))
    rates = board_rates(spec, TIMES_S, request.backend)
    if not quiet:
        table = Table("seconds", "simulations/s", "evaluations/s", title=request.board)
        for rate in rates:
            table.add_row(f"{rate['seconds']:g}", f"{rate['simulations']:,.0f}", f"{rate['evaluations']:,.0f}")
        Console().print(table)
    return {"player": request.board, "rates": rates}
