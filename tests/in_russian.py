"""Russian draughts in the whole program: boards, notation, draws, search, players and training.

A process plays only one kind of game, so these tests run in a process of their own: see ``test_russian.py``, or
``CROWNHEAD_GAME=russian pytest tests/in_russian.py``.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import russian_reference
from hypothesis import given
from hypothesis import strategies as st
from programs import ROOT, crownhead_here
from reference import START, Position
from training_runs import SHORT

from crownhead import _OF_OTHER_GAME
from engine import perft
from engine.board import Board, Move, Outcome, Termination
from engine.encoding import NUM_POLICY, encode_planes, hop_table
from engine.errors import FenError, IllegalMoveError, PdnError
from engine.fen import START_FEN, Color, Piece
from engine.game import GAME, GAME_VARIABLE, OtherGameError
from engine.outcomes import LOSS, WIN
from engine.pdn import PdnGame, format_game, read_games
from engine.players import make_simple_player
from engine.players.first_search import search_once
from engine.players.spec import parse_player
from engine.position_keys import key_of, keys_of_game
from engine.rules.russian import square_name
from engine.search import Ending, LockstepSearch, SearchConfig, UniformEvaluator
from engine.tablebase import open_tablebase
from learner.endgame.rules_commands import rules_command
from learner.expert.games import read_expert_games
from learner.inference import BackendError
from learner.inference.export import export_onnx
from learner.network import NETWORKS, make_network
from selfplay.games.openings import MatchError, make_openings
from selfplay.games.shards import read_shard
from selfplay.knowledge import endgame_knowledge
from selfplay.requests import TrainRequest
from selfplay.run.config import ConfigError, make_config
from selfplay.text_play import HELP, numbered

TOGETHER = "they do not go together"
# Known figures. The plain rules count the first five as well; test_russian.py asks pydraughts about moves.
COUNTS = (7, 49, 302, 1469, 7482, 37986, 190146, 929905, 4570667)

ONE_MATCH = [*SHORT, "--set", "loop.anchor_games=2"]


def random_board(seed: int, plies: int) -> Board:
    rng, board = random.Random(seed), Board()
    for _ in range(plies):
        if board.outcome() is not None:
            break
        board.push(rng.choice(board.legal_moves))
    return board


def test_this_process_plays_russian_draughts() -> None:
    assert GAME == "russian"
    assert os.environ["NUMBA_CACHE_DIR"].endswith("russian")
    assert Board().turn is Color.WHITE


@pytest.mark.parametrize("depth", range(1, len(COUNTS) + 1))
def test_perft(depth: int) -> None:
    assert perft.count(Board(), depth) == COUNTS[depth - 1]


def test_perft_of_the_reference() -> None:
    def count(position: Position, depth: int) -> int:
        moves = russian_reference.legal_moves(position)
        return len(moves) if depth == 1 else sum(count(russian_reference.make(position, m), depth - 1) for m in moves)

    assert [count(Position("W", START), depth) for depth in range(1, 6)] == list(COUNTS[:5])
    assert sum(perft.divide(Board(), 5).values()) == COUNTS[4]


def test_a_game_in_its_notation() -> None:
    board = Board()
    assert START_FEN in (board.fen(), board.start_fen)
    assert {str(move) for move in board.legal_moves} == {
        "a3-b4", "c3-b4", "c3-d4", "e3-d4", "e3-f4", "g3-f4", "g3-h4",
    }  # fmt: skip
    for text in ("c3-d4", "f6-g5", "b2-c3", "g7-f6", "d4-c5"):
        board.push_pdn(text)
    assert [str(move) for move in board.legal_moves] == ["b6:d4:b2", "d6:b4"]
    assert str(board.parse_pdn("b6:b2")) == str(board.parse_pdn("b6xd4xb2")) == "b6:d4:b2"
    assert format_game(PdnGame.from_board(board)).endswith("1. c3-d4 f6-g5 2. b2-c3 g7-f6 3. d4-c5 *\n")
    with pytest.raises(IllegalMoveError, match="must capture"):
        board.push_pdn("h6-g5")
    with pytest.raises(IllegalMoveError, match="c3-d4, c3:e5 or c3:e5:g7"):
        board.parse_pdn("11-15")


@pytest.mark.parametrize(
    ("fen", "text", "after"),
    [
        ("W:WKa1:Bb2,f6", "a1:g7", "B:WKg7:B"),
        ("W:WKa1:Bb2,f6", "a1:d4:h8", "B:WKh8:B"),  # any square on the way will do
        ("W:We7:Bd8,f8,Kf6", "e7:g5", "B:Wg5:Bd8,f8"),
    ],
)
def test_long_captures_are_read(fen: str, text: str, after: str) -> None:
    board = Board(fen)
    board.push_pdn(text)
    assert board.fen() == after


@given(st.integers(0, 10_000), st.integers(0, 60))
def test_positions_and_games_are_read_as_they_are_written(seed: int, plies: int) -> None:
    board = random_board(seed, plies)
    assert Board(board.fen()).words() == board.words()
    for move in board.legal_moves:
        assert board.parse_pdn(board.pdn(move)) == move
        assert board.parse_pdn(str(move)) == move
    text = format_game(PdnGame.from_board(board))
    assert '[GameType "25,W,8,8,A0,0"]' in text
    (game,) = read_games(text)
    assert game.board().move_stack == board.move_stack
    assert keys_of_game(START_FEN, [str(move) for move in board.move_stack])[-1] == key_of(board)


def test_boards_against_the_reference() -> None:
    rng = random.Random(1)
    for _ in range(20):
        board, position = Board(), Position("W", START)
        while steps := russian_reference.legal_moves(position):
            assert {move.captured for move in board.legal_moves} == {tuple(sorted(step.taken)) for step in steps}
            step = rng.choice(steps)
            board.push_pdn((":" if step.taken else "-").join(map(square_name, step.path)))
            position = russian_reference.make(position, step)
            assert {
                n: (c.value if k else c.value.lower()) for n, (c, k) in board.piece_map().items()
            } == position.pieces
            if board.ply == 60:
                break


def test_what_is_no_position_or_no_game_of_this_kind() -> None:
    with pytest.raises(FenError, match="not a square"):
        Board("W:W21:B1")
    with pytest.raises(FenError, match="outside"):
        Board("W:Wa2:Bb8")
    with pytest.raises(PdnError, match=r"English draughts, not Russian draughts \(25\)"):
        list(read_games('[GameType "21"]\n1. 11-15 *'))


def leads_on(board: Board, move: Move) -> bool:
    """Whether a king's move leads to a new position without a capture."""
    after = board.copy()
    after.push(move)
    return after.reversible_plies > 0 and after.repetitions() == 1 and not after.legal_moves[0].captured


