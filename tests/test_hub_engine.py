"""The Hub server: driven line by line, by our own client and by pydraughts."""

import io
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import draughts
import pytest
from draughts.engine import HubEngine, Limit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import PATIENCE
from test_watching import search_player

from engine.board import Board, Move
from engine.hub.level import Level
from engine.hub.messages import Message, parse_message
from engine.hub.notation import format_pos, parse_move, play_moves, turned_pos
from engine.hub.params import Param, Value
from engine.hub.server import PlayerMaker, serve
from engine.hub.thinking import Mode, Search, answer
from engine.players import AlphaBetaPlayer, HubPlayer, Player, Purpose, RandomPlayer, RolloutPlayer
from engine.players.alphabeta import Deepening
from engine.players.search_player import SearchPlayer, TreeSearch
from engine.search import LockstepSearch, SearchConfig, UniformEvaluator
from selfplay.games.openings import Opening, make_openings
from selfplay.matches.match import play_match

ROOT = Path(__file__).parent.parent
DEPTH = Param("depth", 4, "int", 1, 64)
ENGINE = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from engine.hub.params import Param
from engine.hub.server import serve
from engine.players import AlphaBetaPlayer

serve(
    lambda values: AlphaBetaPlayer(values["depth"]),
    sys.stdin,
    sys.stdout,
    version="1.2",
    params=[Param("depth", 4, "int", 1, 64)],
)
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An executable file that serves alpha-beta."""
    path = tmp_path_factory.mktemp("hub") / "engine"
    path.write_text(ENGINE)
    path.chmod(0o755)
    return str(path)


class Talk:
    """The other side of a server, which runs in a thread."""

    def __init__(self, make_player: PlayerMaker, params: Sequence[Param] = (DEPTH,)) -> None:
        to_server, to_us = os.pipe(), os.pipe()
        self._input, self._output = os.fdopen(to_server[1], "w"), os.fdopen(to_us[0])
        self._theirs: list[TextIO] = [os.fdopen(to_server[0]), os.fdopen(to_us[1], "w")]
        self._thread = threading.Thread(target=self._serve, args=(make_player, params), daemon=True)
        self._thread.start()
        self.passed: list[Message] = []

    def _serve(self, make_player: PlayerMaker, params: Sequence[Param]) -> None:
        try:
            serve(make_player, *self._theirs, params=params)
        finally:
            self._theirs[1].close()

    def send(self, *lines: str) -> None:
        for line in lines:
            self._input.write(line + "\n")
        self._input.flush()

    def until(self, command: str) -> Message:
        """The next line with a command; those before it are in ``passed``."""
        self.passed = []
        while line := self._output.readline():
            message = parse_message(line)
            if message.command == command:
                return message
            self.passed.append(message)
        raise EOFError(command)

    def done(self, *lines: str) -> dict[str, str]:
        self.send(*lines)
        return self.until("done").args

    def end_of_input(self) -> str:
        """Closes the server's input and returns the rest of its output."""
        self._input.close()
        return self._output.read()

    def close(self) -> None:
        if not self._input.closed:
            self.send("quit")
            self._input.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        for stream in (self._output, *self._theirs):
            stream.close()


@pytest.fixture
def talks() -> Iterator[Callable[..., Talk]]:
    made: list[Talk] = []

    def talk(make_player: PlayerMaker = lambda _: AlphaBetaPlayer(4), params: Sequence[Param] = (DEPTH,)) -> Talk:
        made.append(Talk(make_player, params))
        return made[-1]

    yield talk
    for one in made:
        one.close()


Talks = Callable[..., Talk]


# Getting ready


def test_the_handshake_does_not_wait_for_the_player(talks: Talks) -> None:
    made, values = threading.Event(), []

    def make_player(given: Mapping[str, object]) -> Player:
        values.append(dict(given))
        assert made.wait(PATIENCE)
        return RandomPlayer()

    talk = talks(make_player)
    talk.send("hub")
    talk.until("wait")
    assert talk.passed[0] == Message("id", {"name": "Crownhead"})
    declared = {message.args["name"]: message.args for message in talk.passed[1:]}
    assert list(declared) == ["variant", "positions", "depth"]
    assert declared["variant"]["values"] == "english"
    talk.send("set-param name=variant value=english", "set-param name=depth value=9", "init", "ping")
    talk.until("pong")
    assert talk.passed == []
    made.set()
    talk.until("ready")
    talk.send("init")
    talk.until("ready")
    assert values == [{"depth": 9}]


