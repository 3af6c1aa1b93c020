"""The players: legal, reproducible, and each as strong as it claims; the searches against slow, obvious references."""

import numpy as np

from engine.board import Board
from engine.players.alphabeta import AlphaBetaPlayer
from engine.players.evaluation import DRAW, WIN, evaluate
from engine.players.random_player import RandomPlayer


def random_boards(count, plies, seed):
    """Positions of random games, none of them over."""
    player = RandomPlayer(seed)
    boards = []
    rng = np.random.default_rng(seed)
    while len(boards) < count:
        board = Board()
        for _ in range(rng.integers(plies[0], plies[1])):
            if board.outcome():
                break
            board.push(player.choose([board])[0])
        if not board.outcome():
            boards.append(board)
    return boards


def negamax(board, depth, ply=0, since_root=()):
    """Value of a position by the rules of the alpha-beta player's search, written as plainly as can be."""
    words = (board.turn, board.words())
    if ply > 0 and (board.repetitions() >= 3 or words in since_root[1:]):
        return DRAW
    moves = board.legal_moves
    if not moves:
        return ply - WIN
    if ply > 0 and board.reversible_plies >= 80:
        return DRAW
    if depth == 0 and not moves[0].captured:
        return evaluate(*map(np.uint32, board.words()))
    left = depth if len(moves) == 1 else max(0, depth - 1)
    values = []
    for move in moves:
        board.push(move)
        values.append(-negamax(board, left, ply + 1, (*since_root, words)))
        board.pop()
    return max(values)
