"""Matches: two players, colour-swapped pairs of games from the same openings, many games side by side."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from engine.ballots import ballot_board, playable_ballots
from engine.board import RESULTS, Board, Move
from engine.fen import Color
from engine.pdn import PdnGame, format_game
from engine.players.base import Player

from .elo import EloDiff, Tally

PLY_CAP, FORFEIT = "PLY_CAP", "FORFEIT"
MAX_RANDOM_PLIES = 40
_RANDOM_ATTEMPTS = 20  # tries to find an opening that no pair has had yet
_LOG = logging.getLogger(__name__)


class MatchError(ValueError):
    """A match cannot be played as asked."""


@dataclass(frozen=True)
class Opening:
    """Where a pair of games starts: a name for the record, and a board with the opening's moves made."""

    name: str
    board: Board


def make_openings(spec: str, number: int, seed: int) -> list[Opening]:
    """Openings for a match.

    Args:
        spec: ``ballots``: the playable three-move ballots, shuffled, and again when all have been used; or
            ``random:K``: K random plies from the start position, others for every pair where there are enough.
        number: how many.

    Raises:
        MatchError: ``spec`` is neither.
    """
    rng = np.random.default_rng(seed)
    if spec == "ballots":
        ballots = playable_ballots()
        order = [ballots[i] for _ in range(0, number, len(ballots)) for i in rng.permutation(len(ballots))]
        return [Opening(f"ballot {ballot.number}", ballot_board(ballot)) for ballot in order[:number]]
    match = re.fullmatch(r"random:([0-9]{1,3})", spec)
    if match is None or int(match[1]) > MAX_RANDOM_PLIES:
        raise MatchError(f"openings {spec!r}: neither ballots nor random:K with K from 0 to {MAX_RANDOM_PLIES}")
    plies, seen, openings = int(match[1]), set(), []
    for _ in range(number):
        for _attempt in range(_RANDOM_ATTEMPTS):
            board = _random_opening(plies, rng)
            if board.fen() not in seen:
                break
        seen.add(board.fen())
        openings.append(Opening(" ".join(map(str, board.move_stack)) or "start", board))
    return openings


def _random_opening(plies: int, rng: np.random.Generator) -> Board:
    """A board after this many random plies, the game not over."""
    while True:
        board = Board()
        while board.ply < plies and board.outcome() is None:
            legal = board.legal_moves
            board.push(legal[rng.integers(len(legal))])
        if board.outcome() is None:
            return board


@dataclass(frozen=True)
class MatchGame:
    """One game of a match.

    Attributes:
        index: number of the game; games 2k and 2k + 1 share their opening.
        opening: its name.
        black, white: names of the players.
        first_is_black: whether the match's first player has Black.
        start_fen, moves: the whole game, the opening's moves included.
        winner: None for a draw.
        termination: name of an ``engine.board.Termination``, ``PLY_CAP`` (adjudicated a draw) or ``FORFEIT``.
        error: what the player who forfeited did wrong.
    """

    index: int
    opening: str
    black: str
    white: str
    first_is_black: bool
    start_fen: str
    moves: tuple[Move, ...]
    winner: Color | None
    termination: str
    error: str | None = None

    @property
    def score(self) -> float:
        """Score of the match's first player: 1, 1/2 or 0."""
        return 0.5 if self.winner is None else float((self.winner is Color.BLACK) == self.first_is_black)

    @property
    def result(self) -> str:
        """PDN result, Black first."""
        return RESULTS[self.winner]

    @property
    def plies(self) -> int:
        """Length of the game, the opening's moves included."""
        return len(self.moves)

    def to_pdn(self, headers: Mapping[str, str] | None = None) -> str:
        """The game as PDN text; tags about the game itself are set, others may be given."""
        board = Board(self.start_fen)
        for move in self.moves:
            board.push(move)
        tags = {
            **(headers or {}),
            "Round": f"{self.index // 2 + 1}.{self.index % 2 + 1}",
            "Black": self.black,
            "White": self.white,
            "Result": self.result,
            "Opening": self.opening,
            "Termination": self.termination,
        }
        game = PdnGame.from_board(board, tags)
        if self.error:
            (game.moves[-1] if game.moves else game).comments.append(self.error)
        return format_game(game)


