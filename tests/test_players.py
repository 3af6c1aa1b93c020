"""The players: legal moves, reproducible, of the expected strength; their searches against slow, plain references."""

import math
import os
import signal
import threading
import time
from collections import Counter

import numpy as np
import pytest

from engine import movegen, random_words
from engine.board import Board, Move, Termination
from engine.fen import Color, to_square
from engine.players import (
    AlphaBetaPlayer,
    Player,
    PlayerError,
    PlayerSpecError,
    RandomPlayer,
    RolloutPlayer,
    kernels,
    make_simple_player,
    parse_player,
)
from engine.players import alphabeta_kernels as search
from engine.players import evaluation as weights
from engine.players.base import search_moves
from engine.players.rollout import MAX_ROLL_OUT_PLIES, MAX_SIMULATIONS, SQRT_2, roll_out
from engine.players.spec import AlphaBetaSpec, NetworkSpec

FORCED = "B:W18,32:B14,K1"  # 14x23 is the only move
EXCHANGE = "W:W17,21,22,24,25,27,28,29,32:B1,3,4,6,7,10,13,14,15,19"  # 22-18 gives men and takes more back


def all_players() -> list[Player]:
    return [RandomPlayer(), RolloutPlayer(30), AlphaBetaPlayer(3, table_slots=1 << 10)]


def random_boards(count: int, fewest: int, most: int, seed: int) -> list[Board]:
    """Positions after ``fewest`` to ``most`` random plies, none of them over."""
    rng, player, boards = np.random.default_rng(seed), RandomPlayer(seed), []
    while len(boards) < count:
        board = Board()
        for _ in range(rng.integers(fewest, most)):
            if board.outcome() is None:
                board.push(player.choose([board])[0])
        if board.outcome() is None:
            boards.append(board)
    return boards


def after_shuffle(fen: str, plies: int) -> Board:
    """``fen`` after kings have moved to and fro: each side repeats one step and its reverse."""
    board = Board(fen)
    for ply in range(plies):
        if ply < 2:
            board.push(next(move for move in board.legal_moves if board.piece_map()[move.start][1]))
        else:
            last = board.move_stack[-2]
            board.push(Move(last.end, last.start))
    return board


def play_game(black: Player, white: Player, board: Board) -> Board:
    while board.outcome() is None:
        board.push((black if board.turn is Color.BLACK else white).choose([board])[0])
    return board


def points(player: Player, opponent: Player, games: int, seed: int) -> float:
    """Points of ``player`` in ``games`` from openings of two random plies, each played with both colours."""
    rng, total = RandomPlayer(seed), 0.0
    for game in range(games):
        if game % 2 == 0:
            opening = Board()
            for _ in range(2):
                opening.push(rng.choose([opening])[0])
        color = (Color.BLACK, Color.WHITE)[game % 2]
        pair = (player, opponent) if color is Color.BLACK else (opponent, player)
        outcome = play_game(*pair, opening.copy()).outcome()
        assert outcome is not None
        total += 0.5 if outcome.winner is None else float(outcome.winner is color)
    return total


# --- every player


def test_moves_are_in_the_order_of_the_generator() -> None:
    for board in random_boards(100, 0, 80, 1):
        buffer = movegen.new_moves()
        count = movegen.generate(*map(np.uint32, board.words()), buffer, True)
        moves = search_moves(board)
        assert len(moves) == count
        for made, move in zip(buffer[:count], moves, strict=True):
            after = board.copy()
            after.push(move)
            own, opp, kings = after.words()
            turned = [int(f"{word:032b}"[::-1], 2) for word in (opp, own, kings)]
            assert turned == [made["own"], made["opp"], made["kings"]]


@pytest.mark.parametrize("player", all_players(), ids=lambda player: player.name)
def test_players_choose_a_legal_move_for_each_board_and_leave_the_boards_alone(player: Player) -> None:
    boards = [*random_boards(12, 0, 90, 2), Board(FORCED)]
    before = [(board.fen(), board.ply) for board in boards]
    moves = player.choose(boards)
    assert [(board.fen(), board.ply) for board in boards] == before
    assert all(move in board.legal_moves for board, move in zip(boards, moves, strict=True))
    assert str(moves[-1]) == "14x23"
    assert player.choose([]) == []


