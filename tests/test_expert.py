"""Learning from recorded games: what is read, how it is split, what is measured, and that something is learnt."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from programs import PATIENCE, ROOT, crownhead_program

from engine.board import Board
from engine.claims import FileInUseError, claimed
from engine.fen import Color
from engine.files import StorageError
from engine.outcomes import DRAW, LOSS, UNKNOWN, WIN
from engine.pdn import PdnGame, format_game
from learner.checkpoint import load_checkpoint, save_checkpoint
from learner.expert.accuracy import PIECES, TOPS, MoveAccuracy, move_accuracy, rank_of
from learner.expert.commands import named_network, pretrain_command
from learner.expert.games import ExpertGamesError, ExpertSamples, read_expert_games, split_by_game
from learner.expert.pretrain import Pretraining, expert_batch
from learner.loss import training_loss
from learner.network import NETWORKS, make_network
from papers import larson
from papers.experiment import ReproduceError
from papers.larson import InceptionNetwork, larson_command, output_batch, piece_numbers


def random_game(seed: int, plies: int = 30) -> PdnGame:
    """A game of a player that takes the first or the second move, with the result that the seed says."""
    rng, board = np.random.default_rng(seed), Board()
    while board.ply < plies and board.legal_moves:
        moves = board.legal_moves
        board.push(moves[min(int(rng.integers(8) == 0), len(moves) - 1)])
    return PdnGame.from_board(board, {"Result": ("1-0", "0-1", "1/2-1/2")[seed % 3]})


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("games") / "games.pdn"
    path.write_text("\n".join(format_game(random_game(seed)) for seed in range(60)))
    return path


# Reading


def test_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    path.write_text(
        '[Result "1-0"]\n\n1. 11-15 23-19 2. 8-11 1-0\n\n'
        '[Result "0-1"]\n\n1. 11-15 23-99 0-1\n\n'
        '[Result "1-0"]\n\n1. 11-15 23-19 2. 8-11 1-0\n\n'
        "1. 9-13 22-18 *\n"
    )
    games = read_expert_games(path)
    assert len(games.keys) == 2
    assert (games.twice, games.unfinished, len(games.unread)) == (1, 1, 1)
    assert "23-99" in games.unread[0]
    samples = games.samples
    board = Board()
    for row, text in enumerate(("11-15", "23-19", "8-11")):
        assert tuple(samples.positions[row, :3]) == board.words()
        assert samples.positions[row, 3] == board.reversible_plies
        assert samples.choices[row] == len(board.distinct_moves)
        assert board.pdn(board.distinct_moves[samples.moves[row]]) == text
        board.push_pdn(text)
    assert samples.results.tolist() == [WIN, LOSS, WIN, UNKNOWN, UNKNOWN]
    assert samples.games.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("text", ["7x14x23x16x7", "7x16x23x14x7"])
def test_of_two_ways_to_capture_the_same_either_counts(tmp_path: Path, text: str) -> None:
    board = Board("B:BK7,12:W10,11,18,19")
    board.push_pdn(text)
    path = tmp_path / "games.pdn"
    path.write_text(format_game(PdnGame.from_board(board, {"Result": "1-0"})))
    samples = read_expert_games(path).samples
    assert (samples.moves.tolist(), samples.choices.tolist()) == ([0], [1])


def test_the_share_that_is_read_grows_to_the_whole(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learner.expert.games._REPORT_GAMES", 10)
    shares: list[tuple[int, float]] = []
    read_expert_games(collection, lambda games, share: shares.append((games, share)))
    assert [games for games, _ in shares] == [10, 20, 30, 40, 50, 60]
    assert 0.1 < shares[0][1] < 0.3
    assert 0.95 < shares[-1][1] <= 1
    assert [share for _, share in shares] == sorted(share for _, share in shares)


def test_what_cannot_be_learnt_from_is_said(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    path.write_text('[GameType "20"]\n\n1. 32-28 19-23 1-1\n')
    with pytest.raises(ExpertGamesError, match=r"no game that can be learnt from \(1 cannot be read; the first: "):
        read_expert_games(path)
    path.write_text("")
    with pytest.raises(ExpertGamesError, match="no game that can be learnt from"):
        read_expert_games(path)
    with pytest.raises(StorageError, match="cannot be read"):
        read_expert_games(tmp_path / "nowhere")
    path.write_text("1. 11-15 1-0\n")
    with pytest.raises(ExpertGamesError, match="1 games are too few"):
        split_by_game(read_expert_games(path), 1)


def test_every_part_of_a_split_has_moves(collection: Path) -> None:
    games, refused = read_expert_games(collection), 0
    few = games._replace(keys=games.keys[:12], samples=games.samples.take(games.samples.games < 12))
    for seed in range(40):
        try:
            split = split_by_game(few, seed)
        except ExpertGamesError:
            refused += 1
        else:
            assert all(len(part.moves) for part in (split.train, split.validation, split.test))
    assert 0 < refused < 40


def test_split(collection: Path) -> None:
    games = read_expert_games(collection)
    split = split_by_game(games, 1)
    parts = (split.train, split.validation, split.test, split.seen)
    assert sum(len(part.moves) for part in parts) == len(games.samples.moves)
    train, validation, test = (
        set(part.games.tolist()) for part in (split.train, split.validation, split.test_with_seen)
    )
    assert not train & validation
    assert not (train | validation) & test
    known = {tuple(row[:3]) for part in parts[:2] for row in part.positions.tolist()}
    assert len(split.seen.moves) > 0
    assert all(tuple(row[:3]) in known for row in split.seen.positions.tolist())
    assert not any(tuple(row[:3]) in known for row in split.test.positions.tolist())
    again = split_by_game(games, 1)
    assert again.train.games.tolist() == split.train.games.tolist()
    assert split_by_game(games, 2).train.games.tolist() != split.train.games.tolist()


def test_endgames_kept_for_validation_are_not_learnt_from(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    games = read_expert_games(collection)
    whole = split_by_game(games, 1)

    def some(positions: np.ndarray) -> np.ndarray:  # these games have few endgames
        return positions[:, 0] % 3 == 0

    monkeypatch.setattr("learner.expert.games.held_out", some)
    split = split_by_game(games, 1)
    assert split.train.positions.tolist() == whole.train.positions[~some(whole.train.positions)].tolist()
    assert split.test.positions.tolist() == whole.test.positions.tolist()


# Measuring


def test_rank() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0], [0.0, 0.0, 0.0], [5.0, 1.0, 9.0]])
    assert rank_of(logits, torch.tensor([0, 1, 2])).tolist() == [2.0, 1.0, 0.0]


def test_accuracy_against_a_slow_one(collection: Path) -> None:
    samples = read_expert_games(collection).samples.take(np.arange(150))
    torch.manual_seed(3)
    network = make_network(NETWORKS["tiny"]).eval()
    found = move_accuracy(network, samples)
    batch = expert_batch(samples)
    with torch.no_grad():
        from learner.network_base import planes_on

        policy, _ = network(planes_on(torch.device("cpu"), batch.positions))
    ranks, raw_ranks = [], []
    for row in range(len(samples.moves)):
        count = int(samples.choices[row])
        scores = []
        for move in range(count):
            hops = [int(hop) for hop in batch.hops[row, move] if hop != 128]
            scores.append(sum(float(policy[row, hop]) for hop in hops))
        own = scores[samples.moves[row]]
        ranks.append(sum(score > own + 1e-6 for score in scores))
        first = int(batch.hops[row, int(samples.moves[row]), 0])
        raw_ranks.append(int((policy[row] > policy[row, first]).sum()))
    for k in TOPS:
        assert found.legal[k] == pytest.approx(np.mean(np.array(ranks) < k))
        assert found.raw[k] == pytest.approx(np.mean(np.array(raw_ranks) < k))
        assert found.raw[k] <= found.legal[k]
    choice = samples.choices > 1
    assert found.with_choice[1] == pytest.approx(np.mean(np.array(ranks)[choice] < 1))
    by_pieces: dict[str, list[bool]] = {}
    for row in np.flatnonzero(choice):
        pieces = sum(int(word).bit_count() for word in samples.positions[row, :2])
        low = next(low for low in (21, 17, 13, 9, 5, 2) if pieces >= low)
        by_pieces.setdefault(f"{low}-{4 if low == 2 else low + 3}", []).append(ranks[row] < 1)
    assert len(by_pieces) > 2
    assert set(by_pieces) <= set(PIECES)
    for name, right in by_pieces.items():
        assert found.by_pieces[name] == (len(right), pytest.approx(np.mean(right)))
    assert len(found.by_pieces) == len(by_pieces)
    assert found.outcome is not None
    none = move_accuracy(network, samples._replace(results=np.full_like(samples.results, UNKNOWN)))
    assert none.outcome is None
    with pytest.raises(ValueError, match="no moves to measure"):
        move_accuracy(network, samples.take(np.arange(0)))


# Learning


def test_batch(collection: Path) -> None:
    samples = read_expert_games(collection).samples.take(np.arange(0, 300, 7))
    samples = samples._replace(results=np.arange(len(samples.moves), dtype=np.uint8) % 4)
    batch = expert_batch(samples)
    assert (batch.policy.sum(1) == 1).all()
    assert batch.policy.argmax(1).tolist() == samples.moves.tolist()
    for outcome, row in ((WIN, [1, 0, 0]), (DRAW, [0, 1, 0]), (LOSS, [0, 0, 1]), (UNKNOWN, [1 / 3] * 3)):
        assert torch.allclose(batch.wdl[outcome], torch.tensor(row, dtype=torch.float32))


def test_batch_of_all_outputs(collection: Path) -> None:
    samples = read_expert_games(collection).samples.take(np.arange(0, 300, 7))
    among_legal, among_all = expert_batch(samples), output_batch(samples)
    assert torch.equal(among_all.wdl, among_legal.wdl)
    first = [int(among_legal.hops[row, move, 0]) for row, move in enumerate(samples.moves.tolist())]
    assert among_all.policy.argmax(1).tolist() == first
    assert (among_all.policy.sum(1) == 1).all()
    logits = torch.randn(len(first), 128)
    loss, _ = training_loss(logits, torch.zeros(len(first), 3), among_all, wdl_weight=0)
    assert float(loss) == pytest.approx(float(torch.nn.functional.cross_entropy(logits, torch.tensor(first))))


def test_all_outputs_are_learnt_where_they_are_the_target(collection: Path) -> None:
    split = split_by_game(read_expert_games(collection), 1)
    raw = []
    for batch_of in (expert_batch, output_batch):
        torch.manual_seed(0)
        training = Pretraining(make_network(NETWORKS["tiny"]), split.train, 1.0, seed=1, batch_of=batch_of)
        for _ in range(100):
            training.trainer.step(training.draw(256))
        raw.append(move_accuracy(training.trainer.ema_network, split.train).raw[1])
    assert raw[1] > raw[0] + 0.03


def test_it_learns(collection: Path) -> None:
    split = split_by_game(read_expert_games(collection), 1)
    torch.manual_seed(0)
    training = Pretraining(make_network(NETWORKS["tiny"]), split.train, 1.0, seed=1)
    before = move_accuracy(training.trainer.ema_network, split.train).legal[1]
    for _ in range(200):
        training.trainer.step(training.draw(256))
    assert training.epochs == pytest.approx(200 * 256 / len(split.train.moves))
    assert move_accuracy(training.trainer.ema_network, split.train).legal[1] > max(0.5, before + 0.1)


def test_the_rate_follows_the_clock(collection: Path) -> None:
    split = split_by_game(read_expert_games(collection), 1)
    training, points = Pretraining(make_network(NETWORKS["tiny"]), split.train, 0.05, seed=1), []
    last = training.run(points.append)
    assert last is points[-1]
    assert last.seconds >= 3
    config = training.trainer.config  # of the last stretch: it expected to be over about now
    assert config.schedule_steps == pytest.approx(last.steps, abs=max(50, 0.5 * last.steps))
    assert config.warmup_steps <= config.schedule_steps // 10


def test_pretrain_makes_a_network_that_plays(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "net"
    figures = pretrain_command(collection, out, "tiny", 0.03, 1, quiet=False)
    assert figures["games"] + figures["twice"] == 60
    assert set(figures["test"]) == {"samples", "legal", "raw", "with_choice", "by_pieces", "outcome"}
    assert "of the legal moves" in capsys.readouterr().out
    info = load_checkpoint(out).info
    assert info.figures["positions"] == figures["positions"]
    assert info.figures["test"] == json.loads(json.dumps(figures["test"]))
    from player_of import player_of

    (move,) = player_of(f"{out}@0@off").choose([Board()])
    assert move in Board().legal_moves
    again = pretrain_command(collection, tmp_path / "more", str(out), 0.01, 1, quiet=True)
    assert again["test"]["legal"]["1"] > 0.3  # it has not begun anew
    with pytest.raises(ExpertGamesError, match="--net 9x9: choose one of"):
        named_network("9x9", 1)
    with pytest.raises(ExpertGamesError, match="more than none"):
        pretrain_command(collection, out, "tiny", 0, 1, quiet=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="is in the way and no checkpoint"):
        pretrain_command(collection, tmp_path / "full", "tiny", 1, 1, quiet=True)
    (out / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match=r"letter\.txt would be lost"):
        pretrain_command(collection, out, "tiny", 1, 1, quiet=True)
    with pytest.raises(StorageError, match="a file is in the way"):
        pretrain_command(collection, out / "letter.txt" / "net", "tiny", 1, 1, quiet=True)
    with claimed(tmp_path / "more"), pytest.raises(FileInUseError, match="more is in use by another process"):
        pretrain_command(collection, tmp_path / "more", "tiny", 1, 1, quiet=True)


def test_an_empty_folder_is_filled_and_the_parent_noted(collection: Path, tmp_path: Path) -> None:
    begun = save_checkpoint(tmp_path / "begun", make_network(NETWORKS["tiny"]))
    (tmp_path / "empty").mkdir()
    pretrain_command(collection, tmp_path / "empty", str(tmp_path / "begun"), 0.01, 1, quiet=True)
    assert load_checkpoint(tmp_path / "empty").info.parent == begun.digest


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_saves_what_was_learnt(collection: Path, tmp_path: Path) -> None:
    out = tmp_path / "net"
    save_checkpoint(out, make_network(NETWORKS["tiny"]))
    digest = load_checkpoint(out).info.digest
    for patience in (6, 12, 24, 48, 96):  # until the training has begun: that depends on what else the machine does
        process = subprocess.Popen(
            crownhead_program("pretrain", collection, "--out", out, "--net", "tiny"),
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        time.sleep(patience)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        if load_checkpoint(out).info.digest != digest:
            break
    assert process.returncode == 130
    assert said.splitlines()[-1] == f"crownhead: interrupted: what was learnt until then is in {out}"
    assert load_checkpoint(out).info.digest != digest


def test_ctrl_c_while_it_is_measured_saves_what_was_learnt(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("learner.expert.commands.move_accuracy", interrupted)
    with pytest.raises(KeyboardInterrupt, match="what was learnt until then is in"):
        pretrain_command(collection, tmp_path / "net", "tiny", 0.01, 1, quiet=True)
    figures = load_checkpoint(tmp_path / "net").info.figures
    assert figures["steps"] > 0
    assert "test" not in figures


# The published network


def test_piece_numbers() -> None:
    from engine.encoding import encode_planes

    board = Board("B:B1,K2:W32,K31")
    planes = torch.from_numpy(encode_planes(np.array([[*board.words(), 12]], np.uint32)))
    numbers = piece_numbers(planes).flatten()
    assert sorted(numbers[numbers != 0].tolist()) == [-3, -1, 1, 3]
    assert board.turn is Color.BLACK


def test_inception_network() -> None:
    network = InceptionNetwork(2, 16).eval()
    planes = torch.rand(3, 6, 8, 4)
    policy, wdl = network(planes)
    assert policy.shape == (3, 128)
    assert wdl.shape == (3, 3)
    other = planes.clone()
    other[:, 4:] = 0  # reversible plies and rows are not seen
    assert torch.equal(network(other)[0], policy)


def test_larson(collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        name: replace(one, make=lambda: make_network(NETWORKS["tiny"]))
        for name, one in larson.NETWORKS_COMPARED.items()
    }
    monkeypatch.setattr(larson, "NETWORKS_COMPARED", small)
    figures = larson_command(collection, None, 0.01, 1, tmp_path / "report", quiet=True)
    rows = figures["predictions"]["rows"]
    assert len(rows) == 8
    assert (tmp_path / "report" / "predictions.png").is_file()
    page = (tmp_path / "report" / "report.md").read_text()
    assert "| games | 22,000 | " in page
    assert "| steps | 150,000 | " in page
    assert rows[0]["measured"]["top1"] <= rows[0]["measured"]["top10"] <= 1
    assert "Larson 2016" in (tmp_path / "report" / "report.md").read_text()

    own = larson_command(collection, "own", 0.01, 1, tmp_path / "report", quiet=True)
    assert [row["name"] for row in own["predictions"]["rows"]] == [row["name"] for row in rows[4:]]

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Pretraining, "run", interrupted)
        for experiment, message in (
            ("own", "what was learnt until then is reported in"),
            (None, "holds what was done"),
        ):
            out = tmp_path / f"partial-{experiment}"
            with pytest.raises(KeyboardInterrupt, match=message):
                larson_command(collection, experiment, 0.01, 1, out, quiet=True)
            partial = json.loads((out / "report.json").read_text())
            assert partial["facts"]["minutes of training"] == "interrupted"
            assert len(partial["experiments"]["predictions"]["rows"]) == 4
    measured = []

    def measure(*arguments: Any) -> MoveAccuracy:
        measured.append(arguments)
        if len(measured) > 2:  # the second network's
            raise KeyboardInterrupt
        return move_accuracy(*arguments)

    monkeypatch.setattr(larson, "move_accuracy", measure)
    with pytest.raises(KeyboardInterrupt, match="holds what was done: predictions"):
        larson_command(collection, None, 0.01, 1, tmp_path / "tested", quiet=True)
    partial = json.loads((tmp_path / "tested" / "report.json").read_text())
    assert partial["experiments"]["predictions"]["rows"][0]["name"].startswith("network as published")
    assert partial["facts"]["not done, or not whole"] == "predictions"
    with pytest.raises(ReproduceError, match="must be above 0"):
        larson_command(collection, None, -1, 1, tmp_path / "x", quiet=True)
    with pytest.raises(ReproduceError, match="choose published, own"):
        larson_command(collection, "both", 1, 1, tmp_path / "x", quiet=True)


def test_samples_can_be_taken_by_number_and_by_truth(collection: Path) -> None:
    samples = read_expert_games(collection).samples
    chosen = samples.games == 3
    assert all((a == b).all() for a, b in zip(samples.take(chosen), samples.take(np.flatnonzero(chosen)), strict=True))
    assert isinstance(samples.take(chosen), ExpertSamples)
