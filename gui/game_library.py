"""Large PDN files: their games in an index on the disk, to list and to search by words, result and position. No pygame.

The index is an SQLite file in the user's cache, named by the PDN file's SHA-256, so a file that was read once opens at
once. While it is made, in a thread, it can be searched as far as it has come. Neither needs more memory for more games.
"""

import contextlib
import os
import sqlite3
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO, NamedTuple

import platformdirs

from engine.errors import DraughtsError, PdnError
from engine.fen import START_FEN, Color
from engine.files import StorageError, cannot_read, make_folder, sha256_of
from engine.openings import opening_of
from engine.pdn import PdnGame
from engine.pdn_tokens import MAX_LINE, Token, split_games, tokenize
from engine.position_keys import keys_of_game

from .pdn_files import clean, facts_of, game_at, is_game, one_line, title_from
from .threads import in_thread

VERSION = 2  # of the index
KEPT = 20  # indexes; those used longest ago are removed
_STALE_S = 86_400.0  # an unfinished index of a program that is gone
_FIRST, _BATCH = 50, 250  # games between two looks that others can have at the index
_COURTESY_S = 0.001  # rest after every game: without it the window waits 5 ms whenever it wants the interpreter
_BUSY_S = 10.0  # a reader waits that long for a batch to be written
_TABLES = """
    CREATE TABLE games (number INTEGER PRIMARY KEY, start INTEGER, line INTEGER, col INTEGER,
                        title TEXT, opening TEXT, result TEXT, words TEXT);
    CREATE TABLE positions (key INTEGER, game INTEGER, ply INTEGER, PRIMARY KEY (key, game)) WITHOUT ROWID;
"""


class _StoppedError(Exception):
    """Nobody wants the index any more."""


class Query(NamedTuple):
    """What games have to have: every one of some words (of players, event, date, place, opening), a result, a position.

    ``key`` is that of the position, see ``engine.position_keys``.
    """

    words: str = ""
    result: str = ""
    key: int | None = None

    def condition(self) -> tuple[str, list[object]]:
        """The WHERE clause and its values."""
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
    """A game in a list: its number in the file, from 1, its title and opening, and the plies to the position sought."""

    number: int
    title: str
    opening: str
    ply: int | None


