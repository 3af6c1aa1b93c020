"""The endgame oracle: searches against slow ones and exact tables, calibration and files."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_endgame_networks import random_positions

from engine.board import Board
from engine.fen import Color, format_fen
from engine.random_words import mix
from engine.sealed import sealed, unsealed
from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import materials
from learner.checkpoint import CheckpointError, save_checkpoint
from learner.endgame import oracle as oracle_module
from learner.endgame.calibration import (
    THRESHOLDS,
    Questions,
    calibrate_oracle,
    choose_search,
    fit_temperature,
    likelihood_loss,
)
from learner.endgame.data import TEST, VALIDATION, EndgameBatch, EndgameSampler, split_of
from learner.endgame.member import MAX_ROUNDS, UNTESTED_CONFIDENCE, Member, OracleError, softmax
from learner.endgame.networks import EndgameNetwork, PairConfig, PairNetwork, save_endgame_network
from learner.endgame.oracle import ORACLE_FILE, Oracle, open_oracle, read_oracle_card, save_oracle
from learner.endgame.reached import around
from learner.endgame.resolve import EVERYWHERE, MOST_EVALUATIONS, PROVEN, STATIC_WEIGHT, Judge, resolve, search_rounds
from learner.endgame.trust import Beyond, Further
from learner.endgame.validation import calibration_error, reliability_bins
from learner.network import NETWORKS, make_network

SMALL = PairConfig(width=8, experts=6, hidden=4, pieces=4)
MB = 2**20


def hashed(positions: np.ndarray) -> np.ndarray:
    """Pseudo-random numbers between 0 and 1, float64 [N, 3], determined by the position."""
    words = [
        [int(mix(np.uint64(int(o) << 32 | int(p)) ^ np.uint64(int(k) * 77 + i))) for i in range(3)]
        for o, p, k in positions[:, :3].tolist()
    ]
    return np.array(words, np.float64).reshape(-1, 3) / 2.0**64


def hashed_judge(positions: np.ndarray) -> np.ndarray:
    """Arbitrary probabilities."""
    return softmax((6 * hashed(positions)).astype(np.float32))


@cache
def tables() -> DenseTables:
    """All values of 2 to 4 pieces."""
    return load_tables(SHIPPED, 4, 1)


def drawn(n: int, seed: int = 1, split: int | None = None, quiet: bool = False, fewest: int = 2) -> EndgameBatch:
    slices = [material for pieces in range(fewest, 5) for material in materials(pieces)]
    return EndgameSampler(tables(), slices, seed, split, quiet).draw(n)


class FakeNetwork(EndgameNetwork):
    """A network that gives the tables' values with noise, so that some answers are wrong or unsure."""

    kind = "pair"
    config = SMALL

    def __init__(self, noise: float = 0.0, sharpness: float = 60.0) -> None:
        super().__init__()
        self.noise, self.sharpness = noise, sharpness
        self.asked: list[np.ndarray] = []

    def forward(self, positions: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.wdl_logits(positions))

    def wdl_logits(self, positions: np.ndarray) -> np.ndarray:
        self.asked.append(positions)
        known = np.bitwise_count(positions[:, 0] | positions[:, 1]) <= tables().pieces
        exact = np.tile([0.0, 1.0, 0.0], (len(positions), 1))  # a draw, of more pieces
        exact[known] = np.eye(3)[1 - tables().lookup(positions[known]).astype(np.int64)]
        noise = self.noise * (hashed(positions) if self.noise else 0)
        return (self.sharpness * exact + noise).astype(np.float32)


