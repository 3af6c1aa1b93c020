"""Hub lines, positions, moves, levels, scores, parameters: round trips, comparison with pydraughts, and bad input."""

import contextlib
import io
import random

import draughts
import pytest
from draughts.core.game import Game
from hypothesis import given
from hypothesis import strategies as st

from engine.board import Board, Move
from engine.errors import DraughtsError, FenError, IllegalMoveError
from engine.files import bounded_lines
from engine.hub.level import Level, parse_level
from engine.hub.messages import MAX_LINE, HubError, Message, format_message, parse_message
from engine.hub.notation import (
    format_move,
    format_pos,
    parse_move,
    parse_pos,
    play_moves,
    read_game,
    turned_pos,
)
from engine.hub.params import Param
from engine.hub.score import MEN_PER_LOGIT, score_of_end, score_of_value, value_of_score
from engine.players.alphabeta import LOGISTIC_SCALE
from engine.players.time_control import TimeControl, move_budget

START = "B" + "b" * 12 + "e" * 8 + "w" * 12
BRANCHING = "B:W6,7,14,15,22,23:B1,K2"  # captures of different men between the same squares
names = st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True)
values = st.text(st.characters(exclude_characters='"', exclude_categories=["Cc", "Zs", "Zl", "Zp", "Cs"]))


def positions(games: int, seed: int) -> list[Board]:
    """All boards of random games."""
    rng, found = random.Random(seed), []
    for _ in range(games):
        board = Board()
        while board.outcome() is None:
            found.append(board.copy())
            board.push(rng.choice(board.legal_moves))
    return found


# Lines


@pytest.mark.parametrize(
    ("line", "command", "args"),
    [
        ("hub", "hub", {}),
        ("go think\n", "go", {"think": ""}),
        ("  level   move-time=0.5  infinite \r\n", "level", {"move-time": "0.5", "infinite": ""}),
        ('pos pos=Bbw moves="11-15 22-18"', "pos", {"pos": "Bbw", "moves": "11-15 22-18"}),
        ('set-param name=dir value="C:\\a b\\"', "set-param", {"name": "dir", "value": "C:\\a b\\"}),
        ('id name="" author=', "id", {"name": "", "author": ""}),
        ("set-param name=x value=a=b", "set-param", {"name": "x", "value": "a=b"}),
        ("level depth=1 depth=2", "level", {"depth": "2"}),
    ],
)
def test_lines_are_read(line: str, command: str, args: dict[str, str]) -> None:
    assert parse_message(line) == Message(command, args)


@pytest.mark.parametrize(
    "line", ["", "  ", "=", "a=b", '"go"', "go =3", 'pos moves="11-15', 'pos a="b"c', 'pos a=b"c"', 'go "think"']
)
def test_wrong_lines_are_refused(line: str) -> None:
    with pytest.raises(HubError, match=r"is no argument|begins with no command"):
        parse_message(line)


def test_an_overlong_line_is_refused() -> None:
    with pytest.raises(HubError, match="more than 65536 characters"):
        parse_message("go " + "x" * MAX_LINE)


@given(names, st.dictionaries(names, st.lists(values.filter(bool), max_size=4).map(" ".join)))
def test_what_is_written_can_be_read(command: str, args: dict[str, str]) -> None:
    line = format_message(command, args)
    assert len(line.splitlines()) == 1
    assert parse_message(line) == Message(command, args)


@given(st.text())
def test_any_value_makes_one_line(value: str) -> None:
    line = format_message("error", {"message": value, "flag": None})
    told = parse_message(line).args
    assert told["flag"] == ""
    assert told["message"] == " ".join(value.replace('"', "'").split())


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        message = parse_message(text)
    except HubError:
        return
    assert parse_message(format_message(*message)).command == message.command


def test_lines_of_a_stream_are_cut_where_they_are_too_long() -> None:
    long = "x" * (3 * MAX_LINE)
    lines = list(bounded_lines(io.StringIO(f"a\n{long}\nb\n{'y' * MAX_LINE}\nc"), MAX_LINE))
    assert [line[:1] for line in lines] == ["a", "x", "b", "y", "c"]
    assert len(lines[1]) == MAX_LINE + 1


# Positions


def test_positions_there_and_back() -> None:
    assert format_pos(Board()) == START
    for board in positions(6, 1):
        text = format_pos(board)
        assert parse_pos(text).fen() == board.fen()
        assert turned_pos(turned_pos(text)) == text
        assert parse_pos(turned_pos(text)).words() == board.words()  # the same for the side to move


