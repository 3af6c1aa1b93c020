"""Games in PDN: reading, errors with their places, writing, and reading what was written."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.board import Board
from engine.errors import PdnError
from engine.fen import START_FEN
from engine.move import Move
from engine.pdn import MAX_DEPTH, PdnGame, PdnNode, format_game, read_game, read_games
from engine.pdn_tokens import MAX_COMMENT, MAX_LINE, MAX_TOKENS

ACF_GAMES = Path(__file__).parents[2] / "shared" / "data" / "acf_games.pdn"

ANNOTATED = """\
[Event "Club \\"Old 14th\\", board C:\\\\1"]
[Site "?"]
[Round "1-1"]
[Black "A"]
[White "B"]
[Result "0-1"]
[GameType "21"]

{Notes by C.} ; and by D.
1. 9-14! {[%clk 0:05:00]} 23-18!? 2. 14x23 {forced} {[%emt 0:00:01.5] [%clk 0:04:58]} 26x19 $7 $14
( {better is} 27x18 2. 12-16 (2. {or} 11-15 18x11 3. 8x15) 2... 32-27?? {no} ) {played fast}
3. 11-16 ( 3. 5-9 ) ( 3. 6-9 ) 0-1 {White won on time}
"""


def moves(game: PdnGame) -> list[str]:
    return [str(node.move) for node in game.moves]


def line(nodes: list[PdnNode]) -> str:
    return " ".join(str(node.move) for node in nodes)


def test_tags() -> None:
    game = read_game(ANNOTATED)
    assert list(game.headers) == ["Event", "Site", "Round", "Black", "White", "Result", "GameType"]
    assert game.headers["Event"] == 'Club "Old 14th", board C:\\1'
    assert game.headers["Round"] == "1-1"
    assert game.result == "0-1"
    assert game.start_fen == START_FEN


def test_moves_and_variations() -> None:
    game = read_game(ANNOTATED)
    assert moves(game) == ["9-14", "23-18", "14x23", "26x19", "11-16"]
    assert [len(node.variations) for node in game.moves] == [0, 0, 0, 1, 2]
    (better,) = game.moves[3].variations
    assert line(better) == "27x18 12-16 32-27"
    assert line(better[1].variations[0]) == "11-15 18x11 8x15"
    assert [line(variation) for variation in game.moves[4].variations] == ["5-9", "6-9"]


def test_comments() -> None:
    game = read_game(ANNOTATED)
    assert game.comments == ["Notes by C.", "and by D."]
    assert [node.comments for node in game.moves] == [
        ["[%clk 0:05:00]"],
        [],
        ["forced", "[%emt 0:00:01.5] [%clk 0:04:58]"],
        ["played fast"],
        ["White won on time"],
    ]
    better = game.moves[3].variations[0]
    assert better[0].comments_before == ["better is"]
    assert better[1].variations[0][0].comments_before == ["or"]
    assert better[2].comments == ["no"]


def test_annotation_glyphs() -> None:
    game = read_game(ANNOTATED)
    assert [node.nags for node in game.moves] == [[1], [5], [], [7, 14], []]
    marked = read_game("1. 9-14! 22-17? 2. 6-9!! 17-13?? 3. 2-6!? 25-22?! 4. 14-18(!) 23x14 !!! 5. 10x17 $255 *")
    assert [node.nags for node in marked.moves] == [[1], [2], [3], [4], [5], [6], [1], [3], [255]]


def test_clocks() -> None:
    game = read_game(ANNOTATED)
    assert [node.clock for node in game.moves] == [300.0, None, 298.0, None, None]
    assert [node.elapsed for node in game.moves] == [None, None, 1.5, None, None]


@pytest.mark.parametrize(
    ("comment", "seconds"),
    [
        ("[%clk 1:55:21]", 6921.0),
        ("[%clk 2:05]", 125.0),
        ("[%clk 45.25]", 45.25),
        ("well played [%emt 0:01] [%clk 00:00:09] indeed", 9.0),
        ("[%clk w0:00:10 B0:00:03]", None),
        ("[%clk ]", None),
        ("[%clk " + "9" * 5000 + "]", None),
        ("%clk 5", None),
    ],
)
def test_clock_values(comment: str, seconds: float | None) -> None:
    assert read_game(f"1. 9-14 {{{comment}}} *").moves[0].clock == seconds


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ("1-0", "1-0"),
        ("0-1", "0-1"),
        ("1/2-1/2", "1/2-1/2"),
        ("0-0", "0-0"),
        ("*", "*"),
        ("2-0", "1-0"),
        ("1-1", "1/2-1/2"),
        ("0-2", "0-1"),
    ],
)
def test_results(written: str, result: str) -> None:
    """In the moves, in the tag, and both; Black is the first player."""
    assert read_game(f"1. 9-14 22-17 {written}").result == result
    assert read_game(f'[Result "{written}"] 1. 9-14 22-17').result == result
    assert read_game(f'[Result "{written}"] 1. 9-14 22-17 {written}').result == result
    assert read_game(f'[Result "{written}"] 1. 9-14 22-17 *').result == result


def test_result_of_the_moves_outranks_the_tag_and_unknown_results_are_none() -> None:
    assert read_game('[Result "1-0"] 1. 9-14 0-1').result == "0-1"
    unknown = read_game('[Result "adjourned"] 1. 9-14 *')
    assert unknown.result == "*"
    assert unknown.headers["Result"] == "adjourned"


@pytest.mark.parametrize(
    "text",
    [
        "1. 9-14 22-17 2. 6-9 *",
        "1.9-14 22-17 2.6-9 *",
        "9-14 22-17 6-9",
        "1. 9-14 1... 22-17 2. 6-9",
        "1. 9-14 1. ... 22-17 2. 6-9",
        "1 9-14 22-17 2 6-9",
        "1. 9-14\r\n22-17\r\n2.\r\n6-9\r\n*\r\n",
        "\ufeff1. 9-14 22-17 2. 6-9 *",
        "1. 09-14 22-17 2. 06-09",
        "1. 9-14{a}22-17{}2. 6-9;end\n*",
        "% written by hand\n1. 9-14 22-17\n% a % line\n2. 6-9 *",
        "{}\n1. 9-14 {a\n% no escape here\nb} 22-17 2. 6-9",
        "1. 9-14 22-17 2. 6-9*",
        "1. 9-14* 22-17 2. 6-9",
        "1. 9-14 * 22-17 2. 6-9 *",
        "1. 9-14 * 1... 22-17 2. 6-9 *",
        "1. 9-14 22-17 * 2. 6-9 1-0",
        "1. 9-14 {x} * {y} 22-17 2. 6-9",
        "1. 9-14 (1. 10-14 22-17 1-0) 22-17 2. 6-9 0-1",
        "1. 9-14 (1. 10-14 *) 22-17 2. 6-9 0-1",
        "1. 9-14 22-17 () 2. 6-9 0-1",
        "1. 9-14 22-17 ({nothing better}) 2. 6-9 0-1",
        "1. 9-14 22-17 2. 6-91-0",
        "1. 9-14 22-17 2. 6-91/2-1/2",
        "1. 9-14 22-17 2. 6-9 1-0*",
        "1. 9-14 22-17 2. 6-9 1-0 *",
        "1. 9-14 22-17 2. 6-9 1-1",
        "1. 9 - 14 22 -17 2. 6- 9 1-0",
        "1. 9 - 14 22 - 17 2. 6 - 9",
    ],
)
def test_liberal_reading(text: str) -> None:
    (game,) = read_games(text)
    assert moves(game) == ["9-14", "22-17", "6-9"]


def test_a_star_is_a_mark_or_an_end() -> None:
    marked = read_game("1. 9-14* 22-17 * 2. 6-9*! 25-22 *")
    assert [node.nags for node in marked.moves] == [[7], [7], [7, 1], []]
    ended = list(read_games('1. 9-14 * 1. 10-14 * {of the second}\n; of the third\n[Event "x"] 1. 11-15*'))
    assert [moves(game) for game in ended] == [["9-14"], ["10-14"], ["11-15"]]
    assert [game.moves[0].nags for game in ended] == [[], [], [7]]
    assert [game.moves[0].comments for game in ended] == [[], ["of the second"], []]
    assert ended[2].comments == ["of the third"]


@pytest.mark.parametrize("space", [" ", "\x0b", "\x1c", "\xa0", "\u2003"])
def test_any_white_space_may_stand_behind_a_number(space: str) -> None:
    first, second = read_games(f"1{space}. 11-15 * 1{space}. 9-14 *")
    assert [len(first.moves), len(second.moves)] == [1, 1]


def test_glued_results() -> None:
    """A result without a space after the last move, and the moves 1-10 and 1x10, which begin like a draw."""
    fen = '[FEN "B:W6,22:B1,17"]'
    assert moves(read_game(f"{fen} 1. 1-10 22x13 1-1")) == ["1x10", "22x13"]
    game = read_game(f"{fen} 1. 1-100-1")
    assert (moves(game), game.result) == (["1x10"], "0-1")
    games = list(read_games('1. 9-14 22-171-0[Event "x"]\n1. 9-13 22-18 0-1[Event "y"][Round "2-0"]1-1'))
    assert [(moves(game), game.result) for game in games] == [
        (["9-14", "22-17"], "1-0"),
        (["9-13", "22-18"], "0-1"),
        ([], "1/2-1/2"),
    ]


def test_games_without_results_end_where_tags_begin() -> None:
    text = (
        '[Event "a"]\n1. 9-14\n[Event "b"]\n{no moves}\n\n[Event "c"]\n[Event "d"]\n; between tags\n[Site "e"]\n1. 9-13'
    )
    games = list(read_games(text))
    assert [list(game.headers.items()) for game in games] == [
        [("Event", "a")],
        [("Event", "b")],
        [("Event", "c")],
        [("Event", "d"), ("Site", "e")],
    ]
    assert [moves(game) for game in games] == [["9-14"], [], [], ["9-13"]]
    assert games[1].comments == ["no moves"]
    assert games[3].comments == ["between tags"]


def test_captures_with_a_capital_x_or_spaces() -> None:
    assert moves(read_game("1. 11-15 22-18 2. 15X22 25 x 18")) == ["11-15", "22-18", "15x22", "25x18"]
    assert str(Board("W:W18:B6,14").parse_pdn("18X9X2")) == "18x9x2"


def test_tags_with_odd_values() -> None:
    game = read_game('[Event "The "Big" one"] [Site "[x] {y} ; z"]\n[ Round"1" ][Black ""]\n[White "C:\\"]\n1. 9-14 *')
    assert game.headers == {"Event": 'The "Big" one', "Site": "[x] {y} ; z", "Round": "1", "Black": "", "White": "C:\\"}


def test_set_up_positions() -> None:
    fen = "W:W18,K32:B9,K4"
    game = read_game(f'[SetUp "1"]\n[FEN "{fen}."]\n1... 18-14 2. 9x18')
    assert moves(game) == ["18-14", "9x18"]
    assert [board.fen() for board in game.boards()] == [fen, "B:W14,K32:B9,K4", "W:WK32:B18,K4"]
    assert game.board().fen() == "W:WK32:B18,K4"
    assert read_game('[SetUp "0"]\n[FEN "garbage"]\n1. 9-14').start_fen == START_FEN
    assert read_game('[FEN ""]\n1. 9-14').start_fen == START_FEN


def test_the_last_board_is_made_without_copies_of_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy has all moves before it: one for each ply takes quadratic time in long games."""
    game = read_game("1. 11-15 22-18 15x22 *")
    *_, last = game.boards()
    monkeypatch.delattr(Board, "copy")
    assert game.board() == last


