"""What every search must do: find ends and draws, spend nothing on forced moves, be reproducible, obey the rules."""

import random

import numpy as np
import pytest
from scipy import stats
from search_boards import (
    children_of,
    index_of,
    nodes_below,
    placed,
    played,
    push_index,
    random_game,
    searched,
    shuffled,
    started,
    words_at,
)
from search_reference import LOSS, WIN, HashEvaluator, Words, distinct_moves, judge

from engine import outcomes
from engine.board import Board, Termination
from engine.search import Ending, LockstepSearch, SearchConfig, UniformEvaluator, lockstep

ENDINGS = {
    None: Ending.RUNNING,
    Termination.NO_MOVES: Ending.LOST,
    Termination.REPETITION: Ending.REPETITION,
    Termination.REVERSIBLE_PLIES: Ending.REVERSIBLE,
}
TO_AND_FRO = ("B:WK31,22:BK1,K5", "1-6 31-27 6-1 27-31 1-6 31-27 6-1")  # 27-31 makes the third occurrence


def solve(words: Words, depth: int) -> tuple[str, int] | None:
    """(WIN or LOSS for the side to move, plies to the end with best play), if it is at most ``depth`` plies away."""
    moves = distinct_moves(words)
    if not moves:
        return LOSS, 0
    if depth == 0:
        return None
    answers = [solve(after, depth - 1) for _, after in moves]
    lost = [answer[1] for answer in answers if answer and answer[0] == LOSS]
    if lost:
        return WIN, min(lost) + 1
    won = [answer[1] for answer in answers if answer]
    return (LOSS, max(won) + 1) if len(won) == len(answers) else None


ENDS = [  # found with ``solve``; the defender has a worse and a better way to lose
    ("B:WK31:B21,23,K13", WIN, 3),
    ("B:W28:BK2,K32", WIN, 3),
    ("W:WK6,K17,K32:B21", WIN, 3),
    ("B:WK31:BK13,K27", WIN, 3),
    ("B:WK29:B10,22,K32", WIN, 3),
    ("W:WK8:B5,K7,K9", LOSS, 4),
    ("W:WK25:BK7,K17,K30", LOSS, 4),
    ("B:WK3,K18:BK26", LOSS, 4),
    ("B:W16,K19,K24:BK8", LOSS, 4),
    ("W:WK14:BK6,K22", LOSS, 2),
    ("B:W6,7,14,15:BK2", WIN, 1),
]


@pytest.mark.parametrize(("fen", "proof", "plies"), ENDS)
def test_shortest_win_and_longest_defence(fen: str, proof: str, plies: int) -> None:
    board = Board(fen)
    assert solve(board.words(), 4) == (proof, plies)
    search = started(SearchConfig(num_simulations=4000), [board])
    evaluations = search.run(UniformEvaluator())
    assert evaluations < 4000
    result = search.result(0)
    assert result.wdl.tolist() == ([1, 0, 0] if proof == WIN else [0, 0, 1])
    chosen = search.choose(0)
    after = distinct_moves(board.words())[chosen][1]
    assert solve(after, 4) == (LOSS if proof == WIN else WIN, plies - 1)
    assert result.proof_plies[chosen] == plies - 1
    assert result.policy.sum() == pytest.approx(1)
    line = search.principal_variation(0)
    assert len(line) == plies
    for index in line:
        push_index(board, index)
    assert board.outcome() is not None


@pytest.mark.parametrize(("fen", "proof", "plies"), ENDS)
def test_proven_games_end_as_proven(fen: str, proof: str, plies: int) -> None:
    """Both sides play on by search: the winner wins, and never later than the proofs said."""
    board = Board(fen)
    winner = board.turn if proof == WIN else board.turn.other
    search = LockstepSearch(SearchConfig(num_simulations=4000), 1)
    ending, left = search.set_board(0, board), 255
    while ending is Ending.RUNNING:
        search.start(0)
        search.run(HashEvaluator())
        chosen = search.choose(0, temperature=1.0)
        promised = int(search.result(0).proof_plies[chosen])
        assert promised < left
        left = promised
        push_index(board, chosen)
        _, ending = search.play(0, chosen)
    outcome = board.outcome()
    assert outcome is not None
    assert outcome.winner is winner