def test_fifteen_moves_with_kings_alone_are_a_draw() -> None:
    board, rng = Board("W:WKa1,Kc1,a3:BKh8,Kh2"), random.Random(1)
    while board.reversible_plies < 30:
        assert board.outcome() is None
        free = [move for move in board.legal_moves if leads_on(board, move)]
        board.push(rng.choice(free))
    assert board.outcome() == Outcome(Termination.REVERSIBLE_PLIES, None)
    assert Termination.REVERSIBLE_PLIES.value == "30 plies without capture or man move"


def test_who_cannot_move_loses_and_white_is_named_first() -> None:
    assert Board("B:Wa1:B").result() == "1-0"
    assert Board("W:W:Bb8").result() == "0-1"


def test_planes_and_policy() -> None:
    boards = [random_board(seed, 50) for seed in range(40)]
    positions = np.array([[*board.words(), 15] for board in boards], np.uint32)
    planes = encode_planes(positions)
    assert planes.shape == (40, 6, 8, 4)
    assert (planes[:, 4] == 0.5).all()
    table, counts = hop_table(positions)
    assert counts.tolist() == [len(board.distinct_moves) for board in boards]
    assert table.max() <= NUM_POLICY


@pytest.mark.parametrize("fen", ["W:WKe1,c3:Bd4", "W:WKa1,Kc1:Bh8,g7"])
def test_search_proves_a_win(fen: str) -> None:
    board, search = Board(fen), LockstepSearch(SearchConfig(num_simulations=2000), 1)
    search.set_board(0, board)
    search.start(0, explore=False)
    search.run(UniformEvaluator())
    result = search.result(0)
    assert len(result.visits) == len(board.distinct_moves)
    assert WIN in result.proofs


