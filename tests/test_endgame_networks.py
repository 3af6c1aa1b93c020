"""Endgame networks: sizes, the compiled pair network against a slow one, and files that are whole or refused."""

from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.bitboard import BIT_OF_SQUARE, mask_of
from engine.sealed import sealed, unsealed
from engine.tablebase.material import MAX_PIECES, NUM_CODES, Material, materials_between
from learner.checkpoint import CheckpointError, save_checkpoint
from learner.endgame.features import NUM_FEATURES, NUM_GROUPS, NUM_PAIRS, slice_table
from learner.endgame.networks import (
    EndgameNetwork,
    PairConfig,
    PairNetwork,
    SelfPlayNetwork,
    WangNetwork,
    load_endgame_network,
    new_network,
    read_card,
    save_endgame_network,
)
from learner.inference.torch_evaluator import TorchEvaluator
from learner.network import NETWORKS, make_network

PUBLISHED_PARAMETERS = 533_163
SMALL = PairConfig(width=8, experts=6, hidden=4, pieces=4)


def random_positions(n: int, fewest: int = 2, most: int = 10, seed: int = 0) -> np.ndarray:
    """Positions with pieces on both sides and no man where it would have been crowned."""
    rng = np.random.default_rng(seed)
    positions = np.zeros((n, 4), np.uint32)
    for i in range(n):
        count = int(rng.integers(fewest, most + 1))
        squares = rng.choice(32, count, replace=False)
        own = squares[: int(rng.integers(1, count))]
        opp = np.setdiff1d(squares, own)
        kings = [s for s in squares if rng.random() < 0.5 or (s in own and s >= 28) or (s in opp and s < 4)]
        positions[i, :3] = mask_of(own), mask_of(opp), mask_of(kings)
    return positions


def pieces_of(position: np.ndarray) -> list[tuple[int, int]]:
    """(kind, square) of all pieces: kind 0 own men, 1 own kings, 2 opponent's men, 3 opponent's kings."""
    own, opp, kings = position[:3].tolist()
    bits = {square: 1 << int(BIT_OF_SQUARE[square]) for square in range(32)}
    return [(2 * bool(opp & bit) + bool(kings & bit), square) for square, bit in bits.items() if (own | opp) & bit]