def test_80_plies_are_a_proven_draw() -> None:
    board = shuffled(random.Random(5), 79, repeat=False)
    assert not board.legal_moves[0].captured
    evaluator = HashEvaluator()
    search = started(SearchConfig(num_simulations=100, c_puct=20), [board])
    assert search.run(evaluator) == 1 == len(evaluator.seen)  # the root alone
    result = search.result(0)
    assert set(result.proofs) == {outcomes.DRAW}
    assert result.wdl.tolist() == [0, 1, 0]
    assert result.values.tolist() == [0] * len(result.visits)
    assert result.draws.tolist() == [1] * len(result.visits)
    assert search.play(0, search.choose(0)) == (1, Ending.REVERSIBLE)


def test_first_return_inside_the_tree_is_a_draw() -> None:
    board = Board("B:WK31:BK1")
    evaluator = HashEvaluator()
    search = started(SearchConfig(num_simulations=3000), [board])
    search.run(evaluator)
    returned = [node for node in nodes_below(search, 0) if words_at(node) == board.words() and node["reversible"] == 4]
    assert len(returned) > 1
    for node in returned:
        assert node["proof"] == (outcomes.DRAW if node["visits"] else outcomes.UNKNOWN)
        assert node["value_sum"] == 0
        assert node["num_children"] == 0
    assert sum(seen[:3] == board.words() for seen in evaluator.seen) == 1


def test_third_occurrence_in_game_and_tree_is_a_draw_at_once() -> None:
    fen, moves = TO_AND_FRO
    twice, once = (played(fen, " ".join(moves.split()[:plies])) for plies in (7, 3))
    repeating = index_of(twice, "27-31")
    assert repeating == index_of(once, "27-31")
    for board, proof in ((twice, outcomes.DRAW), (once, outcomes.UNKNOWN)):
        search = searched(board, 200, c_puct=20)
        result = search.result(0)
        assert result.visits[repeating] > 0
        assert result.proofs[repeating] == proof
        assert (result.draws[repeating] == 1) == (proof == outcomes.DRAW)


def test_forced_positions_cost_no_evaluation() -> None:
    rng = random.Random(2)
    boards = [placed(rng, 5, 0.5) for _ in range(20)]
    evaluator = HashEvaluator()
    search = started(SearchConfig(num_simulations=200), boards)
    assert search.run(evaluator) == len(evaluator.seen)
    counts = [int(node["num_children"]) for slot in range(20) for node in list(nodes_below(search, slot))[1:]]
    assert len(evaluator.seen) == 20 + sum(count > 1 for count in counts)  # every root, and where there is a choice
    assert counts.count(1) > 300
    assert search.result(0).simulations == 200


def self_play(search: LockstepSearch, boards: list[Board], most: int) -> list[list[int]]:
    """Moves of games of the search against itself in lockstep, with at most ``most`` searched moves each."""
    games: list[list[int]] = [[] for _ in boards]
    playing = [search.set_board(slot, board) is Ending.RUNNING for slot, board in enumerate(boards)]
    evaluator = HashEvaluator()
    while any(playing):
        for slot in np.flatnonzero(playing):
            search.start(slot)
        search.run(evaluator)
        for slot in np.flatnonzero(playing):
            games[slot].append(search.choose(slot, search.config.temperature_at(len(games[slot]))))
            _, ending = search.play(slot, games[slot][-1], through_forced=True)
            playing[slot] = ending is Ending.RUNNING and len(games[slot]) < most
    return games


def test_same_seed_same_games() -> None:
    """The number of other slots makes no difference."""
    config = SearchConfig(num_simulations=24, temperature_plies=10)
    boards = [Board() for _ in range(4)]
    games = self_play(LockstepSearch(config, 4, seed=7), boards, 60)
    assert games == self_play(LockstepSearch(config, 4, seed=7), boards, 60)
    assert games[:1] == self_play(LockstepSearch(config, 1, seed=7), boards[:1], 60)
    assert games[:2] == self_play(LockstepSearch(config, 2, max_simulations=50, seed=7), boards[:2], 60)
    assert len({tuple(game) for game in games}) == 4
    assert games != self_play(LockstepSearch(config, 4, seed=8), boards, 60)


