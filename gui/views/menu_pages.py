"""The pages of the first start, of the main menu and of a new game."""

import random
from functools import partial
from os.path import isdir
from pathlib import Path
from typing import Any

from engine.ballots import ballots, playable_ballots
from engine.fen import START_FEN, Color
from engine.players.levels import LEVELS, level_named
from engine.players.time_control import TimeControl

from ..game.opponents import (
    KIND_NAMES,
    CheckpointEntry,
    OpponentSpec,
    level_text,
    strength_position,
    strength_steps,
    strength_text,
    with_strength,
)
from ..game.pdn_files import typed_path
from ..game.plan import BOTH, GamePlan
from ..help import Action
from ..menus import ON_OFF, MenuScene, ReadingPage
from ..search_settings import SETTINGS, Setting, in_use, with_setting
from .program import Program

MODES = (("a person and an agent", "human-agent"), ("two people", "human-human"), ("two agents", "agent-agent"))
SIDES = (("Black, who begins", "black"), ("White", "white"), ("by chance", "random"))
OPENINGS = (
    ("the normal position", "start"),
    ("a random ballot", "random-ballot"),
    ("a chosen ballot", "ballot"),
    ("a set-up position", "position"),
)
CLOCKS = ("-", "1/5", "1/10", "1/30", "1/60", "60+1", "180+2", "300+3", "600+5", "1800+20")
SCENES = (  # button of the main menu, name of the scene it opens, explanation
    ("New game …", Action.NEW_GAME, "Who plays, how strong, from which position, with which clock"),
    ("Match …", "match", "Two agents play several games: watch them, and see the table"),
    (
        "Lessons",
        Action.LESSONS,
        "The rules and the endings, done at the board, from the first move on",
    ),
    ("Endgame trainer …", "endings", "Endings of your choice, drawn from the tables, which play against you"),
    ("Puzzles", "puzzles", "One right move; about as hard as you are strong, with a rating"),
    ("Games and positions …", "files", "Load, save, copy and paste; automatically saved games"),
    ("Set up a position …", Action.SETUP, "Place the pieces, then play or analyse from there"),
    ("Game report", Action.REPORT, "Accuracy of both sides and the moves that cost most"),
    ("Openings", Action.OPENINGS, "What was played from the position on the board, and how it ended"),
    ("Keys", Action.HELP, "What every key does"),
    ("Preferences …", Action.SETTINGS, "Themes, letters, board, sounds"),
)
_SEATS = {
    "agent": "The agent",
    "black": "Black's agent",
    "white": "White's agent",
    "first": "The first player",
    "second": "The second player",
}
_FIRST_CHOICES = {  # what people may say about themselves → level
    "I am new to the game": "beginner",
    "I know the rules": "learner",
    "I play now and then": "hobby",
    "I play in a club": "club",
    "I win tournaments": "candidate",
    "I am a master": "master",
}
STATUS_TEXT = {"std": "", "mail": "added for mail play", "barred": "barred: loses a piece or the game"}


def stored_spec(app: Program, who: str) -> OpponentSpec:
    """The opponent that the preferences have for a seat (``_SEATS``), or one of the first kind."""
    data = app.preferences.opponents.get(who)
    default = OpponentSpec(kind=app.opponents.kinds[0])
    if data is None:
        return default
    try:
        spec = OpponentSpec.model_validate(data)
    except ValueError:
        return default
    return spec if spec.kind in app.opponents.kinds else default


def store_spec(app: Program, who: str, spec: OpponentSpec) -> None:
    app.preferences.opponents = app.preferences.opponents | {who: spec.model_dump(mode="json")}


def plan_of(app: Program) -> GamePlan:
    """The plan of the game that the preferences describe; raises ``DraughtsError`` if the clock's text is not valid."""
    preferences, rng = app.preferences, random.Random()
    agents = {Color.BLACK: stored_spec(app, "black"), Color.WHITE: stored_spec(app, "white")}
    humans = BOTH if preferences.mode == "human-human" else frozenset()
    if preferences.mode != "agent-agent":
        agents = dict.fromkeys(Color, stored_spec(app, "agent"))
    if preferences.mode == "human-agent":
        side = {"black": Color.BLACK, "white": Color.WHITE}.get(preferences.side)
        humans = frozenset({side or rng.choice(list(Color))})
    opening: tuple[str, ...] = ()
    if preferences.opening == "random-ballot":
        opening = rng.choice(playable_ballots()).moves
    elif preferences.opening == "ballot":
        opening = ballots()[preferences.ballot - 1].moves
    return GamePlan(humans, agents, START_FEN, opening, TimeControl.parse(preferences.time_control))