def slow_logits(network: PairNetwork, position: np.ndarray) -> torch.Tensor:
    """Logits of the pair network by its definition, for a position with at most as many pieces as it has biases for."""
    p, pieces = dict(network.named_parameters()), pieces_of(position)
    places = [
        sorted(range(28), key=lambda s: BIT_OF_SQUARE[s]),
        sorted(range(32), key=lambda s: BIT_OF_SQUARE[s]),
        sorted(range(4, 32), key=lambda s: BIT_OF_SQUARE[s]),
        sorted(range(32), key=lambda s: BIT_OF_SQUARE[s]),
    ]
    numbers = sorted(sum(map(len, places[:kind])) + places[kind].index(square) for kind, square in pieces)
    counts = Material(*(sum(kind == k for kind, _ in pieces) for k in range(4)))
    parity = sum(square // 4 % 2 for _, square in pieces) % 2
    row = 2 * materials_between(2, network.config.pieces).index(counts) + parity
    own, opp = counts.own_men + counts.own_kings, counts.opp_men + counts.opp_kings
    group = 2 * (int(own >= opp) + int(own > opp)) + parity
    x = p["biases"][row]
    for b, a in combinations_with_replacement(numbers, 2):
        x = x + p["pairs"][a * (a + 1) // 2 + b]
    gate, value = x.chunk(2)
    gate = gate.clamp(0, 4)
    x = torch.cat([gate, gate * value]) @ p["expert_weights"][group] + p["expert_bias"]
    x = x.relu() @ p["hidden_weights"] + p["hidden_bias"][row]
    return x.relu() @ p["out_weights"] + p["out_bias"]


def shaken(network: EndgameNetwork) -> EndgameNetwork:
    """Adds noise to all parameters, of which many begin as zeros or equal values."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return network


def test_wang_network_has_the_published_size() -> None:
    assert WangNetwork().parameter_count == PUBLISHED_PARAMETERS


def test_wang_network_sees_four_planes_of_the_whole_board() -> None:
    network = WangNetwork().eval()
    seen = []
    network.stem.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    position = random_positions(1)
    network(position)
    board = np.zeros((4, 8, 8))
    for kind, square in pieces_of(position[0]):
        row = square // 4
        board[kind, row, 2 * (square % 4) + (1 - row % 2)] = 1
    assert (seen[0][0].numpy() == board).all()


def test_own_network_is_no_larger() -> None:
    assert 0.9 * PUBLISHED_PARAMETERS < PairNetwork().parameter_count <= PUBLISHED_PARAMETERS


def test_pair_network_is_what_it_is_defined_as() -> None:
    network = shaken(PairNetwork(PairConfig(width=8, experts=6, hidden=4, pieces=5)))
    positions = random_positions(200, most=5)
    slow = torch.stack([slow_logits(network, position) for position in positions])
    assert torch.allclose(network(positions), slow, atol=1e-4)
    assert np.allclose(network.wdl_logits(positions), slow.detach().numpy(), atol=1e-4)


def test_pair_networks_gradient_is_that_of_torch() -> None:
    network = shaken(PairNetwork(PairConfig(width=8, experts=6, hidden=4, pieces=5)))
    positions = random_positions(60, most=5, seed=1)
    weights = torch.randn(len(positions), 3)
    gradients = []
    for logits in (network(positions), torch.stack([slow_logits(network, position) for position in positions])):
        network.zero_grad()
        (logits * weights).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in network.named_parameters()})
    for name, gradient in gradients[0].items():
        assert gradient.abs().sum() > 0
        assert torch.allclose(gradient, gradients[1][name], atol=1e-3, rtol=1e-4), name


def test_pair_network_judges_more_pieces_than_it_knows() -> None:
    network = shaken(PairNetwork(SMALL))
    positions = random_positions(2000, fewest=5, most=24, seed=2)
    logits = network.wdl_logits(positions)
    assert np.isfinite(logits).all()
    assert np.allclose(logits, network(positions).detach().numpy(), atol=1e-2, rtol=1e-3)


def test_any_words_whatever_are_judged() -> None:
    """Impossible positions (men on their promotion row, overlapping sides, empty boards) are judged without a crash."""
    words = np.random.default_rng(0).integers(0, 2**32, (2000, 4), np.uint32)
    words[0] = 0
    assert np.isfinite(shaken(PairNetwork(SMALL)).wdl_logits(words)).all()


def test_no_positions_no_logits() -> None:
    for network in (PairNetwork(SMALL), WangNetwork(), SelfPlayNetwork(NETWORKS["tiny"])):
        logits = network.wdl_logits(np.zeros((0, 4), np.uint32))
        assert logits.shape == (0, 3)
        assert logits.dtype == np.float32


@pytest.mark.parametrize("pieces", [4, 7, 8])
def test_other_slices_borrow_from_one_where_the_same_side_is_ahead(pieces: int) -> None:
    """With eight pieces, only those of four against four are known."""
    known = materials_between(2, pieces)
    table = slice_table(pieces)
    for code in range(NUM_CODES):
        material = Material(code >> 9, code >> 6 & 7, code >> 3 & 7, code & 7)
        own, opp = material.own_men + material.own_kings, material.opp_men + material.opp_kings
        if own and opp:
            lent = known[table[code]]
            assert lent == material if material in known else 2 < lent.pieces < material.pieces
            lead = (lent.own_men + lent.own_kings) - (lent.opp_men + lent.opp_kings)
            assert np.sign(lead) == np.sign(own - opp)
    assert len(materials_between(2, MAX_PIECES)) == 4 + 12 + 25 + 44 + 70 + 104 + 25


def test_numbers_of_features_and_groups() -> None:
    network = PairNetwork(SMALL)
    positions = random_positions(3000, most=12, seed=3)
    features, counts, rows, groups = network.encode(positions)
    assert counts.tolist() == [len(pieces_of(position)) for position in positions]
    assert features.max() == NUM_FEATURES - 1
    assert set(groups.tolist()) == set(range(NUM_GROUPS))
    assert rows.max() < 2 * len(materials_between(2, 4))
    assert len(network.pairs) == NUM_PAIRS
    for line, count in zip(features, counts, strict=True):
        assert (np.diff(line[:count].astype(int)) > 0).all()


def networks() -> list[EndgameNetwork]:
    return [
        shaken(PairNetwork(SMALL)),
        shaken(WangNetwork()),
        shaken(SelfPlayNetwork(NETWORKS["tiny"])),
    ]


@pytest.mark.parametrize("network", networks(), ids=lambda network: network.kind)
def test_networks_come_back_as_they_were_saved(network: EndgameNetwork, tmp_path: Path) -> None:
    positions = random_positions(100)
    network.train()
    expected = network.wdl_logits(positions)
    assert network.training
    card = save_endgame_network(tmp_path / "net", network, (2, 5), {"positions": 7})
    again = load_endgame_network(tmp_path / "net")
    assert (again.wdl_logits(positions) == expected).all()
    assert (again.kind, again.config) == (network.kind, network.config)
    assert read_card(tmp_path / "net") == card
    assert (card.parameters, card.pieces, card.figures) == (network.parameter_count, (2, 5), {"positions": 7})
    save_endgame_network(tmp_path / "net", shaken(again), (2, 4))
    assert read_card(tmp_path / "net").pieces == (2, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_a_self_play_checkpoint_is_an_endgame_network_as_it_is(tmp_path: Path) -> None:
    network = make_network(NETWORKS["tiny"]).eval()
    save_checkpoint(tmp_path / "best", network)
    positions = random_positions(50)
    logits = load_endgame_network(tmp_path / "best").wdl_logits(positions)
    assert np.allclose(logits, TorchEvaluator(network, precision="float32").evaluate(positions)[1], atol=1e-4)


def damages() -> dict[str, tuple[str, bytes | None, str]]:
    """Name of the damage → (file, new contents or None to remove it, expected message)."""
    return {
        "card gone": ("endgame.json", None, "No such file"),
        "card cut off": ("endgame.json", b'{"schema', "cut off or no JSON"),
        "card of another version": ("endgame.json", b'{"schema_version": 9}', "version 9"),
        "card of something else": ("endgame.json", b"[1, 2]", "not written by this program"),
        "card without fields": ("endgame.json", b'{"schema_version": 1}', "kind"),
        "weights gone": ("weights.safetensors", None, "No such file"),
        "weights of another file": ("weights.safetensors", b"something", "damaged"),
    }


@pytest.mark.parametrize("what", damages())
def test_damaged_and_foreign_files_are_refused_by_name(what: str, tmp_path: Path) -> None:
    save_endgame_network(tmp_path / "net", PairNetwork(SMALL), (2, 4))
    name, data, message = damages()[what]
    path = tmp_path / "net" / name
    path.unlink() if data is None else path.write_bytes(data)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_endgame_network(tmp_path / "net")
    assert name in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_one_flipped_bit_is_found(tmp_path: Path) -> None:
    save_endgame_network(tmp_path / "net", PairNetwork(SMALL), (2, 4))
    path = tmp_path / "net/weights.safetensors"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"weights\.safetensors: damaged"):
        load_endgame_network(tmp_path / "net")


@pytest.mark.parametrize("change", [{"width": 10}, {"width": 7}, {"colour": 1}])
def test_a_card_that_does_not_fit_the_weights_is_refused(change: dict[str, int], tmp_path: Path) -> None:
    save_endgame_network(tmp_path / "net", PairNetwork(SMALL), (2, 4))
    path = tmp_path / "net/endgame.json"
    card = unsealed(path.read_bytes())
    path.write_bytes(sealed({**card, "config": {**card["config"], **change}}))
    with pytest.raises(CheckpointError, match=str(tmp_path / "net")):
        load_endgame_network(tmp_path / "net")


def test_nothing_is_written_over_what_is_no_network(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/diary.txt").write_text("dear")
    with pytest.raises(CheckpointError, match="in the way"):
        save_endgame_network(tmp_path / "net", PairNetwork(SMALL), (2, 4))
    assert (tmp_path / "net/diary.txt").read_text() == "dear"
    broken = PairNetwork(SMALL)
    broken.out_bias.data[0] = float("nan")
    with pytest.raises(CheckpointError, match="not finite"):
        save_endgame_network(tmp_path / "other", broken, (2, 4))
    assert not (tmp_path / "other").exists()


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="'oracle' is no kind"):
        new_network("oracle")
    assert new_network("wang").parameter_count == PUBLISHED_PARAMETERS
