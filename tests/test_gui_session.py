"""A game in the window: cursor, endings, draw offers, PDN and FEN in and out, files of many games."""

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ballots import ballots
from engine.board import Board, Move
from engine.errors import DraughtsError, FenError, IllegalMoveError, PdnError
from engine.fen import START_FEN, Color
from engine.files import LARGEST_TEXT, StorageError, read_text
from engine.pdn import PdnGame, PdnNode, format_game, read_game, read_games
from gui.game.pdn_files import PdnGames, note_clock, title_of
from gui.game.session import AGREED, GameSession, SessionError

ACF_GAMES = Path(__file__).parents[2] / "shared" / "data" / "acf_games.pdn"
SHUFFLE = ("1-5", "32-28", "5-1", "28-32") * 2  # from B:WK32:BK1: a threefold repetition


def session_of(*texts: str, fen: str = START_FEN) -> GameSession:
    session = GameSession(fen)
    for text in texts:
        session.push(session.board.parse_pdn(text))
    return session


def state(session: GameSession) -> tuple:
    return (
        session.version,
        session.fen(),
        session.ply,
        session.texts.copy(),
        session.ending,
        dict(session.names),
        dict(session.headers),
        session.draw_offer,
    )


def undo(session: GameSession, plies: int = 1) -> int:
    """Moves the cursor back; by how many plies."""
    before = session.ply
    session.go_to(before - plies)
    return before - session.ply


def redo(session: GameSession, plies: int = 1) -> int:
    """Moves the cursor forward; by how many plies."""
    return -undo(session, -plies)


def moves_of(session: GameSession) -> list[Move]:
    return [node.move for node in session.nodes]


def test_a_new_game() -> None:
    session = GameSession(names={Color.WHITE: "Agent"})
    assert (session.ply, session.nodes, session.ending, session.at_end, session.is_over) == (0, [], None, True, False)
    assert session.names == {Color.BLACK: "Black", Color.WHITE: "Agent"}
    assert session.last_move is None
    assert session.first_color is Color.BLACK
    version, game = session.version, session.game
    session.new_game()
    assert session.version > version
    assert session.game == game + 1
    assert session.names[Color.WHITE] == "Agent"


def test_a_ballot() -> None:
    ballot = ballots()[7]
    session = GameSession()
    session.new_game(opening=ballot.moves)
    assert session.texts == list(ballot.moves)
    assert session.ply == 3
    assert undo(session) == 1


def test_a_bad_start_leaves_the_game_alone() -> None:
    session = session_of("11-15")
    before = state(session)
    for attempt in (
        lambda: session.new_game("B:W1:B32"),
        lambda: session.new_game(opening=("11-15", "11-15")),
        lambda: session.load_fen("nonsense"),
    ):
        with pytest.raises(DraughtsError):
            attempt()
        assert state(session) == before


def test_moves_and_numbers() -> None:
    session = session_of("11-15", "22-18", "15x22")
    assert session.texts == ["11-15", "22-18", "15x22"]
    assert [session.number_of(index) for index in range(4)] == ["1.", "1...", "2.", "2..."]
    assert str(session.last_move) == "15x22"
    white = session_of("22-18", fen=START_FEN.replace("B:", "W:", 1))
    assert white.first_color is Color.WHITE
    assert [white.number_of(index) for index in range(3)] == ["1...", "2.", "2..."]


def test_an_illegal_move_changes_nothing() -> None:
    session = session_of("11-15", "22-18")
    before = state(session)
    with pytest.raises(IllegalMoveError):
        session.push(Board().parse_pdn("9-14"))
    undo(session)
    before = state(session)
    with pytest.raises(IllegalMoveError):
        session.push(Board().parse_pdn("9-14"))
    assert state(session) == before


