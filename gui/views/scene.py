"""The base class of all scenes: panels, a question or tooltip over them, and dispatch of input."""

from typing import Any

import pygame

from ..help import Action, action_for, combination
from .geometry import Rect
from .program import Program
from .widgets import Answers, Panel, Question, Style, tooltip

_ANSWERS = {Action.ACCEPT: "yes", Action.DECLINE: "no"}
TIP_SECONDS = 0.45  # seconds that the pointer must rest before a tooltip is shown


def key_of(event: pygame.event.Event) -> str:
    """The ``gui.help`` combination of a pressed key with its modifiers."""
    mods = event.mod
    ctrl = bool(mods & (pygame.KMOD_CTRL | pygame.KMOD_META))
    shift, alt = bool(mods & pygame.KMOD_SHIFT), bool(mods & pygame.KMOD_ALT)
    return combination(pygame.key.name(event.key), ctrl, shift, alt, event.unicode)


class Scene:
    """A view of the whole window. Subclasses lay out panels in ``place`` and handle input in ``act`` and ``mouse``."""

    name = "game"  # name of the scene in ``gui.help``

    def __init__(self, app: Program) -> None:
        self.app = app
        self.window = Rect(0, 0, 1, 1)
        self.style: Style = app.style
        self.panels: list[Panel[Any]] = []
        self.question: Question | None = None
        self._tip: tuple[str, Rect] | None = None
        self._tip_since = 0.0
        self._over: object = None  # state of the question or tooltip over the panels
        self._over_rect: Rect | None = None
        self._blank = True

    # --- for subclasses

    def place(self) -> None:
        """Lays out the panels for ``window`` and ``style``."""

    def update(self, now: float) -> None:
        """Updates the state, once per frame."""

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        """Carries out a key's action; returns False if the scene does not use it."""
        return False

    def mouse(self, event: pygame.event.Event) -> None:
        """Handles a press, a release, a motion or a turn of the wheel."""

    def draw_panels(self, surface: pygame.Surface, now: float) -> list[Rect]:
        """Paints what changed and returns where."""
        return [rect for panel in self.panels for rect in panel.draw(surface, self.style)]

    @property
    def lively(self) -> bool:
        """Whether something is animated, so that every frame must be drawn."""
        return False

    # --- for the app

    def resize(self, window: Rect, style: Style) -> None:
        self.window, self.style = window, style
        self._tip = None  # what was pointed at may be elsewhere now, and the pointer, too
        self.place()
        self.forget()

    def forget(self) -> None:
        self._blank = True

    def say(self, text: str, alarm: bool = False) -> None:
        """Shows one line, by default at the game's board."""
        self.app.controller.say(text, alarm)

    def ask(self, text: str, answers: Answers, preselected: str = "") -> None:
        """Shows a question over the scene.

        Escape selects the last answer, the keys for yes and no select the answers with these names, and Enter selects
        the focused one: at first ``preselected``, by default the first.
        """
        self.question = Question(text, answers, preselected)
        self.forget()

    def tip(self, text: str | None, near: Rect | None, now: float) -> None:
        """Sets the text of the tooltip; None for no tooltip."""
        tip = (text, near) if text and near else None
        if tip != self._tip:
            self._tip, self._tip_since = tip, now

    def handle(self, event: pygame.event.Event) -> None:
        if event.type == pygame.KEYDOWN:
            self._tip = None
            key = key_of(event)
            if self.question is not None:
                self._key_of_question(self.question, key)
                return
            action = action_for(self.name, key)
            if action is not None and not self.act(action, event):
                self.app.act(action)
        elif event.type in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEBUTTONUP, pygame.MOUSEMOTION, pygame.MOUSEWHEEL):
            if self.question is None:
                self.mouse(event)
            elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
                self._answer(self.question, self.question.press(event.pos, self.style.unit))
            elif event.type == pygame.MOUSEMOTION:
                self.question.buttons.hover(event.pos, self.style.unit)

    def _key_of_question(self, question: Question, key: str) -> None:
        """Handles a key while a question is shown: an answer, or an action that works in every scene."""
        action, answer = action_for(self.name, key), action_for("game", key)  # yes and no have the same keys everywhere
        if answer in _ANSWERS and _ANSWERS[answer] in question.answers:
            self._answer(question, _ANSWERS[answer])
        elif action is None or not self.app.act(action):
            self._answer(question, question.key(key))

    def _answer(self, question: Question, name: str | None) -> None:
        if name is None:
            return
        self.question = None
        _, function = question.answers[name]
        if function is not None:
            function()

    def draw(self, surface: pygame.Surface, now: float) -> list[Rect]:
        """Paints what changed since the last frame and returns where."""
        over = self._over_state(now)
        changed: list[Rect] = []
        stale = self.window if self._blank else self._over_rect if over != self._over else None
        if stale is not None:
            surface.fill(self.style.theme.background, stale)
            for panel in self.panels:
                if panel.rect.colliderect(stale):
                    panel.forget()
            self.drawn_over(stale)
            changed.append(stale)
            self._blank, self._over_rect = False, None
        changed += self.draw_panels(surface, now)
        hidden = self._over_rect is None or any(rect.colliderect(self._over_rect) for rect in changed)
        if over is not None and (over != self._over or hidden):
            changed.append(self._draw_over(surface))
        self._over = over
        return changed

    def drawn_over(self, rect: Rect) -> None:
        """Called when a part of the window was painted over: parts other than panels must be drawn again there."""

    def _over_state(self, now: float) -> object:
        if self.question is not None:
            return self.question, self.question.buttons.focused, self.question.buttons.hovered
        if self._tip is not None and now - self._tip_since >= TIP_SECONDS:
            return self._tip
        return None

    def _draw_over(self, surface: pygame.Surface) -> Rect:
        if self.question is not None:
            self._over_rect = self.question.draw(surface, self.style)
        else:
            assert self._tip is not None
            self._over_rect = tooltip(surface, self._tip[1], self._tip[0], self.style)
        return self._over_rect
