"""Batches and the loss, against slow plain numpy and against numeric derivatives."""

import numpy as np
import pytest
import torch
from torch.func import functional_call

from engine.bitboard import mask_of, turned
from engine.encoding import NO_HOP, NUM_POLICY, hop_table, move_logit
from engine.movegen import generate, new_moves
from learner.batch import BatchError, TrainingBatch, make_batch
from learner.loss import cross_entropy, mix_wdl, move_logits, training_loss
from learner.network import NETWORKS, make_network
from learner.network_base import planes_on

START = (mask_of(range(12)), mask_of(range(20, 32)), 0, 0)


def random_positions(count, seed):
    """Positions of random games, kings and captures included: uint32 [count, 4]."""
    rng = np.random.default_rng(seed)
    moves = new_moves()
    position, positions = START, []
    while len(positions) < count:
        words = [np.uint32(word) for word in position[:3]]
        number = generate(*words, moves, True)
        if number == 0:
            position = START
            continue
        positions.append(position)
        move = moves[rng.integers(number)]
        position = (*(int(turned(move[word])) for word in ("opp", "own", "kings")), int(rng.integers(80)))
    return np.array(positions, np.uint32)


def random_samples(count, seed):
    """Arguments of ``make_batch``; every third sample has no policy target."""
    rng = np.random.default_rng(seed)
    positions = random_positions(count, seed)
    has_policy = np.arange(count) % 3 != 2
    numbers = np.where(has_policy, hop_table(positions)[1], 0)
    parts = [rng.dirichlet(np.ones(number)) for number in numbers if number]
    offsets = np.concatenate([[0], np.cumsum(numbers)])
    return positions, np.concatenate(parts).astype(np.float32), offsets, has_policy, rng.dirichlet(np.ones(3), count)


def random_logits(count, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(count, NUM_POLICY, generator=generator, dtype=dtype),
        torch.randn(count, 3, generator=generator, dtype=dtype),
    )


def in_double(batch):
    return TrainingBatch(batch.positions, batch.hops, batch.policy.double(), batch.wdl.double())


def slow_figures(policy_logits, wdl_logits, samples):
    """The figures of ``training_loss`` with weights 1, one sample at a time."""
    positions, probabilities, offsets, has_policy, wdl = samples
    sums = {"policy_loss": 0.0, "policy_kl": 0.0, "policy_entropy": 0.0, "policy_top1": 0.0}
    wdl_loss = hits = 0.0
    moves = new_moves()
    for i, position in enumerate(positions):
        p = np.exp(wdl_logits[i]) / np.exp(wdl_logits[i]).sum()
        wdl_loss -= (wdl[i] * np.log(p)).sum()
        hits += p.argmax() == wdl[i].argmax()
        if not has_policy[i]:
            continue
        number = generate(*position[:3], moves, True)
        logits = np.array([move_logit(policy_logits, i, code) for code in moves["code"][:number]])
        q = np.exp(logits) / np.exp(logits).sum()
        target = probabilities[offsets[i] : offsets[i + 1]].astype(np.float64)
        sums["policy_loss"] -= (target * np.log(q)).sum()
        sums["policy_kl"] += (target * np.log(target / q)).sum()
        sums["policy_entropy"] -= (q * np.log(q)).sum()
        sums["policy_top1"] += q.argmax() == target.argmax()
    figures = {name: value / has_policy.sum() for name, value in sums.items()}
    figures |= {"wdl_loss": wdl_loss / len(positions), "wdl_accuracy": hits / len(positions)}
    return figures | {"loss": figures["policy_loss"] + figures["wdl_loss"]}


@pytest.mark.parametrize("seed", range(5))
def test_figures_equal_the_slow_reference(seed):
    samples = random_samples(40, seed)
    policy_logits, wdl_logits = random_logits(40, seed)
    loss, figures = training_loss(policy_logits, wdl_logits, in_double(make_batch(*samples)))
    expected = slow_figures(policy_logits.numpy(), wdl_logits.numpy(), samples)
    assert figures.keys() == expected.keys()
    for name, value in expected.items():
        assert figures[name].item() == pytest.approx(value, abs=1e-5), name
    assert loss.item() == figures["loss"].item()


def test_weights_of_the_parts():
    batch = in_double(make_batch(*random_samples(10, 0)))
    loss, figures = training_loss(*random_logits(10, 0), batch, policy_weight=2.0, wdl_weight=0.5)
    assert loss.item() == pytest.approx(2 * figures["policy_loss"].item() + 0.5 * figures["wdl_loss"].item())


def test_move_logits_are_the_engines():
    positions = random_positions(300, seed=1)
    hops, numbers = hop_table(positions)
    policy_logits = torch.randn(300, NUM_POLICY)
    found = move_logits(policy_logits, torch.from_numpy(hops))
    moves = new_moves()
    for i, position in enumerate(positions):
        generate(*position[:3], moves, True)
        expected = [move_logit(policy_logits.numpy(), i, code) for code in moves["code"][: numbers[i]]]
        np.testing.assert_allclose(found[i, : numbers[i]], expected, atol=1e-5)
        assert found[i].softmax(0)[numbers[i] :].sum() == 0
    assert hops.shape[2] > 1  # jumps of several hops were among them