@pytest.mark.parametrize("player", all_players(), ids=lambda player: player.name)
def test_a_seed_gives_the_same_games_and_another_seed_others(player: Player) -> None:
    def lockstep(seed: int) -> list[list[Move]]:
        player.seed(seed)
        boards = [Board() for _ in range(4)]
        for _ in range(12):
            for board, move in zip(boards, player.choose(boards), strict=True):
                board.push(move)
        return [board.move_stack for board in boards]

    first = lockstep(5)
    assert lockstep(5) == first
    assert lockstep(6) != first
    assert len({tuple(game) for game in first}) > 1


@pytest.mark.parametrize("player", all_players(), ids=lambda player: player.name)
def test_a_board_without_a_move_is_refused(player: Player) -> None:
    with pytest.raises(PlayerError, match="no legal move"):
        player.choose([Board("B:W21:B")])


def test_random_player_is_uniform() -> None:
    player, board = RandomPlayer(3), Board()
    counts = Counter(player.choose([board] * 7000))
    assert set(counts) == set(board.legal_moves)
    assert all(abs(count - 1000) < 150 for count in counts.values())  # five standard deviations


# --- the names


@pytest.mark.parametrize("text", ["random", "rollout:200", "alphabeta:8"])
def test_a_name_makes_the_player_of_that_name(text: str) -> None:
    spec = parse_player(text)
    assert not isinstance(spec, NetworkSpec)
    assert make_simple_player(spec).name == spec.text == text


def test_a_network_is_no_simple_player() -> None:
    with pytest.raises(PlayerSpecError, match="champion is a network"):
        make_simple_player(parse_player("champion"))


def test_who_uses_a_time_limit() -> None:
    timed = {"random": False, "alphabeta:3": True, "level:club": False, "champion@off": True, "rules": False}
    assert {text: parse_player(text).timed for text in timed} == timed


def test_the_shortest_form() -> None:
    texts = {
        "alphabeta:08": "alphabeta:8",
        "rollout:0200": "rollout:200",
        "hub: x  y ": "hub:x  y",
        "tablebase:": "tablebase",
    }
    for text, shortest in texts.items():
        assert parse_player(text).text == shortest
        assert parse_player(shortest) == parse_player(text)
    assert [
        parse_player(text).timed for text in ("random", "rollout:2", "tablebase", "alphabeta:2", "hub:x", "net")
    ] == [
        *(False, False, False),
        *(True, True, True),
    ]


def test_a_time_limit_reaches_alphabeta() -> None:
    player = make_simple_player(AlphaBetaSpec(8), seconds=0.5)
    assert isinstance(player, AlphaBetaPlayer)
    assert player.seconds == 0.5


@pytest.mark.parametrize("text", ["", "runs/best", "Random", "rollouts/best", "alphabeta-9", "C:\\nets", "random.net"])
def test_other_texts_are_left_to_others(text: str) -> None:
    assert parse_player(text) == NetworkSpec(text)


@pytest.mark.parametrize(
    "text",
    [
        *("rollout", "rollout:", "rollout:0", "rollout:-5", "rollout:2.5", "rollout:200:3", "rollout:1000001"),
        *("alphabeta", "alphabeta:", "alphabeta:8x", "alphabeta:0", "alphabeta:65", "alphabeta: 8"),
        *("random:", "random:3", "rollout:" + "9" * 5000),
    ],
)
def test_wrong_names_are_explained_in_one_short_line(text: str) -> None:
    with pytest.raises(PlayerSpecError) as error:
        parse_player(text)
    assert "is no player" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 120


@pytest.mark.parametrize(
    "make",
    [
        lambda: RolloutPlayer(0),
        lambda: AlphaBetaPlayer(0),
        lambda: AlphaBetaPlayer(4, seconds=0.0),
        lambda: AlphaBetaPlayer(4, seconds=math.nan),
        lambda: AlphaBetaPlayer(4, table_slots=3),
        lambda: AlphaBetaPlayer(4, table_slots=-1),
        lambda: AlphaBetaPlayer(4, nodes=0),
    ],
)
def test_settings_out_of_range_are_refused(make) -> None:
    with pytest.raises(PlayerError):
        make()


# --- the line of play


