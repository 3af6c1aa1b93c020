"""The thinking thread: it answers, it stops, it survives its players, and the window never waits for it."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from programs import PATIENCE

from engine.board import Board, Move
from engine.fen import Color
from engine.players import MoveThought, PlayerError, Purpose, Thought
from engine.players import search_player as search_player_module
from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig, UniformEvaluator
from gui.game import thinker as thinker_module
from gui.game.opponents import Opponents, OpponentSpec
from gui.game.thinker import Snapshot, Thinker

NETWORK = OpponentSpec(vary=False, search=SearchConfig(num_simulations=60))
OTHER = OpponentSpec(checkpoint="other")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.001)


class SteppedSearch:
    """A search that makes a step only when the test allows it."""

    unit = "simulations"

    def __init__(self, board: Board, player: "SteppedPlayer") -> None:
        self.board, self.player, self.steps = board, player, 0

    @property
    def progress(self) -> float:
        return self.steps / 10

    @property
    def count(self) -> int:
        return self.steps

    def advance(self, seconds: float) -> bool:
        self.player.entered.release()
        assert self.player.allowed.acquire(timeout=PATIENCE)
        self.player.after_step()
        self.steps += 1
        self.player.total += 1
        return self.steps < 10

    def thought(self) -> Thought:
        move = self.board.legal_moves[self.steps % 2]
        wdl = (0.5, 0.3, 0.2)
        known = MoveThought(move, self.steps, 0.5, 0.3, wdl)
        return Thought((known,), (move,), 0.3, wdl, self.steps)

    def choose(self) -> Move:
        return self.player.choice or self.thought().best


class SteppedPlayer:
    name = "stepped"

    def __init__(self) -> None:
        self.allowed, self.entered = threading.Semaphore(0), threading.Semaphore(0)
        self.after_step: Callable[[], None] = lambda: None
        self.choice: Move | None = None
        self.total = 0
        self.planning_s: float | None = None
        self.closed = threading.Event()

    def seed(self, seed: int) -> None: ...

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        raise AssertionError("a player that can be watched is watched")

    def begin(self, board: Board, purpose: Purpose = "move") -> SteppedSearch:
        return SteppedSearch(board, self)

    def close(self) -> None:
        self.closed.set()


class PlainPlayer:
    """A player without intermediate results; it answers when the test allows it."""

    name = "plain"

    def __init__(self, answer: Callable[[Board], list[Move]]) -> None:
        self.answer = answer
        self.asked, self.go, self.closed = threading.Event(), threading.Event(), threading.Event()

    def seed(self, seed: int) -> None: ...

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        self.asked.set()
        assert self.go.wait(PATIENCE)
        return self.answer(boards[0])

    def close(self) -> None:
        self.closed.set()


class Table:
    """A thinker with players of the test's making."""

    def __init__(self, players: dict[str | None, object], clock: Callable[[], float] = time.perf_counter) -> None:
        self.players, self.made = players, []
        self.thinker = Thinker(Opponents(self.make), clock)

    def make(self, spec: OpponentSpec) -> object:
        self.made.append(spec)
        player = self.players[spec.checkpoint]
        if isinstance(player, Exception):
            raise player
        return player() if callable(player) else player

    def wait(self) -> Snapshot:
        until(lambda: not self.thinker.busy)
        assert self.thinker.snapshot is not None
        return self.thinker.snapshot


@pytest.fixture
def table():
    tables = []

    def make(clock: Callable[[], float] = time.perf_counter, **players: object) -> Table:
        named = {None if name == "first" else name: player for name, player in players.items()}
        tables.append(Table(named, clock))
        return tables[-1]

    yield make
    for made in tables:
        made.thinker.close()
        assert not made.thinker._thread.is_alive()


def network() -> SearchPlayer:
    return SearchPlayer("uniform", UniformEvaluator(), NETWORK.search)


