"""The wide family: its network, its kernels, its searches; and a checkpoint's student."""

import copy
import json
import shutil
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from search_boards import mixed_boards
from test_inference import moderate

from engine.bitboard import SQUARE_OF_BIT, squares_of
from engine.board import Board
from engine.encoding import encode_planes
from engine.outcomes import UNKNOWN
from engine.players.search_player import SearchPlayer
from engine.players.spec import parse_player
from engine.sealed import unsealed
from engine.search import CompiledEvaluator, Evaluator, LockstepSearch, SearchConfig
from engine.tablebase import open_tablebase
from learner.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from learner.inference import BackendError, make_evaluator
from learner.inference.calibration import random_positions
from learner.inference.torch_evaluator import TorchEvaluator
from learner.inference.wide_evaluator import WideEvaluator, pack_wide, room_for
from learner.inference.wide_kernels import BEGINNINGS, PHASE_ROWS, WideWeights, change_units, sum_units
from learner.network import NETWORKS, WideConfig, make_network
from learner.student import STUDENT_FOLDER, has_student, load_student, read_student_info
from learner.wide import NUM_NEIGHBOUR_ROWS, NUM_PHASES, STATE_BEGINS, WideNetwork
from selfplay.conditions import Conditions
from selfplay.players import checkpoint_folder, make_player

SIZES = [
    WideConfig(units=32, hidden=16),
    WideConfig(units=96, hidden=48),
    WideConfig(units=64, hidden=16, neighbours=True),
]
ENDGAMES = ["B:W31,32,27:B1,K10,2", "W:WK18,K19,30:BK1,12,5,9", "B:W18,K22:B7,8,K11,3"]
CONFIGS = {
    "one leaf": SearchConfig(num_simulations=150),
    "in flight": SearchConfig(num_simulations=300, leaves_in_flight=16, shot_prior=0.3, policy_temperature=2.0),
    "more than room": SearchConfig(num_simulations=1500, leaves_in_flight=80, virtual_loss=0.5),
    "shared": SearchConfig(num_simulations=400, leaves_in_flight=8, transpositions=True, draw_value=-0.3),
}
KINGS = np.array([[*Board(fen).words(), 37] for fen in ENDGAMES], np.uint32)


def random_wide(config: WideConfig = SIZES[0], seed: int = 1) -> WideNetwork:
    """A random network whose answers differ strongly between positions."""
    torch.manual_seed(seed)
    network = make_network(config).eval().requires_grad_(False)
    assert isinstance(network, WideNetwork)
    for layer in (module for module in network.modules() if isinstance(module, torch.nn.Linear)):
        layer.weight.normal_(std=0.3)
        layer.bias.normal_()
    if network.neighbours is not None:
        network.neighbours.rows[:-1].normal_(std=0.05)
    return network


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    """Asserts equality up to the error of integer arithmetic."""
    np.testing.assert_allclose(found, wanted, atol=1e-3 * float(np.abs(wanted).max()))


class Plain:
    """An evaluator that hides that another one is compiled."""

    def __init__(self, evaluator: WideEvaluator) -> None:
        self.evaluate = evaluator.evaluate


def phase_by_hand(own: int, opp: int, kings: int) -> int:
    pieces = own.bit_count() + opp.bit_count()
    if kings:
        return 4 if pieces >= 12 else 5 if pieces >= 9 else 6 if pieces >= 7 else 7
    return 0 if pieces >= 20 else 1 if pieces >= 16 else 2 if pieces >= 12 else 3


