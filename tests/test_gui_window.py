"""The real program in a real window: a game by mouse, one by keyboard, a crash, pictures of what people see.

CROWNHEAD_PICTURES names a folder in which the pictures stay.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import draughts
import numpy as np
import pytest
from draughts.PDN import PDNReader

pytest.importorskip("pygame", reason="the window needs pygame")

from programs import until
from real_window import MISSING, RealWindow, screen, window

from engine.board import Board, Move
from engine.fen import Color
from engine.pdn import format_game
from engine.players import AlphaBetaPlayer
from gui.game.move_input import MoveInput
from gui.game.opponents import OpponentSpec
from gui.preferences import Preferences
from gui.views.geometry import game_layout
from gui.views.theme import THEMES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"a window needs {', '.join(MISSING)} installed"),
]
BY_HAND = Preferences(one_click=False, auto_complete=False, animation_ms=40, sounds=False)
MOST_PLIES = 400


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    with screen() as name:
        yield name


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("CROWNHEAD_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def eager(board: Board) -> Move:
    """A move that shortens the game: a capture if possible, else a move forward."""
    return max(board.legal_moves, key=lambda move: (len(move.captured), move.end))


def check_pdn(seen: RealWindow, result: str) -> None:
    """The saved game is whole for this program and for pydraughts."""
    game = seen.game()
    assert game is not None
    assert game.result == result != "*"
    board = Board(game.start_fen)
    for node in game.moves:
        board.push(node.move)
    other = draughts.Board(variant="english")
    (read,) = PDNReader(pdn_text=format_game(game)).games
    texts = Board(game.start_fen).pdn_line(node.move for node in game.moves)
    assert read.moves == list(texts)
    for node in game.moves:
        # Not by its text: pydraughts takes 10x1 for any capture with these ends, also where it is that of one jump.
        other.push(draughts.Move(board=other, steps_move=list(node.move.path)))
    assert not board.legal_moves or result == "1/2-1/2"
    assert len(other.legal_moves()) == len(board.legal_moves)


def shows_board(picture: np.ndarray, seen: RealWindow) -> bool:
    """Whether corners of all light squares have the theme's colour."""
    area, size = seen.board, seen.board.w // 8
    light = [picture[area.x + size * c + 2, area.y + size * r + size - 3] for c in range(8) for r in range(c % 2, 8, 2)]
    return all(np.array_equal(pixel, THEMES["Walnut"].light_square) for pixel in light)


def test_a_whole_game_by_mouse(display: str, tmp_path: Path, pictures: Path) -> None:
    with window(display, tmp_path, "--opponent", "random", "--side", "black", preferences=BY_HAND) as seen:
        until(lambda: shows_board(seen.picture(), seen), "a board in the window")
        for turn in range(MOST_PLIES):
            board = seen.position()
            game = seen.game()
            if game is not None and game.result != "*":
                break
            move, plies = eager(board), board.ply
            if len(move.path) == 2 and turn % 3 == 0:
                seen.drag_move(move, flipped=True)
            else:
                seen.click_move(move, flipped=True)
            if turn % 5 == 0:  # during the agent's move and the animation clicks do no harm
                # Not on an own piece: it would be chosen if the answer came first.
                other = next(square for square, (color, _) in board.piece_map().items() if color is Color.WHITE)
                seen.click(*seen.square(other, flipped=True))
                seen.click(*seen.square(other, flipped=True))
            until(lambda plies=plies: seen.plies() > plies, f"{move} in {board.fen()}")  # type: ignore[misc]
            until(lambda plies=plies: seen.plies() > plies + 1 or seen.game().result != "*", "the answer")  # type: ignore
        game = seen.game()
        assert game is not None
        check_pdn(seen, game.result)
        assert (game.headers["Black"], game.headers["White"]) == ("Human", "random")
        assert shows_board(seen.still_picture(pictures / "mouse_game_end.png"), seen)
        seen.close()
        assert seen.errors.read_text() == ""


