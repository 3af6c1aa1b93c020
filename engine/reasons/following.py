"""Follows the pieces through a line of moves: losses and crownings."""

from collections.abc import Sequence
from typing import NamedTuple

from ..board import Board, Move
from ..fen import Color
from .material import balance_of


class Crowning(NamedTuple):
    """A man becomes a king: its square when the line begins, the square where it is crowned, and the ply (from 1)."""

    start: int
    end: int
    ply: int


class Course(NamedTuple):
    """Result of a line, seen by one side.

    Attributes:
        end: position after the line.
        men, kings: numbers that the side has lost minus those it has captured.
        crownings, others: crownings of the side and of its opponent.
    """

    end: Board
    men: int
    kings: int
    crownings: tuple[Crowning, ...]
    others: tuple[Crowning, ...]

    @property
    def pieces(self) -> int:
        return self.men + self.kings


def follow(board: Board, moves: Sequence[Move], color: Color) -> Course:
    """Plays a line and returns its result, seen by ``color``."""
    after = Board(board.fen())
    origins = {square: square for square in after.piece_map()}
    lost = [0, 0]  # men, kings
    crowned: dict[Color, list[Crowning]] = {each: [] for each in Color}
    for move in moves:
        before, turn = after.piece_map(), after.turn
        for square in move.captured:
            owner, king = before[square]
            lost[king] += 1 if owner is color else -1
            del origins[square]
        after.push(move)
        origins[move.end] = origins.pop(move.start)
        if after.piece_map()[move.end][1] and not before[move.start][1]:
            crowned[turn].append(Crowning(origins[move.end], move.end, after.ply))
    return Course(after, lost[0], lost[1], tuple(crowned[color]), tuple(crowned[color.other]))


def until_won(board: Board, line: tuple[Move, ...], winner: Color, least: int = 1) -> tuple[Move, ...] | None:
    """The beginning of a line, up to where ``winner`` has won ``least`` pieces and keeps them to the line's end.

    None if it never has. Positions in which the side to move must capture do not count.
    """
    after, start = Board(board.fen()), balance_of(board, winner).pieces
    quiet: list[tuple[int, int]] = []  # plies, pieces won
    for move in line:
        after.push(move)
        if not any(answer.captured for answer in after.legal_moves):
            quiet.append((after.ply, balance_of(after, winner).pieces - start))
    place = None
    for plies, won in reversed(quiet):
        if won < least:
            break
        place = plies
    return None if place is None else line[:place]