class GameLibrary:
    """The games of a PDN file.

    Args:
        path: of the PDN file.
        folder: for indexes; the user's cache by default, a temporary one if that cannot be written.

    Attributes:
        count: games that can be listed so far.
    """

    def __init__(self, path: Path, folder: Path | None = None) -> None:
        self.path, self.count = path, 0
        self._folder = folder or platformdirs.user_cache_path("crownhead", appauthor=False) / "libraries"
        self._index: Path | None = None  # once there is something to look at
        self._state: tuple[int, int] | None = None  # size and time of the file that the index is of
        self._stopped = False
        self._reading: Future[None] = in_thread("pdn", self._open)

    @property
    def done(self) -> bool:
        return self._reading.done()

    def check(self) -> None:
        """Raises ``StorageError`` if the file, or the index, could not be read or written to the end."""
        if self.done:
            self._reading.result()

    def wait(self) -> None:
        """Waits until everything is read; raises as ``check`` does."""
        self._reading.result()

    def close(self) -> None:
        """Stops the reading; what is not finished is thrown away."""
        self._stopped = True

    def search(self, query: Query, first: int, most: int) -> tuple[int, list[Listed]]:
        """How many games a query finds so far, and ``most`` of them from number ``first`` (0 is the first one).

        Raises:
            StorageError: the index is broken or gone.
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

    def game(self, number: int) -> PdnGame:
        """Game ``number``, from 1.

        Raises:
            PdnError: something is wrong with it, or there is none; one line.
            StorageError: the file has changed, or cannot be read.
        """
        row = None
        if self._index is not None:
            with self._connection() as index:
                row = index.execute("SELECT start, line, col FROM games WHERE number = ?", [number]).fetchone()
        if row is None:
            raise PdnError(f"there is no game {number}: the file holds {self.count or 'no'} games")
        start, line, column = row
        with _opened(self.path) as file:
            if _state_of(file) != self._state:
                raise StorageError(None, f"{self.path} has changed: open it again")
            file.seek(start)
            return game_at((text for _, text in _lines(file)), line, column)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._index or "", timeout=_BUSY_S)) as index:
                yield index
        except sqlite3.DatabaseError as error:
            if self.done and self._index is not None:
                self._index.unlink(missing_ok=True)  # it is made again when the file is opened again
            raise StorageError(None, f"the list of {self.path.name} is broken ({error}): open the file again") from None

    # --- the thread

    def _open(self) -> None:
        with _opened(self.path) as file:
            self._state = _state_of(file)
        digest = sha256_of(self.path)
        try:
            make_folder(self._folder)
            known = self._folder / f"{digest}-{VERSION}.sqlite"
            if self._take(known):
                return
            self._make(known)
        except (sqlite3.OperationalError, StorageError):
            if self._index is not None or self._stopped:
                raise
            self._folder = Path(tempfile.mkdtemp(prefix="crownhead-"))
            self._make(self._folder / f"{digest}-{VERSION}.sqlite")

    def _take(self, known: Path) -> bool:
        """Takes a finished index; False if there is none, or it is broken."""
        if not known.exists():
            return False
        try:
            with contextlib.closing(sqlite3.connect(known)) as index:
                (self.count,) = index.execute("SELECT count(*) FROM games").fetchone()
            os.utime(known)
        except (sqlite3.DatabaseError, OSError):
            known.unlink(missing_ok=True)
            return False
        self._index = known
        return True

    def _make(self, known: Path) -> None:
        part = known.with_name(f"{known.name}.{os.getpid()}-{id(self):x}.part")
        try:
            with contextlib.closing(sqlite3.connect(part, timeout=_BUSY_S)) as index:
                index.executescript("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;" + _TABLES)
                with _opened(self.path) as file:
                    self._fill(index, part, file)
                    if _state_of(file) != self._state:
                        raise StorageError(None, f"{self.path} has changed: open it again")
            with contextlib.suppress(OSError):  # where a reader holds it, it serves under this name
                os.replace(part, known)
                self._index = known
            _tidy(known.parent)
        except _StoppedError:
            pass
        except sqlite3.Error as error:
            raise StorageError(None, f"cannot write the list of {self.path.name}: {error}") from error
        finally:
            if self._index != part or self._stopped:
                part.unlink(missing_ok=True)

    def _fill(self, index: sqlite3.Connection, part: Path, file: BinaryIO) -> None:
        starts: deque[tuple[int, int]] = deque()  # line and place in the file of lines that a game may begin in

        def lines() -> Iterator[str]:
            for number, (start, text) in enumerate(_lines(file), 1):
                starts.append((number, start))
                yield text

        games = filter(is_game, split_games(tokenize(lines())))
        for number, tokens in enumerate(games, 1):
            if self._stopped:
                raise _StoppedError
            while starts[0][0] < tokens[0].line:
                starts.popleft()
            _enter(index, number, starts[0][1], tokens)
            time.sleep(_COURTESY_S)
            if number == _FIRST or number % _BATCH == 0:
                self._publish(index, part, number)
        (last,) = index.execute("SELECT count(*) FROM games").fetchone()
        self._publish(index, part, last)

    def _publish(self, index: sqlite3.Connection, part: Path, number: int) -> None:
        index.commit()
        self._index, self.count = part, number


def _enter(index: sqlite3.Connection, number: int, start: int, tokens: list[Token]) -> None:
    headers, moves = facts_of(tokens)
    fen = START_FEN if headers.get("SetUp") == "0" else headers.get("FEN") or START_FEN
    try:
        keys = keys_of_game(fen, moves).tolist()
    except DraughtsError:  # said when the game is opened
        keys = []
    opening, result = opening_of(keys), headers["Result"]
    title = title_from(headers, result, len(moves))
    facts = [headers.get(name, "") for name in (*map(str, Color), "Event", "Site", "Date", "Opening")]
    words = one_line(" ".join([*facts, opening])).casefold()
    row = (number, start, tokens[0].line, tokens[0].column, title, opening, result, words)
    index.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    index.executemany("INSERT OR IGNORE INTO positions VALUES (?, ?, ?)", [(k, number, p) for p, k in enumerate(keys)])


def _state_of(file: BinaryIO) -> tuple[int, int]:
    state = os.fstat(file.fileno())
    return state.st_size, state.st_mtime_ns


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, open; raises ``StorageError`` if it cannot be opened or, later on, read."""
    try:
        with open(path, "rb") as file:
            yield file
    except (StorageError, DraughtsError):
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise cannot_read(path, error) from error


def _lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """The lines, whatever they end with, each with its place: UTF-8 or, line by line, Latin-1. One that is longer than
    PDN allows is cut."""
    while data := file.readline(MAX_LINE + 2):
        start = file.tell() - len(data)
        for part in data.splitlines(keepends=True):
            try:
                text = part.decode("utf-8-sig" if start == 0 else "utf-8")
            except UnicodeDecodeError:
                text = part.decode("latin-1")
            yield start, clean(text)
            start += len(part)
        while len(data) > MAX_LINE and data[-1:] != b"\n":
            data = file.readline(MAX_LINE + 2)


def _tidy(folder: Path) -> None:
    """Removes indexes that were used long ago, and what a program that is gone left unfinished."""
    found = [(path.stat().st_mtime, path) for path in folder.iterdir() if path.suffix in (".sqlite", ".part")]
    finished = sorted(((when, path) for when, path in found if path.suffix == ".sqlite"), reverse=True)
    stale = [path for when, path in found if path.suffix == ".part" and time.time() - when > _STALE_S]
    for path in [*stale, *(path for _, path in finished[KEPT:])]:
        with contextlib.suppress(OSError):
            path.unlink()
