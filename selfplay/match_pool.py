"""Games of matches spread over processes, each with one thread; between them goes JSON, never a pickled object.

A process that dies does not end the match: a new one plays its games again.
"""

import contextlib
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from typing import Self

from pydantic import TypeAdapter

from engine.board import Board, Move
from engine.players.base import Player, PlayerError, close_player
from engine.players.hub import HubPlayer
from engine.players.simple import make_simple_player
from engine.players.spec import HubSpec, NetworkSpec, PlayerSpec, parse_player
from engine.players.time_control import TimeControl

from .conditions import Conditions
from .match import NO_CLOCK, play_games, seed_players
from .match_record import MatchGame
from .openings import MatchError, Opening
from .processes import follow_parent, no_interrupt
from .referee import ask_timed

_PATIENCE_S = 1.0  # for a word of a process; on some systems Ctrl-C waits for the end of it
_LEAVE_S = 2.0  # that a process gets to end its engines and itself
_MOST_PLAYERS = 6  # kept by a process, for a ladder's pairings to come
_MOST_DEATHS = 2  # of processes with the same game
_WARM_UP = TimeControl("move", 0.02)
_ENDGAME = "W:WK10,K11:BK30"
LOCKSTEP = 128  # games side by side in one process
_MESSAGE: TypeAdapter[MatchGame | str | None] = TypeAdapter(MatchGame | str | None)
"""What a process says: a game that is over, what went wrong, or that it has played all."""
_SHARE = 32  # games of a task where several processes share a match between untimed networks


@dataclass(frozen=True)
class Pairing:
    """Who plays, and how; ``player_a`` has Black in the games of even number. For the rest see ``Conditions``."""

    player_a: PlayerSpec
    player_b: PlayerSpec
    control: TimeControl = NO_CLOCK
    simulations: int | None = None
    seed: int = 0
    backend: str = "auto"
    plain: bool = False

    @property
    def players(self) -> tuple[PlayerSpec, PlayerSpec]:
        return self.player_a, self.player_b

    @property
    def conditions(self) -> Conditions:
        seconds = None if self.control.kind == "none" else self.control.base_s
        batch = _SHARE if self.lockstep else 1
        return Conditions(self.simulations, seconds, backend=self.backend, batch=batch, plain=self.plain)

    @property
    def lockstep(self) -> bool:
        """Games go on side by side: with untimed networks, whose evaluations are then made in batches."""
        external = any(isinstance(player, HubSpec) for player in self.players)
        networks = any(isinstance(player, NetworkSpec) for player in self.players)
        return self.control.kind == "none" and networks and not external


@dataclass(frozen=True)
class Task:
    """Games for one process: the pairing, and number and opening of each game."""

    pairing: Pairing
    starts: tuple[tuple[int, Opening], ...]

    def encode(self) -> bytes:
        starts = [
            (index, opening.name, opening.board.start_fen, [asdict(move) for move in opening.board.move_stack])
            for index, opening in self.starts
        ]
        texts = {"player_a": self.pairing.player_a.text, "player_b": self.pairing.player_b.text}
        return json.dumps({"pairing": {**asdict(self.pairing), **texts}, "starts": starts}).encode()

    @staticmethod
    def decode(data: bytes) -> "Task":
        fields = json.loads(data)
        pairing = fields["pairing"]
        players = {name: parse_player(pairing[name]) for name in ("player_a", "player_b")}
        pairing = {**pairing, **players, "control": TimeControl(**pairing["control"])}
        starts = []
        for index, name, fen, moves in fields["starts"]:
            board = Board(fen)
            for move in moves:
                board.push(Move(move["start"], move["end"], tuple(move["captured"]), tuple(move["path"])))
            starts.append((index, Opening(name, board)))
        return Task(Pairing(**pairing), tuple(starts))


def make_tasks(pairing: Pairing, starts: Sequence[tuple[int, Opening]], jobs: int) -> list[Task]:
    """Shares games out: one by one, or such as go on side by side in equal parts.

    Each task begins with its own random numbers, which follow from the pairing's seed and its first game.
    """
    size = 1
    if pairing.lockstep:
        size = LOCKSTEP if jobs == 1 else _SHARE
    return [Task(pairing, tuple(starts[first : first + size])) for first in range(0, len(starts), size)]