@pytest.mark.parametrize("kind", ["random", "rollout", "alphabeta", "network"])
def test_every_kind_of_opponent_plays_a_legal_move(table, kind: str) -> None:
    board = Board()
    spec = NETWORK.changed(kind=kind, rollouts=80, depth=4)
    thinker = table(first=network)
    number = thinker.thinker.request(board, spec)
    snapshot = thinker.wait()
    assert (snapshot.status, snapshot.number, snapshot.mode) == ("done", number, "play")
    assert snapshot.error is None
    assert snapshot.move in board.legal_moves
    assert snapshot.move.path
    assert snapshot.player == spec.name
    assert (snapshot.fen, snapshot.ply, snapshot.turn) == (board.fen(), 0, Color.BLACK)
    assert snapshot.progress == 1.0
    assert board.move_stack == []


def test_the_final_snapshot_is_the_search_that_the_player_makes_alone(table) -> None:
    board = Board()
    for move in ["11-15", "22-18", "15x22"]:
        board.push_pdn(move)
    thinker = table(first=network)
    thinker.thinker.request(board, NETWORK, "hint")
    snapshot = thinker.wait()
    alone = network()
    result, line, _ = alone.analyse(board)
    assert snapshot.move == snapshot.moves[0].move == snapshot.pv[0] == alone.choose([board])[0]
    assert list(snapshot.pv) == line[:16]
    assert snapshot.wdl == pytest.approx(tuple(result.wdl))
    assert snapshot.count == result.simulations == sum(row.visits for row in snapshot.moves)
    assert sum(row.share for row in snapshot.moves) == pytest.approx(1.0)
    assert sorted(row.visits for row in snapshot.moves) == sorted(result.visits.tolist())
    assert {board.parse_pdn(row.pdn) for row in snapshot.moves} == set(board.legal_moves)
    after = board.copy()
    for text in snapshot.pv_pdn:
        after.push_pdn(text)
    assert tuple(after.move_stack[board.ply :]) == snapshot.pv
    assert snapshot.turn is Color.WHITE
    assert snapshot.black_wdl == snapshot.wdl[::-1]
    assert snapshot.black_value == -snapshot.value


def test_a_search_is_seen_while_it_goes_on(table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinker_module, "LOOK", 0.0)
    player = SteppedPlayer()
    thinker = table(first=player)
    assert thinker.thinker.snapshot is None
    thinker.thinker.request(Board(), NETWORK)
    for step in range(1, 10):
        player.allowed.release()
        until(lambda step=step: thinker.thinker.snapshot.count == step)
        snapshot = thinker.thinker.snapshot
        assert (snapshot.status, snapshot.move, snapshot.progress) == ("thinking", None, step / 10)
        assert thinker.thinker.busy
    player.allowed.release()
    assert (thinker.wait().status, thinker.wait().count) == ("done", 10)


def test_cancelling_is_immediate_and_the_search_makes_no_further_step(table) -> None:
    """The window sees it in the same instant, though the search is in the middle of a step."""
    player, second = SteppedPlayer(), SteppedPlayer()
    thinker = table(first=player, other=second)
    thinker.thinker.request(Board(), NETWORK)
    assert player.entered.acquire(timeout=PATIENCE)  # inside the first step, and it stays there
    thinker.thinker.cancel()
    stopped = thinker.thinker.snapshot
    assert (stopped.status, stopped.move, stopped.busy, thinker.thinker.busy) == ("stopped", None, False, False)
    thinker.thinker.cancel()
    second.allowed.release(10)
    thinker.thinker.request(Board(), OTHER)
    player.allowed.release(10)
    assert thinker.wait().number == 2
    assert player.total == 1


def test_a_cancelled_search_cannot_come_back(table) -> None:
    """It is cancelled at the last moment, after the search, while its move is being asked for."""
    player = SteppedPlayer()
    player.allowed.release(20)
    thinker = table(first=player)
    search = SteppedSearch.choose

    class Late(SteppedSearch):
        def choose(self) -> Move:
            thinker.thinker.cancel()
            return search(self)

    player.begin = lambda board, purpose="move": Late(board, player)  # type: ignore[method-assign]
    thinker.thinker.request(Board(), NETWORK)
    until(lambda: player.total == 10 and not thinker.thinker.busy)
    assert thinker.thinker.snapshot.status == "stopped"
    thinker.thinker.request(Board("B:W18,32:B14,K1"), NETWORK)  # the thread has left the first behind now
    assert thinker.wait().number == 2
    assert thinker.thinker.snapshot.move == Board("B:W18,32:B14,K1").legal_moves[0]