def test_a_line_follows_the_board() -> None:
    """Positions, reversible plies and draws by the rules, move by move through random games."""
    player = RandomPlayer(4)
    rng, terminations = np.random.default_rng(4), Counter()
    starts = ["B:WK1,K5:BK28,K32", "W:WK4:BK32", Board().fen(), "B:W30,K2,K3:BK21,K31,5"] * 8
    for fen in starts:
        board, line, buffer = Board(fen), kernels.new_line(1000), movegen.new_moves()
        now = kernels.start_line(board, line)
        # Half the games shun exchanges and positions that have been, so that 80 plies come before three of a kind.
        cautious = rng.random() < 0.5
        while board.outcome() is None:
            moves = search_moves(board)
            number = moves.index(player.choose([board])[0])
            for other in rng.permutation(len(moves)) if cautious else ():
                board.push(moves[other])
                replies = board.legal_moves
                if board.repetitions() == 1 and replies and not replies[0].captured:
                    number = other
                board.pop()
            movegen.generate(*line[now, :3], buffer, True)
            kernels.play(line, now, buffer[number])
            board.push(moves[number])
            now += 1
            assert line[now].tolist() == [*board.words(), board.reversible_plies]
            outcome = board.outcome()
            if board.legal_moves:
                assert kernels.drawn(line, now) == (outcome is not None)
            copied = kernels.new_line(0)
            last = kernels.start_line(board, copied)
            assert copied[: last + 1].tolist() == line[now - last : now + 1].tolist()
        terminations[outcome.termination] += 1
    assert set(terminations) == set(Termination)


def test_random_numbers_are_those_of_splitmix64() -> None:
    state, random = 1234567, random_words.new_random(1234567)
    for _ in range(50):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        word = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        assert int(random_words.next_random(random)) == word ^ word >> 31
    numbers = Counter(int(random_words.random_below(random, 7)) for _ in range(7000))
    assert sorted(numbers) == list(range(7))
    assert all(abs(count - 1000) < 150 for count in numbers.values())


# --- UCT


class ReferenceUct:
    """UCT on ``Board``, in lists and dictionaries, with the same random numbers as the compiled one."""

    def __init__(self, board: Board, simulations: int, seed: int) -> None:
        self.random = random_words.new_random(seed)
        self.root = self.node(board, root=True)
        for _ in range(simulations):
            self.simulate(board.copy())

    def node(self, board: Board, root: bool = False) -> dict:
        over = board.outcome() is not None and not root
        return {
            "untried": [] if over else list(range(len(search_moves(board)))),
            "children": {},
            "visits": 0,
            "total": 0.0,
        }

    def below(self, n: int) -> int:
        return int(random_words.random_below(self.random, n))

    def result(self, board: Board) -> float | None:
        """Value of a finished game for the side to move; None while it goes on."""
        outcome = board.outcome()
        return None if outcome is None else 0.0 if outcome.winner is None else -1.0

    def simulate(self, board: Board) -> None:
        node = self.root
        path = [node]
        while not node["untried"] and node["children"]:
            log_visits = math.log(node["visits"])

            def bound(child: dict, log_visits: float = log_visits) -> float:
                return child["total"] / child["visits"] + 2 * SQRT_2 * math.sqrt(log_visits / child["visits"])

            newest_first = list(node["children"].items())[::-1]
            move, node = max(newest_first, key=lambda item: bound(item[1]))
            board.push(search_moves(board)[move])
            path.append(node)
        if node["untried"]:
            move = node["untried"].pop(self.below(len(node["untried"])))
            board.push(search_moves(board)[move])
            node["children"][move] = self.node(board)
            path.append(node["children"][move])
        value, sign = None, 1.0
        while (value := self.result(board)) is None:
            moves = search_moves(board)
            board.push(moves[self.below(len(moves))])
            sign = -sign
        value *= sign
        for node in reversed(path):
            value = -value
            node["visits"] += 1
            node["total"] += value


def test_uct_equals_the_reference() -> None:
    """Visits and values of every move at the root, in the opening, in endings and near both kinds of draw."""
    boards = [
        Board(),
        *random_boards(2, 30, 60, 7),
        Board("B:W29,K3:B13,K10"),
        after_shuffle("B:WK1,K5:BK28,K24", 6),
        after_shuffle("B:WK1,K5:BK28,K24", 7),
    ]
    for seed, board in enumerate(boards):
        assert len(board.legal_moves) > 1
        player = RolloutPlayer(60, seed=seed)
        player.choose([board])
        reference = ReferenceUct(board, 60, seed)
        node, found = player._search._nodes[0], {}
        assert node["visits"] == 60
        child = node["first_child"]
        while child >= 0:
            node = player._search._nodes[child]
            found[int(node["move"])] = (int(node["visits"]), float(node["total"]))
            child = node["next_sibling"]
        assert found == {move: (c["visits"], c["total"]) for move, c in reference.root["children"].items()}


