"""Matches that the actors of a run play beside self-play: gates, and promoted networks against anchors."""

from dataclasses import dataclass, replace

from ..games.openings import DEFAULT_OPENINGS, Opening, make_openings
from ..matches.record import MatchGame
from .weights import Weights

_PART_GAMES = 16  # games side by side: a batch for the network, and few are lost if an actor dies


@dataclass(frozen=True)
class PoolMatch:
    """A whole match.

    Attributes:
        number: number of the match in its process, so that games of an earlier match do not count.
        names: names of the two players; the first has Black in games with an even index.
        networks: networks of both players, or only of the first if the second is an anchor.
        anchor: specification of the second player if it is not a network, else None.
        seed: seed of the openings and of the players.
        over: indices of games that have been played already.
    """

    number: int
    names: tuple[str, str]
    networks: tuple[Weights, ...]
    anchor: str | None
    seed: int
    num_games: int
    over: frozenset[int] = frozenset()

    def parts(self) -> list["MatchPart"]:
        """The games to be played, divided into parts in a way that does not depend on the actors."""
        numbers = [number for number in range(self.num_games) if number not in self.over]
        match = replace(self, networks=(), over=frozenset())
        return [MatchPart(match, tuple(numbers[n : n + _PART_GAMES])) for n in range(0, len(numbers), _PART_GAMES)]


@dataclass(frozen=True)
class MatchPart:
    """Games of a match, by their indices, that one actor plays side by side; it gets the networks beside them."""

    match: PoolMatch
    games: tuple[int, ...]

    def starts(self) -> list[tuple[int, Opening]]:
        """Index and opening of each game of this part."""
        openings = make_openings(DEFAULT_OPENINGS, (self.match.num_games + 1) // 2, self.match.seed)
        return [(index, openings[index // 2]) for index in self.games]


@dataclass(frozen=True)
class MatchPlayed:
    """Finished games of the match with the number ``match``."""

    match: int
    games: tuple[MatchGame, ...]
