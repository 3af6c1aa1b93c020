"""Positions and moves of recorded games, and their split by game."""

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.board import Board
from engine.fen import Color
from engine.files import StorageError, bounded_lines
from engine.outcomes import DRAW, LOSS, RESULTS, UNKNOWN, WIN
from engine.pdn import PdnGame, read_games
from engine.pdn_tokens import MAX_LINE
from engine.rules import played

from ..endgame.data import TEST, TRAIN, VALIDATION, held_out

_SPLIT_ENDS = (80, 90)  # per cent: games below the first number are for training
_WINNERS = {result: winner for winner, result in RESULTS.items()}  # None: a draw
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
        """Rows by an array of indices or of booleans."""
        return ExpertSamples(*(column[rows] for column in self))


class ExpertGames(NamedTuple):
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


class Split(NamedTuple):
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
        return ExpertSamples(*(np.concatenate(columns) for columns in zip(self.test, self.seen, strict=True)))


def read_expert_games(path: Path, report: Callable[[int, float], None] = lambda games, share: None) -> ExpertGames:
    """Reads a collection in PDN, game by game; one that cannot be read is left out.

    ``report`` is told now and then the number of games read, and about what share of the file that is. Raises
    ``ExpertGamesError`` if no game has a move, ``StorageError`` if the file cannot be read.
    """
    rows, keys, unread, unfinished, letters = array("q"), Counter[bytes](), list[str](), 0, 0

    def counted(lines: Iterable[str]) -> Iterator[str]:
        nonlocal letters
        for line in lines:
            letters += len(line)
            yield line

    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            size = max(1, path.stat().st_size)
            for number, game in enumerate(
                read_games(counted(bounded_lines(lines, MAX_LINE)), lambda error: unread.append(str(error))), 1
            ):
                if number % _REPORT_GAMES == 0:
                    report(number, min(1.0, letters / size))
                if not game.moves:
                    continue
                key = _key(game)
                keys[key] += 1
                if keys[key] == 1:
                    unfinished += game.result not in _WINNERS
                    rows.extend(chain.from_iterable(_rows_of(game, len(keys) - 1)))
    except OSError as error:
        raise StorageError(error.errno, f"{path}: cannot be read: {error.strerror or error}") from error
    if not keys:
        reason = f"; the first: {unread[0]}" if unread else ""
        raise ExpertGamesError(f"{path} has no game that can be learnt from ({len(unread)} cannot be read{reason})")
    return ExpertGames(_samples_of(rows), tuple(keys), keys.total() - len(keys), tuple(unread), unfinished)


def _rows_of(game: PdnGame, number: int) -> Iterator[tuple[int, ...]]:
    """The columns of ``ExpertSamples`` for each move: four words of the position, then the others."""
    board = Board(game.start_fen)
    for node in game.moves:
        legal = board.distinct_moves
        made = legal.index(node.move), len(legal), _result(game, board.turn), number
        yield *board.words(), board.reversible_plies, *made
        board.push(node.move)


def _samples_of(rows: "array[int]") -> ExpertSamples:
    table = np.frombuffer(rows, np.int64).reshape(-1, 8)
    moves, choices, results, games = table[:, 4:].T
    return ExpertSamples(
        table[:, :4].astype(np.uint32),
        moves.astype(np.int16),
        choices.astype(np.int16),
        results.astype(np.uint8),
        games.astype(np.int32),
    )


def split_by_game(games: ExpertGames, seed: int) -> Split:
    """Splits games 80/10/10 by a hash of their moves and ``seed``, and takes seen positions out of the test.

    Endgames that validation and tests of oracles draw from (``held_out``) are not learnt from, either.
    """
    parts = np.array([_part(key, seed) for key in games.keys], np.int8)[games.samples.games]
    train, validation, test = (games.samples.take(parts == part) for part in (TRAIN, VALIDATION, TEST))
    if played.HAS_TABLES:
        train = train.take(~held_out(train.positions))
    known = _position_keys(games.samples.take(parts != TEST))
    seen = np.isin(_position_keys(test), known)
    split = Split(train, validation, test.take(~seen), test.take(seen))
    if not all(len(part.moves) for part in (split.train, split.validation, split.test)):
        few = f"{len(games.keys)} games are too few to split into games to learn from, to validate and to test on"
        raise ExpertGamesError(f"{few}; give more games, or another --seed")
    return split


def _result(game: PdnGame, turn: Color) -> int:
    if game.result not in _WINNERS:
        return UNKNOWN
    winner = _WINNERS[game.result]
    return DRAW if winner is None else WIN if winner is turn else LOSS


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
