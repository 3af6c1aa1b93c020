"""Time controls, dividing a clock's time among moves, and the referee's clock with players of known speed."""

import math
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.board import Board, Move
from engine.hub.level import Level
from engine.players import AlphaBetaPlayer, HubPlayer, RandomPlayer, RolloutPlayer
from engine.players.search_player import SearchPlayer
from engine.players.time_control import TimeControl, TimeControlError, give_time, move_budget, search_time
from engine.search import LockstepSearch, SearchConfig, UniformEvaluator
from selfplay.games.openings import make_openings
from selfplay.matches.match import Running, play_games
from selfplay.matches.record import FLAG, FORFEIT, MoveNote
from selfplay.matches.referee import GRACE_S, Answer, ask_timed

START = make_openings("random:2", 1, 3)


@pytest.mark.parametrize("text", ["-", "1/10", "1/0.1", "300+3", "60+0", "0.5+0.02", "36000.25+0", "1/12345.678"])
def test_it_is_written_as_it_is_read(text: str) -> None:
    assert str(TimeControl.parse(text)) == text


def test_a_clock_without_increment() -> None:
    assert TimeControl.parse("300") == TimeControl("fischer", 300.0, 0.0)


@pytest.mark.parametrize("text", ["5 min", "1/", "+3", "3+", "0", "1/0", "100000", "60+100000", "1e3", "-5"])
def test_nonsense_is_no_time_control(text: str) -> None:
    with pytest.raises(TimeControlError, match="clock"):
        TimeControl.parse(text)


def test_budget() -> None:
    assert move_budget(TimeControl(), 0.0, 3) is None
    assert move_budget(TimeControl("move", 0.7), 0.0, 3) == 0.7
    clock = TimeControl("fischer", 60.0, 1.0)
    assert move_budget(clock, 60.0, 0) == pytest.approx(59.97 / 40 + 0.8)
    assert move_budget(clock, 60.0, 100) == pytest.approx(59.97 / 15 + 0.8)
    assert move_budget(clock, 1.03, 10) == pytest.approx(0.5)  # not more than half of what there is
    assert move_budget(clock, 0.0, 10) == 0.001


def test_a_move_is_searched_for_less_than_its_time() -> None:
    assert search_time(0.1) == pytest.approx(0.097)
    assert search_time(0.002) == pytest.approx(0.0015)


@given(st.floats(0.2, 600), st.floats(0, 20), st.integers(1, 400))
def test_who_keeps_to_the_budget_never_loses_on_time(base: float, increment: float, moves: int) -> None:
    control, left = TimeControl("fischer", base, increment), base
    for made in range(moves):
        budget = move_budget(control, left, made)
        assert budget is not None
        left -= budget
        assert left >= -0.001
        left = max(0.0, left) + increment
    assert left >= 0


def test_players_are_told_in_their_own_way() -> None:
    clock = TimeControl("fischer", 30.0, 0.5)
    alphabeta = AlphaBetaPlayer(4, 9.0, table_slots=0)
    budget = give_time(alphabeta, clock, 20.0, 10)
    assert alphabeta.seconds == budget == move_budget(clock, 20.0, 10)
    engine = HubPlayer("true", 1.0)
    give_time(engine, clock, 0.2, 10)
    assert engine._level == {"time": -0.3, "inc": 0.5}
    assert Level(time=-0.3, inc=0.5).seconds(10) == move_budget(clock, 0.2, 10)  # our own engine understands it so
    give_time(engine, clock, 20.0, 10)
    assert engine._level == {"time": 19.5, "inc": 0.5}
    assert 20 < engine.patience < 30
    assert [give_time(player, clock, 20.0, 10) for player in (RandomPlayer(), RolloutPlayer(5))] == [None, None]
    untimed = AlphaBetaPlayer(4, table_slots=0)
    give_time(untimed, TimeControl(), 0.0, 0)
    assert untimed.seconds is None


class Sleeper:
    """Plays the first move after a time that depends on the number of moves it has made."""

    def __init__(self, name: str, *seconds: float) -> None:
        self.name = name
        self._seconds = seconds
        self.made = 0

    def seed(self, seed: int) -> None:
        self.made = 0

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        assert len(boards) == 1
        time.sleep(self._seconds[min(self.made, len(self._seconds) - 1)])
        self.made += 1
        return [boards[0].legal_moves[0]]