def test_a_player_that_cannot_be_made_is_told_of_and_tried_again(talks: Talks) -> None:
    failures = [ValueError("no such\nnetwork"), OSError(2, "gone")]

    def make_player(_: Mapping[str, object]) -> Player:
        if failures:
            raise failures.pop(0)
        return RandomPlayer()

    talk = talks(make_player)
    talk.send("init")
    talk.until("ready")
    assert talk.passed == [Message("error", {"message": "no such network"})]
    assert talk.done("go think") == {}
    assert "gone" in talk.passed[0].args["message"]
    assert "move" in talk.done("go think")


def test_changed_parameters_make_a_new_player_and_close_the_old(talks: Talks) -> None:
    events: list[object] = []

    class Closing(RandomPlayer):
        def close(self) -> None:
            events.append("closed")

    def make_player(values: Mapping[str, object]) -> Player:
        events.append(values["depth"])
        return Closing()

    talk = talks(make_player)
    talk.done("init", "go think")
    talk.done("set-param name=depth value=5", "set-param name=positions value=turned", "go think")
    talk.done("go think")
    talk.close()
    assert events == [4, "closed", 5, "closed"]


def test_identity(talks: Talks) -> None:
    output = io.StringIO()
    serve(lambda _: RandomPlayer(), io.StringIO("hub\nquit\n"), output, version="2 b")
    assert output.getvalue().splitlines()[0] == 'id name=Crownhead version="2 b"'


# Searching


@pytest.mark.parametrize("maker", [AlphaBetaPlayer, RolloutPlayer, search_player])
@pytest.mark.parametrize("level", ["", "depth=3", "move-time=0.1", "nodes=300", "time=1 inc=0.1 moves=10"])
def test_every_player_moves_at_every_level(talks: Talks, maker: Callable[[int], Player], level: str) -> None:
    talk = talks(lambda _: maker(6))
    assert talk.done(f"level {level}", 'pos start moves="11-15 22-18"', "go think")["move"] == "15x22x18"  # forced
    done = talk.done('pos start moves="11-15 22-18 15x22x18"', "go think")
    board = play_moves(Board(), ["11-15", "22-18", "15x22"])
    info = talk.passed[-1].args
    assert info["pv"].split()[0] == done["move"]
    assert set(info) >= {"depth", "score", "nodes", "time", "nps", "pv"}
    if (seconds := float(info["time"])) > 0.05:  # nps is told to one node in a second
        assert float(info["nps"]) * 1e6 * seconds == pytest.approx(int(info["nodes"]), rel=0.05, abs=1 + seconds)
    play_moves(board.copy(), info["pv"].split())
    play_moves(board, [done["move"], *([done["ponder"]] if "ponder" in done else [])])


def test_levels_hold(talks: Talks) -> None:
    talk = talks(lambda _: AlphaBetaPlayer(2))
    talk.done("init", "level depth=7", "go think")
    assert talk.passed[-1].args["depth"] == "7"
    talk.done("level nodes=20000", "go think")
    assert 20_000 <= int(talk.passed[-1].args["nodes"]) < 60_000
    begun = time.monotonic()
    talk.done("level move-time=0.4", "go think")
    assert 0.35 < time.monotonic() - begun < 60
    assert len([message for message in talk.passed if message.command == "info"]) >= 2
    talk.done("level", "go think")
    assert talk.passed[-1].args["depth"] == "2"  # the player's own


def test_the_time_of_who_does_not_wait_for_ready_counts_from_then(talks: Talks) -> None:
    def make(_: Mapping[str, Value]) -> Player:
        time.sleep(0.6)
        return AlphaBetaPlayer(2)

    talk = talks(make)
    talk.done("init", "level move-time=0.5", "go think")
    assert float(talk.passed[-1].args["time"]) > 0.4


