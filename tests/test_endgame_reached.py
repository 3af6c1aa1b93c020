"""Positions around games: walks, exact values from files, samplers of lists and mixtures, wider networks."""

import errno
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from solved_tables import solve_tables

from engine.bitboard import FAR_ROW, HOME_ROW
from engine.board import Board
from engine.fen import Color, format_fen
from engine.files import StorageError
from engine.tablebase import MissingTableError
from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.folder import SHIPPED
from engine.tablebase.layout import add_slice, locate, no_slices
from engine.tablebase.material import Material, materials_between, slices_of
from engine.tablebase.wdl_codec import BLOCK_WORDS
from learner.endgame.data import (
    FLAG_CAPTURE,
    TRAIN,
    VALIDATION,
    EndgameBatch,
    EndgameDataError,
    EndgameSampler,
    codes_of,
    flags_of,
    labelled,
    split_of,
)
from learner.endgame.labels import FileTables, beside, file_order
from learner.endgame.mixture import ListSampler, MixedSampler
from learner.endgame.networks import PairConfig, PairNetwork
from learner.endgame.reached import around, reached_sampler, some, with_tables
from learner.endgame.training import EndgameTrainer
from learner.endgame.walks import WalkSampler, walked
from learner.endgame.widening import sizes_of, widened
from selfplay.run.reached import ReachedError, reached_positions, shards_of

MATERIALS = materials_between(2, 4)


@cache
def tables() -> DenseTables:
    return solve_tables(4, threads=1)


def drawn(n: int, seed: int = 1, quiet: bool = False) -> EndgameBatch:
    return EndgameSampler(tables(), MATERIALS, seed, None, quiet).draw(n)


def board_of(position: np.ndarray) -> Board:
    return Board(format_fen(Color.BLACK, *(int(word) for word in position[:3])))


def successors(position: np.ndarray) -> set[tuple[int, ...]]:
    """Words of the positions after all moves of a position, by the rules of ``Board``."""
    board, found = board_of(position), set()
    for move in board.distinct_moves:
        board.push(move)
        found.add(board.words())
        board.pop()
    return found


def test_values_from_files_are_those_in_memory() -> None:
    batch = drawn(3000)
    with FileTables(SHIPPED) as files:
        assert np.array_equal(files.lookup(batch.positions), batch.values)
        assert files.pieces == 5
        assert Material(3, 0, 2, 0) in files
        assert Material(3, 0, 3, 0) not in files
        again = EndgameSampler(files, MATERIALS, 1).draw(3000)
        with pytest.raises(MissingTableError):
            files.lookup(np.array([[*Board("W:W32,31,30:B1,2,3").words(), 0]], np.uint32))
    for mine, theirs in zip(again, batch, strict=True):
        assert np.array_equal(mine, theirs)


def test_values_are_asked_for_in_the_order_of_the_files() -> None:
    positions = drawn(2000).positions
    order = file_order(positions)
    assert sorted(order.tolist()) == list(range(2000))
    counts = [positions[order] & positions[order, 2:3], positions[order] & ~positions[order, 2:3]]
    slices = np.stack([np.bitwise_count(count[:, side]) for count in counts for side in (0, 1)], 1)
    pairs = [Material(int(m), int(k), int(n), int(j)).pair for k, j, m, n in slices]
    changes = sum(before != after for before, after in pairwise(pairs))
    assert changes == len(set(pairs)) - 1


def test_walks_go_by_the_rules() -> None:
    starts = drawn(30, quiet=True).positions
    found = walked(starts, walks=3, plies=1, seed=5)
    assert np.array_equal(found, walked(starts, walks=3, plies=1, seed=5))
    assert (flags_of(found) != FLAG_CAPTURE).all()
    reachable: set[tuple[int, ...]] = set()
    for position in starts:
        level = successors(position)
        while level:  # captures do not count as plies
            words = [np.array([*one, 0], np.uint32) for one in level]
            captures = [w for w in words if w[0] and w[1] and flags_of(w[None])[0] == FLAG_CAPTURE]
            reachable |= level
            level = {after for w in captures for after in successors(w)}
    assert len(found) > 20
    assert {tuple(row[:3]) for row in found.tolist()} <= reachable