class MainPage(MenuScene):
    title = "Crownhead"
    board, ends_with_back = True, False

    def fill(self) -> None:
        app, go, session = self.app, self.app.go, self.app.controller.session
        begun = session.nodes or session.start_fen != START_FEN  # a position without a move is kept nowhere else
        if begun and not session.is_over:
            self.button("Go on with this game", go.to_game, "Back to the board (Escape)")
        if session.is_over:
            meaning = "The same players, or the level that follows your result, with the colours swapped"
            self.button("Rematch", self._rematch, meaning)
        self.button("Play", self._play, self._described())
        for title, scene, meaning in SCENES:
            self.button(title, partial(go.open, scene), meaning)
        self.button("Quit", app.quit, "Unfinished games are kept")

    def _described(self) -> str:
        preferences = self.app.preferences
        if preferences.mode == "human-human":
            return "Two people at this board"
        if preferences.mode == "agent-agent":
            return f"{stored_spec(self.app, 'black').label} against {stored_spec(self.app, 'white').label}"
        return f"Against {stored_spec(self.app, 'agent').label}"

    def _rematch(self) -> None:
        self.app.controller.rematch()
        self.app.go.to_game()

    def _play(self) -> None:
        if self.app.preferences.opening == "position":
            self.app.preferences.opening = "start"
        start(self)


def start(menu: MenuScene) -> None:
    """Begins the game that the preferences describe, or shows why it cannot."""
    if menu.attempt(lambda: menu.app.go.start_game(plan_of(menu.app))):
        menu.app.save_preferences()


def follow_result(app: Program) -> str:
    """After a game against a level, chooses the next level by the result; returns a message, "" if nothing changes.

    The level changes only if the preferences say so and the game was between one person and the level that they have.
    """
    controller = app.controller
    ending, humans = controller.session.ending, controller.humans
    if not app.preferences.adaptive or ending is None or len(humans) != 1 or controller.mixed:
        return ""
    if not controller.session.on_main_line:
        return ""
    (person,) = humans
    spec = stored_spec(app, "agent")
    played = controller.agents[person.other]  # what is set for other kinds of agents does not matter
    if spec.kind != "level" or (played.kind, played.level) != (spec.kind, spec.level):
        return ""
    step = 0 if ending.winner is None else 1 if ending.winner is person else -1
    place = LEVELS.index(level_named(spec.level)) + step
    if step == 0 or not 0 <= place < len(LEVELS):
        return ""
    controller.next_agent = spec.changed(level=LEVELS[place].name)
    store_spec(app, "agent", controller.next_agent)
    return f"Your next opponent: {LEVELS[place].title}, {level_text(LEVELS[place])}"


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


class NewGamePage(MenuScene):
    title = "New game"
    board = True

    def fill(self) -> None:
        preferences = self.app.preferences
        self.button("Start", self._start, "Begins the game")
        self.preference("Players", MODES, "mode", "Who sits at the board")
        if preferences.mode == "human-agent":
            self.preference("You play", SIDES, "side", "Black begins, from squares 1 to 12")
            self._opponent("Against", "agent")
            if stored_spec(self.app, "agent").kind == "level":
                self.preference("The level follows your results", ON_OFF, "adaptive")
        elif preferences.mode == "agent-agent":
            self._opponent("Black", "black")
            self._opponent("White", "white")
        else:
            self._opponent("Agent that can take over", "agent")
        self.preference("From", OPENINGS, "opening", "Ballots are openings of three moves, drawn by lot")
        if preferences.opening == "ballot":
            ballot = ballots()[preferences.ballot - 1]
            title = f"Ballot {ballot.number}:  {ballot}"
            self.button(title, self.opener(BallotPage), "Choose one of the 174 ballots")
        clocks = dict.fromkeys([*CLOCKS, preferences.time_control])  # another one, from the preferences
        labels = [(TimeControl.parse(text).label, text) for text in clocks]
        self.preference("Clock", labels, "time_control", "Per move, or a time for the game with a bonus per move")

    def prefer(self, field: str, value: object) -> None:
        super().prefer(field, value)
        if field in ("mode", "opening"):
            self.rebuild()

    def _opponent(self, title: str, who: str) -> None:
        spec, meaning = stored_spec(self.app, who), "Kind and strength of the agent, and every setting of its search"
        text = spec.label
        if spec.kind == "level":  # with its strength it would be too long
            text, meaning = spec.name, f"{strength_text(spec)}; kind and strength of the agent"
        self.button(f"{title}: {text} …", self.opener(OpponentPage, who=who), meaning)

    def _start(self) -> None:
        if self.app.preferences.opening == "position":
            self.app.go.open(Action.SETUP)
        else:
            start(self)

    def leave(self) -> None:
        self.app.save_preferences()
        super().leave()