def test_more_moves_than_a_word_has_bits() -> None:
    """Shots are only searched among the first 64 moves; all moves have priors."""
    board = Board("W:WKd8,Kh8,Ka7,Kd6,Kh6,Ka5,Kh4,Kh2,Ka1,Kc1,Ke1,Kg1:Ba3")
    search = LockstepSearch(SearchConfig(num_simulations=100, shot_prior=0.3), 1)
    search.set_board(0, board)
    search.start(0, explore=False)
    search.run(UniformEvaluator())
    result = search.result(0)
    assert len(result.visits) == len(board.distinct_moves) == 66
    assert result.priors.sum() == pytest.approx(1, abs=1e-4)
    assert (result.priors[64:] > 0).all()


def test_searched_games_end_as_boards_do() -> None:
    """All moves of the search are legal on the board, and both see the same end of the game."""
    endings = {
        Ending.LOST: Termination.NO_MOVES,
        Ending.REPETITION: Termination.REPETITION,
        Ending.REVERSIBLE: Termination.REVERSIBLE_PLIES,
    }
    seen = set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        board = Board("W:WKa1,Kc1:BKh8,Kf8") if seed % 2 else random_board(seed, 40)
        search = LockstepSearch(SearchConfig(num_simulations=4), 1)
        ending = search.set_board(0, board)
        while ending is Ending.RUNNING:
            search.start(0, explore=False)
            search.run(UniformEvaluator())
            moves = board.distinct_moves
            quiet = [index for index, move in enumerate(moves) if seed % 2 and leads_on(board, move)]
            index = int(rng.choice(quiet or len(moves)))
            board.push(moves[index])
            _, ending = search.play(0, index, through_forced=False)
        outcome = board.outcome()
        assert outcome is not None
        assert outcome.termination is endings[ending]
        seen.add(ending)
    assert len(seen) >= 2


@pytest.mark.parametrize("name", ["random", "rollout:20", "alphabeta:3"])
def test_players_name_legal_moves(name: str) -> None:
    boards = [random_board(seed, 20 + seed) for seed in range(20)]
    boards = [board for board in boards if board.outcome() is None]
    moves = make_simple_player(parse_player(name)).choose(boards)
    assert all(move in board.legal_moves for move, board in zip(moves, boards, strict=True))


def test_what_belongs_to_english_draughts_alone() -> None:
    with pytest.raises(OtherGameError, match="unset CROWNHEAD_GAME"):
        open_tablebase()
    with pytest.raises(OtherGameError, match="the list of endgame rules is of english draughts"):
        rules_command(None, None, None, 1, None, True)
    with pytest.raises(MatchError, match="no ballots of Russian draughts"):
        make_openings("ballots", 1, 1)
    with pytest.raises(ConfigError, match="tables"):
        make_config("smoke", ["selfplay.adjudicate=true"])


def test_messages_name_squares_by_letters() -> None:
    for fen, told in (
        ("W:Wa1,7:Be5", "'7' is not a square (like e7, Ke7 or b8-h8)"),
        ("W:Wa2:Be5", "'A2' is outside squares b8 to g1"),
        ("W:Wa1,a1:Be5", "square a1 is given twice"),
        ("W:Wb8:Be5", "a man of White on b8, its promotion row (write Kb8)"),
    ):
        with pytest.raises(FenError, match=re.escape(told)):
            Board(fen)
    assert numbered(Board()).splitlines()[0] == "    bb8     bd8     bf8     bh8"
    assert "c3-d4" in HELP


