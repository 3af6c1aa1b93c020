"""The game report: its formula by hand, known games, and its way through the thinking thread."""

import threading
import time
from collections.abc import Sequence

import pytest
from programs import PATIENCE

from engine.board import Board, Move
from engine.fen import Color
from engine.players import AlphaBetaPlayer, MoveThought, Purpose, Thinking, Thought
from engine.players.search_player import SearchPlayer
from engine.reasons.explaining import Explainer
from engine.search import SearchConfig, UniformEvaluator
from engine.tablebase import open_tablebase
from gui.game.game_report import GameReport, GameReview, MoveReport
from gui.game.opponents import Opponents, OpponentSpec, adviser_of
from gui.game.thinker import Thinker

ALPHABETA = OpponentSpec(kind="alphabeta", depth=7)
BLUNDER = "11-15 23-19 8-11 22-17 4-8 17-14"  # 17-14 leaves a man en prise for nothing


def played(moves: str, fen: str | None = None) -> Board:
    board = Board(fen) if fen else Board()
    for move in moves.split():
        board.push_pdn(move)
    return board


class Scripted:
    """Judges the positions of one game by a list: value for the side to move, best move (None: the one played)."""

    name = "scripted"
    unit = "simulations"

    def __init__(self, game: Board, script: Sequence[tuple[float, str | None]], steps: int = 1) -> None:
        self.game, self.script, self.steps = game, script, steps
        self.begun: list[int] = []
        self.left = 0

    def seed(self, seed: int) -> None: ...

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        raise AssertionError("not asked")

    def begin(self, board: Board, purpose: Purpose = "move") -> "Scripted":
        assert purpose == "move"
        self.board = board.copy()
        self.begun.append(board.ply)
        self.left = self.steps
        return self

    def advance(self, seconds: float) -> bool:
        self.left -= 1
        return self.left > 0

    def thought(self) -> Thought:
        assert self.left <= 0
        value, best = self.script[self.board.ply]
        move = self.board.parse_pdn(best) if best else self.game.move_stack[self.board.ply]
        return Thought((MoveThought(move, 1, value=value),), (move,), 0.123, None, 1)

    progress, count = 0.0, 1


def finished(review: GameReview) -> GameReport:
    while review.advance(1.0):
        pass
    return review.report


def test_the_formula_by_hand() -> None:
    """Black, at 0.5, loses 0.12; White plays the best move; Black seems to lose more."""
    game = played("11-15 22-18 15x22")
    script = [(0.0, "9-13"), (0.24, None), (-0.24, None), (0.9, "25x18")]
    report = finished(GameReview(game, Scripted(game, script)))
    assert report.graph == pytest.approx((0.5, 0.38, 0.38, 0.05))
    first, second, third = report.moves
    assert (first.ply, first.color, first.pdn, first.best_pdn) == (
        0,
        Color.BLACK,
        "11-15",
        "9-13",
    )
    assert (first.before, first.after, first.loss) == pytest.approx((0.5, 0.38, 0.12))
    assert first.accuracy == pytest.approx(100 * 2**-1.2)
    assert first.judgement == "mistake"
    assert (second.loss, second.accuracy, second.judgement) == (0.0, 100.0, "")
    assert third.forced
    assert third.loss == 0.0  # the only move gives nothing away, whatever the later search says
    assert report.accuracy(Color.BLACK) == pytest.approx(100 * 2**-1.2)  # the forced move does not count
    assert report.accuracy(Color.WHITE) == 100.0
    assert report.worst(5) == (first,)
    assert report.counts(Color.BLACK) == {"inaccuracy": 0, "mistake": 1, "blunder": 0}


def test_accuracy_and_judgement() -> None:
    def made(loss: float) -> MoveReport:
        move = Board().legal_moves[0]
        return MoveReport(0, Color.BLACK, move, "", False, move, "", loss, 0.0)

    assert [made(loss).accuracy for loss in (0.0, 0.1, 0.2, 1.0)] == pytest.approx([100.0, 50.0, 25.0, 100 / 1024])
    losses = (0.0, 0.049, 0.05, 0.1, 0.19, 0.2, 1.0)
    assert [made(loss).judgement for loss in losses] == [
        "",
        "",
        "inaccuracy",
        "mistake",
        "mistake",
        "blunder",
        "blunder",
    ]


def test_a_move_that_turns_out_better_than_the_best_gains_nothing() -> None:
    game = played("11-15 22-18")
    report = finished(GameReview(game, Scripted(game, [(0.0, "9-13"), (-0.4, "24-20"), (0.0, "15x22")])))
    assert (report.moves[0].loss, report.moves[0].before, report.moves[0].after) == pytest.approx((0.0, 0.7, 0.7))
    assert report.moves[1].loss == 0.0  # -0.4 turns out to be 0


