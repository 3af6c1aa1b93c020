"""The small network for the board: its file, its kernels, and its searches."""

from pathlib import Path

import numpy as np
import pytest
import torch
from endgame_oracles import TableOracle
from search_boards import mixed_boards
from test_inference import moderate
from test_step_loop import CONFIGS, ENDGAMES, Plain, assert_same, trees

from engine.board import Board
from engine.encoding import encode_planes
from engine.search import CachedEvaluator
from engine.search.batches import BatchSearcher
from learner.checkpoint import CheckpointError, load_checkpoint, save_checkpoint, write_tensors
from learner.inference import BackendError, StudentEvaluator
from learner.inference.calibration import random_positions
from learner.network import NETWORKS
from learner.phases import NUM_PHASES
from learner.student import STUDENT_FILE, Student, StudentConfig, load_student, save_student
from selfplay.players import checkpoint_folder, make_player

SIZES = [StudentConfig(units=32, hidden=16), StudentConfig(units=96, hidden=48)]
KINGS = np.array([[*Board(fen).words(), 37] for fen in ENDGAMES], np.uint32)


def random_student(config: StudentConfig = SIZES[0], seed: int = 1) -> Student:
    """A student whose answers differ much from position to position."""
    torch.manual_seed(seed)
    student = Student(config).eval().requires_grad_(False)
    for layer in (module for module in student.modules() if isinstance(module, torch.nn.Linear)):
        layer.weight.normal_(std=0.3)
        layer.bias.normal_()
    return student


def phase_by_hand(own: int, opp: int, kings: int) -> int:
    pieces = own.bit_count() + opp.bit_count()
    if kings:
        return 4 if pieces >= 12 else 5 if pieces >= 9 else 6 if pieces >= 7 else 7
    return 0 if pieces >= 20 else 1 if pieces >= 16 else 2 if pieces >= 12 else 3


def test_each_phase_has_its_own_layer() -> None:
    positions = np.concatenate([KINGS, random_positions(1000)])
    student = random_student()
    policy, wdl = (answer.numpy() for answer in student(torch.from_numpy(encode_planes(positions))))
    seen = set()
    for position, logits, results in zip(positions, policy, wdl, strict=True):
        number = phase_by_hand(*position[:3].tolist())
        seen.add(number)
        phase = student.phases[number]
        units = torch.relu(phase.wide(torch.from_numpy(encode_planes(position[None]).reshape(-1)[:129])))
        np.testing.assert_allclose(logits, student.policy(units).numpy(), atol=1e-4)
        np.testing.assert_allclose(results, phase.wdl(torch.relu(phase.hidden(units))).numpy(), atol=1e-4)
    assert seen == set(range(NUM_PHASES))


def test_phases_begin_alike() -> None:
    first, *others = (phase.state_dict() for phase in Student(SIZES[0]).phases)
    assert all(torch.equal(phase[name], first[name]) for phase in others for name in first)
    assert first["wide.weight"].std() > 0.1


@pytest.mark.parametrize("config", SIZES, ids=str)
@pytest.mark.parametrize("number", [1, 3, 64, 150])
def test_kernels_say_what_torch_says(config: StudentConfig, number: int) -> None:
    student = random_student(config)
    positions = np.concatenate([KINGS, random_positions(number)])[-number:] if number > 3 else KINGS[:number]
    policy_logits, wdl_logits = StudentEvaluator(student).evaluate(positions)
    policy, wdl = (answer.numpy() for answer in student(torch.from_numpy(encode_planes(positions))))
    assert policy_logits.shape == (number, 128)
    np.testing.assert_allclose(policy_logits, policy, atol=1e-4)
    np.testing.assert_allclose(wdl_logits, wdl, atol=1e-4)
    assert np.ptp(wdl) > 0.5


def test_reversible_plies_are_seen() -> None:
    evaluator = StudentEvaluator(random_student())
    early, late = KINGS[:1].copy(), KINGS[:1].copy()
    early[0, 3], late[0, 3] = 0, 79
    assert not np.allclose(evaluator.evaluate(early)[1], evaluator.evaluate(late)[1], atol=1e-3)


@pytest.mark.parametrize("positions", [np.zeros((2, 4), np.int64), np.zeros((2, 3), np.uint32)])
def test_positions_of_another_kind_are_refused(positions: np.ndarray) -> None:
    with pytest.raises(ValueError, match="not uint32"):
        StudentEvaluator(random_student()).evaluate(positions)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_searches_in_compiled_code_are_those_step_by_step(config) -> None:
    evaluator = StudentEvaluator(random_student())
    assert isinstance(evaluator, BatchSearcher)
    boards = mixed_boards(seed=3)[:4]
    batched, plain = trees(config, boards), trees(config, boards)
    for search in (batched, plain):
        for slot in range(len(boards)):
            search.start(slot)
    asked = evaluator.asked
    made = batched.run(evaluator)
    assert evaluator.asked - asked == made > 0
    assert plain.run(Plain(evaluator)) == made
    assert_same(batched, plain)


