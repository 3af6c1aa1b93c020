"""Watched searches: stopping and looking at any time does not change the search that ``choose`` makes."""

import dataclasses
import time
import weakref

import numpy as np
import pytest

from engine.board import Board
from engine.outcomes import DRAW, UNKNOWN
from engine.players import AlphaBetaPlayer, PlayerError, RolloutPlayer, Thinking, Thought, WatchablePlayer
from engine.players import search_player as search_player_module
from engine.players.alphabeta import LOGISTIC_SCALE, MAX_DEPTH
from engine.players.base import search_moves
from engine.players.search_player import SearchPlayer
from engine.search import LockstepSearch, SearchConfig

OPENING = "11-15 22-18 15x22 25x18 8-11 29-25 4-8 25-22 12-16"
WON = "W:WK14,K15:BK12"


class PiecesEvaluator:
    """A deterministic evaluator by material, with different priors for different moves."""

    def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        balance = np.bitwise_count(positions[:, 0]).astype(np.float32) - np.bitwise_count(positions[:, 1])
        mixed = (positions[:, :2].sum(axis=1, dtype=np.uint64) % np.uint64(97)).astype(np.float32)
        policy = np.sin(mixed[:, None] + np.arange(128, dtype=np.float32))
        return policy, np.stack([balance, np.zeros_like(balance), -balance], axis=1)


class DrawOracle:
    """An oracle that gives a draw for the first position it is asked about and knows no other."""

    max_pieces = 9

    def __init__(self) -> None:
        self.first: list[int] | None = None

    def judge(
        self, positions: np.ndarray, patient: bool = True, distances: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        self.first = self.first or positions[0].tolist()
        known = (positions == self.first).all(axis=1)
        return np.where(known, DRAW, UNKNOWN).astype(np.uint8), np.full(len(positions), -1, np.int16)

    def compiled(self) -> None:
        """Every position goes to ``judge``."""


def boards() -> list[Board]:
    middle = Board()
    for move in OPENING.split():
        middle.push_pdn(move)
    return [Board(), middle, Board(WON), Board("B:W18,32:B14,K1")]


def search_player(simulations: int = 90, **settings: object) -> SearchPlayer:
    explore = bool(settings.pop("explore", False))
    config = SearchConfig.model_validate({"num_simulations": simulations, **settings})
    return SearchPlayer("pieces", PiecesEvaluator(), config, explore=explore, seed=5)


def players() -> list[WatchablePlayer]:
    exploring = search_player(600, explore=True)
    prior = search_player(0)
    return [RolloutPlayer(150, seed=5), AlphaBetaPlayer(6, seed=5), search_player(300), exploring, prior]


def watched(thinking: Thinking) -> list[Thought]:
    """Thoughts after each smallest step; the last one is the final thought."""
    thoughts = []
    more = True
    while more:
        more = thinking.advance(0.0)
        thoughts.append(thinking.thought())
    return thoughts


@pytest.mark.parametrize("number", range(len(players())))
def test_a_watched_search_ends_with_the_move_that_is_chosen_unwatched(number: int) -> None:
    """Looking at it after every step draws no random number and changes nothing."""
    for board in boards()[:3]:
        before = board.copy()
        watcher, chooser = players()[number], players()[number]
        thinking = watcher.begin(board)
        watched(thinking)
        assert thinking.choose() == chooser.choose([board])[0]
        assert board.fen() == before.fen()
        assert board.move_stack == before.move_stack


@pytest.mark.parametrize("number", range(len(players())))
def test_thoughts_hold_together_at_every_moment(number: int) -> None:
    for board in boards():
        thinking, counted, legal = players()[number].begin(board), 0, board.legal_moves
        for thought in watched(thinking):
            assert thought.best in legal
            assert thought.count >= counted
            counted = thought.count
            assert len({known.move for known in thought.moves}) == len(thought.moves) <= len(legal)
            after = board.copy()
            for move in thought.line:
                after.push(move)  # legal
            assert thought.line[0] == thought.best
            assert 0.0 <= thinking.progress <= 1.0
            for known in (thought, *thought.moves):
                assert known.value is None or -1.0 <= known.value <= 1.0
                if known.wdl is not None:
                    assert known.value == pytest.approx(known.wdl[0] - known.wdl[2], abs=1e-5)
                    assert sum(known.wdl) == pytest.approx(1.0, abs=1e-5)
        assert thinking.progress == 1.0
        assert not thinking.advance(1.0)
        assert thinking.thought() == thought


def test_the_final_thought_holds_the_figures_of_the_search() -> None:
    board = boards()[1]
    result, line, number = search_player().analyse(board)
    thought = watched(search_player().begin(board))[-1]
    assert thought.best == search_moves(board)[number]
    assert list(thought.line) == line
    assert thought.wdl == pytest.approx(tuple(result.wdl))
    assert thought.count == result.simulations == 90
    by_move = {known.move: known for known in thought.moves}
    assert [by_move[move].visits for move in search_moves(board)] == result.visits.tolist()
    assert [by_move[move].prior for move in search_moves(board)] == result.priors.tolist()
    alphabeta = AlphaBetaPlayer(6)
    found, thought = alphabeta.analyse(board), watched(AlphaBetaPlayer(6).begin(board))[-1]
    assert thought.depth == found.depth == 6
    assert abs(thought.value - np.tanh(found.score / (2 * LOGISTIC_SCALE))) < 0.02  # noise of up to two hundredths


def test_proofs_are_told_with_their_distance() -> None:
    for player in (AlphaBetaPlayer(9), search_player(3000)):
        best = watched(player.begin(Board(WON)))[-1].moves[0]
        assert best.proof == "win"
        assert best.value == pytest.approx(1.0)
        assert best.proof_plies == 2


def test_an_analysis_is_impartial_and_goes_on_beyond_the_player_s_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_player_module, "ANALYSIS", 600)
    board = boards()[1]
    for player in (search_player(10), search_player(10, explore=True)):
        assert watched(player.begin(board, "analysis"))[-1].count == 600
    varied = ({}, {"explore": True}, {"draw_value": -1})
    one, *others = (search_player(10, **settings).begin(board, "analysis") for settings in varied)
    expected = watched(one)[-1]
    assert all(watched(other)[-1] == expected for other in others)
    assert watched(search_player(600, draw_value=-1).begin(board))[-1] != expected
    rollouts = RolloutPlayer(10).begin(board, "analysis")
    assert rollouts.advance(0.0)
    assert rollouts.count > 10
    deep = AlphaBetaPlayer(1).begin(board, "analysis")
    while deep.depth < 4:
        assert deep.advance(0.0)
    assert deep.progress < 4.5 / MAX_DEPTH


