"""Games in the terminal."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from programs import crownhead_here

from engine.board import Board, Move
from engine.fen import START_FEN, Color
from engine.pdn import read_game
from engine.players import Player, PlayerSpec, RandomPlayer
from engine.players.base import PlayerError
from engine.players.search_player import SearchPlayer
from engine.search import SearchConfig, UniformEvaluator
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.conditions import Conditions
from selfplay.players import make_player
from selfplay.requests import PlayRequest, RequestError
from selfplay.text_play import SIDES, TextGame, TextPlayError, first_moves, numbered, text_play


def typed(*lines: str) -> Callable[[str], str]:
    left = list(lines)

    def read(prompt: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return read


def play(fen: str, side: str, *lines: str) -> tuple[str, TextGame, list[str]]:
    shown: list[str] = []
    adviser = SearchPlayer("net", UniformEvaluator(), SearchConfig(num_simulations=0))
    game = TextGame(Board(fen), RandomPlayer(1), adviser, SIDES[side], typed(*lines), shown.append)
    return game.play(), game, shown


def test_only_a_game_of_two_programs_is_stopped_when_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selfplay.text_play._MOST_PLIES", 1)
    _, game, shown = play(START_FEN, "black", "11-15", "quit")
    assert game.board.ply == 2
    assert not any("stopped" in text for text in shown)
    _, game, shown = play(START_FEN, "none")
    assert game.board.ply == 1
    assert "stopped after 1 plies" in shown


def test_a_game_to_its_end() -> None:
    result, _, shown = play("B:BK10:W22,K30", "both", "10-15", "22-18", "15x22")
    assert result == "*"  # the lines end before the game does
    result, _, shown = play("B:BK6:W10", "black", "6x15")
    assert result == "1-0"
    assert "1-0: no moves" in shown
    assert read_game(shown[-1]).result == "1-0"


def test_words() -> None:
    result, game, shown = play(START_FEN, "both", "moves", "fen", "nonsense", "11-16", "undo", "undo", "help", "resign")
    assert result == "0-1"
    assert {"9-13", "9-14", "10-14", "10-15", "11-15", "11-16", "12-16"} in [set(line.split()) for line in shown]
    assert START_FEN in shown
    assert any("nonsense" in line and "help says" in line for line in shown)
    assert "there is no move to take back" in shown
    assert game.board.ply == 0
    assert '[Result "0-1"]' in shown[-1]


def test_every_square_has_its_number() -> None:
    rows = numbered(Board("B:B1,K14:W32,K31")).splitlines()
    assert rows[0] == "    b1      .2      .3      .4"
    assert rows[3] == ".13     B14     .15     .16"
    assert rows[7] == ".29     .30     W31     w32"


def test_undo_goes_back_to_the_keyboard_s_own_move() -> None:
    _, game, _ = play(START_FEN, "black", "11-15", "undo", "quit")
    assert game.board.ply == 0
    _, game, _ = play(START_FEN, "white", "undo")  # Black, the computer, has moved first
    assert game.board.ply == 1


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), PlayerError("it has died")])
def test_a_game_that_is_broken_off_is_written(ending: BaseException) -> None:
    class Failing(RandomPlayer):
        def choose(self, boards: Sequence[Board]) -> list[Move]:
            if boards[0].ply > 2:
                raise ending
            return super().choose(boards)

    shown: list[str] = []
    game = TextGame(Board(), Failing(1), None, SIDES["black"], typed("11-15", "9-13"), shown.append)
    with pytest.raises(type(ending)):
        game.play()
    assert [str(node.move) for node in read_game(shown[-1]).moves][::2] == ["11-15", "9-13"]


def test_two_computers_end_by_themselves() -> None:
    result, game, _ = play("B:BK1,K2,K3:WK30", "none")
    assert result in ("1-0", "0-1", "1/2-1/2")
    assert game.board.outcome() is not None


def test_first_moves_are_the_networks_in_their_order() -> None:
    torch.manual_seed(0)
    from learner.inference.torch_evaluator import TorchEvaluator

    network = make_network(NETWORKS["tiny"])
    player = SearchPlayer("net", TorchEvaluator(network, precision="float32"), SearchConfig(num_simulations=0))
    board = Board()
    first = first_moves(player, board)
    assert len(first) == 5
    shares = [share for _, share in first]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) < 1
    everything = first_moves(player, board, 10)
    assert {move for move, _ in everything} == set(board.legal_moves)
    assert sum(share for _, share in everything) == pytest.approx(1, abs=1e-5)


def test_from_the_command_line(tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]))
    options = "--opponent", tmp_path / "net", "--side", "white", "--simulations", 4
    done = crownhead_here("play", "--text", *options, given="resign\n")
    assert done.returncode == 0, done.stderr
    assert "network's first moves: " in done.stdout
    assert '[Result "1-0"]' in done.stdout


def test_it_does_not_play_the_same_game_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def noted(spec: PlayerSpec, conditions: Conditions) -> Player:
        seeds.append(conditions.seed)
        return make_player(spec, conditions)

    monkeypatch.setattr("selfplay.text_play.make_player", noted)
    monkeypatch.setattr("builtins.input", lambda _: "quit")
    for _ in range(2):
        text_play(PlayRequest("random", side="black"))
    assert len(seeds) == 4
    assert seeds[0] != seeds[2]


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_closed_stream_is_told(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    """Python has None where a shell has closed it."""
    monkeypatch.setattr(f"sys.{stream}", None)
    with pytest.raises(TextPlayError, match="standard input or output is closed"):
        text_play(PlayRequest("random"))


def test_bytes_that_are_no_text_do_not_end_the_game(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = io.TextIOWrapper(io.BytesIO(b"d\xe9j\xe0\nresign\n"), "utf-8", "strict")
    monkeypatch.setattr("sys.stdin", typed)
    text_play(PlayRequest("random", side="black"))
    shown = capsys.readouterr().out
    assert "help says what can be typed" in shown
    assert '[Result "0-1"]' in shown


def test_the_end_of_input_leaves_the_game_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    text_play(PlayRequest("random", side="black"))
    assert "Black: \n[Black " in capsys.readouterr().out


def test_limits_that_the_opponent_does_not_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The time is told of, as in a match; simulations are refused, as by ``engine``."""
    monkeypatch.setattr("builtins.input", lambda _: "quit")
    text_play(PlayRequest("random", side="black", seconds=0.1))
    assert "random ignores time limits" in capsys.readouterr().err
    for opponent in ("random", "level:club", "alphabeta:3"):
        with pytest.raises(RequestError, match=f"{opponent} has no simulations to choose: leave --simulations out"):
            PlayRequest(opponent, simulations=5)
    PlayRequest("champion", simulations=5)
    PlayRequest(simulations=5)


def test_a_wrong_side_is_told() -> None:
    with pytest.raises(TextPlayError, match="--side green: choose black, white, both, none"):
        text_play(PlayRequest("random", side="green"))
    assert Color.BLACK in SIDES["black"]