def test_noise_only_when_exploring() -> None:
    board = random_game(random.Random(4), 20)
    clean, _, _ = judge(HashEvaluator(), board.words(), board.reversible_plies)
    for seed in range(20):
        quiet, noisy = (started(SearchConfig(num_simulations=1), [board], explore, seed) for explore in (False, True))
        for search in (quiet, noisy):
            search.run(HashEvaluator())
        np.testing.assert_allclose(quiet.result(0).priors, clean, rtol=1e-6)
        noise = (noisy.result(0).priors - 0.75 * np.array(clean)) / 0.25
        assert noise.sum() == pytest.approx(1, abs=1e-5)
        assert (noise > -1e-6).all()
        assert abs(noise - clean).max() > 0.01


@pytest.mark.parametrize(("temperature", "simulations"), [(1.0, 60), (0.5, 60), (2.0, 60), (1.0, 0), (0.5, 0)])
def test_moves_are_drawn_with_temperature(temperature: float, simulations: int) -> None:
    """In proportion to visits ** (1 / temperature), or to the priors if nothing is visited."""
    board = random_game(random.Random(4), 20)
    search = searched(board, simulations)
    result = search.result(0)
    assert result.simulations == simulations
    weights = (result.visits if simulations else result.priors).astype(np.float64) ** (1 / temperature)
    drawn = np.bincount([search.choose(0, temperature) for _ in range(3000)], minlength=len(weights))
    assert (drawn[weights == 0] == 0).all()
    likely = weights > 0
    expected = 3000 * weights[likely] / weights.sum()
    assert stats.chisquare(drawn[likely], expected).pvalue > 1e-4
    assert {search.choose(0) for _ in range(20)} == {int(weights.argmax())}


def test_proven_losses_are_not_drawn() -> None:
    search = searched(Board("B:WK4,K29:BK25,K26,K31"), 300)  # one of seven moves loses
    result = search.result(0)
    lost = result.proofs == outcomes.LOSS
    assert lost.sum() == 1
    drawn = {search.choose(0, 5.0) for _ in range(500)}
    assert drawn <= set(np.flatnonzero(~lost))
    assert (result.policy[lost] == 0).all()
    assert result.policy.sum() == pytest.approx(1)


def test_full_arena_stops_growing_and_harms_nothing() -> None:
    rng = random.Random(3)
    board = random_game(rng, 20)
    config = SearchConfig(num_simulations=150)
    search = started(config, [board] * 3)
    ends = search._slots["limit"].copy()
    search._slots["limit"][1] = search._slots["root"][1] + 60
    search.run(HashEvaluator())
    assert search._slots["used"][1] <= search._slots["limit"][1]
    assert not search._nodes["visits"][search._slots["limit"][1] : ends[1]].any()
    assert [search.result(slot).simulations for slot in range(3)] == [150] * 3
    assert search.result(0).visits.tolist() == search.result(2).visits.tolist() != search.result(1).visits.tolist()
    search._slots["limit"] = ends
    search.play(1, search.choose(1))
    assert search.num_legal(1) > 1
    grown = search._slots["used"][1]
    search.start(1, explore=False)
    search.run(HashEvaluator())
    assert search._slots["used"][1] > grown
    for node in nodes_below(search, 1):  # leaves that found room at last got the network's priors like any other
        if node["num_children"] > 1:
            clean, _, _ = judge(HashEvaluator(), words_at(node), int(node["reversible"]))
            np.testing.assert_allclose([child["prior"] for child in children_of(search, node)], clean, rtol=1e-5)


def test_a_tree_takes_no_more_memory_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "_MOST_NODES", 100)
    search = started(SearchConfig(num_simulations=400), [random_game(random.Random(3), 20)])
    search.run(HashEvaluator())
    assert search.result(0).simulations == 400
    assert 100 < search._slots["used"][0] <= search.tree_nodes == 100 + lockstep._SPARE_NODES


