"""Choosing a level at the first start, and adapting the level to the player's results."""

from functools import partial
from typing import TYPE_CHECKING

from engine.players.levels import LEVELS, level_named

from ..help import Action
from ..menus import MenuScene
from ..opponents import OpponentSpec, level_text
from .menu_pages import start, store_spec, stored_spec

if TYPE_CHECKING:
    from ..app import App

_FIRST_CHOICES = {  # what people may say about themselves → level
    "I am new to the game": "beginner",
    "I know the rules": "learner",
    "I play now and then": "hobby",
    "I play in a club": "club",
    "I win tournaments": "candidate",
    "I am a master": "master",
}


class WelcomePage(MenuScene):
    """The page of the first start: one click chooses the opponent and begins a game."""

    title = "Welcome: how strong are you?"
    board, ends_with_back = True, False

    def fill(self) -> None:
        for text, name in _FIRST_CHOICES.items():
            spec, level = OpponentSpec(kind="level", level=name), level_named(name)
            self.button(text, partial(self._begin, spec), f"Against {level.title}, {level_text(level)}")
        champion = OpponentSpec(kind="network", timed=True, seconds=1.0)
        self.button("I fear nobody", partial(self._begin, champion), "Against the champion, a second for each move")
        self.button("I do not know the rules", partial(self.app.go.open, Action.LESSONS), "Lessons, done at the board")
        self.button("Later", self.leave, "The menu has all levels and all other opponents")

    def _begin(self, spec: OpponentSpec) -> None:
        store_spec(self.app, "agent", spec)
        start(self)


def follow_result(app: "App") -> str:
    """After a game against a level, chooses the next level by the result; returns a message, "" if nothing changes.

    The level changes only if the preferences say so and the game was between one person and the level that they have.
    """
    controller = app.controller
    ending, humans = controller.session.ending, controller.humans
    if not app.preferences.adaptive or ending is None or len(humans) != 1 or not controller.session.on_main_line:
        return ""
    (person,) = humans
    spec = stored_spec(app, "agent")
    if controller.agents[person.other] != spec or spec.kind != "level":
        return ""
    step = 0 if ending.winner is None else 1 if ending.winner is person else -1
    place = LEVELS.index(level_named(spec.level)) + step
    if step == 0 or not 0 <= place < len(LEVELS):
        return ""
    store_spec(app, "agent", spec.changed(level=LEVELS[place].name))
    return f"Your next opponent: {LEVELS[place].title}, {level_text(LEVELS[place])}"