def test_roll_outs_end_with_the_result_for_the_side_to_move() -> None:
    buffer, random = movegen.new_moves(), random_words.new_random(1)
    for fen, value in (("B:W21:B", -1.0), (FORCED.replace(",32", ""), 1.0)):
        line = kernels.new_line(MAX_ROLL_OUT_PLIES)
        now = kernels.start_line(Board(fen), line)
        assert roll_out(line, now, buffer, random) == value


@pytest.mark.parametrize(
    ("fen", "winning"),
    [
        ("B:W8,16,K24:B3,5,K11", "3x12x19x28"),
        ("B:W15,23:B10,18", "10x19x26"),
        ("W:W19,K9:B14,K15", "9x18x11"),
        ("B:W9,K10,K18:B5,17,K22", "22x15x6x13"),
        ("B:W7,K14:B3,9", "3x10x17"),
    ],
)
def test_a_win_in_one_is_found(fen: str, winning: str) -> None:
    """There are several captures, one of which takes all pieces. The side is not ahead, so that no other move wins."""
    board = Board(fen)
    ending = [move for move in board.legal_moves if not (after := board.copy()).push(move) and not after.legal_moves]
    assert [str(move) for move in ending] == [winning]
    assert len(board.legal_moves) > 1
    assert RolloutPlayer(400).choose([board]) == ending
    assert AlphaBetaPlayer(1).choose([board]) == ending
    result = AlphaBetaPlayer(5).analyse(board)
    assert (result.choose(), result.score) == (ending[0], weights.WIN - 1)


# --- alpha-beta


