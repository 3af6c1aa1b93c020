"""External engines as players: programs that speak the Hub protocol (see ``engine.hub``)."""

import os
import shutil
import time
import weakref
from typing import NoReturn

from ..board import Board, Move
from ..errors import DraughtsError, shortened
from ..hub.messages import Message, format_message, parse_message
from ..hub.notation import format_move, format_pos, parse_move
from ..hub.process import LineProcess
from ..hub.score import value_of_score
from ..shell_words import split_words
from .base import OneByOne, PlayerError, PlayerSpecError, search_moves
from .watching import MoveThought, Purpose, Thought, Unit

PREFIX = "hub:"
DEFAULT_SECONDS = 1.0
_START_PATIENCE = 60.0  # seconds that an engine may need to get ready
_PATIENCE = 10.0  # seconds that an engine may need for a move beyond twice its time
_STOP_PATIENCE = 5.0  # seconds that an engine may need after ``stop`` to answer
_MOST_STARTS = 3  # consecutive failed starts before the engine is given up
_MOST_STRANGE = 1000  # lines in one answer that may be unknown
_ENDLESS = float("inf")


class EngineError(PlayerError):
    """An external engine cannot be started, does not answer, or answers nonsense.

    Its process has been ended; the next question starts it again.
    """


class HubPlayer(OneByOne):
    """An external engine as a player; its process runs from the first question until ``close``.

    Every question contains the game's start position and moves, so that the engine can see repetitions.

    Args:
        command: program and arguments, split as a shell does, but run without a shell.
        seconds: seconds per move; ``DEFAULT_SECONDS`` if None.
        start_patience: seconds that the engine may need to get ready.

    Attributes:
        name: ``hub:COMMAND``.
        title: the engine's name for itself (``id name=...``); "" before it has started.
        patience: seconds that the engine may need for a move.
        one_game_at_a_time: tells ``selfplay.matches.match`` that the engine cannot play several games side by side.

    Raises:
        PlayerSpecError: the command names no program.
        PlayerError: the time is not above 0.
    """

    one_game_at_a_time = True

    def __init__(self, command: str, seconds: float | None = None, *, start_patience: float = _START_PATIENCE) -> None:
        self.name, self.title = PREFIX + command.strip(), ""
        self._argv = split_command(command)
        if shutil.which(self._argv[0]) is None:
            shown, program = shortened(self.name), shortened(self._argv[0])
            raise PlayerSpecError(f"{shown!r} is no player: there is no program {program!r}")
        self.seconds, self.start_patience = DEFAULT_SECONDS if seconds is None else seconds, start_patience
        self._engine: LineProcess | None = None
        # Ends the engine when the last reference to the player is gone.
        self._finalizer: weakref.finalize[..., HubPlayer] | None = None
        self._failed_starts, self._why = 0, ""
        self._game: tuple[str, list[Move]] | None = None  # start position and moves of the last question
        self._searches = 0  # number of the latest search
        self._running = self._stopped = 0  # numbers of the running search (0: none) and of the last one told to stop

    # --- a player

    @property
    def seconds(self) -> float | None:
        """Seconds per move that the engine is told; None if it is told the state of a clock."""
        return self._level.get("move-time")

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        if not 0 < seconds < _ENDLESS:
            raise PlayerError(f"{self.name}: move-time is {seconds}, not more than 0")
        self._level, self.patience = {"move-time": seconds}, 2 * seconds + _PATIENCE

    def seed(self, seed: int) -> None:
        """Does nothing: the protocol has no command for it."""

    def set_clock(self, remaining_s: float, increment_s: float) -> None:
        """See ``ClockedPlayer.set_clock``; the clock replaces the time per move.

        The protocol counts the clock before the increment for the last move was added, so it may be below 0.
        """
        self._level = {"time": round(remaining_s - increment_s, 3), "inc": increment_s}
        self.patience = max(0.0, remaining_s) + _STOP_PATIENCE

    def choose_from(self, board: Board, moves: list[Move]) -> Move:
        """The engine's move; raises ``EngineError`` if it fails."""
        thinking = self.begin(board)
        while thinking.advance(self.patience):
            pass
        return thinking.choose()

    def begin(self, board: Board, purpose: Purpose = "move") -> "HubThinking":
        """See ``WatchablePlayer.begin``; the engine keeps its own time. A search is stopped when the last reference to
        it is gone. Raises ``EngineError`` if the engine cannot be started, or does not stop its earlier search."""
        moves, same_game = search_moves(board), self._continues(board)
        if self._engine is not None and not same_game and not self._engine.alive:
            self._end()  # the engine ended after its last game, which is not an error
        engine = self.start()
        self._settle()
        if not same_game:
            engine.send("new-game")
        self._game = board.start_fen, board.move_stack.copy()
        played = " ".join(format_move(move) for move in board.move_stack)
        args = {"pos": format_pos(Board(board.start_fen))} | ({"moves": played} if played else {})
        engine.send(format_message("pos", args))
        endless = purpose != "move"
        engine.send(format_message("level", {"infinite": None} if endless else self._level))
        engine.send("go analyze" if purpose == "analysis" else "go think")
        self._searches += 1
        self._running = self._searches
        return HubThinking(self, board, moves, self._searches, endless)

    def _continues(self, board: Board) -> bool:
        """Whether the board continues the game of the last question."""
        if self._game is None:
            return False
        start_fen, moves = self._game
        return board.start_fen == start_fen and board.move_stack[: len(moves)] == moves

    # --- its process

    def close(self) -> None:
        """Ends the engine: asks it to quit, then kills it. The next question starts it again."""
        self._end("quit")

    def __enter__(self) -> "HubPlayer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, farewell: str | None = None) -> None:
        """Ends the process, if there is one."""
        if self._engine is not None:
            self._engine.close(farewell)
        if self._finalizer is not None:
            self._finalizer.detach()
        self._engine = self._game = self._finalizer = None
        self._running = 0

    def fail(self, what: str) -> NoReturn:
        """Ends the engine and raises ``EngineError`` with the text ``what``."""
        words = "" if self._engine is None else self._engine.last_words()
        self._end()
        text = "; ".join(filter(None, (what, words)))
        command = " ".join(os.path.basename(word) or word for word in self._argv)
        raise EngineError(" ".join(f"engine {shortened(command)!r}: {text}".split()))

    def start(self) -> LineProcess:
        """Returns the running engine, started if necessary; raises ``EngineError`` if it does not get ready."""
        if self._engine is None:
            if self._failed_starts >= _MOST_STARTS:
                raise EngineError(f"{self._why} (given up after {_MOST_STARTS} attempts)")
            try:
                self._start()
            except EngineError as error:
                self._failed_starts, self._why = self._failed_starts + 1, str(error)
                raise
            self._failed_starts = 0
        assert self._engine is not None
        return self._engine

    def _start(self) -> None:
        try:
            engine = self._engine = LineProcess(self._argv)
        except (OSError, ValueError) as error:
            self.fail(f"it cannot be started: {error}")
        self._finalizer = weakref.finalize(self, engine.close, "quit")
        deadline = time.monotonic() + self.start_patience
        engine.send("hub")
        said = self._until("wait", deadline)
        self.title = next((message.args.get("name", "") for message in said if message.command == "id"), "").strip()
        declared = {message.args.get("name", ""): message.args for message in said if message.command == "param"}
        variants = declared.get("variant", {}).get("values", "english").replace(",", " ").split()
        if "english" not in variants:
            self.fail(f"it does not play English draughts, but {', '.join(variants) or 'nothing'}")
        if "variant" in declared:
            engine.send("set-param name=variant value=english")
        engine.send("init")
        for message in self._until("ready", deadline):
            if message.command == "error":
                self.fail(f"it cannot play; it said: {shortened(message.args.get('message', ''))}")

    def _until(self, command: str, deadline: float) -> list[Message]:
        """Waits for the line ``command`` while the engine gets ready; returns the messages before it."""
        messages: list[Message] = []
        while (message := self.receive(deadline - time.monotonic())) is None or message.command != command:
            if message is None:
                self.fail(f"it was not ready within {self.start_patience:g} s (it did not send {command!r})")
            messages.append(message)
            if len(messages) > _MOST_STRANGE:
                self.fail(f"it sent {_MOST_STRANGE} lines, but not {command!r}")
        return messages

    def receive(self, seconds: float) -> Message | None:
        """The engine's next message; None if none arrives within ``seconds``. An unknown line has an empty command.

        Raises ``EngineError`` if the engine has ended or closed its output, or the player was closed.
        """
        if self._engine is None:
            self.fail("it was closed")
        try:
            line = self._engine.receive(seconds)
        except EOFError:
            when = "in the middle of the game" if self._running else "before it was ready"
            self.fail(f"it closed its output {when}")
        if line is None:
            return None
        try:
            return parse_message(line)
        except DraughtsError:
            return Message("", {"line": line})

    # --- its search

    def stop(self, number: int) -> None:
        """Tells the engine to stop search ``number``, if it is still running and ``stop`` was not sent before.

        A second stop could end the next search instead.
        """
        if self._engine is not None and number == self._running and number not in (0, self._stopped):
            self._stopped = number
            self._engine.send("stop")

    def finished(self, number: int) -> None:
        """Notes that search ``number`` is over."""
        if number == self._running:
            self._running = 0

    def _settle(self) -> None:
        """Stops the running search, if there is one, and waits for its end."""
        deadline = time.monotonic() + _STOP_PATIENCE
        self.stop(self._running)
        while self._running:
            message = self.receive(deadline - time.monotonic())
            if message is None or time.monotonic() > deadline:
                self.fail(f"it did not stop within {_STOP_PATIENCE:g} s")
            if message.command == "done":
                self._running = 0


