"""The codec's look ahead against a slow one, on boards."""

from typing import NamedTuple

import numpy as np
import pytest
from endgame_oracles import board_of
from solved_tables import solve_tables
from test_endgame_codec import integer_of, small_network

from engine.board import Board
from engine.tablebase.layout import NUM_KINDS, add_slice, layout_of, locate, no_slices
from engine.tablebase.material import pairs_up_to, parse_name
from engine.tablebase.solve import free_places, grids_of, place_word, seen_by_mover
from engine.tablebase.solver import Workers
from learner.endgame.integer_network import IntegerNetwork, judge_integer, new_buffers
from learner.endgame.look_ahead import look_ahead
from learner.endgame.mixing import TOP, add_logits

PAIRS = [pair.name for pair in pairs_up_to(3) if pair.pieces == 3]
NETWORK = integer_of(small_network(5))


class Place(NamedTuple):
    """A position with the first side to move, and where it is in a pair: its word and the roamer's bit."""

    word: int
    bit: int
    words: tuple[int, int, int]


class Known:
    """What a codec knows of a pair halfway: captures and promotions, and a third of the open positions.

    Attributes:
        values, unknown: with the first and with the second side to move, each uint32 [2, words, 2].
    """

    def __init__(self, name: str) -> None:
        tables, pair = solve_tables(3, 1), parse_name(name)
        self.layout = layout_of(pair)
        self.grids = grids_of(self.layout)
        self.values = np.zeros((2, self.layout.words, 2), np.uint32)
        self.unknown = np.zeros_like(self.values)
        with Workers(1) as workers:
            for side in range(2):
                workers.settle(self.grids[side], tables.slices, tables.words, self.values[side], self.unknown[side])
            workers.sweep(self.grids[0], self.values[0], self.unknown[0], self.values[1])
        truth = tables.slice_rows(pair)
        self._slices = no_slices()
        for material in (pair, pair.swapped()):
            add_slice(self._slices, material, 0)
        self.open = []
        for place in self._places():
            bit = np.uint32(place.bit)
            if not self.unknown[0, place.word, 0] & bit:
                continue
            if hash(place.words) % 3 == 0:  # the same for all copies of a position
                self.values[0, place.word] |= truth[place.word] & bit
                self.unknown[0, place.word] &= ~bit
            else:
                self.open.append(place)

    def _places(self) -> list[Place]:
        grid, pieces = self.grids[0], np.zeros(NUM_KINDS, np.uint32)
        found = []
        for word in range(self.layout.words):
            taken = int(place_word(grid, word, np.zeros(NUM_KINDS, np.int64), pieces))
            others = int(pieces[grid.roamer])
            for bit in (1 << square for square in range(32)):
                if int(free_places(grid.roamer, np.uint32(taken))) & bit:
                    pieces[grid.roamer] = others | bit
                    found.append(Place(word, bit, tuple(map(int, seen_by_mover(grid, pieces)))))
            pieces[grid.roamer] = others
        return found

    def state(self, board: Board, side: int) -> str:
        """``win``, ``draw`` or ``loss`` for the side to move, or ``open``; not of positions outside the pair."""
        word, place = locate(*map(np.uint32, board.words()), self._slices)
        assert word >= 0
        bit = np.uint32(1 << int(place))
        if self.unknown[side, word, 0] & bit:
            return "open" if self.unknown[side, word, 1] & bit else "open, safe"
        won, lost = self.values[side, word] & bit
        return "win" if won else "loss" if lost else "draw"


def judged(board: Board, network: IntegerNetwork) -> list[int]:
    logits = np.zeros(3, np.int64)
    judge_integer(*map(np.uint32, board.words()), network, new_buffers(network), logits)
    return logits.tolist()


def after(board: Board) -> list[Board]:
    """The boards after all moves that crown no man: what crowned ones decide is settled before."""
    boards = []
    for move in board.legal_moves:
        made = board.copy()
        made.push(move)
        if made.words()[2].bit_count() == board.words()[2].bit_count():
            boards.append(made)
    return boards


def slow_look_ahead(board: Board, known: Known) -> list[int]:
    """As ``look_ahead``: log-odds that some position one step further on is lost, and that all are won."""
    lost, won = -TOP, TOP
    for child in after(board):
        state = known.state(child, 1)
        if state.startswith("open"):
            replies = [known.state(reply, 0) for reply in after(child)]
            if "loss" in replies:
                state = "win"
            elif not any(reply.startswith("open") for reply in replies):
                state = "draw" if "draw" in replies or state == "open, safe" else "loss"
            else:
                win, draw, loss = judged(child, NETWORK)
                won = min(won, win - draw)
                if "draw" not in replies and state == "open":
                    lost = max(lost, loss - int(add_logits(win, draw)))
        if state == "draw":
            won = -TOP
        if state == "loss":
            lost = TOP
    return [lost, won]


@pytest.mark.parametrize("name", PAIRS)
def test_look_ahead_is_that_of_a_board(name: str) -> None:
    known, ahead = Known(name), np.zeros(2, np.int64)
    grid, ranks, pieces = known.grids[0], np.zeros(NUM_KINDS, np.int64), np.zeros(NUM_KINDS, np.uint32)
    judge = NETWORK, new_buffers(NETWORK), np.zeros(3, np.int64), np.zeros(4, np.int64)
    sides = [(known.values[side], known.unknown[side]) for side in range(2)]
    seen = set()
    for place in known.open[:: max(1, len(known.open) // 300)]:
        taken = place_word(grid, place.word, ranks, pieces)
        before = ranks.copy()
        words = map(np.uint32, place.words)
        look_ahead(*words, grid, ranks, taken, place.word, np.uint32(place.bit), *sides, judge, ahead)
        assert ahead.tolist() == slow_look_ahead(board_of(*place.words), known)
        np.testing.assert_array_equal(ranks, before)
        seen.add((int(ahead[0]), int(ahead[1])))
    assert len(seen) > 5
