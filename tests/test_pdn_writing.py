"""Writing games as PDN: the format, and that games read from it are the same."""

import random
import re

import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_pdn import ANNOTATED

from engine.board import Board
from engine.errors import IllegalMoveError, PdnError
from engine.fen import START_FEN
from engine.pdn import GAME_TYPE, PdnGame, PdnNode, format_game, read_game, read_games


def test_written_form() -> None:
    assert (
        format_game(read_game(ANNOTATED))
        == """\
[Event "Club \\"Old 14th\\", board C:\\\\1"]
[Site "?"]
[Round "1-1"]
[Black "A"]
[White "B"]
[Result "0-1"]
[GameType "21,B,8,8,N1,0"]

{Notes by C.} {and by D.} 1. 9-14! {[%clk 0:05:00]} 1... 23-18!? 2. 14x23
{forced} {[%emt 0:00:01.5] [%clk 0:04:58]} 2... 26x19 $7 $14 {played fast} (2...
{better is} 27x18 3. 12-16 (3. {or} 11-15 18x11 4. 8x15) 3... 32-27?? {no}) 3.
11-16 {White won on time} (3. 5-9) (3. 6-9) 0-1
"""
    )


def test_a_game_from_a_board() -> None:
    board = Board("W:WK32,K31:BK1")
    board.push_pdn("31-27")
    game = PdnGame.from_board(board, {"White": "x", "Event": "e", "Note": "n"})
    assert (
        format_game(game)
        == """\
[Event "e"]
[White "x"]
[Result "*"]
[GameType "21,B,8,8,N1,0"]
[SetUp "1"]
[FEN "W:WK31,K32:BK1"]
[Note "n"]

1... 31-27 *
"""
    )
    assert read_game(format_game(game)).board().fen() == board.fen() == game.board().fen()
    assert PdnGame.from_board(Board("W:W:B1")).result == "1-0"
    assert PdnGame.from_board(Board(), {"Result": "0-1"}).result == "0-1"
    assert "FEN" not in PdnGame.from_board(Board()).headers
    assert PdnGame.from_board(Board()).headers["GameType"] == GAME_TYPE


def test_ambiguous_captures_are_written_in_full() -> None:
    for path in ("2x9x18x11x2", "2x11x18x9x2"):
        game = read_game(f'[FEN "B:W6,7,14,15:BK2"] 1. {path} 1-0')
        assert f"1. {path} 1-0" in format_game(game)
        assert read_game(format_game(game)).moves[0].move.path == game.moves[0].move.path


@pytest.mark.parametrize("length", range(60, 81))
def test_no_line_of_a_comment_begins_with_the_sign_of_lines_to_skip(length: int) -> None:
    game = read_game(f"1. 11-15 {{{'x' * length} 50 % % of 100}} *")
    assert "\n%" not in format_game(game)
    assert read_game(format_game(game)).moves == game.moves


def test_boards_are_independent() -> None:
    game = read_game("1. 9-14 22-17 2. 6-9 *")
    boards = list(game.boards())
    assert [board.ply for board in boards] == [0, 1, 2, 3]
    boards[0].push_pdn("10-15")
    assert boards[1].fen() == next(iter(list(game.boards())[1:])).fen()
    assert game.board().fen() == boards[3].fen()


@pytest.mark.parametrize(
    ("headers", "message"),
    [({"Event": "a\nb"}, "tag Event: .* line break"), ({"": "x"}, "tag name ''"), ({'a"': "x"}, "tag name 'a\"'")],
)
def test_tags_that_cannot_be_written(headers: dict[str, str], message: str) -> None:
    with pytest.raises(PdnError, match=message):
        format_game(PdnGame(headers))


def test_an_illegal_move_is_not_written() -> None:
    game = read_game("1. 9-14 22-17")
    game.moves.reverse()
    with pytest.raises(IllegalMoveError):
        format_game(game)


comments = st.lists(
    st.text(max_size=40) | st.sampled_from(["}", "(", ") a", "% b", "; c {", "[%clk 0:01]", "a } b"]), max_size=2
)