def test_undo_redo_and_another_move() -> None:
    session = session_of("11-15", "22-18", "15x22", "25x18")
    assert undo(session, 2) == 2
    assert session.texts[session.ply :] == ["15x22", "25x18"]
    assert redo(session) == 1
    assert redo(session, 9) == 1
    assert redo(session) == 0
    assert undo(session, 99) == 4
    assert undo(session) == 0
    version = session.version
    session.go_to(0)
    assert session.version == version
    session.push(session.board.parse_pdn("11-15"))  # as before: the line stays
    assert (session.ply, len(session.nodes)) == (1, 4)
    session.push(session.board.parse_pdn("23-19"))
    assert session.texts == ["11-15", "23-19"]
    assert session.at_end
    assert session.on_main_line
    assert "(1... 22-18 2. 15x22 25x18)" in session.pdn()
    undo(session)
    session.push(session.board.parse_pdn("22-18"))  # as at first: that line is the game again
    assert session.texts == ["11-15", "22-18", "15x22", "25x18"]
    assert session.on_main_line
    assert "1. 11-15 22-18 (1... 23-19) 2. 15x22 25x18 *" in session.pdn()


@given(st.data())
def test_the_cursor_against_a_list_of_boards(data: st.DataObject) -> None:
    """Any moves, jumps, undos and redos: the session holds what a plain list of moves would."""
    session, line, cursor = GameSession(), list[Move](), 0
    left: dict[tuple[Move, ...], list[Move]] = {}  # how a line that was left went on
    for _ in range(data.draw(st.integers(1, 40))):
        version, before = session.version, (session.fen(), session.texts.copy(), session.ply)
        what = data.draw(st.sampled_from(["push", "push", "push", "undo", "redo", "go"]))
        if what == "push":
            if session.board.outcome():
                continue
            move = data.draw(st.sampled_from(session.board.legal_moves))
            if line[cursor : cursor + 1] != [move]:
                left[tuple(line[: cursor + 1])] = line[cursor + 1 :]
                made = [*line[:cursor], move]
                line = made + left.get(tuple(made), [])
            cursor += 1
            session.push(move)
        elif what == "go":
            ply = data.draw(st.integers(-2, len(line) + 2))
            cursor = min(max(ply, 0), len(line))
            session.go_to(ply)
        else:
            plies = data.draw(st.integers(0, 3))
            cursor = max(0, cursor - plies) if what == "undo" else min(len(line), cursor + plies)
            (undo if what == "undo" else redo)(session, plies)
        expected = Board()
        for move in line[:cursor]:
            expected.push(move)
        assert (session.fen(), session.ply, moves_of(session)) == (expected.fen(), cursor, line)
        assert len(session.texts) == len(line)
        assert session.board.reversible_plies == expected.reversible_plies
        assert (session.version > version) == (before != (session.fen(), session.texts, session.ply))
        assert session.at_end == (cursor == len(line))
        for move in line[cursor:]:
            expected.push(move)
        assert session.on_main_line
        assert (session.ending is not None) == (expected.outcome() is not None)
        assert session.is_over == (session.ending is not None and cursor == len(line))
    again = GameSession()
    again.load_pdn(session.pdn())
    assert (moves_of(again), again.start_fen, again.texts) == (moves_of(session), session.start_fen, session.texts)
    assert again.ending == session.ending
    assert again.pdn() == session.pdn()


def test_the_board_ends_the_game() -> None:
    session = session_of(*SHUFFLE, fen="B:WK32:BK1")
    assert session.is_over
    assert session.ending is not None
    assert session.ending.result == "1/2-1/2"
    assert session.ending.text == "Draw: threefold repetition"
    with pytest.raises(SessionError, match="over: Draw: threefold repetition"):
        session.push(session.board.parse_pdn("1-6"))
    undo(session, 3)
    assert not session.is_over
    session.push(session.board.parse_pdn("32-27"))
    assert session.ending is None
    won = session_of("4-8", fen="B:W12:B3,4")
    assert won.ending is not None
    assert won.ending.text == "Black wins: White has no legal move"
    assert '[Result "1-0"]' in won.pdn()
    assert session_of(fen="B:W5:B").is_over
    taken = session_of("1x10", fen="B:W6:B1").ending
    assert taken is not None
    assert taken.text == "Black wins: White has no pieces left"