@pytest.mark.parametrize("game_type", ["21", "21,B,8,8,N1,0", " 21 , B", ""])
def test_accepted_game_types(game_type: str) -> None:
    assert moves(read_game(f'[GameType "{game_type}"] 1. 9-14')) == ["9-14"]


@pytest.mark.parametrize(
    ("text", "line_number", "column", "message"),
    [
        ("1. 9-14 22-17\n2. 9-13 *", 2, 4, "9-13 is illegal in .*legal: "),
        ("1. 9-14 23-18 2. 5-9", 1, 18, "must capture"),
        ('[FEN "B:W6,7,14,15:B2"]\n\n1. 2x18', 3, 4, "2x18 is ambiguous"),
        ("1. 45-50", 1, 4, "45-50 is illegal"),
        ("1. a3-b4", 1, 4, r"cannot read 'a3-b4' \(a move is like"),
        ("1. 9-14 \x00", 1, 9, r"cannot read '\\x00'"),
        ("1. 9-14 [%clk 0:01] 22-17", 1, 9, r"cannot read '\[%clk 0:01\] 22-17' \(a tag is like"),
        ('[Event "a', 1, 1, r"cannot read '\[Event \"a'"),
        ('[Event]\n[Site "b"]', 1, 1, "cannot read"),
        ("1. 9-14 }", 1, 9, "cannot read '}'"),
        ("1. 9-14\n 22-17 {never\nclosed", 2, 8, "the comment that begins here is not closed with }"),
        ("1. 9-14 (1. 10-14 (1. 11-15)\n", 1, 9, r"the variation that begins here is not closed with \)"),
        ('1. 9-14 (1. 10-14 [Event "x"]', 1, 9, r"the variation that begins here is not closed"),
        ("1. 9-14 ) 22-17", 1, 9, r"this \) closes no variation"),
        ("(1. 9-14)", 1, 1, "no move that it could replace"),
        ("1. 9-14 ((1. 10-14))", 1, 10, "no move that it could replace"),
        ("1. 9-14 (" * (MAX_DEPTH + 1), 1, 9 * MAX_DEPTH + 9, f"more than {MAX_DEPTH} deep"),
        ("1. ! 9-14", 1, 4, "no move in front of '!'"),
        ("$3 1. 9-14", 1, 1, r"no move in front of '\$3'"),
        ("1. 9-14 $256", 1, 9, r"\$256 is no annotation"),
        ("1. 9-14 $1000", 1, 9, r"cannot read '\$1000'"),
        ('[Event "a"]\n[GameType "20,W,10,10,N2,0"]', 2, 1, "GameType 20 is international draughts, not English"),
        ('[GameType "25"]', 1, 1, "GameType 25 is Russian draughts, not English"),
        ('[GameType "77"]', 1, 1, "GameType 77 is an unknown game, not English"),
        ('[GameType "checkers"]', 1, 1, "GameType 'checkers' does not begin with a number"),
        ('[SetUp "1"]\n1. 9-14', 1, 1, "SetUp is 1 but there is no FEN tag"),
        ('[Site "x"] [FEN "B:W33:B1"]', 1, 12, "FEN 'B:W33:B1': '33' is outside"),
        ("", 1, 1, "there is no game"),
        ("; nothing\n{at all} 1-0 *", 1, 1, "there is no game"),
    ],
)
def test_errors_name_line_and_column(text: str, line_number: int, column: int, message: str) -> None:
    with pytest.raises(PdnError, match=f"^line {line_number}, column {column}: .*{message}") as caught:
        read_game(text)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_games_that_cannot_be_read_may_be_left_out() -> None:
    text = '[Event "a"] 1. 9-14 *\n[Event "b"] 1. 9-15 *\n[Event "c"] 1. e4 (\n[Event "d"] 1. 9-13 1-0\n{open'
    errors: list[PdnError] = []
    games = read_games(text, errors.append)
    assert [game.headers["Event"] for game in games] == ["a", "d"]
    assert [re.match(r"line (\d)", str(error))[1] for error in errors] == ["2", "3", "5"]
    games = read_games(text)
    assert next(games).headers["Event"] == "a"
    with pytest.raises(PdnError, match="line 2"):
        next(games)


