"""The index of PDN files: its SQLite tables, and entering games into them. No pygame."""

import codecs
import contextlib
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

from engine.errors import DraughtsError
from engine.fen import START_FEN, Color
from engine.files import StorageError, cannot_read, decoded
from engine.openings import opening_of
from engine.pdn import other_game
from engine.pdn_tokens import MAX_LINE, Token, split_games, tokenize
from engine.position_keys import keys_of_game

from ..game.pdn_files import ANNOTATED, clean, facts_of, is_game, one_line, title_from

VERSION = 4
KEPT = 20  # number of indexes to keep; those used longest ago are removed
SUFFIX, UNFINISHED = ".sqlite", ".part"
_STALE_S = 86_400.0  # age in seconds of an unfinished index whose program must have ended
_FIRST, _BATCH = 50, 250  # games before the first commit and between two commits
_COURTESY_S = 0.001  # pause after every game: without it, the window waits 5 ms each time it needs the interpreter
_BLACK_SCORES = {"1-0": 1, "1/2-1/2": 0, "0-1": -1}

# ``positions`` has a row for each position of a game: ``after`` is the key of the position after the game's move there
# (NULL in the last position), ``score`` the result for the side to move: 1, 0, -1, or NULL if unknown.
_NUMBER_OF_FILE = "SELECT number FROM files WHERE name = ?"
_TABLES = """
    CREATE TABLE files (number INTEGER PRIMARY KEY, name TEXT UNIQUE, size INTEGER, modified INTEGER);
    CREATE TABLE games (number INTEGER PRIMARY KEY, file INTEGER, start INTEGER, line INTEGER, col INTEGER,
                        title TEXT, opening TEXT, result TEXT, words TEXT);
    CREATE TABLE positions (key INTEGER, game INTEGER, ply INTEGER, after INTEGER, score INTEGER,
                            PRIMARY KEY (key, game)) WITHOUT ROWID;
"""


class StoppedError(Exception):
    """Indexing was stopped, because the index is no longer needed."""


class Source(NamedTuple):
    """A PDN file with its size in bytes and its time of last change in ns."""

    path: Path
    size: int
    modified: int


def source_of(path: Path) -> Source:
    """The current state of a file; raises ``StorageError`` if it cannot be opened."""
    with opened(path) as file:
        path.name.encode()  # the index keeps names as text; an error of it is one of the file
        return _as_it_is(path, file)


def sources_in(folder: Path) -> list[Source]:
    """The PDN files in a folder, sorted by name.

    Annotated copies beside their originals are left out, and so are files that disappear meanwhile, cannot be accessed,
    or whose names are no text.

    Raises:
        StorageError: the folder cannot be read.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise cannot_read(folder, error) from error
    sources, names = [], {entry.name.lower() for entry in entries}
    for entry in entries:
        with contextlib.suppress(OSError, UnicodeError):
            entry.name.encode()
            name = entry.name.lower()
            original = name.removesuffix(ANNOTATED) + ".pdn"
            copied = name.endswith(ANNOTATED) and original in names
            if name.endswith(".pdn") and not copied and entry.is_file():
                state = entry.stat()
                sources.append(Source(Path(entry.path), state.st_size, state.st_mtime_ns))
    return sources


def _as_it_is(path: Path, file: BinaryIO) -> Source:
    state = os.fstat(file.fileno())
    return Source(path, state.st_size, state.st_mtime_ns)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Context manager: opens a file; raises ``StorageError`` if it cannot be opened or, inside the block, read."""
    try:
        with open(path, "rb") as file:
            yield file
    except (StorageError, DraughtsError):
        raise
    except (OSError, ValueError) as error:  # ValueError: null character in the name
        raise cannot_read(path, error) from error


@contextlib.contextmanager
def opened_as(source: Source) -> Iterator[BinaryIO]:
    """Context manager: opens a file as ``opened`` does; also raises ``StorageError`` if the file has changed."""
    with opened(source.path) as file:
        if _as_it_is(source.path, file) != source:
            raise has_changed(source.path)
        yield file


def has_changed(path: Path) -> StorageError:
    return StorageError(None, f"{path} has changed: open it again")


