"""The engine's side of the Hub protocol: another program uses a player over two streams of text.

One thread reads commands and answers those that need no search. A second thread makes the player and searches; it does
one order after another.
"""

import contextlib
import io
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from ..board import Board
from ..errors import DraughtsError, one_line
from ..files import bounded_lines
from ..players.base import Player, close_player
from ..players.watching import WatchablePlayer
from .level import Level, parse_level
from .messages import MAX_LINE, HubError, format_message, parse_message, shown
from .notation import parse_pos, play_moves, read_game, turned_pos
from .params import POSITIONS, VARIANT, Param, Value
from .thinking import Mode, Search, answer

NAME = "Crownhead"
PlayerMaker = Callable[[Mapping[str, Value]], Player]
_LEAVE = 2.0  # seconds that ``quit`` waits for the searching thread
_MODES: tuple[Mode, ...] = ("think", "analyze", "ponder")
_WARM_UP = 0.1  # seconds of the search that a new player makes
_SHOWN = 300  # characters of an error's text that are sent


def serve(
    make_player: PlayerMaker, stdin: TextIO, stdout: TextIO, *, version: str = "", params: Sequence[Param] = ()
) -> None:
    """Serves a player until ``quit``, or until ``stdin`` has ended and all commands have been answered.

    Args:
        make_player: called in the search thread with the values of ``params`` by name: at ``init``, and before a search
            if they have changed. An exception becomes an ``error`` message, and the next search calls it again.
            Time limits and ``stop`` work only for a ``WatchablePlayer``.
        version: the engine's version in its ``id`` line; not written if "".
        params: parameters that can be set, in addition to ``variant`` and ``positions``.
    """
    if isinstance(stdin, io.TextIOWrapper):
        stdin.reconfigure(errors="replace")
    if isinstance(stdout, io.TextIOWrapper):  # else one character that it cannot encode would end all answers
        stdout.reconfigure(errors="backslashreplace")
    write = _Output(stdout)
    worker = _Worker(make_player, write)
    session = _Session(worker, write, version, params)
    write.when_broken = session.stop
    try:
        if all(session.take(line) for line in bounded_lines(stdin, MAX_LINE)):
            session.end_of_input()
            worker.finish()
    finally:
        session.stop()
        worker.finish(_LEAVE)