class OpponentPage(ReadingPage[tuple[CheckpointEntry, ...]]):
    def __init__(self, app: Program, who: str) -> None:
        super().__init__(app)
        self.who = who
        self.title = _SEATS[who]

    @property
    def spec(self) -> OpponentSpec:
        return stored_spec(self.app, self.who)

    def change(self, rebuild: bool = True, **changes: object) -> None:
        """Changes the opponent, or shows why it cannot."""
        if self.attempt(lambda: store_spec(self.app, self.who, self.spec.changed(**changes))) and rebuild:
            self.rebuild()

    def fill(self) -> None:
        app, spec = self.app, self.spec
        kinds = [(KIND_NAMES[kind], kind) for kind in app.opponents.kinds]
        meaning = "Levels play as people do; the network is the champion itself. Others need no network."
        self.selector("Kind", kinds, spec.kind, self._kind, meaning)
        if spec.kind == "network":
            if spec.checkpoint is not None:
                self.read("player", app.opponents.checkpoints)
            name = next((entry.label for entry in self.found or () if entry.folder == spec.checkpoint), spec.name)
            meaning = "Choose one of the checkpoints, by its Elo"
            self.button(f"Network: {name} …", self.opener(CheckpointPage, opponent=self), meaning)
        if spec.kind == "external":
            meaning = "How the engine is started; it speaks the Hub protocol, version 2"
            self.text_input("Command", spec.command or "", 200, meaning, onchange=self.guard(self._command))
        if spec.kind in ("network", "rollout", "alphabeta"):
            units = [("amount of search", False), ("seconds per move", True)]
            meaning = "An amount of search is the same on every machine"
            self.selector("Strength by", units, spec.timed, lambda value: self.change(timed=value), meaning)
        self._strength(spec)
        if spec.kind == "network":
            self._network(spec)

    def _network(self, spec: OpponentSpec) -> None:
        change = partial(self.change, rebuild=False)
        meaning = "Games differ: the noise and the temperature of the search are used"
        self.selector("Vary its moves", ON_OFF, spec.vary, lambda on: change(vary=on), meaning)
        meaning = "It searches on while you think, and answers sooner or better"
        self.selector("Think in your time", ON_OFF, spec.ponder, lambda on: change(ponder=on), meaning)
        meaning = "Exploration, temperature, noise, oracle and all the others"
        self.button("Settings of the search …", self.opener(SearchPage, opponent=self), meaning)

    def _kind(self, kind: str) -> None:
        command = self.spec.command or ("engine" if kind == "external" else None)
        self.change(kind=kind, command=command)

    def _command(self, text: str) -> None:
        if text.strip():
            self.change(rebuild=False, command=text.strip())
        else:
            self.say("An external engine needs a command", alarm=True)

    def _strength(self, spec: OpponentSpec) -> None:
        steps = strength_steps(spec)
        if not steps:
            return

        def title() -> str:
            return f"Strength:  {strength_text(self.spec)}  "

        def moved(value: float) -> None:
            store_spec(self.app, self.who, with_strength(self.spec, round(value)))
            slider.set_title(title())

        unit, width = self.app.style.unit, self.menu.get_width()
        slider = self.menu.add.range_slider(
            title(), strength_position(spec), list(range(len(steps))), onchange=self.guard(moved),
            range_text_value_enabled=False, slider_text_value_enabled=False,
            width=round(min(width * 0.42, max(4 * unit, width - 21 * unit))),  # pixels that the title leaves
        )  # fmt: skip
        slider.set_attribute("meaning", "Left and right arrow make it weaker and stronger")


