"""The Elo table of a run, from all matches between its networks and with the anchors."""

import json
from collections import Counter
from pathlib import Path

from engine.files import atomic_write, read_bytes, sha256_of

from .elo import EloRating, PairingResult, Tally, fit_elo, linked, rating_beside

_VERSION = 2
_FIRST_NETWORK = "000000"
OPPONENT = "opponent"
"""Name of the network that all games of a run are against, see ``RunConfig.opponent``."""


class RatingsError(ValueError):
    """A table of ratings cannot be read; the message names the file."""


class Ratings:
    """Results and ratings, kept in one JSON file, which need not exist yet; raises ``RatingsError`` if it is damaged,
    ``StorageError`` if it cannot be read.

    Attributes:
        results: results of matches.
        endgames: network → fraction of endgames that its win/draw/loss head judges right, see ``exam``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.results: list[PairingResult] = []
        self.endgames: dict[str, float] = {}
        if path.exists():
            data = read_bytes(path)
            try:
                fields = json.loads(data)
                self.results = [PairingResult(*row) for row in fields["results"]]
                self.endgames = {str(name): float(share) for name, share in fields["endgames"].items()}
                sound = fields["schema_version"] == _VERSION and fields["checksum"] == self._checksum()
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise RatingsError(f"{path} is not a table of ratings: remove it to begin a new one") from error
            if not sound:
                raise RatingsError(f"{path} is damaged or of another version: remove it to begin a new table")

    def _checksum(self) -> str:
        return sha256_of(json.dumps([self.results, self.endgames]).encode())

    @property
    def reference(self) -> str:
        """The player rated 0: the anchor met last, so that runs can be compared; without anchors the opponent of all
        games or, in other runs, the oldest network."""
        players = [name for result in self.results for name in (result.player_a, result.player_b)]
        anchors = [name for name in players if not name.isdigit() and name != OPPONENT]
        if anchors:
            return anchors[-1]
        return OPPONENT if OPPONENT in players else min(players, default=_FIRST_NETWORK)

    def add(self, result: PairingResult) -> None:
        """Adds a match; it replaces an earlier match between the same players (which a kill made the run repeat)."""
        same = {result.player_a, result.player_b}
        self.results = [old for old in self.results if {old.player_a, old.player_b} != same]
        self.results.append(result)

    def table(self) -> list[EloRating]:
        """The ratings, strongest first; ``reference`` has 0.

        The file does not say which games were pairs: all count as single games, so errors are rather too large. A
        candidate that has met one player only, as those that were not promoted, is rated beside that player: with
        thousands of them the fit would take minutes. Players that no games link to the reference are left out: in a
        new table, the opponent of all games and a candidate before it meets the anchors.
        """
        reference = self.reference
        rated = linked(((result.player_a, result.player_b) for result in self.results), [reference])
        tallies = [(a, b, Tally.of_games(*counts)) for a, b, *counts in self.results if a in rated]
        if not tallies:
            return []
        met = Counter(name for pairing in tallies for name in pairing[:2])
        beside = [
            (candidate, other, tally)
            for candidate, other, tally in tallies
            if met[candidate] == 1 and candidate != reference and (met[other] > 1 or other == reference)
        ]
        alone = {candidate for candidate, _, _ in beside}
        fitted = [pairing for pairing in tallies if pairing[0] not in alone]
        lines = {line.player: line for line in fit_elo(fitted, {reference: 0.0}).table}
        lines |= {candidate: rating_beside(candidate, tally, lines[other]) for candidate, other, tally in beside}
        games, points = Counter[str](), dict.fromkeys(met, 0.0)
        for player_a, player_b, tally in tallies:
            games.update({player_a: tally.games, player_b: tally.games})
            points[player_a] += tally.points
            points[player_b] += tally.games - tally.points
        counted = (line._replace(games=games[name], score=points[name] / games[name]) for name, line in lines.items())
        return sorted(counted, key=lambda line: (-line.rating, line.player))

    def save(self) -> None:
        """Writes results and ratings; raises ``StorageError``."""
        fields = {
            "schema_version": _VERSION,
            "results": self.results,
            "endgames": self.endgames,
            "ratings": [line._asdict() for line in self.table()],
            "checksum": self._checksum(),
        }
        atomic_write(self._path, (json.dumps(fields, indent=1) + "\n").encode())