def test_pydraughts_writes_turned_positions() -> None:
    for board in positions(2, 2):
        theirs = draughts.Board(variant="english", fen=board.fen())
        assert theirs._game.initial_hub_fen == turned_pos(format_pos(board))
        assert Game("english", board.fen()).initial_hub_fen == format_pos(board)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is no position"),
        (START[1:], "is no position"),
        (START + "e", "is no position"),
        ("b" + START[1:], "is no position"),
        (START.replace("e", "x"), "is no position"),
        ("W" + "e" * 31, "is no position"),
        ("Ww" + "e" * 31, "promotion row"),
        ("B" + "b" * 13 + "e" * 7 + "w" * 12, "more than 12"),
    ],
)
def test_wrong_positions_are_refused(text: str, error: str) -> None:
    with pytest.raises((HubError, FenError), match=error):
        parse_pos(text)


# Moves


def test_moves_there_and_back() -> None:
    for board in [*positions(6, 3), Board(BRANCHING), Board("W:WK30:B8,16,24,25,26")]:
        moves = board.legal_moves
        assert len({format_move(move) for move in moves}) == len(moves)
        for move in moves:
            assert parse_move(board, format_move(move)) == move
            assert parse_move(board, board.pdn(move)) == move
            assert parse_move(board, str(move)) == move


def test_moves_are_those_of_pydraughts() -> None:
    for board in [*positions(3, 4), Board(BRANCHING)]:
        theirs = draughts.Board(variant="english", fen=board.fen())
        assert {move.hub_move for move in theirs.legal_moves()} == {format_move(move) for move in board.legal_moves}


def test_the_squares_taken_decide_between_captures() -> None:
    board = Board(BRANCHING)
    by_end: dict[tuple[int, int], list[Move]] = {}
    for move in board.legal_moves:
        by_end.setdefault((move.start, move.end), []).append(move)
    several = next(moves for moves in by_end.values() if len(moves) > 1)
    for move in several:
        backwards = (move.start, move.end, *reversed(move.captured))
        assert parse_move(board, "x".join(map(str, backwards))) == move
    with pytest.raises(IllegalMoveError, match="ambiguous"):
        parse_move(board, f"{several[0].start}x{several[0].end}")


@pytest.mark.parametrize("text", ["", "11", "11-", "11-19", "15x22x19", "a-b", "0-0", "11-15-18x", "1x2x3x4x5", "99-1"])
def test_wrong_moves_are_refused(text: str) -> None:
    board = play_moves(Board(), ["11-15", "22-18"])
    with pytest.raises(IllegalMoveError):
        parse_move(board, text)


# Games, straight and turned


def test_from_the_start_every_position_tells_whether_it_is_turned() -> None:
    rng = random.Random(5)
    for _ in range(30):
        board = Board()
        while len(board.piece_map()) == 24:
            for known in (None, False, True):
                assert read_game(format_pos(board), [], known) == (_same(board), False)
                assert read_game(turned_pos(format_pos(board)), [], known) == (_same(board), True)
            board.push(rng.choice(board.legal_moves))


class _same:  # noqa: N801
    """Compares equal to any board with the same position."""

    def __init__(self, board: Board) -> None:
        self.fen = board.fen()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Board) and other.fen() == self.fen

    __hash__ = None  # type: ignore[assignment]


def test_moves_tell_whether_a_position_is_turned() -> None:
    board = Board("W:W18,26,K3:B11,15,K22")
    straight, turned = format_pos(board), turned_pos(format_pos(board))
    moves = [format_move(board.legal_moves[0])]
    after = play_moves(board.copy(), moves)
    assert read_game(straight, moves) == (_same(after), False)
    assert read_game(turned, moves) == (_same(after), True)
    assert read_game(straight, []) == (_same(board), None)
    assert read_game(straight, [], False) == (_same(board), False)
    assert read_game(turned, [], True) == (_same(board), True)
    with pytest.raises(IllegalMoveError):
        read_game(turned, moves, False)


def test_a_move_that_fits_both_ways_tells_nothing() -> None:
    board, turned = read_game(format_pos(Board("W:WK18,K15:BK5,K6")), ["18-22"])  # turned, kings stand there, too
    assert (board.peek(), turned) == (Move(18, 22), None)
    assert board.fen() == "B:WK15,K22:BK5,K6"
    assert read_game(format_pos(Board("W:WK18,K11:BK5,K6")), ["18-22"])[1] is False


@pytest.mark.parametrize("moves", [["9-14"], ["11-15", "11-15"], ["x"]])
def test_moves_that_fit_neither_way_are_refused(moves: list[str]) -> None:
    with pytest.raises(IllegalMoveError):
        read_game(format_pos(Board("W:W18,26,K3:B11,15,K22")), moves)