def test_in_a_game_a_player_goes_beyond_its_limit_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_player_module, "_TIMED_SIMULATIONS", (100, 600))
    board = boards()[1]
    for settings in ({}, {"draw_value": -1}):
        own = watched(search_player(600, **settings).begin(board))[-1]
        assert watched(search_player(10, **settings).begin(board, "game"))[-1] == own
    rollouts = RolloutPlayer(10).begin(board, "game")
    assert rollouts.advance(0.0)
    assert rollouts.count > 10
    assert RolloutPlayer(300_000).begin(board, "game").simulations == 300_000
    deep, analysis = AlphaBetaPlayer(1).begin(board, "game"), AlphaBetaPlayer(1).begin(board, "analysis")
    while deep.depth < 4:
        assert deep.advance(0.0)
    while analysis.depth < 4:
        assert analysis.advance(0.0)
    assert deep.score != analysis.score  # that one without noise


def test_a_step_is_short_even_where_no_leaf_needs_an_evaluation() -> None:
    """One capture is a proven draw, the other seems to lose: all simulations end in the proven draw."""
    board = Board("W:W18,32:B1,2,3,5,6,7,14,15")
    assert len(board.legal_moves) == 2
    config = SearchConfig(oracle="tablebase")
    player = SearchPlayer("p", PiecesEvaluator(), config, leaf_oracle=DrawOracle())
    thinking = player.begin(board, "analysis")
    counts = [0]
    while counts[-1] < 5000:
        assert thinking.advance(0.0)
        counts.append(thinking.thought().count)
    steps = np.diff(counts)
    assert steps.max() > 50  # as it should be here: one evaluation, many simulations
    assert steps.max() <= search_player_module._SLICE + 1
    best = thinking.thought().moves[0]
    assert best.proof == "draw"
    assert best.visits > 4900


def test_an_analysis_of_another_line_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_player_module, "ANALYSIS", 600)
    player, board = search_player(10), boards()[1]
    first = watched(player.begin(board, "analysis"))[-1]
    kept = weakref.ref(player.begin(board, "analysis"))
    board.push(first.best)
    player.begin(board, "analysis")
    assert kept() is not None  # the game goes on: so does the tree
    player.begin(Board(), "analysis")
    assert kept() is None
    assert watched(player.begin(boards()[1], "analysis"))[-1] == first


