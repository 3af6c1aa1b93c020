"""Whole games in PDN 3.0 (Wesselink et al., after the PDN 2.0 of Cash and the PGN of Edwards): reading and writing.

Reading is liberal, as PDN 3.0 recommends: a result, ``*`` or the next tags end a game, move numbers may be missing,
comments are ``{...}`` or ``;`` to the end of the line, lines that begin with ``%`` are skipped. A ``*`` behind a move
is a mark (NAG 7, the only move), not the end. Moves are checked against the rules.

Writing follows PDN 3.0, but closes the moves with the result: programs of the older standards need it, and PDN 3.0's
reading grammar accepts it.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .board import Board, Move
from .errors import DraughtsError, IllegalMoveError, PdnError
from .fen import START_FEN
from .files import bounded_lines
from .outcomes import FIRST_TO_MOVE
from .pdn_tokens import MAX_LINE, SHOWN, Token, error_at, split_games, tokenize
from .rules import played

GAME_TYPE: str = played.PDN_GAME_TYPE
_GAME_NUMBER = int(GAME_TYPE.partition(",")[0])
OLD_RESULTS = {"2-0": "1-0", "1-1": "1/2-1/2", "0-2": "0-1"}  # as in international draughts; PDN 3.0, "Result tag"
RESULTS = ("1-0", "0-1", "1/2-1/2", "0-0", "*")
MAX_NAG = 255
MAX_DEPTH = 100  # variations within variations
ONLY_MOVE = 7  # NAG that PDN 3.0 puts in the place of a ``*`` behind a move
_MARKS = {"!": 1, "?": 2, "!!": 3, "??": 4, "!?": 5, "?!": 6}
_MARK_OF_NAG = {nag: mark for mark, nag in _MARKS.items()}
_VARIANTS = {
    0: "chess",
    1: "Chinese chess",
    20: "international draughts",
    21: "English draughts",
    22: "Italian draughts",
    23: "American pool checkers",
    24: "Spanish draughts",
    25: "Russian draughts",
    26: "Brazilian draughts",
    27: "Canadian draughts",
    28: "Portuguese draughts",
    29: "Czech draughts",
    30: "Turkish draughts",
    31: "Thai draughts",
    40: "Frisian draughts",
    41: "Spantsiretti draughts",
    50: "Othello",
}
_FIRST_TAGS = ("Event", "Site", "Date", "Round", "Black", "White", "Result", "GameType", "SetUp", "FEN")
_WIDTH = 80
_ALGEBRAIC = re.compile(r"\b[a-h][1-8][-x:]?[a-h][1-8]")  # as moves are written in chess and Russian draughts
_CLOCK = re.compile(r"\[%(clk|emt)\s+(?:(?:([0-9]{1,4}):)?([0-9]{1,4}):)?([0-9]{1,6}(?:\.[0-9]{1,9})?)\s*\]")


@dataclass
class PdnNode:
    """A move of a game with what was said about it.

    Attributes:
        nags: numeric annotation glyphs (0-255); ``!``, ``?``, ``!!``, ``??``, ``!?``, ``?!`` are 1 to 6.
        comments_before: comments between the move's number and the move.
        comments: comments behind the move, embedded commands like ``[%clk 0:05:00]`` included.
        variations: lines that could have been played in the place of this move; none is empty.
    """

    move: Move
    nags: list[int] = field(default_factory=list)
    comments_before: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    variations: list[list["PdnNode"]] = field(default_factory=list)

    @property
    def clock(self) -> float | None:
        """Seconds on the player's clock after the move (``[%clk h:mm:ss]``), if noted."""
        return self._seconds("clk")

    @property
    def elapsed(self) -> float | None:
        """Seconds that the move took (``[%emt h:mm:ss]``), if noted."""
        return self._seconds("emt")

    def _seconds(self, command: str) -> float | None:
        for comment in self.comments:
            for name, hours, minutes, seconds in _CLOCK.findall(comment):
                if name == command:
                    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(seconds)
        return None


