"""Makes and keeps the players of a process that plays games of matches."""

import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.board import Board
from engine.game import ENGLISH, GAME
from engine.players.base import Player, PlayerError, close_player, rest_player
from engine.players.hub import HubPlayer
from engine.players.pondering import PonderingPlayer
from engine.players.search_player import SearchPlayer
from engine.players.simple import make_simple_player
from engine.players.spec import NetworkSpec, PlayerSpec
from engine.players.time_control import TimeControl

from ..conditions import Conditions
from .match import play_games, seed_players
from .record import MatchGame
from .referee import ask_timed
from .tasks import Task

_MOST_PLAYERS = 6  # players that a process keeps for later pairings of a ladder
_WARM_UP = TimeControl("move", 0.02)
_ENDGAME = "W:WK10,K11:BK30"


class Players:
    """The players of a process, made at first use; beyond ``_MOST_PLAYERS`` the least recently used ones are closed.

    Attributes:
        folders: folder that names a network → its copy on this machine, if tasks come from another one.
    """

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        self._made: OrderedDict[tuple[object, ...], Player] = OrderedDict()

    def play(self, task: Task) -> Iterator[MatchGame]:
        """Plays the games of a task; raises what ``players.make_player`` raises."""
        pairing = task.pairing
        player_a, player_b = (self._player(task, spec, role) for role, spec in enumerate(pairing.players))
        seed_players(player_a, player_b, pairing.seed, task.starts[0][0])
        concurrency = len(task.starts) if pairing.lockstep else 1
        try:
            yield from play_games(player_a, player_b, task.starts, concurrency=concurrency, control=pairing.control)
        finally:
            rest_player(player_a)
            rest_player(player_b)

    def _player(self, task: Task, spec: PlayerSpec, role: int) -> Player:
        pairing = task.pairing
        key = spec, role, pairing.conditions
        if key not in self._made:
            while len(self._made) >= _MOST_PLAYERS:
                close_player(self._made.popitem(last=False)[1])
            self._made[key] = self._make(spec, pairing.conditions, {**task.folders, **self.folders})
            if pairing.control.kind != "none":
                _warm_up(spec, self._made[key])
        self._made.move_to_end(key)
        return self._made[key]

    @staticmethod
    def _make(spec: PlayerSpec, conditions: Conditions, folders: Mapping[str, str]) -> Player:
        if not isinstance(spec, NetworkSpec):
            return make_simple_player(spec, conditions.seconds)
        from ..players import make_player  # loads torch, which other players do not need

        player = make_player(replace(spec, folder=folders.get(spec.folder, spec.folder)), conditions)
        player.name = spec.text  # as the match names it, whichever folder that is
        return player

    def close(self) -> None:
        """Ends external engines and pondering."""
        for player in self._made.values():
            close_player(player)
        self._made.clear()


def _warm_up(spec: PlayerSpec, player: Player) -> None:
    """Makes a player load or compile all it needs, before a clock runs; errors are left to show in the game."""
    if isinstance(player, HubPlayer):
        with contextlib.suppress(PlayerError):
            player.begin(Board()).choose()  # tells it to stop at once
        return
    if isinstance(player, SearchPlayer | PonderingPlayer):
        player.prepare()  # also what no move of those below may need
    ending = [_ENDGAME] if spec.timed and GAME == ENGLISH else []  # others have no tables to load
    for board in (Board(), *map(Board, ending)):
        for moves_made in range(1 + 2 * spec.timed):
            answer = ask_timed(player, board, _WARM_UP, 1.0, moves_made)
            if isinstance(answer.move, Exception) or board.outcome():
                return
            board.push(answer.move)
