"""Drawing without a screen: layouts, pieces that shapes tell apart, what the board shows, when panels repaint."""

import os
from collections.abc import Iterator

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

import numpy as np
import pygame
from hypothesis import given
from hypothesis import strategies as st

from engine.board import Board
from engine.fen import Color
from gui.display import start_pygame
from gui.game.messages import Message
from gui.game.squares import number_at, square_between
from gui.views.animation import animate
from gui.views.board_view import Arrow, BoardPicture, BoardView, Motion, sorted_pieces
from gui.views.geometry import (
    GameLayout,
    Rect,
    game_layout,
    panel_heights,
    square_rect,
    square_under,
)
from gui.views.icons import ICONS, icon
from gui.views.move_panels import LinePanel, LineState, MoveList, MoveListState
from gui.views.panels import BalanceBar, GraphPanel, GraphState, StatusPanel, ThoughtHead, ThoughtPanel
from gui.views.pieces import piece
from gui.views.sounds import Sounds, knock, tune
from gui.views.text import Text
from gui.views.theme import RGB, THEMES, Theme
from gui.views.widgets import Button, Buttons, Question, Style, tooltip

WALNUT, PAPER, CLEAR = THEMES["Walnut"], THEMES["Paper"], THEMES["Clear (colour-blind)"]
WINDOWS = [(480, 360), (640, 480), (1024, 768), (1366, 768), (1920, 1080), (3840, 2160), (600, 900), (1080, 1920)]


@pytest.fixture(scope="module", autouse=True)
def screen() -> Iterator[None]:
    start_pygame()
    pygame.display.set_mode((64, 64))
    yield
    pygame.quit()


@pytest.fixture
def style() -> Style:
    return Style(WALNUT, Text(), 16)


def pixels(surface: pygame.Surface) -> np.ndarray:
    """[width, height, 3]."""
    return pygame.surfarray.array3d(surface).astype(int)


def gray(surface: pygame.Surface) -> np.ndarray:
    """Lightness only, as seen by a person who sees no colours."""
    return pixels(surface) @ np.array([0.299, 0.587, 0.114])


def parts(layout: GameLayout) -> list[Rect]:
    return [layout.board, layout.bar, layout.top, layout.bottom, layout.status, layout.toolbar, layout.side]


@given(width=st.integers(480, 4000), height=st.integers(360, 2400), scale=st.sampled_from([0.75, 1.0, 1.5, 2.0]))
def test_layouts_hold_everything_and_nothing_overlaps(width: int, height: int, scale: float) -> None:
    layout = game_layout(width, height, scale)
    assert layout.board.w == layout.board.h
    assert layout.board.w % 8 == 0
    assert layout.board.w >= 0.3 * min(width, height)
    for index, rect in enumerate(parts(layout)):
        assert rect.x >= 0
        assert rect.y >= 0
        assert rect.right <= width, rect
        assert rect.bottom <= height, rect
        assert not any(rect.colliderect(other) for other in parts(layout)[:index])


@pytest.mark.parametrize("size", WINDOWS)
def test_the_board_is_the_largest_thing(size: tuple[int, int]) -> None:
    layout = game_layout(*size)
    assert layout.board.w >= 0.55 * min(size)
    assert layout.toolbar.h >= 1.5 * layout.unit


@pytest.mark.parametrize("flipped", [False, True])
def test_squares_and_points_are_inverse(flipped: bool) -> None:
    board = Rect(13, 7, 400, 400)
    for number in range(1, 33):
        assert square_under(board, square_rect(board, number, flipped).center, flipped) == number
    assert square_rect(board, 1, False) == Rect(63, 7, 50, 50)  # the upper left dark square, seen by White
    assert square_rect(board, 32, True) == Rect(63, 7, 50, 50)
    middles = [(38 + 50 * column, 32 + 50 * row) for column in range(8) for row in range(8)]
    dark = sum(square_under(board, middle, flipped) is not None for middle in middles)
    assert dark == 32
    assert square_under(board, (13, 7), flipped) is None
    assert square_under(board, (12, 30), flipped) is None