@st.composite
def games(draw: st.DrawFn) -> PdnGame:
    """A random game with comments, glyphs and nested variations everywhere, from any position."""
    rng = draw(st.randoms(use_true_random=False))
    seed = draw(st.integers(0, 1000))
    start = Board(reference.random_position(random.Random(seed), 6).fen()) if seed % 3 else Board()
    headers = draw(st.dictionaries(st.from_regex("[A-Z][a-z0-9_]{1,9}", fullmatch=True), st.text(), max_size=3))
    tags = {name: re.sub(r"[\r\n]", "", value) for name, value in headers.items()}
    tags["Result"] = draw(st.sampled_from(["1-0", "0-1", "1/2-1/2", "0-0", "*"]))
    if start.start_fen != START_FEN:
        tags |= {"SetUp": "1", "FEN": start.start_fen}

    def nodes(board: Board, plies: int, depth: int) -> list[PdnNode]:
        played = []
        for _ in range(plies):
            if not board.legal_moves:
                break
            node = PdnNode(rng.choice(board.legal_moves))
            if rng.random() < 0.3:
                node.nags = [rng.randrange(256) for _ in range(rng.randint(0, 3))]
                node.comments_before, node.comments = draw(comments), draw(comments)
            while depth and rng.random() < 0.2:
                node.variations.append(nodes(board.copy(), rng.randint(1, 4), depth - 1))
            played.append(node)
            board.push(node.move)
        return played

    return PdnGame(tags, nodes(start, draw(st.integers(0, 30)), 3), draw(comments))


def cleaned(game: PdnGame) -> PdnGame:
    """The game with white space in comments and tags as after reading."""

    def clean(texts: list[str]) -> list[str]:
        return [" ".join(text.split()) for text in texts if text.split()]

    def clean_line(nodes: list[PdnNode]) -> list[PdnNode]:
        return [
            PdnNode(
                node.move,
                node.nags,
                clean(node.comments_before),
                clean(node.comments),
                [clean_line(variation) for variation in node.variations],
            )
            for node in nodes
        ]

    return PdnGame(game.headers | {"GameType": GAME_TYPE}, clean_line(game.moves), clean(game.comments))


@settings(max_examples=50)
@given(games())
def test_games_come_back(game: PdnGame) -> None:
    text = format_game(game)
    again = read_game(text)
    assert again == cleaned(game)
    assert format_game(again) == format_game(cleaned(game))
    for node, other in zip(game.moves, again.moves, strict=True):
        assert node.move.path == other.move.path or len({node.move, other.move}) == 1
    for row in text.split("\n\n", 1)[1].splitlines():
        assert len(row) <= 80 or " " not in row or ";" in row


@settings(max_examples=25)
@given(st.lists(games(), max_size=4))
def test_files_of_games_come_back(several: list[PdnGame]) -> None:
    assert list(read_games("\n".join(map(format_game, several)))) == [cleaned(game) for game in several]


TAGS = ['[Event "a"] ', '[FEN "B:W6,7,14,15:B2"] ', '[Result "1-0"] ', '[GameType "20"] ', "[", "]", '"']
WORDS = "9-14 |22-17 |6-9 |2x9x18 |9-13|33-40|1.|1...|...|7.|1-1|1-0 |1/2-1/2|0-0|*"
SIGNS = "(|)|{|}|{[%clk 0:01]}|;|%|!|?!|(?)|$1|$999"
pieces = st.sampled_from(
    [*TAGS, *WORDS.split("|"), *SIGNS.split("|"), "\n", "\r\n", " ", "\ufeff", "\x00", "é", "½", "٣-٤"]
)


@settings(max_examples=500)
@given(st.text() | st.text('0123456789-x/*(){}[]!?$%;. \n"') | st.lists(pieces, max_size=40).map("".join))
@example("1. 9-14 22-17 {" + "9" * 10000)
@example('[GameType "' + "9" * 5000 + '"]')
@example("9" * 5000 + ".")
@example("1\u2003. 9-14 * 1\u2003. 9-14")
@example("*" * 50)
@example("\ud800")
def test_any_text_is_games_or_a_pdn_error(text: str) -> None:
    try:
        found = list(read_games(text))
    except PdnError:
        found = list(read_games(text, on_error=lambda error: None))
    for game in found:
        assert read_game(format_game(game)).moves == game.moves


def test_a_game_begins_where_its_board_began() -> None:
    headers = {"FEN": "W:WK10:BK20", "SetUp": "1", "Event": "x"}
    assert PdnGame.from_board(Board(), headers).start_fen == START_FEN
    board = Board("W:WK11:BK20")
    assert PdnGame.from_board(board, headers).start_fen == board.start_fen