def test_resignation_time_and_agreement() -> None:
    session = session_of("11-15")
    session.resign(Color.WHITE)
    assert session.ending is not None
    assert (session.ending.text, session.ending.result) == ("Black wins: White resigned", "1-0")
    for again in (session.resign, session.flag, session.offer_draw):
        with pytest.raises(SessionError, match="White resigned"):
            again(Color.BLACK)
    with pytest.raises(SessionError, match="the game is over"):
        session.push(session.board.legal_moves[0])
    undo(session)
    assert session.ending is not None
    redo(session)
    assert session.is_over
    undo(session)
    session.push(session.board.parse_pdn("11-15"))
    assert session.is_over
    session = session_of("11-15")
    session.flag(Color.BLACK)
    assert session.ending is not None
    assert session.ending.text == "White wins: Black ran out of time"
    session = session_of("9-14", "22-18")
    undo(session)
    with pytest.raises(SessionError, match="go to the last move first"):
        session.resign(Color.BLACK)


def test_draw_offers() -> None:
    session = session_of("11-15")
    with pytest.raises(SessionError, match="no draw"):
        session.answer_draw(True)
    session.offer_draw(Color.BLACK)
    version = session.version
    session.offer_draw(Color.BLACK)
    assert (session.draw_offer, session.version) == (Color.BLACK, version)
    session.answer_draw(False)
    assert session.draw_offer is None
    session.offer_draw(Color.BLACK)
    session.push(session.board.parse_pdn("22-18"))  # White moves on: declined
    assert session.draw_offer is None
    session.offer_draw(Color.BLACK)
    session.push(session.board.parse_pdn("15x22"))  # a move of one's own leaves the offer open
    assert session.draw_offer is Color.BLACK
    session.offer_draw(Color.WHITE)
    assert session.ending is not None
    assert (session.ending, session.ending.text) == (AGREED, "Draw: agreed")
    assert session.draw_offer is None


def test_pdn_out_and_in() -> None:
    session = session_of("11-15", "22-18", "15x22")
    session.rename(Color.BLACK, ' A "quoted"\nname\\ ')
    session.resign(Color.WHITE)
    other = GameSession()
    other.load_pdn(session.pdn())
    assert other.names == {Color.BLACK: 'A "quoted" name\\', Color.WHITE: "White"}
    assert other.texts == session.texts
    assert other.headers == session.headers
    assert other.ending is not None
    assert other.ending == session.ending
    assert other.at_end
    assert other.pdn() == session.pdn()
    assert other.headers["Date"] == datetime.date.today().strftime("%Y.%m.%d")
    undo(other)
    other.push(other.board.parse_pdn("15x22"))
    assert other.pdn() == session.pdn()


def test_a_set_up_position_in_pdn() -> None:
    session = session_of("14x23", fen="B:W18,31:B14")
    assert session.start_fen == "B:W18,31:B14"
    other = GameSession()
    other.load_pdn(session.pdn())
    assert (other.start_fen, other.texts) == (session.start_fen, ["14x23"])
    assert other.fen() == session.fen()


def test_comments_and_variations_of_a_file_are_kept() -> None:
    text = '[Event "E"]\n\n{first} 1. 11-15! {good} 22-18 (22-17 8-11) 2. 15x22 *\n'
    session = GameSession()
    session.load_pdn(text)
    out = session.pdn()
    for part in ("{first}", "11-15!", "{good}", "(1... 22-17 2. 8-11)", '[Event "E"]'):
        assert part in out
    session.go_to(1)
    session.push(session.board.parse_pdn("23-19"))
    assert "{good} 1... 23-19 (1... 22-18 2. 15x22) (1... 22-17 2. 8-11) *" in session.pdn().replace("\n", " ")


def test_a_move_in_the_past_of_a_game_that_is_over_makes_a_variation() -> None:
    session = session_of("11-15", "22-18", "15x22")
    session.resign(Color.WHITE)
    session.go_to(0)
    session.push(session.board.parse_pdn("9-14"))
    assert (session.texts, session.ending, session.on_main_line) == (["9-14"], None, False)
    session.push(session.board.parse_pdn("22-18"))
    session.push(session.board.parse_pdn("5-9"))
    session.go_to(1)
    session.push(session.board.parse_pdn("22-17"))  # a variation of the variation
    assert session.others() == ("22-18",)
    assert "1. 11-15 (1. 9-14 22-18 (1... 22-17) 2. 5-9) 1... 22-18 2. 15x22 1-0" in session.pdn().replace("\n", " ")
    assert '[Result "1-0"]' in session.pdn()
    assert session.turn_to_variation()
    assert (session.texts, session.ply) == (["9-14", "22-18", "5-9"], 2)
    session.go_to(1)
    assert session.others() == ("11-15",)
    assert session.turn_to_variation()
    assert (session.texts, session.ply) == (["11-15", "22-18", "15x22"], 1)
    assert session.ending is not None
    assert session.ending.text == "Black wins: White resigned"
    again = GameSession()
    again.load_pdn(session.pdn())
    assert again.pdn() == session.pdn()
    again.go_to(1)
    assert again.turn_to_variation()
    again.remove_variation()
    assert again.on_main_line
    assert "(" not in again.pdn()
    with pytest.raises(SessionError, match="only variations"):
        again.remove_variation()
    again.go_to(0)
    assert again.others() == ()
    assert not again.turn_to_variation()


