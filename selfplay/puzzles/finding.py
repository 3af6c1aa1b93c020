"""Finds puzzles among positions: a short search of each, then a search after each move of the promising ones."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.board import Board, Move
from engine.players.base import search_moves
from engine.puzzles.puzzle import Goal, Proof, Puzzle
from engine.puzzles.themes import theme_of
from engine.search import SearchResult

from .rating import WEAKEST, LevelSolver, rating_of
from .settling import STRICT, Bounds, MoveValue, OnlyMove, Settler, only_move

FEWEST_MOVES = 3  # fewest moves in the first position: a choice of two would be a guess
_LEAD = 1  # most pieces that a side is ahead: with a larger lead there is seldom one right move (7 puzzles of 369)
_GLANCE = 300  # simulations of a short search
_HOPEFUL, _LIKELY = Bounds(0.5, 0.6), Bounds(0.75, 0.45)  # for a short search, and for short searches after each move
_LEAST_RATING = WEAKEST  # puzzles up to this rating are too easy
_SOLUTIONS = 6  # most moves that the solver must find
_LINE = 12  # most plies of the line shown


class _Candidate(NamedTuple):
    """An unfinished puzzle: its board, its moves so far, and (board, index of the right move) of each choice."""

    board: Board
    moves: tuple[Move, ...]
    only: OnlyMove
    choices: tuple[tuple[Board, int], ...]


class Finder:
    """Finds puzzles; a position in the line of an earlier puzzle does not become another one.

    Args:
        known: puzzles found earlier.
    """

    def __init__(self, settler: Settler, levels: LevelSolver, known: Sequence[Puzzle]) -> None:
        self._settler, self._levels = settler, levels
        self._seen: set[tuple[int, int, int]] = set()
        for puzzle in known:
            self._remember(Board(puzzle.fen), puzzle.moves[: puzzle.asked])

    def find(self, boards: Sequence[Board]) -> list[Puzzle]:
        """The puzzles among positions, in their order."""
        fresh = list({board.words(): board for board in boards if board.words() not in self._seen}.values())
        fresh = [board for board in fresh if _is_even(board) and len(search_moves(board)) >= FEWEST_MOVES]
        found = [
            _Candidate(board, (search_moves(board)[only.place],), only, ((board, only.place),))
            for board, only in self._only_moves(fresh)
        ]
        found = self._without_repeats(self._extended(found))
        return [puzzle for puzzle in self._to_puzzles(found) if puzzle.rating > _LEAST_RATING]

    def _only_moves(self, boards: Sequence[Board]) -> list[tuple[Board, OnlyMove]]:
        known = self._settler.by_tables(boards)
        looked = [board for board, values in zip(boards, known, strict=True) if values is None]
        few = min(_GLANCE, self._settler.simulations)
        glances = self._settler.screen(looked, few)
        hopeful = [b for b, glance in zip(looked, glances, strict=True) if only_move(_seen_by(glance, b), _HOPEFUL)]
        quickly = self._settler.values(hopeful, few)
        hopeful = [b for b, values in zip(hopeful, quickly, strict=True) if only_move(values, _LIKELY)]
        settled = dict(zip([board.words() for board in hopeful], self._settler.values(hopeful), strict=True))
        answers = []
        for board, values in zip(boards, known, strict=True):
            values = settled.get(board.words()) if values is None else values
            only = None if values is None else only_move(values, STRICT)
            if only is not None:
                answers.append((board, only))
        return answers

    def _extended(self, found: Sequence[_Candidate]) -> list[_Candidate]:
        """Extends each puzzle as long as the opponent has only one reply and the solver only one right move."""
        growing, grown = list(range(len(found))), list(found)
        for _ in range(_SOLUTIONS - 1):
            steps = [(index, step) for index in growing if (step := _after_reply(grown[index])) is not None]
            values = self._settler.values([board for _, (board, _) in steps])
            growing = []
            for (index, (board, reply)), known in zip(steps, values, strict=True):
                one = grown[index]
                only = OnlyMove(0, one.only.goal, one.only.proof) if len(known) == 1 else only_move(known, STRICT)
                if only is None or only.goal is not one.only.goal:
                    continue
                choices = one.choices if len(known) == 1 else (*one.choices, (board, only.place))
                proof = one.only.proof if len(known) == 1 else _weaker(one.only.proof, only.proof)
                moves = (*one.moves, reply, known[only.place].move)
                grown[index] = _Candidate(one.board, moves, one.only._replace(proof=proof), choices)
                growing.append(index)
        return grown

    def _without_repeats(self, found: Sequence[_Candidate]) -> list[_Candidate]:
        """Drops puzzles that are part of another's line (longer lines are kept), and remembers the positions."""
        kept = set()
        for index in sorted(range(len(found)), key=lambda index: -len(found[index].moves)):
            if found[index].board.words() not in self._seen:
                self._remember(found[index].board, found[index].moves)
                kept.add(index)
        return [one for index, one in enumerate(found) if index in kept]

    def _remember(self, board: Board, moves: Sequence[Move]) -> None:
        after = board.copy()
        for move in moves:
            self._seen.add(after.words())
            after.push(move)

    def _to_puzzles(self, found: Sequence[_Candidate]) -> list[Puzzle]:
        choices = [choice for one in found for choice in one.choices]
        solved = self._levels.probabilities([board for board, _ in choices], [index for _, index in choices])
        first, puzzles = 0, []
        for one in found:
            line = self._settler.line(_after(one.board, one.moves), -1 if one.only.goal is Goal.WIN else 0)
            together = np.prod(solved[first : first + len(one.choices)], axis=0)
            first += len(one.choices)
            puzzles.append(_puzzle(one, line, *rating_of(together)))
        return puzzles


def _is_even(board: Board) -> bool:
    own, opp, _ = board.words()
    return abs(own.bit_count() - opp.bit_count()) <= _LEAD


def _seen_by(glance: SearchResult, board: Board) -> list[MoveValue]:
    return [MoveValue(move, float(value)) for move, value in zip(search_moves(board), glance.values, strict=True)]


def _after_reply(one: _Candidate) -> tuple[Board, Move] | None:
    """The board after the opponent's only reply, and the reply; None if it has a choice or the game is over."""
    after = _after(one.board, one.moves)
    replies = after.distinct_moves
    if len(replies) != 1:
        return None
    after.push(replies[0])
    return (after, replies[0]) if after.legal_moves else None


def _after(board: Board, moves: Sequence[Move]) -> Board:
    after = board.copy()
    for move in moves:
        after.push(move)
    return after


def _weaker(one: Proof, other: Proof) -> Proof:
    return max(one, other, key=list(Proof).index)


def _puzzle(one: _Candidate, line: Sequence[Move], rating: int, deviation: int) -> Puzzle:
    moves, whole = one.moves, (*one.moves, *line)
    texts = one.board.pdn_line(whole[: max(len(moves), _LINE)])
    theme = theme_of(one.board, whole, one.only.goal)
    return Puzzle(one.board.fen(), texts, len(moves), one.only.goal, theme, one.only.proof, rating, deviation)