def set_up_by_keys(seen: RealWindow) -> None:
    """From the main menu: White against random, all by keys."""
    until(lambda: seen.picture().any(), "the menu")
    seen.focus()
    shown = seen.still_picture(seconds=0.3)
    for keys in (
        ("Down", "Return"),  # New game
        ("Down", "Down", "Right"),  # You play: White
        ("Down", "Return"),  # Against
        ("Right",),  # Kind: network
        ("Down", "Down", "Down", "Right", "Right", "Right"),  # the strength slider, of the network
        ("Up", "Up", "Up", "Right", "Right", "Right"),  # Kind: alpha-beta, roll-outs, random
        ("Escape",),
        ("Up", "Up", "Up"),  # Start
    ):
        seen.keys(*keys)
        # A busy machine may rest before it has taken the keys: those of the next page would then go to this one.
        until(lambda shown=shown: not np.array_equal(seen.picture(), shown), f"what {keys} do")  # type: ignore[misc]
        shown = seen.still_picture(seconds=0.3)
    seen.keys("Return")


def enter_by_keys(seen: RealWindow, entry: MoveInput, move: Move, typed: bool) -> None:
    """Types a move, or selects its squares with Tab and Enter; ``entry`` is a copy that gives the number of Tabs."""
    if typed:
        names = {"-": "minus", "x": "x"}
        text = "-".join(map(str, move.path)) if not move.captured else "x".join(map(str, move.path))
        seen.keys(*(names.get(sign, sign) for sign in text), "Return")
        return
    pressed = []
    for square in move.path:
        for _ in range(40):
            if entry.cursor == square:
                break
            entry.next_square()
            pressed.append("Tab")
        assert entry.cursor == square
        entry.enter()
        pressed.append("Return")
    seen.keys(*pressed)


def test_a_whole_game_by_keyboard_from_the_menu(display: str, tmp_path: Path) -> None:
    with window(display, tmp_path, "--menu", preferences=BY_HAND) as seen:
        set_up_by_keys(seen)
        entry = MoveInput(Board(), {Color.WHITE}, one_click=False, auto_complete=False)
        for turn in range(MOST_PLIES):
            # White's own move may end the game, by a third repetition too: then Black has none to make.
            until(lambda: seen.position().turn is Color.WHITE or (seen.plies() and seen.game().result != "*"), "a move")  # type: ignore
            board, game = seen.position(), seen.game()
            assert game is not None
            if game.result != "*":
                break
            entry.set_board(board)
            move, plies = eager(board), board.ply
            enter_by_keys(seen, entry, move, typed=turn % 2 == 0)
            until(lambda plies=plies: seen.plies() > plies, f"{move} in {board.fen()}")  # type: ignore[misc]
            until(lambda plies=plies: seen.plies() > plies + 1 or seen.game().result != "*", "the answer")  # type: ignore
        game = seen.game()
        assert game is not None
        check_pdn(seen, game.result)
        assert (game.headers["Black"], game.headers["White"]) == ("random", "Human")
        seen.close()
    stored = json.loads((tmp_path / "crownhead" / "preferences.json").read_text())
    assert stored["side"] == "white"
    agent = OpponentSpec.model_validate(stored["opponents"]["agent"])
    assert agent.kind == "random"
    assert agent.search.num_simulations > OpponentSpec().search.num_simulations  # what the slider did


def test_nothing_is_lost_in_a_crash(display: str, tmp_path: Path) -> None:
    with window(display, tmp_path, "--opponent", "random", "--side", "black", preferences=BY_HAND) as seen:
        until(lambda: shows_board(seen.picture(), seen), "a board in the window")
        seen.click_move(eager(Board()), flipped=True)
        until(lambda: seen.plies() == 2, "two moves")
        seen.process.send_signal(signal.SIGKILL)
        seen.process.wait(10)
    with window(display, tmp_path) as again:
        until(lambda: shows_board(again.picture(), again), "a board in the window")
        again.click_move(eager(again.position()), flipped=True)
        until(lambda: again.plies() == 4, "the same game, two moves on")
        again.close()
    assert len(list((tmp_path / "crownhead" / "games").glob("*.pdn"))) == 1