def test_a_player_plays_in_its_own_way_and_analyses_impartially(talks: Talks) -> None:
    class Asked(AlphaBetaPlayer):
        def begin(self, board: Board, purpose: Purpose = "move") -> Deepening:
            begun.append(purpose)
            return super().begin(board, purpose)

    begun: list[Purpose] = []
    talk = talks(lambda _: Asked(2))
    talk.done("init", "go think")
    talk.done("level move-time=0.01", "go think")
    talk.done("level nodes=100", "go think")
    talk.done("level move-time=0.01", "go analyze")
    assert begun[1:] == ["move", "game", "game", "analysis"]  # the first was to warm up


@pytest.mark.parametrize("depth", [1, 30])
def test_depth_is_no_limit_for_a_search_that_does_not_go_by_depth(talks: Talks, depth: int) -> None:
    own, limited = talks(lambda _: search_player(60)), talks(lambda _: search_player(60))
    own.done("go think")
    limited.done(f"level depth={depth}", "go think")
    assert limited.passed[-1].args["nodes"] == own.passed[-1].args["nodes"] != "0"


def test_an_analysis_with_a_depth_alone_is_impartial_and_ends(talks: Talks, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Purpose] = []
    begin = SearchPlayer.begin

    def noted(player: SearchPlayer, board: Board, purpose: Purpose = "move", pondering: bool = False) -> TreeSearch:
        begun.append(purpose)
        return begin(player, board, purpose, pondering)

    monkeypatch.setattr(SearchPlayer, "begin", noted)
    talk = talks(lambda _: search_player(60))
    talk.done("init", "level depth=30", "go analyze")
    assert begun[1:] == ["analysis"]  # the first was to warm up
    assert 60 <= int(talk.passed[-1].args["nodes"]) < 200


