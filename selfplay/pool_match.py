"""Matches that the actors of a run play beside their own games: gates, and promoted networks against anchors."""

from dataclasses import dataclass

from .match_record import MatchGame
from .openings import DEFAULT_OPENINGS, Opening, make_openings
from .weights import Weights

_PART_GAMES = 16  # side by side: a batch for the network, and not much is lost with an actor


@dataclass(frozen=True)
class MatchPart:
    """Games of a match that one actor plays side by side.

    Attributes:
        match: number of the match: the games of one that has ended do not count for the next.
        names: of the two players; the first has Black in the games of even number.
        anchor: specification of the second player, if that is no network.
        seed: of the openings and of the players.
        pairs: openings of the whole match.
        games: numbers of these games.
    """

    match: int
    names: tuple[str, str]
    anchor: str | None
    seed: int
    pairs: int
    games: tuple[int, ...]

    def starts(self) -> list[tuple[int, Opening]]:
        """Number and opening of each game."""
        openings = make_openings(DEFAULT_OPENINGS, self.pairs, self.seed)
        return [(index, openings[index // 2]) for index in self.games]


@dataclass(frozen=True)
class MatchPlayed:
    """What has been played of a match."""

    match: int
    games: tuple[MatchGame, ...]


@dataclass(frozen=True)
class PoolMatch:
    """A whole match; see ``MatchPart``.

    Attributes:
        networks: of both players, or of the first alone, if the second is an anchor.
        over: games that have been played already.
    """

    number: int
    names: tuple[str, str]
    networks: tuple[Weights, ...]
    anchor: str | None
    seed: int
    num_games: int
    over: frozenset[int] = frozenset()

    @property
    def num_pairs(self) -> int:
        return (self.num_games + 1) // 2

    def parts(self) -> list[MatchPart]:
        """The games that are to be played; which of them side by side does not depend on the actors."""
        numbers = [number for number in range(self.num_games) if number not in self.over]
        return [
            MatchPart(
                self.number, self.names, self.anchor, self.seed, self.num_pairs, tuple(numbers[n : n + _PART_GAMES])
            )
            for n in range(0, len(numbers), _PART_GAMES)
        ]