def test_start_and_play_say_what_is_wrong() -> None:
    search = LockstepSearch(SearchConfig(num_simulations=10), 2)
    with pytest.raises(ValueError, match="no legal move"):
        search.start(0)  # no board yet
    assert search.set_board(0, Board("B:W32:B")) is Ending.LOST
    with pytest.raises(ValueError, match="no legal move"):
        search.start(0)
    search.set_board(1, Board())
    for simulations in (11, -1):
        with pytest.raises(ValueError, match=f"{simulations} simulations"):
            search.start(1, simulations)
    assert not search.active().any()
    for move in (-1, 7):
        with pytest.raises(ValueError, match=f"move {move} of 7"):
            search.play(1, move)
    assert search.result(1).position.tolist() == [*Board().words(), 0]

    class Short(HashEvaluator):
        def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return super().evaluate(positions[1:])

    search.start(1)
    with pytest.raises(ValueError, match=r"shapes \(0, 128\) and \(0, 3\), not \(1, 128\) and \(1, 3\)"):
        search.run(Short())

    class Unlearnt(HashEvaluator):
        def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            policy, wdl = super().evaluate(positions)
            return policy, wdl * np.nan

    search.start(1)
    with pytest.raises(ValueError, match="not finite"):
        search.run(Unlearnt())


def test_a_new_position_ends_the_search() -> None:
    search = started(SearchConfig(), [Board(), Board(), Board()])
    for _ in range(5):
        search.step(HashEvaluator())
    search.play(0, 0)
    search.set_board(1, Board())
    assert search.active().tolist() == [False, False, True]
    search.stop()
    assert not search.active().any()
    assert search.step(HashEvaluator()) == 0
    assert search.result(2).simulations == 4


def test_games_that_are_drawn_by_the_rules_can_still_be_searched() -> None:
    board = played("B:WK31:BK1", "1-6 31-27 6-1 27-31 " * 30)
    assert board.reversible_plies == 120
    search = LockstepSearch(SearchConfig(), 1)
    assert search.set_board(0, board) is Ending.REPETITION
    assert search.result(0).position.tolist() == [*board.words(), 120]
    search.start(0)
    search.run(HashEvaluator())
    assert search.result(0).proofs.tolist() == [outcomes.DRAW] * len(board.legal_moves)
    push_index(board, search.choose(0))
    assert search.play(0, search.choose(0)) == (1, Ending.REPETITION)
    assert search.result(0).position.tolist() == [*board.words(), 121]


@pytest.mark.parametrize("through_forced", [False, True])
def test_play_agrees_with_board(through_forced: bool) -> None:
    """Position, number of moves, plies played and ending, to the end of random games of every kind."""
    rng = random.Random(6)
    boards = [Board() for _ in range(6)] + [placed(rng, 8, 0.5) for _ in range(6)]
    boards += [shuffled(rng, 79 * (i % 2), repeat=False) for i in range(8)]
    search = LockstepSearch(SearchConfig(num_simulations=0), 2)
    endings, longest = set(), 0
    for number, board in enumerate(boards):
        ending = search.set_board(0, board)
        while ending is Ending.RUNNING:
            before = board.ply
            options = distinct_moves(board.words())
            back = number >= 12 and board.ply > 1 and (board.move_stack[-2].end, board.move_stack[-2].start)
            moves = [move for move in board.legal_moves if (move.start, move.end) == back]
            board.push(rng.choice(moves or board.legal_moves))
            index = [after for _, after in options].index(board.words())
            while through_forced and board.outcome() is None:
                if len(distinct_moves(board.words())) > 1:
                    break
                board.push(board.legal_moves[0])
            plies, ending = search.play(0, index, through_forced)
            longest = max(longest, plies)
            assert plies == board.ply - before
            assert search.result(0).position.tolist() == [*board.words(), board.reversible_plies]
            assert search.num_legal(0) == len(distinct_moves(board.words()))
            outcome = board.outcome()
            assert ending is ENDINGS[outcome.termination if outcome else None]
            assert search.set_board(1, board) is ending
            assert search.result(1).position.tolist() == search.result(0).position.tolist()
        endings.add(ending)
    assert endings == {Ending.LOST, Ending.REPETITION, Ending.REVERSIBLE}
    assert (longest > 1) == through_forced


