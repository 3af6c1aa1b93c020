"""A game in play without a window: whose turn, clocks that go on while one looks back, draw offers, endings."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from programs import PATIENCE, until

from engine.board import Board, Move
from engine.fen import Color
from engine.players import AlphaBetaPlayer
from engine.players.base import PlayerError
from engine.players.pondering import PonderingPlayer
from engine.players.search_player import SearchPlayer
from engine.players.time_control import TimeControl
from engine.players.watching import Purpose
from engine.search import SearchConfig, UniformEvaluator
from gui.game.autosave import Autosave
from gui.game.controller import GameController
from gui.game.draw_offers import answer_offer
from gui.game.endgame_info import EndgameInfo, Exact, Verdict
from gui.game.messages import Message
from gui.game.opponents import Opponents, OpponentSpec
from gui.game.plan import BOTH, GamePlan, PlayerNames
from gui.game.seats import take_up
from gui.game.snapshot import Mode
from gui.game.thinker import Thinker
from gui.views.game_facts import player_state

DEEP = OpponentSpec(kind="rollout", timed=True, seconds=600)
RANDOM = OpponentSpec(kind="random")


class Game:
    """A controller with a clock that is set by hand."""

    def __init__(self, folder: Path, opponents: Opponents | None = None) -> None:
        self.now = 0.0
        self.thinker, self.endgame = Thinker(opponents or Opponents()), EndgameInfo()
        self.autosave = Autosave(folder)
        self.controller = GameController(
            self.thinker, self.endgame, self.autosave, ("random", "rollout", "alphabeta"), lambda: self.now
        )

    def start(self, *humans: Color, spec: OpponentSpec = RANDOM, clock: str = "-") -> GameController:
        self.controller.start(GamePlan(frozenset(humans), dict.fromkeys(Color, spec), control=TimeControl.parse(clock)))
        return self.controller

    def move(self, text: str, seconds: float = 0.0) -> None:
        self.now += seconds
        self.controller.make(self.controller.session.board.parse_pdn(text))

    def tick_until_moves(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(self.controller.session.nodes) < count:
            assert time.monotonic() < deadline
            self.controller.tick()
            time.sleep(0.002)

    def left(self) -> tuple[float | None, float | None]:
        return self.controller.clock.remaining(Color.BLACK), self.controller.clock.remaining(Color.WHITE)

    def close(self) -> None:
        self.thinker.close()
        self.endgame.close()
        self.autosave.close()


@pytest.fixture
def game(tmp_path: Path) -> Iterator[Game]:
    with contextlib.closing(Game(tmp_path)) as made:
        yield made


def test_looking_back_leaves_the_clocks_alone_and_taking_back_sets_them(game: Game) -> None:
    controller = game.start(*Color, clock="300+2")
    game.move("11-15", seconds=10)
    game.move("22-18", seconds=20)
    assert game.left() == (292, 282)
    controller.go_to(0)
    game.now += 5
    assert game.left() == (287, 282)  # Black is to move and goes on thinking
    controller.go_to(2)
    assert game.left() == (287, 282)
    controller.undo()
    assert game.left() == (292, 300)  # as after 11-15, White to move
    game.now += 7
    game.move("23-19")
    assert game.left() == (292, 295)
    controller.go_to(0)
    controller.redo()
    assert game.left() == (292, 300)  # as noted after the first move


def test_a_search_goes_on_where_there_is_nothing_else_to_look_at(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = game.start(Color.BLACK, spec=DEEP)
    game.move("11-15")
    controller.tick()
    assert controller.thinking
    with monkeypatch.context() as patched:
        patched.delattr(Thinker, "cancel")
        controller.go_to(2)  # the end of the game is shown already
        controller.turn_to_variation()
    assert controller.thinking
    assert controller.notice == "no other move was made here"


def test_after_a_loss_on_time_variations_are_played(game: Game) -> None:
    controller = game.start(*Color, clock="1/5")
    game.move("11-15", seconds=1)
    game.now += 6
    controller.tick()
    assert controller.session.finished
    controller.go_to(0)
    for text in ("12-16", "22-18", "16-20"):
        game.move(text, seconds=9)
        controller.tick()
    assert controller.session.texts == ["12-16", "22-18", "16-20"]
    assert controller.session.ending is None


def test_a_flag_falls_in_the_game_not_in_a_line_that_is_looked_at(game: Game) -> None:
    controller = game.start(*Color, clock="1/5")
    game.move("11-15", seconds=1)
    controller.go_to(0)
    controller.session.keep_line([controller.session.board.parse_pdn("12-16")])
    game.now += 9
    controller.tick()
    assert not controller.session.finished
    assert controller.session.turn_to_variation()
    assert controller.session.on_main_line
    controller.tick()
    assert controller.session.finished
    assert controller.session.texts == ["11-15"]


def test_looking_through_a_variation_leaves_game_and_clocks_alone(game: Game) -> None:
    controller = game.start(*Color, clock="300+2")
    for text, seconds in (("11-15", 10), ("22-18", 20), ("15x22", 0)):
        game.move(text, seconds)
    controller.go_to(1)
    game.move("23-19")
    game.now += 100
    controller.turn_to_variation()
    controller.go_to(3)
    assert controller.browsing  # an agent would not move here
    controller.go_to(2)
    controller.turn_to_variation()
    assert (controller.session.texts, game.left()) == (["11-15", "23-19"], (192, 302))


def test_a_variation_that_ends_leaves_the_clock_of_the_game_running(game: Game) -> None:
    controller = game.start(*Color, clock="300+2")
    board = controller.session.board.copy()
    while board.outcome() is None:
        board.push(board.legal_moves[0])
    game.move("12-16", seconds=10)
    controller.keep_line(board.move_stack)
    assert controller.session.is_over
    assert not controller.session.finished
    game.now += 7
    assert controller.clock.running is Color.WHITE
    assert game.left() == (292, 293)


def test_an_agent_that_lost_on_time_has_time_in_what_is_tried(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    controller, asked = game.start(Color.BLACK, spec=DEEP, clock="1/5"), list[float | None]()
    game.move("11-15")
    controller.paused = True  # so that its flag falls
    controller.clock.start(Color.WHITE)
    game.now += 6
    controller.tick()
    assert controller.session.finished
    controller.paused = False
    controller.go_to(0)
    request = game.thinker.request

    def note(board: Board, spec: OpponentSpec, mode: Mode, seconds: float | None = None) -> int:
        asked.append(seconds)
        return request(board, spec, mode, seconds)

    monkeypatch.setattr(game.thinker, "request", note)
    game.move("9-14")
    controller.tick()
    assert asked == [None]


def test_an_agent_thinks_in_the_time_of_others_only_while_it_plays(tmp_path: Path) -> None:
    class Endless(PonderingPlayer):
        def _search(self, board: Board, purpose: Purpose) -> None:
            self._enough.wait()

    player = Endless(SearchPlayer("search", UniformEvaluator(), SearchConfig(), seconds=0.05))

    def thinks() -> bool:
        return any(thread.name == "ponder" for thread in threading.enumerate())

    with contextlib.closing(Game(tmp_path, Opponents(network=lambda spec: player))) as game:
        for end in (game.controller.resign, game.controller.leave, game.controller.toggle_pause):
            game.start(Color.WHITE, spec=OpponentSpec(kind="network"))
            game.tick_until_moves(1)
            until(thinks, "a search in the other's time")
            end()
            until(lambda: not thinks(), "its end", 60)


def test_a_move_in_an_earlier_position_sets_the_clocks_back(game: Game) -> None:
    controller = game.start(*Color, clock="300+2")
    game.move("11-15", seconds=10)
    game.move("22-18", seconds=20)
    controller.go_to(0)
    game.move("9-14", seconds=4)
    assert controller.session.texts == ["9-14"]
    assert game.left() == (302, 300)
    assert controller.session.nodes[0].clock == 302


def test_the_same_move_again_has_the_clock_of_the_later_try(game: Game) -> None:
    controller = game.start(*Color, clock="300+2")
    game.move("11-15", seconds=10)
    controller.undo()
    game.move("11-15", seconds=25)
    assert game.left() == (277, 300)
    assert controller.session.nodes[0].clock == 277
    controller.resign()
    ended = controller.session.nodes[0].clock
    controller.go_to(0)
    game.move("11-15", seconds=5)  # looking at a game that has ended changes none of its clocks
    assert controller.session.nodes[0].clock == ended


def test_nobodys_time_runs_in_variations_of_a_game_that_has_ended(game: Game) -> None:
    controller = game.start(*Color, clock="300+2")
    game.move("11-15", seconds=10)
    game.move("22-18")
    controller.resign()
    controller.go_to(0)
    game.move("9-14")
    game.now += 400
    controller.tick()
    assert controller.clock.running is None
    assert controller.session.ending is None
    assert controller.session.nodes[0].clock is None


def test_the_clock_that_runs_is_marked_and_a_stop_is_told(game: Game) -> None:
    controller = game.start(*Color, clock="20+2")
    game.move("11-15")
    game.now += 5

    def marked() -> list[bool]:
        return [state.runs for state in (player_state(controller, color) for color in Color)]

    assert marked() == [False, True]
    controller.go_to(0)  # Black is to move there
    assert marked() == [False, True]
    assert [player_state(controller, color).low for color in Color] == [False, True]
    controller.go_to(1)
    controller.toggle_pause()
    assert marked() == [False, False]
    assert controller.message().text == "The clocks stand"
    assert "P" in controller.message().detail
    controller.toggle_pause()
    assert controller.message().text == "White to move"


def test_a_rematch_in_mid_game_says_why_not(game: Game) -> None:
    controller = game.start(*Color)
    controller.rematch()
    assert "end of the game" in controller.notice


def test_the_agents_time_rests_while_it_is_kept_from_moving(game: Game) -> None:
    controller = game.start(Color.BLACK, spec=DEEP, clock="60+0")
    game.move("11-15")
    controller.tick()
    assert controller.thinking == "play"
    controller.go_to(0)
    controller.tick()
    assert controller.thinking == ""
    game.now += 50
    assert game.left() == (60, 60)
    controller.go_to(1)
    controller.tick()
    assert controller.thinking == "play"
    game.now += 1
    assert game.left() == (60, 59)
    controller.toggle_pause()
    game.now += 30
    assert game.left() == (60, 59)
    assert controller.thinking == ""
    controller.toggle_pause()
    game.now += 1
    assert game.left() == (60, 58)


def test_a_refused_move_does_not_press_the_clock(game: Game) -> None:
    controller = game.start(*Color, clock="300+2")
    game.now += 10
    controller.make(Move(22, 18))
    assert controller.alarm
    assert controller.clock.running is Color.BLACK
    assert game.left() == (290, 300)


def test_a_try_after_the_end_says_that_the_game_is_over(game: Game) -> None:
    controller = game.start(*Color)
    game.move("11-15")
    controller.resign()
    controller.tick()
    controller.input.click(22)
    assert controller.message().text == "the game is over: Black wins: White resigned"


def test_a_flag_ends_the_game(game: Game) -> None:
    controller = game.start(*Color, clock="10+0")
    game.move("11-15")
    game.now += 11
    controller.tick()
    assert controller.session.ending is not None
    assert controller.session.ending.text == "Black wins: White ran out of time"
    assert controller.clock.running is None


def test_a_comment_is_the_message_which_has_room_for_it(game: Game) -> None:
    controller = game.start(*Color)
    game.move("11-15")
    game.move("22-18")
    controller.session.annotate(None, comment := "a weak move, " * 20 + "but sound")
    game.move("15x22")
    controller.go_to(2)
    assert controller.message() == Message(comment)
    controller.go_to(1)
    assert controller.message() == Message("White to move", detail="position 1 of 3")
    controller.go_to(0)
    assert controller.message() == Message("Black to move", detail="position 0 of 3")
    controller.session.comments = ["The last game of the match"]
    assert controller.message() == Message("The last game of the match")
    controller.go_to(3)
    controller.session.resign(Color.WHITE)
    controller.session.annotate(None, "White had seen enough")
    assert controller.message() == Message("Black wins: White resigned. White had seen enough", "over")


@pytest.mark.parametrize("resigns", [False, True])
def test_an_older_message_does_not_hide_how_the_game_has_ended(game: Game, resigns: bool) -> None:
    controller = game.start(*Color, clock="10+0")
    game.move("11-15")
    controller.say("Hint: 24-20")
    if resigns:
        controller.resign()
    else:
        game.now += 11
        controller.tick()
    assert controller.message().text == f"Black wins: White {'resigned' if resigns else 'ran out of time'}"


def test_two_agents_play_on_until_paused_and_hands_can_change(game: Game) -> None:
    controller = game.start()
    game.tick_until_moves(4)
    controller.toggle_pause()
    count = len(controller.session.nodes)
    for _ in range(20):
        controller.tick()
        time.sleep(0.002)
    assert len(controller.session.nodes) == count
    turn = controller.session.board.turn
    controller.take_over()
    assert controller.humans == {turn}
    assert controller.session.names[turn] == "Human"
    controller.take_over()
    assert controller.humans == BOTH - {turn}


def test_an_agent_answers_a_draw_offer_by_what_it_thinks(game: Game) -> None:
    controller = game.start(Color.BLACK, spec=OpponentSpec(kind="alphabeta", depth=2))
    game.move("11-15")
    game.tick_until_moves(2)
    controller.shares[controller.session.ply] = (0.2, 0.0, 0.8)  # Black is worse: White plays on
    controller.offer_draw()
    assert controller.session.ending is None
    assert controller.notice == "White declines the draw"
    controller.shares[controller.session.ply] = (0.6, 0.0, 0.4)
    controller.offer_draw()
    assert controller.session.ending is not None
    assert controller.session.ending.text == "Draw: agreed"


def tell(game: Game, monkeypatch: pytest.MonkeyPatch, verdict: Verdict | None) -> None:
    monkeypatch.setattr(game.endgame, "ask", lambda board: verdict)


@pytest.mark.parametrize(("exact", "accepted"), [("draw", True), ("win", True), ("loss", False)])
def test_tables_answer_a_draw_offer_before_the_agent_has_thought(
    game: Game, monkeypatch: pytest.MonkeyPatch, exact: Exact, accepted: bool
) -> None:
    """``exact`` is seen by Black, the person to move; the agent, White, plays on only where it wins."""
    controller = game.start(Color.BLACK, spec=DEEP)
    board = controller.session.board
    tell(game, monkeypatch, Verdict(board.fen(), board.turn, exact))
    controller.offer_draw()
    assert controller.session.is_over is accepted
    assert controller.session.draw_offer is None
    assert (controller.notice == "White declines the draw") is not accepted


def test_an_offer_waits_for_tables_that_are_being_read(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = game.start(Color.BLACK, spec=DEEP)
    controller.shares[0] = (0.1, 0.0, 0.9)  # by which it would decline
    monkeypatch.setattr(game.endgame, "looking_up", lambda board: True)
    controller.offer_draw()
    controller.tick()
    assert controller.session.draw_offer is Color.BLACK
    assert controller.message().text == "Black offers a draw"
    assert "White answers" in controller.message().detail
    board = controller.session.board
    tell(game, monkeypatch, Verdict(board.fen(), board.turn, "draw"))
    controller.tick()
    assert controller.session.is_over


def test_an_offer_waits_until_the_agent_has_a_value(game: Game) -> None:
    controller = game.start(Color.BLACK, spec=OpponentSpec(kind="alphabeta", depth=3))
    controller.offer_draw()
    controller.tick()
    assert controller.session.draw_offer is Color.BLACK
    game.move("11-15")
    assert controller.session.draw_offer is Color.BLACK
    deadline = time.monotonic() + 60
    while controller.session.draw_offer is not None:
        assert time.monotonic() < deadline
        controller.tick()
        time.sleep(0.002)
    score = controller.scores[1]
    assert controller.session.is_over == (score >= 0.5)
    assert len(controller.session.nodes) == (1 if score >= 0.5 else 2) or controller.agent_to_move


def test_an_offer_waits_while_a_variation_is_shown_and_ends_with_a_change_of_sides(game: Game) -> None:
    controller = game.start(*Color)
    for text in ("11-15", "23-19"):
        game.move(text)
    controller.go_to(1)
    game.move("22-18")
    controller.turn_to_variation()
    assert not controller.session.on_main_line
    controller.humans = frozenset({Color.BLACK})
    controller.session.draw_offer = Color.BLACK
    answer_offer(controller)
    assert controller.session.draw_offer is Color.BLACK
    controller.take_over()
    assert controller.session.draw_offer is None


def test_who_knows_no_values_declines(game: Game) -> None:
    controller = game.start(Color.BLACK, spec=RANDOM)
    controller.offer_draw()
    assert controller.session.draw_offer is None
    assert controller.notice == "White declines the draw"


def test_move_now_ends_a_long_search_and_a_hint_is_legal(game: Game) -> None:
    controller = game.start(Color.BLACK, spec=DEEP)
    controller.ask_hint()
    deadline = time.monotonic() + PATIENCE
    while controller.hint is None:
        assert time.monotonic() < deadline
        controller.tick()
        time.sleep(0.002)
    assert controller.session.board.pdn(controller.hint) in controller.notice
    game.move("11-15")
    while not (game.thinker.snapshot is not None and game.thinker.snapshot.count):
        assert time.monotonic() < deadline
        controller.tick()
        time.sleep(0.002)
    controller.move_now()
    game.tick_until_moves(2)


def test_a_thought_is_shown_at_its_position_and_after_its_move_only(game: Game) -> None:
    controller = game.start(*Color)
    start = controller.session.board.copy()
    for text in ("11-15", "23-19"):
        game.move(text)
    controller.tick()
    number = game.thinker.request(start, OpponentSpec(kind="alphabeta", depth=2), "hint")  # as another page does
    deadline = time.monotonic() + PATIENCE
    while game.thinker.snapshot is None or game.thinker.snapshot.number != number or game.thinker.snapshot.busy:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    assert controller.shown_thought() is None
    controller.go_to(1)
    assert controller.shown_thought() is not None
    assert controller.thought() is None
    controller.go_to(0)
    assert controller.thought() is controller.shown_thought() is not None


def test_what_was_thought_of_a_position_is_remembered_with_its_draws(game: Game) -> None:
    def make(_: OpponentSpec) -> SearchPlayer:
        return SearchPlayer("uniform", UniformEvaluator(), SearchConfig(num_simulations=20))

    game.thinker.close()
    game.thinker = game.controller.thinker = Thinker(Opponents(network=make))
    controller = game.start(Color.BLACK, spec=OpponentSpec(kind="network"))
    game.move("11-15")
    game.tick_until_moves(2)
    known = controller.shares[1]
    assert known is not None
    assert sum(known) == pytest.approx(1)
    assert known[0] + known[1] / 2 == pytest.approx(controller.scores[1])
    controller.undo()
    game.move("9-14")
    assert 1 not in controller.shares


def test_a_player_that_fails_stops_the_clocks_and_a_hint_that_fails_leaves_them(game: Game) -> None:
    def gone(_: OpponentSpec) -> AlphaBetaPlayer:
        raise PlayerError("no such engine")

    def tick_until(done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline
            game.controller.tick()
            time.sleep(0.002)

    game.thinker.close()
    game.thinker = game.controller.thinker = Thinker(Opponents(external=gone))
    spec = OpponentSpec(kind="external", command="python dragon.py")
    controller = game.start(Color.BLACK, spec=spec, clock="60")
    tick_until(lambda: bool(controller.notice))  # before the first move
    assert (controller.notice, controller.alarm, controller.paused) == ("dragon: no such engine", True, False)
    game.move("11-15", seconds=1)
    tick_until(lambda: controller.paused)
    assert controller.notice == "dragon: no such engine"
    game.now += 100
    assert game.left() == (59, 60)
    controller.move_now()
    tick_until(lambda: controller.paused)
    controller.take_over()
    assert not controller.paused
    game.now += 1
    assert game.left() == (59, 59)

    controller = game.start(*Color, spec=spec, clock="60")
    controller.kinds = ("network",)  # there is none
    game.move("11-15", seconds=1)
    controller.toggle_pause()
    controller.ask_hint()
    tick_until(lambda: controller.thinking == "" and bool(controller.notice))
    assert (controller.paused, controller.alarm) == (True, True)


def test_a_line_that_is_kept_switches_the_clocks(game: Game) -> None:
    controller = game.start(*Color, clock="60")
    game.move("11-15", seconds=1)
    board = controller.session.board.copy()
    board.push_pdn("22-18")
    controller.keep_line(board.move_stack)
    assert (controller.session.board.turn, controller.clock.running) == (Color.BLACK, Color.BLACK)


def test_an_engine_is_called_what_it_calls_itself(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = OpponentSpec(kind="external", command="python dragon.py")

    def make(_: OpponentSpec) -> AlphaBetaPlayer:
        player = AlphaBetaPlayer(2)
        player.title = "Dragon 4"  # type: ignore[attr-defined]
        return player

    game.thinker.close()
    game.thinker = game.controller.thinker = Thinker(Opponents(external=make))
    controller = game.start(Color.WHITE, spec=spec)
    assert controller.session.names[Color.BLACK] == "dragon"
    game.tick_until_moves(1)
    assert controller.session.names == {Color.BLACK: "Dragon 4", Color.WHITE: "Human"}
    assert '[Black "Dragon 4"]' in controller.session.pdn()
    controller.take_over()
    assert controller.session.names == {Color.BLACK: "Human", Color.WHITE: "Dragon 4"}
    assert game.start(Color.BLACK, spec=spec).session.names[Color.WHITE] == "Dragon 4"


def test_a_forced_move_leaves_the_engines_name_alone() -> None:
    names, spec = PlayerNames(), OpponentSpec(kind="external", command="python dragon.py")
    assert not names.learn(spec, "dragon")
    assert names.learn(spec, "Dragon 4")
    assert not names.learn(spec, "Dragon 4")
    assert not names.learn(spec, "dragon")  # as a move is signed that needed no search
    assert names.of(frozenset(), dict.fromkeys(Color, spec))[Color.WHITE] == "Dragon 4"


def test_a_player_that_takes_long_to_get_ready_says_so(game: Game) -> None:
    made = threading.Event()

    def make(_: OpponentSpec) -> AlphaBetaPlayer:
        assert made.wait(60)
        return AlphaBetaPlayer(2)

    game.thinker.close()
    game.thinker = game.controller.thinker = Thinker(Opponents(network=make))
    controller = game.start(Color.WHITE, spec=OpponentSpec())
    controller.tick()
    assert controller.message().text == "Black is thinking"  # most players are there at once
    game.now += 1
    controller.tick()
    assert controller.message().text == "Getting ready"
    assert "first start" in controller.message().detail
    assert controller.thinker.snapshot is not None
    known = controller.thinker.snapshot
    controller.thinker.snapshot = replace(known, status="thinking")
    assert controller.message().text == "Getting ready"  # there, but without a simulation yet
    controller.thinker.snapshot = replace(known, status="thinking", count=1)
    assert controller.message().text == "Black is thinking"
    controller.thinker.snapshot = known
    made.set()
    game.tick_until_moves(1)


def test_an_engine_that_is_started_is_not_said_to_think(game: Game) -> None:
    """It needs to report no counts, but its clock stands while it is started."""
    started = threading.Event()

    def start(_: OpponentSpec) -> AlphaBetaPlayer:
        assert started.wait(PATIENCE)
        return AlphaBetaPlayer(2)

    game.thinker.close()
    game.thinker = game.controller.thinker = Thinker(Opponents(external=start))
    controller = game.start(Color.WHITE, spec=OpponentSpec(kind="external", command="engine"))
    controller.tick()
    game.now += 1
    assert controller.message().text == "Getting ready"
    assert controller.thinker.snapshot is not None
    known = controller.thinker.snapshot
    controller.thinker.snapshot = replace(known, status="thinking")
    assert controller.message().text == "Black is thinking"
    controller.thinker.snapshot = known
    started.set()
    game.tick_until_moves(1)


def test_an_agent_that_is_being_made_does_not_lose_on_time(tmp_path: Path) -> None:
    ready = threading.Event()

    def slow(spec: OpponentSpec) -> AlphaBetaPlayer:
        ready.wait(PATIENCE)
        return AlphaBetaPlayer(2)

    with contextlib.closing(Game(tmp_path, Opponents(network=slow))) as game:
        controller = game.start(Color.BLACK, spec=OpponentSpec(kind="network"), clock="1/5")
        game.move("11-15", seconds=1)
        controller.tick()
        controller.tick()
        game.now += 60  # the first start compiles the search
        controller.tick()
        assert controller.session.ending is None
        ready.set()
        game.tick_until_moves(2)
        assert not controller.clock.paused
        game.now += 6
        controller.tick()
        assert controller.session.ending is not None
        assert controller.session.ending.reason == "Black ran out of time"


def test_a_game_that_was_taken_back_is_continued_with_the_clocks_of_its_end(game: Game, tmp_path: Path) -> None:
    controller = game.start(*Color, clock="300+0")
    for text, seconds in (("11-15", 10), ("22-18", 20), ("15x22", 100), ("25x18", 150)):
        game.move(text, seconds)
    controller.tick()
    for _ in range(3):
        controller.undo()
    assert game.left() == (290, 300)
    controller.leave()
    controller.save()
    game.autosave.flush()
    (path,) = tmp_path.glob("*.pdn")
    take_up(controller, path, GamePlan())
    assert controller.session.ply == 4
    assert game.left() == (190, 130)


@pytest.mark.parametrize("goes_on", [GameController.toggle_pause, GameController.move_now])
def test_an_agent_moves_after_a_pause_in_which_its_position_was_analysed(
    game: Game, goes_on: Callable[[GameController], None]
) -> None:
    controller = game.start(Color.BLACK, spec=OpponentSpec(kind="rollout", rollouts=5))
    game.move("11-15")
    controller.toggle_pause()
    controller.toggle_analysis()
    controller.tick()
    assert controller.thinking == "analyse"
    goes_on(controller)
    game.tick_until_moves(2)


def test_an_offer_during_a_pause_does_not_promise_an_answer(game: Game) -> None:
    controller = game.start(Color.BLACK, spec=DEEP)
    game.move("11-15")
    controller.toggle_pause()
    controller.offer_draw()
    controller.tick()
    assert controller.message().text == "Black offers a draw"
    assert controller.message().detail == "Move now goes on"


def test_the_message_tells_that_an_agent_moves_for_a_person(game: Game) -> None:
    controller = game.start(Color.BLACK, spec=DEEP)
    controller.move_now()
    controller.tick()
    assert controller.thinking == "play"
    assert controller.message().text == "Black is thinking"