def test_positions_around_games_are_quiet_and_of_one_split() -> None:
    games = np.concatenate([drawn(300).positions] * 2)
    games[:, 3] = 7
    few = some(games, 3, 4)
    assert len(np.unique(few, axis=0)) == len(few) <= 300
    assert not few[:, 3].any()
    for split in (TRAIN, VALIDATION):
        found = around(games, 3, 4, split, seed=1)
        assert len(found) > 20
        assert (split_of(found) == split).all()
        assert (flags_of(found) != FLAG_CAPTURE).all()
        assert set(np.bitwise_count(found[:, 0] | found[:, 1]).tolist()) == {3, 4}
        assert len(around(games, 3, 4, split, seed=1, count=10)) == 10


def test_slices_without_tables_are_left_out() -> None:
    five = np.array([[*Board(f"W:W{own}:B{opp}").words(), 0] for own, opp in (
        ("32,31,30,29,28", "1,2,3"), ("32,31,30,29", "1,2,3,4"), ("32,31,30", "1,2,3,4"),
    )], np.uint32)  # fmt: skip
    assert np.array_equal(with_tables(five), five[1:])


def test_positions_beside_others_lie_in_the_same_block() -> None:
    """Block by block as the files have them: words of the layout, counted from the beginning of a pair."""
    given = with_tables(
        some(EndgameSampler(load_tables(SHIPPED, 5), materials_between(5, 5), 1).draw(300).positions, 5, 5)
    )
    found = beside(given, 3, seed=1)
    assert len(given) < len(found) <= 3 * len(given)

    def places(position: np.ndarray) -> tuple[int, int]:
        code = int(codes_of(position[None])[0])
        pair, slices = Material.of_code(code).pair, no_slices()
        for material in slices_of(pair):
            add_slice(slices, material, 0)
        return code, int(locate(*position[:3], slices)[0]) // BLOCK_WORDS

    known: dict[tuple[int, int], list[list[int]]] = {}
    for position in given:
        known.setdefault(places(position), []).append(position[:3].tolist())
    for position in found:
        own, opp, kings = position[:3].tolist()
        assert not own & opp
        assert not kings & ~(own | opp)
        assert not own & ~kings & FAR_ROW
        assert not opp & ~kings & HOME_ROW
        near = known[places(position)]
        assert any((own ^ a).bit_count() + (opp ^ b).bit_count() == 2 for a, b, _ in near)


def test_a_list_is_drawn_from_by_slice() -> None:
    batch = drawn(4000)
    sampler = ListSampler(batch, MATERIALS, 1, None, False)
    known = {tuple(row) for row in batch.positions.tolist()}
    found = sampler.draw(20_000)
    assert {tuple(row) for row in found.positions.tolist()} <= known
    assert np.array_equal(found.values, tables().lookup(found.positions))
    counts, had = (np.array([(b.codes == m.code).sum() for m in MATERIALS]) for b in (found, batch))
    roots = np.sqrt(had)
    assert sampler.weights == pytest.approx(roots / roots.sum())
    assert np.abs(counts / 20_000 - sampler.weights).max() < 0.02
    state, ends = sampler.state, sampler.ends.copy()
    first = sampler.draw(50)
    sampler.state, sampler.ends[:] = state, ends
    assert np.array_equal(sampler.draw(50).positions, first.positions)
    factors = np.zeros(len(MATERIALS))
    factors[5] = 1.0
    sampler.reweigh(factors)
    assert set(sampler.draw(100).codes.tolist()) == {MATERIALS[5].code}
    with pytest.raises(EndgameDataError, match="slices"):
        ListSampler(batch, MATERIALS[:3], 1, None, False)