def test_a_fallen_flag_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("selfplay.matches.referee.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.append(now.pop() + seconds))
    control = TimeControl("fischer", 0.3, 0.0)
    slow, quick = Sleeper("slow", 0.0, 0.0, 0.5), Sleeper("quick", 0.0)
    game = next(play_games(slow, quick, [(0, START[0])], control=control))
    assert (game.termination, game.score) == (FLAG, 0.0)
    assert game.error is not None
    assert game.error.startswith("slow (Black, ply ")
    assert "loses on time" in game.error
    assert slow.made == 3
    game = next(play_games(quick, Sleeper("slow", 0.5), [(0, START[0])], control=control))
    assert (game.termination, game.score) == (FLAG, 1.0)


@pytest.mark.parametrize(("over", "lost"), [(-0.01, False), (0.9 * GRACE_S, False), (1.1 * GRACE_S, True)])
def test_the_grace_is_small_and_the_clock_does_not_go_below_zero(over: float, lost: bool) -> None:
    game = Running(0, START[0], TimeControl("fischer", 1.0, 0.25), START[0].board.copy())
    turn, ply = game.board.turn, game.board.ply
    game.play(Answer(game.board.legal_moves[0], None, 1.0 + over), "x")
    assert (game.ended is not None) == lost
    assert game.board.ply == ply + (not lost)
    if not lost:
        assert game.clocks[turn] == pytest.approx(0.25 + max(0.0, -over))
        assert game.clocks[turn.other] == 1.0


def test_clocks_are_noted() -> None:
    control = TimeControl("fischer", 5.0, 0.5)
    players = Sleeper("a", 0.02), Sleeper("b", 0.0)
    (game,) = play_games(*players, [(1, START[0])], control=control, max_plies=20)
    assert not game.first_is_black
    assert len(game.notes) == len(game.moves) == 20
    assert game.notes[:2] == (MoveNote(), MoveNote())  # of the opening
    left = [5.0, 5.0]
    for ply, note in enumerate(game.notes[2:]):
        assert note.clock_s is not None
        left[ply % 2] += 0.5 - (note.elapsed_s or 0.0)
        assert note.clock_s == pytest.approx(left[ply % 2])
        if note.elapsed_s is not None and ply % 2 == 1:  # White is the first player in games of odd number
            assert note.elapsed_s >= 0.02
    assert any(note.elapsed_s for note in game.notes)


def test_a_time_for_every_move_does_not_run_out() -> None:
    game = next(
        play_games(
            Sleeper("a", 0.05), Sleeper("b", 0.0), [(0, START[0])], control=TimeControl("move", 0.01), max_plies=9
        )
    )
    assert game.termination == "PLY_CAP"
    assert any((note.elapsed_s or 0.0) >= 0.05 for note in game.notes)
    assert all(note.clock_s is None for note in game.notes)


def test_a_player_that_fails_on_the_clock_forfeits() -> None:
    class Broken(Sleeper):
        def choose(self, boards: Sequence[Board]) -> list[Move]:
            raise RuntimeError("lost")

    game = next(play_games(Broken("a", 0.0), Sleeper("b", 0.0), [(0, START[0])], control=TimeControl("fischer", 9.0)))
    assert (game.termination, game.score) == (FORFEIT, 0.0)


def test_timed_searches_keep_to_their_time_and_say_their_value() -> None:
    player = AlphaBetaPlayer(64, 1.0)
    ask_timed(player, Board(), TimeControl("move", 0.01), 0.0, 0)  # compiles
    answer = ask_timed(player, Board(), TimeControl("move", 0.1), 0.0, 0)
    assert answer.elapsed_s is not None
    assert search_time(0.1) <= answer.elapsed_s < 10.0
    assert answer.value is not None
    assert -1 < answer.value < 1
    circle = Board("B:W6,7,14,15:BK2")  # two ways of taking all four
    assert len(circle.distinct_moves) == 1
    assert (ask_timed(player, circle, TimeControl("move", 60.0), 0.0, 0).elapsed_s or 0.0) < 10.0


def test_to_begin_a_search_is_a_part_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    player, clock, given = AlphaBetaPlayer(2), [0.0], []
    monkeypatch.setattr("selfplay.matches.referee.time.perf_counter", lambda: clock[0])
    begin = player.begin

    def slow(board: Board) -> object:
        clock[0] += 0.04
        thinking = begin(board)
        advance = thinking.advance
        monkeypatch.setattr(thinking, "advance", lambda seconds: given.append(seconds) or advance(seconds))
        return thinking

    monkeypatch.setattr(player, "begin", slow)
    ask_timed(player, Board(), TimeControl("move", 0.1), 0.0, 0)
    assert given == [pytest.approx(search_time(0.1) - 0.04)]


@pytest.mark.parametrize("seconds", [None, 0.05])
def test_the_time_of_several_boards_is_also_that_of_their_plans(
    seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conversions were planned without a limit, before the time of the search began."""
    until = list[float]()
    monkeypatch.setattr(LockstepSearch, "plan_until", lambda search, deadline: until.append(deadline))
    begun = time.perf_counter()
    SearchPlayer("test", UniformEvaluator(), SearchConfig(num_simulations=8), seconds=seconds).choose([Board()] * 3)
    assert len(until) == 1
    if seconds is None:
        assert until == [math.inf]
    else:
        assert begun + 1.5 * seconds <= until[0] <= time.perf_counter()