def test_rectangles() -> None:
    rect = Rect(0, 0, 100, 40)
    assert rect.cut_top(10, 2) == (Rect(0, 0, 100, 10), Rect(0, 12, 100, 28))
    assert rect.cut_bottom(10, 2) == (Rect(0, 30, 100, 10), Rect(0, 0, 100, 28))
    assert rect.cut_left(500, 2) == (Rect(0, 0, 100, 40), Rect(100, 0, 0, 40))
    columns = rect.columns([1, 1, 1], 5)
    assert columns[0].unionall(columns[1:]) == rect
    assert sum(column.w for column in columns) == 90
    assert [column.w for column in rect.columns([1, 2], 10)] == [30, 60]


@given(room=st.integers(0, 3000))
def test_panels_share_the_height_and_the_least_needed_goes_first(room: int) -> None:
    wanted = [("table", 5.0, 11.0, 3), ("graph", 3.0, 7.0, 5), ("moves", 5.0, 8.0, 1)]
    heights = panel_heights(room, 10, 4, wanted)
    assert sum(heights.values()) + 4 * max(0, len(heights) - 1) <= room or not heights
    assert list(heights) == [name for name, *_ in wanted if name in heights]
    if "graph" in heights:
        assert len(heights) == 3
    if "table" in heights:
        assert "moves" in heights


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("size", [32, 90])
def test_men_and_kings_of_both_sides_differ_without_colour(theme: Theme, size: int) -> None:
    seen = {}
    for color in Color:
        for king in (False, True):
            surface = pygame.Surface((size, size))
            surface.fill(theme.dark_square)
            surface.blit(piece(size, color, king, theme), (0, 0))
            seen[color, king] = gray(surface)
    names = list(seen)
    for index, one in enumerate(names):
        for other in names[:index]:
            assert np.mean(np.abs(seen[one] - seen[other]) > 25) > 0.04, (one, other)


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Contrast ratio of WCAG 2, 1 to 21."""

    def luminance(color: tuple[int, int, int]) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in color)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_text_can_be_read(theme: Theme) -> None:
    for background in (theme.background, theme.panel, theme.raised):
        assert contrast(theme.text, background) >= 7
        assert contrast(theme.dim, background) >= 3.5
    assert contrast(theme.accent_text, theme.accent) >= 4.5
    assert contrast(theme.warning, theme.panel) >= 4.5


def drawn(picture: BoardPicture, size: int = 400, theme: Theme = WALNUT, motion: Motion | None = None) -> np.ndarray:
    surface = pygame.Surface((size, size))
    BoardView(Text()).draw(surface, Rect(0, 0, size, size), picture, theme, motion or Motion())
    return pixels(surface)


def changed_squares(before: np.ndarray, after: np.ndarray, flipped: bool = False) -> set[int]:
    """Numbers of the dark squares that look different; light ones count as 0."""
    size = before.shape[0] // 8
    found = set()
    for column in range(8):
        for row in range(8):
            area = np.s_[column * size : (column + 1) * size, row * size : (row + 1) * size]
            if np.any(np.abs(before[area] - after[area]) > 8):
                found.add((number_at(7 - row, 7 - column) if flipped else number_at(row, column)) or 0)
    return found


START = sorted_pieces(Board().piece_map())


def test_the_board_shows_each_thing_on_its_square() -> None:
    plain = drawn(BoardPicture(START))
    for picture, squares in (
        (BoardPicture(START[:-1]), {32}),
        (BoardPicture(START, last=(11, 15)), {11, 15}),
        (BoardPicture(START, targets=frozenset({15, 16})), {15, 16}),
        (BoardPicture(START, movable=frozenset({9, 10})), {9, 10}),
        (BoardPicture(START, selected=11), {11}),
        (BoardPicture(START, cursor=18), {18}),
        (BoardPicture(START, marked=frozenset({20})), {20}),
        (BoardPicture(START, taken=frozenset({22})), {22}),
    ):
        assert changed_squares(plain, drawn(picture)) == squares, picture
    arrow = changed_squares(plain, drawn(BoardPicture(START, arrows=(Arrow((11, 15), 1.0),))))
    assert {11, 15} <= arrow


def test_the_flipped_board_is_the_same_turned_round() -> None:
    plain, flipped = drawn(BoardPicture(START, numbers=False)), drawn(BoardPicture(START, True, numbers=False))
    pieces = changed_squares(drawn(BoardPicture((), True, numbers=False)), flipped, flipped=True)
    assert pieces == {number for number, _, _ in START}
    # Black stands above, and below when flipped.
    assert plain[:, :150].mean() < plain[:, 250:].mean()
    assert flipped[:, :150].mean() > flipped[:, 250:].mean()


def test_pieces_that_must_capture_are_marked_by_shape_not_by_colour_alone() -> None:
    may = drawn(BoardPicture(START, movable=frozenset({11})), theme=CLEAR)
    must = drawn(BoardPicture(START, movable=frozenset({11}), must=True), theme=CLEAR)
    rect = square_rect(Rect(0, 0, 400, 400), 11, False)
    area = np.s_[rect.x : rect.right, rect.y : rect.bottom]
    weights = np.array([0.299, 0.587, 0.114])
    assert np.mean(np.abs(may[area] @ weights - must[area] @ weights) > 25) > 0.03


def test_a_still_board_is_drawn_once() -> None:
    view, surface, area = BoardView(Text()), pygame.Surface((400, 400)), Rect(0, 0, 400, 400)
    assert view.draw(surface, area, BoardPicture(START), WALNUT, Motion()) == [area]
    assert view.draw(surface, area, BoardPicture(START), WALNUT, Motion()) == []
    assert view.draw(surface, area, BoardPicture(START), PAPER, Motion()) == [area]
    view.forget()
    assert view.draw(surface, area, BoardPicture(START), PAPER, Motion()) == [area]


def test_a_dragged_piece_leaves_nothing_behind() -> None:
    view, surface, area = BoardView(Text()), pygame.Surface((400, 400)), Rect(0, 0, 400, 400)
    picture = BoardPicture(START)
    view.draw(surface, area, picture, WALNUT, Motion())
    before = pixels(surface)
    for pointer in ((100, 100), (210, 180), (395, 395)):
        rects = view.draw(surface, area, picture, WALNUT, Motion(dragged=11, pointer=pointer))
        assert all(rect.w * rect.h <= 400 * 400 for rect in rects)
    view.draw(surface, area, picture, WALNUT, Motion())
    assert np.array_equal(pixels(surface), before)


def test_a_capture_in_motion() -> None:
    board = Board("B:W18,26,27:B14,K5")
    before = board.piece_map()
    move = next(move for move in board.legal_moves if move.start == 14)
    board.push(move)
    animation = animate(move, before, board.piece_map(), now=10.0, hop=0.2)
    assert animation.crowned == (move.end >= 29)
    assert [number for number, *_ in animation.captured] == [
        square_between(a, b) for a, b in zip(move.path, move.path[1:], strict=False)
    ]
    assert {number for number, *_ in animation.captured} == set(move.captured)
    assert animation.leg(10.0)[2] == 0.0
    assert animation.leg(10.0 + animation.travel)[1:] == (move.end, 1.0)
    assert [piece[3] for piece in animation.fading(10.0)] == [1.0] * len(move.captured)
    assert animation.fading(10.0 + animation.travel + 1) == []
    assert not animation.done(10.0)
    assert animation.done(10.0 + animation.seconds)
    picture = BoardPicture(sorted_pieces(board.piece_map()), numbers=False)
    still = drawn(picture)
    half = drawn(picture, motion=Motion(now=10.1, animation=animation))
    assert {move.captured[0], move.end} <= changed_squares(still, half)


@given(st.integers(1, 32), st.sampled_from([7, 9]), st.booleans())
def test_the_square_between(start: int, step: int, down: bool) -> None:
    end = start + (step if down else -step)
    board = Rect(0, 0, 80, 80)
    if not 1 <= end <= 32:
        return
    a, b = square_rect(board, start, False).center, square_rect(board, end, False).center
    if abs(a[0] - b[0]) == 20:
        assert square_under(board, ((a[0] + b[0]) // 2, (a[1] + b[1]) // 2), False) == square_between(start, end)


def test_a_panel_is_painted_again_only_when_it_changed(style: Style) -> None:
    surface = pygame.Surface((300, 100))
    panel = StatusPanel(Message("Your move"))
    panel.rect = Rect(0, 0, 300, 60)
    assert panel.draw(surface, style) == [panel.rect]
    assert panel.draw(surface, style) == []
    calm = pixels(surface)
    panel.state = Message("you must capture: 15x22 or 18x25", "warn")
    assert panel.draw(surface, style) == [panel.rect]
    assert not np.array_equal(calm, pixels(surface))
    assert panel.draw(surface, Style(PAPER, style.text, 16)) == [panel.rect]
    panel.forget()
    assert panel.draw(surface, style) == [panel.rect]


def test_the_balance_bar_has_the_shares_in_its_order(style: Style) -> None:
    surface = pygame.Surface((20, 402))
    bar = BalanceBar(((0.5, 0.25, 0.25), False))
    bar.rect = Rect(0, 0, 20, 402)
    for flipped in (False, True):
        bar.state = ((0.5, 0.25, 0.25), flipped)
        bar.draw(surface, style)
        column = [tuple(color) for color in pixels(surface)[10, 1:401].tolist()]
        for color, share in zip(style.theme.wdl, (0.5, 0.25, 0.25), strict=True):
            assert column.count(color) == pytest.approx(400 * share, abs=4)
        assert column[5] == style.theme.wdl[2 if flipped else 0]


def test_the_graph_knows_which_ply_is_meant(style: Style) -> None:
    panel = GraphPanel(GraphState((0.5, 0.6, None, 0.2, 0.9), 4, (3,)))
    panel.rect = Rect(0, 0, 400, 100)
    plot = panel.plot()
    assert panel.ply_at((plot.x, 50), 5) == 0
    assert panel.ply_at((plot.x + plot.w // 2, 50), 5) == 2
    assert panel.ply_at((plot.right, 50), 5) == 4
    assert panel.ply_at((plot.x, 101), 5) is None
    assert panel.draw(pygame.Surface((400, 100)), style) == [panel.rect]


def test_the_move_list_follows_the_game_and_can_be_clicked(style: Style) -> None:
    panel = MoveList()
    panel.rect = Rect(0, 0, 300, 100)
    moves = tuple(f"{number}-{number + 4}" for number in range(1, 29)) * 3
    surface = pygame.Surface((300, 100))
    for ply in (1, 40, len(moves)):
        panel.state = MoveListState(moves, 0, ply)
        panel.draw(surface, style)
        places = {number: rect for rect, number in panel._places}
        assert panel.ply_at(places[ply].center) == ply
    panel.state = MoveListState(moves[:3], 1, 3, "1-0  Black wins")
    panel.draw(surface, style)
    columns = [rect.x for rect, _ in panel._places]
    assert columns[0] > columns[1]  # White moved first: the first row's left half is empty


def test_the_line_can_be_pointed_at_and_is_cut_where_room_ends(style: Style) -> None:
    panel = LinePanel()
    panel.rect = Rect(0, 0, 260, 60)
    panel.state = LineState("line", tuple(f"{number}-{number + 4}" for number in range(1, 29)))
    panel.draw(pygame.Surface((260, 60)), style)
    assert 4 <= len(panel._places) < 28
    for index, rect in enumerate(panel._places):
        assert panel.move_at(rect.center) == index
        assert rect.bottom <= 60 + style.unit
    assert panel.move_at((259, 59)) in (None, len(panel._places) - 1)


@pytest.mark.parametrize("width", [166, 299, 720])
def test_all_buttons_find_room(width: int, style: Style) -> None:
    unit = 11 if width < 200 else 16
    buttons = Buttons()
    buttons.buttons = tuple(Button(name, icon=name) for name in list(ICONS)[:14])
    buttons.rect = Rect(0, 0, width, 5 * unit)
    places = [rect for _, rect in buttons.places(unit)]
    assert len(places) == 14
    for index, rect in enumerate(places):
        assert rect.right <= width
        assert rect.bottom <= buttons.rect.bottom
        assert rect.w >= 18
        assert not any(rect.colliderect(other) for other in places[:index])
        button = buttons.at(rect.center, unit)
        assert button is not None
        assert button.name == list(ICONS)[index]


@pytest.mark.parametrize("name", ICONS)
def test_every_icon_shows_something_of_its_own(name: str) -> None:
    image = pygame.surfarray.array_alpha(icon(name, 24, (255, 255, 255)))
    assert 0.05 < (image > 128).mean() < 0.6
    others = [pygame.surfarray.array_alpha(icon(other, 24, (255, 255, 255))) for other in ICONS if other != name]
    assert all((np.abs(image.astype(int) - other) > 100).mean() > 0.02 for other in others)


def test_questions_by_mouse_and_keys(style: Style) -> None:
    surface = pygame.Surface((480, 360))
    question = Question("Resign as Black? White wins the game.", {"yes": ("Resign", None), "no": ("Play on", None)})
    rect = question.draw(surface, style)
    assert Rect(0, 0, 480, 360).inset(-1).colliderect(rect)
    assert question.key("return") == "yes"
    assert question.key("right") is None
    assert question.key("return") == "no"
    assert question.key("escape") == "no"
    for button, place in question.buttons.places(style.unit):
        assert question.press(place.center, style.unit) == button.name
    assert question.press((1, 1), style.unit) is None


@pytest.mark.parametrize("corner", [(0, 0), (470, 0), (0, 350), (470, 350)])
def test_tooltips_stay_in_the_window(corner: tuple[int, int], style: Style) -> None:
    near = Rect(*corner, 10, 10)
    rect = tooltip(pygame.Surface((480, 360)), near, "Play again what was taken back (Ctrl+Y or Ctrl+Shift+Z)", style)
    assert rect.x >= 0
    assert rect.y >= 0
    assert rect.right <= 480
    assert rect.bottom <= 360
    assert not rect.colliderect(near)


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=60), st.integers(20, 300))
def test_text_is_cut_to_its_width(text: str, width: int) -> None:
    words = Text()
    cut = words.cut(text, 14, width)
    assert cut == text or cut.endswith("…")
    assert words.width(cut, 14) <= max(width, words.width("…", 14))
    for line in words.wrap(text + " and more words", 14, max(width, 120)):
        assert words.width(line, 14) <= max(width, 120)


def test_sounds_without_a_device_say_so_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SDL_AUDIODRIVER", "no_such_driver")
    sounds = Sounds()
    sounds.play("move", on=False)
    assert sounds.error == ""
    sounds.play("move", on=True)
    assert sounds.error.startswith("no sound: ")
    assert "\n" not in sounds.error
    assert capfd.readouterr().err == ""
    wave = knock(300.0, 0.1)
    assert wave.shape == (4410, 2)
    assert 3000 < np.abs(wave).max() < 32767
    notes = tune((300.0, 400.0))
    first = int(np.argmax(np.abs(notes).max(axis=1) > 1000))
    assert 0.3 < first / 44_100 < 0.4  # the last move is heard before
    assert notes.shape[1] == 2


@pytest.mark.parametrize("width", [110, 145, 300, 500])
def test_the_evaluation_is_whole_and_the_effort_gives_way(width: int, style: Style) -> None:
    drawn: list[str] = []
    style = Style(style.theme, Recorder(drawn), 11)
    panel = ThoughtPanel(ThoughtHead(None, "Black −0.27", ("12k simulations", "depth 12", "3456/s"), ()))
    panel.rect = Rect(0, 0, width, 50)
    panel.draw(pygame.Surface((width, 50)), style)
    assert drawn[0] == "Black −0.27"
    assert "12k simulations · depth 12 · 3456/s".startswith(drawn[1])
    assert "…" not in drawn[1]
    assert bool(drawn[1]) == (width > 110)
    assert drawn[1].endswith("3456/s") == (width > 145)


def test_the_result_in_the_move_list_is_whole(style: Style) -> None:
    drawn: list[str] = []
    style = Style(style.theme, Recorder(drawn), 11)
    panel = MoveList()
    panel.rect = Rect(0, 0, 150, 60)
    moves = tuple(f"{number}-{number + 4}" for number in range(1, 29))
    result = "½–½  Draw: 80 plies without a capture"
    panel.state = MoveListState(moves, 0, len(moves), result)
    panel.draw(pygame.Surface((150, 60)), style)
    assert " ".join(drawn[-2:]) == " ".join(result.split())
    assert all(style.text.width(line, 11, True) <= 150 for line in drawn[-2:])


class Recorder(Text):
    """Writes down what is drawn."""

    def __init__(self, drawn: list[str]) -> None:
        super().__init__()
        self.drawn = drawn

    def render(self, text: str, size: int, color: RGB, bold: bool = False) -> pygame.Surface:
        self.drawn.append(text)
        return super().render(text, size, color, bold)