def test_counting_nodes_makes_no_thoughts(talks: Talks, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, thought = [], TreeSearch.thought
    monkeypatch.setattr(TreeSearch, "thought", lambda self: looked.append(1) or thought(self))
    talk = talks(lambda _: search_player(60))
    talk.done("level nodes=5000", "go think")
    assert 5_000 <= int(talk.passed[-1].args["nodes"]) < 5_100
    assert len(looked) < 2_500  # ten a second are told


def test_what_the_output_cannot_encode_does_not_end_the_answers() -> None:
    said = io.TextIOWrapper(io.BytesIO(), "ascii")
    serve(lambda _: AlphaBetaPlayer(1), io.StringIO("set-param name=\u65e5 value=1\nping\nquit\n"), said)
    said.flush()
    lines = said.buffer.getvalue().decode("ascii").splitlines()  # type: ignore[attr-defined]
    assert "u65e5" in lines[0]
    assert lines[-1] == "pong"


def test_a_proven_win_is_told(talks: Talks) -> None:
    talk = talks()
    board = Board("W:WK14,K15:BK12")
    talk.done("level depth=20", f"pos pos={format_pos(board)}", "go think")
    assert 99 < float(talk.passed[-1].args["score"]) < 100


def test_stop_and_ping_in_mid_search(talks: Talks) -> None:
    talk = talks()
    talk.send("init", "level infinite", "go analyze")
    talk.until("info")
    begun = time.monotonic()
    talk.send("ping")
    talk.until("pong")
    assert time.monotonic() - begun < 60
    begun = time.monotonic()
    assert "move" in talk.done("stop")
    assert time.monotonic() - begun < 60  # 0.05 s, on a machine that is not shared
    talk.send("stop", "ping")  # too late: without effect
    talk.until("pong")
    assert talk.passed == []


def test_a_search_is_not_begun_within_another_but_right_after_stop(talks: Talks) -> None:
    talk = talks()
    talk.send("level infinite", "go think", "go think")
    assert "a search is going on" in talk.until("error").args["message"]
    talk.send("stop", "pos start moves=11-15", "level depth=3", "go think")
    talk.until("done")
    assert parse_move(Board("W" + Board().fen()[1:]), talk.until("done").args["move"])


def test_an_infinite_search_waits_to_be_stopped(talks: Talks) -> None:
    talk = talks()
    pos = format_pos(Board("B:W18,32:B14,K1"))  # one legal move, and soon proven
    talk.send("level infinite", f"pos pos={pos}", "go think")
    time.sleep(0.3)
    talk.send("ping")
    talk.until("pong")
    assert "done" not in [message.command for message in talk.passed]
    assert talk.done("stop")["move"] == "14x23x18"


def test_a_word_that_it_does_not_know_is_ignored(talks: Talks) -> None:
    """As the protocol asks of both sides."""
    talk = talks()
    assert "move" in talk.done("level depth=1", "go left")
    assert all(message.command == "info" for message in talk.passed)


def test_a_forced_move_is_played_as_soon_as_it_is_not_pondered_on(talks: Talks) -> None:
    talk = talks(lambda _: AlphaBetaPlayer(40))
    board = Board("W:W18,19,20,23,25,26,28,29,30,31,32:B1,2,3,4,5,8,9,10,11,16,17")
    assert len(board.legal_moves) == 1
    talk.send("level move-time=100", f"pos pos={format_pos(board)}", "go ponder", "ping")
    talk.until("pong")
    begun = time.monotonic()
    assert "move" in talk.done("ponder-hit")
    assert time.monotonic() - begun < 50


@pytest.mark.parametrize("level", ["level depth=3", "level move-time=0.05", "level"])
def test_pondering_waits_for_the_hit(talks: Talks, level: str) -> None:
    talk = talks()
    talk.send("init", level, "go ponder")
    talk.until("ready")
    time.sleep(0.2)
    talk.send("ping")
    talk.until("pong")
    assert "done" not in [message.command for message in talk.passed]
    assert "move" in talk.done("ponder-hit")
    talk.send(level, "go ponder")
    assert "move" in talk.done("stop")
    talk.send("ponder-hit")
    talk.until("error")


def test_a_player_that_cannot_be_watched(talks: Talks) -> None:
    talk = talks(lambda _: RandomPlayer())
    assert parse_move(Board(), talk.done("go think")["move"])
    assert talk.passed == []


@pytest.mark.parametrize("fault", ["raises", "illegal"])
def test_a_failing_player_is_told_of(talks: Talks, fault: str) -> None:
    class Failing(RandomPlayer):
        def choose(self, boards: Sequence[Board]) -> list[Move]:
            if fault == "raises":
                raise RuntimeError("lost my\nway")
            return [Move(1, 32)]

    talk = talks(lambda _: Failing())
    assert talk.done("go think") == {}
    text = talk.passed[-1].args["message"]
    assert text == "RuntimeError: lost my way" if fault == "raises" else text.startswith("1-32 is illegal")


class Fragile(AlphaBetaPlayer):
    """Fails where the test says, and when it is closed; counts how often that is tried."""

    def __init__(self, fails: str, closings: list[int]) -> None:
        super().__init__(2)
        self.fails, self.closings = fails, closings

    def begin(self, board: Board, purpose: str = "game") -> Any:
        if self.fails == "warm-up" or purpose != "game":
            raise RuntimeError("no memory")
        return super().begin(board, purpose)

    def close(self) -> None:
        self.closings.append(1)
        if self.fails == "closing":
            raise RuntimeError("cannot close")


@pytest.mark.parametrize("fails", ["warm-up", "closing"])
def test_a_player_that_fails_is_closed_and_the_answer_comes(talks: Talks, fails: str) -> None:
    closings: list[int] = []
    talk = talks(lambda _: Fragile(fails, closings))
    for _ in range(2):
        assert talk.done("level depth=2", "go analyze") == {}
        assert "no memory" in next(line.args["message"] for line in talk.passed if line.command == "error")
    talk.send("ping")
    talk.until("pong")
    assert len(closings) == 2


def test_the_end_of_input_lets_a_limited_search_finish(talks: Talks) -> None:
    talk = talks()
    talk.send("init", "level move-time=0.3", "go think")
    assert "done move=" in talk.end_of_input()
    talk = talks()
    talk.send("init", "level infinite", "go analyze")
    assert "done move=" in talk.end_of_input()


# Positions


def test_positions_straight_and_turned(talks: Talks) -> None:
    talk = talks()
    start, board = format_pos(Board()), Board("B:W18,22,K31:B10,11,K2")
    for pos in (start, turned_pos(start)):  # who begins has the squares 1 to 12 in both
        assert parse_move(Board(), talk.done("level depth=2", f"pos pos={pos}", "go think")["move"])
        turned = pos != start
        after = turned_pos(format_pos(board)) if turned else format_pos(board)
        assert parse_move(board, talk.done(f"pos pos={after}", "go think")["move"])
    talk.send("set-param name=positions value=straight")
    assert parse_move(board, talk.done(f"pos pos={format_pos(board)}", "go think")["move"])
    talk.send("set-param name=positions value=turned")
    assert parse_move(board, talk.done(f"pos pos={turned_pos(format_pos(board))}", "go think")["move"])


def test_a_game_move_by_move_and_with_repetitions(talks: Talks) -> None:
    """However a position is given, the engine knows of the moves that led to it."""
    seen: list[Board] = []

    class Looking(RandomPlayer):
        def choose(self, boards: Sequence[Board]) -> list[Move]:
            seen.append(boards[0])
            return super().choose(boards)

    talk = talks(lambda _: Looking())
    board, moves = Board("B:WK32:BK1,K2"), ["1-6", "32-28", "6-1", "28-32"]
    for ply in (0, 2, 4, 3):
        played = " ".join(moves[:ply])
        talk.done(f'pos pos={format_pos(board)} moves="{played}"', "go think")
        assert [str(move) for move in seen[-1].move_stack] == moves[:ply]
    talk.done(f'pos pos={format_pos(board)} moves="{" ".join(moves)}"', "go think")
    assert seen[-1].repetitions() == 2
    talk.done("new-game", "go think")
    assert seen[-1].fen() == Board().fen()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pos pos=Bw", "is no position"),
        ("pos pos=Ww" + "e" * 31, "promotion row"),
        ("pos start moves=22-18", "22-18 is illegal"),
        ("pos moves=x", "is not a move"),
    ],
)
def test_without_a_position_nothing_is_searched(talks: Talks, line: str, said: str) -> None:
    talk = talks()
    talk.send(line)
    assert said in talk.until("error").args["message"]
    assert talk.done("go think") == {}
    assert "no position" in talk.passed[-1].args["message"]
    assert "move" in talk.done("pos start", "level depth=2", "go think")