def test_forced_moves_are_not_played_past_the_end() -> None:
    """White's king in its corner always has one move; at the third occurrence the game is drawn before it moves."""
    search = LockstepSearch(SearchConfig(), 1)
    for circles, made in ((0, (2, Ending.RUNNING)), (1, (1, Ending.REPETITION))):
        board = played("W:WK29:BK6", "29-25 6-1 25-29 1-6 " * circles + "29-25 6-1 25-29")
        search.set_board(0, board)
        assert search.play(0, index_of(board, "1-6"), through_forced=True) == made


@pytest.mark.parametrize("lanes", [1, 8])
def test_leaves_in_flight_leave_nothing_behind(lanes: int) -> None:
    """A search that was stopped while leaves waited continues as if they had not been visited."""
    config = SearchConfig(num_simulations=300, leaves_in_flight=lanes, virtual_loss=0.5)
    stopped, whole = LockstepSearch(config, 1), LockstepSearch(config, 1)
    for search in (stopped, whole):
        search.set_board(0, Board())
        search.start(0, 300, explore=False)
        for _ in range(30):
            search.step(HashEvaluator())
    waiting = stopped.select()
    assert waiting > 1 or lanes == 1
    stopped.stop()
    assert stopped.result(0).visits.tolist() == whole.result(0).visits.tolist()
    np.testing.assert_allclose(stopped.result(0).values, whole.result(0).values, atol=1e-6)
    for search in (stopped, whole):
        search.start(0, 300, explore=False)
        assert search.run(HashEvaluator()) > 0
    assert stopped.result(0).visits.tolist() == whole.result(0).visits.tolist()


def test_leaves_in_flight_are_different_positions() -> None:
    config = SearchConfig(num_simulations=800, leaves_in_flight=16, virtual_loss=0.5)
    search = LockstepSearch(config, 1)
    search.set_board(0, Board())
    search.start(0, explore=False)
    sizes = []

    class Watched(HashEvaluator):
        def evaluate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            sizes.append(len(positions))
            return super().evaluate(positions)

    total = search.run(Watched())
    assert total == sum(sizes)
    assert sizes[0] == 1
    assert max(sizes) == 16
    assert max(sizes[:32]) == 8  # of at most 256 visits
    assert np.mean(sizes) > 6
    assert search.result(0).simulations == 800


def test_no_position_is_judged_twice_where_nothing_looks_back() -> None:
    boards, evaluator = [random_game(random.Random(seed), 10 + 3 * seed) for seed in range(12)], HashEvaluator()
    search, saved = LockstepSearch(SearchConfig(transpositions=True, num_simulations=300), 1), 0
    for board in boards:
        evaluator.seen.clear()
        search.set_board(0, board)
        search.start(0)
        search.run(evaluator)
        after_no_return = [seen[:3] for seen in evaluator.seen if seen[3] == 0]
        assert len(after_no_return) == len(set(after_no_return))
        saved += 301 - len(evaluator.seen)
        assert search.result(0).simulations >= 300 or (search.result(0).proofs != outcomes.UNKNOWN).any()
    assert saved > 200


def test_a_tree_kept_for_long_neither_grows_nor_forgets() -> None:
    search = LockstepSearch(SearchConfig(transpositions=True, num_simulations=150), 1)
    search.set_board(0, Board())
    kept = 0
    for _ in range(60):
        search.start(0, explore=False)
        search.run(HashEvaluator())
        index = search.choose(0)
        child = int(search._root(0)["first_child"]) + index
        visits, family = int(search._nodes[child]["visits"]), int(search._nodes[child]["num_children"])
        ending = search.play(0, index)[1]
        if ending is not Ending.RUNNING:
            break
        root = search._root(0)
        if root["visits"]:
            kept += 1
            assert root["visits"] >= visits
            assert root["num_children"] == family
            children = search._nodes[int(root["first_child"]) :][:family]
            assert root["visits"] == int(root["judged"]) + children["visits"].sum() or root["proof"]
    assert kept > 20
