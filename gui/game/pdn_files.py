"""PDN files for the window: reading, listing many games without playing through them, clocks."""

import errno
import re
from collections.abc import Iterable
from io import StringIO
from itertools import chain, islice
from os.path import exists, isdir
from pathlib import Path

from engine.errors import PdnError
from engine.fen import Color
from engine.files import StorageError
from engine.pdn import PdnGame, PdnNode, read_game
from engine.pdn_tokens import Token, split_games, tokenize

ENDINGS = (".pdn", ".txt")  # of the files that are listed as games
ANNOTATED = ".annotated.pdn"  # ending of the annotated copy of a file
_SHOWN = 60  # characters of a path that a message repeats
_COMMAND = re.compile(r"\[%[^\]]*\]")
_CLOCK = re.compile(r"\[%clk [^\]]*\]\s*")


def one_line(text: str) -> str:
    """The text as one line, see ``clean``."""
    return " ".join(clean(text).split())


def clean(text: str) -> str:
    """The text without a byte order mark and null characters, which no font can draw; characters that UTF-8 cannot
    encode become question marks."""
    return text.removeprefix("\ufeff").replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def typed_path(text: str, folder: Path) -> Path:
    """The absolute path that a person has typed; a relative one begins in ``folder``.

    Raises:
        StorageError: it names nothing, or it cannot be looked for: it is too long, forbidden, or of an unknown user.
    """
    words = text.strip()
    try:
        path = (folder / Path(words).expanduser()).absolute()
        path.exists()
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StorageError(getattr(error, "errno", None), f"{words[:_SHOWN]}: {why}") from error
    if not words:
        raise StorageError(None, "type the name of a file or folder")
    return path


def typed_file(text: str, folder: Path) -> Path:
    """``typed_path`` of a file of games to write; a new one gets the ending .pdn if it has none of ``ENDINGS``.

    Raises:
        StorageError: as ``typed_path`` does, and if a folder is there.
    """
    path = typed_path(text, folder)
    if isdir(path):
        raise StorageError(errno.EISDIR, f"{path} is a folder: add the name of a file")
    return path if path.suffix.lower() in ENDINGS or exists(path) else path.with_name(f"{path.name}{ENDINGS[0]}")


def fen_of(text: str) -> str:
    """Normalises a FEN that was typed or pasted: without white space, in capital letters."""
    return "".join(text.split()).upper()


def note_clock(node: PdnNode, seconds: float | None) -> None:
    """Writes the seconds left as the comment ``[%clk 0:04:58.3]``, in place of an older one; does nothing for None."""
    if seconds is None:
        return
    tenths = max(0, round(seconds * 10))
    clock = f"[%clk {tenths // 36000}:{tenths // 600 % 60:02}:{tenths // 10 % 60:02}.{tenths % 10}]"
    others = [_CLOCK.sub("", comment).strip() for comment in node.comments]
    node.comments = [clock, *filter(None, others)]


def commands_of(comment: str) -> str:
    """The commands in a comment, like ``[%clk 0:04:58.3]``."""
    return " ".join(_COMMAND.findall(comment))


def without_commands(comment: str) -> str:
    return one_line(_COMMAND.sub(" ", comment))


def holds_several(text: str) -> bool:
    """Whether a text has more than one game."""
    games = filter(is_game, split_games(tokenize(StringIO(clean(text), newline=None))))
    return len(list(islice(games, 2))) > 1


def title_of(game: PdnGame) -> str:
    """Title of a game in a list: ``A - B, 1-0, 43 moves``."""
    return title_from(game.headers, game.result, len(game.moves))


class PdnGames:
    """The games of a PDN text. Titles are read at once; a game is only played through in ``game``.

    A text of 4 MB takes about a second, so the window makes this object in a thread.

    Attributes:
        titles: titles of the games, see ``title_of``.
        plies: numbers of plies of the main lines as written, without a check of the moves.
    """

    def __init__(self, text: str) -> None:
        self._lines = StringIO(clean(text), newline=None).readlines()
        self.titles: list[str] = []
        self.plies: list[int] = []
        self._starts: list[tuple[int, int]] = []  # line and column, from 1, of each game's first token
        for tokens in split_games(tokenize(self._lines)):
            if is_game(tokens):
                headers, moves = facts_of(tokens)
                self.plies.append(len(moves))
                self.titles.append(title_from(headers, headers["Result"], len(moves)))
                self._starts.append((tokens[0].line, tokens[0].column))

    def game(self, number: int) -> PdnGame:
        """Reads game ``number`` (from 1); raises ``PdnError`` of one line if it is not valid or does not exist."""
        if not 1 <= number <= len(self.titles):
            count = len(self.titles)
            raise PdnError(f"there is no game {number}: the text holds {count or 'no'} game{'' if count == 1 else 's'}")
        line, column = self._starts[number - 1]
        # An iterator that skipped the lines in front would make reading all games take quadratic time.
        return game_at((self._lines[index] for index in range(line - 1, len(self._lines))), line, column)


def title_from(headers: dict[str, str], result: str, plies: int) -> str:
    """``title_of`` from tags, result and number of plies."""
    who = " - ".join(one_line(headers.get(str(color), "")) or str(color) for color in Color)
    if "Black" not in headers and "White" not in headers:
        who = one_line(headers.get("Event", "")) or who
    moves = (plies + 1) // 2
    return f"{who}, {result}, {moves} move{'' if moves == 1 else 's'}"


def facts_of(tokens: list[Token]) -> tuple[dict[str, str], list[str]]:
    """Tags and main line of a game, moves unchecked. ``Result`` is in its new form, ``*`` if it is none."""
    headers, moves, depth = {"Result": "*"}, [], 0
    for token in tokens:
        if token.kind == "tag":
            headers[token.name] = token.text
        elif token.kind == "result" and depth == 0:
            headers["Result"] = token.text
        elif token.kind == "move" and depth == 0:
            moves.append(token.text)
        depth += (token.kind == "open") - (token.kind == "close")
    return headers | {"Result": PdnGame(headers).result}, moves


def is_game(tokens: list[Token]) -> bool:
    """Whether the tokens contain more than comments and results."""
    return any(token.kind not in ("comment", "result", "end", "star") for token in tokens)


def game_at(lines: Iterable[str], line: int, column: int) -> PdnGame:
    """Reads the game that begins in the first of ``lines``.

    Args:
        lines: the lines from the game's first one on.
        line, column: position of the game's first token in the file, both from 1.

    Raises:
        PdnError: the game is not valid; the message has the line number of the file.
    """
    rest = iter(lines)
    first = " " * (column - 1) + next(rest, "")[column - 1 :]
    return read_game(chain([first], rest), line)
