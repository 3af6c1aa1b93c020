"""Players that search while their opponent thinks."""

import sys
import threading
from pathlib import Path

import pytest
import torch
from player_of import player_of
from programs import PATIENCE, wait_until

from engine.board import Board
from engine.players import PlayerError, WatchablePlayer, parse_player
from engine.players.pondering import PonderingPlayer
from engine.players.search_player import SearchPlayer
from engine.players.time_control import TimeControl
from engine.search import SearchConfig, UniformEvaluator
from engine.search.step_loop import StepCounts
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.games.openings import Opening
from selfplay.matches.commands import choose_jobs
from selfplay.matches.match import play_games
from selfplay.matches.pool import MatchPool
from selfplay.matches.record import FORFEIT
from selfplay.matches.tasks import Pairing, make_tasks

ENOUGH = 500_000  # simulations that take much longer than these tests wait
CONTROL = TimeControl("move", 0.02)
ENDGAME = Opening("end", Board("B:BK1,K2,12:WK31,K32,21"))


@pytest.fixture
def player() -> PonderingPlayer:
    made = PonderingPlayer(SearchPlayer("me", UniformEvaluator(), SearchConfig(num_simulations=ENOUGH), seconds=0.02))
    yield made
    made.close()


def test_what_was_found_in_the_opponent_s_time_is_kept(player: PonderingPlayer) -> None:
    assert isinstance(player, WatchablePlayer)
    board = Board()
    for _ in range(3):
        thinking = player.begin(board)
        thinking.advance(0.003)  # some 10,000 of at most 50,000 simulations
        before = thinking.thought().count
        board.push(thinking.choose())
        reply = board.legal_moves[0]
        wait_until(lambda before=before: player._player._watched["move"].count > 4 * before)  # type: ignore[misc]
        board.push(reply)
        kept = player.begin(board).thought().kept
        assert kept > before / 4  # without pondering a seventh of the tree, or less, lies below one reply
        assert player.begin(board).thought().kept >= kept


def test_it_stops_when_it_is_told(player: PonderingPlayer) -> None:
    board = Board()
    thinking = player.begin(board)
    thinking.advance(0.01)
    board.push(thinking.choose())
    assert player._thread is not None
    player.close()
    assert player._thread is None
    player.close()
    player.seed(3)
    assert player.seconds == 0.02
    player.seconds = 0.03
    assert player._player.seconds == 0.03
    assert player.begin(board).advance(0.01)


class FailsInTheOpponentsTime(UniformEvaluator):
    """Cannot evaluate in the thread that ponders."""

    def search(self, *_: object) -> StepCounts:
        if threading.current_thread() is not threading.main_thread():
            raise OSError("cannot read a table")
        return super().search(*_)


def test_a_failure_in_the_opponent_s_time_leaves_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    config = SearchConfig(num_simulations=ENOUGH)
    player = PonderingPlayer(SearchPlayer("me", FailsInTheOpponentsTime(), config, seconds=0.02))
    board = Board()
    board.push(player.choose([board])[0])
    assert player._thread is not None
    player._thread.join()
    board.push(board.legal_moves[0])
    assert player.choose([board])[0] in board.legal_moves
    player.close()
    assert not failures


def test_an_analysis_is_not_pondered_on(player: PonderingPlayer) -> None:
    thinking = player.begin(Board(), "analysis")
    thinking.advance(0.01)
    thinking.choose()
    assert player._thread is None


def test_nothing_is_pondered_when_the_game_is_over(player: PonderingPlayer) -> None:
    board = Board("B:BK6:W10")
    (move,) = player.choose([board])
    board.push(move)
    assert board.outcome() is not None
    assert player._thread is None


def test_games_with_pondering_players(player: PonderingPlayer) -> None:
    other = PonderingPlayer(SearchPlayer("other", UniformEvaluator(), SearchConfig(), seconds=0.02))
    starts = [(index, ENDGAME) for index in range(2)]
    games = list(play_games(player, other, starts, control=CONTROL))
    assert len(games) == 2
    assert all(game.error is None for game in games)
    other.close()


def test_text_and_board(tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]))
    text = f"{tmp_path / 'net'}@ponder@off"
    made = player_of(text, seconds=0.05)
    assert isinstance(made, PonderingPlayer)
    assert made.name == f"{tmp_path / 'net'}@off@ponder"
    assert made.seconds == 0.05
    with pytest.raises(PlayerError, match="pondering is for games with a time limit: give seconds or a clock"):
        player_of(text, simulations=8)
    pairing = Pairing(parse_player(text), parse_player(text), CONTROL)
    assert choose_jobs(None, pairing, 100) == max(1, choose_jobs(None, None, 100) // 2)
    at_the_board = player_of(text, search=SearchConfig(), seconds=0.05)
    assert isinstance(at_the_board, PonderingPlayer)
    board = Board()
    (move,) = at_the_board.choose([board])
    assert move in board.legal_moves
    at_the_board.close()


def test_after_a_match_nobody_ponders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PonderingPlayer, "_search", lambda self, *_: self._enough.wait(PATIENCE))
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]))
    script = tmp_path / "loses_at_once.py"
    script.write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    said = {'hub': 'wait', 'init': 'ready', 'go': 'done move=99-98'}.get(line.split()[0])\n"
        "    print(said or '', flush=True)\n"
    )
    other = parse_player(f"hub:{sys.executable} {script}")
    pairing = Pairing(parse_player(f"{tmp_path / 'net'}@ponder@off"), other, CONTROL)
    starts = [(0, Opening("start", Board()))]
    with MatchPool(1) as pool:
        played = list(pool.play(make_tasks(pairing, starts, 1)))
        assert [game.termination for _, game in played] == [FORFEIT]
        assert not [thread for thread in threading.enumerate() if thread.name == "ponder"], "before the pool is closed"
