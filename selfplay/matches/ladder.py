"""A ladder: games between the promoted networks of a run and fixed anchors, and ratings from these games."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

from engine.files import read_bytes, sha256_of
from engine.players.spec import PlayerSpec

from ..games.openings import MatchError
from ..rating.elo import EloFit, Tally, fit_elo
from .record import MatchSummary
from .steady_file import SteadyFile

_VERSION = 1
OPENINGS_DIGEST = "openings_digest"  # setting of openings from a file; files of older versions lack it
Verdict = Literal["stronger", "within the error", "weaker"]


class LadderPlayer(NamedTuple):
    """A player on the ladder.

    Attributes:
        name: name in tables; that of its checkpoint for a network.
        settings: see ``commands.settings_of``; earlier results count only if it is still the same.
        promoted: whether it is a network of the run, not an anchor.
    """

    name: str
    spec: PlayerSpec
    settings: str
    promoted: bool


class RatingFigures(TypedDict):
    """A line of the Elo table; ``elo_error`` is half the 95 % interval, ``score`` is 0 to 1."""

    player: str
    elo: float
    elo_error: float
    games: int
    score: float


class Step(TypedDict):
    """Elo of one promoted network above an earlier one (``before``), and half the width of the 95 % interval."""

    network: str
    before: str
    elo: float
    elo_error: float
    verdict: Verdict


class StandingsFigures(TypedDict):
    """Ratings of a ladder; ``reference`` is rated 0, ``climb`` is the step from the first network to the last."""

    reference: str
    games: int
    ratings: list[RatingFigures]
    pairings: list[MatchSummary]
    steps: list[Step]
    climb: Step | None


def ladder_pairs(players: Sequence[LadderPlayer], everybody: bool) -> list[tuple[LadderPlayer, LadderPlayer]]:
    """Returns the pairs of players that meet.

    Each network meets the next one, the last network, and all anchors; with ``everybody`` all players meet.

    Args:
        players: networks from the first to the last, then anchors.
    """
    pairs = []
    promoted = [player for player in players if player.promoted]
    for earlier, later in combinations(players, 2):
        neighbours = later.promoted and promoted.index(later) == promoted.index(earlier) + 1
        crowned = later.promoted and later is promoted[-1]
        if everybody or neighbours or crowned or (earlier.promoted and not later.promoted):
            pairs.append((later, earlier) if later.promoted else (earlier, later))
    return pairs


class LadderResults:
    """Scores of all games, kept in one file.

    Args:
        settings: settings of all games; an existing file must have the same.

    Raises:
        MatchError: the file is damaged, or holds games with other settings.
        StorageError: it cannot be read.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self._players: dict[str, str] = {}  # name → settings
        self._scores: dict[tuple[str, str], dict[int, float]] = {}
        self._file = SteadyFile(path, self._content)
        if path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        data = read_bytes(path)
        try:
            fields = json.loads(data)
            sound = fields["schema_version"] == _VERSION and fields["checksum"] == _checksum(fields)
            if sound:
                self._players = {str(name): str(text) for name, text in fields["players"].items()}
                for player_a, player_b, scores in fields["games"]:
                    self._scores[player_a, player_b] = {int(index): float(score) for index, score in scores.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise MatchError(f"{path} is not a ladder: remove it to begin anew, or choose another --out") from error
        if not sound:
            raise MatchError(f"{path} is damaged or of another version: remove it, or choose another --out")
        for name, value in self._settings.items():
            was = fields["settings"].get(name)
            if was != value and not (name == OPENINGS_DIGEST and was is None):
                raise MatchError(f"{path} has games with {name} {was}, not {value}: choose another --out")

    def admit(self, player: LadderPlayer) -> None:
        """Registers a player; raises ``MatchError`` if the file has games of another player of that name."""
        before = self._players.setdefault(player.name, player.settings)
        if before != player.settings:
            raise MatchError(
                f"{self._file.path} has games of another {player.name} ({before}, not {player.settings}): "
                "choose another --out"
            )

    def __len__(self) -> int:
        """Number of games."""
        return sum(map(len, self._scores.values()))

    def scores(self, player_a: str, player_b: str) -> Mapping[int, float]:
        """Index of each game played → score of the first player."""
        turned = self._scores.get((player_b, player_a), {})  # if the two were named in the other order
        return {index ^ 1: 1.0 - score for index, score in turned.items()} | self._scores.get((player_a, player_b), {})

    def add(self, player_a: str, player_b: str, index: int, score: float) -> None:
        """Adds a game; the file is written soon after. Raises ``StorageError``."""
        with self._file.lock:
            self._scores.setdefault((player_a, player_b), {})[index] = score
        self._file.changed()

    def save(self) -> None:
        """Writes the file now; raises ``StorageError``."""
        self._file.write()

    def tally(self, player_a: str, player_b: str, games: int) -> Tally:
        """Tally of the first ``games`` games for the first player; incomplete pairs count as single games."""
        scores = {index: score for index, score in self.scores(player_a, player_b).items() if index < games}
        tally = Tally()
        for first in range(0, games, 2):
            if pair := [scores[index] for index in (first, first + 1) if index in scores]:
                tally.add(pair)
        return tally

    def _content(self) -> bytes:
        games = [[a, b, {str(i): scores[i] for i in sorted(scores)}] for (a, b), scores in self._scores.items()]
        fields = {"schema_version": _VERSION, "settings": self._settings, "players": self._players, "games": games}
        return (json.dumps({**fields, "checksum": _checksum(fields)}, indent=1) + "\n").encode()


def _checksum(fields: Mapping[str, Any]) -> str:
    return sha256_of(json.dumps([fields[name] for name in ("settings", "players", "games")]).encode())


class Standings(NamedTuple):
    """Results and ratings of a ladder.

    Attributes:
        players: networks from the first to the last, then anchors.
        tallies: (player_a, player_b) → results of the first.
        fit: ratings; the first network has 0.
    """

    players: tuple[LadderPlayer, ...]
    tallies: Mapping[tuple[str, str], Tally]
    fit: EloFit

    @staticmethod
    def of(players: Sequence[LadderPlayer], tallies: Mapping[tuple[str, str], Tally]) -> "Standings":
        """Computes ratings; ``tallies`` are counted for the first player of each pair."""
        fit = fit_elo([(*names, tally) for names, tally in tallies.items()], {players[0].name: 0.0})
        return Standings(tuple(players), tallies, fit)

    @property
    def networks(self) -> list[str]:
        """Names of the run's networks, the first one first."""
        return [player.name for player in self.players if player.promoted]

    def steps(self) -> list[Step]:
        """The step from each network to the next."""
        return [self._step(later, earlier) for earlier, later in pairwise(self.networks)]

    def climb(self) -> Step | None:
        """The step from the first network to the last; None if there is only one network."""
        first, last = self.networks[0], self.networks[-1]
        return self._step(last, first) if first != last else None

    def _step(self, network: str, before: str) -> Step:
        elo, error = self.fit.difference(network, before)
        verdict: Verdict = "within the error" if abs(elo) <= error else "stronger" if elo > 0 else "weaker"
        return {"network": network, "before": before, "elo": elo, "elo_error": error, "verdict": verdict}

    def against(self, player: str) -> Iterator[tuple[str, int, int, int]]:
        """Yields (opponent, wins, draws, losses) of a player, in the order of ``players``."""
        for opponent in (other.name for other in self.players):
            if tally := self.tallies.get((player, opponent)):
                yield opponent, tally.wins, tally.draws, tally.losses
            elif tally := self.tallies.get((opponent, player)):
                yield opponent, tally.losses, tally.draws, tally.wins

    def figures(self) -> StandingsFigures:
        return {
            "reference": self.players[0].name,
            "games": sum(tally.games for tally in self.tallies.values()),
            "ratings": [
                {"player": player, "elo": elo, "elo_error": error, "games": games, "score": score}
                for player, elo, error, games, score in self.fit.table
            ],
            "pairings": [
                {"player_a": player_a, "player_b": player_b, **tally.figures()}
                for (player_a, player_b), tally in self.tallies.items()
            ],
            "steps": self.steps(),
            "climb": self.climb(),
        }