def test_a_slice_of_a_real_search_is_short() -> None:
    """A cancelled search ends soon, because slices are short and a step has at most one evaluation."""
    assert thinker_module.SLICE <= 0.025
    assert search_player_module._SLICE <= 512


def test_a_new_request_takes_the_place_of_the_old(table) -> None:
    player, second = SteppedPlayer(), SteppedPlayer()
    thinker = table(first=player, other=second)
    thinker.thinker.request(Board(), NETWORK)
    assert player.entered.acquire(timeout=PATIENCE)
    numbers = [thinker.thinker.request(Board(), OTHER, "hint") for _ in range(5)]
    assert numbers == [2, 3, 4, 5, 6]
    assert (thinker.thinker.snapshot.number, thinker.thinker.snapshot.status) == (6, "loading")
    player.allowed.release(10)
    second.allowed.release(10)
    snapshot = thinker.wait()
    assert (snapshot.number, snapshot.status, snapshot.mode) == (6, "done", "hint")
    assert (player.total, second.total) == (1, 10)  # the four between were never begun


def test_the_board_may_go_on_while_it_is_thought_about(table) -> None:
    player, board = SteppedPlayer(), Board()
    thinker = table(first=player)
    thinker.thinker.request(board, NETWORK)
    assert player.entered.acquire(timeout=PATIENCE)
    board.push(board.legal_moves[0])
    player.allowed.release(10)
    assert thinker.wait().fen == Board().fen()
    assert thinker.wait().move in Board().legal_moves


def test_moving_now_plays_the_best_so_far(table) -> None:
    player = SteppedPlayer()
    thinker = table(first=player)
    thinker.thinker.move_now()
    thinker.thinker.request(Board(), NETWORK)
    assert player.entered.acquire(timeout=PATIENCE)
    thinker.thinker.move_now()
    player.allowed.release(10)
    snapshot = thinker.wait()
    assert (snapshot.status, snapshot.count, snapshot.move) == ("done", 1, Board().legal_moves[1])


@pytest.mark.parametrize(("own", "clock_left", "steps"), [(3.0, None, 3), (9.0, 2.0, 2), (2.0, 9.0, 2), (None, 4.0, 4)])
def test_time_limits(table, own: float | None, clock_left: float | None, steps: int) -> None:
    """Every step takes a second of a simulated clock; the shorter of two limits counts."""
    now = [100.0]
    player = SteppedPlayer()
    player.after_step = lambda: now.__setitem__(0, now[0] + 1.0)
    player.allowed.release(10)
    thinker = table(clock=lambda: now[0], first=player)
    spec = NETWORK if own is None else NETWORK.changed(timed=True, seconds=own)
    thinker.thinker.request(Board(), spec, seconds=clock_left)
    snapshot = thinker.wait()
    assert (snapshot.count, snapshot.seconds, snapshot.per_second) == (steps, float(steps), 1.0)
    assert player.planning_s == steps / 2  # what it may plan before the first step counts as well
    assert snapshot.move is not None


def test_an_analysis_has_no_end_of_its_own_and_no_move(table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_player_module, "ANALYSIS", 300)
    thinker = table(first=network)
    thinker.thinker.request(Board(), NETWORK.changed(timed=True, seconds=0.05), "analyse", seconds=0.0)
    snapshot = thinker.wait()
    assert (snapshot.status, snapshot.count, snapshot.move, snapshot.progress) == ("done", 300, None, None)
    assert snapshot.moves


def test_a_forced_move_is_played_without_a_player(table) -> None:
    board = Board("B:W18,32:B14,K1")
    thinker = table()
    thinker.thinker.request(board, NETWORK)
    snapshot = thinker.wait()
    assert (snapshot.status, snapshot.move, snapshot.pv_pdn) == ("done", board.legal_moves[0], ("14x23",))
    assert thinker.made == []


