"""Alpha-beta with a wide network: its scores are the network's, and pruning only changes depths."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from test_players import EXCHANGE, random_boards
from test_wide import random_wide

from engine import movegen
from engine.board import Board
from engine.encoding import NO_HOP, hop_table
from engine.players import alphabeta_kernels as kernels
from engine.players import evaluation
from engine.players.alphabeta import LOGISTIC_SCALE, MAX_DEPTH, AlphaBetaPlayer
from engine.players.base import PlayerSpecError, search_moves
from engine.players.kernels import start_line
from engine.players.spec import NetworkSpec, parse_player
from engine.tablebase import open_tablebase
from engine.tablebase.layout import code_of
from learner.checkpoint import save_checkpoint
from learner.inference import BackendError, make_evaluator
from learner.inference.wide_alphabeta import WideNodeSearch
from learner.network import NETWORKS, WideConfig, make_network
from selfplay.conditions import Conditions
from selfplay.matches.commands import match_command
from selfplay.players import make_player, settings_text
from selfplay.requests import MatchRequest

Judge = Callable[[Board], float]
CONFIG = WideConfig(units=64, hidden=16, neighbours=True)
WON, DRAWN = "B:WK1:BK15,K18", "B:WK5:BK28"


def negamax(board: Board, depth: int, judge: Judge, ply: int = 0) -> float:
    """The value of a position by the rules of ``alphabeta_kernels``, without repetitions."""
    moves = search_moves(board) if board.legal_moves else []
    if not moves:
        return ply - evaluation.WIN
    if depth == 0 and not moves[0].captured:
        return judge(board)
    left = depth if len(moves) == 1 else max(0, depth - 1)
    values = []
    for move in moves:
        board.push(move)
        values.append(-negamax(board, left, judge, ply + 1))
        board.pop()
    return max(values)


def judge_of(network: object) -> Judge:
    """A judge that uses the evaluator of tree searches, which computes every position from scratch."""
    evaluator = make_evaluator(network)

    def judge(board: Board) -> float:
        _, wdl = evaluator.evaluate(np.array([[*board.words(), board.reversible_plies]], np.uint32))
        win, draw, loss = np.exp(wdl[0] - wdl[0].max()).astype(float)
        expected = min(max((win + draw / 2) / (win + draw + loss), 1e-4), 1 - 1e-4)
        return LOGISTIC_SCALE * math.log(expected / (1 - expected))

    return judge


def started(board: Board, depth: int) -> kernels.SearchState:
    """A search that prunes, before its first node."""
    state = kernels.new_state(1 << 10)
    state.search[0]["root"] = start_line(board, state.line)
    state.search[0]["first_move"], state.search[0]["prunes"] = kernels.NO_MOVE, True
    kernels.start(state, depth)
    return state


@pytest.mark.parametrize("config", [CONFIG, WideConfig(units=96, hidden=48)])
def test_shallow_searches_equal_plain_negamax(config: WideConfig) -> None:
    network = random_wide(config)
    search, judge = WideNodeSearch(network), judge_of(network)
    for board in random_boards(12, 0, 70, 10):
        for slots in (0, 1 << 10):  # one ply deep nothing is reduced
            found = AlphaBetaPlayer(1, table_slots=slots, search=search).analyse(board).score
            assert found == pytest.approx(negamax(board, 1, judge), abs=1.01)


def test_likely_moves_go_first_and_deepest() -> None:
    network = random_wide(CONFIG)
    search, evaluator, seen = WideNodeSearch(network), make_evaluator(network), set()
    for board in random_boards(20, 0, 60, 3):
        moves = search_moves(board)
        if len(moves) == 1:
            continue
        state = started(board, 6)
        search(state, 1)
        position = np.array([[*board.words(), board.reversible_plies]], np.uint32)
        table, counts = hop_table(position)
        logits = evaluator.evaluate(position)[0][0]
        sums = np.array([logits[hops[hops != NO_HOP]].sum() for hops in table[0, : counts[0]]])
        behind = sums.max() - sums
        found = state.reductions[0, : len(moves)]
        assert (np.abs(found - np.minimum(np.floor(0.9 * behind + 0.8), 5)) <= 1).all()
        assert (found[behind > 6] == 5).all()
        left = [index for index in np.argsort(-sums) if state.order[0, index] >= 0]
        assert list(state.order[0, left]) == sorted(state.order[0, left], reverse=True)
        assert int(state.frames[0]["move"]) == sums.argmax()
        seen |= set(found.tolist())
    assert seen == {0, 1, 2, 3, 4, 5}


@njit
def _by_pieces(line, now, _):
    return evaluation.evaluate(line[now, 0], line[now, 1], line[now, 2])


@njit
def _against_the_best(state, ply, unlikely):
    for i in range(state.frames[ply].num_moves):
        state.reductions[ply, i] = 3
        state.order[ply, i] = state.moves[ply, i].code != unlikely


@njit
def _search_misled(state, budget, unlikely):
    return kernels.search_with(state, budget, _by_pieces, _against_the_best, unlikely)


def test_a_surprise_is_searched_in_full() -> None:
    """A shot that is rated as the least likely move, and searched three plies less deep, is still found."""
    board = Board(EXCHANGE)
    moves = movegen.new_moves()
    movegen.generate(*map(np.uint32, board.words()), moves, movegen.DISTINCT)
    shot = moves[[str(move) for move in search_moves(board)].index("22-18")]["code"]

    def misled(state: kernels.SearchState, budget: int) -> bool:
        return bool(_search_misled(state, budget, shot))

    deep = AlphaBetaPlayer(11, search=misled).analyse(board)
    assert str(deep.choose()) == "22-18"
    assert deep.score > AlphaBetaPlayer(1).analyse(board).score + evaluation.MAN


def test_a_pruning_search_in_slices_is_the_same_search() -> None:
    search = WideNodeSearch(random_wide(CONFIG))
    for board in random_boards(4, 10, 50, 12):
        results = []
        for budget in (1, 7, 1 << 40):
            state = started(board, 5)
            while not search(state, budget):
                pass
            root = state.frames[0]
            results.append((int(root["best"]), int(root["best_move"]), int(state.search[0]["nodes"])))
        assert results[0] == results[1] == results[2]


def test_tables_go_before_the_network() -> None:
    player = AlphaBetaPlayer(3, search=WideNodeSearch(random_wide(CONFIG), open_tablebase()))
    for fen, least, most in ((WON, 5_000, evaluation.LEAST_WIN), (DRAWN, 0, 0)):
        player.analyse(Board(fen))  # finds no block in memory yet
        player.seed(0)
        assert least <= player.analyse(Board(fen)).score <= most


def test_a_missing_table_is_no_value() -> None:
    """As in a folder that was copied in part: of the moves here, only those into other tables would be judged."""
    with open_tablebase() as tables:
        slices = tables.compiled().blocks.slices
        slices["start"][code_of(*map(np.uint32, Board("W:WK1,K2:BK32").words()))] = -1
        slices["start"][code_of(*map(np.uint32, Board("B:WK1,K2:BK32").words()))] = -1
        player = AlphaBetaPlayer(4, search=WideNodeSearch(random_wide(CONFIG), tables))
        for fen in ("W:WK5,K2:B28", "W:WK1,K2:B24"):
            for _ in range(2):  # the first time blocks are loaded
                assert abs(player.analyse(Board(fen)).score) <= 20_000


def test_near_80_plies_deeper_entries_of_the_table_answer_nothing() -> None:
    """An entry that was searched 24 plies deep may see a win behind the 80th ply."""
    search = WideNodeSearch(random_wide(CONFIG))
    state = started(Board("W:WK10,K11:BK30"), 5)
    search(state, 1)
    assert state.search[0]["prunes"]
    frame, key = state.frames[1], np.uint64(12345)
    frame["key"], frame["depth"], frame["alpha"], frame["beta"] = key, 3, -100, 100
    state.table[int(key) & (len(state.table) - 1), 0] = (key, evaluation.WIN - 21, 1, 24, kernels.EXACT, 0)
    for reversible, answered in ((40, True), (41, False), (61, False)):
        assert kernels._answered_by_table(state, frame, 1, reversible) is answered


def test_its_text() -> None:
    assert parse_player("alphabeta:champion") == NetworkSpec("champion", alphabeta=True)
    assert parse_player("alphabeta:runs/x@off@5000").text == "alphabeta:runs/x@5000@off"
    for wrong in ("alphabeta:champion@ponder", "alphabeta:champion@c_puct=1"):
        with pytest.raises(PlayerSpecError, match="after @ only off and a number of nodes are allowed"):
            parse_player(wrong)


def test_it_plays_by_nodes_and_by_time(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["wide32"]), {})
    text = f"alphabeta:{tmp_path / 'net'}"
    player = make_player(parse_player(f"{text}@2000"), Conditions())
    assert isinstance(player, AlphaBetaPlayer)
    assert 2000 <= player.analyse(Board()).count < 3000
    assert settings_text(parse_player(text), Conditions(simulations=700)).startswith(
        "nodes=700 oracle=tablebase weights="
    )
    for limit in ({"simulations": 300}, {"seconds": 0.01}):
        request = MatchRequest(text, str(tmp_path / "net"), 2, openings="random:4", jobs=1, **limit)
        assert match_command(request, quiet=True)["errors"] == []


def test_nodes_limit_moves_alone() -> None:
    player = AlphaBetaPlayer(MAX_DEPTH, search=WideNodeSearch(random_wide(CONFIG)), nodes=1000)
    move = player.begin(Board())
    while move.advance(1.0):
        pass
    assert move.count == 1000
    game = player.begin(Board(), "game")
    while game.count < 3000:
        assert game.advance(0.01)


def test_it_is_for_wide_networks(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]), {})
    with pytest.raises(BackendError, match="alpha-beta is for wide networks, and this one is residual"):
        make_player(parse_player(f"alphabeta:{tmp_path / 'net'}"), Conditions())