def test_the_worst_moves_come_first() -> None:
    game = played("11-15 23-19 8-11 22-17 4-8 17-14")
    values = [
        (0.5, "9-13"),
        (0.1, "24-20"),
        (0.5, "9-13"),
        (0.3, "24-20"),
        (0.9, "9-13"),
        (0.9, "24-20"),
        (0.4, "9x18"),
    ]
    report = finished(GameReview(game, Scripted(game, values)))
    worst = report.worst(2)
    assert [move.ply for move in worst] == [4, 5]
    assert worst[0].loss > worst[1].loss > 0.2
    losses = [move.loss for move in report.worst(99)]
    assert losses == sorted(losses, reverse=True)
    assert min(losses) >= 0.05


def test_a_fault_is_shown_with_its_refutation() -> None:
    game = played(BLUNDER)
    report = finished(GameReview(game, AlphaBetaPlayer(5)))
    fault = report.worst(1)[0]
    assert fault.pdn == "17-14"
    board = played(BLUNDER)
    board.pop()
    for text in fault.line:
        board.push_pdn(text)
    assert fault.line[0] == fault.best_pdn != fault.pdn
    board = played(BLUNDER)
    assert fault.reply[0] in ("9x18", "10x17")  # the man that was left
    for text in fault.reply:
        board.push_pdn(text)


def test_in_a_position_that_is_lost_by_the_tables_no_move_is_a_fault() -> None:
    """Two kings against one that has left the double corner: every move loses."""
    game = Board("W:WK18:BK6,K10,K23")
    with open_tablebase() as tables:
        assert tables.probe_wdl(game) == -1
        while game.ply < 8 and game.outcome() is None:
            moves = game.legal_moves
            game.push(moves[game.ply % len(moves)])
            if game.turn is Color.BLACK and game.outcome() is None and tables.probe_wdl(game) != 1:
                raise AssertionError("the tables contradict themselves")
        player = SearchPlayer("tables", UniformEvaluator(), SearchConfig(num_simulations=20), leaf_oracle=tables)
        report = finished(GameReview(game, player, known=tables.get_wdl))
    white = [move for move in report.moves if move.color is Color.WHITE]
    assert len(white) > 1
    assert [move.loss for move in white] == [0.0] * len(white)


def test_a_better_move_keeps_what_the_tables_give() -> None:
    """A player without tables would draw a won position: the only move that wins is named in its place."""
    game = played("18-14", "B:WK28:BK18,24")
    with open_tablebase() as tables:
        for wanted in ("18-22", "24-27"):
            report = finished(GameReview(game, Scripted(game, [(0.0, wanted), (0.0, "28x19")]), known=tables.get_wdl))
            assert report.moves[0].line == (report.moves[0].best_pdn,) == ("24-27",)
            assert (report.moves[0].before, report.moves[0].after) == (1.0, 0.5)


@pytest.mark.parametrize("kinds", [("network", "alphabeta"), ("alphabeta", "random")])
def test_the_adviser_is_the_strongest_whoever_plays(kinds: tuple[str, ...]) -> None:
    adviser = adviser_of(kinds)
    assert (adviser.kind, adviser.by_time, adviser.checkpoint) == (kinds[0], True, None)


def test_a_game_that_is_over_ends_with_its_result() -> None:
    """The last position is not searched: there is nothing to search."""
    won = played("18x9", "W:W18:B14")
    assert won.outcome() is not None
    player = Scripted(won, [(1.0, None)])
    report = finished(GameReview(won, player))
    assert player.begun == [0]
    assert report.graph == (0.0, 0.0)
    shuffled = Board("B:WK1,K5:BK28,K24")
    for _ in range(2):
        for move in ["24-19", "5-9", "19-24", "9-5"]:
            shuffled.push_pdn(move)
    assert shuffled.outcome().winner is None
    assert finished(GameReview(shuffled, Scripted(shuffled, [(0.2, None)] * 8))).graph[-1] == 0.5


def test_a_blunder_is_found_with_the_better_move() -> None:
    report = finished(GameReview(played(BLUNDER), AlphaBetaPlayer(7)))
    assert len(report.moves) == 6
    assert len(report.graph) == 7
    worst = report.worst(1)[0]
    assert (worst.ply, worst.pdn) == (5, "17-14")
    assert worst.judgement in ("mistake", "blunder")
    better = played(BLUNDER)
    better.pop()
    assert better.parse_pdn(worst.best_pdn) == worst.best
    assert worst.best_pdn != "17-14"
    assert all(0.0 <= score <= 1.0 for score in report.graph)
    assert report.graph[-1] > report.graph[-2] + 0.1
    assert report.accuracy(Color.WHITE) < report.accuracy(Color.BLACK)


