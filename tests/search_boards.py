"""Boards of many kinds, and searches of them, for tests of the search."""

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import reference
from search_reference import HashEvaluator, Words, distinct_moves, turned

from engine.board import Board
from engine.search import LeafOracle, LockstepSearch, SearchConfig


def random_game(rng: random.Random, plies: int) -> Board:
    """A game of random moves that is not over: of ``plies`` plies, or up to the last position before its end."""
    board = Board()
    for _ in range(plies):
        board.push(rng.choice(board.legal_moves))
        if board.outcome() is not None:
            board.pop()
            break
    return board


def played(fen: str, moves: str) -> Board:
    """The board after these moves in PDN."""
    board = Board(fen)
    for move in moves.split():
        board.push_pdn(move)
    return board


def placed(rng: random.Random, most: int, kings: float) -> Board:
    """A random position in which the side to move has a legal move."""
    while True:
        board = Board(reference.random_position(rng, most, kings).fen())
        if board.outcome() is None:
            return board


def shuffled(rng: random.Random, plies: int, repeat: bool) -> Board:
    """A king ending after ``plies`` reversible plies; with ``repeat``, kings move to and fro and repeat positions."""
    while True:
        board = placed(rng, 2, 1.0)
        while board.ply < plies and push_reversible(board, rng, repeat):
            pass
        if board.ply == plies:
            return board


def push_reversible(board: Board, rng: random.Random, repeat: bool) -> bool:
    """Makes a random reversible move that does not end the game and, unless ``repeat``, repeats no position; returns
    whether there was one."""
    moves = board.legal_moves
    rng.shuffle(moves)
    if repeat and board.ply > 1:
        before = board.move_stack[-2]
        moves.sort(key=lambda move: (move.start, move.end) != (before.end, before.start))
    for move in moves:
        board.push(move)
        if board.reversible_plies and board.outcome() is None and (repeat or board.repetitions() == 1):
            return True
        board.pop()
    return False


def mixed_boards(seed: int) -> list[Board]:
    """Middle games, endings, positions close to a repetition or to 80 plies, forced sequences."""
    return [board.copy() for board in _mixed_boards(seed)]


@cache  # cached: a long game without repetition is found by trying, which takes a second
def _mixed_boards(seed: int) -> list[Board]:
    rng = random.Random(seed)
    boards = [random_game(rng, rng.randint(0, 60)) for _ in range(4)]
    boards += [placed(rng, 8, 0.4), placed(rng, 4, 0.7), placed(rng, 2, 1.0), placed(rng, 12, 0.9)]
    boards += [shuffled(rng, plies, True) for plies in (3, 4, 6, 7)]
    boards += [shuffled(rng, plies, False) for plies in (70, 77, 79)]
    while len(boards) < 18:
        board = placed(rng, 6, 0.5)
        if len(board.legal_moves) == 1 or len(board.legal_moves[0].captured) > 1:
            boards.append(board)
    return boards


def started(
    config: SearchConfig, boards: list[Board], explore: bool = False, seed: int = 0, oracle: LeafOracle | None = None
) -> LockstepSearch:
    """A search with every board in its slot, ready to run."""
    search = LockstepSearch(config, len(boards), seed=seed, leaf_oracle=oracle)
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.start(slot, explore=explore)
    return search


def searched(board: Board, simulations: int, **settings: Any) -> LockstepSearch:
    """The finished search of one board, without noise."""
    search = started(SearchConfig(num_simulations=simulations, **settings), [board])
    search.run(HashEvaluator())
    return search


def push_index(board: Board, index: int) -> None:
    """Makes move number ``index`` of the search's order on a board."""
    wanted = distinct_moves(board.words())[index][1]
    for move in board.legal_moves:
        board.push(move)
        if board.words() == wanted:
            return
        board.pop()
    raise AssertionError(f"no legal move in {board.fen()} leads to move {index} of the search")


def index_of(board: Board, text: str) -> int:
    """The search's number of a move."""
    after = board.copy()
    after.push_pdn(text)
    return [words for _, words in distinct_moves(board.words())].index(after.words())


def nodes_below(search: LockstepSearch, slot: int) -> Iterator[Any]:
    """All nodes of the slot's tree, parents first."""
    nodes = [search._root(slot)]
    while nodes:
        node = nodes.pop()
        yield node
        nodes += children_of(search, node)


def children_of(search: LockstepSearch, node: Any) -> list[Any]:
    return list(search._nodes[int(node["first_child"]) :][: int(node["num_children"])])


def words_at(node: Any) -> Words:
    """The position after a node's move, seen by the side to move."""
    return turned((int(node["own"]), int(node["opp"]), int(node["kings"])))
