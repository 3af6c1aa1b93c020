"""``crownhead play --text``: a game in the terminal, which shows the network's five best moves at every turn."""

import io
import sys
from collections.abc import Callable
from secrets import randbits

from engine.board import Board, Move
from engine.console import Console
from engine.errors import DraughtsError
from engine.fen import START_FEN, Color
from engine.outcomes import RESULTS
from engine.pdn import PdnGame, format_game
from engine.players.base import Player, close_player, search_moves
from engine.players.search_player import SearchPlayer
from engine.players.spec import CHAMPION, NetworkSpec, parse_player
from engine.players.time_control import TimeControl
from engine.rules import played
from engine.search import SearchConfig

from .conditions import Conditions
from .machines.compiling import made_beside_compiling
from .matches.commands import tell_ignored
from .players import make_player
from .requests import PlayRequest

SHOWN = 5
SIDES = {"black": (Color.BLACK,), "white": (Color.WHITE,), "both": tuple(Color), "none": ()}
HELP = f"a move like {played.EXAMPLES}; moves, undo, fen, pdn, resign, help, quit"
_MOST_PLIES = 400  # longest game of two programs, which nobody could stop at the keyboard


class TextPlayError(DraughtsError):
    """A game cannot be played with these options."""


class TextGame:
    """One game in the terminal.

    Args:
        opponent: plays the sides that are not in ``humans``.
        adviser: network whose most probable moves are shown; None: no moves are shown.
        read: shows a prompt and returns the line typed; raises ``EOFError`` at the end of input.
        write: prints a line.
    """

    def __init__(
        self,
        board: Board,
        opponent: Player,
        adviser: SearchPlayer | None,
        humans: tuple[Color, ...],
        read: Callable[[str], str],
        write: Callable[[str], None],
    ) -> None:
        self.board = board
        self._opponent, self._adviser, self._humans = opponent, adviser, humans
        self._read, self._write = read, write
        self._over = False

    def play(self) -> str:
        """Plays to the end, or until the user quits; returns the result in PDN (``*`` if there is none).

        At the end writes the game as PDN, also where Ctrl-C or a player that fails ends it.
        """
        result = "*"
        try:
            result = self._play()
        finally:
            self._write("\n" + format_game(self._record(result)))  # not behind a prompt that Ctrl-C or Ctrl-D ends
        return result

    def _play(self) -> str:
        result = "*"
        while not self._over:
            self._show()
            if outcome := self.board.outcome():
                result = outcome.result
                self._write(f"{result}: {outcome.termination.name.lower().replace('_', ' ')}")
                break
            if self.board.turn in self._humans:
                result = self._ask()
            elif not self._humans and self.board.ply >= _MOST_PLIES:
                self._write(f"stopped after {_MOST_PLIES} plies")
                break
            else:
                self._answer()
        return result

    def _show(self) -> None:
        self._write(f"\n{numbered(self.board)}\n{self.board.turn} to move")
        if self._adviser is not None and self.board.outcome() is None:
            shown = ", ".join(
                f"{self.board.pdn(move)} {share:.0%}" for move, share in first_moves(self._adviser, self.board)
            )
            self._write(f"network's first moves: {shown}")

    def _answer(self) -> None:
        (move,) = self._opponent.choose([self.board.copy()])
        self._write(f"{self._opponent.name} plays {self.board.pdn(move)}")
        self.board.push(move)

    def _ask(self) -> str:
        """Reads and executes one line; returns the result of the game, ``*`` unless the user resigns."""
        try:
            text = self._read(f"{self.board.turn}: ").strip()
        except EOFError:
            text = "quit"
        word = text.lower()
        if word in ("quit", "exit", "q"):
            self._over = True
        elif word == "resign":
            self._over = True
            return RESULTS[self.board.turn.other]
        elif word == "undo":
            self._undo()
        elif word == "moves":
            self._write(" ".join(self.board.pdn(move) for move in self.board.legal_moves))
        elif word == "fen":
            self._write(self.board.fen())
        elif word == "pdn":
            self._write(format_game(self._record("*")))
        elif word in ("help", "?", ""):
            self._write(HELP)
        else:
            try:
                self.board.push_pdn(text)
            except DraughtsError as error:
                self._write(f"{error} (help says what can be typed)")
        return "*"

    def _undo(self) -> None:
        """Takes back moves up to the user's last one; prints a message if there is none."""
        behind = self.board.copy()
        while behind.move_stack:
            behind.pop()
            if behind.turn in self._humans:
                self.board = behind
                return
        self._write("there is no move to take back")

    def _record(self, result: str) -> PdnGame:
        names = {color: "player" if color in self._humans else self._opponent.name for color in Color}
        tags = {"Black": names[Color.BLACK], "White": names[Color.WHITE], "Result": result}
        return PdnGame.from_board(self.board, tags)


def numbered(board: Board) -> str:
    """The board as text, White at the bottom: each dark square with its piece (b, w men; B, W kings) and name."""
    pieces, rows = board.piece_map(), []
    for row in range(8):
        cells = []
        for number in range(4 * row + 1, 4 * row + 5):
            piece = pieces.get(number)
            cells.append(f"{piece.symbol() if piece else '.'}{played.square_name(number):<3}")
        rows.append(("    " if row % 2 == 0 else "") + "    ".join(cells).rstrip())
    return "\n".join(rows)


def first_moves(network: SearchPlayer, board: Board, number: int = SHOWN) -> list[tuple[Move, float]]:
    """The ``number`` most probable moves by a network without search, with their probabilities."""
    priors = network.analyse(board)[0].priors
    moves = search_moves(board)
    return [(moves[place], float(priors[place])) for place in (-priors).argsort(kind="stable")[:number]]


def text_play(request: PlayRequest) -> None:
    """Plays a game in the terminal; see ``crownhead play --help``. Raises ``TextPlayError``: bad side, no terminal."""
    side = request.side or "black"
    if side not in SIDES:
        raise TextPlayError(f"--side {side}: choose {', '.join(SIDES)}")
    if sys.stdin is None or sys.stdout is None:
        raise TextPlayError("standard input or output is closed: a game in the terminal needs both")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a wrong byte is a line that is no move, not the end of the game
    board, spec = Board(request.fen or START_FEN), parse_player(request.opponent or CHAMPION)
    if request.seconds is not None:
        tell_ignored([spec], TimeControl("move", request.seconds))
    conditions = Conditions(request.simulations, request.seconds, backend=request.backend, seed=randbits(32))
    player = made_beside_compiling(lambda: make_player(spec, conditions))
    network = NetworkSpec(spec.folder if isinstance(spec, NetworkSpec) else CHAMPION)
    alone = Conditions(backend=request.backend, search=SearchConfig(num_simulations=0))
    adviser = make_player(network, alone)
    assert isinstance(adviser, SearchPlayer)
    console = Console(highlight=False)

    def write(text: str) -> None:
        console.print(text, soft_wrap=True)

    write(f"Type {HELP}.")
    try:
        TextGame(board, player, adviser, SIDES[side], input, write).play()
    finally:
        close_player(player)