@given(st.text("BWbwe", min_size=33, max_size=33), st.lists(st.sampled_from(["11-15", "22x15", "1x2x3", ""])))
def test_any_game_is_read_or_refused(pos: str, moves: list[str]) -> None:
    with contextlib.suppress(DraughtsError):
        board, _ = read_game(pos, moves)
        assert board.ply == len(moves)


# Levels


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("level", None),
        ("level handicap=1", None),
        ("level depth=5", Level(depth=5)),
        ("level nodes=1000 depth=3", Level(nodes=1000, depth=3)),
        ("level move-time=0.5", Level(move_time=0.5)),
        ("level moves=0 time=60 inc=0.5 ponder", Level(time=60.0, inc=0.5)),
        ("level moves=40 time=-0.5", Level(time=-0.5, moves=40)),
        ("level infinite", Level(infinite=True)),
    ],
)
def test_levels_are_read(text: str, level: Level | None) -> None:
    assert parse_level(parse_message(text).args) == level


@pytest.mark.parametrize(
    "text",
    "depth=0 depth=x depth=1.5 nodes=-1 move-time=-1 move-time=nan time=inf inc=-1 depth= moves=-1 time=x nodes=1e3 "
    f"depth={10**400} depth={'9' * 5000}".split(),
)
def test_wrong_levels_are_refused(text: str) -> None:
    with pytest.raises(HubError, match=r"^level: \S+ is .*, not a (whole )?number"):
        parse_level(dict([text.split("=")]))


def test_a_clock_is_shared_out() -> None:
    assert Level(move_time=3.0).seconds(0) == 3.0
    assert Level(depth=3).seconds(0) is None
    for made in (0, 50):  # as in matches, but that the clock has not had the increment for the move before
        assert Level(time=60.0, inc=2.0).seconds(made) == move_budget(TimeControl("fischer", 99.0, 2.0), 62.0, made)
    assert Level(time=10.0, moves=1).seconds(9) == pytest.approx(10.0, abs=0.05)
    assert Level(time=10.0, moves=5).seconds(9) == pytest.approx(2.0, abs=0.05)
    assert Level(time=0.2, inc=10.0, moves=None).seconds(0) == pytest.approx(5.1, abs=0.05)  # half of what is there
    assert Level(time=-5.0).seconds(0) == pytest.approx(0.0, abs=0.01)
    assert Level(time=60.0, move_time=0.1).seconds(0) == pytest.approx(0.1)


@given(st.floats(0.5, 1000), st.floats(0, 10), st.integers(0, 60))
def test_a_clock_never_runs_out(time: float, inc: float, moves: int) -> None:
    for played in range(60):
        left = None if moves == 0 else moves - played
        if left == 0:
            break
        seconds = Level(time=time, inc=inc, moves=left).seconds(played)
        assert seconds is not None
        time += inc - seconds
        assert time > 0


# Scores and parameters


@given(st.floats(-1, 1))
def test_scores_there_and_back(value: float) -> None:
    assert value_of_score(score_of_value(value)) == pytest.approx(value, abs=1e-6)
    assert abs(score_of_value(value)) < 90


def test_scores_are_those_of_alpha_beta_and_of_pydraughts() -> None:
    assert pytest.approx(2 * LOGISTIC_SCALE / 100) == MEN_PER_LOGIT
    assert score_of_end(True, 7) == pytest.approx(99.93)
    assert score_of_end(False, 7) == pytest.approx(-99.93)
    assert score_of_end(True, None) == 99.0
    assert score_of_end(True, 5000) == 90.0
    assert value_of_score(99.93) == 1.0
    assert value_of_score(-90.0) == -1.0


def test_parameters() -> None:
    depth = Param("depth", 8, "int", 1, 64)
    assert depth.declaration() == "param name=depth value=8 type=int min=1 max=64"
    assert depth.read("12") == 12
    oracle = Param("oracle", "off", "enum", values=("off", "tablebase"))
    assert oracle.declaration() == 'param name=oracle value=off type=enum values="off tablebase"'
    assert oracle.read("tablebase") == "tablebase"
    book = Param("book", True, "bool")
    assert book.declaration() == "param name=book value=true type=bool"
    assert book.read("false") is False


@pytest.mark.parametrize(
    ("param", "text"),
    [
        (Param("a", 8, "int", 1, 64), "65"),
        (Param("a", 8, "int", 1, 64), "0"),
        (Param("a", 8, "int", 1, 64), "x"),
        (Param("a", 8, "int", 1, 64), "2.5"),
        (Param("a", True, "bool"), "yes"),
        (Param("a", "x", "enum", values=("x",)), "y"),
    ],
)
def test_wrong_values_are_refused(param: Param, text: str) -> None:
    with pytest.raises(HubError, match=r"^a cannot be .*: param name=a "):
        param.read(text)