def test_a_game_that_is_over(talks: Talks) -> None:
    talk = talks()
    pos = format_pos(Board("B:W5:B1"))
    assert "move" in talk.done(f"pos pos={pos}", "go think")
    pos = format_pos(Board("B:WK32:B"))
    assert talk.done(f"pos pos={pos}", "go think") == {}
    assert "no legal move" in talk.passed[-1].args["message"]


@pytest.mark.parametrize(
    ("level", "mode", "seconds"),
    [
        (None, "think", 0.2),
        (Level(nodes=100), "think", 0.2),
        (Level(move_time=0.1), "think", 0.05),
        (Level(move_time=60.0), "think", 1.0),
        (Level(infinite=True), "think", 0.2),
        (None, "analyze", 0.2),
    ],
)
def test_planning_heeds_the_limits_of_the_search(
    monkeypatch: pytest.MonkeyPatch, level: Level | None, mode: Mode, seconds: float
) -> None:
    """Planning the way to win an ending does not look at ``stop``, and has no limit of its own without a time."""
    planned = list[float]()

    def plan_until(search: LockstepSearch, deadline: float) -> None:
        planned.append(deadline - time.perf_counter())

    monkeypatch.setattr(LockstepSearch, "plan_until", plan_until)
    player = SearchPlayer("player", UniformEvaluator(), SearchConfig(num_simulations=20))
    search = Search(Board(), level, mode)
    search.stop()
    answer(player, search, lambda line: None)
    assert player.planning_s == seconds >= max(planned)
    player.begin(Board(), pondering=True)
    assert planned[-1] <= 0