@dataclass
class PdnGame:
    """A game with its tags.

    Attributes:
        headers: the tags in their order. ``FEN`` is the position the game starts from (unless ``SetUp`` is ``0``).
        moves: the main line.
        comments: comments in front of the first move.
    """

    headers: dict[str, str] = field(default_factory=dict)
    moves: list[PdnNode] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    @classmethod
    def from_board(cls, board: Board, headers: dict[str, str] | None = None) -> "PdnGame":
        """The game played on a board. ``Result`` is the board's where ``headers`` does not give one (a resignation)."""
        tags = dict(headers or {})
        tags.setdefault("Result", board.result())
        tags["GameType"] = GAME_TYPE
        for name in ("SetUp", "FEN"):
            tags.pop(name, None)
        if board.start_fen != START_FEN:
            tags |= {"SetUp": "1", "FEN": board.start_fen}
        return cls(tags, [PdnNode(move) for move in board.move_stack])

    @property
    def result(self) -> str:
        """One of ``RESULTS``, of the side that begins games first, so that ``1-0`` means Black won in English draughts;
        ``0-0``: both lost, ``*``: unfinished or unknown."""
        result = _present(self.headers.get("Result", "*"))
        return result if result in RESULTS else "*"

    @property
    def start_fen(self) -> str:
        return START_FEN if self.headers.get("SetUp") == "0" else self.headers.get("FEN") or START_FEN

    def board(self) -> Board:
        """The board after the last move of the main line."""
        board = Board(self.start_fen)
        for node in self.moves:
            board.push(node.move)
        return board

    def boards(self) -> Iterator[Board]:
        """The start position, then the board after every move of the main line; each may be kept and changed."""
        board = Board(self.start_fen)
        yield board.copy()
        for node in self.moves:
            board.push(node.move)
            yield board.copy()


def _present(result: str) -> str:
    """A result as it is written today."""
    return OLD_RESULTS.get(result, result)


def other_game(game_type: str) -> str:
    """Why a ``GameType`` tag is not that of the game played here; "" if it is, or is empty."""
    number = re.match(r"\s*([0-9]{1,3})\s*(?:,|\Z)", game_type)
    if not game_type or (number is not None and int(number[1]) == _GAME_NUMBER):
        return ""
    if number is None:
        return f"GameType {game_type[:SHOWN]!r} does not begin with a number (like {_GAME_NUMBER})"
    variant = _VARIANTS.get(int(number[1]), "an unknown game")
    return f"GameType {number[1]} is {variant}, not {played.TITLE} ({_GAME_NUMBER})"


def _read_headers(tokens: list[Token]) -> tuple[dict[str, str], Board]:
    """The tags, results in their new form, and the board set up."""
    headers = {
        token.name: _present(token.text) if token.name == "Result" else token.text
        for token in tokens
        if token.kind == "tag"
    }
    where = {token.name: token for token in tokens if token.kind == "tag"}
    if other := other_game(headers.get("GameType", "")):
        raise error_at(where["GameType"], other)
    if headers.get("SetUp") == "1" and not headers.get("FEN"):
        raise error_at(where["SetUp"], "SetUp is 1 but there is no FEN tag")
    try:
        return headers, Board(PdnGame(headers).start_fen)
    except DraughtsError as error:
        raise error_at(where["FEN"], str(error)) from None


class _Line(NamedTuple):
    """A line that waits while a variation of its last move is read."""

    opened: Token
    nodes: list[PdnNode]
    board: Board


