"""Positions and moves of recorded games, and their split by game."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.board import Board
from engine.errors import PdnError
from engine.fen import Color
from engine.files import StorageError
from engine.pdn import PdnGame, read_games

from ..endgame.data import held_out

WIN, DRAW, LOSS, UNKNOWN = 0, 1, 2, 3
TRAIN, VALIDATION, TEST = 0, 1, 2
_SPLIT_ENDS = (80, 90)  # of a hundred games, those below the first number are for training
_BLACK_WON, _WHITE_WON, _DRAWN = "1-0", "0-1", "1/2-1/2"  # results with Black, who moves first, first
_REPORT_GAMES = 100


class ExpertGamesError(ValueError):
    """A collection of games that cannot be learnt from."""


class ExpertSamples(NamedTuple):
    """N moves of recorded games, each with the position it was made in.

    Attributes:
        positions: uint32 [N, 4], see ``engine.encoding``.
        moves: int16 [N], the move made, its place in ``Board.distinct_moves``.
        choices: int16 [N], how many distinct moves there were.
        results: uint8 [N], ``WIN``, ``DRAW`` or ``LOSS`` for the side to move, ``UNKNOWN`` if the game has no result.
        games: int32 [N], number of the game.
    """

    positions: np.ndarray
    moves: np.ndarray
    choices: np.ndarray
    results: np.ndarray
    games: np.ndarray

    def take(self, rows: np.ndarray) -> "ExpertSamples":
        """These rows, by number or by truth."""
        return ExpertSamples(*(column[rows] for column in self))


@dataclass(frozen=True)
class ExpertGames:
    """What a collection held.

    Attributes:
        samples: of all games that are not there twice.
        keys: bytes of a digest of each game's moves, by number of the game.
        twice: games left out because another one has the same start and moves.
        unread: games that could not be read, with the reasons. unfinished: games without a result.
    """

    samples: ExpertSamples
    keys: tuple[bytes, ...]
    twice: int
    unread: tuple[str, ...]
    unfinished: int


@dataclass(frozen=True)
class Split:
    """Samples to learn from, to choose by and to measure on; no game is in two of them.

    Attributes:
        test: of positions that no game of the other two has.
        seen: samples of the test games whose positions are in the other two as well: opening moves, mostly.
    """

    train: ExpertSamples
    validation: ExpertSamples
    test: ExpertSamples
    seen: ExpertSamples

    @property
    def test_with_seen(self) -> ExpertSamples:
        """All samples of the test games."""
        return ExpertSamples(*(np.concatenate(columns) for columns in zip(self.test, self.seen, strict=True)))


def read_expert_games(path: Path, report: Callable[[int, float], None] = lambda games, share: None) -> ExpertGames:
    """Reads a collection in PDN, game by game; one that cannot be read is left out.

    Args:
        report: told now and then the number of games read, and about what share of the file that is.

    Raises:
        ExpertGamesError: there is no game with a move in it.
        StorageError: the file cannot be read.
    """
    collector, keys, unread, twice, unfinished = _Collector(), Counter[bytes](), [], 0, 0

    def complain(error: PdnError) -> None:
        unread.append(str(error))

    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            counted = _CountedLines(lines)
            size = path.stat().st_size
            for number, game in enumerate(read_games(counted, complain), 1):
                if number % _REPORT_GAMES == 0:
                    report(number, min(1.0, counted.letters / max(1, size)))
                if not game.moves:
                    continue
                key = _key(game)
                keys[key] += 1
                if keys[key] > 1:
                    twice += 1
                    continue
                unfinished += game.result not in (_BLACK_WON, _WHITE_WON, _DRAWN)
                collector.add(game)
    except OSError as error:
        raise StorageError(error.errno, f"{path}: cannot be read: {error.strerror or error}") from error
    if not keys:
        reason = f"; the first: {unread[0]}" if unread else ""
        raise ExpertGamesError(f"{path} has no game that can be learnt from ({len(unread)} cannot be read{reason})")
    return ExpertGames(collector.samples(), tuple(keys), twice, tuple(unread), unfinished)


def split_by_game(games: ExpertGames, seed: int) -> Split:
    """Splits games 80/10/10 by a hash of their moves and ``seed``, and takes seen positions out of the test.

    Endgames that validation and tests of oracles draw from (``held_out``) are not learnt from, either.
    """
    parts = np.array([_part(key, seed) for key in games.keys], np.int8)[games.samples.games]
    train, validation, test = (games.samples.take(parts == part) for part in (TRAIN, VALIDATION, TEST))
    train = train.take(~held_out(train.positions))
    if not len(train.moves) or not len(test.moves):
        raise ExpertGamesError(f"{len(games.keys)} games are too few to split into games to learn from and to test on")
    known = _position_keys(games.samples.take(parts != TEST))
    seen = np.isin(_position_keys(test), known)
    return Split(train, validation, test.take(~seen), test.take(seen))


class _CountedLines:
    """Lines of a text, and how many letters have been taken."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines, self.letters = lines, 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.letters += len(line)
            yield line


class _Collector:
    """Columns that grow game by game."""

    def __init__(self) -> None:
        self._positions: list[tuple[int, int, int, int]] = []
        self._rows: list[tuple[int, int, int, int]] = []
        self._games = 0

    def add(self, game: PdnGame) -> None:
        board = Board(game.start_fen)
        for node in game.moves:
            legal = board.distinct_moves
            self._positions.append((*board.words(), board.reversible_plies))
            self._rows.append((legal.index(node.move), len(legal), _result(game, board.turn), self._games))
            board.push(node.move)
        self._games += 1

    def samples(self) -> ExpertSamples:
        positions = np.array(self._positions, np.uint32).reshape(-1, 4)
        moves, choices, results, games = np.array(self._rows, np.int64).reshape(-1, 4).T
        return ExpertSamples(
            positions,
            moves.astype(np.int16),
            choices.astype(np.int16),
            results.astype(np.uint8),
            games.astype(np.int32),
        )


def _result(game: PdnGame, turn: Color) -> int:
    if game.result == _DRAWN:
        return DRAW
    if game.result not in (_BLACK_WON, _WHITE_WON):
        return UNKNOWN
    return WIN if (game.result == _BLACK_WON) == (turn is Color.BLACK) else LOSS


def _key(game: PdnGame) -> bytes:
    """A digest of a game's start and moves: the same game from two sources has the same."""
    line = " ".join(str(node.move) for node in game.moves)
    return hashlib.sha256(f"{game.start_fen} {line}".encode()).digest()


def _part(key: bytes, seed: int) -> int:
    place = int.from_bytes(hashlib.sha256(key + seed.to_bytes(8, "little")).digest()[:8], "little") % 100
    return int(np.searchsorted(_SPLIT_ENDS, place, side="right"))


def _position_keys(samples: ExpertSamples) -> np.ndarray:
    """One value for each position, the number of reversible plies left out."""
    return np.ascontiguousarray(samples.positions[:, :3]).view([("own", "u4"), ("opp", "u4"), ("kings", "u4")]).ravel()