def test_hints_and_analyses_do_not_vary_as_the_opponent_does_and_mind_no_draws(table) -> None:
    thinker, varied = table(first=network), NETWORK.changed(vary=True, search=SearchConfig(draw_value=-0.4))
    for mode in ("hint", "analyse", "play"):
        thinker.thinker.request(Board("W:W32:BK1,K5"), varied, mode)
        until(lambda: len(thinker.made) == (2 if mode == "play" else 1))  # noqa: B023
        thinker.thinker.cancel()
    assert [(spec.vary, spec.search.draw_value) for spec in thinker.made] == [(False, 0.0), (True, -0.4)]


# --- what goes wrong


def failing(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PlayerError("bad\n  luck"), "Crownhead: bad luck"),
        (OSError("no such file"), "Crownhead: no such file"),
        (ZeroDivisionError("by zero"), "Crownhead: ZeroDivisionError: by zero"),
        (SystemExit(), "Crownhead: SystemExit: SystemExit"),
        (MemoryError("x" * 999), "Crownhead: MemoryError: " + "x" * 176),
    ],
)
def test_a_player_that_crashes_is_reported_in_one_line_and_made_anew(table, error: BaseException, text: str) -> None:
    crashing, sound = SteppedPlayer(), SteppedPlayer()
    crashing.after_step = failing(error)
    players = [crashing, sound]
    thinker = table(first=lambda: players.pop(0))
    for player in (crashing, sound):
        player.allowed.release(10)
    thinker.thinker.request(Board(), NETWORK)
    snapshot = thinker.wait()
    assert (snapshot.status, snapshot.move, snapshot.error) == ("failed", None, text)
    assert crashing.closed.wait(PATIENCE)
    thinker.thinker.request(Board(), NETWORK)
    assert thinker.wait().status == "done"
    assert not sound.closed.is_set()


def test_a_player_that_cannot_be_made_is_reported_and_tried_again(table) -> None:
    thinker = table(first=PlayerError("'x' is no checkpoint"))
    for _ in range(2):
        thinker.thinker.request(Board(), NETWORK)
        assert thinker.wait().error == "Crownhead: 'x' is no checkpoint"
    assert len(thinker.made) == 2
    thinker.thinker.request(Board(), NETWORK.changed(kind="external", command="/opt/engine --fast"))
    assert thinker.wait().error.startswith("engine: external engine: not available here")


@pytest.mark.parametrize("move", [Move(1, 2), Move(11, 15, (), (11, 8, 15)), Move(22, 18), None])
def test_an_illegal_move_is_refused(table, move: Move | None) -> None:
    def answer(board: Board) -> list[Move]:
        return [move]

    plain, stepped = PlainPlayer(answer), SteppedPlayer()
    plain.go.set()
    stepped.choice = move
    stepped.allowed.release(10)
    thinker = table(first=plain, other=stepped)
    for spec in (NETWORK, OTHER) if move else (NETWORK,):
        thinker.thinker.request(Board(), spec)
        snapshot = thinker.wait()
        assert (snapshot.status, snapshot.move) == ("failed", None)
        assert "it played an illegal move" in snapshot.error
        assert "\n" not in snapshot.error


@pytest.mark.parametrize("count", [0, 2])
def test_a_wrong_number_of_moves_is_refused(table, count: int) -> None:
    plain = PlainPlayer(lambda board: board.legal_moves[:count])
    plain.go.set()
    thinker = table(first=plain)
    thinker.thinker.request(Board(), NETWORK)
    assert thinker.wait().error == f"Crownhead: it answered with {count} moves, not one"


def test_a_game_that_is_over_costs_no_player(table) -> None:
    thinker = table()
    thinker.thinker.request(Board("B:W21:B"), NETWORK)
    assert "no legal move" in thinker.wait().error
    assert thinker.made == []


def test_a_player_that_hangs_is_left_alone_and_closed(table) -> None:
    plain, stepped = PlainPlayer(lambda board: board.legal_moves[:1]), SteppedPlayer()
    stepped.allowed.release(10)
    thinker = table(first=plain, other=stepped)
    thinker.thinker.request(Board(), NETWORK)
    assert plain.asked.wait(PATIENCE)
    assert thinker.thinker.snapshot.status in ("loading", "thinking")
    thinker.thinker.request(Board(), OTHER)
    assert thinker.wait().status == "done"  # while the other still hangs
    assert plain.closed.wait(PATIENCE)
    plain.go.set()


