"""A match under way: its games come from the actors in any order, and those of a gate are kept on disk."""

import logging
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from engine.files import atomic_write
from engine.sealed import sealed, unsealed

from .match_record import GamesInOrder, MatchGame, MatchResult
from .pool_match import MatchPlayed, PoolMatch

_VERSION = 2
_GAME = TypeAdapter(MatchGame)
_LOG = logging.getLogger(__name__)


class OpenMatch:
    """Takes in games as they come, and counts them in the order of their openings: short ones do not come first.

    Args:
        on_game: told of each game, in that order; if it returns True, the match is over with that game.
        path: file of the games, so that they are there after a kill; those of other matches do not count.
    """

    def __init__(
        self, match: PoolMatch, on_game: Callable[[MatchGame], bool] = lambda _: False, path: Path | None = None
    ) -> None:
        self.match, self._path = match, path
        self._games = GamesInOrder(on_game)
        if path is not None:
            self._games.add(self._read(path))
            self._write()

    @property
    def over(self) -> bool:
        """Whether all that counts has been played."""
        return self._games.ended or len(self._games.played) == self.match.num_games

    @property
    def known(self) -> list[MatchGame]:
        """All games that have come, also those before which others are missing."""
        return [*self._games.played, *self._games.waiting.values()]

    @property
    def result(self) -> MatchResult:
        """What counts so far."""
        return MatchResult(*self.match.names, tuple(self._games.played))

    def take_in(self, played: MatchPlayed) -> None:
        """Counts games, and keeps them; raises ``StorageError``."""
        if played.match == self.match.number and not self.over:
            self._games.add(played.games)
            self._write()

    @property
    def _key(self) -> list[str | int]:
        """What makes it another match, in which other games are played."""
        match = self.match
        return [*(weights.digest for weights in match.networks), match.anchor or "", match.seed, match.num_games]

    def _read(self, path: Path) -> list[MatchGame]:
        try:
            fields = unsealed(path.read_bytes())
            if fields["schema_version"] != _VERSION or fields["match"] != self._key:
                return []
            return [_GAME.validate_json(game) for game in fields["games"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            _LOG.warning("%s: the gate begins anew: %s", path, error)
            return []

    def _write(self) -> None:
        if self._path is not None:
            games = [_GAME.dump_json(game).decode() for game in self.known]
            atomic_write(self._path, sealed({"schema_version": _VERSION, "match": self._key, "games": games}))
