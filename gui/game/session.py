"""A game in the window: its moves with a cursor, its ending, and conversion to and from PDN."""

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import NamedTuple

from engine.board import Board, Move
from engine.errors import DraughtsError, FenError
from engine.fen import START_FEN, Color
from engine.files import StorageError, atomic_write, read_text
from engine.outcomes import RESULTS
from engine.pdn import PdnGame, PdnNode, format_game, read_game

from .game_lines import GameLines, copied, move_number
from .move_reasons import why_no_game
from .pdn_files import clean, commands_of, fen_of, one_line, without_commands

GLYPHS = ("!", "?", "!!", "??", "!?", "?!")  # index + 1 is PDN's number of a glyph
_OWN_TAGS = ("Black", "White", "Result", "Termination", "GameType", "SetUp", "FEN")
_WINNERS = {result: color for color, result in RESULTS.items()}
_FEN_LIKE = re.compile(r"\s*[BW]\s*:\s*[BW]", re.IGNORECASE)


def glyph_of(node: PdnNode) -> int | None:
    """PDN's number of the first of ``GLYPHS`` that a move has; None if it has none."""
    return next((nag for nag in node.nags if 1 <= nag <= len(GLYPHS)), None)


def _comments_of(node: PdnNode) -> list[str]:
    """What is said of a move, before it and behind it."""
    return node.comments_before + node.comments


class SessionError(DraughtsError):
    """An action is not possible in the current state of the game."""


class Ending(NamedTuple):
    """The end of a game: winner (None for a draw, and for ``0-0``, a loss of both), reason like ``White resigned`` (or
    ""), and PDN result, Black first."""

    winner: Color | None
    reason: str
    result: str

    @property
    def text(self) -> str:
        """Text of one line, such as ``Black wins: White resigned``."""
        who = f"{self.winner} wins" if self.winner else "Both lose" if self.result == "0-0" else "Draw"
        return f"{who}: {self.reason}" if self.reason else who

    @classmethod
    def lost(cls, color: Color, how: str) -> "Ending":
        """The ending in which ``color`` has lost; ``how`` continues the reason after its name."""
        return cls(color.other, f"{color} {how}", RESULTS[color.other])

    @classmethod
    def by_rules(cls, board: Board) -> "Ending | None":
        """How the rules end the game at a position; None if it goes on."""
        outcome = board.outcome()
        if outcome is None:
            return None
        if outcome.winner is None:
            return cls(None, outcome.termination.value, outcome.result)
        loser = outcome.winner.other
        blocked = any(color is loser for color, _ in board.piece_map().values())
        return cls.lost(loser, f"has {outcome.termination.value if blocked else 'no pieces left'}")


AGREED = Ending(None, "agreed", RESULTS[None])


def _check_start(board: Board) -> None:
    if reasons := why_no_game(board):
        raise FenError(f"no game can begin at this position: {' and '.join(reasons)}")


def _played(fen: str, moves: Sequence[Move]) -> tuple[Board, list[str]]:
    """The board after moves from a position, and the moves in PDN; raises ``IllegalMoveError``."""
    board, texts = Board(fen), []
    for move in moves:
        texts.append(board.pdn(move))
        board.push(move)
    return board, texts


