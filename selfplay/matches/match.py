"""Matches of two players: colour-swapped pairs of games from the same openings, many games side by side."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from engine.board import Board
from engine.fen import Color
from engine.players.base import Player
from engine.players.time_control import TimeControl

from ..games.openings import MatchError, Opening
from .record import FLAG, FORFEIT, PLY_CAP, GamesInOrder, MatchGame, MatchResult, MoveNote
from .referee import GRACE_S, Answer, ask_all, ask_timed

NO_CLOCK = TimeControl()
CONCURRENCY = 64  # games side by side: enough for a full batch, few enough that an early end still saves games
_LOG = logging.getLogger(__name__)


@dataclass
class Running:
    """A game in play, with the seconds on each clock and a note for each move after the opening."""

    index: int
    opening: Opening
    control: TimeControl
    board: Board
    ended: tuple[Color | None, str, str | None] | None = None  # winner, termination, error
    notes: list[MoveNote] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clocks = dict.fromkeys(Color, self.control.base_s)

    @property
    def first_is_black(self) -> bool:
        return self.index % 2 == 0

    @property
    def first_to_move(self) -> bool:
        return (self.board.turn is Color.BLACK) == self.first_is_black

    def advance(self, max_plies: int | None) -> None:
        """Plays forced moves, and ends the game where the rules or ``max_plies`` (None: no limit) end it."""
        while self.ended is None:
            if outcome := self.board.outcome():
                self.ended = (outcome.winner, outcome.termination.name, None)
            elif max_plies is not None and self.board.ply >= max_plies:
                self.ended = (None, PLY_CAP, None)
            elif len(self.board.legal_moves) == 1:
                turn = self.board.turn
                self.board.push(self.board.legal_moves[0])
                self.notes.append(MoveNote(clock_s=self._pressed(turn, 0.0)))
            else:
                return

    def ask(self, player: Player) -> Answer:
        turn = self.board.turn
        return ask_timed(player, self.board, self.control, self.clocks[turn], len(self.notes) // 2)

    def play(self, answer: Answer, player: str) -> None:
        """Makes a player's move; an exception, an illegal move or an overrun clock loses the game."""
        turn, ply = self.board.turn, self.board.ply
        try:
            if isinstance(answer.move, Exception):
                raise answer.move
            if self._lose_on_time(answer, f"{player} ({turn}, ply {ply})"):
                return
            self.board.push(answer.move)
            clock = self._pressed(turn, answer.elapsed_s or 0.0)
            self.notes.append(MoveNote(answer.elapsed_s, clock, answer.value))
        except Exception as error:
            message = f"{player} ({turn}, ply {ply}) loses by {type(error).__name__}: {error}"
            self.ended = (turn.other, FORFEIT, " ".join(message.split()))
            _LOG.warning("game %d: %s", self.index + 1, self.ended[2])

    def _lose_on_time(self, answer: Answer, who: str) -> bool:
        """Ends the game if the player's time has run out; returns whether it has."""
        turn = self.board.turn
        over = (answer.elapsed_s or 0.0) - self.clocks[turn]
        if self.control.kind != "fischer" or over <= GRACE_S:
            return False
        self.ended = (turn.other, FLAG, f"{who} loses on time: {over:.2f} s over")
        _LOG.warning("game %d: %s", self.index + 1, self.ended[2])
        return True

    def _pressed(self, turn: Color, elapsed_s: float) -> float | None:
        """Takes a move's time off the clock and adds the increment.

        Returns the seconds on the clock; None without a clock.
        """
        if self.control.kind != "fischer":
            return None
        self.clocks[turn] = max(0.0, self.clocks[turn] - elapsed_s) + self.control.increment_s
        return self.clocks[turn]

    def record(self, player_a: str, player_b: str) -> MatchGame:
        assert self.ended is not None
        winner, termination, error = self.ended
        notes = [MoveNote()] * (self.board.ply - len(self.notes)) + self.notes
        return MatchGame(
            index=self.index,
            opening=self.opening.name,
            black=player_a if self.first_is_black else player_b,
            white=player_b if self.first_is_black else player_a,
            first_is_black=self.first_is_black,
            start_fen=self.board.start_fen,
            moves=tuple(self.board.move_stack),
            winner=winner,
            termination=termination,
            error=error,
            notes=tuple(notes) if any(note != MoveNote() for note in notes) else (),
        )


