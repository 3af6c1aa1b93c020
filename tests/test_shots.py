"""Shots against a plain recursive search, positions whose shots are known, and what they do to a search."""

import numpy as np
import pytest
from search_boards import mixed_boards
from search_reference import HashEvaluator
from shot_reference import plain_shot

from engine.board import Board
from engine.players.base import search_moves
from engine.search import LockstepSearch, SearchConfig
from engine.search.shots import MAX_NODES, NO_SHOT, find_shot, new_shot_frames

ROOM = new_shot_frames()


def shot_in(board: Board) -> tuple[int, int]:
    return find_shot(*(np.uint32(word) for word in board.words()), *ROOM)


def move_in(board: Board) -> str:
    """The shot in PDN, or nothing."""
    number, _ = shot_in(board)
    return "" if number == NO_SHOT else board.pdn(search_moves(board)[number])


def test_as_the_plain_search() -> None:
    rng = np.random.default_rng(3)
    gains = []
    for _ in range(60):
        board = Board()
        for _ in range(rng.integers(4, 70)):
            legal = board.legal_moves
            if not legal:
                break
            board.push(legal[rng.integers(len(legal))])
            shot, gain, nodes = plain_shot(board.words())
            if nodes < MAX_NODES // 2:
                assert shot_in(board) == (shot, gain), board.fen()
                gains.append(gain)
    assert len(gains) > 1000
    assert sum(gain > 0 for gain in gains) > 50
    assert max(gains) >= 6


def test_as_the_plain_search_with_kings() -> None:
    for board in mixed_boards(seed=11):
        shot, gain, nodes = plain_shot(board.words())
        if nodes < MAX_NODES // 2:
            assert shot_in(board) == (shot, gain), board.fen()


@pytest.mark.parametrize(
    ("fen", "shot", "gain"),
    [
        ("W:W20,24,29:B2,5,6,7,8,13,18,K23,K32", "24-19", 4),
        ("B:W15,16,20,21,24,31:B2,3,4,7,8,9", "7-11", 4),
        ("B:W21,22,23:B1,2,3", "", 0),
        ("B:W18,22:B15,1", "", 0),  # must capture: nothing is offered
    ],
)
def test_known_positions(fen: str, shot: str, gain: int) -> None:
    assert move_in(Board(fen)) == shot
    assert shot_in(Board(fen))[1] == gain


def test_a_search_that_is_cut_short_reports_finished_lines_only() -> None:
    board = Board("W:WK1,K2,K3,K4,K9,K10,K11,K12:BK18,K20,K22,K24,K26,K28,K30,K32")
    number, gain = shot_in(board)
    assert (number == NO_SHOT) == (gain == 0)


def test_priors_of_shots() -> None:
    """At least so much for the shot, the others share the rest as before; without shots nothing changes."""
    boards = [*mixed_boards(seed=2), Board("B:W15,16,20,21,24,31:B2,3,4,7,8,9")]
    found = 0
    plain, raised = (priors_of(boards, SearchConfig(num_simulations=2, shot_prior=least)) for least in (0.0, 0.4))
    for board, before, after in zip(boards, plain, raised, strict=True):
        number, _ = shot_in(board)
        expected = before.copy()
        if number != NO_SHOT and before[number] < 0.4:
            found += 1
            expected *= 0.6 / (1 - before[number])
            expected[number] = 0.4
        np.testing.assert_allclose(after, expected, atol=1e-6)
    assert found > 0


def priors_of(boards: list[Board], config: SearchConfig) -> list[np.ndarray]:
    search = LockstepSearch(config, len(boards))
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.start(slot, explore=False)
    search.run(HashEvaluator())
    return [search.result(slot).priors for slot in range(len(boards))]