def reference_evaluation(board: Board) -> int:
    """The evaluation, piece by piece."""
    pieces = [(to_square(number, color), color, king) for number, (color, king) in board.piece_map().items()]
    material = placement = advance = 0
    for square, color, king in pieces:
        sign = 1 if color is board.turn else -1
        opponent_has_men = any(other is not color and not crowned for _, other, crowned in pieces)
        material += sign * (weights.KING if king else weights.MAN)
        advance += 0 if king else sign * (square // 4)
        placement += sign * weights.BACK_ROW * (not king and square < 4 and opponent_has_men)
    material += weights.TRADE * material // len(pieces)
    missing = weights.MOST_PIECES - len(pieces)
    return material + placement + weights.ADVANCE * advance * missing // weights.MOST_PIECES


def negamax(board: Board, depth: int, ply: int = 0, since_root: tuple = ()) -> int:
    """Value of a position by the rules that ``alphabeta_kernels`` states, written as plainly as can be."""
    here = (board.turn, board.words())
    if ply > 0 and (board.repetitions() >= 3 or here in since_root[1:]):
        return weights.DRAW
    moves = search_moves(board) if board.legal_moves else []
    if not moves:
        return ply - weights.WIN
    if ply > 0 and board.reversible_plies >= 80:
        return weights.DRAW
    if depth == 0 and not moves[0].captured:
        return reference_evaluation(board)
    left = depth if len(moves) == 1 else max(0, depth - 1)
    values = []
    for move in moves:
        board.push(move)
        values.append(-negamax(board, left, ply + 1, (*since_root, here)))
        board.pop()
    return max(values)


def test_evaluation_equals_the_reference() -> None:
    for board in random_boards(150, 0, 110, 9):
        assert weights.evaluate(*map(np.uint32, board.words())) == reference_evaluation(board)


@pytest.mark.parametrize("slots", [0, 4, 1 << 12])
def test_search_equals_plain_negamax(slots: int) -> None:
    """Without a table, with one that is too small, and with one that is large enough.

    Up to depth 3, a table entry cannot hide a repetition; quiet king endings are in the test below.
    """
    for board in random_boards(20, 0, 70, 10):
        for depth in (1, 2, 3):
            assert AlphaBetaPlayer(depth, table_slots=slots).analyse(board).score == negamax(board, depth)


def test_draws_in_the_search_equal_plain_negamax() -> None:
    """King endings with earlier occurrences of positions, and others near 80 plies; without a table."""
    boards = [after_shuffle("B:WK1,K5:BK28,K24", plies) for plies in (5, 6, 7)]
    for reversible_plies in (76, 78, 79):
        board = Board("B:WK1,K6:BK28,12")
        board._states[-1] = type(board._states[-1])(board.words(), reversible_plies)
        boards.append(board)
    drawn = 0
    for board in boards:
        for depth in (2, 4):
            score = AlphaBetaPlayer(depth, table_slots=0).analyse(board).score
            assert score == negamax(board, depth)
            drawn += score == weights.DRAW
    assert drawn


def test_a_search_in_slices_is_the_same_search() -> None:
    for board in random_boards(4, 10, 50, 12):
        results = []
        for budget in (1, 7, 1 << 40):
            state = search.new_state(1 << 10)
            state.search[0]["root"] = kernels.start_line(board, state.line)
            state.search[0]["first_move"] = search.NO_MOVE
            search.start(state, 5)
            while not search.search_nodes(state, budget):
                pass
            root = state.frames[0]
            results.append((int(root["best"]), int(root["best_move"]), int(state.search[0]["nodes"])))
        assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(("fen", "lost"), [("B:WK6:BK30", "30-25"), ("B:WK8:BK22", "22-25")])
def test_an_unfinished_iteration_whose_moves_all_lose_so_far_proves_nothing(fen: str, lost: str) -> None:
    """The positions are draws; one move loses, which a shallow search prefers now and then."""
    board, proven = Board(fen), 0
    for salt in range(20):
        player = AlphaBetaPlayer(14, seed=salt)
        thinking, goes_on = player.begin(board), True
        while goes_on:
            goes_on = thinking.advance(0.0)
            root = player._state.frames[0]
            knows = goes_on and root["best_move"] != search.NO_MOVE and root["best"] <= -weights.LEAST_WIN
            proven += knows
            assert not knows or str(thinking.choose()) != lost
            assert thinking.value > -0.5
            assert thinking.thought().moves[0].proof is None
    assert proven > 0


@pytest.mark.parametrize("fen", ["W:WK25:BK13,K23", "W:WK29:BK22,K23", "B:WK10,K18:BK1"])
def test_what_is_lost_is_played_as_long_as_it_lasts(fen: str) -> None:
    player = AlphaBetaPlayer(20)
    thinking = player.begin(Board(fen))
    while thinking.advance(0.0):
        pass
    assert thinking.thought().moves[0].proof == "loss"
    best = int(player._state.frames[0]["best_move"])
    assert thinking.choose() == search_moves(Board(fen))[best]


def test_a_shot_is_seen_and_its_line_is_legal() -> None:
    result = AlphaBetaPlayer(7).analyse(Board(EXCHANGE))
    assert str(result.choose()) == "22-18"
    assert result.score > AlphaBetaPlayer(1).analyse(Board(EXCHANGE)).score + weights.MAN
    board = Board(EXCHANGE)
    for move in result.line():
        board.push(move)
    assert len(result.line()) >= 3
    assert result.line()[0] == result.choose()
    assert any(len(move.captured) >= 2 for move in result.line()[::2])


@pytest.mark.parametrize("fen", ["W:WK14,K15:BK12", "W:WK14,K19:BK20", "W:WK10,K11:BK4", "B:WK13:BK18,K22"])
def test_two_kings_beat_one_outside_the_double_corner(fen: str) -> None:
    board = Board(fen)
    strong = board.turn
    game = play_game(AlphaBetaPlayer(10, seed=1), AlphaBetaPlayer(10, seed=2), board)
    outcome = game.outcome()
    assert outcome is not None
    assert outcome.winner is strong


def test_a_win_is_counted_in_plies_and_carried_out_in_as_many() -> None:
    board = Board("W:WK14,K15:BK12")
    player = AlphaBetaPlayer(12)
    score = player.analyse(board).score
    assert score >= weights.LEAST_WIN
    play_game(player, player, board)
    assert board.ply <= weights.WIN - score


def test_the_time_limit_holds() -> None:
    player, board = AlphaBetaPlayer(64, seconds=0.15), Board()
    player.analyse(board)
    for _ in range(3):
        begin = time.perf_counter()
        result = player.analyse(board)
        took = time.perf_counter() - begin
        assert result.choose() in board.legal_moves
        assert 1 <= result.depth < 64
        assert 0.14 < took < 60  # a few milliseconds over on a quiet machine


# --- strength


def test_alphabeta_beats_random() -> None:
    assert points(AlphaBetaPlayer(4), RandomPlayer(), 10, 1) >= 9.0


@pytest.mark.slow
def test_the_players_stand_in_their_order() -> None:
    assert points(RolloutPlayer(200), RandomPlayer(1), 10, 2) >= 9.0
    assert points(AlphaBetaPlayer(4), RolloutPlayer(200), 20, 3) >= 14.0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_is_heard_in_the_middle_of_roll_outs() -> None:
    player = RolloutPlayer(MAX_SIMULATIONS)
    player.choose([Board("B:B11:W18,19,20")])  # compiles
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        player.choose([Board()])
    assert player._search.count < MAX_SIMULATIONS
