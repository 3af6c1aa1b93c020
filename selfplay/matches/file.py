"""The PDN file of a match: written while the match is played, and read again to resume it."""

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.board import Termination
from engine.errors import PdnError
from engine.files import read_text, remove_stale_temporaries
from engine.pdn import PdnGame, format_game, read_games

from ..games.openings import MatchError, Opening
from .record import FLAG, FORFEIT, MatchGame
from .steady_file import SteadyFile

_LARGEST = 512 << 20  # bytes: 20,000 games with the times and values of all moves have 100 million


class MatchFile:
    """All finished games of a match in order; soon after each game the file is rewritten.

    Args:
        players: names of both players.
        tags: PDN tag → value, the same in all games, to recognise the match.
        settings: settings of both players; unless "" they become the tags BlackSettings and WhiteSettings.
        openings: opening of each pair.
        games: number of games of the whole match.

    Raises ``PdnError`` if a tag cannot be written: a name has a line break.
    """

    def __init__(
        self,
        path: Path,
        players: tuple[str, str],
        tags: Mapping[str, str],
        settings: tuple[str, str],
        openings: Sequence[Opening],
        games: int,
    ) -> None:
        self.path = path
        self._players, self._tags, self._settings = players, dict(tags), settings
        self._openings, self._games = openings, games
        self._texts: dict[int, str] = {}
        self._read: frozenset[int] = frozenset()
        self._file = SteadyFile(path, self._content)
        format_game(PdnGame({**self._tags_of(0), "Opening": openings[0].name}))  # raises now, not after the first game

    # --- reading

    def read(self) -> dict[int, MatchGame]:
        """Reads the file: index → game. A last game that was cut short is left out.

        Raises ``MatchError`` if the file has other games than those of this match, or something else than games, and
        ``StorageError`` if it cannot be read.
        """
        if not self.path.exists():
            return {}
        remove_stale_temporaries(self.path.parent)
        kept: dict[int, MatchGame] = {}
        bad: list[PdnError] = []
        games: list[PdnGame] = []
        text = read_text(self.path, _LARGEST)
        for pdn in read_games(text, bad.append):
            if bad:
                raise self._misfit(str(bad[0]))
            games.append(pdn)
        if (needed := _games_in(games)) > self._games:
            why = f"it has games beyond --games {self._games}; give --games {needed}"
            raise MatchError(f"{self.path} cannot be resumed: {why}")
        for number, pdn in enumerate(games, 1):
            try:
                game = self._checked(pdn)
                if game is not None and game.index in kept:
                    raise MatchError(f"round {pdn.headers['Round']} is there twice")
            except ValueError as error:
                raise self._misfit(f"game {number}: {error}") from error
            if game is not None:
                kept[game.index] = game
                self._texts[game.index] = format_game(pdn)
        if bad and not kept:
            raise self._misfit(str(bad[0]))
        if not games and text.strip():  # JSON, for one, is a comment in PDN
            raise self._misfit("it holds something else than games")
        self._read = frozenset(kept)
        return kept

    def _misfit(self, what: str) -> MatchError:
        return MatchError(f"{self.path} cannot be resumed: {what}; give the settings of that match, or another file")

    def _checked(self, pdn: PdnGame) -> MatchGame | None:
        """The game, None if it is incomplete; raises ``MatchError`` if it is not a game of this match."""
        tags = pdn.headers
        index = _index(tags.get("Round", ""))
        for name, expected in self._tags_of(index).items():
            if tags.get(name, "") != expected:
                raise MatchError(f"its {name} is {tags.get(name, '')!r}, not {expected!r}")
        opening = self._openings[index // 2].board
        moves = [node.move for node in pdn.moves[: opening.ply]]
        if pdn.start_fen != opening.start_fen or moves != opening.move_stack[: len(moves)]:
            raise MatchError(f"it does not begin with {self._openings[index // 2].name}")
        try:
            game = MatchGame.from_pdn(pdn, index, index % 2 == 0)
        except ValueError as error:
            raise MatchError(str(error)) from error
        return game if _whole(pdn, game) else None

    def _tags_of(self, index: int) -> dict[str, str]:
        """The tags that a game in the file must have to count."""
        order = (0, 1) if index % 2 == 0 else (1, 0)
        tags = dict(self._tags)
        for side, number in zip(("Black", "White"), order, strict=True):
            tags[side] = self._players[number]
            tags[f"{side}Settings"] = self._settings[number]
        return tags

    # --- writing

    def __len__(self) -> int:
        """Number of games."""
        return len(self._texts)

    def add(self, game: MatchGame) -> None:
        """Adds a game and writes the file, at once or soon; raises ``StorageError``."""
        tags = {name: value for name, value in self._tags_of(game.index).items() if value}
        text = game.to_pdn({**tags, "Date": time.strftime("%Y.%m.%d")})
        with self._file.lock:
            self._texts[game.index] = text
        self._file.changed()

    def close(self, games: int | None = None) -> None:
        """Writes games that are not yet written; raises ``StorageError``.

        Args:
            games: of the games added, only the first ``games`` of the match are kept: the others were played after
                the decision. None: all.
        """
        with self._file.lock:
            if games is not None:
                self._texts = {i: text for i, text in self._texts.items() if i < games or i in self._read}
        if self._texts:
            self._file.write()

    def _content(self) -> bytes:
        return "\n".join(self._texts[index] for index in sorted(self._texts)).encode()


def _games_in(games: Sequence[PdnGame]) -> int:
    """Smallest number of games of a match that can contain these games."""
    indices = [-1]
    for pdn in games:
        with contextlib.suppress(MatchError):
            indices.append(_index(pdn.headers.get("Round", "")))
    return 1 + max(indices)


def _index(round_tag: str) -> int:
    pair, dot, colour = round_tag.partition(".")
    if not (dot and re.fullmatch("[0-9]{1,9}", pair) and int(pair) > 0 and colour in ("1", "2")):
        raise MatchError(f"its Round is {round_tag[:40]!r}, not like 3.1")
    return 2 * (int(pair) - 1) + int(colour) - 1


def _whole(pdn: PdnGame, game: MatchGame) -> bool:
    """Whether a game is complete: its moves lead to the ending that its tags name, or its forfeit has a reason."""
    if game.termination in (FORFEIT, FLAG):
        return game.error is not None
    outcome = pdn.board().outcome()
    if outcome is None:
        return False
    return (outcome.termination, outcome.winner) == (Termination.__members__.get(game.termination), game.winner)