def test_a_fault_has_its_reason_and_other_moves_have_none() -> None:
    report = finished(GameReview(played(BLUNDER), AlphaBetaPlayer(5), explain=Explainer(nodes=5_000).explain))
    fault = report.worst(1)[0]
    assert fault.reason is not None
    assert fault.reason.text == "17-14 leaves the man on 14 to be taken: 9x18."
    assert [move.reason for move in report.moves if not move.judgement] == [None] * 5


def test_it_is_written_in_slices_and_grows() -> None:
    game = played("11-15 22-18 15x22")
    review = GameReview(game, Scripted(game, [(0.0, None)] * 3 + [(0.0, "25x18")], steps=3))
    lengths, progress = [], []
    while review.advance(0.0):
        lengths.append(len(review.report.graph))
        progress.append(review.progress)
    assert lengths == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert progress == [length / 4 for length in lengths]
    assert review.progress == 1.0
    assert not review.advance(1.0)
    assert len(review.report.moves) == 3
    assert game.ply == 3


def test_a_time_limit_ends_the_search_of_a_position() -> None:
    game = played("11-15")
    endless, thoughts = Scripted(game, [], steps=10**9), []

    def thought() -> Thought:
        thoughts.append(endless.board.ply)
        move = endless.board.legal_moves[0]
        return Thought((MoveThought(move, value=0.0),), (move,), 0.0, None, 1)

    endless.thought = thought  # type: ignore[method-assign]
    finished(GameReview(game, endless, seconds=0.01))
    assert thoughts == [0, 1]


def test_a_game_that_went_on_after_a_third_repetition_is_judged_without_it() -> None:
    """Otherwise all later positions would be draws, and the moves of the stronger side blunders."""

    class Noting(AlphaBetaPlayer):
        def begin(self, board: Board, purpose: Purpose = "move") -> Thinking:
            plies.append(board.ply)
            return super().begin(board, purpose)

    plies: list[int] = []
    game = played("24-19 5-9 19-24 9-5 " * 2 + "28-32 5-9", "B:WK5:BK28,K24")
    assert game.outcome() is None
    report = finished(GameReview(game, Noting(5)))
    assert plies == [*range(8), 0, 0, 0]
    assert [move.ply for move in report.moves if move.judgement] == [6], "it let the third repetition happen"
    assert min(report.graph[8:]) > 0.5


def test_a_game_without_moves() -> None:
    report = finished(GameReview(Board(), AlphaBetaPlayer(2)))
    assert (report.moves, len(report.graph)) == ((), 1)
    assert report.accuracy(Color.BLACK) is None
    assert report.worst(5) == ()
    over = Board("B:W21:B")
    assert finished(GameReview(over, AlphaBetaPlayer(2))).graph == (0.0,)


# --- through the thinking thread


def wait(thinker: Thinker) -> None:
    deadline = time.monotonic() + PATIENCE
    while thinker.busy:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_thinker_writes_reports() -> None:
    thinker = Thinker(Opponents())
    try:
        number = thinker.request(played(BLUNDER), ALPHABETA, "report")
        assert thinker.review.number == number
        wait(thinker)
        assert (thinker.review.status, thinker.review.progress, thinker.review.error) == ("done", 1.0, None)
        assert thinker.review.report.worst(1)[0].pdn == "17-14"
        assert thinker.snapshot is None
    finally:
        thinker.close()


def test_a_report_can_be_stopped_and_what_is_written_stays() -> None:
    game, reached, go = played(BLUNDER), threading.Event(), threading.Event()

    class Slow(Scripted):
        def advance(self, seconds: float) -> bool:
            if self.board.ply == 3:
                reached.set()
                assert go.wait(PATIENCE)
            time.sleep(0.03)  # longer than a slice, so that every position is shown
            return super().advance(seconds)

    thinker = Thinker(Opponents(lambda spec: Slow(game, [(0.0, None)] * 6 + [(0.0, "9x18")])))
    try:
        thinker.request(game, OpponentSpec(), "report")
        assert reached.wait(PATIENCE)
        thinker.cancel()
        assert (thinker.review.status, thinker.busy) == ("stopped", False)
        assert len(thinker.review.report.moves) == 2
        go.set()
        thinker.request(Board("B:W18,32:B14,K1"), OpponentSpec())
        wait(thinker)
        assert len(thinker.review.report.moves) == 2
    finally:
        go.set()
        thinker.close()