class GameSession:
    """The current game, with a cursor at any of its positions.

    Attributes:
        version: number that grows with every change.
        game: number that grows with every new or loaded game.
        board: position at the cursor.
        nodes: moves of the line shown, with comments, clocks and variations.
        texts: the same moves as PDN.
        comments: comments before the first move.
        headers: PDN tags, except those that follow from the other attributes.
        ending: ending at the last position of the line shown; None while it goes on. That of a variation is not saved
            in PDN.
        draw_offer: side that has offered a draw, until it is answered or declined by a move.
    """

    def __init__(self, fen: str = START_FEN, names: Mapping[Color, str] | None = None) -> None:
        self.version = 0
        self.game = 0
        self.comments: list[str] = []
        self._ending: Ending | None = None  # ending of the main line
        self._ending_here: Ending | None = None  # ending of the variation shown
        self.draw_offer: Color | None = None
        self.names = {Color.BLACK: "Black", Color.WHITE: "White"}
        self.new_game(fen, names)

    @property
    def start_fen(self) -> str:
        return self.board.start_fen

    @property
    def on_main_line(self) -> bool:
        """Whether the line shown is the main line, which was played, and not a variation."""
        return self._lines.on_main_line

    @property
    def ending(self) -> Ending | None:
        return self._ending if self.on_main_line else self._ending_here

    @ending.setter
    def ending(self, ending: Ending | None) -> None:
        if self.on_main_line:
            self._ending = ending
        else:
            self._ending_here = ending

    @property
    def ply(self) -> int:
        """Position of the cursor: number of the line's moves made on ``board``."""
        return self.board.ply

    @property
    def last_move(self) -> Move | None:
        return self.board.peek() if self.ply else None

    @property
    def at_end(self) -> bool:
        """Whether the cursor is after the last move of the line shown."""
        return self.ply == len(self.nodes)

    @property
    def is_over(self) -> bool:
        """Whether the cursor is at the end of a finished line."""
        return self.at_end and self.ending is not None

    @property
    def finished(self) -> bool:
        """Whether the game itself, the main line, has ended, whatever line and position are shown."""
        return self._ending is not None

    @property
    def played(self) -> list[PdnNode]:
        """The moves of the game itself, the main line, whatever line and position are shown."""
        return self._lines.main

    @property
    def first_color(self) -> Color:
        """The side that moves first in the line."""
        return Color(self.start_fen[0])

    def turn_at(self, ply: int) -> Color:
        return self.first_color if ply % 2 == 0 else self.first_color.other

    def number_of(self, index: int) -> str:
        """The number before move ``index`` (from 0) of the line: ``3.`` for Black's move, ``3...`` for White's."""
        return move_number(index + (self.first_color is Color.WHITE))

    def new_game(
        self, fen: str = START_FEN, names: Mapping[Color, str] | None = None, opening: Sequence[str] = ()
    ) -> None:
        """Starts another game after the PDN moves of ``opening``; without ``names`` the players' names remain.

        Raises:
            FenError, IllegalMoveError: the position is not valid, or a move of the opening is illegal; the current game
                remains.
        """
        board = Board(fen)
        for text in opening:
            board.push_pdn(text)
        board, texts = _played(fen, board.move_stack)
        now = datetime.datetime.now()
        date, time = now.strftime("%Y.%m.%d"), now.strftime("%H:%M:%S")
        headers = {"Event": "?", "Site": "?", "Date": date, "Round": "?", "Time": time}
        self._take(board, [PdnNode(move) for move in board.move_stack], texts, headers)
        for color, name in (names or {}).items():
            self.rename(color, name)
        self._end_by_rules()

    def push(self, move: Move) -> None:
        """Makes a move at the cursor. Different moves after the cursor are kept: in a running game they become a
        variation of the new move; in a finished game the new move begins a variation of them.

        Raises:
            SessionError, IllegalMoveError: the game is over, or the move is not legal.
        """
        if self.at_end and self.ending is not None:
            raise SessionError(f"the game is over: {self.ending.text}")
        if (ending := Ending.by_rules(self.board)) is not None:
            raise SessionError(f"the game is over here: {ending.text}")
        mover, ply, at_end = self.board.turn, self.ply, self.at_end
        after = self.board.copy()
        after.push(move)
        self._play_on()
        self._lines.play(ply, after.peek(), self._ending is not None)
        if not at_end:
            self.draw_offer = None
        self._look_at_line(ply + 1)
        if self.draw_offer is mover.other:
            self.draw_offer = None

    def may_keep(self, moves: Sequence[Move]) -> bool:
        """Whether ``keep_line`` takes a line: not if it continues after the end of a finished game."""
        main = [node.move for node in self._lines.main]
        return not (self.finished and len(moves) > len(main) and list(moves[: len(main)]) == main)

    def keep_line(self, moves: Sequence[Move]) -> None:
        """Shows a line of play from the start of the game, with the cursor at its end. Moves that were not played
        become a variation; the main line remains.

        Raises:
            SessionError: the line continues after the end of a finished game.
            IllegalMoveError: a move is illegal; the game is unchanged.
        """
        board = Board(self.start_fen)
        for move in moves:
            board.push(move)
        if not self.may_keep(moves):
            raise SessionError("the game is over there: a variation of it begins earlier")
        for ply, move in enumerate(board.move_stack):
            nodes = self._lines.nodes()
            if ply >= len(nodes) or nodes[ply].move != move:
                self._lines.play(ply, move, keep=True)
        self._look_at_line(len(moves))

    def turn_to_variation(self) -> bool:
        """Shows the next alternative to the last move, with the cursor after it; returns False if there is none."""
        if self.ply == 0 or not self._lines.turn_to_next(self.ply - 1):
            return False
        self._look_at_line(self.ply)
        return True

    def others(self) -> tuple[str, ...]:
        """PDN of the alternatives to the last move."""
        if self.ply == 0:
            return ()
        before = self.board.copy()
        before.pop()
        return tuple(before.pdn(move) for move in self._lines.others(self.ply - 1))

    def remove_variation(self) -> None:
        """Removes the variation shown; raises ``SessionError`` on the main line."""
        if self.on_main_line:
            raise SessionError("this is the game itself: only variations can be removed")
        self._lines.remove()
        self._look_at_line(min(self.ply, len(self._lines.nodes())))

    def annotate(self, glyph: int | None, comment: str | None) -> None:
        """Sets the glyph (PDN's 1 to 6, or None) and the comment of the last move; its clock remains. With None, the
        comments remain, too.

        Raises:
            SessionError: there is no last move.
        """
        if self.ply == 0:
            raise SessionError("there is no move to comment on: go to one first")
        node = self.nodes[self.ply - 1]
        node.nags = [nag for nag in node.nags if not 1 <= nag <= len(GLYPHS)] + ([] if glyph is None else [glyph])
        if comment is not None:
            commands = [text for text in map(commands_of, _comments_of(node)) if text]
            node.comments_before, node.comments = [], commands + [text for text in [one_line(comment)] if text]
        self.version += 1

    def annotation(self) -> tuple[int | None, str]:
        """Glyph and comment of the last move, without commands such as clocks; at the start what is said before the
        first move."""
        glyph, comments = None, self.comments
        if self.ply > 0:
            node = self.nodes[self.ply - 1]
            glyph, comments = glyph_of(node), _comments_of(node)
        return glyph, " ".join(filter(None, map(without_commands, comments)))

    def _look_at_line(self, ply: int) -> None:
        """Updates the state to the line shown, with the cursor after its first ``ply`` moves."""
        self.nodes = self._lines.nodes()
        self.board, self.texts = _played(self.start_fen, [node.move for node in self.nodes])
        self._ending_here = None
        self._end_by_rules()
        while self.board.ply > ply:
            self.board.pop()
        self.version += 1

    def go_to(self, ply: int) -> None:
        """Puts the cursor after the first ``ply`` moves, limited to the line."""
        ply = min(max(ply, 0), len(self.nodes))
        if ply == self.ply:
            return
        while self.ply > ply:
            self.board.pop()
        while self.ply < ply:
            self.board.push(self.nodes[self.ply].move)
        self.version += 1

    def rename(self, color: Color, name: str) -> None:
        """Sets a player's name, as one line."""
        name = one_line(name) or str(color)
        if name != self.names[color]:
            self.names[color] = name
            self.version += 1

    def resign(self, color: Color) -> None:
        """``color`` resigns; raises ``SessionError`` if the game is over or the cursor is not at its end."""
        self._end(Ending.lost(color, "resigned"))

    def flag(self, color: Color) -> None:
        """``color`` loses on time; raises ``SessionError`` as ``resign`` does."""
        self._end(Ending.lost(color, "ran out of time"))

    def offer_draw(self, color: Color) -> None:
        """Offers a draw, or accepts the other side's offer; raises ``SessionError`` as ``resign`` does."""
        self._check_going_on()
        self._play_on()
        if self.draw_offer is color.other:
            self.answer_draw(True)
        elif self.draw_offer is None:
            self.draw_offer = color
            self.version += 1

    def answer_draw(self, accept: bool) -> None:
        """Answers a draw offer; raises ``SessionError`` if there is none."""
        if self.draw_offer is None:
            raise SessionError("no draw has been offered")
        if accept:
            self._end(AGREED)
        else:
            self.draw_offer = None
            self.version += 1

    def fen(self) -> str:
        return self.board.fen()

    def to_game(self) -> PdnGame:
        """A copy of the game with its variations; later moves do not change it."""
        tags = self.headers | {str(color): name for color, name in self.names.items()}
        tags["Result"] = self._ending.result if self._ending else "*"
        if self._ending and self._ending.reason:
            tags["Termination"] = self._ending.reason
        if self.start_fen != START_FEN:
            tags |= {"SetUp": "1", "FEN": self.start_fen}
        return PdnGame(tags, copied(self._lines.main), self.comments.copy())

    def boards(self) -> Iterator[Board]:
        """The start position, then the board after every move of the line shown; each board is a copy."""
        return PdnGame({"SetUp": "1", "FEN": self.start_fen}, self.nodes).boards()

    def pdn(self) -> str:
        return format_game(self.to_game())

    def load_game(self, game: PdnGame) -> None:
        """Loads a game, with the cursor at its end.

        Raises:
            DraughtsError: a move is illegal, or no game can begin at the start position.
        """
        _check_start(Board(game.start_fen))
        board, texts = _played(game.start_fen, [node.move for node in game.moves])
        headers = {name: one_line(text) for name, text in game.headers.items() if name not in _OWN_TAGS}
        if game.result == "*" and "Termination" in game.headers:  # such as "adjourned"; no ending takes it up
            headers["Termination"] = one_line(game.headers["Termination"])
        self._take(board, copied(game.moves), texts, headers)
        self.comments = game.comments.copy()
        self.names = {color: one_line(game.headers.get(str(color), "")) or str(color) for color in Color}
        outcome = board.outcome()
        by_rules = outcome is not None and (outcome.winner is not None or game.result in ("*", outcome.result))
        if game.result != "*" and not by_rules:
            reason = one_line(game.headers.get("Termination", ""))
            self.ending = Ending(_WINNERS.get(game.result), reason, game.result)
        self._end_by_rules()

    def load_pdn(self, text: str) -> None:
        """Loads the first game of a PDN text; raises ``PdnError`` on failure, and then the current game remains."""
        self.load_game(read_game(clean(text)))

    def load_fen(self, text: str) -> None:
        """Starts a game from a position; if no game can begin there, raises ``FenError`` and keeps the current game."""
        fen = fen_of(text)
        _check_start(Board(fen))
        self.new_game(fen)

    def paste(self, text: str) -> str:
        """Loads the position or game in a text and returns which it was; raises ``DraughtsError`` on failure, and then
        the current game remains."""
        if not text.strip():
            raise SessionError("the clipboard holds no text")
        if _FEN_LIKE.match(text):
            self.load_fen(text)
            return "position"
        self.load_pdn(text)
        return "game"

    def load_file(self, path: str | PathLike[str]) -> None:
        """Loads the first game of a PDN file; raises ``StorageError`` or ``PdnError`` on failure."""
        self.load_pdn(read_text(path))

    def save_file(self, path: str | PathLike[str], add: bool = False) -> None:
        """Writes the game as PDN in UTF-8; raises ``StorageError`` on failure, and then the file is unchanged.

        Args:
            add: write it behind the games of the file, which must exist; otherwise it replaces them.
        """
        before = read_text(path).rstrip() if add else ""
        if "\0" in before:  # such as UTF-16, which would be mixed with UTF-8
            raise StorageError(None, f"{path} is no text in UTF-8: choose another file")
        atomic_write(path, ((before and before + "\n\n") + self.pdn()).encode())

    def _take(self, board: Board, nodes: list[PdnNode], texts: list[str], headers: dict[str, str]) -> None:
        self._lines = GameLines(nodes)
        self.board, self.nodes, self.texts, self.headers = board, self._lines.nodes(), texts, headers
        self.comments, self._ending, self._ending_here, self.draw_offer = [], None, None, None
        self.version += 1
        self.game += 1

    def _check_going_on(self) -> None:
        if self.ending is not None:
            raise SessionError(f"the game is over: {self.ending.text}")
        if not self.at_end:
            raise SessionError("this is an earlier position: go to the last move first")

    def _play_on(self) -> None:
        """In a running game, makes the line shown the main line: where moves are made, there is the game."""
        if self._ending is None and not self.on_main_line:
            self._lines.promote()
            self.version += 1

    def _end(self, ending: Ending) -> None:
        self._check_going_on()
        self._play_on()
        self.ending = ending
        self.draw_offer = None
        self.version += 1

    def _end_by_rules(self) -> None:
        if self.ending is None and (ending := Ending.by_rules(self.board)) is not None:
            self.ending, self.draw_offer = ending, None