def test_second_clicks_play_nothing_and_looking_back_destroys_nothing(display: str, tmp_path: Path) -> None:
    """At human pace: clicks on a piece and its target after the first click has moved; then a look back at the game."""
    quick = Preferences(one_click=True, animation_ms=40, sounds=False)
    games = tmp_path / "crownhead" / "games"
    with window(display, tmp_path, "--opponent", "random", "--side", "black", preferences=quick) as seen:
        until(lambda: shows_board(seen.picture(), seen), "a board in the window")
        seen.click(*seen.square(12, flipped=True))
        until(lambda: seen.plies() == 2, "the only move of the piece, and the answer")
        time.sleep(0.8)
        seen.click(*seen.square(16, flipped=True))
        time.sleep(1.5)
        assert seen.plies() == 2
        seen.focus()
        seen.keys("r", "y")
        until(lambda: seen.game().result == "0-1", "the resignation")  # type: ignore[union-attr]
        (file,) = games.glob("*.pdn")
        before = file.read_bytes()
        seen.keys("Home", "9", "minus", "1", "4", "Return")
        until(lambda: len(list(games.glob("*.pdn"))) == 2, "a file for the variation")
        until(lambda: len(seen.game().moves[0].variations[0]) == 2, "the answer in it")  # type: ignore[union-attr]
        seen.close()
        game = seen.game()
        assert game is not None
        assert (game.result, len(game.moves)) == ("0-1", 2)
        assert game.moves[0].variations[0][0].move == Move(9, 14)
        assert file.read_bytes() == before


def test_closing_in_mid_search_and_a_broken_preferences_file(display: str, tmp_path: Path) -> None:
    settings = tmp_path / "crownhead" / "preferences.json"
    settings.parent.mkdir()
    settings.write_text('{"version": 1, "theme": [')
    with window(display, tmp_path, "--seconds", "600", "--side", "white") as seen:
        until(lambda: seen.picture().any(), "something in the window")
        first = seen.picture()[730:1090, 80:400]
        until(lambda: not np.array_equal(seen.picture()[730:1090, 80:400], first), "thoughts")
        seen.close()  # has little patience beside the ten minutes that the search may take
        assert seen.errors.read_text() == ""
    assert settings.with_name("preferences.json.broken").exists()
    assert json.loads(settings.read_text())["version"] == 1


def test_without_an_audio_device_nothing_is_written_to_the_terminal(display: str, tmp_path: Path) -> None:
    loud = BY_HAND.model_copy(update={"sounds": True})
    with window(display, tmp_path, "--opponent", "random", "--side", "black", preferences=loud, audio="alsa") as seen:
        until(lambda: shows_board(seen.picture(), seen), "a board in the window")
        seen.click_move(eager(Board()), flipped=True)
        until(lambda: seen.plies() == 2, "two moves")
        seen.close()
        assert seen.errors.read_text() == ""


def test_letters_typed_slowly_come_once(display: str, tmp_path: Path) -> None:
    """Also Backspace; with key presses as long as a person's, and pauses that are longer than a key's repetition."""
    with window(display, tmp_path, "--opponent", "random", "--side", "black", preferences=BY_HAND) as seen:
        until(lambda: shows_board(seen.picture(), seen), "a board in the window")
        seen.click_move(eager(Board()), flipped=True)
        until(lambda: seen.plies() == 2, "two moves")
        seen.focus()
        seen.keys("c")
        seen.still_picture()
        for name in ("g", "o", "a", "BackSpace", "o", "d"):
            time.sleep(1)
            seen.hold_key(name, seconds=0.07)
        seen.keys("Return")
        until(lambda: (game := seen.game()) is not None and "good" in game.moves[-1].comments, "the comment")
        seen.close()


