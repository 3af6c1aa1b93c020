"""Puzzles: their file, themes and ratings; proofs of their solutions; the commands that make and check them."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashed_evaluator import HashedEvaluator
from hypothesis import given
from hypothesis import strategies as st
from programs import crownhead_here

from engine.board import Board, Move
from engine.claims import claimed
from engine.errors import PartlyReadError
from engine.files import StorageError
from engine.pdn import PdnGame, format_game
from engine.players.base import search_moves
from engine.players.levels import LEVELS
from engine.puzzles.book import PuzzleBook, PuzzleFileError, read_book, shipped_puzzles, write_book
from engine.puzzles.glicko import Rating, Result, rated
from engine.puzzles.puzzle import Goal, Proof, Puzzle, Theme
from engine.puzzles.themes import Trade, theme_of, trade_of
from engine.search import LockstepSearch, SearchConfig
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED
from selfplay.puzzles.checking import check_puzzles
from selfplay.puzzles.finding import FEWEST_MOVES, Finder
from selfplay.puzzles.games import RecordedGames, SelfPlay, boards_of
from selfplay.puzzles.making import make_puzzles
from selfplay.puzzles.rating import LEAST, LEVEL_RATINGS, MOST, LevelSolver, choice_probabilities, rating_of
from selfplay.puzzles.settling import PLAIN, STRICT, MoveValue, Settler, only_move

SHOT = "B:W25,27:B11,15,19"  # 19-23 gives one man and takes two
RETAKEN = "B:W14,15,23,30,32:B2,6,12,16,22"  # 6-10 gives one man and takes three with another, which is taken back
EXCHANGE = "W:WK15,K32:B19,K24"  # 32-27 alone wins: an exchange, and the opposition
LINE = ("32-27", "24x31", "15x24")
PUZZLE = Puzzle(EXCHANGE, LINE, 3, Goal.WIN, Theme.OPPOSITION, Proof.TABLES, 1138, 134)
BOOK = PuzzleBook("self-play", 1, 100, 1, 64, 4000, (PUZZLE,))
TWO_WINS = "W:W6,12,31,K18:BK11,K15,K17"  # 18-22 and 18-23, by tables of seven pieces
THROWN_AWAY = "B:WK14:B6,22"


def moves_of(fen: str, texts: str) -> tuple[Board, tuple[Move, ...]]:
    board = Board(fen)
    after = board.copy()
    return board, tuple(after.push_pdn(text) for text in texts.split())


# --- ratings


def test_the_worked_example_of_the_paper() -> None:
    after = rated(Rating(1500, 200, 0.06), [Result(1400, 30, 1), Result(1550, 100, 0), Result(1700, 300, 0)], tau=0.5)
    assert after.rating == pytest.approx(1464.06, abs=0.01)
    assert after.deviation == pytest.approx(151.52, abs=0.01)
    assert after.volatility == pytest.approx(0.05999, abs=0.00001)


def test_who_does_not_play_becomes_less_known() -> None:
    assert rated(Rating(1500, 200, 0.06), []) == pytest.approx((1500, np.hypot(200, 0.06 * 173.7178), 0.06))
    assert rated(Rating(1500, 350, 0.06), []).deviation == 350


@given(st.floats(0, 3000), st.floats(30, 350), st.floats(0, 3000), st.floats(30, 350), st.sampled_from((0.0, 1.0)))
def test_a_win_raises_a_rating_and_a_loss_lowers_it(
    rating: float, deviation: float, other: float, others: float, score: float
) -> None:
    before = Rating(rating, deviation, 0.06)
    after = rated(before, [Result(other, others, score)])
    assert (after.rating - rating) * (2 * score - 1) >= 0
    assert after.deviation <= np.hypot(deviation, after.volatility * 173.7178) + 1e-9
    assert 0.0 < after.volatility < 1.0


@given(st.integers(LEAST, MOST))
def test_a_puzzle_is_as_hard_as_the_levels_that_find_it(rating: int) -> None:
    found = 1.0 / (1.0 + 10.0 ** ((rating - LEVEL_RATINGS) / 400.0))
    assert rating_of(found)[0] == pytest.approx(rating, abs=1)


def test_puzzles_that_all_or_none_find() -> None:
    assert rating_of(np.ones(len(LEVELS)))[0] == LEAST
    assert rating_of(np.zeros(len(LEVELS))) == (MOST, 350)


@pytest.mark.parametrize("simulations", [0, 40])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_probabilities_are_those_of_the_draw(simulations: int, temperature: float) -> None:
    search = LockstepSearch(SearchConfig(num_simulations=64, noise_fraction=0.0), 1, seed=3)
    search.set_board(0, Board("B:W21,22,K23:B1-4,K30"))
    search.start(0, simulations, False)
    search.run(HashedEvaluator())
    expected = choice_probabilities(search.result(0), temperature)
    drawn = np.bincount([search.choose(0, temperature) for _ in range(4000)], minlength=len(expected)) / 4000
    assert expected.sum() == pytest.approx(1)
    assert np.abs(drawn - expected).max() < 0.04


def test_each_level_s_probability_is_that_of_its_own_search() -> None:
    evaluator, board = HashedEvaluator(), Board("B:W21,22,K23:B1-4,K30")
    found = LevelSolver(evaluator).probabilities([board, Board()], [2, 1])
    assert found.shape == (2, len(LEVELS))
    for column, level in enumerate(LEVELS):
        search = LockstepSearch(level.search, 1)
        search.set_board(0, board)
        search.start(0, explore=False)
        search.run(evaluator)
        assert found[0, column] == pytest.approx(choice_probabilities(search.result(0), level.temperature)[2])


# --- themes


def test_what_is_given_and_taken_at_once() -> None:
    assert trade_of(moves_of(RETAKEN, "6-10 15x6 2x27 32x23")[1]) == Trade(2, 3, 1)
    assert trade_of(moves_of(SHOT, "19-23 27x18 15x22x29")[1]) == Trade(1, 2, 1)
    assert trade_of(moves_of(Board().fen(), "11-15 23-19 8-11")[1]) == Trade(0, 0, 0)
    assert trade_of(moves_of("B:W22,26:B10,17", "17-21 22-18 10-14 18x9")[1]) == Trade(0, 0, 0)


@pytest.mark.parametrize(
    ("fen", "line", "goal", "theme"),
    [
        (SHOT, "19-23 27x18 15x22x29", Goal.WIN, Theme.SHOT_1),
        (RETAKEN, "6-10 15x6 2x27 32x23", Goal.WIN, Theme.SHOT_1),
        ("W:W20,K15:B12,K28", "15-18", Goal.WIN, Theme.FIRST_POSITION),
        ("B:W21,K5:B13,K18", "18-15", Goal.WIN, Theme.FIRST_POSITION),
        ("W:WK15,K30:BK22,K23", "15-10 23-18", Goal.DRAW, Theme.ENDING),
        ("B:W14,15,22:B1,3,10", "10x17x26", Goal.WIN, Theme.CAPTURE),
        ("W:W11,30,31,32:B5,13,21,22,23", "11-7 5-9 7-2", Goal.WIN, Theme.BREAKTHROUGH),
        ("W:W28,K15:B20,K26", "15-18", Goal.WIN, Theme.OPPOSITION),
    ],
)
def test_themes(fen: str, line: str, goal: Goal, theme: Theme) -> None:
    board, moves = moves_of(fen, line)
    assert theme_of(board, moves, goal) is theme


# --- the file


def test_a_file_says_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "puzzles.json.zst"
    write_book(path, BOOK)
    assert read_book(path) == BOOK
    assert PUZZLE.moves == moves_of(EXCHANGE, " ".join(LINE))[1]


@pytest.mark.parametrize("change", ["cut", "flip", "foreign", "empty", "newer"])
def test_damaged_files_are_refused_by_name(tmp_path: Path, change: str) -> None:
    import zstandard

    path = tmp_path / "puzzles.json.zst"
    write_book(path, BOOK)
    data = path.read_bytes()
    damaged = {
        "cut": data[:-9],
        "flip": data[:40] + bytes([data[40] ^ 4]) + data[41:],
        "foreign": b"not a puzzle",
        "empty": b"",
        "newer": zstandard.compress(b'{"format": "crownhead puzzles", "version": 2}'),
    }
    path.write_bytes(damaged[change])
    with pytest.raises(PuzzleFileError, match=path.name):
        read_book(path)


def test_shipped_puzzles() -> None:
    puzzles = shipped_puzzles()
    assert len(puzzles) >= 2000
    assert len({Board(puzzle.fen).words() for puzzle in puzzles}) == len(puzzles)
    assert TWO_WINS not in {puzzle.fen for puzzle in puzzles}
    with open_tablebase(SHIPPED) as tables:
        for puzzle in puzzles:
            board, moves = Board(puzzle.fen), puzzle.moves
            assert len(search_moves(board)) >= FEWEST_MOVES
            assert puzzle.asked % 2 == 1
            assert puzzle.asked <= len(moves)
            assert puzzle.theme is theme_of(board, moves, puzzle.goal) or len(moves) == 12  # the whole line was longer
            value = 1 if puzzle.goal is Goal.WIN else 0
            for place, move in enumerate(moves):
                assert tables.get_wdl(board) in (None, value)
                assert place % 2 == 0 or place >= puzzle.asked or len(search_moves(board)) == 1
                board.push(move)
                value = -value
            assert not board.legal_moves or tables.get_wdl(board) in (None, value)


# --- settling


@pytest.fixture(scope="module")
def tables() -> Tablebase:
    return open_tablebase(SHIPPED)


def test_the_one_move_that_is_right() -> None:
    move = Move(1, 5)

    def found(*values: float) -> tuple[int, Goal] | None:
        only = only_move([MoveValue(move, value) for value in values], STRICT)
        return only and (only.place, only.goal)

    assert found(0.2, 0.9, 0.3) == (1, Goal.WIN)
    assert found(0.9, 0.9, 0.3) is None
    assert found(0.9, 0.6, 0.3) is None  # might be a win as well
    assert found(-0.9, -1.0, 0.1) == (2, Goal.DRAW)
    assert found(-0.9, -0.6, 0.1) is None
    assert found(-0.9, -1.0, 0.6) is None  # nobody knows what it is
    assert found(1.0) is None


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8))
def test_what_is_strictly_the_only_move_is_plainly_so(values: list[float]) -> None:
    moves = [MoveValue(Move(1, 5), value) for value in values]
    strict, plain = only_move(moves, STRICT), only_move(moves, PLAIN)
    assert strict is None or strict == plain


def test_tables_settle_what_they_know(tables: Tablebase) -> None:
    settler = Settler(HashedEvaluator(), tables, 100, tables)
    boards = [Board(THROWN_AWAY), Board("W:W20,K15:B12,K28"), Board()]
    known = settler.by_tables(boards)
    assert known[2] is None
    for board, values in zip(boards[:2], known[:2], strict=True):
        assert values is not None
        assert values == settler.values([board])[0]
        for move, value, proof in values:
            after = board.copy()
            after.push(move)
            assert value == (-tables.probe_wdl(after) if after.legal_moves else 1)
            assert proof is Proof.TABLES


def test_a_search_settles_what_it_proves(tables: Tablebase) -> None:
    board = Board("W:W13,14,17,29,30:B1,2,5,9,K26")  # one piece too many for the tables, captures in the air
    values = Settler(HashedEvaluator(), tables, 2000, tables).values([board])[0]
    assert [value.move for value in values] == search_moves(board)
    assert all(-1.0 <= value.value <= 1.0 for value in values)
    assert all(abs(value.value) in (0.0, 1.0) for value in values if value.proof is not Proof.VALUES)


def test_an_expected_line_gives_nothing_away(tables: Tablebase, tmp_path: Path) -> None:
    shutil.copy(SHIPPED / "0011.wdl", tmp_path)
    settler, shown = Settler(HashedEvaluator(), tables, 20, open_tablebase(tmp_path, shipped=False)), 0
    for fen in ("B:W31,K12:B20,K9", "B:W25,K24:B4,K12", "B:W6,K4:B7,K21", "B:W32,K26:B17,K5"):
        board = Board(fen)
        for move in settler.line(board.copy(), 0):
            board.push(move)
            shown += 1
            assert tables.get_wdl(board) == 0
    assert shown > 4


def test_an_ending_is_found_with_its_line(tables: Tablebase) -> None:
    evaluator = HashedEvaluator()
    finder = Finder(Settler(evaluator, tables, 100, tables), LevelSolver(evaluator), ())
    boards = [Board(EXCHANGE), Board(EXCHANGE), Board("W:WK10,K11:BK30")]
    found = finder.find(boards)
    assert [puzzle.fen for puzzle in found] == [EXCHANGE]
    assert found[0].line[: found[0].asked] == LINE
    assert (found[0].goal, found[0].proof) == (Goal.WIN, Proof.TABLES)
    assert finder.find(boards) == []  # once is enough
    again = Finder(Settler(evaluator, tables, 100, tables), LevelSolver(evaluator), found)
    assert again.find(boards) == []


# --- games


def test_a_round_of_self_play_is_the_same_each_time() -> None:
    one, later = (SelfPlay(HashedEvaluator(), 5) for _ in range(2))
    games = one.round(1)
    assert games != later.round(0)  # its searches have grown when the next round begins
    assert [moves for _, moves in later.round(1)] == [moves for _, moves in games]
    assert all(len(board.distinct_moves) > 1 and board.ply == 0 for board in boards_of(games[:2]))


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A game with few pieces that has a puzzle, between two games that cannot be read."""
    good = Board(EXCHANGE)
    for text in LINE:
        good.push_pdn(text)
    path = tmp_path / "games.pdn"
    bad = '[Event "bad"]\n[Result "*"]\n\n1. 1-32 *\n\n'
    path.write_text(bad + format_game(PdnGame.from_board(good, {"Result": "*"})) + "\n" + bad, encoding="utf-8")
    return path