class Node:
    """A node of the slow search, which does what ``resolve`` promises with the rules of ``Board``."""

    def __init__(self, board: Board, judge: Judge, answers: bool = False) -> None:
        self.board, self.judge = board, judge
        self.children: list[Node] = []
        self.judged: list[float] | None = None
        moves = board.distinct_moves
        self.lost = not moves
        if moves and (moves[0].captured or not board.words()[1]):
            self.expand(answers)
        elif moves and answers and self.threatened():
            self.expand()
        elif moves:
            self.judged = judge(np.array([[*board.words(), 0]], np.uint32))[0].tolist()

    def threatened(self) -> bool:
        """Whether the opponent could capture if it were to move."""
        fields = self.board.fen().split(":")
        other = Board(":".join(["W" if fields[0] == "B" else "B", *fields[1:]]))
        return any(move.captured for move in other.legal_moves)

    def expand(self, answers: bool = False) -> None:
        for move in self.board.distinct_moves:
            after = self.board.copy()
            after.push(move)
            self.children.append(Node(after, self.judge, answers))

    def value(self, weight: float) -> list[float]:
        if self.lost:
            return [0, 0, 1]
        if not self.children:
            assert self.judged is not None
            return self.judged
        below = [child.value(weight) for child in self.children]
        win, loss = max(v[2] for v in below), min(v[0] for v in below)
        found = np.array([win, max(0, 1 - win - loss), loss])
        if self.judged is None or found.max() >= 1 or weight == 0:
            return found.tolist()
        both = np.maximum(self.judged, 1e-6) ** weight * np.maximum(found, 1e-6) ** (1 - weight)
        return (both / both.sum()).tolist()

    def unsure(self, weight: float, threshold: float) -> "list[Node]":
        if self.lost or max(self.value(weight)) >= threshold:
            return []
        return [n for child in self.children for n in child.unsure(weight, threshold)] if self.children else [self]

    def evaluations(self) -> int:
        return (self.judged is not None) + sum(child.evaluations() for child in self.children)


def slow_search(
    position: np.ndarray, judge: Judge, rounds: int, threshold: float, weight: float
) -> tuple[list[float], int, int]:
    """Returns probabilities of win, draw, loss, the number of evaluations, and the number of rounds."""
    root, done = Node(Board(format_fen(Color.BLACK, *position[:3].tolist())), judge, answers=True), 0
    for _ in range(rounds):
        ends = root.unsure(weight, threshold)
        for node in ends:
            node.expand()
        done += bool(ends)
    return root.value(weight), root.evaluations(), done


@pytest.mark.parametrize(
    ("rounds", "threshold", "weight"),
    [
        (0, EVERYWHERE, STATIC_WEIGHT),
        (1, EVERYWHERE, 0.0),
        (1, EVERYWHERE, 0.3),
        (2, 0.8, STATIC_WEIGHT),
        (3, 0.6, 0.5),
    ],
)
def test_searches_are_the_slow_ones(
    rounds: int, threshold: float, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.endgame.resolve.STATIC_WEIGHT", weight)
    positions = random_positions(40, 2, 9, seed=rounds)
    found = resolve(positions, hashed_judge, rounds, threshold)
    for i, position in enumerate(positions):
        value, evaluations, done = slow_search(position, hashed_judge, rounds, threshold, weight)
        assert found.probabilities[i] == pytest.approx(value, abs=1e-4)
        assert (found.evaluations[i], found.rounds[i]) == (evaluations, done)


@given(st.integers(0, 10**6), st.integers(2, 12))
def test_capture_search_of_any_position(seed: int, pieces: int) -> None:
    positions = random_positions(1, pieces, pieces, seed)
    found = resolve(positions, hashed_judge)
    value, evaluations, _ = slow_search(positions[0], hashed_judge, 0, EVERYWHERE, STATIC_WEIGHT)
    assert found.probabilities[0] == pytest.approx(value, abs=1e-5)
    assert found.evaluations[0] == evaluations
    assert found.probabilities[0].sum() == pytest.approx(1, abs=1e-5)


def test_judge_is_asked_once_a_round_and_only_about_quiescent_positions() -> None:
    network = FakeNetwork(noise=90)
    batch = drawn(2000)
    asked = []
    for found in search_rounds(batch.positions, Member(network).probabilities, 2, 0.9):
        asked.append(len(network.asked))
        assert found.evaluations.sum() == sum(map(len, network.asked))
    assert asked == [1, 2, 3]
    for positions in network.asked:
        for position in positions[:50]:
            moves = Board(format_fen(Color.BLACK, *position[:3].tolist())).legal_moves
            assert moves
            assert not moves[0].captured


def test_exact_judgements_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = drawn(5000)
    judge = Member(FakeNetwork()).probabilities
    for rounds, weight in ((0, STATIC_WEIGHT), (1, 0.0), (1, STATIC_WEIGHT), (2, STATIC_WEIGHT)):
        monkeypatch.setattr("learner.endgame.resolve.STATIC_WEIGHT", weight)
        found = resolve(batch.positions, judge, rounds, EVERYWHERE)
        assert np.array_equal(found.values, batch.values)
        assert found.confidence.min() > 0.999


def test_a_search_of_nothing_finds_nothing() -> None:
    found = resolve(np.empty((0, 4), np.uint32), hashed_judge, 2)
    assert [len(column) for column in found] == [0, 0, 0, 0]
    assert found.probabilities.shape == (0, 3)


def test_positions_that_take_many_evaluations_get_no_further_round() -> None:
    positions = drawn(300).positions
    free = resolve(positions, hashed_judge, 3, EVERYWHERE)
    bounded = resolve(positions, hashed_judge, 3, EVERYWHERE, most=5)
    grown = bounded.rounds < free.rounds
    assert grown.any()
    assert (bounded.evaluations[grown] >= 5).all()
    assert (bounded.evaluations <= free.evaluations).all()


def test_many_positions_give_what_few_give() -> None:
    positions = drawn(40_000).positions
    judge = Member(FakeNetwork(noise=70, sharpness=3)).probabilities
    places = [0, 2_047, 2_048, 39_999]
    whole = resolve(positions, judge, 1, 0.9)
    part = resolve(positions[places], judge, 1, 0.9)
    for many, few in zip(whole, part, strict=True):
        assert np.array_equal(many[places], few)


def test_a_side_without_pieces_or_moves_has_lost() -> None:
    piece = Board("B:W:B1").words()[0]
    blocked = Board("B:W5,6,10:B1")
    assert not blocked.legal_moves
    positions = np.array([[piece, 0, 0, 0], [0, piece, 0, 0], [*blocked.words(), 0]], np.uint32)
    oracle = Oracle([Member(FakeNetwork())])
    assert oracle.search(positions).values.tolist() == [1, -1, -1]
    assert oracle.search(positions).evaluations.tolist() == [0, 0, 0]


def test_temperature_is_found_and_lowers_the_loss() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 5, (40_000, 3)).astype(np.float32)
    odds = softmax(logits, 2.5).cumsum(1)
    classes = (rng.random((len(odds), 1)) > odds).sum(1).clip(0, 2)
    temperature = fit_temperature(logits, classes)
    assert temperature == pytest.approx(2.5, rel=0.03)
    before, after = softmax(logits), softmax(logits, temperature)
    assert likelihood_loss(after, classes) < likelihood_loss(before, classes) - 0.1
    errors = [calibration_error(reliability_bins(p.max(1), p.argmax(1) == classes)) for p in (before, after)]
    assert errors[1] < 0.01 < 0.05 < errors[0]