class HubThinking:
    """A search of an external engine, see ``watching.Thinking``."""

    unit: Unit = "nodes"

    def __init__(self, player: HubPlayer, board: Board, moves: list[Move], number: int, endless: bool) -> None:
        self._player, self._board, self._number = player, board.copy(), number
        self._first = moves[0]
        self._begun = time.monotonic()
        self._patience = _ENDLESS if endless else player.patience
        self._seconds = None if endless else player.seconds
        self._info: dict[str, str] = {}
        self._move: Move | None = None
        self._strange, self._complaint = 0, ""

    def __del__(self) -> None:
        self._player.stop(self._number)  # or the engine would go on with a search that is no longer needed

    @property
    def count(self) -> int:
        """Nodes, as far as the engine has told."""
        return int(self._number_of("nodes") or 0)

    @property
    def progress(self) -> float:
        """Fraction of the search's time that has passed, 0 to 1; 0 without a time limit, 1 after the move."""
        if self._move is not None:
            return 1.0
        return min(1.0, (time.monotonic() - self._begun) / self._seconds) if self._seconds else 0.0

    def advance(self, seconds: float) -> bool:
        """See ``Thinking.advance``; finished when the engine has moved. Raises ``EngineError`` if it fails."""
        deadline = time.monotonic() + seconds
        self._listen(min(deadline, self._begun + self._patience))
        if self._move is None and time.monotonic() >= self._begun + self._patience:
            self._player.fail(f"it did not move within {self._patience:g} s{self._complaint}")
        return self._move is None

    def _listen(self, deadline: float) -> None:
        """Reads messages until the engine has moved or the deadline has passed."""
        while self._move is None:
            message = self._player.receive(deadline - time.monotonic())
            if message is not None:
                self._take(message)
            if time.monotonic() >= deadline:
                return

    def _take(self, message: Message) -> None:
        if message.command == "info":
            self._info |= message.args
        elif message.command == "done":
            self._player.finished(self._number)
            self._move = self._legal(message.args.get("move", ""))
        else:
            self._strange += 1
            said = message.args.get("message") or message.args.get("line") or format_message(*message)
            if message.command == "error" or not self._complaint:
                self._complaint = f"; it said: {shortened(said)}"
            if self._strange > _MOST_STRANGE:
                self._player.fail(f"it sent {_MOST_STRANGE} lines, but not 'done'{self._complaint}")

    def _legal(self, text: str) -> Move:
        if not text:
            self._player.fail(f"it named no move{self._complaint}")
        try:
            return parse_move(self._board, text)
        except DraughtsError as error:
            self._player.fail(f"it played an illegal move: {error}")

    def choose(self) -> Move:
        """The engine's move; tells it to stop if it has not moved yet. Raises ``EngineError`` if it fails."""
        if self._move is None:
            self._player.stop(self._number)
            self._listen(time.monotonic() + _STOP_PATIENCE)
        if self._move is None:
            self._player.fail(f"it did not move within {_STOP_PATIENCE:g} s of 'stop'{self._complaint}")
        return self._move

    def thought(self) -> Thought:
        """See ``Thinking.thought``; without ``info`` lines it contains only a move."""
        line = self._line()
        score, depth = (self._number_of(name) for name in ("score", "depth"))
        value = None if score is None else value_of_score(score)
        plies = None if depth is None else int(depth)
        return Thought((MoveThought(line[0], value=value),), line, value, None, self.count, depth=plies)

    def _line(self) -> tuple[Move, ...]:
        """The expected line as far as it is legal. Once the engine has moved, its move comes first; before, and without
        a line, the first legal move."""
        board, line = self._board.copy(), list[Move]()
        for text in self._info.get("pv", "").split():
            try:
                line.append(parse_move(board, text))
            except DraughtsError:
                break
            board.push(line[-1])
        if self._move is not None and line[:1] != [self._move]:
            return (self._move,)
        return tuple(line) or (self._first,)

    def _number_of(self, name: str) -> float | None:
        try:
            number = float(self._info.get(name, ""))
        except ValueError:
            return None
        return number if abs(number) < _ENDLESS else None


def split_command(command: str) -> list[str]:
    """Program and arguments of a command; raises ``PlayerSpecError`` if it is empty or a quotation is not closed."""
    shown = shortened(PREFIX + command.strip())
    try:
        argv = split_words(command)
    except ValueError as error:
        raise PlayerSpecError(f"{shown!r} is no player: {error}") from error
    if not argv:
        raise PlayerSpecError(f"{shown!r} is no player: after {PREFIX} write the command that starts the engine")
    return argv