def neighbour_rows_by_hand(position: np.ndarray) -> list[int]:
    """Numbers of the weight rows of all pieces and their neighbours, from rows and columns of the board."""
    words = [int(word) for word in position[:3]]
    own, opp, kings = ({divmod(square, 4) for square in squares_of(word)} for word in words)
    states: dict[tuple[int, int], dict[tuple[str, ...], int]] = {}
    number = 0
    for row, place in product(range(8), range(4)):
        column = 2 * place + 1 - row % 2
        steps = [(row + up, column + right) for up, right in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
        inside = [(up, right // 2) for up, right in steps if 0 <= up < 8 and 0 <= right < 8]
        of_square = states[row, place] = {}
        for state in product(("empty", "own", "opp"), repeat=len(inside)):
            of_square[state[::-1]] = number  # the first direction counts least
            number += 1
        if (row, place) in own | opp:
            found = tuple("own" if at in own else "opp" if at in opp else "empty" for at in inside)
            states[row, place] = {found: of_square[found]}
    kind = {at: 2 * (at in opp) + (at in kings) for at in own | opp}
    return sorted(kind[at] * number + next(iter(states[at].values())) for at in own | opp)


def test_neighbours_are_those_on_the_board() -> None:
    network = random_wide(SIZES[2])
    assert network.neighbours is not None
    seen = set()
    for position in np.concatenate([KINGS, random_positions(300)]):
        wanted = neighbour_rows_by_hand(position)
        seen.update(wanted)
        pieces = torch.from_numpy(encode_planes(position[None])).flatten(1)[:, :128]
        expected = network.neighbours.rows[wanted].sum(0)
        np.testing.assert_allclose(network.neighbours(pieces)[0].numpy(), expected.numpy(), atol=1e-5)
    assert len(seen) > 500
    assert max(seen) < NUM_NEIGHBOUR_ROWS


@pytest.mark.parametrize("config", [SIZES[0], SIZES[2]], ids=str)
def test_each_phase_has_its_own_layer(config: WideConfig) -> None:
    positions = np.concatenate([KINGS, random_positions(1000)])
    network = random_wide(config)
    policy, wdl = (answer.numpy() for answer in network(torch.from_numpy(encode_planes(positions))))
    seen = set()
    for position, logits, results in zip(positions, policy, wdl, strict=True):
        number = phase_by_hand(*position[:3].tolist())
        seen.add(number)
        phase = network.phases[number]
        x = torch.from_numpy(encode_planes(position[None]).reshape(-1)[:129])
        around = 0 if network.neighbours is None else network.neighbours(x[None, :128])[0]
        units = torch.relu(phase.wide(x) + around)
        np.testing.assert_allclose(logits, network.policy(units).numpy(), atol=1e-4)
        np.testing.assert_allclose(results, phase.wdl(torch.relu(phase.hidden(units))).numpy(), atol=1e-4)
    assert seen == set(range(NUM_PHASES))


def test_phases_begin_alike() -> None:
    first, *others = (phase.state_dict() for phase in make_network(SIZES[0]).phases)
    assert all(torch.equal(phase[name], first[name]) for phase in others for name in first)
    assert first["wide.weight"].std() > 0.1


@pytest.mark.parametrize("config", SIZES, ids=str)
@pytest.mark.parametrize("number", [1, 3, 64, 150])
def test_kernels_say_what_torch_says(config: WideConfig, number: int) -> None:
    network = random_wide(config)
    positions = np.concatenate([KINGS, random_positions(number)])[-number:] if number > 3 else KINGS[:number]
    policy_logits, wdl_logits = WideEvaluator(network).evaluate(positions)
    policy, wdl = (answer.numpy() for answer in network(torch.from_numpy(encode_planes(positions))))
    assert policy_logits.shape == (number, 128)
    assert_close(policy_logits, policy)
    assert_close(wdl_logits, wdl)
    assert np.ptp(wdl) > 0.5


def by_integers(position: np.ndarray, weights: WideWeights) -> tuple[np.ndarray, np.ndarray]:
    """The result of the kernels for one position, computed step by step with Python's integers."""
    own, opp, kings = (int(word) for word in position[:3])
    phase, units = phase_by_hand(own, opp, kings), len(weights.policy) // 128
    all_rows = weights.rows.reshape(-1, units).astype(object)
    rows, neighbours = all_rows[phase * PHASE_ROWS :], all_rows[8 * PHASE_ROWS :]
    sums = rows[min(int(position[3]), 80)].copy()
    if len(neighbours):
        sums += neighbours[neighbour_rows_by_hand(position)].sum(0)
    for bit in range(32):
        for pieces, kind in ((own, 0), (opp, 2)):
            if pieces >> bit & 1:
                sums += rows[BEGINNINGS + 32 * (kind + (kings >> bit & 1)) + bit]
    x = np.maximum(sums, 0)
    assert max(x) <= 32767
    policy = weights.policy.reshape(128, units).astype(object) @ x
    hidden = len(weights.hidden_bias) // 8
    matrix = weights.hidden.reshape(8, hidden // 32, units // 2, 32, 2)[phase].transpose(1, 3, 0, 2).reshape(units, -1)
    inner = x @ matrix.astype(object)
    assert max(map(abs, [*policy, *inner])) < 2**31
    scale, bias = (part.reshape(8, hidden)[phase] for part in (weights.hidden_scale, weights.hidden_bias))
    bent = np.maximum(inner.astype(np.float64) * scale + bias, 0)
    wdl = weights.wdl.reshape(8, 3, hidden)[phase] @ bent + weights.wdl_bias.reshape(8, 3)[phase]
    return policy.astype(np.float64) * weights.policy_scale + weights.policy_bias, wdl


@pytest.mark.parametrize("config", SIZES, ids=str)
def test_kernels_say_what_integers_say(config: WideConfig) -> None:
    network, positions = random_wide(config), np.concatenate([KINGS, random_positions(40)])
    weights = pack_wide(network)
    for position, *found in zip(positions, *WideEvaluator(network).evaluate(positions), strict=True):
        for ours, theirs in zip(found, by_integers(position, weights), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("config", SIZES, ids=str)
def test_sums_follow_a_game(config: WideConfig) -> None:
    """Sums that are updated move by move equal those computed from scratch: men, kings, captures, promotions."""
    weights = pack_wide(random_wide(config))
    changed, anew = room_for(weights, 2), room_for(weights, 1)
    compared = 0
    for seed in range(12):
        earlier: dict[int, np.ndarray] = {}
        for ply, position in enumerate(a_game(seed)):
            phase, side = phase_by_hand(*position[:3].tolist()), ply % 2
            if side in earlier and phase == phase_by_hand(*earlier[side][:3].tolist()):
                change_units(earlier[side], position, phase, weights, changed, side, side)
                compared += 1
            else:
                sum_units(position, phase, weights, changed, side)
            sum_units(position, phase, weights, anew, 0)
            np.testing.assert_array_equal(changed.sums.reshape(2, -1)[side], anew.sums)
            earlier[side] = position
    assert compared > 300


def a_game(seed: int) -> list[np.ndarray]:
    """The positions of a game of random moves, each seen by its side to move."""
    board, rng, positions = Board(), np.random.default_rng(seed), []
    while board.outcome() is None:
        positions.append(np.array([*board.words(), board.reversible_plies], np.uint32))
        board.push(rng.choice(board.legal_moves))
    return positions


@pytest.mark.parametrize("config", [SIZES[0], SIZES[2]], ids=str)
@pytest.mark.parametrize("change", [1.0, 1e-6, 1e6])
def test_no_sum_is_too_large(change: float, config: WideConfig) -> None:
    """Not even with twelve pieces on each side where their weights are largest, and all units at their maximum."""
    network = random_wide(config)
    for phase in network.phases:
        phase.wide.weight *= change
        phase.hidden.weight[:, 3] *= 1000
    weights = pack_wide(network)
    units = len(weights.policy) // 128
    all_rows = np.abs(weights.rows.reshape(-1, units).astype(np.int64))
    rows = all_rows[: 8 * PHASE_ROWS].reshape(8, PHASE_ROWS, units)
    pieces = rows[:, BEGINNINGS:].reshape(8, 4, 32, units)
    if network.neighbours is not None:
        states = all_rows[8 * PHASE_ROWS :].reshape(4, -1, units)
        most = np.stack([states[:, first:end].max(1) for first, end in pairwise(STATE_BEGINS)], 1)
        pieces = pieces + most[:, SQUARE_OF_BIT]
    sides = np.sort(pieces.reshape(8, 2, 2, 32, units).max(2), 2)[:, :, -12:]
    greatest = rows[:, :BEGINNINGS].max(1) + sides.sum((1, 2))
    assert 30_000 < greatest.max() <= 32767
    for products in (
        np.abs(weights.policy.reshape(128, units).astype(np.int64)).sum(1),
        np.abs(weights.hidden.reshape(8, -1, units // 2, 32, 2).astype(np.int64)).sum((2, 4)),
    ):
        assert 0 < products.max() * 32767 < 2**31


def test_a_network_without_weights_is_no_trouble() -> None:
    network = random_wide()
    for parameter in network.parameters():
        parameter.zero_()
    assert not any(answer.any() for answer in WideEvaluator(network).evaluate(KINGS))


def test_reversible_plies_are_seen() -> None:
    evaluator = WideEvaluator(random_wide())
    early, late = KINGS[:1].copy(), KINGS[:1].copy()
    early[0, 3], late[0, 3] = 0, 79
    assert not np.allclose(evaluator.evaluate(early)[1], evaluator.evaluate(late)[1], atol=1e-3)


@pytest.mark.parametrize("positions", [np.zeros((2, 4), np.int64), np.zeros((2, 3), np.uint32)])
def test_positions_of_another_kind_are_refused(positions: np.ndarray) -> None:
    with pytest.raises(ValueError, match="not uint32"):
        WideEvaluator(random_wide()).evaluate(positions)


def searched(
    config: SearchConfig, boards: list[Board], evaluator: WideEvaluator | Plain, tables=None
) -> LockstepSearch:
    search = LockstepSearch(config, len(boards), seed=3, leaf_oracle=tables)
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.start(slot, config.num_simulations - slot)
    search.run(evaluator)
    return search


def assert_same(compiled: LockstepSearch, plain: LockstepSearch) -> None:
    for slot in range(plain.slots):
        nodes, first, end = plain.tree(slot)
        others, begin, last = compiled.tree(slot)
        assert (first, end) == (begin, last)
        for name in nodes.dtype.names:
            if name not in ("prior", "value_sum", "draw_sum", "raw_value", "raw_draw"):
                np.testing.assert_array_equal(nodes[name][first:end], others[name][first:end], err_msg=name)
        assert np.allclose(nodes["value_sum"][first:end], others["value_sum"][first:end], atol=1e-3)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_searches_in_compiled_code_are_those_step_by_step(config: SearchConfig) -> None:
    evaluator = WideEvaluator(random_wide(SIZES[2]))
    assert isinstance(evaluator, CompiledEvaluator)
    boards = [board for board in mixed_boards(seed=3) if len(board.distinct_moves) > 1]
    assert len(boards) > 8
    assert_same(searched(config, boards, evaluator), searched(config, boards, Plain(evaluator)))


def test_tables_decide_leaves_in_compiled_code() -> None:
    config = CONFIGS["in flight"].model_copy(update={"oracle": "tablebase"})
    evaluator, tables = WideEvaluator(random_wide()), open_tablebase()
    boards = [Board(fen) for fen in ENDGAMES]
    compiled, plain = searched(config, boards, evaluator, tables), searched(config, boards, Plain(evaluator), tables)
    assert_same(compiled, plain)
    nodes, first, end = plain.tree(0)
    assert np.count_nonzero(nodes[first:end]["proof"] != UNKNOWN) > 10


def test_new_weights_are_used_and_others_refused() -> None:
    first, second = random_wide(), random_wide(seed=2)
    evaluator, asked = WideEvaluator(first), random_positions(5)
    before = evaluator.evaluate(asked)[1]
    evaluator.update(second)
    np.testing.assert_allclose(evaluator.evaluate(asked)[1], WideEvaluator(second).evaluate(asked)[1])
    assert not np.allclose(before, evaluator.evaluate(asked)[1])
    with pytest.raises(BackendError, match="wide"):
        WideEvaluator(make_network(NETWORKS["tiny"]))


@pytest.mark.parametrize("backend", ["auto", "numba", "numba-int16", "torch-float32"])
def test_every_backend_computes_wide_networks(backend: str) -> None:
    network, asked = random_wide(SIZES[2]), random_positions(20)
    exact = TorchEvaluator(network, precision="float32").evaluate(asked)
    evaluator = make_evaluator(network, backend)
    assert isinstance(evaluator, TorchEvaluator if "torch" in backend else WideEvaluator)
    for found, wanted in zip(evaluator.evaluate(asked), exact, strict=True):
        assert_close(found, wanted)


def test_a_checkpoint_of_any_family_comes_back_as_it_was(tmp_path: Path) -> None:
    for number, network in enumerate((random_wide(SIZES[1]), moderate(NETWORKS["tiny"]))):
        info = save_checkpoint(tmp_path / str(number), network, {"games": 3})
        found = load_checkpoint(tmp_path / str(number))
        assert found.info == info
        assert type(found.network) is type(network)
        assert found.network.config == network.config
        assert all(torch.equal(found.network.state_dict()[name], value) for name, value in network.state_dict().items())


def test_weights_in_half_precision_are_read_as_numbers_of_today(tmp_path: Path) -> None:
    """The package's networks are stored this way: half the size, and exact enough for 16-bit integers."""
    network = random_wide(SIZES[2])
    save_checkpoint(tmp_path / "net", copy.deepcopy(network).half())
    found = load_checkpoint(tmp_path / "net").network.state_dict()
    for name, value in network.state_dict().items():
        assert found[name].dtype == torch.float32
        assert torch.equal(found[name], value.half().float())


def test_a_checkpoint_without_a_family_is_residual(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "net", moderate(NETWORKS["tiny"]))
    path = tmp_path / "net" / "checkpoint.json"
    fields = unsealed(path.read_bytes())
    del fields["network"]["family"]
    path.write_text(json.dumps(fields))
    assert load_checkpoint(tmp_path / "net").network.config == NETWORKS["tiny"]
    fields["network"] = {"family": "deep"}
    path.write_text(json.dumps(fields))
    with pytest.raises(CheckpointError, match="network"):
        load_checkpoint(tmp_path / "net")


@pytest.fixture
def taught(tmp_path: Path) -> Path:
    """A network with a student beside it."""
    info = save_checkpoint(tmp_path / "net", moderate(NETWORKS["tiny"]))
    save_checkpoint(tmp_path / "net" / STUDENT_FOLDER, random_wide(), {"steps": 3}, info.digest)
    return tmp_path / "net"


def test_the_student_of_a_folder(taught: Path, tmp_path: Path) -> None:
    assert has_student(taught)
    found = load_student(taught)
    assert found is not None
    assert found.info == read_student_info(taught)
    assert found.info.parent == load_checkpoint(taught).info.digest
    assert load_student(tmp_path) is read_student_info(tmp_path) is None


def evaluator_of(text: object, **options) -> Evaluator:
    player = make_player(parse_player(str(text)), Conditions(**options))
    assert isinstance(player, SearchPlayer)
    return player.evaluator


def test_the_student_plays_where_time_limits_the_search(taught: Path) -> None:
    assert isinstance(evaluator_of(taught, seconds=0.05), WideEvaluator)
    assert isinstance(evaluator_of(taught, simulations=10, timed=True), WideEvaluator)
    assert isinstance(evaluator_of(f"{taught}@student"), WideEvaluator)
    assert isinstance(evaluator_of(taught, backend="student"), WideEvaluator)
    assert not isinstance(evaluator_of(taught, simulations=10), WideEvaluator)
    assert not isinstance(evaluator_of(f"{taught}@torch", seconds=0.05), WideEvaluator)
    board = Board()
    player = make_player(parse_player(str(taught)), Conditions(seconds=0.05))
    assert player.choose([board])[0] in board.legal_moves


def test_without_a_student_the_network_plays(taught: Path) -> None:
    shutil.rmtree(taught / STUDENT_FOLDER)
    assert not isinstance(evaluator_of(taught, seconds=0.05), WideEvaluator)
    with pytest.raises(BackendError, match="there is no student beside"):
        evaluator_of(f"{taught}@student")


def test_a_damaged_student_is_no_secret(taught: Path) -> None:
    (taught / STUDENT_FOLDER / "weights.safetensors").write_bytes(b"no student")
    with pytest.raises(CheckpointError, match=STUDENT_FOLDER):
        evaluator_of(taught, seconds=0.05)


def test_the_champion_has_a_student() -> None:
    found = load_student(checkpoint_folder("champion"))
    assert found is not None
    _, wdl_logits = WideEvaluator(found.network).evaluate(
        np.array([[*Board("B:W32:B1,2,3,4,5").words(), 0]], np.uint32)
    )
    assert wdl_logits[0].argmax() == 0, "five men against one"
