"""Menus: scenes that show a pygame-menu; they are in ``views.menu_pages`` and ``views.file_pages``."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

import pygame
import pygame_menu
import pygame_menu.font
import pygame_menu.sound
from pygame_menu.font import FONT_OPEN_SANS
from pygame_menu.widgets.selection import arrow_selection
from pygame_menu.widgets.widget import textinput

from engine.errors import DraughtsError

from .game.messages import without_fen
from .game.pdn_files import clean
from .help import action_for
from .preferences import Preferences
from .threads import in_thread
from .views.board_view import BoardView, Motion, picture_of
from .views.clipboard import get_text, put_text
from .views.geometry import Rect
from .views.program import Program
from .views.scene import Scene, key_of
from .views.theme import Theme, mix

textinput.clipboard_copy, textinput.clipboard_paste = put_text, get_text  # type: ignore[assignment]
pygame_menu.sound.SOUND_INITIALIZED[0] = True  # menus have no sounds, so pygame-menu need not open the audio device
Found = TypeVar("Found")
FAULTS = (DraughtsError, OSError)  # errors that a menu shows: bad input, files
ON_OFF = (("off", False), ("on", True))  # items of a selector
_LEAST_WIDTH, _LEAST_HEIGHT = 120, 60  # pixels of a menu; a smaller window shows a part of it
_READING = "Reading …"
_MOUSE = (pygame.MOUSEMOTION, pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP, pygame.MOUSEWHEEL)


def _letters(unit: int) -> int:
    """Size of the letters of widgets."""
    return round(1.15 * unit)


def menu_theme(theme: Theme, unit: int) -> pygame_menu.Theme:
    """A theme of pygame-menu with our colours and text sizes."""
    look = pygame_menu.Theme(
        background_color=(0, 0, 0, 0),
        title=False,
        widget_font=FONT_OPEN_SANS,
        widget_font_size=_letters(unit),
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


class _Clock:
    """A clock of pygame that does not wait."""

    def __init__(self) -> None:
        self._clock = pygame.time.Clock()

    def tick(self, _rate: float = 0) -> int:
        return self._clock.tick()

    def get_time(self) -> int:
        return self._clock.get_time()


_CLOCK = _Clock()
# Those of pygame-menu wait a sixtieth of a second whenever a menu is drawn, and at each event of a text field.
arrow_selection.SELECTOR_CLOCK = _CLOCK  # type: ignore[assignment]
textinput.TextInput._clock = property(lambda _: _CLOCK, lambda _, clock: None)  # type: ignore[assignment]


def _text_of(widget: Any) -> Any:
    return widget.get_value() if isinstance(widget, pygame_menu.widgets.TextInput) else None


def _call_left(widget: Any) -> None:
    left = widget.get_attribute("left") if isinstance(widget, pygame_menu.widgets.TextInput) else None
    if left is not None:
        left()


def _keep_selection(widget: Any, event: pygame.event.Event) -> None:
    """Keeps the selected text when Shift is pressed, for a capital letter that replaces it: pygame-menu would begin
    another selection at the caret, and leave the text in front of the letter."""
    shift = event.type == pygame.KEYDOWN and event.key in (pygame.K_LSHIFT, pygame.K_RSHIFT)
    if shift and isinstance(widget, pygame_menu.widgets.TextInput) and widget._get_selected_text():
        widget._selection_active = True


def forget_fonts() -> None:
    """Clears pygame-menu's cache of fonts. Using a font after its pygame has ended would crash."""
    pygame_menu.font._cache.clear()