def seed_players(player_a: Player, player_b: Player, *seed: int) -> None:
    """Seeds the random numbers of both players, each differently, from the numbers ``seed``."""
    for player, state in zip((player_a, player_b), np.random.SeedSequence(seed).generate_state(2), strict=True):
        player.seed(int(state))


def play_games(
    player_a: Player,
    player_b: Player,
    starts: Iterable[tuple[int, Opening]],
    *,
    concurrency: int = CONCURRENCY,
    max_plies: int | None = None,
    control: TimeControl = NO_CLOCK,
    on_round: Callable[[], None] | None = None,
) -> Iterator[MatchGame]:
    """Plays games, up to ``concurrency`` of them side by side, and yields each as soon as it is over.

    Each player is asked for its moves in all games at once; forced moves are made without asking. A player that raises
    an exception or names an illegal move loses that game. Games with a time limit, and games of a player whose
    attribute ``one_game_at_a_time`` is true (an external engine), are played one after another.

    Args:
        starts: index and opening of each game; ``player_a`` has Black in games with an even index.
        max_plies: a game of this length (opening included) is a draw.
        control: time of each player. With a Fischer clock a player loses that overruns its time by more than
            ``referee.GRACE_S``. A time per move is only told to the players and not enforced.
        on_round: called each time both players have moved in all games in play.
    """
    timed = control.kind != "none" or any(
        getattr(player, "one_game_at_a_time", False) for player in (player_a, player_b)
    )
    waiting = iter(starts)
    running: list[Running] = []
    while True:
        for index, opening in islice(waiting, (1 if timed else concurrency) - len(running)):
            game = Running(index, opening, control, opening.board.copy())
            game.advance(max_plies)
            running.append(game)
        if not running:
            return
        for player, is_first in ((player_a, True), (player_b, False)):
            to_move = [game for game in running if not game.ended and game.first_to_move == is_first]
            if timed:
                answers = [game.ask(player) for game in to_move]
            else:
                answers = ask_all(player, [game.board for game in to_move])
            for game, answer in zip(to_move, answers, strict=True):
                game.play(answer, player.name)
                game.advance(max_plies)
        if on_round:
            on_round()
        yield from (game.record(player_a.name, player_b.name) for game in running if game.ended)
        running = [game for game in running if not game.ended]


def play_match(
    player_a: Player,
    player_b: Player,
    openings: Sequence[Opening],
    games: int,
    *,
    seed: int = 0,
    max_plies: int | None = None,
    on_game: Callable[[MatchGame], bool | None] | None = None,
) -> MatchResult:
    """Plays a match in pairs: each opening twice, ``player_a`` with Black, then with White.

    See ``play_games``. Players whose answers depend on the board alone play the same match at any ``CONCURRENCY``.

    Args:
        openings: one for each pair; when all are used, the first one follows again.
        games: number of games; if it is odd, the last pair has only one game.
        on_game: called with each game in the order of the openings, once it and all games before it are over. If it
            returns True, the match ends with this game and games in play are dropped: so the result depends neither
            on ``CONCURRENCY`` nor on the lengths of games.

    Raises:
        MatchError: there are no openings, or ``games`` or ``max_plies`` is not positive.
    """
    if min(games, games if max_plies is None else max_plies) < 1 or not openings:
        raise MatchError("a match needs an opening, and a positive number of games and plies")
    seed_players(player_a, player_b, seed)
    starts = ((index, openings[index // 2 % len(openings)]) for index in range(games))
    counted = GamesInOrder(on_game or (lambda _: False))
    for game in play_games(player_a, player_b, starts, concurrency=CONCURRENCY, max_plies=max_plies):
        counted.add([game])
        if counted.ended:
            break
    return MatchResult(player_a.name, player_b.name, tuple(counted.played))