def test_a_running_game_is_the_line_that_is_played_on() -> None:
    session = session_of("11-15", "22-18", "15x22")
    session.go_to(1)
    session.push(session.board.parse_pdn("23-19"))  # the game now; the old moves are a variation
    session.go_to(2)
    assert session.turn_to_variation()
    session.go_to(3)
    assert not session.on_main_line
    session.push(session.board.parse_pdn("25x18"))
    assert session.on_main_line
    assert session.texts == ["11-15", "22-18", "15x22", "25x18"]
    session.go_to(2)
    assert session.turn_to_variation()
    assert (session.texts, session.on_main_line) == (["11-15", "23-19"], False)
    session.resign(Color.BLACK)
    assert (session.finished, session.on_main_line) == (True, True)
    assert '[Result "0-1"]' in session.pdn()
    assert "1. 11-15 23-19 (1... 22-18 2. 15x22 25x18) 0-1" in session.pdn().replace("\n", " ")


def test_a_file_with_a_start_without_pieces_is_refused() -> None:
    session = session_of("11-15")
    with pytest.raises(FenError, match="no game can begin"):
        session.load_pdn('[SetUp "1"]\n[FEN "B:WK1:B"]\n[Result "*"]\n\n*\n')
    assert session.texts == ["11-15"]


def test_a_variation_may_end_the_game_by_the_rules() -> None:
    session = session_of("1-6", fen="B:WK32:BK1")
    session.resign(Color.WHITE)
    session.go_to(0)
    for text in SHUFFLE:
        session.push(session.board.parse_pdn(text))
    assert session.is_over
    assert session.ending is not None
    assert session.ending.text == "Draw: threefold repetition"
    assert '[Result "1-0"]' in session.pdn()
    session.go_to(1)
    assert session.turn_to_variation()
    assert session.is_over
    assert session.ending.text == "Black wins: White resigned"


def test_what_is_said_of_moves() -> None:
    session = GameSession()
    with pytest.raises(SessionError, match="no move"):
        session.annotate(1, "good")
    push_at(session, session.board.parse_pdn("11-15"), 298.34)
    assert session.annotation() == (None, "")
    session.annotate(3, "very \n good {really}")
    assert session.annotation() == (3, "very good {really}")
    again = GameSession()
    again.load_pdn(session.pdn())
    assert again.annotation() == session.annotation()
    assert again.nodes[0].clock == 298.3
    session.annotate(None, "")
    assert session.annotation() == (None, "")
    assert session.nodes[0].clock == 298.3


def test_a_removed_variation_leaves_the_others_of_its_place() -> None:
    session = session_of("11-15", "22-18")
    session.resign(Color.BLACK)
    for text in ("9-14", "10-14", "12-16"):
        session.go_to(0)
        session.push(session.board.parse_pdn(text))
    while session.texts != ["9-14"]:
        session.turn_to_variation()
    session.remove_variation()
    assert session.texts == ["11-15", "22-18"]
    session.go_to(1)
    assert set(session.others()) == {"10-14", "12-16"}


def test_why_a_game_was_left_unfinished_is_kept() -> None:
    session = GameSession()
    session.load_pdn('[Result "*"]\n[Termination "adjourned"]\n\n1. 11-15 *')
    assert '[Termination "adjourned"]' in session.pdn()
    session.resign(Color.BLACK)
    assert '[Termination "Black resigned"]' in session.pdn()


