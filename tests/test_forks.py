"""Games that begin beside earlier ones."""

import numpy as np
from replayed import boards_of
from test_actor import SEARCH, play

from engine.board import Board
from engine.players.base import search_moves
from selfplay.games.forks import FEWEST_PIECES, Forks
from selfplay.games.records import GAME, GameRecord


def side_positions(record: GameRecord) -> set[tuple[int, int, int]]:
    """Words of the positions one move beside the game: after moves with a probability that are not the likeliest."""
    boards = [board.copy() for board in boards_of(record)]
    found, samples = set(), record.samples
    for row, board in [(row, boards[ply]) for row, ply in enumerate(samples.ply)]:
        if not samples.has_policy[row] or samples.kind[row] != GAME or len(board.piece_map()) < FEWEST_PIECES:
            continue
        first, last = samples.policy_offsets[row : row + 2]
        policy = samples.move_probabilities[first:last]
        for index, move in enumerate(search_moves(board)):
            if index != policy.argmax() and policy[index] > 0:
                board.push(move)
                found.add(board.words())
                board.pop()
    return found


def test_a_fork_is_one_move_beside_a_game() -> None:
    rng = np.random.default_rng(0)
    for record in play(SEARCH):
        forks = Forks()
        forks.add(record.samples, rng)
        board = forks.take(rng)
        assert (board is not None) == bool(side_positions(record))
        assert board is None or board.words() in side_positions(record)
        assert forks.take(rng) is None, "each is taken once"


def test_half_of_the_games_begin_beside_others() -> None:
    records = play(SEARCH, min_samples=3000, fork_fraction=0.5, random_opening_plies=0, ballot_fraction=0.0)
    start = Board().fen()
    forked = [record for record in records if record.start_fen != start]
    assert 0.3 < len(forked) / len(records) < 0.6  # the first games find no position yet
    assert len({record.start_fen for record in forked}) == len(forked)