class Players:
    """The players of a process, made when they are first needed; the longest unused ones go."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[object, ...], Player] = OrderedDict()

    def play(self, task: Task) -> Iterator[MatchGame]:
        """Plays the games of a task; raises what ``players.make_player`` does."""
        pairing = task.pairing
        player_a, player_b = (self._player(pairing, spec, role) for role, spec in enumerate(pairing.players))
        seed_players(player_a, player_b, pairing.seed, task.starts[0][0])
        concurrency = len(task.starts) if pairing.lockstep else 1
        return play_games(player_a, player_b, task.starts, concurrency=concurrency, control=pairing.control)

    def _player(self, pairing: Pairing, spec: PlayerSpec, role: int) -> Player:
        key = spec, role, pairing.conditions
        if key not in self._made:
            while len(self._made) >= _MOST_PLAYERS:
                close_player(self._made.popitem(last=False)[1])
            self._made[key] = _make(spec, pairing.conditions)
            if pairing.control.kind != "none":
                _warm_up(spec, self._made[key])
        self._made.move_to_end(key)
        return self._made[key]

    def close(self) -> None:
        """Ends external engines, and what is pondered on."""
        for player in self._made.values():
            close_player(player)
        self._made.clear()


def _make(spec: PlayerSpec, conditions: Conditions) -> Player:
    if not isinstance(spec, NetworkSpec):
        return make_simple_player(spec, conditions.seconds)
    from .players import make_player  # loads torch, which others do without

    return make_player(spec, conditions)


def _warm_up(spec: PlayerSpec, player: Player) -> None:
    """Loads or compiles all that a player needs, before a clock runs; what goes wrong will show in the game."""
    if isinstance(player, HubPlayer):
        with contextlib.suppress(PlayerError):
            player.begin(Board()).choose()  # it is told to stop at once
        return
    for board in (Board(), Board(_ENDGAME))[: 1 + spec.timed]:
        for moves_made in range(1 + 2 * spec.timed):
            answer = ask_timed(player, board, _WARM_UP, 1.0, moves_made)
            if isinstance(answer.move, Exception) or board.outcome():
                return
            board.push(answer.move)


class MatchPool:
    """Plays tasks, in this process (1 job) or in ``jobs`` others; use it in a ``with`` statement."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._players = Players()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._players.close()
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.join()
        self._workers.clear()

    def play(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, MatchGame]]:
        """Plays all tasks and hands on each game as soon as it is over, with the task, or what is left of it.

        Raises ``MatchError`` if a game has ended ``_MOST_DEATHS`` processes, or a player cannot be made in one.
        """
        if self.jobs == 1:
            for task in tasks:
                for game in self._players.play(task):
                    yield task, game
            return
        waiting = deque(tasks)
        deaths: Counter[tuple[Pairing, int]] = Counter()
        while waiting or any(worker.task for worker in self._workers):
            self._hand_out(waiting)
            connections = {worker.connection: worker for worker in self._workers if worker.task}
            for connection in multiprocessing.connection.wait(list(connections), _PATIENCE_S):
                worker = connections[connection]  # type: ignore[index]
                asked = worker.task
                assert asked is not None
                try:
                    over = worker.receive()
                except (EOFError, OSError):
                    self._bury(worker, asked, deaths)
                    if asked.starts:  # it may have died behind its last game
                        waiting.appendleft(asked)
                    continue
                if over is not None:
                    left = tuple(start for start in asked.starts if start[0] != over.index)
                    worker.task = replace(asked, starts=left)
                    yield asked, over

    def _hand_out(self, waiting: deque[Task]) -> None:
        """Gives tasks to processes that have none, and starts more processes while there are too few."""
        idle = [worker for worker in self._workers if worker.task is None]
        while waiting and (idle or len(self._workers) < self.jobs):
            if idle:
                worker = idle.pop()
            else:
                worker = _Worker()
                self._workers.append(worker)
            worker.send(waiting.popleft())

    def _bury(self, worker: "_Worker", task: Task, deaths: Counter[tuple[Pairing, int]]) -> None:
        """Counts what a process that has died was doing."""
        self._workers.remove(worker)
        worker.process.terminate()
        worker.join()
        pairing = task.pairing
        for index, _ in task.starts:
            deaths[pairing, index] += 1
            if deaths[pairing, index] >= _MOST_DEATHS:
                names = " v ".join(player.text for player in pairing.players)
                raise MatchError(
                    f"game {index + 1} of {names} has ended {_MOST_DEATHS} processes, "
                    f"the last with exit code {worker.process.exitcode}; the match is given up"
                )


class _Worker:
    """A process that plays.

    Attributes:
        task: those of its games that are not over; None if it has none.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        self.task: Task | None = None
        with no_interrupt():
            self.process.start()
        other.close()

    def send(self, task: Task) -> None:
        """Gives it a task; one that has died says so when it is listened to."""
        self.task = task
        with contextlib.suppress(OSError):
            self.connection.send_bytes(task.encode())

    def receive(self) -> MatchGame | None:
        """A game that is over; None once all are.

        Raises:
            EOFError, OSError: it has died.
            MatchError: it cannot play.
        """
        message = _MESSAGE.validate_json(self.connection.recv_bytes())
        if isinstance(message, str):
            raise MatchError(message)
        if message is None:
            self.task = None
        return message

    def join(self) -> None:
        """Waits until it has ended, with force in the end."""
        self.process.join(_LEAVE_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


def _work(connection: Connection) -> None:
    """A process: plays the tasks it is sent until there is nobody to send any."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that engines are ended
    follow_parent()
    players = Players()

    def say(message: MatchGame | str | None) -> None:
        connection.send_bytes(_MESSAGE.dump_json(message))

    try:
        while True:
            task = Task.decode(connection.recv_bytes())
            for game in players.play(task):
                say(game)
            say(None)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        if os.environ.get("CROWNHEAD_DEBUG"):
            raise
        expected = isinstance(error, (ValueError, OSError))
        say(str(error) if expected else f"a player failed by {type(error).__name__}: {error}")
    finally:
        players.close()