def test_what_is_said_before_a_move_is_shown_and_edited_with_the_rest() -> None:
    session = GameSession()
    session.load_pdn("1. {[%x 1] the old} 11-15 {way} 22-18 ({or} 1... 23-19) *")
    session.turn_to_variation()
    assert session.annotation() == (None, "or")
    session.go_to(1)
    assert session.annotation() == (None, "the old way")
    session.annotate(1, None)
    assert "{[%x 1] the old}" in session.pdn()
    session.annotate(1, "the way")
    assert session.annotation() == (1, "the way")
    assert "1. 11-15! {[%x 1]} {the way}" in session.pdn()


@given(st.data())
def test_variations_against_a_tree_of_all_that_was_played(data: st.DataObject) -> None:
    """After the end of a game, all lines ever played are kept, also in PDN, and the main line stays the game."""
    session = session_of("11-15", "22-18", "15x22", "25x18")
    session.resign(Color.WHITE)
    game = moves_of(session)
    ways = {tuple(game[:n]) for n in range(len(game) + 1)}
    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.booleans()) or session.board.outcome() or session.is_over:
            session.go_to(data.draw(st.integers(0, len(session.nodes))))
            if data.draw(st.booleans()):
                session.turn_to_variation()
        else:
            session.push(data.draw(st.sampled_from(session.board.legal_moves[:3])))
        ways |= {tuple(session.board.move_stack[:n]) for n in range(session.ply + 1)}
    for one in (session, loaded(session.pdn())):
        assert set(ways_of(one.to_game().moves)) == ways
        assert [node.move for node in one.to_game().moves] == game
        assert one.to_game().result == "1-0"


def loaded(text: str) -> GameSession:
    session = GameSession()
    session.load_pdn(text)
    return session


def ways_of(line: list[PdnNode], before: tuple[Move, ...] = ()) -> Iterator[tuple[Move, ...]]:
    """Yields the moves from the start to each position of a line and its variations."""
    yield before
    for node in line:
        for variation in node.variations:
            yield from ways_of(variation, before)
        before = (*before, node.move)
        yield before


