"""Menus: a scene that shows one page of pygame-menu; the pages are in ``views.menu_pages``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pygame
import pygame_menu
import pygame_menu.font
import pygame_menu.sound
from pygame_menu.font import FONT_OPEN_SANS

from .help import Action, action_for
from .messages import without_fen
from .views.board_view import BoardPicture, BoardView, Motion, sorted_pieces
from .views.geometry import Rect
from .views.scene import Scene, key_of
from .views.theme import Theme, mix

if TYPE_CHECKING:
    from .app import App

pygame_menu.sound.SOUND_INITIALIZED[0] = True  # menus are silent: they need not open the audio device
ON_OFF = [("off", False), ("on", True)]  # items of a selector
_OWN_KEYS = ("escape",)  # keys that pages do not get
_MOUSE = (pygame.MOUSEMOTION, pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP, pygame.MOUSEWHEEL)


def menu_theme(theme: Theme, unit: int) -> pygame_menu.Theme:
    """Our colours and letters as a theme of pygame-menu."""
    look = pygame_menu.Theme(
        background_color=(0, 0, 0, 0),
        title=False,
        widget_font=FONT_OPEN_SANS,
        widget_font_size=round(1.15 * unit),
        widget_font_color=theme.text,
        widget_font_antialias=True,
        widget_alignment=pygame_menu.locals.ALIGN_LEFT,
        widget_padding=(round(0.28 * unit), round(0.6 * unit)),
        widget_margin=(0, round(0.12 * unit)),
        selection_color=theme.accent,
        readonly_color=mix(theme.background, theme.dim, 0.7),
        readonly_selected_color=theme.dim,
        scrollbar_color=theme.panel,
        scrollbar_slider_color=theme.edge,
        scrollbar_slider_hover_color=theme.accent,
        scrollbar_thick=max(8, unit * 2 // 3),
        cursor_color=theme.text,
        cursor_selection_color=(*theme.accent, 100),
    )
    look.widget_selection_effect = pygame_menu.widgets.LeftArrowSelection(
        arrow_size=(round(0.55 * unit), round(0.75 * unit)), arrow_right_margin=round(0.4 * unit)
    )
    look.widget_background_inflate_to_selection = True
    look.focus_background_color = (0, 0, 0, 90)
    return look


def forget_fonts() -> None:
    """Fonts that pygame-menu keeps must not outlive the pygame that made them: using one crashes."""
    pygame_menu.font._cache.clear()


class Page:
    """What a menu shows. Subclasses set ``title`` and add widgets in ``fill``.

    Attributes:
        say: shows one line at the foot of the menu; set by the scene.
        rebuild: the widgets depend on something that changed; set by the scene.
    """

    title = ""
    board = False  # show the game's board beside the menu

    def __init__(self, app: "App") -> None:
        self.app = app
        self.say: Callable[..., None] = lambda text, alarm=False: None
        self.rebuild: Callable[[], None] = lambda: None
        self.filling = False

    def guard(self, function: Callable[[Any], None]) -> Callable[..., None]:
        """``function`` of a widget's new value, as its ``onchange``; deaf while the page is filled, when widgets report
        the values they are given."""

        def changed(*values: Any) -> None:
            if not self.filling:
                function(values[-1])

        return changed

    def fill(self, menu: pygame_menu.Menu) -> None:
        """Adds the widgets."""
        raise NotImplementedError

    def poll(self) -> None:
        """Once a frame, while the page is shown."""

    def leave(self) -> None:
        """The page is left by Escape or Back."""


def explain(widget: pygame_menu.widgets.Widget, text: str) -> pygame_menu.widgets.Widget:
    """Gives a widget the text that the foot of the menu shows while it is selected."""
    widget.set_attribute("meaning", text)
    return widget


class MenuScene(Scene):
    """One page of a menu over the whole window."""

    name = "menu"

    def __init__(self, app: "App", page: Page) -> None:
        super().__init__(app)
        self.page = page
        page.say, page.rebuild = self._say, self._want_rebuild
        self.menu: pygame_menu.Menu | None = None
        self._events: list[pygame.event.Event] = []
        self._foot = ("", False)
        self._stale, self._rebuild, self._updating = True, False, False
        self._board_view = BoardView(app.style.text)

    def _say(self, text: str, alarm: bool = False) -> None:
        self._foot, self._stale = (without_fen(text), alarm), True

    def _want_rebuild(self) -> None:
        self._rebuild = True

    def place(self) -> None:
        if self.menu is None or not self._updating:
            self._build(self.menu.get_index() if self.menu else None)
        else:
            self._rebuild = True  # not while a widget of this menu is at work

    def _build(self, index: int | None) -> None:
        unit, window = self.style.unit, self.window
        head, foot = round(min(5.2 * unit, window.h * 0.14)), round(3.0 * unit)
        beside = self.page.board and window.w > 1.25 * window.h and window.w * 42 // 100 > 22 * unit
        width = window.w * 42 // 100 if beside else window.w
        self.area = Rect(0, head, width, max(60, window.h - head - foot))
        margin = round(1.6 * unit)
        self.menu = pygame_menu.Menu(
            "",
            max(120, self.area.w - 2 * margin),
            self.area.h,
            theme=menu_theme(self.style.theme, unit),
            position=(margin, head, False),
            center_content=False,
            joystick_enabled=False,
            keyboard_ignore_nonphysical=False,  # a key let go of before its event is looked at counts
            onclose=None,
        )
        self.page.filling = True
        self.page.fill(self.menu)
        self.page.filling = False
        selectable = self.menu.get_widgets()
        if index is not None and index < len(selectable) and selectable[index].is_selectable:
            self.menu.select_widget(selectable[index])
        size = max(8 * 8, min(window.w - width - 2 * margin, window.h - 4 * unit) // 8 * 8)
        self.board_rect = (
            Rect(width + (window.w - width - size) // 2, (window.h - size) // 2, size, size) if beside else None
        )
        self._stale = True

    def handle(self, event: pygame.event.Event) -> None:
        self._events.append(event)  # they wait for ``update``, in their order

    def _take(self, event: pygame.event.Event, menu: pygame_menu.Menu) -> None:
        """Gives an event to the page, or to the window where it is a key of all menus."""
        if self.question is not None:
            super().handle(event)
            self._stale = True
            return
        if event.type == pygame.KEYDOWN:
            key = key_of(event)
            if key in _OWN_KEYS:
                self.leave()
                return
            if len(key) > 1 and action_for(self.name, key) is not None:
                super().handle(event)
                return
        before = menu.get_selected_widget()
        self._updating = True
        self._stale |= bool(menu.update([event])) or event.type in _MOUSE
        self._updating = False
        if menu.get_selected_widget() is not before:
            self._foot = ("", False)

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        return False

    def leave(self) -> None:
        """Back to where the page was opened from."""
        self.page.leave()
        self.app.go.back()

    def update(self, now: float) -> None:
        events, self._events = self._events, []
        for index, event in enumerate(events):
            if self.menu is not None:
                self._take(event, self.menu)
            self._rebuild_page()
            if self.app.go.scene is not self:  # what was typed ahead is meant for the next scene
                for later in events[index + 1 :]:
                    self.app.go.scene.handle(later)
                return
        self.page.poll()
        self._rebuild_page()

    def _rebuild_page(self) -> None:
        if self._rebuild and self.app.go.scene is self:
            self._rebuild = False
            self._build(self.menu.get_index() if self.menu else None)

    def draw(self, surface: pygame.Surface, now: float) -> list[Rect]:
        if not self._stale and not self._blank:
            return []
        self._stale = self._blank = False
        theme, unit, text = self.style.theme, self.style.unit, self.style.text
        surface.fill(theme.background)
        assert self.menu is not None
        title_size, left = round(2.1 * unit), round(2.4 * unit)
        y = min(round(2.6 * unit), self.area.y // 2)
        width = text.draw(surface, self.page.title, (left, y), title_size, theme.text, True)
        surface.fill(theme.accent, (left, y + title_size * 3 // 4, width, max(2, unit // 7)))
        self.menu.draw(surface)
        if self.board_rect is not None:
            self._board_view.forget()
            session = self.app.controller.session
            last = session.last_move
            picture = BoardPicture(
                sorted_pieces(session.board.piece_map()), self.app.go.game.flipped, False, last.path if last else ()
            )
            self._board_view.draw(surface, self.board_rect, picture, theme, Motion())
        selected = self.menu.get_selected_widget()
        meaning = selected.get_attribute("meaning", "") if selected is not None else ""
        line, alarm = self._foot if self._foot[0] else (meaning, False)
        y = self.window.h - round(1.5 * unit)
        color = theme.warning if alarm else theme.dim
        shown = ("! " if alarm else "") + line
        width = (self.board_rect.x if self.board_rect else self.window.w) - 4 * unit
        lines = text.wrap(shown, unit, width, alarm, most=2)
        for index, part in enumerate(lines):
            at = (left, y + round((index - (len(lines) - 1) / 2) * 1.35 * unit))
            text.draw(surface, part, at, unit, color, alarm)
        if self.question is not None:
            self.question.draw(surface, self.style)
        return [self.window]