def test_expected_calibration_error_by_hand() -> None:
    confidence = np.array([0.95, 0.95, 0.55, 1.0])
    right = np.array([True, False, True, True])
    assert calibration_error(reliability_bins(confidence, right)) == pytest.approx((abs(2.9 - 2) + abs(0.55 - 1)) / 4)


def test_choice_of_the_search_is_the_best_within_the_budget() -> None:
    batch = drawn(1500, split=VALIDATION)
    judge = Member(FakeNetwork(noise=6, sharpness=4)).probabilities
    thresholds, choices = (0.5, 0.8, 0.95), []
    for budget in (0.5, 1.5, 4.0, 40.0):
        choice = choose_search(batch.positions, batch.classes, judge, budget, thresholds, 3)
        options = []
        for threshold in thresholds:
            for rounds in range(4):
                found = resolve(batch.positions, judge, rounds, threshold)
                cost = found.evaluations.mean()
                if cost <= budget or rounds == 0:
                    options.append(((found.probabilities.argmax(1) != batch.classes).mean(), cost))
        assert (choice.error, choice.evaluations) == pytest.approx(min(options))
        found = resolve(batch.positions, judge, choice.rounds, choice.threshold)
        assert (found.probabilities.argmax(1) != batch.classes).mean() == pytest.approx(choice.error)
        assert found.evaluations.mean() == pytest.approx(choice.evaluations)
        choices.append(choice)
    assert choices[0].rounds == 0
    assert choices[0].error > choices[1].error > choices[2].error >= choices[3].error
    assert choices[1].evaluations <= 1.5