@dataclass(frozen=True)
class MatchResult:
    """What came out of a match; wins, losses, score and Elo are those of the first player.

    Attributes:
        player_a, player_b: names of the two players.
        played: the games in order.
    """

    player_a: str
    player_b: str
    played: tuple[MatchGame, ...]

    @property
    def pairs(self) -> list[tuple[float, ...]]:
        """Scores of the first player in the games of each pair; the last pair may have one game."""
        scores = [game.score for game in self.played]
        return [tuple(scores[first : first + 2]) for first in range(0, len(scores), 2)]

    @cached_property
    def tally(self) -> Tally:
        """The results counted."""
        tally = Tally()
        for pair in self.pairs:
            tally.add(pair)
        return tally

    @cached_property
    def _diff(self) -> EloDiff:
        return self.tally.elo_diff()

    @property
    def games(self) -> int:
        """Number of games."""
        return len(self.played)

    @property
    def wins(self) -> int:
        """Games won by the first player."""
        return self.tally.wins

    @property
    def draws(self) -> int:
        """Games drawn."""
        return self.tally.draws

    @property
    def losses(self) -> int:
        """Games lost by the first player."""
        return self.tally.losses

    @property
    def score(self) -> float:
        """Score of the first player, 0 to 1; a draw is half a point."""
        return self._diff.score

    @property
    def elo(self) -> float:
        """Elo of the first player above the second; see ``elo.elo_diff``."""
        return self._diff.elo

    @property
    def elo_error(self) -> float:
        """Half the width of the 95 % confidence interval of ``elo``."""
        return self._diff.elo_error

    @property
    def errors(self) -> list[str]:
        """What went wrong in forfeited games."""
        return [f"game {game.index + 1}: {game.error}" for game in self.played if game.error]

    def summary(self) -> dict[str, str | int | float]:
        """The figures of ``crownhead match --json``."""
        return {
            "player_a": self.player_a,
            "player_b": self.player_b,
            "games": self.games,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "score": self.score,
            "elo": self.elo,
            "elo_error": self.elo_error,
        }

    def to_pdn(self, headers: Mapping[str, str] | None = None) -> str:
        """All games as PDN text, an empty line between two."""
        return "\n".join(game.to_pdn(headers) for game in self.played)


@dataclass
class _Running:
    """A game on the board."""

    index: int
    opening: Opening
    first_is_black: bool
    board: Board
    ended: tuple[Color | None, str, str | None] | None = None  # winner, termination, error

    @property
    def first_to_move(self) -> bool:
        return (self.board.turn is Color.BLACK) == self.first_is_black

    def advance(self, max_plies: int | None) -> None:
        """Plays moves that are forced, and ends the game where the rules or the cap end it."""
        while self.ended is None:
            if outcome := self.board.outcome():
                self.ended = (outcome.winner, outcome.termination.name, None)
            elif max_plies is not None and self.board.ply >= max_plies:
                self.ended = (None, PLY_CAP, None)
            elif len(self.board.legal_moves) == 1:
                self.board.push(self.board.legal_moves[0])
            else:
                return

    def play(self, answer: Move | Exception, player: str) -> None:
        """Makes a player's move; an exception or an illegal move loses the game."""
        try:
            if isinstance(answer, Exception):
                raise answer
            self.board.push(answer)
        except Exception as error:
            turn = self.board.turn
            message = f"{player} ({turn}, ply {self.board.ply}) loses by {type(error).__name__}: {error}"
            self.ended = (turn.other, FORFEIT, " ".join(message.split()))
            _LOG.warning("game %d: %s", self.index + 1, self.ended[2])