def test_what_cannot_be_watched_plays_but_does_not_analyse(table) -> None:
    plain = PlainPlayer(lambda board: board.legal_moves[2:3])
    plain.go.set()
    thinker = table(first=plain)
    thinker.thinker.request(Board(), NETWORK, "analyse")
    assert "cannot analyse" in thinker.wait().error
    thinker.thinker.request(Board(), NETWORK)
    assert thinker.wait().move == Board().legal_moves[2]
    assert thinker.wait().moves[0].pdn == Board().pdn(Board().legal_moves[2])
    thinker.thinker.request(Board(), NETWORK, "report")
    until(lambda: not thinker.thinker.busy)
    assert "cannot analyse" in thinker.thinker.review.error
    assert len(thinker.made) == 1


def test_loading_holds_nothing_up_and_is_not_done_twice(table) -> None:
    go, stepped = threading.Event(), SteppedPlayer()

    def slow() -> SearchPlayer:
        assert go.wait(PATIENCE)
        return network()

    thinker = table(first=slow, other=stepped)
    stepped.allowed.release(10)
    thinker.thinker.request(Board(), NETWORK)
    until(lambda: len(thinker.made) == 1)
    assert thinker.thinker.snapshot.status == "loading"
    thinker.thinker.request(Board(), OTHER)
    assert thinker.wait().status == "done"
    thinker.thinker.request(Board(), NETWORK)
    assert thinker.thinker.snapshot.status == "loading"
    go.set()
    assert thinker.wait().status == "done"
    assert len(thinker.made) == 2


def test_few_players_are_kept_and_the_others_closed(table) -> None:
    players = {f"p{i}": SteppedPlayer() for i in range(6)}
    for player in players.values():
        player.allowed.release(10)
    thinker = table(**players)
    for name in players:
        thinker.thinker.request(Board(), OpponentSpec(checkpoint=name))
        assert thinker.wait().status == "done"
    assert [player.closed.is_set() for player in players.values()] == [True, True, False, False, False, False]
    thinker.thinker.close()
    assert all(player.closed.wait(PATIENCE) for player in players.values())


def test_forgetting_and_closing(table) -> None:
    player = SteppedPlayer()
    thinker = table(first=player)
    thinker.thinker.request(Board(), NETWORK)
    assert player.entered.acquire(timeout=PATIENCE)
    thinker.thinker.forget()
    assert (thinker.thinker.snapshot, thinker.thinker.review, thinker.thinker.busy) == (None, None, False)
    player.allowed.release(10)
    thinker.thinker.close()
    thinker.thinker.close()
    assert thinker.thinker.snapshot is None
    with pytest.raises(RuntimeError, match="closed"):
        thinker.thinker.request(Board(), NETWORK)


def test_a_player_prepared_is_made_once_and_at_once_there() -> None:
    made: list[OpponentSpec] = []
    player = SteppedPlayer()
    player.allowed.release(20)

    def make(spec: OpponentSpec) -> SteppedPlayer:
        made.append(spec)
        return player

    thinker = Thinker(Opponents(make))
    thinker.prepare(NETWORK)
    until(lambda: len(made) == 1)
    assert thinker.snapshot is None
    assert not thinker.busy
    number = thinker.request(Board(), NETWORK)
    until(lambda: thinker.snapshot is not None and thinker.snapshot.status == "done")
    assert thinker.snapshot is not None
    assert (thinker.snapshot.number, len(made)) == (number, 1)
    thinker.prepare(OTHER)
    thinker.close()
    assert player.closed.wait(PATIENCE)


def test_an_answer_wakes_the_window() -> None:
    woken = threading.Event()
    thinker = Thinker(Opponents(), wake=woken.set)
    thinker.request(Board(), OpponentSpec(kind="random"))
    assert woken.wait(PATIENCE)
    assert thinker.snapshot is not None
    assert thinker.snapshot.status == "done"
    thinker.close()