def test_calibration_serves_fresh_positions() -> None:
    network = FakeNetwork(noise=12, sharpness=8)
    raw = Oracle([Member(network, (2, 4), rounds=0)])
    told: list[tuple[str, float | None]] = []
    oracle = calibrate_oracle([(network, (2, 4))], tables(), 6.0, 3000, report=lambda *done: told.append(done))
    assert oracle.members[0].calibrated == 4
    shares = [share for what, share in told if what == "threshold for 2 to 4 pieces" and share is not None]
    assert shares == sorted(shares)
    assert len(set(shares)) == len(THRESHOLDS)
    assert 0 <= shares[0] < shares[-1] < 1
    batch = drawn(3000, 8, TEST)
    plain, better = raw.search(batch.positions), oracle.search(batch.positions)
    right = better.values == batch.values
    assert right.mean() > (plain.values == batch.values).mean() + 0.01
    assert better.evaluations.mean() < 7
    assert likelihood_loss(better.probabilities, batch.classes) < likelihood_loss(plain.probabilities, batch.classes)
    assert calibration_error(reliability_bins(better.confidence, right)) < 0.02
    member = oracle.members[0]
    assert (member.temperature, member.threshold, member.rounds) != (1.0, 0.98, 2)


def test_every_network_is_asked_about_its_own_pieces() -> None:
    few, many = FakeNetwork(), FakeNetwork()
    oracle = Oracle([Member(many, (2, 4)), Member(few, (2, 3))])
    positions = drawn(3000).positions
    oracle.search(positions)
    counts = [np.bitwise_count(np.concatenate(net.asked)[:, :2]).sum(1) for net in (few, many)]
    assert set(counts[0].tolist()) == {2, 3}
    assert set(counts[1].tolist()) == {4}
    assert oracle.members[-1].pieces[1] == 4
    assert oracle.member_for(3).network is few
    assert oracle.member_for(4).network is oracle.member_for(11).network is many