def play_match(
    player_a: Player,
    player_b: Player,
    openings: Sequence[Opening],
    games: int,
    *,
    seed: int = 0,
    concurrency: int = 64,
    max_plies: int | None = None,
    on_game: Callable[[MatchGame], bool | None] | None = None,
    on_round: Callable[[], None] | None = None,
) -> MatchResult:
    """Plays a match in pairs: the same opening twice, the first player with Black, then with White.

    Up to ``concurrency`` games go on side by side, and each player is asked for its moves in all of them at once.
    Forced moves are made without asking. Players who answer from the board alone play the same match at any
    ``concurrency``; one whose attribute ``one_game_at_a_time`` is true (an external engine) makes it 1. A player that
    raises or names an illegal move loses that game, and the match goes on.

    Args:
        openings: one for each pair, from the first again when they are used up.
        games: how many; an odd number leaves the last pair without its second game.
        seed: what the players' random numbers start from.
        max_plies: a game of so many plies (opening included) is a draw.
        on_game: called with each game, in the order of the openings, as soon as it and all before it are over. If it
            returns True the match ends with that game, and those still going on are dropped: what counts depends
            neither on ``concurrency`` nor on which games are short.
        on_round: called each time both players have moved in all their games: for work that must not wait for the end.

    Raises:
        MatchError: no openings, or a number that is not positive.
    """
    if min(games, concurrency, games if max_plies is None else max_plies) < 1 or not openings:
        raise MatchError("a match needs an opening, and a positive number of games, concurrency and plies")
    for player, state in zip((player_a, player_b), np.random.SeedSequence(seed).generate_state(2), strict=True):
        player.seed(int(state))
    if any(getattr(player, "one_game_at_a_time", False) for player in (player_a, player_b)):
        concurrency = 1
    waiting = (_start(index, openings[index // 2 % len(openings)]) for index in range(games))
    running: list[_Running] = []
    over: dict[int, _Running] = {}
    played: list[MatchGame] = []
    while len(played) < games:
        for game in islice(waiting, concurrency - len(running)):
            game.advance(max_plies)
            running.append(game)
        for player, is_first in ((player_a, True), (player_b, False)):
            to_move = [game for game in running if not game.ended and game.first_to_move == is_first]
            _move_all(player, to_move, max_plies)
        if on_round:
            on_round()
        over |= {game.index: game for game in running if game.ended}
        running = [game for game in running if not game.ended]
        while len(played) in over:
            played.append(_finished(over.pop(len(played)), player_a.name, player_b.name))
            if on_game and on_game(played[-1]):
                return MatchResult(player_a.name, player_b.name, tuple(played))
    return MatchResult(player_a.name, player_b.name, tuple(played))


def _start(index: int, opening: Opening) -> _Running:
    return _Running(index, opening, index % 2 == 0, opening.board.copy())


def _move_all(player: Player, games: Sequence[_Running], max_plies: int | None) -> None:
    for game, answer in zip(games, _ask(player, [game.board for game in games]), strict=True):
        game.play(answer, player.name)
        game.advance(max_plies)


def _ask(player: Player, boards: Sequence[Board]) -> list[Move | Exception]:
    """A player's answer for each board. If the whole question fails, each board is asked about alone."""
    if not boards:
        return []
    try:
        moves: list[Move | Exception] = list(player.choose(boards))
        if len(moves) != len(boards):
            raise MatchError(f"{len(moves)} moves named for {len(boards)} boards")
        return moves
    except Exception as error:
        if len(boards) == 1:
            return [error]
    return [answer for board in boards for answer in _ask(player, [board])]


def _finished(game: _Running, player_a: str, player_b: str) -> MatchGame:
    assert game.ended is not None
    winner, termination, error = game.ended
    black, white = (player_a, player_b) if game.first_is_black else (player_b, player_a)
    return MatchGame(
        index=game.index,
        opening=game.opening.name,
        black=black,
        white=white,
        first_is_black=game.first_is_black,
        start_fen=game.board.start_fen,
        moves=tuple(game.board.move_stack),
        winner=winner,
        termination=termination,
        error=error,
    )