def test_a_mixture_takes_its_part_of_each_and_resumes(tmp_path: Path) -> None:
    def mixed() -> MixedSampler:
        listed = ListSampler(drawn(40, seed=9), MATERIALS, 1, TRAIN, True)
        return MixedSampler(EndgameSampler(tables(), MATERIALS, 1, TRAIN, True), listed, 0.25)

    known = {tuple(row) for row in drawn(40, seed=9).positions.tolist()}
    found = mixed().draw(400)
    assert sum(tuple(row) in known for row in found.positions.tolist()) >= 100
    assert all(tuple(row) in known for row in found.positions[:100].tolist())
    torch.manual_seed(1)
    network = PairNetwork(PairConfig(width=8, experts=6, hidden=4, pieces=4))
    EndgameTrainer(network, mixed(), positions=500_000).run(tmp_path / "state", stop=lambda: True)
    again = EndgameTrainer(PairNetwork(network.config), mixed(), positions=500_000)
    again.load(tmp_path / "state")
    other = mixed()
    other.state, other.ends[:] = again.sampler.state, again.sampler.ends
    assert np.array_equal(again.sampler.draw(64).positions, other.draw(64).positions)
    with pytest.raises(EndgameDataError):
        MixedSampler(EndgameSampler(tables(), MATERIALS[:4], 1), ListSampler(drawn(9), MATERIALS, 1, None, False), 0.5)


def test_walks_lead_to_new_samples_of_the_split_and_the_slices() -> None:
    starts = drawn(200, quiet=True).positions
    three = materials_between(3, 3)
    sampler = WalkSampler(tables(), starts, MATERIALS, 1, VALIDATION, 4)
    found = sampler.draw(500)
    assert len(np.unique(found.positions, axis=0)) > 250
    assert (split_of(found.positions) == VALIDATION).all()
    assert (found.flags != FLAG_CAPTURE).all()
    assert np.array_equal(found.values, tables().lookup(found.positions))
    known = {tuple(row) for row in starts.tolist()}
    at_home = WalkSampler(tables(), starts, MATERIALS, 1, None, 0).draw(200)
    assert {tuple(row) for row in at_home.positions.tolist()} <= known
    few = starts[np.bitwise_count(starts[:, 0] | starts[:, 1]) == 3]
    assert (
        np.bitwise_count(WalkSampler(tables(), few, three, 1, None, 9).draw(300).positions[:, :2]).sum(1) == 3
    ).all()


def test_samples_around_games_come_from_memory_or_a_list() -> None:
    uniform = EndgameSampler(tables(), materials_between(3, 4), 1, TRAIN, True)
    for dense in (True, False):
        found = reached_sampler(drawn(400).positions, uniform, dense, 1).draw(300)
        assert (split_of(found.positions) == TRAIN).all()
        assert np.array_equal(found.values, tables().lookup(found.positions))


def test_a_wider_network_begins_by_judging_as_before() -> None:
    torch.manual_seed(4)
    network = PairNetwork(PairConfig(width=8, experts=6, hidden=4, pieces=4))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    wider = widened(network, PairConfig(width=14, experts=9, hidden=7, pieces=5))
    positions = EndgameSampler(load_tables(SHIPPED, 5), materials_between(2, 5), 1).draw(500).positions
    assert np.allclose(wider.wdl_logits(positions), network.wdl_logits(positions), atol=1e-4)
    before = [parameter.detach().clone() for parameter in wider.parameters()]
    EndgameTrainer(wider, EndgameSampler(tables(), MATERIALS, 1, TRAIN, True), positions=40_000).run()
    assert all(not torch.equal(a, b) for a, b in zip(before, wider.parameters(), strict=True))
    with pytest.raises(ValueError, match="experts 5 is less"):
        widened(network, PairConfig(width=8, experts=5, hidden=4, pieces=4))
    assert sizes_of(64, 5) == PairConfig()


def test_games_of_runs_and_files_are_read(tmp_path: Path) -> None:
    game = '[FEN "W:W32,31:B1"]\n\n1. 31-27 1-6 2. 27-23 6-10 1/2-1/2\n'
    (tmp_path / "games.pdn").write_text(game)
    found = reached_positions(tmp_path / "games.pdn", 4)
    assert len(found) == 4
    assert (np.bitwise_count(found[:, 0] | found[:, 1]) == 3).all()
    assert len(reached_positions(tmp_path / "games.pdn", 2)) == 0
    with pytest.raises(ReachedError, match="no games"):
        reached_positions(tmp_path, 4)
    values = labelled(found, tables()).values
    assert len(values) == 4


def test_a_folder_of_shards_that_cannot_be_read_is_not_said_to_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    (tmp_path / "shards").mkdir()
    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(StorageError, match=r"cannot read .*shards: Permission denied"):
        shards_of(tmp_path)