# Broken lines


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("uci", "is no command"),
        ("go think ponder", "choose one of"),
        ("level depth=0", "depth is '0'"),
        ("ponder-hit", "there is no search in ponder mode"),
        ("set-param name=depth", "write set-param"),
        ("set-param name=x value=1", "'x' is no parameter"),
        ("set-param name=depth value=65", "cannot be '65'"),
        ("set-param name=variant value=russian", "cannot be 'russian'"),
        ('pos moves="', "is no argument"),
        ("go " + "x" * 70_000, "more than 65536 characters"),
    ],
)
def test_wrong_lines_are_told_of(talks: Talks, line: str, said: str) -> None:
    talk = talks()
    talk.send(line, "ping")
    talk.until("pong")
    assert [message.command for message in talk.passed] == ["error"]
    assert said in talk.passed[0].args["message"]


WORDS = f"""
hub init pos level go stop ping new-game ponder-hit set-param info done error ready start think analyze ponder
moves="11-15 22-18" pos= name=depth value=3 depth=1 depth=x time=-1 " infinite = nodes=9 moves=1x2x3x4 moves=22-18
pos={format_pos(Board())} pos={turned_pos(format_pos(Board()))} name=positions value=turned "" \x00 é
""".split()
lines = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=5).map(" ".join)


@given(st.lists(lines, max_size=12))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_comes_the_server_lives_on(script: list[str]) -> None:
    output = io.StringIO()
    text = "\n".join(line.replace("quit", "") for line in script)
    serve(lambda _: RandomPlayer(), io.StringIO(text + "\nstop\nping\n"), output, params=[DEPTH])
    told = [parse_message(line).command for line in output.getvalue().splitlines()]
    assert "pong" in told
    assert set(told) <= {"id", "param", "wait", "ready", "pong", "done", "error", "info"}


# As a program


def test_broken_bytes_and_a_closed_output(engine: str) -> None:
    run = subprocess.run([engine], input=b"\xff\xfe\nping\nhub\n", capture_output=True, timeout=PATIENCE, check=True)
    assert [line.split()[0] for line in run.stdout.splitlines()][:3] == [b"error", b"pong", b"id"]
    assert run.stderr == b""
    process = subprocess.Popen([engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(b"hub\nlevel move-time=0.2\ngo think\n", PATIENCE)
    assert (process.returncode, errors) == (0, b"")


def test_pydraughts_plays_a_game(engine: str) -> None:
    """The engine has one side and then the other, against random moves; its own scores must not fall for ever."""
    hub = HubEngine([engine])
    try:
        assert hub.variants == {"english"}
        assert hub.options == {"variant", "positions", "depth"}
        assert (hub.id["name"], hub.id["version"]) == ("Crownhead", "1.2")
        hub.configure({"variant": "english", "depth": "4"})
        hub.init()
        hub.ping()
        limits = [Limit(depth=3), Limit(movetime=0.02), Limit(nodes=2000), Limit(time=5, inc=0.1)]
        for side, winner in ((0, draughts.BLACK), (1, draughts.WHITE)):
            rng, board, plies = random.Random(3), draughts.Board(variant="english"), 0
            while not board.is_over():
                assert plies < 200
                if plies % 2 == side:
                    result = hub.play(board, limits[plies // 2 % 4], ponder=False)
                    board.push(result.move)
                    if result.info:
                        assert result.info["nodes"] > 0
                else:
                    pdn = rng.choice(board.legal_moves()).steps_move
                    board.push(draughts.Move(board, steps_move=pdn))
                plies += 1
            assert board.winner() == winner
        hub.setoption("positions", "turned")  # from a position that was set up, and tells nothing of itself
        board = draughts.Board(variant="english", fen="W:W18,22,K31:B10,11,K2")
        assert hub.play(board, Limit(depth=3), ponder=False).move is not None
    finally:
        hub.quit()
        assert hub.p.wait(PATIENCE) == 0
        hub.p.communicate()


def test_our_client_plays_matches_with_it(engine: str) -> None:
    with HubPlayer(engine, 0.1) as client:
        result = play_match(client, RandomPlayer(), make_openings("random:3", 1, 1), 2)
        assert result.tally.wins == 2
        assert result.errors == []
        endgame = [Opening("endgame", Board("W:WK14,K15:BK12"))]
        result = play_match(client, AlphaBetaPlayer(8), endgame, 2)
        assert {(game.black, game.result) for game in result.played} == {
            (client.name, "0-1"),
            ("alphabeta:8", "0-1"),
        }
