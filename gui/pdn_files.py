"""PDN files for the window: reading, listing many games without replaying them, clocks."""

import re
from collections.abc import Iterable
from io import StringIO
from itertools import chain, islice, repeat

from engine.errors import PdnError
from engine.fen import Color
from engine.pdn import OLD_RESULTS, PdnGame, PdnNode, read_game
from engine.pdn_tokens import Token, split_games, tokenize

_COMMAND = re.compile(r"\[%[^\]]*\]")
_CLOCK = re.compile(r"\[%clk [^\]]*\]\s*")


def one_line(text: str) -> str:
    """The text as one line that can be written."""
    return " ".join(clean(text).split())


def clean(text: str) -> str:
    """The text without a byte order mark, and with question marks for what no encoding can write."""
    return text.removeprefix("\ufeff").encode("utf-8", "replace").decode("utf-8")


def fen_of(text: str) -> str:
    """A FEN as people write or paste it, with spaces and small letters, as the rules' code reads it."""
    return "".join(text.split()).upper()


def note_clock(node: PdnNode, seconds: float | None) -> None:
    """Notes the seconds left to a player as ``[%clk 0:04:58.3]``, in place of an older note; None notes nothing."""
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


def title_of(game: PdnGame) -> str:
    """``A - B, 1-0, 43 moves``: a game in a list."""
    return title_from(game.headers, game.result, len(game.moves))


class PdnGames:
    """The games of a PDN text: titles at once, each game played through only when it is asked for.

    A text of 4 MB takes about a second: the window makes this object in a thread.

    Attributes:
        titles: see ``title_of``.
        plies: of the main lines, as they are written.
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
        """Game ``number``, from 1; raises ``PdnError`` of one line if something is wrong with it or there is none."""
        if not 1 <= number <= len(self.titles):
            count = len(self.titles)
            raise PdnError(f"there is no game {number}: the text holds {count or 'no'} game{'' if count == 1 else 's'}")
        line, column = self._starts[number - 1]
        return game_at(islice(self._lines, line - 1, None), line, column)


def title_from(headers: dict[str, str], result: str, plies: int) -> str:
    """``title_of`` by tags, result and length."""
    who = " - ".join(one_line(headers.get(str(color), "")) or str(color) for color in Color)
    if "Black" not in headers and "White" not in headers:
        who = one_line(headers.get("Event", "")) or who
    moves = (plies + 1) // 2
    return f"{who}, {result}, {moves} move{'' if moves == 1 else 's'}"


def facts_of(tokens: list[Token]) -> tuple[dict[str, str], list[str]]:
    """Tags and main line of a game, ``Result`` in its new form (``*`` where there is none); nothing is played."""
    headers, moves, depth = {"Result": "*"}, [], 0
    for token in tokens:
        if token.kind == "tag":
            headers[token.name] = token.text
        elif token.kind == "result" and depth == 0:
            headers["Result"] = token.text
        elif token.kind == "move" and depth == 0:
            moves.append(token.text)
        depth += (token.kind == "open") - (token.kind == "close")
    headers["Result"] = OLD_RESULTS.get(headers["Result"], headers["Result"])
    return headers, moves


def is_game(tokens: list[Token]) -> bool:
    """Whether there is more than remarks and results given twice."""
    return any(token.kind not in ("comment", "result", "end", "star") for token in tokens)


def game_at(lines: Iterable[str], line: int, column: int) -> PdnGame:
    """Reads the game that begins in the first of ``lines``, which is line ``line`` of its file, at a column from 1.

    Raises:
        PdnError: something is wrong with it; the line named is that of the file.
    """
    rest = iter(lines)
    first = " " * (column - 1) + next(rest, "")[column - 1 :]
    # Empty lines in front keep the line numbers of errors.
    return read_game(chain(repeat("\n", line - 1), [first], rest))