def test_calibration_of_two_networks_uses_the_ranges_they_are_asked_about() -> None:
    oracle = calibrate_oracle([(FakeNetwork(9, 6), (2, 4)), (FakeNetwork(3, 6), (2, 3))], tables(), 3.0, 500)
    assert [member.pieces for member in oracle.members] == [(2, 3), (2, 4)]
    assert oracle.members[0].temperature < oracle.members[1].temperature


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        ([], "needs a network"),
        ([(2, 3), (2, 3)], "two networks are for up to 3 pieces"),
        ([(2, 4), (2, 6)], "a network for 5 to 6 pieces needs tables of as many; these end at 4"),
    ],
)
def test_calibration_refuses(networks: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(OracleError, match=message):
        calibrate_oracle([(FakeNetwork(), pieces) for pieces in networks], tables(), positions=100)


@pytest.mark.parametrize(
    "settings",
    [
        {"pieces": (1, 4)},
        {"pieces": (5, 4)},
        {"temperature": 0.0},
        {"temperature": float("nan")},
        {"threshold": 1.5},
        {"rounds": MAX_ROUNDS + 1},
        {"search_temperature": -1.0},
        {"calibrated": -1},
        {"calibrated": 25},
    ],
)
def test_members_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(OracleError):
        replace(Member(FakeNetwork()), **settings)


@pytest.mark.parametrize(
    ("fen", "verdict", "source"),
    [
        ("B:W:B1", "win", "rules"),
        ("B:W5:B", "loss", "rules"),
        ("W:WK1:BK28", "draw", "network"),
        ("W:WK18:B14", "win", "capture search"),
        ("W:W30:B5", None, "network"),
    ],
)
def test_probe_says_what_and_how(fen: str, verdict: str | None, source: str) -> None:
    answer = Oracle([Member(FakeNetwork(), calibrated=3)]).probe(Board(fen))
    assert answer.source == source
    assert verdict in (None, answer.verdict)
    assert answer.confidence == max(answer.wdl)
    assert sum(answer.wdl) == pytest.approx(1)
    assert answer.verdict == ("win", "draw", "loss")[int(np.argmax(answer.wdl))]


def test_probe_names_the_search_that_was_needed() -> None:
    oracle = Oracle([Member(FakeNetwork(sharpness=0.1), threshold=0.99, rounds=2, calibrated=3)])
    assert oracle.probe(Board("W:WK1:BK28")).source == "two-ply search"


def test_probe_says_where_confidence_was_never_checked() -> None:
    oracle = Oracle([replace(member, beyond=None) for member in open_oracle().members])
    start = oracle.probe(Board())
    assert start.source.endswith(", never tested on 24 pieces")
    assert start.confidence == pytest.approx(UNTESTED_CONFIDENCE, abs=1e-6)
    assert start.confidence == max(start.wdl) == start.wdl[("win", "draw", "loss").index(start.verdict)]
    assert sum(start.wdl) == pytest.approx(1)
    nine = Board("W:WK1,K2,K3,K5,K6,K7,K8,K9:BK28")
    raw = oracle.stated(np.array([[*nine.words(), 0]], np.uint32))
    assert oracle.probe(nine).verdict == "win"
    assert raw.confidence[0] > UNTESTED_CONFIDENCE >= oracle.probe(nine).confidence - 1e-6
    six = oracle.probe(Board("W:WK1,K2,K3,K5,K6:BK28"))
    assert "never" not in six.source
    assert six.confidence > 0.99
    won = oracle.probe(Board("W:WK1,K2,K3,K5,K6,K7,K18:B14"))  # takes the last piece: the rules say so
    assert (won.confidence, won.source) == (1.0, "capture search")
    unsure = replace(oracle.members[-1], network=FakeNetwork(sharpness=0.1), pieces=(2, 2), calibrated=2, rounds=2)
    proven = Oracle([unsure]).probe(Board("B:WK29:B28,K18,K30"))  # after some judgements, a move wins by the rules
    assert (proven.confidence, proven.source) == (1.0, "two-ply search")
    alone = Oracle([Member(FakeNetwork(), (2, 3))])
    assert alone.probe(Board("W:WK1:BK28")).source == "network, not calibrated"
    assert alone.probe(Board("W:WK1,K2:BK28,K27")).source.endswith(", never tested on 4 pieces")


def test_each_piece_beyond_the_tested_ones_costs_confidence() -> None:
    rows = [Further(errors=(errors, errors), temperatures=(1.5, 1.5)) for errors in (0.2, 0.4)]
    rule = Beyond(further=tuple(rows), most=0.95, pieces=3, positions=10)
    oracle = Oracle([Member(FakeNetwork(), (2, 2), calibrated=2, beyond=rule)])
    few, more, most = (Board(fen) for fen in ("W:WK1:BK28", "W:WK1,K2:BK28", "W:WK1,K2:BK28,K27"))
    sure = [oracle.probe(board).confidence for board in (few, more, most)]
    assert sure[0] > 0.999
    assert sure[1] == pytest.approx(min(0.95, 1 - 0.2 * 0.2), abs=1e-3)
    assert sure[2] == pytest.approx(min(0.95**2, 1 - 0.2 * 0.4), abs=1e-3)
    assert oracle.probe(most).source.endswith("never tested on 4 pieces")
    won = oracle.probe(Board("W:WK18:B14"))
    assert won.confidence == 1
    found = oracle.stated(np.array([[*board.words(), 0] for board in (few, more, most)], np.uint32))
    assert found.confidence.min() > 0.999
    assert PROVEN not in found.ways


def test_a_rule_beyond_is_tested_one_piece_further_on() -> None:
    networks = [(FakeNetwork(noise=60, sharpness=30), (2, pieces)) for pieces in (2, 3, 4)]
    told: list[tuple[str, float | None]] = []
    oracle = calibrate_oracle(networks, tables(), budget=4, positions=3000, report=lambda *part: told.append(part))
    for what, parts in (("confidence about more pieces", 8), ("the same, to test it", 7)):
        assert [share for text, share in told if text == what] == pytest.approx([i / parts for i in range(parts)])
    rule = oracle.members[-1].beyond
    assert rule is not None
    assert (rule.pieces, rule.positions) == (4, 3000)
    assert rule.tested is not None
    assert 0 <= rule.tested < 0.1
    assert [member.beyond for member in oracle.members[:-1]] == [None, None]
    alone = calibrate_oracle(networks[-1:], tables(), budget=4, positions=500)
    assert alone.members[0].beyond is None


@pytest.mark.parametrize("close", [False, True])
def test_fresh_positions_need_no_tables(close: bool) -> None:
    games = drawn(3000).positions
    for pieces, there in ((4, True), (9, False)):
        fresh = Questions(tables(), 400, 1, games).fresh(pieces, close)
        own, opp = np.bitwise_count(fresh[:, 0]).astype(int), np.bitwise_count(fresh[:, 1]).astype(int)
        assert ((own > 0) & (opp > 0) & (own + opp == pieces)).all()
        assert set(own.tolist()) == {n for n in range(1, pieces) if (abs(2 * n - pieces) <= 1) == close}
        assert not (fresh[:, 0] & fresh[:, 1]).any()
        assert len(fresh) == 2000
        walked = {tuple(row) for row in around(games, pieces, pieces, VALIDATION, 1, 2000).tolist()}
        assert (sum(tuple(row) in walked for row in fresh.tolist()) >= 100) == there


def test_positions_of_games_are_half_of_what_an_oracle_is_calibrated_on() -> None:
    games = drawn(3000).positions
    questions = Questions(tables(), 400, 1, games)
    batch = questions.draw(3, 4, 0, quiet=True)
    assert len(batch.values) == 400
    assert (split_of(batch.positions) == VALIDATION).all()
    assert np.array_equal(batch.values, tables().lookup(batch.positions))
    assert len(Questions(tables(), 400, 1, None).draw(3, 4, 0).values) == 400


def test_doubt_leaves_doubtful_answers_alone() -> None:
    unsure = Oracle([Member(FakeNetwork(sharpness=0.5), (2, 3), rounds=0)])
    board = Board("W:WK1,K2:BK28,K27")
    raw = unsure.search(np.array([[*board.words(), 0]], np.uint32))
    assert raw.confidence[0] < UNTESTED_CONFIDENCE
    assert unsure.probe(board).wdl == tuple(raw.probabilities[0].tolist())


def test_probe_sees_draws_by_the_rules() -> None:
    board = Board("W:WK1,K2:BK28")
    for _ in range(2):
        for move in ("1-5", "28-32", "5-1", "32-28"):
            board.push_pdn(move)
    assert Oracle([Member(FakeNetwork())]).probe(board) == ((0, 1, 0), "draw", 1, "rules")


@pytest.fixture(scope="module")
def pair_oracle() -> Oracle:
    torch.manual_seed(0)
    networks = [PairNetwork(SMALL).eval() for _ in range(2)]
    rows = [Further(errors=(0.1, 0.01), temperatures=(1.5, 2.0)), Further(errors=(0.2, 0.02), temperatures=(3.0, 4.0))]
    rule = Beyond(further=tuple(rows), most=0.9, pieces=4, positions=10, tested=0.01)
    last = Member(networks[1], (2, 4), 0.8, 0.95, 2, evaluations=70, changed_temperature=1.3, beyond=rule)
    return Oracle([Member(networks[0], (2, 3), 1.5, 0.9, 1, 0.7, 3), last])


def test_oracle_comes_back_from_its_folder(tmp_path: Path, pair_oracle: Oracle) -> None:
    positions = drawn(2000).positions
    save_oracle(tmp_path / "a", pair_oracle.members, {"minutes": 3})
    back = open_oracle(tmp_path / "a")
    assert [replace(m, network=pair_oracle.members[0].network) for m in back.members] == [
        replace(m, network=pair_oracle.members[0].network) for m in pair_oracle.members
    ]
    assert np.allclose(back.network_probabilities(positions), pair_oracle.network_probabilities(positions), atol=5e-3)
    assert read_oracle_card(tmp_path / "a").figures == {"minutes": 3}
    assert back.parameters == pair_oracle.parameters
    save_oracle(tmp_path / "b", back.members)
    again = open_oracle(tmp_path / "b")
    assert np.array_equal(again.network_probabilities(positions), back.network_probabilities(positions))
    save_oracle(tmp_path / "a", again.members)  # replaces
    sizes = [path.stat().st_size for path in (tmp_path / "a").glob("*.safetensors")]
    assert len(sizes) == 2
    assert max(sizes) < 2 * back.members[1].network.parameter_count + 4096


def test_cards_from_before_calibration_was_written_down_are_read(tmp_path: Path, pair_oracle: Oracle) -> None:
    save_oracle(tmp_path / "oracle", pair_oracle.members)
    card = unsealed((tmp_path / "oracle" / ORACLE_FILE).read_bytes())
    for member in card["members"]:
        for name in ("calibrated", "evaluations", "changed_temperature", "beyond"):
            del member[name]
    card["members"][1]["pieces"] = [2, 24]
    card["members"][1]["beyond"] = {
        "temperatures": [1, 1, 1],
        "doubts": [0, 0, 0],
        "most": 1,
        "pieces": 4,
        "positions": 1,
    }
    (tmp_path / "oracle" / ORACLE_FILE).write_text(json.dumps(card))
    members = open_oracle(tmp_path / "oracle").members
    assert [member.calibrated for member in members] == [3, 7]
    assert [(member.evaluations, member.beyond) for member in members] == [(MOST_EVALUATIONS, None)] * 2


def changed(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def edited(**fields: object) -> Callable[[bytes], bytes]:
    return lambda text: sealed(unsealed(text) | fields)


def edited_member(**fields: object) -> Callable[[bytes], bytes]:
    def edit(text: bytes) -> bytes:
        card = unsealed(text)
        card["members"][0].update(fields)
        return sealed(card)

    return edit


WEIGHTS = "pair_2_3.safetensors"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (WEIGHTS, lambda data: data[:-7] + bytes([data[-7] ^ 1]) + data[-6:], "damaged"),
        (WEIGHTS, lambda data: data[:1000], "damaged"),
        (ORACLE_FILE, lambda text: text[:200], "cut off or no JSON"),
        (ORACLE_FILE, edited(schema_version=9), "version 9"),
        (ORACLE_FILE, edited(members=[]), "members"),
        (ORACLE_FILE, edited(extra=1), "extra"),
        (ORACLE_FILE, edited_member(rounds=99), "rounds 99"),
        (ORACLE_FILE, edited_member(kind="wild"), "kind"),
        (ORACLE_FILE, edited_member(config={"width": 7}), "config"),
        (ORACLE_FILE, edited_member(config={"width": 16}), "weights|another network"),
        (ORACLE_FILE, edited_member(file="../../other.safetensors"), "other.safetensors"),
    ],
)
def test_damaged_oracles_are_refused_in_one_line(
    tmp_path: Path, pair_oracle: Oracle, name: str, change: Callable[[bytes], bytes], message: str
) -> None:
    save_oracle(tmp_path / "oracle", pair_oracle.members)
    changed(tmp_path / "oracle" / name, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        open_oracle(tmp_path / "oracle")
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_weights_that_overflow_or_a_folder_in_the_way_leave_all_as_it_was(tmp_path: Path, pair_oracle: Oracle) -> None:
    save_oracle(tmp_path / "oracle", pair_oracle.members)
    before = (tmp_path / "oracle" / ORACLE_FILE).read_bytes()
    huge = PairNetwork(SMALL).eval()
    with torch.no_grad():
        huge.out_bias += 1e6
    with pytest.raises(CheckpointError, match="not finite"):
        save_oracle(tmp_path / "oracle", Oracle([Member(huge)]).members)
    assert (tmp_path / "oracle" / ORACLE_FILE).read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear")
    with pytest.raises(CheckpointError, match="in the way"):
        save_oracle(tmp_path / "mine", pair_oracle.members)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["diary.txt"]


def test_networks_alone_open_too(tmp_path: Path) -> None:
    save_endgame_network(tmp_path / "pair", PairNetwork(SMALL), (2, 4))
    assert open_oracle(tmp_path / "pair").members[0].pieces == (2, 4)
    save_checkpoint(tmp_path / "selfplay", make_network(NETWORKS["tiny"]))
    assert open_oracle(tmp_path / "selfplay").members[0].pieces == (2, 24)
    with pytest.raises(CheckpointError, match="holds no"):
        open_oracle(tmp_path)


def test_an_installation_without_an_oracle_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("no_such_package_here", "engine"):
        monkeypatch.setattr("learner.shipped.SHIPPED_PACKAGE", package)
        with pytest.raises(CheckpointError, match="no oracle comes with this installation"):
            open_oracle()


def test_the_shipped_oracle_is_small_and_good() -> None:
    folder = Path(oracle_module.__file__).parents[2] / "checkpoints" / "oracle"
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 6 * MB  # four networks
    oracle, batch = open_oracle(), drawn(20_000, 4, TEST)
    assert (oracle.capture_search(batch.positions).values == batch.values).mean() > 0.975
    assert (oracle.search(batch.positions).values == batch.values).mean() > 0.99


def test_a_budget_that_memory_does_not_allow_is_refused_at_once() -> None:
    class Untouched(FakeNetwork):
        def wdl_logits(self, positions: np.ndarray) -> np.ndarray:
            pytest.fail("it began")

    with pytest.raises(OracleError, match="a budget of 200,000 evaluations"):
        calibrate_oracle([(Untouched(), (2, 3))], tables(), 200_000.0)
