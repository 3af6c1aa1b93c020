"""Indexes large PDN files and folders of them on disk: to list games, to search them by words, result and position, and
to count the moves that were played in a position. No pygame.

An index is an SQLite file in the cache. The index of a file has the file's SHA-256 as its name, so a file that was read
before opens at once. The index of a folder has a name made from the folder's path and is updated when files have
changed. A thread makes the index; meanwhile the games read so far can be searched. Memory does not grow with the number
of games.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from os.path import exists, isdir
from pathlib import Path
from typing import NamedTuple

import platformdirs

from engine.errors import PdnError
from engine.files import StorageError, make_folder, sha256_of
from engine.pdn import PdnGame

from ..game.pdn_files import game_at
from ..threads import in_thread
from .game_index import (
    SUFFIX,
    UNFINISHED,
    VERSION,
    Filling,
    Source,
    StoppedError,
    has_changed,
    lines_of,
    opened_as,
    source_of,
    sources_in,
    tidy,
)

_BUSY_S = 0.25  # most seconds that a reader, and with it the window, waits for a commit
_PATIENCE_S = 10.0  # most seconds that a commit waits for readers


class Query(NamedTuple):
    """Conditions for games: all of ``words`` (in players, event, date, place, opening), a PDN result, a position.

    ``key`` is the position's key, see ``engine.position_keys``. An empty text or None is no condition.
    """

    words: str = ""
    result: str = ""
    key: int | None = None

    def condition(self) -> tuple[str, list[object]]:
        """The SQL condition and its values."""
        parts, values = ["1"], list[object]()
        if self.key is not None:
            parts.append("positions.key = ?")
            values.append(self.key)
        if self.result:
            parts.append("result = ?")
            values.append(self.result)
        for word in self.words.casefold().split():
            parts.append("instr(words, ?)")
            values.append(word)
        return " AND ".join(parts), values


class Listed(NamedTuple):
    """A game in a list: number in the library (from 1), title, opening, and ply of the position searched for."""

    number: int
    title: str
    opening: str
    ply: int | None


class Played(NamedTuple):
    """Numbers of games with a move: won, drawn and lost by the side that made it, and without a result.

    ``after`` is the key of the position after the move, see ``engine.position_keys``.
    """

    after: int
    won: int = 0
    drawn: int = 0
    lost: int = 0
    unknown: int = 0

    @property
    def games(self) -> int:
        return self.won + self.drawn + self.lost + self.unknown


class IndexInUseError(StorageError):
    """The index is just being written; asked again, it answers."""


class GameLibrary:
    """The games of a PDN file, or of all PDN files in a folder.

    Args:
        path: the file or folder.
        folder: folder for indexes; None: the user's cache, or a temporary folder if that cannot be written.

    Attributes:
        count: number of games that can be listed so far.
    """

    def __init__(self, path: Path, folder: Path | None = None) -> None:
        self.path, self.count = path, 0
        self._folder = folder or platformdirs.user_cache_path("crownhead", appauthor=False) / "libraries"
        self._temporary: Path | None = None  # folder for the index where there is no other
        self._index: Path | None = None  # None before the first games are committed
        self._sources: dict[str, Source] = {}  # name → indexed file
        self._stopped = self._halted = False
        self._reading: Future[None] = in_thread("pdn", self._open)

    @property
    def done(self) -> bool:
        return self._reading.done()

    @property
    def cut_short(self) -> bool:
        """Whether reading was halted before the end."""
        return self.done and self._halted and self._index is not None and self._index.suffix == UNFINISHED

    def check(self) -> None:
        """Raises ``StorageError`` if the file could not be read completely or the index not written."""
        if self.done:
            self._reading.result()

    @property
    def failed(self) -> bool:
        """Whether the file could not be read completely or the index not written."""
        return self.done and self._reading.exception() is not None

    def wait(self) -> None:
        """Waits until everything is read; raises as ``check`` does."""
        self._reading.result()

    def halt(self) -> None:
        """Stops reading; the games read so far can be used until the library is closed."""
        self._halted = True

    def close(self) -> None:
        """Stops reading and removes an unfinished index, or one in a temporary folder."""
        self._stopped = True
        if self.done and self._index is not None and self._index.suffix == UNFINISHED:
            self._index.unlink(missing_ok=True)
        if self.done and self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def holds(self, other: "GameLibrary") -> bool:
        """Whether this is a folder whose games are also those of the file ``other``."""
        path = other.path
        return isdir(self.path) and path.name in self._sources and path.parent.resolve() == self.path.resolve()

    def search(self, query: Query, first: int, most: int) -> tuple[int, list[Listed]]:
        """The number of games that a query finds so far, and at most ``most`` of them from index ``first`` (from 0) on.

        Raises:
            StorageError: the index is damaged or gone; ``IndexInUseError`` if it is just being written.
        """
        if self._index is None:
            return 0, []
        where, values = query.condition()
        source = "games" if query.key is None else "positions JOIN games ON games.number = positions.game"
        ply = "NULL" if query.key is None else "positions.ply"
        with self._connection() as index:
            (count,) = index.execute(f"SELECT count(*) FROM {source} WHERE {where}", values).fetchone()
            rows = index.execute(
                f"SELECT number, title, opening, {ply} FROM {source} WHERE {where} ORDER BY number LIMIT ? OFFSET ?",
                [*values, most, first],
            ).fetchall()
        return count, [Listed(*row) for row in rows]

    def played(self, key: int) -> list[Played]:
        """The moves that were made in a position, the most frequent first. If a game has the position several times,
        only the first one counts.

        Args:
            key: key of the position, see ``engine.position_keys``.

        Raises:
            StorageError: the index is damaged or gone; ``IndexInUseError`` if it is just being written.
        """
        if self._index is None:
            return []
        with self._connection() as index:
            rows = index.execute(
                "SELECT after, sum(score = 1), sum(score = 0), sum(score = -1), sum(score IS NULL) FROM positions "
                "WHERE key = ? AND after IS NOT NULL GROUP BY after ORDER BY count(*) DESC, after",
                [key],
            ).fetchall()
        return [Played(after, *(count or 0 for count in counts)) for after, *counts in rows]

    def game(self, number: int) -> PdnGame:
        """Reads game ``number`` (from 1).

        Raises:
            PdnError: the game is not valid or does not exist; the message has one line.
            StorageError: the file has changed, or cannot be read.
        """
        row = None
        if self._index is not None:
            what = "SELECT files.name, start, line, col FROM games JOIN files ON files.number = games.file"
            with self._connection() as index:
                row = index.execute(f"{what} WHERE games.number = ?", [number]).fetchone()
        if row is None:
            raise PdnError(f"there is no game {number}: the file holds {self.count or 'no'} games")
        name, start, line, column = row
        source = self._sources.get(name) or next(iter(self._sources.values()))  # another name: a copy
        with opened_as(source) as file:
            file.seek(start)
            return game_at((text for _, text in lines_of(file)), line, column)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._index or "", timeout=_BUSY_S)) as index:
                yield index
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise IndexInUseError(None, f"the list of {self.path.name} is being written: try again") from None
            if self.done and self._index is not None:
                self._index.unlink(missing_ok=True)  # opening the file again makes a new one
            raise StorageError(None, f"the list of {self.path.name} is broken ({error}): open the file again") from None

    # --- the thread

    def _open(self) -> None:
        if isdir(self.path):
            sources, name = sources_in(self.path), f"folder-{sha256_of(os.fsencode(self.path.resolve()))}"
        else:
            sources, name = [source_of(self.path)], sha256_of(self.path)
        self._sources = {source.path.name: source for source in sources}
        try:
            make_folder(self._folder)
            known = self._folder / f"{name}-{VERSION}{SUFFIX}"
            if self._take(known):
                return
            self._make(known)
        except (sqlite3.OperationalError, StorageError):
            if self._index is not None or self._stopped:
                raise
            self._temporary = Path(tempfile.mkdtemp(prefix="crownhead-"))
            self._make(self._temporary / f"{name}-{VERSION}{SUFFIX}")

    def _take(self, known: Path) -> bool:
        """Uses a finished index; False if there is none, it is damaged, or the folder has changed since."""
        if not exists(known):
            return False
        try:
            with contextlib.closing(sqlite3.connect(known)) as index:
                (count,) = index.execute("SELECT count(*) FROM games").fetchone()
                files = set(index.execute("SELECT name, size, modified FROM files"))
        except sqlite3.DatabaseError:
            with contextlib.suppress(OSError):
                known.unlink()
            return False
        with contextlib.suppress(OSError):  # a cache that can only be read
            os.utime(known)
        if isdir(self.path) and files != {(name, *source[1:]) for name, source in self._sources.items()}:
            return False
        self._index, self.count = known, count
        return True

    def _make(self, known: Path) -> None:
        part = known.with_name(f"{known.name}.{os.getpid()}-{id(self):x}{UNFINISHED}")
        try:
            if exists(known):
                shutil.copyfile(known, part)
            with contextlib.closing(sqlite3.connect(part, timeout=_PATIENCE_S)) as index:
                self._fill(Filling(index, lambda: self._stopped or self._halted, partial(self._publish, part)))
            with contextlib.suppress(OSError):  # fails if a reader holds the file, whose old name then stays
                os.replace(part, known)
                self._index = known
            tidy(known.parent)
        except StoppedError:
            pass
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(None, f"cannot write the list of {self.path.name}: {error}") from error
        finally:
            if self._index != part or self._stopped:
                part.unlink(missing_ok=True)

    def _fill(self, filling: Filling) -> None:
        if isdir(self.path):
            filling.bring_up_to_date(list(self._sources.values()))
            return
        (source,) = self._sources.values()
        with opened_as(source) as file:
            filling.add(source, file)
        if source_of(self.path) != source:
            raise has_changed(self.path)
        filling.finish()

    def _publish(self, part: Path, count: int) -> None:
        self._index, self.count = part, count