def test_results_of_files() -> None:
    session = GameSession()
    session.load_pdn("1. 11-15 0-1")
    assert session.ending is not None
    assert session.ending.text == "White wins"
    session.load_pdn("1. 11-15 0-0")
    assert session.ending is not None
    assert (session.ending.text, session.ending.winner) == ("Both lose", None)
    assert session.pdn().rstrip().endswith("0-0")
    session.load_pdn("1. 11-15 *")
    assert session.ending is None
    session.load_pdn('[SetUp "1"]\n[FEN "B:W12:B3,4"]\n[Result "0-1"]\n\n1. 4-8 0-1')
    assert session.ending is not None
    assert session.ending.text == "Black wins: White has no legal move"
    moves = " ".join(SHUFFLE)
    session.load_pdn(f'[SetUp "1"]\n[FEN "B:WK32:BK1"]\n\n{moves} 1-6 1-0')  # played on after the repetition
    assert session.ending is not None
    assert session.ending.text == "Black wins"
    session.go_to(8)
    with pytest.raises(SessionError, match="over here: Draw"):
        session.push(session.board.parse_pdn("1-5"))
    redo(session)
    assert session.is_over
    session.load_pdn(f'[SetUp "1"]\n[FEN "B:WK32:BK1"]\n[Result "1-0"]\n\n{moves} 1-0')
    assert session.ending is not None
    assert (session.ending.reason, session.ending.result) == ("", "1-0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[GameType "20"]\n1. 32-28 *', "international draughts, not English"),
        ('[GameType "25,W,8,8,A0,0"]\n1. c3-d4 *', "Russian draughts, not English"),
        ("1. 32-28 19-23", "line 1, column 4: 32-28 is illegal"),
        ("", "no game"),
        ("hello", "cannot read 'hello'"),
        ("\x00\xff\x7fELF", "cannot read"),
        ("{unclosed", "not closed"),
        ('[FEN "B:W1:B32"]\n1. 11-15', "FEN"),
        ('[SetUp "1"]\n1. 11-15', "no FEN"),
        ("1. 11-15 " * 3000, "illegal"),
    ],
)
def test_a_pdn_that_cannot_be_read_is_refused_in_one_line(text: str, message: str) -> None:
    session = session_of("9-14")
    before = state(session)
    with pytest.raises(PdnError, match=message) as caught:
        session.load_pdn(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert state(session) == before


def test_fen_in() -> None:
    session = session_of("11-15")
    session.load_fen(" W:W K5, 32:\n B1-4 ")
    assert session.fen() == "W:W32,K5:B1,2,3,4"
    assert session.ply == 0
    session.load_fen("b:w10:b2")
    assert session.fen() == "B:W10:B2"
    for text, reason in (
        ("W:W:B", "Black has no pieces and White has no pieces"),
        ("B:WK1:B", "Black has no pieces"),
        ("W:W:B1", "White has no pieces"),
        ("W:W12:B3,8", "White has no legal move"),
    ):
        with pytest.raises(FenError, match=reason):
            session.load_fen(text)
        assert session.fen() == "B:W10:B2"


def test_paste() -> None:
    session = GameSession()
    assert session.paste(" W:WK5:B1 ") == "position"
    assert session.paste("b:w10:b2") == "position"
    assert session.fen() == "B:W10:B2"
    assert session.paste("1. 11-15 22-18") == "game"
    assert session.ply == 2
    before = state(session)
    for text, error in (("", SessionError), (" \n", SessionError), ("W:W", FenError), ("B:W1:B32", FenError)):
        with pytest.raises(error) as caught:
            session.paste(text)
        assert "\n" not in str(caught.value)
        assert state(session) == before
    assert session.paste('\ufeff[Black "\ud83d"]\n{\udc00} 1. 11-15') == "game"
    assert session.names[Color.BLACK] == "?"
    session.pdn().encode()


@given(st.text(max_size=200) | st.text('[]{}();"0123456789-x.*!?$ \nBWFEN:K,', max_size=80))
def test_any_text_is_taken_or_refused_in_one_line(text: str) -> None:
    session = session_of("9-14")
    before = state(session)
    refused = ""
    try:
        session.paste(text)
    except DraughtsError as error:
        refused = str(error)
    if refused:
        assert len(refused.splitlines()) == 1
        assert state(session) == before
    else:
        read_game(session.pdn())
        session.pdn().encode()


def test_files(tmp_path: Path) -> None:
    session = session_of("11-15", "22-18")
    path = tmp_path / "game.pdn"
    session.save_file(path)
    other = GameSession()
    other.load_file(path)
    assert other.texts == session.texts
    path.write_bytes('[Black "Müller"]\n1. 11-15 *'.encode("latin-1"))
    other.load_file(path)
    assert other.names[Color.BLACK] == "Müller"
    for bad in (tmp_path / "none.pdn", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(StorageError, match="cannot read") as caught:
            other.load_file(bad)
        assert "\n" not in str(caught.value)
    with pytest.raises(StorageError, match="cannot write"):
        session.save_file(tmp_path / "no folder" / "game.pdn")


def test_a_file_of_parts_in_utf_8_and_latin_1(tmp_path: Path) -> None:
    path, names = tmp_path / "games.pdn", ["Zoë", "Łukasz", "Müller"]
    games = [f'[Black "{name}"]\r\n1. 11-15 *\r\n'.encode("latin-1" if name == "Müller" else "utf-8") for name in names]
    path.write_bytes(b"".join(games))
    assert [game.headers["Black"] for game in read_games(read_text(path))] == names
    session_of("11-15").save_file(path, add=True)
    assert [game.headers["Black"] for game in read_games(path.read_text("utf-8"))][:3] == names


def test_a_file_too_large(tmp_path: Path) -> None:
    large = tmp_path / "large.pdn"
    large.touch()
    os.truncate(large, LARGEST_TEXT + 1)  # takes no room on the disk
    with pytest.raises(StorageError, match="larger than 64 MiB"):
        read_text(large)
    with pytest.raises(StorageError, match="larger than 1 MiB"):
        read_text(large, most=1 << 20)
    assert len(read_text(large, most=LARGEST_TEXT + 1)) == LARGEST_TEXT + 1


MANY = """\
{a remark} [Event "One"]
[Result "1-1"]

1. 11-15 (11-16 24-19) 22-18 1-1 {so} [Black "A"]
[White "B"]
1. 9-13 * [GameType "20"] 1. 32-28 *
; closing remark
1. 10-15 11-15 1-0
[Event "Last"] 1. 12-16 0-1 0-1 {end}
"""


def test_many_games() -> None:
    games = PdnGames(MANY)
    assert games.titles == [
        "One, 1/2-1/2, 1 move",
        "A - B, *, 1 move",
        "Black - White, *, 1 move",
        "Black - White, 1-0, 1 move",
        "Last, 0-1, 1 move",
    ]
    assert [str(node.move) for node in games.game(1).moves] == ["11-15", "22-18"]
    assert games.game(2).headers["Black"] == "A"
    with pytest.raises(PdnError, match=r"^line 6, column .*international"):
        games.game(3)
    with pytest.raises(PdnError, match=r"^line 8, column 10: 11-15 is illegal"):
        games.game(4)
    session = GameSession()
    session.load_game(games.game(5))
    assert session.texts == ["12-16"]
    for number in (0, 6):
        with pytest.raises(PdnError, match="holds 5 games"):
            games.game(number)


def test_games_of_a_text_are_numbered_as_they_are_read() -> None:
    errors: list[PdnError] = []
    read = list(read_games(MANY, on_error=errors.append))
    games = PdnGames(MANY)
    loaded: list[PdnGame] = []
    failed: list[str] = []
    for number in range(1, len(games.titles) + 1):
        try:
            loaded.append(games.game(number))
        except PdnError as error:
            failed.append(str(error))
    assert loaded == read
    assert failed == list(map(str, errors))
    assert PdnGames(MANY.replace("\n", "\r\n")).titles == games.titles
    assert PdnGames("").titles == []


@pytest.mark.skipif(not ACF_GAMES.exists(), reason="the games of the American Checker Federation are not here")
def test_real_games_go_in_and_out() -> None:
    with ACF_GAMES.open(encoding="latin-1") as file:
        text = "".join(line for line, _ in zip(file, range(2500), strict=False))
    games = PdnGames(text)
    session, other = GameSession(), GameSession()
    for number in range(1, min(60, len(games.titles))):
        game = games.game(number)
        assert games.titles[number - 1] == title_of(game)
        session.load_game(game)
        assert moves_of(session) == [node.move for node in game.moves]
        other.load_pdn(session.pdn())
        assert (other.texts, other.headers, other.names) == (session.texts, session.headers, session.names)
        assert (other.ending is None) == (session.ending is None)


def push_at(session: GameSession, move: Move, seconds: float) -> None:
    session.push(move)
    note_clock(session.nodes[-1], seconds)


def test_a_game_handed_out_does_not_change() -> None:
    session = session_of("11-15")
    game = session.to_game()
    text = format_game(game)
    push_at(session, session.board.parse_pdn("22-18"), 10)
    undo(session, 2)
    push_at(session, session.board.parse_pdn("11-15"), 12)
    assert format_game(game) == text


def test_clocks_are_noted() -> None:
    session = GameSession()
    push_at(session, session.board.parse_pdn("11-15"), 298.34)
    push_at(session, session.board.parse_pdn("22-18"), 3725)
    assert [node.clock for node in session.nodes] == [298.3, 3725]
    assert "{[%clk 0:04:58.3]}" in session.pdn().replace("\n", " ")
    undo(session, 2)
    push_at(session, session.board.parse_pdn("9-14"), 200)
    assert [node.clock for node in session.nodes] == [200]


def test_the_game_needs_no_pygame() -> None:
    root = Path(__file__).parent.parent
    files = [file for room in ("game", "archive", "exercises") for file in (root / "gui" / room).glob("[!_]*.py")]
    names = [".".join(file.relative_to(root).with_suffix("").parts) for file in files]
    code = f"import sys, importlib\nfor name in {names}: importlib.import_module(name)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert not {name.split(".")[0] for name in loaded.split()} & {"pygame", "pygame_menu", "torch", "ray", "learner"}


def test_a_game_keeps_the_day_and_the_time_at_which_it_began() -> None:
    before = datetime.datetime.now().replace(microsecond=0)
    headers = read_game(GameSession().pdn()).headers
    begun = datetime.datetime.strptime(f"{headers['Date']} {headers['Time']}", "%Y.%m.%d %H:%M:%S")
    assert before <= begun <= datetime.datetime.now()
