"""Openings of matches: ballots, random plies, or positions and games from a file."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.ballots import ballot_board, playable_ballots
from engine.board import Board
from engine.errors import DraughtsError
from engine.files import cannot_read, read_text, sha256_of
from engine.pdn import PdnGame, read_games
from engine.rules import played

DEFAULT_OPENINGS = "ballots" if played.HAS_BALLOTS else "random:4"
MAX_RANDOM_PLIES = 40
_FILE = "file:"
_GAME_PLIES = 6  # plies of a finished game that count as its opening; of an unfinished game all moves count
_RANDOM_ATTEMPTS = 20  # attempts to find an opening that no earlier pair has
_FEN_LINE = re.compile(r"\s*[BW]:[BW]", re.IGNORECASE)


class MatchError(ValueError):
    """A match cannot be played with these settings."""


class Opening(NamedTuple):
    """The opening of a pair of games: a name for the record, and a board after the opening's moves."""

    name: str
    board: Board


def make_openings(spec: str, number: int, seed: int) -> list[Opening]:
    """Returns ``number`` openings for a match. A larger ``number`` only appends openings to those of a smaller one.

    Args:
        spec: where openings come from:

            - ``ballots``: the playable three-move ballots, shuffled; when all are used, shuffled again.
            - ``random:K``: K random plies from the start position, different for each pair if possible.
            - ``file:PATH``: openings of a file in their order; when all are used, from the first again. The file has
              either one FEN per line (empty lines and lines beginning with # are skipped) or games in PDN. A game
              without a result is an opening as a whole; of other games the first ``_GAME_PLIES`` plies count, or the
              first K of all games with ``file:PATH:K``.

    Raises:
        MatchError, StorageError: ``spec`` is none of these, or the file is unreadable or wrong.
    """
    if spec.startswith(_FILE):
        openings = _file_openings(spec.removeprefix(_FILE))
        return [openings[index % len(openings)] for index in range(number)]
    rng = np.random.default_rng(seed)
    if spec == "ballots" and not played.HAS_BALLOTS:
        raise MatchError(f"there are no ballots of {played.TITLE}: take openings like {DEFAULT_OPENINGS}")
    if spec == "ballots":
        ballots = playable_ballots()
        order = [ballots[i] for _ in range(0, number, len(ballots)) for i in rng.permutation(len(ballots))]
        return [Opening(f"ballot {ballot.number}", ballot_board(ballot)) for ballot in order[:number]]
    match = re.fullmatch(r"random:([0-9]{1,3})", spec)
    if match is None or int(match[1]) > MAX_RANDOM_PLIES:
        raise MatchError(
            f"openings {spec!r}: neither ballots nor random:K with K from 0 to {MAX_RANDOM_PLIES} nor file:PATH"
        )
    return list(_random_openings(int(match[1]), number, rng))


def openings_digest(spec: str) -> str | None:
    """Start of the SHA-256 of the file that openings come from (see ``make_openings``); None if there is no such file.

    Raises:
        StorageError: the file cannot be read.
    """
    if not spec.startswith(_FILE):
        return None
    path, _ = _path_and_plies(spec.removeprefix(_FILE))
    if not path.is_file():  # a pipe, which can be read only once
        return None
    try:
        return sha256_of(path)[:16]
    except OSError as error:
        raise cannot_read(path, error) from error


def _random_openings(plies: int, number: int, rng: np.random.Generator) -> Iterator[Opening]:
    seen: set[str] = set()
    for _ in range(number):
        for _attempt in range(_RANDOM_ATTEMPTS):
            board = random_board(plies, rng)
            if board.fen() not in seen:
                break
        seen.add(board.fen())
        yield Opening(" ".join(map(str, board.move_stack)) or "start", board)


_ballot_board = cache(ballot_board)


def selfplay_opening(rng: np.random.Generator, ballot_fraction: float, most_plies: int) -> Board:
    """First position of a game of self-play: a ballot, or 0 to ``most_plies`` random moves from the start position."""
    if rng.random() < ballot_fraction:
        ballots = playable_ballots()
        return _ballot_board(ballots[rng.integers(len(ballots))]).copy()
    return Board(random_board(int(rng.integers(most_plies + 1)), rng).fen())


def random_board(plies: int, rng: np.random.Generator) -> Board:
    """A board after ``plies`` random plies from the start position, in a game that is not over."""
    while True:
        board = Board()
        while board.ply < plies and board.outcome() is None:
            legal = board.legal_moves
            board.push(legal[rng.integers(len(legal))])
        if board.outcome() is None:
            return board


def _path_and_plies(text: str) -> tuple[Path, int | None]:
    """The parts of ``PATH`` or ``PATH:K``."""
    name, colon, ending = text.rpartition(":")
    plies = int(ending) if colon and name and re.fullmatch("[0-9]{1,4}", ending) else None
    return Path(text if plies is None else name), plies


def _file_openings(text: str) -> list[Opening]:
    path, plies = _path_and_plies(text)
    content = read_text(path)
    lines = [(number, line.strip()) for number, line in enumerate(content.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if lines and _FEN_LINE.match(lines[0][1]):
        if plies is not None:
            raise MatchError(f"openings in {path}: positions, which have no first {plies} plies: leave out :{plies}")
        boards = [_board_of(path, number, line) for number, line in lines]
    else:
        try:
            boards = [_opening_of(game, plies) for game in read_games(content)]
        except DraughtsError as error:
            raise MatchError(f"openings in {path}: {error}") from error
    for number, board in enumerate(boards, 1):
        if board.outcome() is not None or not board.words()[1]:  # or the opponent has no pieces
            raise MatchError(f"openings in {path}: in number {number} the game is over, {board.fen()}")
    if not boards:
        raise MatchError(f"openings in {path}: there are none")
    return [Opening(f"{path.name} {number}", board) for number, board in enumerate(boards, 1)]


def _board_of(path: Path, number: int, line: str) -> Board:
    try:
        return Board(line)
    except DraughtsError as error:
        raise MatchError(f"openings in {path}, line {number}: {error}") from error


def _opening_of(game: PdnGame, plies: int | None) -> Board:
    if plies is None:
        plies = len(game.moves) if game.result == "*" else _GAME_PLIES
    board = Board(game.start_fen)
    for node in game.moves[:plies]:
        board.push(node.move)
    return board