def test_what_is_no_square_is_told_by_its_number() -> None:
    with pytest.raises(FenError, match="'33' is not a square"):
        Board().set_piece_map({33: Piece(Color.BLACK)})
    with pytest.raises(IllegalMoveError, match="33-40 is illegal"):
        Board().push(Move(33, 40))


def test_the_first_search_goes_without_tables() -> None:
    assert [board.fen() for board in search_once()] == [START_FEN]


def test_white_who_moves_first_wins_by_1_0(tmp_path: Path) -> None:
    (tmp_path / "games.pdn").write_text("1. c3-d4 b6-a5 1-0\n")
    assert read_expert_games(tmp_path / "games.pdn").samples.results.tolist() == [WIN, LOSS]


def test_each_game_has_its_own_default_folder() -> None:
    assert TrainRequest().folder == TrainRequest(game="russian").folder == Path("runs/russian-quick")
    assert TrainRequest(game="english").folder == Path("runs/quick")


def crownhead(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command that is not told by the environment which game it plays."""
    others = {name: value for name, value in os.environ.items() if name not in (GAME_VARIABLE, "NUMBA_CACHE_DIR")}
    command = [sys.executable, str(ROOT / "crownhead.py"), *arguments]
    return subprocess.run(command, env=others, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("text", ["rules", "tablebase", "hub:python3 engine.py"])
def test_players_of_english_draughts_are_refused(text: str) -> None:
    with pytest.raises(OtherGameError, match="is of english draughts"):
        make_simple_player(parse_player(text))


@pytest.mark.parametrize("paper", ["popic", "maddocks"])
def test_papers_on_english_draughts_are_refused_before_any_training(paper: str, tmp_path: Path) -> None:
    done = crownhead_here("reproduce", paper, "--minutes", "0.01", "--out", tmp_path / "report")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the paper is of english draughts, this process plays russian" in done.stderr
    assert not (tmp_path / "report").exists()


def test_networks_are_not_exported(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="networks of russian draughts cannot be exported"):
        export_onnx(make_network(NETWORKS["tiny"]), tmp_path / "net.onnx")


def test_a_match_with_a_clock() -> None:
    options = ["--games", "2", "--seconds", "0.02", "--openings", "random:2", "--json"]
    played = crownhead_here("match", "random", "alphabeta:2", *options)
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout.splitlines()[-1])["games"] == 2


def test_training_and_what_finds_the_run_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trains the smoke preset by its name; an analysis learns from the network which game it plays."""
    run = str(tmp_path / "run")
    done = crownhead("train", "--game", "russian", "--preset", "smoke", "--run", run, "--json", *ONE_MATCH)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["promotions"] == 1
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["game"] == "russian"
    shards = list((tmp_path / "run" / "shards").glob("*.shard"))
    assert all(b"25,W,8,8,A0,0" in shard.read_bytes()[:1000] for shard in shards)  # the rules: other games refuse it
    games = [game for shard in shards for game in read_shard(shard).iter_games()]
    assert games
    for game in games:
        assert len(game.positions()) == len(game.moves) + 1  # every move was legal
    analysed = crownhead("analyse", START_FEN, "--net", run, "--json")
    assert analysed.returncode == 0, analysed.stderr
    assert json.loads(analysed.stdout.splitlines()[-1])["fen"] == Board().fen()
    rated = crownhead_here("ladder", run, "--anchors", "random", "--games", "2", "--openings", "random:3", "--json")
    assert rated.returncode == 0, rated.stderr
    monkeypatch.setenv(_OF_OTHER_GAME, f"{run}/checkpoints/000001")  # as where the command was started again for it
    both = crownhead_here("match", "champion", run, "--openings", "random:3")
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)
    assert both.stderr.endswith(f"champion is of english draughts, {run}/checkpoints/000001 of russian: {TOGETHER}\n")


def test_no_positions_are_kept_for_tables_that_do_not_exist() -> None:
    assert endgame_knowledge(make_config("smoke")).held_out is None
    with pytest.raises(ConfigError, match=r"has no ballots: selfplay\.ballot_fraction must be 0"):
        make_config("smoke", ["selfplay.ballot_fraction=0.5"])