class CheckpointPage(ReadingPage[tuple[CheckpointEntry, ...]]):
    title = "Networks"

    def __init__(self, app: Program, opponent: OpponentPage) -> None:
        super().__init__(app)
        self.opponent = opponent
        self.read("player", app.opponents.checkpoints)

    def fill(self) -> None:
        self.button("The shipped network", lambda: self._choose(None), "Comes with the program")
        for entry in self.found or ():
            self.button(entry.label, partial(self._choose, entry.folder), entry.detail or entry.folder)
        meaning = "A checkpoint's or a run's folder that is not in the list; Enter takes it"
        self.text_input("Folder", "", 300, meaning, onreturn=self._typed)

    def _typed(self, text: str) -> None:
        self.attempt(lambda: self._found(typed_path(text, Path.cwd())))

    def _found(self, folder: Path) -> None:
        if isdir(folder):
            self._choose(str(folder))
        else:
            self.say(f"there is no folder {folder}", alarm=True)

    def _choose(self, folder: str | None) -> None:
        self.opponent.change(checkpoint=folder)
        self.leave()


class SearchPage(MenuScene):
    title = "Settings of the search"

    def __init__(self, app: Program, opponent: OpponentPage) -> None:
        super().__init__(app)
        self.opponent = opponent

    def fill(self) -> None:
        self._fields: dict[str, Any] = {}
        group = ""
        for setting in SETTINGS:
            if setting.group != group:
                group = setting.group
                self.menu.add.label(group, font_color=self.app.style.theme.accent)
            self._add(setting, self.opponent.spec)
        self.button("As they come", self._reset, "Sets all of these back")

    def _add(self, setting: Setting, spec: OpponentSpec) -> None:
        value = setting.text(spec.search)
        idle = "" if in_use(spec, setting.name) else f"; has no effect now (needs: {setting.needs})"
        meaning = f"{setting.meaning} — {setting.range_text}; default {setting.text()}{idle}"
        if setting.kind in ("bool", "choice"):
            options = ["off", "on"] if setting.kind == "bool" else list(setting.choices)
            items, change = [(option, option) for option in options], partial(self._change, setting)
            widget = self.selector(setting.label, items, value, change, meaning)
        else:
            take = partial(self._take_text, setting)
            widget = self.text_input(setting.label, value, 12, meaning, left=take, onreturn=lambda _: take())
            self._fields[setting.name] = widget
        if idle:
            widget.update_font({"color": self.app.style.theme.dim})

    def _take_text(self, setting: Setting) -> None:
        """Takes what was typed, or puts what holds into the field again."""
        field, opponent = self._fields[setting.name], self.opponent
        text = field.get_value()
        if text != setting.text(opponent.spec.search):
            self._change(setting, text)
        field.set_value(setting.text(opponent.spec.search))

    def _change(self, setting: Setting, text: str) -> None:
        opponent = self.opponent
        if self.attempt(lambda: opponent.change(search=with_setting(opponent.spec.search, setting.name, text))):
            self.say("")
            if setting.kind in ("bool", "choice"):
                self.rebuild()

    def _reset(self) -> None:
        self.opponent.change(search=OpponentSpec().search)
        self.rebuild()


class BallotPage(MenuScene):
    title = "Ballots"
    ends_with_back = False

    def fill(self) -> None:
        for ballot in ballots():
            note = STATUS_TEXT[ballot.status]
            text = f"{ballot.number}.  {ballot}" + (f"   ({ballot.status})" if note else "")
            self.button(text, partial(self._choose, ballot.number), note or "played in tournaments")
        self.menu.select_widget(self.menu.get_widgets()[self.app.preferences.ballot - 1])

    def _choose(self, number: int) -> None:
        self.app.preferences.ballot = number
        self.leave()