def test_reading_streams() -> None:
    """A game is returned before more than the first line of the next one has been read."""
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        for number in range(1000):
            for text in (f'[Event "{number}"]\n', "1. 9-14 22-17\n", "2. 6-9 1-0\n"):
                taken += 1
                yield text

    games = read_games(lines())
    for number in range(3):
        assert next(games).headers["Event"] == str(number)
        assert taken == 3 * number + 4


def test_errors_count_from_the_number_of_the_first_line() -> None:
    assert read_game("1. 11-15 *", 10**9).moves
    with pytest.raises(PdnError, match=r"^line 1001, column 4: "):
        read_game("1. 11-15\n2. 1-32 *", 1000)
    with pytest.raises(PdnError, match=r"^line 7, column 1: there is no game"):
        read_game("", 7)


def test_reading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    path.write_bytes(b"\xef\xbb\xbf" + (ANNOTATED * 2).replace("\n", "\r\n").encode())
    for newline in (None, ""):
        with path.open(encoding="utf-8", newline=newline) as file:
            games = list(read_games(file))
        assert games == [read_game(ANNOTATED)] * 2


def test_deep_and_wide_nesting_is_read_and_written() -> None:
    depth = MAX_DEPTH
    text = "1. 9-14" + " (1. 10-14 (1. 9-14" * (depth // 2) + "))" * (depth // 2) + " 22-17" + " (21-17)" * 500
    game = read_game(text)
    assert read_game(format_game(game)).moves == game.moves
    too_deep = PdnGame({}, [PdnNode(game.moves[0].move, variations=[game.moves])])
    with pytest.raises(PdnError, match=f"more than {MAX_DEPTH} deep"):
        format_game(too_deep)


@pytest.mark.parametrize(
    "text", ["(" * 200_000, "1. 9-14" + "(" * 200_000, "{" * 200_000, '[a "' * 100_000, "1-" * 200_000]
)
def test_hostile_repetition_is_refused_at_once(text: str) -> None:
    with pytest.raises(PdnError):
        read_game(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1. 9-14 {" + "a b" * (MAX_LINE // 3) + "} 22-17 1-0",
            "column 1: the line has more than 1,048,576",
        ),
        ("1. 9-14 {" + "a b\n" * (MAX_COMMENT // 4) + "} 22-17 1-0", "column 9: the comment that begins here has more"),
        (
            "1. 9-14" + " (9-13)\n" * (MAX_TOKENS // 2) + "22-17 1-0",
            "column 1: the game that begins here has",
        ),
    ],
    ids=["line", "comment", "game"],
)
def test_too_long_for_a_game_is_left_out(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    path.write_text(f'[Event "a"] 1. 9-13 1-0\n{text}\n[Event "b"] 1. 10-14 0-1\n')
    errors: list[PdnError] = []
    with path.open() as file:
        assert [game.headers["Event"] for game in read_games(file, errors.append)] == ["a", "b"]
    (error,) = errors
    assert str(error).startswith(f"line 2, {message}")


def test_one_line_without_end_takes_bounded_memory() -> None:
    class Endless(io.StringIO):
        left = 100

        def readline(self, size: int | None = -1, /) -> str:
            assert size is not None
            assert 0 < size < 2 * MAX_LINE
            self.left -= 1
            return "x" * size if self.left > 0 else ""

    with pytest.raises(PdnError, match="the line has more than"):
        read_game(Endless())


@pytest.mark.slow
@pytest.mark.skipif(not ACF_GAMES.exists(), reason="the ACF collection does not lie beside the repository")
def test_the_acf_collection() -> None:
    """9,377 games and 460,287 plies, all legal; results with Black first."""
    results: Counter[str] = Counter()
    plies = 0
    with ACF_GAMES.open(encoding="utf-8") as file:
        for game in read_games(file):
            results[game.result] += 1
            plies += len(game.moves)
    assert results == {"1-0": 1597, "0-1": 2373, "1/2-1/2": 5407}
    assert plies == 460_287


@pytest.mark.parametrize("moves", ["1. 32-28 19-23 2. 28x19", "1. c3-d4 d6-c5", "1. 45-50"])
def test_a_first_move_of_another_game_says_so(moves: str) -> None:
    variant = "may be a game of another variant"
    with pytest.raises(PdnError, match=variant):
        read_game(moves)
    for text in (f'[GameType "21"]\n{moves}', f"1. 11-15 22-18 2. {moves[3:]}", "1. hello"):
        with pytest.raises(PdnError) as raised:
            read_game(text)
        assert variant not in str(raised.value)


def test_files_with_a_mark_of_their_encoding_may_be_put_together() -> None:
    text = '\ufeff[Event "a"]\n\n1. 11-15 22-18 1-0\n'
    games = list(read_games(text + "\n" + text))
    assert [len(game.moves) for game in games] == [2, 2]


@pytest.mark.parametrize(
    "header",
    [
        '[Black "A"]\n[FEN "B:W32,25,21:B1,11]\n[White "B"]',
        '[FEN "B:W32,25,21:B1,11"]\n[Event "broken]\n[White "B"]',
        '[Event broken]\n[FEN "B:W32,25,21:B1,11"]',
    ],
)
def test_a_damaged_tag_costs_its_game_alone(header: str) -> None:
    """The rest of its header was read as another game, perhaps from the wrong position."""
    errors: list[PdnError] = []
    good = '[Event "good"]\n\n1. 11-15 *\n\n'
    games = list(read_games(f"{good}{header}\n\n1. 11-15 0-1\n\n{good}", errors.append))
    assert [game.headers.get("Event") for game in games] == ["good", "good"]
    assert len(errors) == 1
    assert "a tag is like" in str(errors[0])


def test_results_as_in_international_draughts_are_written_as_today() -> None:
    game = PdnGame({"Result": "2-0"})
    assert game.result == "1-0"
    assert read_game(format_game(game)).headers["Result"] == "1-0"


def test_annotations_out_of_range_are_not_written() -> None:
    with pytest.raises(PdnError, match=r"annotations of 11-15: \[300\] are not all in 0 to 255"):
        format_game(PdnGame({}, [PdnNode(Move(11, 15), nags=[300])]))
