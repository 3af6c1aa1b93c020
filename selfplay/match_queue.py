"""``crownhead matches``: plays the matches of a file one after another and shows their results in one table."""

import hashlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import typer

from engine.console import Console, Table
from engine.files import make_folder, read_text
from engine.game import OtherGameError
from engine.players.spec import PlayerSpec
from engine.shell_words import split_words

from .command_line.options import request_command
from .matches.commands import MatchFigures, match_command, prepare, start_engines
from .requests import MatchesRequest, MatchRequest, RequestError

_BEFORE_COMMENT = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|(?<=\S)\#|[^"'\\\#])*""")
_NAME_LENGTH = 60  # characters of a match's line in the name of its PDN file


class QueuedFigures(MatchFigures):
    """Results of a match in a queue, with its line (``match``) and its PDN file."""

    match: str
    pdn: str


class QueueFigures(TypedDict):
    """Results of all matches of a queue, in the order of its lines."""

    matches: list[QueuedFigures]


def matches_command(request: MatchesRequest, quiet: bool) -> QueueFigures:
    """Plays the missing games of the matches in a file; see ``crownhead matches --help``.

    Raises:
        RequestError: a line is not a match, or appears twice; raised before any game.
        StorageError: the file cannot be read.
    """
    queue = dict(_read_queue(request.file, request.out))
    if not queue:
        raise RequestError(f"{request.file} has no match: write one a line, like champion alphabeta:8 --seconds 0.1")
    make_folder(request.out)
    console, done = Console(stderr=quiet), list[QueuedFigures]()
    for number, (line, match) in enumerate(queue.items(), 1):
        if not quiet:
            console.print(f"{number} of {len(queue)}: {line}", soft_wrap=True)
        figures = match_command(match, quiet)
        done.append({**figures, "match": line, "pdn": str(match.pdn)})
    if not quiet:
        console.print(_table(done))
    return {"matches": done}


def _read_queue(file: Path, folder: Path) -> Iterator[tuple[str, MatchRequest]]:
    """Yields each line with a match, without its comment, and the request that it makes."""
    seen, players = set(), set[PlayerSpec]()
    for number, text in enumerate(read_text(file).splitlines(), 1):
        try:
            words = words_of(text)
            if not words:
                continue
            line = shlex.join(words)
            if line in seen:
                raise RequestError("this match is in the file twice; give one of them another --seed")
            seen.add(line)
            match = _match_of(words, folder / _file_name(line))
            start_engines(set(match.players) - players)
            players.update(match.players)
            yield line, match
        except OtherGameError:
            raise  # the command is started again, for the other game
        except Exception as error:
            usage = getattr(error, "format_message", None)  # an error of the command line itself has it
            if usage is None and not isinstance(error, ValueError | OSError):
                raise
            raise RequestError(f"{file}, line {number}: {usage() if usage else error}") from error


def words_of(line: str) -> list[str]:
    """The words of a line as a shell sees them: ``#`` begins a comment only where a word begins.

    ``shlex`` alone would cut off the rest of a line behind ``runs/x#2``.
    """
    found = _BEFORE_COMMENT.match(line)
    assert found is not None  # it matches the empty text
    rest = line[found.end() :]
    return split_words(found[0] if rest.startswith("#") else line)


def _match_of(words: list[str], pdn: Path) -> MatchRequest:
    """The request that these arguments of ``crownhead match`` make, with its games in the file ``pdn``."""
    app = typer.Typer(add_completion=False)
    app.command()(request_command(MatchRequest, lambda request: request))
    request = typer.main.get_command(app)(words, "match", standalone_mode=False)
    if not isinstance(request, MatchRequest):  # --help
        raise RequestError("write the arguments of crownhead match, like champion alphabeta:8 --seconds 0.1")
    if request.pdn is not None or request.resume:
        raise RequestError("--pdn and --resume are not for a queue: its games are kept in --out")
    request = replace(request, pdn=pdn, resume=True)
    prepare(request)  # raises now what would end the queue later
    return request


def _file_name(line: str) -> str:
    """A file name that starts with the words of the line and ends with a hash that no other line has."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", line).strip("-")[:_NAME_LENGTH]
    return f"{readable}-{hashlib.sha256(line.encode()).hexdigest()[:8]}.pdn"


def _table(done: list[QueuedFigures]) -> Table:
    table = Table("match", "games", "won", "drawn", "lost", "score", "Elo", "SPRT", "late")
    for match in done:
        score, elo, error = match["score"], match["elo"], match["elo_error"]
        sprt = match.get("sprt")
        table.add_row(
            match["match"],
            *(str(match[key]) for key in ("games", "wins", "draws", "losses")),
            "" if score is None else f"{score:.1%}",
            "" if elo is None else f"{elo:+.0f} ± {error:.0f}",
            "" if sprt is None else f"{sprt['decision'] or 'open'} ({sprt['llr']:+.2f})",
            " ".join(str(kept["late"]) for kept in match.get("punctuality", [])),
        )
    return table