class MenuScene(Scene):
    """A menu over the whole window. Subclasses set ``title`` and add widgets to ``menu`` in ``fill``."""

    name = "menu"
    title = ""
    board = False  # whether to show the game's board beside the menu
    ends_with_back = True  # whether the last button leaves the menu

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.menu: Any = None
        self._events: list[pygame.event.Event] = []
        self._foot = ("", False)
        self._stale, self._rebuild = True, False
        self._filling = self._updating = False
        self._board_view = BoardView(app.style.text)

    # --- for subclasses

    def fill(self) -> None:
        raise NotImplementedError

    def poll(self) -> None:
        """Called once per frame while the menu is shown."""

    def say(self, text: str, alarm: bool = False) -> None:
        self._foot, self._stale = (clean(without_fen(text)), alarm), True

    def attempt(self, action: Callable[[], object]) -> bool:
        """Calls ``action``; returns False and shows the error if it fails."""
        try:
            action()
        except FAULTS as error:
            self.say(str(error), alarm=True)
            return False
        return True

    def rebuild(self) -> None:
        """Requests that the widgets are made again, because something they depend on has changed."""
        self._rebuild = True

    @property
    def typing(self) -> bool:
        """Whether a text field is selected; making the widgets again would lose its text."""
        return isinstance(self.menu.get_selected_widget(), pygame_menu.widgets.TextInput)

    def leave(self) -> None:
        """Goes back to the scene that opened the menu."""
        self.app.go.back()

    def button(self, title: str, action: Callable[[], object], meaning: str = "") -> None:
        """Adds a button; the foot of the menu shows ``meaning`` while it is selected."""
        self.menu.add.button(clean(title), action).set_attribute("meaning", clean(meaning))

    def opener(self, page: Callable[..., Scene], **details: Any) -> Callable[[], None]:
        """A function that opens another page, made with ``details``."""
        return lambda: self.app.go.show(partial(page, **details))

    def selector(
        self, title: str, items: Sequence[tuple[str, Any]], value: object, change: Callable[[Any], None], meaning: str
    ) -> Any:
        """Adds a choice between ``items``, each a text and a value; ``change`` is called with the chosen value."""
        default = next((index for index, item in enumerate(items) if item[1] == value), 0)
        widget = self.menu.add.selector(f"{title}: ", list(items), default=default, onchange=self.guard(change))
        return widget.set_attribute("meaning", meaning)

    def preference(self, title: str, items: Sequence[tuple[str, Any]], field: str, meaning: str = "") -> None:
        """Adds a choice of a preference's value; a current value that is not in ``items`` is added to them."""
        now = getattr(self.app.preferences, field)
        if now not in [value for _, value in items]:
            items = [*items, (str(now), now)]
        meaning = meaning or Preferences.model_fields[field].description or ""
        self.selector(title, items, now, partial(self.prefer, field), meaning)

    def prefer(self, field: str, value: object) -> None:
        setattr(self.app.preferences, field, value)

    def text_input(
        self, title: str, value: str, most: int, meaning: str, left: Callable[[], object] | None = None, **options: Any
    ) -> Any:
        """Adds a field for a text of at most ``most`` characters, or as many as ``value`` has.

        Args:
            left: called when another widget is selected or the page is left.
            options: pygame-menu's.
        """
        text, size = self.style.text, _letters(self.style.unit)
        room = self.menu.get_width() - text.width(f"{title}: ", size) - 4 * self.style.unit
        # Its own repetition of held keys counts the time between frames, so that letters typed slowly came twice.
        widget = self.menu.add.text_input(
            f"{title}: ",
            default=clean(value),
            maxchar=max(most, len(value)),
            maxwidth=max(8, room // text.width("O", size)),  # letters of this width; a longer text scrolls
            repeat_keys=False,
            **options,
        )
        widget.set_attribute("given", widget.get_value())
        return widget.set_attribute("meaning", meaning).set_attribute("left", left)

    def setter(self, name: str) -> Callable[[Any], None]:
        """A function that sets an attribute of the page, for a widget's ``change``."""
        return partial(setattr, self, name)

    def guard(self, function: Callable[[Any], None]) -> Callable[..., None]:
        """Wraps ``function`` as a widget's ``onchange``. It ignores calls while the menu is filled, since widgets
        report their first values, too."""

        def changed(*values: Any) -> None:
            if not self._filling:
                function(values[-1])

        return changed

    # --- a scene

    def place(self) -> None:
        if self._updating:
            self._rebuild = True  # not now, while a widget of this menu is active
            return
        typed = self._changed_fields()
        self._build()
        for title, (given, text) in typed.items():
            field = next((widget for widget in self._text_fields() if widget.get_title() == title), None)
            if field is not None and field.get_attribute("given") == given:
                field.set_value(text)

    def _text_fields(self) -> list[Any]:
        widgets = () if self.menu is None else self.menu.get_widgets()
        return [widget for widget in widgets if isinstance(widget, pygame_menu.widgets.TextInput)]

    def _changed_fields(self) -> dict[str, tuple[str, str]]:
        """Title of each text field that was changed → its first text and its present one."""
        texts = {field.get_title(): (field.get_attribute("given"), field.get_value()) for field in self._text_fields()}
        return {title: (given, text) for title, (given, text) in texts.items() if text != given}

    def _build(self) -> None:
        selected, caret = self._selected(), self._caret()
        unit, window = self.style.unit, self.window
        head, foot = round(min(5.2 * unit, window.h * 0.14)), round(3.0 * unit)
        beside = self.board and window.w > 1.25 * window.h and window.w * 42 // 100 > 22 * unit
        width = window.w * 42 // 100 if beside else window.w
        self.area = Rect(0, head, width, max(_LEAST_HEIGHT, window.h - head - foot))
        margin = round(1.6 * unit)
        self.menu = pygame_menu.Menu(
            "",
            max(_LEAST_WIDTH, self.area.w - 2 * margin),
            self.area.h,
            theme=menu_theme(self.style.theme, unit),
            position=(margin, head, False),
            screen_dimension=(max(_LEAST_WIDTH, window.w), max(_LEAST_HEIGHT, window.h)),  # pygame-menu fits into it
            center_content=False,
            joystick_enabled=False,
            keyboard_ignore_nonphysical=False,  # a key counts even if it is released before its event is handled
            onclose=None,
        )
        self._filling = True
        self.menu.disable_render()  # otherwise each new widget would lay out all widgets again
        self.fill()
        if self.ends_with_back:
            self.button("Back", self.leave)
        self.menu.enable_render()
        self._filling = False
        self._select(*selected)
        field = self.menu.get_selected_widget()
        if caret is not None and isinstance(field, pygame_menu.widgets.TextInput) and field.get_title() == selected[1]:
            field._cursor_position = min(caret, len(field._input_string))
        size = max(8 * 8, min(window.w - width - 2 * margin, window.h - 4 * unit) // 8 * 8)
        self.board_rect = (
            Rect(width + (window.w - width - size) // 2, (window.h - size) // 2, size, size) if beside else None
        )
        self._stale = True

    def _selected(self) -> tuple[int, str]:
        """Index and title of the selected widget; -1 if there is none."""
        widget = None if self.menu is None else self.menu.get_selected_widget()
        return (-1, "") if widget is None else (self.menu.get_index(), widget.get_title())

    def _caret(self) -> int | None:
        """Place of the caret in the selected text field; None if another widget is selected."""
        return self.menu.get_selected_widget()._cursor_position if self.menu is not None and self.typing else None

    def _select(self, index: int, title: str) -> None:
        """Selects the widget with this title, the nearest to its old place, or else the one in this place."""
        widgets = [(place, widget) for place, widget in enumerate(self.menu.get_widgets()) if widget.is_selectable]
        same = [(abs(place - index), place, widget) for place, widget in widgets if widget.get_title() == title]
        there = [widget for place, widget in widgets if place == index]
        if same:
            self.menu.select_widget(min(same, key=lambda one: one[:2])[2])
        elif there:
            self.menu.select_widget(there[0])

    def handle(self, event: pygame.event.Event) -> None:
        self._events.append(event)  # handled in ``update``, in their order

    def _take(self, event: pygame.event.Event) -> None:
        """Passes an event to the menu, or handles a key that works in all menus."""
        if self.question is not None:
            super().handle(event)
            self._stale = True
            return
        if event.type == pygame.KEYDOWN:
            key = key_of(event)
            if key == "escape":
                _call_left(self.menu.get_selected_widget())
                self.leave()
                return
            if len(key) > 1 and action_for(self.name, key) is not None:
                super().handle(event)
                return
        before = self.menu.get_selected_widget()
        text = _text_of(before)
        if text is not None and event.type == pygame.KEYDOWN and self._foot[1]:
            self.say("")  # what was wrong is being mended
        _keep_selection(before, event)
        self._updating = True
        self._stale |= bool(self.menu.update([event])) or event.type in _MOUSE
        self._updating = False
        selected = self.menu.get_selected_widget()
        if selected is before and _text_of(before) != text:
            before.change()  # pygame-menu does not, where a selection is removed or a change is taken back
        if selected is not before:
            self._foot = ("", False)
            _call_left(before)
            if event.type == pygame.MOUSEBUTTONDOWN and isinstance(selected, pygame_menu.widgets.RangeSlider):
                selected.update([event])  # the click that selects the slider also moves it

    def update(self, now: float) -> None:
        events, self._events = self._events, []
        for index, event in enumerate(events):
            self._take(event)
            self._rebuild_now()
            if self.app.go.scene is not self:  # later events are for the next scene
                for later in events[index + 1 :]:
                    self.app.go.scene.handle(later)
                return
        self.poll()
        self._rebuild_now()

    def _rebuild_now(self) -> None:
        if self._rebuild and self.app.go.scene is self:
            self._rebuild = False
            self._build()

    def draw(self, surface: pygame.Surface, now: float) -> list[Rect]:
        if not self._stale and not self._blank:
            return []
        self._stale = self._blank = False
        theme, unit, text = self.style.theme, self.style.unit, self.style.text
        surface.fill(theme.background)
        title_size, left = round(2.1 * unit), round(2.4 * unit)
        y = min(round(2.6 * unit), self.area.y // 2)
        room = self.window.w - 2 * left
        width = text.draw(surface, self.title, (left, y), title_size, theme.text, True, width=room)
        surface.fill(theme.accent, (left, y + title_size * 3 // 4, width, max(2, unit // 7)))
        self.menu.draw(surface)
        if self.board_rect is not None:
            self._board_view.forget()
            picture = picture_of(self.app.controller.session.board, self.app.go.game.flipped, False)
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


class ReadingPage(MenuScene, Generic[Found]):
    """A menu that reads in a thread, so that no frame waits, and is filled again with what was found.

    Attributes:
        found: what was read; None before, and if it could not be read.
    """

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self.found: Found | None = None
        self._reading: Future[Found] | None = None
        self._begun = False

    def read(self, thread: str, work: Callable[[], Found]) -> None:
        """Begins to read, once.

        Args:
            thread: name of the thread, see ``gui.threads``.
            work: reads; its errors are shown.
        """
        if not self._begun:
            self._reading, self._begun = in_thread(thread, work), True
            self.say(_READING)

    def poll(self) -> None:
        reading = self._reading
        if reading is not None and reading.done() and not self.typing:
            self._reading = None
            if self._foot[0] == _READING:
                self.say("")
            self.attempt(lambda: setattr(self, "found", reading.result()))
            chosen = len(self._selectable()) > 1  # not the only button that there was
            self.place()
            if not chosen:
                self.menu.select_widget(self._selectable()[0])

    def _selectable(self) -> list[Any]:
        return [widget for widget in self.menu.get_widgets() if widget.is_selectable]