class _Output:
    """Writes whole lines, from any thread. Lines are dropped once the other side has closed the stream.

    Attributes:
        when_broken: called when the other side has closed the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lock, self._broken = stream, threading.Lock(), False
        self.when_broken: Callable[[], None] = lambda: None

    def __call__(self, line: str) -> None:
        with self._lock:
            if self._broken:
                return
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                self._broken = True
                with contextlib.suppress(OSError, ValueError):  # avoids an error when the interpreter flushes at exit
                    os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        if self._broken:
            self.when_broken()


def _error(error: BaseException) -> str:
    text = one_line(error, _SHOWN)
    if not isinstance(error, ValueError | OSError):
        text = f"{type(error).__name__}: {text}"
    return format_message("error", {"message": text})


class _Worker:
    """The thread that makes the player and searches."""

    def __init__(self, make_player: PlayerMaker, write: Callable[[str], None]) -> None:
        self._make_player, self._write = make_player, write
        self._player: Player | None = None
        self._values: dict[str, Value] = {}  # parameters that the current player was made with
        self._ready = 0.0  # ``time.monotonic()`` of the latest ``ready``
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hub search", daemon=True)
        self._thread.start()

    def load(self, values: Mapping[str, Value]) -> None:
        """Orders the player to be made; then ``ready`` is written, after an ``error`` line if that failed."""
        self._orders.put(lambda: self._load(dict(values)))

    def search(self, search: Search, values: Mapping[str, Value]) -> None:
        self._orders.put(lambda: self._answer(search, dict(values)))

    def finish(self, seconds: float | None = None) -> None:
        """Waits at most ``seconds`` until all orders have been carried out; no order may be given afterwards."""
        self._orders.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            order()
        self._drop()

    def _load(self, values: dict[str, Value]) -> None:
        try:
            self._made(values)
        except Exception as error:
            self._write(_error(error))
        self._ready = time.monotonic()
        self._write("ready")

    def _answer(self, search: Search, values: dict[str, Value]) -> None:
        try:
            player = self._made(values)
            search.begun = max(search.begun, self._ready)  # a program that did not wait for it gets its time, too
            done = answer(player, search, self._write)
        except Exception as error:  # the other program must get its answer, whatever the player raises
            self._write(_error(error))
            done = "done"
            with contextlib.suppress(Exception):  # one that has failed may fail to close, too
                self._drop()
        search.over = True  # before the line is written: the next order may follow at once
        self._write(done)

    def _made(self, values: dict[str, Value]) -> Player:
        """The player for these values; makes a new one if there is none or the values have changed.

        One that can be watched searches once, so that code is compiled and memory reserved before a clock runs.
        """
        if self._player is not None and values == self._values:
            return self._player
        self._drop()
        player = self._make_player(values)
        try:
            if isinstance(player, WatchablePlayer):
                thinking = player.begin(Board(), "game")
                thinking.advance(_WARM_UP)
                thinking.thought()
                thinking.choose()
        except BaseException:
            close_player(player)
            raise
        self._player, self._values = player, values
        return player

    def _drop(self) -> None:
        """Closes the player, if there is one."""
        player, self._player = self._player, None
        close_player(player)


class _Session:
    """The state that the other program has set. Its commands are carried out at once or passed to the worker."""

    def __init__(self, worker: _Worker, write: Callable[[str], None], version: str, params: Sequence[Param]) -> None:
        self._worker, self._write, self._version = worker, write, version
        self._params = {param.name: param for param in (VARIANT, POSITIONS, *params)}
        self._own = {param.name for param in params}
        self._values = {name: param.value for name, param in self._params.items()}
        self._board: Board | None = Board()  # None: the last position was refused
        self._known: tuple[object, list[str]] = None, []  # start and moves of the last ``pos`` command
        self._turned: bool | None = None  # see ``notation.read_game``
        self._level: Level | None = None
        self._search: Search | None = None  # the latest
        self._commands: dict[str, Callable[[dict[str, str]], None]] = {
            "hub": self._hub,
            "set-param": self._set_param,
            "init": lambda _: self._worker.load(self._player_values()),
            "ping": lambda _: self._write("pong"),
            "new-game": self._new_game,
            "pos": self._pos,
            "level": self._set_level,
            "go": self._go,
            "ponder-hit": self._hit,
            "stop": lambda _: self.stop(),
        }

    def take(self, line: str) -> bool:
        """Carries out the command of a line; returns False for ``quit``."""
        if not line.strip():
            return True
        try:
            command, args = parse_message(line)
            if command == "quit":
                return False
            if command not in self._commands:
                raise HubError(f"{shown(command)} is no command: {', '.join(self._commands)}, quit")
            self._commands[command](args)
        except DraughtsError as error:
            self._write(_error(error))
        return True

    def stop(self) -> None:
        """Ends the search, if there is one."""
        if self._search is not None:
            self._search.stop()

    def end_of_input(self) -> None:
        """Ends a search that only another command could end."""
        if self._search is not None and (self._search.endless or self._search.pondering):
            self._search.stop()

    def _player_values(self) -> dict[str, Value]:
        return {name: value for name, value in self._values.items() if name in self._own}

    def _hub(self, _: dict[str, str]) -> None:
        self._write(format_message("id", {"name": NAME} | ({"version": self._version} if self._version else {})))
        for param in self._params.values():
            self._write(param.declaration())
        self._write("wait")

    def _set_param(self, args: dict[str, str]) -> None:
        if "name" not in args or "value" not in args:
            raise HubError("set-param: write set-param name=NAME value=VALUE")
        if args["name"] not in self._params:
            raise HubError(f"{shown(args['name'])} is no parameter: {', '.join(self._params)}")
        self._values[args["name"]] = self._params[args["name"]].read(args["value"])

    def _new_game(self, _: dict[str, str]) -> None:
        self._board, self._known = Board(), (None, [])

    def _pos(self, args: dict[str, str]) -> None:
        pos, positions, moves = args.get("pos"), self._values[POSITIONS.name], args.get("moves", "").split()
        board, (known_start, known_moves) = self._board, self._known
        understood = pos is None or positions != "auto" or self._turned is not None
        same = understood and known_start == (pos, positions) and moves[: len(known_moves)] == known_moves
        self._board = None
        if board is not None and same:
            play_moves(board, moves[len(known_moves) :])  # the same game some moves later
        else:
            board = self._read(pos, positions, moves)
        self._board, self._known = board, ((pos, positions), moves)

    def _read(self, pos: str | None, positions: Value, moves: list[str]) -> Board:
        """The board after ``moves`` from position ``pos``; None is the start position of the game."""
        if pos is None:
            return play_moves(Board(), moves)
        if positions == "auto":
            board, self._turned = read_game(pos, moves, self._turned)
            return board
        return play_moves(parse_pos(turned_pos(pos) if positions == "turned" else pos), moves)

    def _set_level(self, args: dict[str, str]) -> None:
        self._level = parse_level(args)

    def _go(self, args: dict[str, str]) -> None:
        if self._search is not None and not (self._search.stopped or self._search.over):
            raise HubError("go: a search is going on; stop it first")
        modes = [mode for mode in _MODES if mode in args]
        if len(modes) > 1:
            raise HubError(f"go: choose one of {', '.join(_MODES)}")
        board = self._board
        if board is None or not board.legal_moves:
            refused, over = "there is no position, the last one was refused", "the game is over, there is no legal move"
            self._write(_error(HubError(f"go: {refused if board is None else over}")))
            self._write("done")
            return
        self._search = Search(board.copy(), self._level, modes[0] if modes else "think")
        self._worker.search(self._search, self._player_values())

    def _hit(self, _: dict[str, str]) -> None:
        if self._search is None or self._search.over or not self._search.pondering:
            raise HubError("ponder-hit: there is no search in ponder mode")
        self._search.hit()