class _Reader:
    """Builds one game. Lines that wait lie on a stack, so no nesting can exhaust Python's own."""

    def __init__(self, tokens: list[Token]) -> None:
        headers, self.board = _read_headers(tokens)
        self.game = PdnGame(headers)
        self.nodes = self.game.moves
        self.waiting: list[_Line] = []
        self.before: list[str] = []  # comments for the move to come
        self.numbered = False
        self.tokens = tokens
        self.last = next(token for token in reversed(tokens) if token.kind != "comment")

    def read(self) -> PdnGame:
        read = {"comment": self._comment, "move": self._move, "open": self._open, "close": self._close}
        for token in self.tokens:
            if token.kind in read:
                read[token.kind](token)
            elif token.kind == "number":
                self.numbered = True
            elif token.kind == "bad":
                other = _ALGEBRAIC.search(token.text) is not None
                raise error_at(token, token.text + (self._doubt() if other else ""))
            elif token.kind in ("result", "end"):
                self._result(token)
            elif token.kind != "tag":
                self._nag(token)
        if self.waiting:
            raise error_at(self.waiting[-1].opened, "the variation that begins here is not closed with )")
        (self.nodes[-1] if self.nodes else self.game).comments.extend(self.before)
        return self.game

    def _move(self, token: Token) -> None:
        try:
            move = self.board.push_pdn(token.text)
        except IllegalMoveError as error:
            raise error_at(token, str(error) + self._doubt()) from None
        self.nodes.append(PdnNode(move, comments_before=self.before))
        self.before = []
        self.numbered = False

    def _doubt(self) -> str:
        """What a game that fails with its first move, and does not say what game it is, may be."""
        if self.game.moves or "GameType" in self.game.headers:
            return ""
        return "; without a GameType tag, this may be a game of another variant of draughts"

    def _comment(self, token: Token) -> None:
        if not token.text:
            return
        if self.nodes and not self.numbered:
            self.nodes[-1].comments.append(token.text)
        elif self.numbered or self.waiting:
            self.before.append(token.text)
        else:
            self.game.comments.append(token.text)

    def _open(self, token: Token) -> None:
        if not self.nodes:
            raise error_at(token, "a variation begins here, but there is no move that it could replace")
        if len(self.waiting) == MAX_DEPTH:
            raise error_at(token, f"variations lie more than {MAX_DEPTH} deep in each other")
        self._settle_comments()
        self.waiting.append(_Line(token, self.nodes, self.board))
        self.board = self.board.copy()
        self.board.pop()
        self.nodes[-1].variations.append([])
        self.nodes = self.nodes[-1].variations[-1]

    def _close(self, token: Token) -> None:
        if not self.waiting:
            raise error_at(token, "this ) closes no variation")
        variation = self.nodes
        if variation:
            self._settle_comments()
        _, self.nodes, self.board = self.waiting.pop()
        if not variation:
            self.nodes[-1].variations.pop()
            self._settle_comments()

    def _settle_comments(self) -> None:
        """Gives comments for a move that did not come to the last one."""
        self.nodes[-1].comments.extend(self.before)
        self.before = []
        self.numbered = False

    def _result(self, token: Token) -> None:
        if token.kind == "end" and token is not self.last:
            self._nag(token)
        elif not self.waiting and token.text != "*":
            self.game.headers["Result"] = _present(token.text)

    def _nag(self, token: Token) -> None:
        if not self.nodes:
            raise error_at(token, f"there is no move in front of {token.text!r}")
        if token.kind == "nag":
            nag = int(token.text[1:])
            if nag > MAX_NAG:
                raise error_at(token, f"{token.text} is no annotation ($0 to ${MAX_NAG})")
        else:
            nag = ONLY_MOVE if token.text == "*" else _MARKS[token.text.strip("()")[:2]]
        self.nodes[-1].nags.append(nag)


def read_games(
    source: str | Iterable[str], on_error: Callable[[PdnError], None] | None = None, first_line: int = 1
) -> Iterator[PdnGame]:
    """Reads games one by one; of a file, no more than one game is held, of bounded length (see ``pdn_tokens``).

    Args:
        source: the text, or its lines (an open text file).
        on_error: called for each game that cannot be read, which is then left out. Without it the first such game
            raises.
        first_line: number of the source's first line, for errors.

    Raises:
        PdnError: what is wrong, with line and column. Illegal moves, set-up positions that are none and games of
            other variants are errors, too.
    """
    lines = io.StringIO(source, newline=None) if isinstance(source, str) else source
    if isinstance(lines, io.TextIOWrapper | io.StringIO):
        lines = bounded_lines(lines, MAX_LINE)
    for tokens in split_games(tokenize(lines, first_line)):
        if all(token.kind in ("comment", "result", "end", "star") for token in tokens):
            continue  # a result given twice, or a closing remark
        try:
            game = _Reader(tokens).read()
        except PdnError as error:
            if on_error is None:
                raise
            on_error(error)
            continue
        yield game