def test_recorded_games_are_read_in_rounds(recorded: Path) -> None:
    games = RecordedGames(recorded)
    assert [len(moves) for _, moves in games.round(0)] == [3]
    assert len(games.unread) == 2
    assert games.round(1) == []


# --- commands


def test_few_simulations_do_for_positions_without_tables(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    path.write_text('[Event "a"]\n[Result "*"]\n\n1. 11-15 23-19 2. 8-11 *\n')
    assert make_puzzles(tmp_path / "mine.json.zst", 1, path, SHIPPED, 100, 1, quiet=True)["games"] == 1


@pytest.mark.parametrize("changes", [{"asked": 2}, {"asked": 5}, {"asked": 0}, {"rating": 10**6}, {"deviation": 0}])
def test_puzzles_with_senseless_numbers_are_refused(changes: dict[str, int], tmp_path: Path) -> None:
    puzzle = replace(shipped_puzzles()[0], line=("1-5", "32-28", "5-9"), asked=3)
    path = tmp_path / "puzzles.json.zst"
    write_book(path, PuzzleBook("self-play", 1, 100, puzzles=(puzzle,)))
    assert read_book(path).puzzles == (puzzle,)
    write_book(path, PuzzleBook("self-play", 1, 100, puzzles=(replace(puzzle, **changes),)))
    with pytest.raises(PuzzleFileError, match="out of range"):
        read_book(path)


def test_puzzles_of_recorded_games_are_made_and_checked(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.json.zst"

    def make() -> dict[str, Any]:
        with pytest.raises(PartlyReadError, match=r"left out of .*: 2; the first: ") as error:
            make_puzzles(out, 5, recorded, SHIPPED, 200, 1, quiet=True)
        assert isinstance(error.value.figures, dict)
        return error.value.figures

    figures = make()
    assert figures["games"] == 1
    assert len(figures["unread"]) == 2
    assert EXCHANGE in [puzzle.fen for puzzle in read_book(out).puzzles]
    before = out.read_bytes()
    assert make()["puzzles"] == figures["puzzles"]
    assert out.read_bytes() == before  # no game is left
    checked = check_puzzles(out, 10, 10, SHIPPED, 1, quiet=True)
    assert (checked["checked"], checked["unique"]) == (figures["puzzles"], figures["puzzles"])
    with pytest.raises(PuzzleFileError, match="simulations 200, not 300"):
        make_puzzles(out, 5, recorded, SHIPPED, 300, 1, quiet=True)
    with pytest.raises(PuzzleFileError, match="made with source"):
        make_puzzles(out, 5, None, SHIPPED, 200, 1, quiet=True)


def test_a_file_without_a_game_is_refused(tmp_path: Path) -> None:
    path, out = tmp_path / "README.md", tmp_path / "mine.json.zst"
    path.write_text("{no game here}\n")
    with pytest.raises(StorageError, match="there is no game in"):
        make_puzzles(out, 1, path, SHIPPED, 100, 1, quiet=True)
    assert not out.exists()


def test_what_is_no_puzzle_fails_the_check(tmp_path: Path) -> None:
    path = tmp_path / "wrong.json.zst"
    wrong = replace(PUZZLE, line=("32-28",), asked=1)
    write_book(path, replace(BOOK, puzzles=(PUZZLE, wrong)))
    figures = check_puzzles(path, 10, 1, SHIPPED, 1, quiet=True)
    assert (figures["checked"], figures["unique"]) == (2, 1)
    assert figures["failures"][0]["solution"] == "32-28"
    write_book(path, replace(BOOK, puzzles=(replace(PUZZLE, line=("11-20",), asked=1),)))
    with pytest.raises(PuzzleFileError, match="cannot be played"):
        check_puzzles(path, 10, 1, SHIPPED, 1, quiet=True)
    write_book(path, replace(BOOK, puzzles=()))
    with pytest.raises(PuzzleFileError, match="no puzzles"):
        check_puzzles(path, 10, 1, SHIPPED, 1, quiet=True)


def test_only_one_process_changes_a_file_of_puzzles(tmp_path: Path) -> None:
    """A long check that drops puzzles wrote back what it had read, without the puzzles made in the meantime."""
    path = tmp_path / "mine.json.zst"
    write_book(path, BOOK)
    with claimed(path):
        for arguments in (("make", path), ("check", path, "--drop")):
            done = crownhead_here("puzzles", *arguments)
            assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
            assert f"{path} is in use by another process" in done.stderr
    assert read_book(path) == BOOK


def test_a_file_of_puzzles_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "mine.json.zst"
    with pytest.raises(StorageError, match=re.escape(f"cannot write {path}: ")):
        make_puzzles(path, 1, None, None, 1, 1, quiet=True)


def test_a_check_in_parts_removes_what_fails(tmp_path: Path) -> None:
    path = tmp_path / "some.json.zst"
    wrong = replace(PUZZLE, line=("32-28",), asked=1)
    endings = ("B:W12:B3,4", "W:W29,30:B21", "B:W18,31:BK14")
    others = tuple(replace(wrong, fen=fen, line=(str(Board(fen).legal_moves[0]),)) for fen in endings)
    book = replace(BOOK, puzzles=(PUZZLE, wrong, *others))
    write_book(path, book)
    whole = check_puzzles(path, 10, 1, SHIPPED, 1, quiet=True)
    assert whole["dropped"] == 0
    assert read_book(path) == book
    checked = unique = dropped = 0
    while checked < len(book.puzzles):
        part = check_puzzles(path, 2, 1, SHIPPED, 1, quiet=True, skip=unique, drop=True)
        checked, unique, dropped = (
            checked + part["checked"],
            unique + part["unique"],
            dropped + part["dropped"],
        )
    assert (checked, unique) == (len(book.puzzles), whole["unique"])
    left = read_book(path)
    assert len(left.puzzles) == len(book.puzzles) - dropped == unique
    assert left == replace(book, puzzles=left.puzzles)
    assert PUZZLE in left.puzzles
    assert check_puzzles(path, 10, 1, SHIPPED, 1, quiet=True)["share"] == 1.0
    with pytest.raises(PuzzleFileError, match="none are left after the first"):
        check_puzzles(path, 10, 1, SHIPPED, 1, quiet=True, skip=unique)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("puzzles", "check", "nothing.zst"), "nothing.zst"),
        (("puzzles", "make", "no/such/folder.zst"), "no/such"),
        (("puzzles", "make", "out.zst", "--games", "none.pdn"), "none.pdn"),
        (("play", "--puzzles", "nothing.zst"), "nothing.zst"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], says: str) -> None:
    done = crownhead_here(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_figures_as_json(tmp_path: Path) -> None:
    path = tmp_path / "one.json.zst"
    write_book(path, BOOK)
    done = crownhead_here("puzzles", "check", path, "--times", 1, "--json", "--dir", SHIPPED)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["unique"] == 1