def test_the_tree_is_kept_within_a_game_and_only_there() -> None:
    board, player = boards()[1], search_player(200)
    first = watched(player.begin(board))[-1]
    assert first.kept == 0
    reply = first.line[1]
    board.push(first.best)
    board.push(reply)
    second = watched(player.begin(board))
    assert 0 < second[0].kept < 200
    assert 200 <= second[-1].count <= 201  # the root's own evaluation was a visit of the kept move
    same = watched(player.begin(board))
    assert same[-1].kept == same[-1].count == second[-1].count
    earlier = board.copy()
    earlier.pop()
    assert watched(player.begin(earlier))[-1].kept == 0
    other = Board(earlier.fen())  # the same position without its history
    assert watched(player.begin(other))[-1].kept == 0
    player.seed(1)
    assert watched(player.begin(other))[-1].kept == 0
    forgetful = search_player(200, reuse_tree=False)
    assert [watched(forgetful.begin(board))[-1].kept for _ in range(2)] == [0, 0]


def test_a_kept_tree_says_of_moves_what_a_new_one_says() -> None:
    """The moves of the kept root are those of the board, in the same order, with the same priors."""
    board, player = boards()[1], search_player(200)
    for _ in range(6):
        thought = watched(player.begin(board))[-1]
        fresh = watched(search_player(200).begin(board))[-1]
        assert {known.move: known.prior for known in thought.moves} == pytest.approx(
            {known.move: known.prior for known in fresh.moves}
        )
        board.push(thought.best)


def test_exploring_games_vary_by_the_seed_alone() -> None:
    def game(seed: int, explore: bool) -> list[str]:
        player, board = search_player(40, explore=explore), Board()
        player.seed(seed)
        for _ in range(8):
            thinking = player.begin(board)
            watched(thinking)
            board.push(thinking.choose())
        return [str(move) for move in board.move_stack]

    assert game(1, True) == game(1, True)
    assert len({tuple(game(seed, True)) for seed in range(4)}) > 1
    assert game(1, False) == game(2, False)
    player, boards_ = search_player(40, explore=True), [Board()] * 12
    player.seed(1)
    once = player.choose(boards_)
    assert len({str(move) for move in once}) > 1
    player.seed(1)
    assert player.choose(boards_) == once


@pytest.mark.parametrize("number", range(len(players())))
def test_a_board_without_a_move_cannot_be_watched(number: int) -> None:
    with pytest.raises(PlayerError, match="no legal move"):
        players()[number].begin(Board("B:W21:B"))


def test_thoughts_cannot_be_changed() -> None:
    thought = watched(AlphaBetaPlayer(1).begin(Board()))[-1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        thought.count = 0  # type: ignore[misc]


def test_a_player_against_time_keeps_its_tree() -> None:
    player = SearchPlayer("pieces", PiecesEvaluator(), SearchConfig(), seconds=0.05)
    board = Board()
    player.choose([board])  # compiles
    begun = time.perf_counter()
    (move,) = player.choose([board])
    assert 0.04 < time.perf_counter() - begun < 10.0
    board.push(move)
    later = player.begin(board)
    assert later.advance(0.0)
    assert later.thought().kept > 0
    assert later.advance(-10.0), "what came before the search took all of its time"


def test_whatever_a_move_may_need_is_prepared_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the code for leaves that waited for a table, which are evaluated through Python, by other compiled code, and
    those for what is told of a move and for the next one, which keeps a part of the tree."""
    evaluator, asked = PiecesEvaluator(), list[int]()
    evaluate, play, played = evaluator.evaluate, LockstepSearch.play, list[int]()
    result, told = LockstepSearch.result, list[int]()
    monkeypatch.setattr(evaluator, "evaluate", lambda leaves: asked.append(len(leaves)) or evaluate(leaves))
    monkeypatch.setattr(LockstepSearch, "play", lambda *call: played.append(call[2]) or play(*call))
    monkeypatch.setattr(LockstepSearch, "result", lambda *call: told.append(call[1]) or result(*call))
    SearchPlayer("x", evaluator, seconds=0.1).prepare()
    assert asked[0] == 1
    assert len(played) == len(told) == 1
