"""A match in play: actors deliver its games in any order; they are also kept on disk."""

import logging
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from engine.files import atomic_write
from engine.sealed import sealed, unsealed
from engine.search import SearchConfig

from ..actors.pool_match import MatchPlayed, PoolMatch
from ..matches.record import GamesInOrder, MatchGame, MatchResult

_VERSION = 2
_GAME = TypeAdapter(MatchGame)
_LOG = logging.getLogger(__name__)


class OpenMatch:
    """Receives games in any order and counts them in the order of their openings, so that short ones do not come first.

    Args:
        on_game: called with each game in order; if it returns True, the match ends with this game.
        path: file that keeps the games, to survive a kill; games of another match in it are ignored. None: no file.
        search: how the networks search; games in the file that they played with another search are ignored, too.
    """

    def __init__(
        self,
        match: PoolMatch,
        on_game: Callable[[MatchGame], bool] = lambda _: False,
        path: Path | None = None,
        search: SearchConfig | None = None,
    ) -> None:
        self.match, self._path = match, path
        self._search = "" if search is None else search.model_dump_json()
        self._games = GamesInOrder(on_game)
        if path is not None:
            self._games.add(self._read(path))
            self._write()

    @property
    def over(self) -> bool:
        """Whether all games that count have been played."""
        return self._games.ended or len(self._games.played) == self.match.num_games

    @property
    def known(self) -> list[MatchGame]:
        """All games received, also those that wait for an earlier game."""
        return [*self._games.played, *self._games.waiting.values()]

    @property
    def result(self) -> MatchResult:
        """Result of the games that count so far."""
        return MatchResult(*self.match.names, tuple(self._games.played))

    def take_in(self, played: MatchPlayed) -> None:
        """Counts and saves games of this match; raises ``StorageError``."""
        if played.match == self.match.number and not self.over:
            self._games.add(played.games)
            self._write()

    @property
    def _key(self) -> list[str | int]:
        """Identifies the match: games in the file count only if they were saved with the same key."""
        match = self.match
        networks = [weights.digest for weights in match.networks]
        return [*networks, match.anchor or "", match.seed, match.num_games, self._search]

    def _read(self, path: Path) -> list[MatchGame]:
        try:
            fields = unsealed(path.read_bytes())
            if fields["schema_version"] != _VERSION or fields["match"] != self._key:
                return []
            return [_GAME.validate_json(game) for game in fields["games"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            _LOG.warning("%s: the match begins anew: %s", path, error)
            return []

    def _write(self) -> None:
        if self._path is not None:
            games = [_GAME.dump_json(game).decode() for game in self.known]
            atomic_write(self._path, sealed({"schema_version": _VERSION, "match": self._key, "games": games}))