def lines_of(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """The lines of a file with their byte offsets, with any kind of line end. A line that is not UTF-8 is read as
    Latin-1; a line longer than ``MAX_LINE`` is cut."""
    while data := file.readline(MAX_LINE + 2):
        start = file.tell() - len(data)
        if len(data) > MAX_LINE and data[-1:] != b"\n" and (end := data.rfind(b"\r")) >= 0:
            data = data[: end + 1]  # lines that end with \r alone: the rest is read again
            file.seek(start + len(data))
        for part in data.splitlines(keepends=True):
            yield start, clean(decoded(part.removeprefix(codecs.BOM_UTF8) if start == 0 else part))
            start += len(part)
        while len(data) > MAX_LINE and data[-1:] not in (b"\n", b"\r"):
            data = file.readline(MAX_LINE + 2)
            if (end := data.rstrip(b"\r\n").find(b"\r")) >= 0:
                file.seek(end + 1 - len(data), os.SEEK_CUR)
                break


class Filling:
    """Enters games into an index.

    Args:
        index: database of the index; tables are created if there are none.
        stopped: called before every game; if it returns True, ``StoppedError`` is raised.
        publish: called with the number of games after every commit.
    """

    def __init__(self, index: sqlite3.Connection, stopped: Callable[[], bool], publish: Callable[[int], None]) -> None:
        self._index, self._stopped, self._publish = index, stopped, publish
        # A transaction that outgrew the page cache would lock readers out until its end.
        index.executescript("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_spill = OFF;")
        if not index.execute("SELECT 1 FROM sqlite_master WHERE name = 'games'").fetchone():
            index.executescript(_TABLES)
        (self._count,) = index.execute("SELECT count(*) FROM games").fetchone()
        (self._last,) = index.execute("SELECT coalesce(max(number), 0) FROM games").fetchone()

    def bring_up_to_date(self, sources: Sequence[Source]) -> None:
        """Removes the games of files that are gone or have changed, then enters the games of new and changed files.
        Skips files that cannot be read: they are new the next time."""
        now = {source.path.name: source for source in sources}
        known = self._index.execute("SELECT number, name, size, modified FROM files").fetchall()
        kept = {name for _, name, *state in known if name in now and now[name][1:] == tuple(state)}
        self._remove([number for number, name, *_ in known if name not in kept])
        self.finish()
        for source in sources:
            if source.path.name in kept:
                continue
            try:
                with opened_as(source) as file:
                    self.add(source, file)
            except OSError:
                name = (source.path.name,)
                self._remove([number for (number,) in self._index.execute(_NUMBER_OF_FILE, name)])
        self.finish()

    def _remove(self, files: Sequence[int]) -> None:
        if not files:
            return
        self._index.execute("CREATE TEMP TABLE gone (file INTEGER PRIMARY KEY)")
        self._index.executemany("INSERT INTO gone VALUES (?)", [(number,) for number in files])
        games = "SELECT number FROM games WHERE file IN gone"
        self._index.execute(f"DELETE FROM positions WHERE game IN ({games})")
        self._index.execute("DELETE FROM games WHERE file IN gone")
        self._index.execute("DELETE FROM files WHERE number IN gone")
        self._index.execute("DROP TABLE gone")
        (self._count,) = self._index.execute("SELECT count(*) FROM games").fetchone()

    def add(self, source: Source, file: BinaryIO) -> None:
        """Enters all games of an open file."""
        starts: deque[tuple[int, int]] = deque()  # number and byte offset of lines in which a game may begin

        def lines() -> Iterator[str]:
            for number, (start, text) in enumerate(lines_of(file), 1):
                starts.append((number, start))
                yield text

        row = (source.path.name, source.size, source.modified)
        number = self._index.execute("INSERT INTO files VALUES (NULL, ?, ?, ?)", row).lastrowid
        for tokens in filter(is_game, split_games(tokenize(lines()))):
            if self._stopped():
                raise StoppedError
            while starts[0][0] < tokens[0].line:
                starts.popleft()
            self._enter(number or 0, starts[0][1], tokens)
            time.sleep(_COURTESY_S)
            if self._count == _FIRST or self._count % _BATCH == 0:
                self.finish()

    def finish(self) -> None:
        """Commits the games entered so far and publishes their number."""
        self._index.commit()
        self._publish(self._count)

    def _enter(self, file: int, start: int, tokens: list[Token]) -> None:
        headers, moves = facts_of(tokens)
        fen = START_FEN if headers.get("SetUp") == "0" else headers.get("FEN") or START_FEN
        try:  # the error of a game that cannot be read is shown when it is opened
            keys = [] if other_game(headers.get("GameType", "")) else keys_of_game(fen, moves).tolist()
        except DraughtsError:
            keys = []
        self._last, self._count = self._last + 1, self._count + 1
        opening, result = opening_of(keys), headers["Result"]
        title = title_from(headers, result, len(moves))
        facts = [headers.get(name, "") for name in (*map(str, Color), "Event", "Site", "Date", "Opening")]
        words = one_line(" ".join([*facts, opening])).casefold()
        row = (self._last, file, start, tokens[0].line, tokens[0].column, title, opening, result, words)
        self._index.execute("INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        score = _BLACK_SCORES.get(result)
        if score is not None and fen.lstrip()[:1].upper() == Color.WHITE.value:
            score = -score  # for the side that moves first
        scores = (score, score) if score is None else (score, -score)
        rows = [
            (key, self._last, ply, after, scores[ply % 2]) for ply, (key, after) in enumerate(pairwise([*keys, None]))
        ]
        self._index.executemany("INSERT OR IGNORE INTO positions VALUES (?, ?, ?, ?, ?)", rows)


def tidy(folder: Path) -> None:
    """Removes the indexes used longest ago, and old unfinished ones."""
    found = []
    for path in folder.iterdir():
        if path.suffix in (SUFFIX, UNFINISHED):
            with contextlib.suppress(FileNotFoundError):  # another window has removed it
                found.append((path.stat().st_mtime, path))
    finished = sorted(((when, path) for when, path in found if path.suffix == SUFFIX), reverse=True)
    stale = [path for when, path in found if path.suffix == UNFINISHED and time.time() - when > _STALE_S]
    for path in [*stale, *(path for _, path in finished[KEPT:])]:
        with contextlib.suppress(OSError):
            path.unlink()
