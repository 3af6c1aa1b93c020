"""Samples from inside trees, and a student that learns from them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from search_boards import mixed_boards
from search_reference import HashEvaluator
from test_inference import moderate
from test_step_loop import trees

from engine.bitboard import turned
from engine.board import Board
from engine.movegen import DISTINCT, generate, jumpers_of, new_moves
from engine.search import SearchConfig
from engine.search.tree import UNKNOWN
from learner.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from learner.network import NETWORKS
from learner.student import StudentConfig, load_student
from learner.teaching import teach
from learner.trainer import TrainingError
from selfplay import teaching
from selfplay.teaching import TeachingError, samples_of_games, teach_command
from selfplay.tree_samples import (
    LEAST_POLICY_VISITS,
    LEAST_VISITS,
    SampleReader,
    TreeSamples,
    offshoots,
    training_batch,
)

CONFIG = SearchConfig(num_simulations=600, leaves_in_flight=4, policy_temperature=2.0)


def plain_samples(nodes: np.ndarray, root: int, end: int) -> list[tuple[list[int], list[float], list[float]]]:
    """Position, win/draw/loss and policy of every sample, node by node."""
    found, families = [], set()
    for node in nodes[root:end]:
        family = int(node["first_child"])
        children = nodes[family : family + int(node["num_children"])]
        visits = 1 + int(children["visits"].sum())
        wanted = node["proof"] == UNKNOWN and node["judged"] and len(children) > 1 and visits >= LEAST_VISITS
        if not wanted or node["visits"] < 2 or family in families:
            continue
        families.add(family)
        value = (node["raw_value"] + children["value_sum"].sum()) / visits
        draw = (node["raw_draw"] + children["draw_sum"].sum()) / visits
        words = [int(turned(node[name])) for name in ("opp", "own", "kings")]
        policy = list(children["visits"] / (visits - 1)) if visits >= LEAST_POLICY_VISITS else []
        found.append(
            ([*words, int(node["reversible"])], [(1 - draw + value) / 2, draw, (1 - draw - value) / 2], policy)
        )
    return found


@pytest.mark.parametrize("shares", [False, True])
def test_samples_are_what_the_tree_holds(shares: bool) -> None:
    boards = [board for board in mixed_boards(seed=2) if len(board.distinct_moves) > 1]
    search = trees(CONFIG.model_copy(update={"transpositions": shares}), boards)
    reader = SampleReader(search)
    for slot in range(len(boards)):
        search.start(slot)
    search.run(HashEvaluator())
    total = 0
    for slot in [*range(len(boards)), 0]:  # what has been read leaves nothing behind
        samples, expected = reader.read(slot), plain_samples(*search.tree(slot))
        assert len(samples) == len(expected)
        total += len(samples)
        assert samples.positions.tolist() == [position for position, _, _ in expected]
        outcomes = np.reshape([wdl for _, wdl, _ in expected], (-1, 3))
        np.testing.assert_allclose(samples.wdl, outcomes, atol=2e-3)
        assert samples.lengths.tolist() == [len(policy) for _, _, policy in expected]
        np.testing.assert_allclose(samples.probabilities, [p for _, _, policy in expected for p in policy], atol=1e-3)
    assert total > 50


def test_the_root_is_a_sample_with_a_policy() -> None:
    search = trees(CONFIG, [Board()])
    search.start(0)
    search.run(HashEvaluator())
    samples = SampleReader(search).read(0)
    assert samples.positions[0].tolist() == [*Board().words(), 0]
    visits = search.result(0).visits
    np.testing.assert_allclose(samples.probabilities[: samples.lengths[0]], visits / visits.sum(), atol=2e-3)


def test_offshoots_are_quiet_positions_of_the_game() -> None:
    positions = np.array([[*board.words(), 5] for board in mixed_boards(seed=4)], np.uint32)
    network, moves = HashEvaluator(), new_moves(1)[0]
    samples = offshoots(positions, network, seed=1)
    assert 0 < len(samples) <= len(positions)
    assert not samples.lengths.any()
    for own, opp, kings, reversible in samples.positions:
        assert reversible == 0
        assert int(own & opp) == 0
        assert int(kings & ~(own | opp)) == 0
        assert jumpers_of(own, opp, kings) == 0
        assert generate(own, opp, kings, moves, DISTINCT) > 0
    _, logits = network.evaluate(samples.positions)
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(samples.wdl, expected, atol=1e-3)
    again, other = offshoots(positions, network, seed=1), offshoots(positions, network, seed=2)
    assert again.positions.tolist() == samples.positions.tolist() != other.positions.tolist()


def played(*seed: int) -> list[TreeSamples]:
    return list(samples_of_games(HashEvaluator(), HashEvaluator(), CONFIG, 3, seed))


@pytest.fixture(scope="module")
def parts() -> list[TreeSamples]:
    """Of three games."""
    return played(5, 0)


@pytest.fixture
def samples(parts: list[TreeSamples]) -> TreeSamples:
    return TreeSamples.joined(parts)


@pytest.fixture
def offsets(samples: TreeSamples) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(samples.lengths, dtype=np.int64)])


def test_games_are_played_to_their_ends_and_again_the_same(parts: list[TreeSamples]) -> None:
    assert len(parts) == 3
    assert min(map(len, parts)) > 10
    assert all(np.array_equal(a.positions, b.positions) for a, b in zip(parts, played(5, 0), strict=True))
    assert not np.array_equal(parts[0].positions, played(0, 5)[0].positions)


def test_a_file_comes_back_as_it_was(tmp_path: Path, samples: TreeSamples) -> None:
    path = tmp_path / "a.safetensors"
    samples.save(path, 3)
    again, games = TreeSamples.load(path)
    assert games == 3
    for name in ("positions", "wdl", "lengths", "probabilities"):
        np.testing.assert_array_equal(getattr(samples, name), getattr(again, name))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes(255 - byte for byte in whole[-9:]))
    with pytest.raises(CheckpointError, match=r"a\.safetensors"):
        TreeSamples.load(path)


def test_batches_hold_their_samples(samples: TreeSamples, offsets: np.ndarray) -> None:
    rows = np.random.default_rng(1).permutation(len(samples))[:50]
    batch = training_batch(samples, offsets, rows)
    assert batch.positions.numpy().view(np.uint32).tolist() == samples.positions[rows].tolist()
    np.testing.assert_allclose(batch.wdl, samples.wdl[rows], atol=2e-3)
    for row, policy in zip(rows, batch.policy.numpy(), strict=True):
        kept = samples.probabilities[offsets[row] : offsets[row + 1]]
        np.testing.assert_allclose(policy[: len(kept)], kept, atol=2e-3)
        assert not policy[len(kept) :].any()


def test_a_student_learns_its_samples(samples: TreeSamples, offsets: np.ndarray) -> None:
    student = teaching.Student(StudentConfig(units=64, hidden=16))
    losses: list[float] = []
    number, epochs = 300, 200  # few, so that they can be learnt by heart
    steps = teach(
        student,
        number,
        lambda rows: training_batch(samples, offsets, rows),
        epochs,
        1,
        lambda step: losses.append(step.loss),
        batch_size=100,
    )
    assert steps == len(losses) == 600
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.1
    assert not any(weights.requires_grad for weights in student.parameters())


def test_losses_that_are_no_numbers_end_the_teaching(samples: TreeSamples, offsets: np.ndarray) -> None:
    student = teaching.Student(StudentConfig(units=32, hidden=16))
    student.phases[0].wdl.bias.data[0] = float("nan")
    with pytest.raises(TrainingError, match="not finite"):
        teach(student, len(samples), lambda rows: training_batch(samples, offsets, rows), 1, 1)


def teach_tiny(net: Path, folder: Path, games: int = 3, epochs: float = 1.0, seed: int = 1):
    return teach_command(str(net), folder, games, epochs, 200, 32, seed, quiet=True)


def test_the_command_plays_teaches_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teaching, "_GAMES_PER_FILE", 2)
    net, folder = tmp_path / "net", tmp_path / "samples"
    save_checkpoint(net, moderate(NETWORKS["tiny"]))
    digest = load_checkpoint(net).info.digest
    played = teach_tiny(net, folder, epochs=0)
    assert played["games"] == 3
    assert played["student"] is None
    assert load_student(net, digest) is None
    files = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(files) == 2
    first, second = (TreeSamples.load(path)[0].positions for path in sorted(files))
    assert not np.array_equal(first[: len(second)], second[: len(first)])
    taught = teach_tiny(net, folder, games=0)
    assert (taught["games"], taught["samples"]) == (3, played["samples"])
    _, info = load_student(net, digest)
    assert info.student.units == 32
    assert info.figures == {"games": 3, "samples": played["samples"], "steps": taught["steps"], "epochs": 1.0}
    before = load_student(net, digest)[0].policy.weight
    for anew in (False, True):  # hardly a step
        teach_command(str(net), folder, 0, 1e-6, 200, 32, 2, quiet=True, anew=anew)
        after = load_student(net, digest)[0].policy.weight
        assert not torch.equal(before, after)
        assert torch.allclose(before, after, atol=0.05) != anew
    more = teach_tiny(net, folder, games=5, epochs=0)  # the student plays now
    assert more["games"] == 5
    kept = {path: path.stat().st_mtime_ns for path in files}
    assert [kept[path] == files[path] for path in sorted(files)] == [True, False], "the second had one game only"


def test_nothing_to_teach_with(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net", moderate(NETWORKS["tiny"]))
    with pytest.raises(TeachingError, match="no samples"):
        teach_tiny(tmp_path / "net", tmp_path / "samples", games=0)