def test_gradient_of_the_loss():
    batch = in_double(make_batch(*random_samples(6, seed=4)))
    logits = [tensor.requires_grad_() for tensor in random_logits(6, seed=4)]
    assert torch.autograd.gradcheck(lambda policy, wdl: training_loss(policy, wdl, batch, 0.7, 1.3)[0], logits)


def test_gradient_through_the_network():
    torch.manual_seed(0)
    network = make_network(NETWORKS["tiny"].model_copy(update={"activation": "mish"})).double().train()
    torch.nn.init.normal_(network.blocks[0].second.norm.weight)
    batch = in_double(make_batch(*random_samples(4, seed=5)))
    planes = planes_on(torch.device("cpu"), batch.positions).double()
    names = ["stem.conv.weight", "blocks.0.second.norm.weight", "policy_head.logits.weight", "wdl_head.hidden.bias"]
    weights = [network.get_parameter(name).detach().clone().requires_grad_() for name in names]

    def loss(*chosen):
        outputs = functional_call(network, dict(zip(names, chosen, strict=True)), (planes,))
        return training_loss(*outputs, batch)[0]

    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)


def test_gradient_of_the_best_answer_is_zero():
    target = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64)
    logits = target.log().requires_grad_()
    cross_entropy(logits, target).sum().backward()
    torch.testing.assert_close(logits.grad, torch.zeros_like(target), atol=1e-12, rtol=0)


def test_batch_without_policy_targets_teaches_only_wdl():
    positions, probabilities, offsets, has_policy, wdl = random_samples(9, seed=6)
    batch = make_batch(positions, probabilities, offsets, np.zeros_like(has_policy), wdl)
    policy_logits, wdl_logits = (tensor.requires_grad_() for tensor in random_logits(9, 6, torch.float32))
    loss, figures = training_loss(policy_logits, wdl_logits, batch)
    loss.backward()
    assert not policy_logits.grad.any()
    assert wdl_logits.grad.any()
    assert {name: figures[name].item() for name in ("policy_loss", "policy_kl", "policy_top1")} == {
        "policy_loss": 0.0,
        "policy_kl": 0.0,
        "policy_top1": 0.0,
    }


def test_mix_wdl():
    result, search = np.array([[1.0, 0.0, 0.0]]), np.array([[0.2, 0.6, 0.2]])
    np.testing.assert_allclose(mix_wdl(result, search, 0.25), [[0.8, 0.15, 0.05]])
    mixed = mix_wdl(torch.from_numpy(result), torch.from_numpy(search), 1.0)
    assert torch.equal(mixed, torch.from_numpy(search))
    with pytest.raises(ValueError, match=r"1\.5, not between 0 and 1"):
        mix_wdl(result, search, 1.5)


def test_batch_holds_what_it_was_given():
    samples = random_samples(50, seed=7)
    positions, probabilities, offsets, has_policy, wdl = samples
    batch = make_batch(*samples)
    assert len(batch) == 50
    np.testing.assert_array_equal(batch.positions.numpy().view(np.uint32), positions)
    numbers = hop_table(positions)[1]
    for i in range(50):
        row = batch.policy[i].numpy()
        if has_policy[i]:
            np.testing.assert_array_equal(row[: numbers[i]], probabilities[offsets[i] : offsets[i + 1]])
            assert not row[numbers[i] :].any()
        else:
            assert not row.any()
        assert (batch.hops[i, :, 0] != NO_HOP).sum() == numbers[i]
    np.testing.assert_allclose(batch.wdl, wdl, atol=1e-6)


def test_batch_from_the_middle_of_longer_arrays():
    positions, probabilities, offsets, has_policy, wdl = random_samples(20, seed=8)
    whole = make_batch(positions, probabilities, offsets, has_policy, wdl)
    part = make_batch(positions[5:9], probabilities, offsets[5:10], has_policy[5:9], wdl[5:9])
    width = part.policy.shape[1]
    assert torch.equal(part.policy, whole.policy[5:9, :width])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s: s | {"positions": s["positions"].astype(np.int64)}, "not uint32"),
        (lambda s: s | {"wdl": s["wdl"][:, :2]}, "wdl is"),
        (lambda s: s | {"wdl": s["wdl"] * 2}, "sample 0 has a win/draw/loss target"),
        (lambda s: s | {"offsets": s["offsets"][:-1]}, "offsets are"),
        (lambda s: s | {"offsets": s["offsets"][::-1].copy()}, "offsets do not rise"),
        (lambda s: s | {"offsets": s["offsets"] * 2}, "offsets do not rise"),
        (lambda s: s | {"has_policy": s["has_policy"].astype(int)}, "has_policy is"),
        (lambda s: s | {"has_policy": np.ones(8, bool)}, "sample 2 has not one probability"),
        (lambda s: s | {"move_probabilities": s["move_probabilities"] * np.nan}, "sample 0 has move probabilities"),
        (lambda s: {name: value[:0] for name, value in s.items()}, "at least one sample"),
    ],
)
def test_batch_refuses(spoil, message):
    names = ("positions", "move_probabilities", "offsets", "has_policy", "wdl")
    samples = dict(zip(names, random_samples(8, seed=9), strict=True))
    with pytest.raises(BatchError, match=message):
        make_batch(**spoil(samples))