def test_what_the_oracle_knows_is_left_to_it() -> None:
    config = CONFIGS["in flight"].model_copy(update={"oracle": "tablebase"})
    evaluator, proven = StudentEvaluator(random_student()), 0
    for fen in ENDGAMES:
        searches = [trees(config, [Board(fen)], TableOracle(True)) for _ in range(2)]
        for search, judge in zip(searches, (evaluator, Plain(evaluator)), strict=True):
            search.start(0)
            search.run(judge)
        proven += np.count_nonzero(searches[1]._nodes["proof"])
        assert_same(*searches)
    assert proven


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    assert load_student(tmp_path, "teacher") is None
    student = random_student(SIZES[1])
    assert save_student(tmp_path, student, "teacher", {"games": 3.0}) == tmp_path / STUDENT_FILE
    found = load_student(tmp_path, "teacher")
    assert found is not None
    again, info = found
    assert info.student == SIZES[1]
    assert info.figures == {"games": 3.0}
    for name, weights in student.state_dict().items():
        assert torch.equal(weights, again.state_dict()[name])
    save_student(tmp_path, random_student(), "teacher")
    assert load_student(tmp_path, "teacher")[1].student == SIZES[0]


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    student = random_student()
    path = save_student(tmp_path, student, "teacher")
    whole = path.read_bytes()
    with pytest.raises(CheckpointError, match="taught by another network"):
        load_student(tmp_path, "another")
    for damaged in (whole[:-5], whole[:-5] + bytes(5), b""):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=STUDENT_FILE):
            load_student(tmp_path, "teacher")
    info = {"schema_version": 2, "student": {"units": 64, "hidden": 16}, "teacher": "teacher", "figures": {}}
    write_tensors(path, student.state_dict(), {**info, "crownhead": "0"})
    with pytest.raises(CheckpointError, match="another network"):
        load_student(tmp_path, "teacher")
    write_tensors(path, student.state_dict(), info)
    with pytest.raises(CheckpointError, match="crownhead"):
        load_student(tmp_path, "teacher")
    write_tensors(path, student.state_dict(), {**info, "schema_version": 1})
    with pytest.raises(CheckpointError, match="version 1"):
        load_student(tmp_path, "teacher")


def test_weights_that_are_no_numbers_are_not_written(tmp_path: Path) -> None:
    student = random_student()
    student.phases[0].wdl.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match="not finite"):
        save_student(tmp_path, student, "teacher")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def taught(tmp_path: Path) -> Path:
    """A network with a student beside it."""
    save_checkpoint(tmp_path / "net", moderate(NETWORKS["tiny"]))
    save_student(tmp_path / "net", random_student(), load_checkpoint(tmp_path / "net").info.digest)
    return tmp_path / "net"


def evaluator_of(text: object, **options) -> CachedEvaluator | StudentEvaluator:
    return make_player(str(text), **options)._evaluator


def test_the_student_plays_where_time_limits_the_search(taught: Path) -> None:
    assert isinstance(evaluator_of(taught, seconds=0.05), StudentEvaluator)
    assert isinstance(evaluator_of(taught, simulations=10, timed=True), StudentEvaluator)
    assert isinstance(evaluator_of(f"{taught}@student"), StudentEvaluator)
    assert isinstance(evaluator_of(taught, backend="student"), StudentEvaluator)
    assert isinstance(evaluator_of(taught, simulations=10), CachedEvaluator)
    assert isinstance(evaluator_of(f"{taught}@torch", seconds=0.05), CachedEvaluator)
    board = Board()
    assert make_player(str(taught), seconds=0.05).choose([board])[0] in board.legal_moves


def test_without_a_student_the_network_plays(taught: Path) -> None:
    (taught / STUDENT_FILE).unlink()
    assert isinstance(evaluator_of(taught, seconds=0.05), CachedEvaluator)
    with pytest.raises(BackendError, match="no student beside"):
        make_player(f"{taught}@student")


def test_a_damaged_student_is_no_secret(taught: Path) -> None:
    (taught / STUDENT_FILE).write_bytes(b"no student")
    with pytest.raises(CheckpointError, match=STUDENT_FILE):
        make_player(str(taught), seconds=0.05)


def test_the_champion_has_a_student() -> None:
    folder = checkpoint_folder("champion")
    found = load_student(folder, load_checkpoint(folder).info.digest)
    assert found is not None
    _, wdl_logits = StudentEvaluator(found[0]).evaluate(np.array([[*Board("B:W32:B1,2,3,4,5").words(), 0]], np.uint32))
    assert wdl_logits[0].argmax() == 0, "five men against one"
