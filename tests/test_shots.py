"""Shots: compared with a plain recursive search, in known positions, and their effect on a search."""

import numpy as np
import pytest
from search_boards import mixed_boards
from search_reference import HashEvaluator
from shot_reference import material, plain_shots

from engine.board import Board
from engine.players.base import search_moves
from engine.search import LockstepSearch, SearchConfig, shots
from engine.search.shots import MAX_NODES, MOST_TOGETHER, find_shots, new_shot_frames

ROOM = new_shot_frames()
WITH_SHOTS = (
    "B:W15,16,20,21,24,31:B2,3,4,7,8,9",
    "W:W11,13,17,25,27,28,29,30,31,32:B2,3,4,5,6,7,12,16,18,19",
)


def shots_in(board: Board) -> list[int]:
    found = int(find_shots(*(np.uint32(word) for word in board.words()), *ROOM))
    return [number for number in range(64) if found >> number & 1]


def moves_in(board: Board) -> list[str]:
    """The shots in PDN."""
    return [board.pdn(search_moves(board)[number]) for number in shots_in(board)]


def test_as_the_plain_search() -> None:
    rng = np.random.default_rng(3)
    numbers, gains = [], []
    for _ in range(60):
        board = Board()
        for _ in range(rng.integers(4, 70)):
            legal = board.legal_moves
            if not legal:
                break
            board.push(legal[rng.integers(len(legal))])
            found, nodes = plain_shots(board.words())
            if nodes < MAX_NODES // 2:
                assert shots_in(board) == list(found), board.fen()
                numbers.append(len(found))
                gains.extend(found.values())
    assert len(numbers) > 1000
    assert sum(number > 0 for number in numbers) > 50
    assert sum(number > 1 for number in numbers) > 10
    assert max(gains) >= 12
    assert {1, 2, 4, 5, 6} < set(gains)


def test_as_the_plain_search_with_kings() -> None:
    for board in mixed_boards(seed=11):
        found, nodes = plain_shots(board.words())
        if nodes < MAX_NODES // 2:
            assert shots_in(board) == list(found), board.fen()


@pytest.mark.parametrize(
    ("fen", "expected"),
    [
        ("W:W20,24,29:B2,5,6,7,8,13,18,K23,K32", ["24-19"]),
        ("B:W15,16,20,21,24,31:B2,3,4,7,8,9", ["7-11", "8-11"]),
        ("B:W21,22,23:B1,2,3", []),
        ("B:W18,22:B15,1", []),  # must capture: nothing is offered
        # From lost games: two shots for the same man at first; three men for three men and a king; a man that is
        # crowned next.
        ("W:W11,13,17,25,27,28,29,30,31,32:B2,3,4,5,6,7,12,16,18,19", ["27-23", "11-8"]),
        ("W:W13,20,21,23,26,27,29,30,32:B4,5,6,7,10,11,12,14,15", ["23-19"]),
        ("B:W15,18,21,23,26,28,29,30,31:B1,3,4,7,8,9,13,19,20", ["20-24"]),
    ],
)
def test_known_positions(fen: str, expected: list[str]) -> None:
    assert sorted(moves_in(Board(fen))) == sorted(expected)


def test_what_pieces_are_worth() -> None:
    """By hand: White has a king, a man one step from crowning and two others; Black has the same and one more man."""
    board = Board("W:WK18,5,21,22:BK1,9,10,26,12")
    assert material(board.words()) == (6 + 5 + 4 + 4) - (6 + 4 + 4 + 5 + 4)


def test_a_search_that_is_cut_short_reports_finished_lines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shots, "MAX_NODES", 6)
    room = [array.view(np.recarray) for array in new_shot_frames()]
    fewer = 0
    for board in [*mixed_boards(seed=2), *(Board(fen) for fen in WITH_SHOTS)]:
        found = int(find_shots.py_func(*(np.uint32(word) for word in board.words()), *room))
        known = sum(1 << number for number in shots_in(board))
        assert found & ~known == 0
        fewer += found != known
    assert fewer > 0


@pytest.mark.parametrize("least", [0.4, 0.9])
def test_priors_of_shots(least: float) -> None:
    """Each shot gets at least ``least``, the other moves keep their proportions; without shots nothing changes."""
    boards = [*mixed_boards(seed=2), *(Board(fen) for fen in WITH_SHOTS)]
    raised = 0
    plain, after = (priors_of(boards, SearchConfig(num_simulations=2, shot_prior=prior)) for prior in (0.0, least))
    for board, before, found in zip(boards, plain, after, strict=True):
        numbers = shots_in(board)
        wanted = min(least, MOST_TOGETHER / len(numbers)) if numbers else 0.0
        low = [number for number in numbers if before[number] < wanted]
        others = [number for number in range(len(before)) if number not in low]
        raised += len(low)
        expected = before.copy()
        expected[low] = wanted
        expected[others] *= (1 - len(low) * wanted) / before[others].sum()
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert found.sum() == pytest.approx(1, abs=1e-5)
    assert raised > len(WITH_SHOTS)


def priors_of(boards: list[Board], config: SearchConfig) -> list[np.ndarray]:
    search = LockstepSearch(config, len(boards))
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.start(slot, explore=False)
    search.run(HashEvaluator())
    return [search.result(slot).priors for slot in range(len(boards))]
