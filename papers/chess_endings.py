"""Win/draw/loss values of all chess endings of three and four men, solved from the rules.

Each ending is solved after those that its captures and promotions lead to: first what these decide, then, from mates on
backwards, what moves within the ending do. The 50-move rule changes nothing here: see ``Solved.plies``.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numba import njit

from .chess_moves import (
    BLACK,
    MOST_WAYS,
    NOBODY,
    OUTER_RANKS,
    PAWN,
    QUEEN,
    WHITE,
    Ending,
    capture_word,
    gather,
    legal_word,
)

LOST, NOT_WON, LEGAL = range(3)
_FLIP = np.arange(64) ^ 56
_PROMOTED = range(QUEEN, PAWN)


class Solved(NamedTuple):
    """Values of an ending.

    Attributes:
        sets: uint64 [3, 2, 64, 64, N]: the lost, the not won and the legal positions of each side to move
            (``chess_moves``).
        plies: at most this many moves of both sides until a win captures, promotes or mates; None after decoding. Up
            to 100 the 50-move rule takes no win away.
    """

    sets: np.ndarray
    plies: int | None = None

    @property
    def won(self) -> np.ndarray:
        """uint64 [2, 64, 64, N]: the won positions of each side to move."""
        return self.sets[LEGAL] & ~self.sets[NOT_WON]


def endings() -> list[Ending]:
    """All endings of three and four men, each after those that captures and promotions lead to; White has more men, or
    the stronger ones."""
    kinds = range(QUEEN, PAWN + 1)
    found = [Ending(NOBODY, WHITE, kind, WHITE) for kind in kinds]
    for color in (WHITE, BLACK):
        found += [Ending(a, WHITE, b, color) for a, b in combinations_with_replacement(kinds, 2)]
    return sorted(found, key=lambda ending: (ending.thirds, [ending.third, ending.roamer].count(PAWN)))


@njit(cache=True)
def _legal(side, ending, found):
    for white in range(64):
        for black in range(64):
            for third in range(found.shape[2]):
                found[white, black, third] = legal_word(white, black, third, side, ending)


def legal_positions(ending: Ending) -> np.ndarray:
    """uint64 [2, 64, 64, N]: the legal positions of each side to move."""
    found = np.zeros((2, 64, 64, ending.thirds), np.uint64)
    for side in (WHITE, BLACK):
        _legal(side, ending, found[side])
    return found


@njit(cache=True)
def _mirrored(squares):
    """Squares with the files a to h exchanged for h to a."""
    for step, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        squares = squares >> np.uint64(step) & np.uint64(mask) | (squares & np.uint64(mask)) << np.uint64(step)
    return squares


@njit(cache=True)
def _pull(target, double, side, ending, where, found):
    """Adds to ``found`` the positions among ``where`` with a move, but no capture, into ``target``: see ``gather``."""
    ways = np.zeros(MOST_WAYS, np.uint64)
    for white in range(64):
        if white & 4:  # the mirror images of files a to d are set with them
            continue
        for black in range(64):
            for third in range(where.shape[2]):
                wanted = where[white, black, third] & ~found[white, black, third]
                if wanted == 0:
                    continue
                word = np.uint64(0)
                for i in range(gather(target, double, white, black, third, side, ending, ways)):
                    word |= ways[i]
                word &= wanted
                found[white, black, third] |= word
                image = third ^ 7 if where.shape[2] > 1 else 0
                found[white ^ 7, black ^ 7, image] |= _mirrored(word)


@njit(cache=True)
def _pull_captures(of_third, of_roamer, side, ending, where, found):
    """Adds to ``found`` the positions among ``where`` with a capture into a set: see ``capture_word``."""
    for white in range(64):
        for black in range(64):
            for third in range(where.shape[2]):
                if where[white, black, third] != 0:
                    word = capture_word(of_third, of_roamer, white, black, third, side, ending)
                    found[white, black, third] |= word & where[white, black, third]


def exchanged(sets: np.ndarray) -> np.ndarray:
    """The same positions with the third man as roamer; ``sets`` is [..., 64, 64, 64]."""
    bits = np.unpackbits(sets.view(np.uint8), bitorder="little").reshape(*sets.shape, 64)
    return np.packbits(bits.swapaxes(-1, -2), axis=-1, bitorder="little").view(np.uint64)[..., 0]


def recoloured(sets: np.ndarray) -> np.ndarray:
    """The same positions with colours exchanged and ranks mirrored; ``sets`` is [3, 2, 64, 64, N]."""
    turned = sets[:, ::-1].swapaxes(2, 3)[:, :, _FLIP][:, :, :, _FLIP]
    if sets.shape[-1] > 1:
        turned = turned[..., _FLIP]
    return np.ascontiguousarray(turned).byteswap()


class Rules(NamedTuple):
    """What the rules, and endings with fewer men or pawns, make of an ending.

    Attributes:
        legal, stalemate: positions of each side to move, uint64 [2, 64, 64, N].
        forced: uint64 [3, 2, 64, 64, N]: those with a capture or a promotion to a lost, a not won, and a legal
            position of the other side.
        en_passant: the same for captures en passant, where the other side has just made the double step; None without
            pawns of both sides.
    """

    ending: Ending
    legal: np.ndarray
    stalemate: np.ndarray
    forced: np.ndarray
    en_passant: np.ndarray | None

    def winning(self, side: int, lost: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Positions among ``where`` with a move to a lost one of the other side."""
        double, other = lost, 1 - side
        if self.en_passant is not None:
            only_move = self.stalemate[other] & self.en_passant[LEGAL, other]
            double = (lost | only_move) & ~self.en_passant[NOT_WON, other]
        return self._pulled(LOST, side, lost, double, where)

    def losing(self, side: int, not_won: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Positions among ``where`` without a move to a not won one of the other side, mates included."""
        double = not_won
        if self.en_passant is not None:
            double = not_won & ~self.en_passant[LOST, 1 - side]
        where = where & ~self.stalemate[side]
        return where & ~self._pulled(NOT_WON, side, not_won, double, where)

    def _pulled(self, kind: int, side: int, target: np.ndarray, double: np.ndarray, where: np.ndarray) -> np.ndarray:
        found = self.forced[kind, side] & where
        _pull(target, double, side, self.ending, where, found)
        return found

    def solve(self) -> Solved:
        """Passes of one ply of each side, until nothing changes."""
        lost, not_won = np.zeros_like(self.legal), self.legal.copy()
        plies, changed = -2, True
        while changed:
            plies += 2
            unclear = not_won & ~lost
            for side in (WHITE, BLACK):
                not_won[side] &= ~self.winning(side, lost[1 - side], unclear[side])
            for side in (WHITE, BLACK):
                lost[side] |= self.losing(side, not_won[1 - side], not_won[side] & ~lost[side])
            changed = not np.array_equal(unclear, not_won & ~lost)
        return Solved(np.stack([lost, not_won, self.legal]), plies)


class Endings:
    """Endings solved so far.

    Attributes:
        solved: values by ending, in the order of ``endings``.
    """

    def __init__(self) -> None:
        self.solved: dict[Ending, Solved] = {}

    def sets_of(self, ending: Ending) -> np.ndarray:
        """Sets of an ending (as ``Solved.sets``) whose men may be given in any order and colours.

        Raises:
            KeyError: it is not solved yet.
        """
        if ending.roamer == NOBODY:
            return _kings_alone()
        if ending in self.solved:
            return self.solved[ending].sets
        if ending.opposite in self.solved:
            return recoloured(self.solved[ending.opposite].sets)
        if ending.exchanged in self.solved or ending.exchanged.opposite in self.solved:
            return exchanged(self.sets_of(ending.exchanged))
        raise KeyError(ending.name)

    def rules_of(self, ending: Ending) -> Rules:
        """The rules of an ending; those that captures and promotions lead to are solved."""
        legal = legal_positions(ending)
        forced = np.zeros((3, *legal.shape), np.uint64)
        movable = np.zeros_like(legal)
        for side in (WHITE, BLACK):
            for kind in (LOST, NOT_WON, LEGAL):
                self._pull_forced(ending, kind, side, legal[side], forced[kind, side])
            movable[side] = forced[LEGAL, side]
            _pull(legal[1 - side], legal[1 - side], side, ending, legal[side], movable[side])
        in_check = legal & ~legal[::-1]  # with the other side to move the king could be taken
        return Rules(ending, legal, legal & ~movable & ~in_check, forced, self._en_passant(ending))

    def _pull_forced(self, ending: Ending, kind: int, side: int, legal: np.ndarray, found: np.ndarray) -> None:
        """Adds to ``found`` what captures and promotions lead to a set of this kind."""
        of_third = of_roamer = self._left(ending.third, ending.third_color, kind, side)
        if ending.third != NOBODY:
            of_third = self._left(ending.roamer, ending.roamer_color, kind, side)
        _pull_captures(of_third, of_roamer, side, ending, legal, found)
        if ending.third == PAWN and ending.third_color == side:
            after = [self.sets_of(ending._replace(third=kind_then))[kind, 1 - side] for kind_then in _PROMOTED]
            promoted = np.bitwise_or.reduce(after)
            promoted[..., 8:56] = 0
            _pull(promoted, promoted, side, ending, legal, found)
        if ending.roamer == PAWN and ending.roamer_color == side:
            after = [self.sets_of(ending._replace(roamer=kind_then))[kind, 1 - side] for kind_then in _PROMOTED]
            promoted = np.bitwise_or.reduce(after) & OUTER_RANKS
            _pull(promoted, promoted, side, ending, legal, found)

    def _left(self, man: int, color: int, kind: int, side: int) -> np.ndarray:
        """Set with one man left after a capture by ``side``, see ``capture_word``."""
        left = self.sets_of(Ending(NOBODY, WHITE, man, color))[kind, 1 - side]
        if man != PAWN or color != side:
            return left
        promoted = [self.sets_of(Ending(NOBODY, WHITE, man, color))[kind, 1 - side] for man in _PROMOTED]
        return left | np.bitwise_or.reduce(promoted) & OUTER_RANKS

    def _en_passant(self, ending: Ending) -> np.ndarray | None:
        """See ``Rules.en_passant``."""
        if (ending.third, ending.roamer) != (PAWN, PAWN) or ending.third_color == ending.roamer_color:
            return None
        found = np.zeros((3, 2, 64, 64, 64), np.uint64)
        for side, rank, ahead in ((WHITE, 4, 8), (BLACK, 3, -8)):
            after = self.sets_of(Ending(NOBODY, WHITE, PAWN, side))[:, 1 - side, ..., 0]
            squares = range(8 * rank, 8 * rank + 8)
            for captured in squares:
                possible = after >> np.uint64(captured + ahead) & np.uint64(1)
                for mine in {captured - 1, captured + 1}.intersection(squares):
                    third, roamer = (mine, captured) if side == WHITE else (captured, mine)
                    found[:, side, :, :, third] |= possible << np.uint64(roamer)
        return found


def _kings_alone() -> np.ndarray:
    """Sets of two kings, all drawn; see ``capture_word``."""
    files, ranks = np.arange(64) & 7, np.arange(64) >> 3
    apart = np.maximum(abs(files[:, None] - files), abs(ranks[:, None] - ranks)) > 1
    sets = np.zeros((3, 2, 64, 64, 1), np.uint64)
    sets[[NOT_WON, LEGAL]] = apart[..., None]
    return sets


def solve_endings(report: Callable[[float], object] = lambda share: None) -> Endings:
    """Solves all endings, in about half a minute; ``report`` gets the share that is done."""
    found, every = Endings(), endings()
    for number, ending in enumerate(every):
        report(number / len(every))
        found.solved[ending] = found.rules_of(ending).solve()
    return found