def read_game(source: str | Iterable[str], first_line: int = 1) -> PdnGame:
    """Reads the first game; raises ``PdnError`` as ``read_games`` does, and where there is none.

    It reads on into the next game, so a second call on the same file would miss a part: ``read_games`` reads several.
    """
    for game in read_games(source, first_line=first_line):
        return game
    raise PdnError(f"line {first_line}, column 1: there is no game")


def _format_tags(game: PdnGame) -> list[str]:
    tags = game.headers | {"Result": _present(game.headers.get("Result", "*")), "GameType": GAME_TYPE}
    if tags.get("FEN"):
        tags.setdefault("SetUp", "1")
    names = [name for name in _FIRST_TAGS if name in tags] + [name for name in tags if name not in _FIRST_TAGS]
    lines = []
    for name in names:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise PdnError(f"tag name {name[:SHOWN]!r}: only letters, digits and _ are allowed, a letter first")
        if "\n" in tags[name] or "\r" in tags[name]:
            raise PdnError(f"tag {name}: the value must not hold a line break")
        value = tags[name].replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{name} "{value}"]')
    return lines


def _format_comments(comments: list[str]) -> Iterator[str]:
    """The words of comments; one that ends with a line break must end its line.

    What begins with ``%`` stays with the word before it: programs skip a line that begins so, with the closing brace.
    """
    for comment in comments:
        words = comment.split()
        if "}" not in comment:
            yield from re.split(" (?!%)", "{" + " ".join(words) + "}") if words else ()
        else:
            yield f"; {' '.join(words)}\n"


def _format_line(nodes: list[PdnNode], board: Board, number: int, depth: int) -> Iterator[str]:
    """The words of a line that is played on ``board`` (which is changed); ``number`` is that of its first move."""
    if depth > MAX_DEPTH:
        raise PdnError(f"variations lie more than {MAX_DEPTH} deep in each other")
    interrupted = True
    for node in nodes:
        begins = board.turn is FIRST_TO_MOVE
        if begins or interrupted or node.comments_before:
            yield f"{number}." if begins else f"{number}..."
        yield from _format_comments(node.comments_before)
        mark = _MARK_OF_NAG.get(node.nags[0], "") if node.nags else ""
        yield board.pdn(node.move) + mark
        if not all(0 <= nag <= MAX_NAG for nag in node.nags):
            raise PdnError(f"annotations of {board.pdn(node.move)}: {node.nags} are not all in 0 to {MAX_NAG}")
        yield from (f"${nag}" for nag in node.nags[bool(mark) :])
        yield from _format_comments(node.comments)
        for variation in filter(None, node.variations):
            words = list(_format_line(variation, board.copy(), number, depth + 1))
            words[0] = "(" + words[0]
            yield from words[:-1]
            yield from (words[-1], ")") if words[-1].endswith("\n") else (words[-1] + ")",)
        interrupted = bool(node.comments or node.variations)
        board.push(node.move)
        number += not begins


def _wrap(words: Iterable[str]) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word.rstrip("\n")) > _WIDTH:
            yield line
            line = ""
        line += f" {word}" if line else word
        if word.endswith("\n"):
            yield line.rstrip("\n")
            line = ""
    if line:
        yield line


def format_game(game: PdnGame) -> str:
    """The game as PDN, lines of at most 80 characters where words allow; ends with one line break.

    A file holds games with an empty line between them. Comments are written in braces, or behind ``;`` where they hold
    a closing brace themselves; white space within them becomes single spaces.

    Raises:
        PdnError: a tag that cannot be written, or variations too deep.
        DraughtsError: the set-up position or a move is not legal.
    """
    words = [*_format_comments(game.comments), *_format_line(game.moves, Board(game.start_fen), 1, 0), game.result]
    return "\n".join([*_format_tags(game), "", *_wrap(words), ""])