def analyse(seen: RealWindow) -> None:
    """Turns analysis on and waits until arrows are on the board, and a little longer."""
    plain = seen.still_picture()[30:700].astype(int)
    seen.keys("a")
    until(lambda: (np.abs(seen.picture()[30:700] - plain) > 60).sum() > 3000, "arrows")
    time.sleep(1)


def most_mobile(board: Board) -> tuple[int, int]:
    """The square of a piece with the most moves, and their number."""
    starts = [move.start for move in board.legal_moves]
    return max(((start, starts.count(start)) for start in starts), key=lambda pair: pair[1])


def can_retry(picture: np.ndarray, seen: RealWindow) -> bool:
    """Whether the report's lower left button, "Try again", is enabled: has letters in the colour of text."""
    layout = game_layout(seen.preferences.window_width, seen.preferences.window_height)
    left, bottom = layout.side.x, layout.toolbar.bottom
    button = picture[left : left + layout.side.w // 3, bottom - 20 : bottom]
    return bool((button == THEMES["Walnut"].text).all(axis=2).any())


def test_pictures_of_what_people_see(display: str, tmp_path: Path, pictures: Path) -> None:
    """Menu, middle game, thinking, report and endgame, with the network that comes with the program."""
    quiet = Preferences(sounds=False, animation_ms=40)
    player = AlphaBetaPlayer(depth=1)  # which gives something away in six moves, for the report
    with window(display, tmp_path, "--simulations", "100", "--side", "black", "--menu", preferences=quiet) as seen:
        until(lambda: seen.picture().std() > 20, "a first picture in the window")
        seen.focus()  # not earlier: while it opens, SDL may replace the window by a second one
        seen.still_picture(pictures / "board_menu.png")
        seen.keys("Escape")
        until(lambda: shows_board(seen.picture(), seen), "a board in the window")
        board = seen.position()
        while board.ply < 12 or most_mobile(board)[1] < 2:  # to a middle game where a click alone moves nothing
            (move,) = player.choose([board])
            seen.keys(*("minus" if sign == "-" else sign for sign in board.pdn(move)), "Return")
            until(lambda plies=board.ply: seen.plies() >= plies + 2, "the answer")  # type: ignore[misc]
            board = seen.position()
        assert shows_board(seen.still_picture(), seen)
        start, _ = most_mobile(board)
        seen.click(*seen.square(start, flipped=True))
        seen.still_picture(pictures / "board_game.png")
        seen.keys("Escape")
        plain = seen.still_picture()
        analyse(seen)
        assert not np.array_equal(seen.picture(pictures / "board_thinking.png"), plain)
        seen.keys("a", "r", "y")
        until(lambda: seen.game().result == "0-1", "the resignation")  # type: ignore[union-attr]
        game = seen.still_picture()
        seen.keys("g")
        until(lambda: not np.array_equal(seen.picture(), game), "the report")
        until(lambda: can_retry(seen.picture(), seen), "the end of the report, and a fault in it")
        seen.keys("Down")  # chooses the worst move
        seen.still_picture(pictures / "board_report.png")
        seen.close()
    endgame = ("--fen", "W:WK18,27,32:BK3,20", "--side", "white", "--simulations", "100")
    with window(display, tmp_path, *endgame) as seen:
        until(lambda: shows_board(seen.picture(), seen), "a board in the window")
        seen.focus()
        seen.still_picture(seconds=2.0)  # the verdict is there
        analyse(seen)
        assert shows_board(seen.picture(pictures / "board_endgame.png"), seen)
        seen.close()
    for name in ("menu", "game", "thinking", "report", "endgame"):
        assert (pictures / f"board_{name}.png").stat().st_size < 200_000, name
