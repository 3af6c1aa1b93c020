"""A match of two agents at the board: pairs of games with the same opening and swapped colours. No pygame."""

from collections.abc import Callable, Sequence
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.board import Board
from engine.fen import Color
from engine.files import StorageError, atomic_write
from engine.outcomes import RESULTS
from engine.pdn import PdnGame, format_game

from .opponents import OpponentSpec
from .plan import GamePlan

if TYPE_CHECKING:
    from .controller import GameController

PAUSE_S = 2.0  # seconds between two games, so that the end of a game can be seen
_BLACK_SCORES = {result: 0.5 if color is None else float(color is Color.BLACK) for color, result in RESULTS.items()}


class MatchTools(NamedTuple):
    """Functions of the command line's matches, passed in by the caller.

    Attributes:
        openings: returns boards with the moves of openings made, from a text (``ballots``, ``random:3``), a number of
            openings and a seed.
        elo: returns the first player's Elo difference and half of its 95 % interval, from the scores (0, 1/2, 1) of
            that player in each pair of games or single game.
    """

    openings: Callable[[str, int, int], Sequence[Board]]
    elo: Callable[[Sequence[Sequence[float]]], tuple[float, float]]


class PlayedGame(NamedTuple):
    """A finished game of a match, and the score of the first player: 0, 1/2 or 1."""

    game: PdnGame
    score: float


class MatchSeries:
    """Plays one game after another at the board. It pauses while another game is played there.

    Args:
        players: the two players; the first one has Black in the games with odd numbers.
        games: number of games.
        openings: one opening for each pair of games; used again from the first one on if there are too few.
        tools: functions of matches.

    Attributes:
        played: the finished games.
        stopped: whether no further game is begun.
    """

    def __init__(
        self, players: tuple[OpponentSpec, OpponentSpec], games: int, openings: Sequence[Board], tools: MatchTools
    ) -> None:
        self.players, self.games = players, games
        self.played: list[PlayedGame] = []
        self.stopped = False
        self._openings, self._tools = openings, tools
        self._game: int | None = None  # the session's number of the game in play
        self._ended_at: float | None = None
        self._helped = False  # whether a person has taken part in the game in play

    @property
    def over(self) -> bool:
        return len(self.played) >= self.games

    def at_board(self, controller: "GameController") -> bool:
        """Whether the game at the board is one of this match."""
        return self._game == controller.session.game

    def begin(self, controller: "GameController") -> None:
        """Begins the next game. A game of the match that was left unfinished is begun again."""
        index = len(self.played)
        opening = self._openings[index // 2 % len(self._openings)]
        first = Color.BLACK if index % 2 == 0 else Color.WHITE
        agents = {first: self.players[0], first.other: self.players[1]}
        texts = Board(opening.start_fen).pdn_line(opening.move_stack)
        controller.start(GamePlan(frozenset(), agents, opening.start_fen, texts))
        controller.session.headers |= {"Event": "Match", "Round": str(index + 1)}
        self._game, self._ended_at, self.stopped = controller.session.game, None, False
        self._helped = False

    def go_on(self, controller: "GameController") -> None:
        """Continues the match with the game at the board or, if that is over or of no match, with the next game."""
        if self.at_board(controller) and self._ended_at is None:
            self.stopped = False
        else:
            self.begin(controller)

    def end(self) -> None:
        """Ends the match after the finished games; a game in play does not count and is of no match any more."""
        self.games = len(self.played)
        if self._ended_at is None:
            self._game = None

    def follow(self, controller: "GameController", now: float) -> None:
        """Adds the game at the board once it is over, and begins the next one after a pause; called every frame.

        A game in which a person took over, or moves were taken back and made differently, does not count, and is begun
        again.
        """
        if not self.at_board(controller):
            return
        self._helped |= bool(controller.humans) or any(node.variations for node in controller.session.played)
        if not controller.session.finished:
            return
        if self._ended_at is None and self._helped:
            self._ended_at = now
            controller.say("A person took part in this game: it does not count")
        elif self._ended_at is None and not self.over:
            self._ended_at = now
            game = controller.session.to_game()
            black = _BLACK_SCORES.get(game.result, 0.5)
            self.played.append(PlayedGame(game, black if len(self.played) % 2 == 0 else 1.0 - black))
            if self.over:
                controller.say(f"The match is over. {self.summary()}")
        elif self.goes_on and self._ended_at is not None and now - self._ended_at >= PAUSE_S and not controller.paused:
            self.begin(controller)

    @property
    def goes_on(self) -> bool:
        """Whether another game is to follow a game that has ended."""
        return not self.over and not self.stopped

    # --- the table

    def line(self) -> str:
        """The number of the current game and the score of both players, in one line."""
        points = sum(one.score for one in self.played)
        number = min(len(self.played) + (self._ended_at is None or self._helped), self.games)
        score = f"{points_text(points)} : {points_text(len(self.played) - points)}"
        return f"game {number} of {self.games}, {score}, {self.players[0].name} – {self.players[1].name}"

    def summary(self) -> str:
        """The first player's results in one line, with Elo and its 95 % interval after the first game."""
        scores = [one.score for one in self.played]
        counts = " ".join(f"{sign}{scores.count(score)}" for sign, score in (("+", 1.0), ("=", 0.5), ("−", 0.0)))
        text = f"{self.players[0].label}: {points_text(sum(scores))} of {len(scores)} points ({counts})"
        if not scores:
            return text
        pairs = [scores[index : index + 2] for index in range(0, len(scores), 2)]
        elo, error = self._tools.elo(pairs)
        return f"{text}, Elo {elo:+.0f} ± {error:.0f}"

    def rows(self) -> list[str]:
        """One line for each finished game."""
        return [
            f"{number}.  {one.game.headers['Black']} – {one.game.headers['White']}   {one.game.result}   "
            f"{(len(one.game.moves) + 1) // 2} moves"
            for number, one in enumerate(self.played, 1)
        ]

    def save(self, path: Path) -> None:
        """Writes the games as PDN; raises ``StorageError``, also if the file exists already."""
        if exists(path):
            raise StorageError(None, f"{path} is there already: choose another name")
        atomic_write(path, "\n".join(format_game(one.game) for one in self.played).encode())


def points_text(points: float) -> str:
    """Points as text, such as ``2½``."""
    whole = "" if points == 0.5 else str(int(points))
    return whole + ("½" if points % 1 else "")
