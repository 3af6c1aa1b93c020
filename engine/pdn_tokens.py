"""PDN as tokens, and the tokens of a file divided into games; knows of the rules only how squares are written."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .errors import PdnError
from .rules import played

SHOWN = 40  # characters of a faulty text that an error repeats
MAX_LINE = 1 << 20  # characters
MAX_COMMENT = 1 << 20  # characters, over all of its lines
MAX_TOKENS = 1 << 17  # most in one game: tags, moves, their numbers, marks, comments, brackets


class Token(NamedTuple):
    kind: str  # the name of its group in _TOKEN
    text: str  # a tag's value, a comment's words, a bad token's error
    line: int
    column: int
    name: str = ""  # a tag's name; [ of a tag that cannot be read


_RESULT = r"(?:1/2-1/2|1-0|0-1|0-0|2-0|0-2|1-1)(?![0-9x:/-])"
_SQUARE = played.PDN_SQUARE
# A result may stick to the move before it (22-171-0), and 1-10 is a move, not the draw 1-1. What begins like a tag but
# is none is bad to the end of its line: every character is looked at a bounded number of times. A backslash before the
# quote that closes a tag stands for itself where the tag would not end otherwise ("C:\games\").
_TOKEN = re.compile(
    r'(?P<tag>\[\s*(?P<name>[A-Za-z][A-Za-z0-9_]*)\s*"(?P<value>(?:[^"\\]|\\.|\\(?="\s*\])|"(?!\s*\]))*)"\s*\])'
    r"|\{(?P<comment>[^}]*)\}"
    r"|(?P<opened>\{[^}]*\Z)"
    r"|;(?P<rest>.*)"
    rf"|(?P<result>{_RESULT})"
    rf"|(?P<move>{_SQUARE}(?: ?[-xX:] ?{_SQUARE}){{1,12}}(?:(?={_RESULT})|(?![0-9xX:/-])))"
    r"|(?P<number>[0-9]{1,6}(?![0-9x:/-])\s*\.*|\.+)"
    r"|(?P<nag>\$[0-9]{1,3}(?![0-9]))"
    r"|(?P<mark>[!?]+|\([!?]+\))"
    r"|(?P<star>(?<=[0-9!?])\*)"
    r"|(?P<end>\*)"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
    r"|(?P<bad>\[.*|[^\s{}()\[\];]+|\S)"
)


def error_at(token: Token, message: str) -> PdnError:
    return PdnError(f"line {token.line}, column {token.column}: {message}")


def _words(text: str) -> str:
    return " ".join(text.split())


def tokenize(lines: Iterable[str], first_line: int = 1) -> Iterator[Token]:
    """The tokens of lines of PDN, of which the first has the number ``first_line``."""
    opened: Token | None = None  # a comment that goes on over the end of its line
    parts: list[str] = []
    room = 0  # characters that the comment may still have
    for number, line in enumerate(lines, first_line):
        text = line.removeprefix("\ufeff") if opened is None else line  # also where files were put together
        position = 0
        if len(text) > MAX_LINE:
            yield Token("bad", f"the line has more than {MAX_LINE:,} characters", number, 1)
            continue
        if opened is not None:
            end = text.find("}")
            part = text if end < 0 else text[:end]
            room -= len(part)
            if room >= 0:
                parts.append(part)
            if end < 0:
                continue
            if room < 0:
                reason = f"the comment that begins here has more than {MAX_COMMENT:,} characters"
                yield opened._replace(kind="bad", text=reason)
            else:
                yield opened._replace(text=_words(" ".join(parts)))
            opened, position = None, end + 1
        elif text.startswith("%"):
            continue
        for match in _TOKEN.finditer(text, position):
            kind = match.lastgroup or ""
            token = Token(kind, match[kind], number, match.start() + 1)
            if kind == "tag":
                yield token._replace(name=match["name"], text=re.sub(r'\\(["\\])', r"\1", match["value"]))
            elif kind == "opened":
                opened, parts, room = token._replace(kind="comment"), [token.text[1:]], MAX_COMMENT - len(token.text)
            elif kind in ("comment", "rest"):
                yield token._replace(kind="comment", text=_words(token.text))
            elif kind == "bad":
                tag = token.text[0] == "["
                like = ' (a tag is like [Event "..."])' if tag else " (a move is like 11-15 or 15x22)"
                text = f"cannot read {token.text.strip()[:SHOWN]!r}{like}"
                yield token._replace(text=text, name="[" if tag else "")
            else:
                yield token._replace(text=token.text.replace(" ", "")) if kind == "move" else token
    if opened is not None:
        yield opened._replace(kind="bad", text="the comment that begins here is not closed with }")


def _starts_game(token: Token) -> bool:
    """Whether a token behind a ``*`` shows that the ``*`` ended a game."""
    if token.kind == "number" and token.text[0] != ".":
        return int(token.text.rstrip(".").rstrip()) == 1 and token.text.count(".") < 2
    return bool(token.name)


def split_games(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The tokens game by game. A game ends with its result, or where tags follow moves or a tag comes a second time.

    In the place of what is too long for a game stands one bad token.
    """
    game: list[Token] = []
    names: set[str] = set()
    in_moves = False
    depth = 0
    end = -1  # where in ``game`` a result or ``*`` stands that may end it
    for token in tokens:
        cut = -1
        if end >= 0 and token.kind != "comment":
            if game[end].kind == "result" or _starts_game(token):
                on_line = [later.line == game[end].line for later in game[end + 1 :]]
                cut = end + 1 + (on_line.index(False) if False in on_line else len(on_line))
            end = -1
        elif token.kind == "tag" and (in_moves or token.name in names):
            cut = len(game)
        if cut >= 0:
            yield game[:cut]
            game, names, in_moves, depth = game[cut:], set(), False, 0
        if len(game) == MAX_TOKENS:
            reason = f"the game that begins here has more than {MAX_TOKENS:,} moves, numbers, comments and marks"
            game, end = [game[0]._replace(kind="bad", text=reason)], -1
        game.append(token)
        if token.kind == "tag":
            names.add(token.name)
        elif token.kind != "comment" and not token.name:  # a bad tag stands in a header, too
            in_moves = True
        depth += (token.kind == "open") - (token.kind == "close")
        if token.kind in ("result", "end") and depth <= 0:
            end = len(game) - 1
    yield game
