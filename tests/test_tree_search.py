"""Tree searches of the oracle: what they count, when they are asked, and how they are stored."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_endgame_oracle import SMALL, FakeNetwork

from engine.board import Board
from engine.outcomes import LOSS, UNKNOWN, WIN
from engine.tablebase.folder import SHIPPED
from learner.endgame import tree_search
from learner.endgame.commands import OracleCommandError
from learner.endgame.member import Member
from learner.endgame.networks import PairNetwork
from learner.endgame.oracle import ORACLE_FILE, Oracle, open_oracle, read_oracle_card, save_oracle, shipped_folder
from learner.endgame.probe_command import probe_command
from learner.endgame.resolve import PROVEN
from learner.endgame.tree_search import (
    ChampionTrees,
    TreeAnswer,
    TreeRound,
    TreeSearch,
    TreeSettings,
    TreeWeights,
    fit_rounds,
)
from learner.endgame.trees_command import oracle_trees_command
from learner.endgame.trust import Beyond, Further
from learner.shipped import CHAMPION_FOLDER
from learner.student import read_student_info

ROUNDS = (TreeRound(simulations=10, own=0.5, tree=1, draw=0), TreeRound(simulations=50, own=0, tree=1, draw=0))
TWO, THREE, FOUR = (Board(fen) for fen in ("W:WK1:BK28", "W:WK1,K2:BK28", "W:WK1,K2:BK28,K27"))


class FakeTrees:
    """Says the same of every position, one answer after the other; notes what it was asked."""

    network = "f00d"

    def __init__(self, *said: TreeAnswer, fewest: int = 3) -> None:
        self.said, self.fewest = said, fewest
        self.asked: list[tuple[list[int], int]] = []

    def answers(self, position: np.ndarray, simulations: Sequence[int]) -> Iterator[TreeAnswer]:
        for answer, most in zip(self.said, simulations, strict=True):
            self.asked.append((position.tolist(), most))
            yield answer


def says(win: float, draw: float, loss: float, proof: int = UNKNOWN) -> TreeAnswer:
    return TreeAnswer(np.array([win, draw, loss], np.float32), proof)


def words(*boards: Board) -> np.ndarray:
    return np.array([[*board.words(), 0] for board in boards], np.uint32)


def oracle_with(trees: FakeTrees, calibrated: int = 4, **settings: Any) -> Oracle:
    """An oracle that is sure of nothing by itself."""
    member = Member(FakeNetwork(sharpness=0.1), threshold=0.9, rounds=0, calibrated=4)
    weights = (TreeWeights(pieces=calibrated, rounds=ROUNDS),)
    return Oracle([member], TreeSearch(TreeSettings(weights=weights, **{"network": "f00d"} | settings), trees))


def test_answers_are_weighed_by_hand() -> None:
    own, tree = np.float32([[0.2, 0.5, 0.3]]), np.float32([[0.6, 0.4, 0.0]])
    found = TreeRound(simulations=1, own=0.5, tree=2, draw=-1).weighed(own, tree)
    parts = np.array([0.2**0.5 * 0.6**2, 0.5**0.5 * 0.4**2 * np.exp(-1), 0.3**0.5 * 1e-4**2])
    assert found[0] == pytest.approx(parts / parts.sum(), rel=1e-4)


def test_only_doubtful_positions_beyond_the_tables_are_searched() -> None:
    trees = FakeTrees(says(0.1, 0.8, 0.1), says(0.1, 0.1, 0.8))
    oracle = oracle_with(trees)
    found, plain = oracle.search(words(TWO, THREE)), Oracle(oracle.members).search(words(TWO, THREE))
    assert trees.asked == [(words(THREE)[0].tolist(), most) for most in (10, 50)]
    assert found.probabilities[0].tolist() == plain.probabilities[0].tolist()
    assert found.probabilities[1] == pytest.approx([0.1, 0.1, 0.8], abs=1e-5)  # the last round's weights
    assert (found.evaluations - plain.evaluations).tolist() == [0, 50]
    sure = oracle_with(trees, ask_below=0.3)  # the largest of three is more
    trees.asked.clear()
    assert sure.search(words(THREE)).probabilities.tolist() == plain.probabilities[1:].tolist()
    assert trees.asked == []


def test_rounds_end_when_the_verdict_is_sure() -> None:
    trees = FakeTrees(says(0, 1, 0), says(1, 0, 0))
    answer = oracle_with(trees, stop_at=0.95).probe(THREE)
    assert [most for _, most in trees.asked] == [10]
    assert (answer.verdict, answer.source) == ("draw", "tree search")
    assert answer.confidence > 0.95


@pytest.mark.parametrize(("proof", "verdict"), [(WIN, "win"), (LOSS, "loss")])
def test_what_a_tree_proves_is_certain(proof: int, verdict: str) -> None:
    trees = FakeTrees(says(0.3, 0.4, 0.3, proof), says(0, 1, 0))
    oracle = oracle_with(trees, calibrated=3)
    answer = oracle.probe(FOUR)
    assert (answer.verdict, answer.confidence, answer.source) == (verdict, 1.0, "tree search")
    assert oracle.search(words(FOUR)).ways.tolist() == [PROVEN]
    assert len(trees.asked) == 2  # one for each question: nothing is left to search


def test_nothing_is_as_sure_beyond_the_pieces_that_weights_were_fitted_on() -> None:
    row = Further(errors=(0, 0), temperatures=(1, 1))
    rule = Beyond(further=(row, row), most=0.9, pieces=4, positions=10)
    trees = FakeTrees(says(0, 1, 0), says(0, 1, 0))
    oracle = oracle_with(trees, calibrated=3)
    oracle = Oracle([replace(oracle.members[0], beyond=rule)], oracle.trees)
    near, far = oracle.probe(THREE), oracle.probe(FOUR)
    assert near.confidence > 0.99
    assert far.confidence == pytest.approx(0.9, abs=1e-5)
    assert (near.source, far.source) == ("tree search", "tree search, never tested on 4 pieces")


def test_fitted_weights_find_out_who_is_right() -> None:
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 3, 400)
    told = np.where(rng.random(400) < 0.9, classes, rng.integers(0, 3, 400))  # mostly right
    right = (0.7 * np.eye(3)[told] + 0.1).astype(np.float32)
    noise = rng.dirichlet([1, 1, 1], 400).astype(np.float32)
    said = iter([says(*row) for row in right])

    class Sequential(FakeTrees):
        def answers(self, position: np.ndarray, simulations: Sequence[int]) -> Iterator[TreeAnswer]:
            yield next(said)

    done: list[int] = []
    (found,) = fit_rounds(np.tile(words(FOUR), (400, 1)), noise, classes, [10], Sequential(), done.append)
    assert found.tree > 1
    assert abs(found.own) < 0.3
    assert done[-1] == 400
    assert (found.weighed(noise, right).argmax(1) == told).mean() > 0.99


def test_weights_of_another_network_count_as_never_tested() -> None:
    trees = FakeTrees(says(0, 1, 0), says(0, 1, 0))
    fitted, other = oracle_with(trees).probe(FOUR), oracle_with(trees, network="beef").probe(FOUR)
    assert (fitted.source, other.source) == ("tree search", "tree search, never tested on 4 pieces")
    assert other.confidence < fitted.confidence


def test_each_number_of_pieces_has_its_weights() -> None:
    far = (TreeRound(simulations=30, own=1, tree=1, draw=0),)
    settings = TreeSettings(weights=(TreeWeights(pieces=6, rounds=ROUNDS), TreeWeights(pieces=7, rounds=far)))
    assert [settings.rounds_for(pieces) for pieces in (3, 6, 7, 12)] == [ROUNDS, ROUNDS, far, far]
    assert (settings.calibrated, settings.most_simulations) == (7, max(30, ROUNDS[-1].simulations))


def test_settings_come_back_from_the_folder_and_go_with_a_new_calibration(tmp_path: Path) -> None:
    settings = TreeSettings(weights=(TreeWeights(pieces=6, rounds=ROUNDS),))
    members = open_oracle().members
    save_oracle(tmp_path / "a", members, {}, settings)
    assert read_oracle_card(tmp_path / "a").trees == settings
    trees = open_oracle(tmp_path / "a").trees
    assert trees is not None
    assert trees.settings == settings
    assert open_oracle(tmp_path / "a", trees=False).trees is None
    save_oracle(tmp_path / "b", members)
    assert open_oracle(tmp_path / "b").trees is None


def test_the_command_fits_and_rewrites_the_oracle(tmp_path: Path) -> None:
    place = tmp_path / "oracle"
    save_oracle(place, [Member(PairNetwork(SMALL), (2, 4), threshold=0.9, rounds=0, calibrated=4)], {"kept": 1})
    trees = FakeTrees(says(0.2, 0.6, 0.2), fewest=3)
    told = oracle_trees_command(place, 4, 300, 1, SHIPPED, True, None, [10], trees)
    card = read_oracle_card(place)
    assert card.trees is not None
    assert told["trees"] == card.trees.model_dump(mode="json")
    assert card.figures == {"kept": 1}
    assert [weights.pieces for weights in card.trees.weights] == [3, 4]
    assert (card.trees.calibrated, card.trees.network) == (4, "f00d")
    assert told["searched"] > 100
    before = (place / ORACLE_FILE).read_bytes()
    for arguments, message in (
        ((place, 2, 300), "trees serve from 3"),
        ((place, 4, 50), "the oracle is unsure of .* draw more"),
    ):
        with pytest.raises(OracleCommandError, match=message):
            oracle_trees_command(*arguments, 1, SHIPPED, True, None, [10], trees)
    with pytest.raises(OracleCommandError, match="is no oracle"):
        oracle_trees_command(tmp_path / "none", 4, 300, 1, SHIPPED, True, None, [10], trees)
    assert (place / ORACLE_FILE).read_bytes() == before


def test_trees_of_more_pieces_leave_the_others_as_they_are(tmp_path: Path) -> None:
    place, members = tmp_path / "oracle", [Member(PairNetwork(SMALL), (2, 4), threshold=0.9, rounds=0, calibrated=4)]
    trees = FakeTrees(says(0.2, 0.6, 0.2), fewest=3)
    fewer = TreeWeights(pieces=3, rounds=ROUNDS)

    def fit(fewest: int, before: TreeSettings | None) -> tuple[TreeWeights, ...]:
        save_oracle(place, members, {}, before)
        oracle_trees_command(place, 4, 300, 1, SHIPPED, True, None, [10], trees, fewest)
        settings = read_oracle_card(place).trees
        assert settings is not None
        return settings.weights

    first, second = fit(4, TreeSettings(weights=(fewer,), network="f00d"))
    assert (first, second.pieces) == (fewer, 4)
    assert fit(2, TreeSettings(weights=(fewer,), network="f00d"))[0] != fewer
    others = TreeSettings(weights=(fewer,), network="another champion")
    for fewest, before in ((4, None), (4, others), (5, TreeSettings(weights=(fewer, second), network="f00d"))):
        with pytest.raises(OracleCommandError, match=f"--fewest {fewest}: at most --pieces 4, and .* leave it out"):
            fit(fewest, before)


def test_too_few_positions_are_told_of_before_the_tables_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_oracle(tmp_path / "oracle", [Member(PairNetwork(SMALL), (2, 4))])
    monkeypatch.setattr("learner.endgame.trees_command.open_values", lambda *_: pytest.fail("it began"))
    with pytest.raises(OracleCommandError, match="--positions 49: draw more, at least 50"):
        oracle_trees_command(tmp_path / "oracle", 6, 49, 1, SHIPPED, True)


def test_the_champion_searches_to_the_tables() -> None:
    trees = ChampionTrees(2_000)
    assert trees.fewest == 6
    won, drawn = Board("B:WK32:BK1,K2,9,10,11"), Board("W:WK30,K32,21:BK1,K3,12")
    (first,) = trees.answers(words(won)[0], [2_000])
    assert first.proof == WIN or first.wdl[0] > 0.8
    few, more = trees.answers(words(drawn)[0], [100, 2_000])
    assert few.wdl.sum() == pytest.approx(1, abs=1e-3) == more.wdl.sum()


def test_a_champion_without_a_student_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_search, "CHAMPION_FOLDER", "oracle")
    with pytest.raises(ValueError, match="there is no student"):
        next(ChampionTrees(10).answers(words(FOUR)[0], [10]))


def test_the_shipped_oracle_searches_trees() -> None:
    card = read_oracle_card(shipped_folder())
    assert card.trees is not None
    for weights in card.trees.weights:
        assert [one.simulations for one in weights.rounds] == sorted(one.simulations for one in weights.rounds)
    assert [weights.pieces for weights in card.trees.weights] == [6, 7, 8]
    student = read_student_info(shipped_folder().parent / CHAMPION_FOLDER)
    assert student is not None
    assert card.trees.network == student.digest, "fit the weights again: crownhead oracle trees checkpoints/oracle"


def test_probe_asks_for_patience_once_while_nothing_is_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.endgame.probe_command.search_is_compiled", lambda: False)
    five, six = "W:WK1,K2,K3:BK28,K27", "B:W18,K22,23:BK1,10,11"
    list(probe_command([five], None, SHIPPED, quiet=False))
    assert "compiles" not in capsys.readouterr().err
    list(probe_command([six, six], None, SHIPPED, quiet=False))
    assert capsys.readouterr().err.count("compiles") == 1
    list(probe_command([six], None, SHIPPED, False, trees=False))
    assert "compiles" not in capsys.readouterr().err


def test_probe_says_how_far_trees_were_tested(capsys: pytest.CaptureFixture[str]) -> None:
    nine = "B:W18,K22,23,30,31:BK1,10,11,12"
    (found,) = probe_command([nine], None, SHIPPED, quiet=False)
    assert found["source"] == "tree search, never tested on 9 pieces"
    assert "Tree searches were tested on up to 8 pieces." in capsys.readouterr().out
    (plain,) = probe_command([nine], None, SHIPPED, False, trees=False)
    assert "tree" not in plain["source"]
    assert "Tree" not in capsys.readouterr().out
