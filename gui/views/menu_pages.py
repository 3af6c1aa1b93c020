"""The pages of the main menu and of a new game."""

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pygame_menu

from engine.ballots import ballots, playable_ballots
from engine.errors import DraughtsError
from engine.fen import START_FEN, Color
from engine.players.time_control import TimeControl

from ..menus import ON_OFF, MenuScene, Page, explain
from ..opponents import KIND_NAMES, OpponentSpec, strength_position, strength_steps, strength_text, with_strength
from ..plan import BOTH, GamePlan
from ..search_settings import SETTINGS, Setting, SettingError, in_use, with_setting

if TYPE_CHECKING:
    from ..app import App

MODES = (("a person and an agent", "human-agent"), ("two people", "human-human"), ("two agents", "agent-agent"))
SIDES = (("Black, who begins", "black"), ("White", "white"), ("by chance", "random"))
OPENINGS = (
    ("the normal position", "start"),
    ("a random ballot", "random-ballot"),
    ("a chosen ballot", "ballot"),
    ("a set-up position", "position"),
)
CLOCKS = ("-", "1/5", "1/10", "1/30", "1/60", "60+1", "180+2", "300+3", "600+5", "1800+20")
STATUS_TEXT = {"std": "", "mail": "added for mail play", "barred": "barred: loses a piece or the game"}


def stored_spec(app: "App", who: str) -> OpponentSpec:
    """The opponent that the preferences have for ``black``, ``white`` or ``agent``; else the first kind."""
    data = app.preferences.opponents.get(who)
    default = OpponentSpec(kind=app.opponents.kinds[0])
    if data is None:
        return default
    try:
        spec = OpponentSpec.model_validate(data)
    except ValueError:
        return default
    return spec if spec.kind in app.opponents.kinds else default


def store_spec(app: "App", who: str, spec: OpponentSpec) -> None:
    """Puts an opponent into the preferences."""
    app.preferences.opponents = app.preferences.opponents | {who: spec.model_dump(mode="json")}


def plan_of(app: "App") -> GamePlan:
    """The game that the preferences describe.

    Raises:
        DraughtsError: the clock's text is none.
    """
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


class MainPage(Page):
    """What the program can do."""

    title = "Crownhead"
    board = True

    def fill(self, menu: pygame_menu.Menu) -> None:
        app, session = self.app, self.app.controller.session
        if session.nodes and not session.is_over:
            explain(menu.add.button("Go on with this game", app.go.to_game), "Back to the board (Escape)")
        explain(menu.add.button("Play", self._play), self._described())
        new = menu.add.button("New game …", lambda: app.go.show(MenuScene(app, NewGamePage(app))))
        explain(new, "Who plays, how strong, from which position, with which clock")
        explain(
            menu.add.button("Games and positions …", app.go.open_files),
            "Load, save, copy and paste; games kept by themselves",
        )
        explain(
            menu.add.button("Set up a position …", app.go.open_setup),
            "Place the pieces, then play or analyse from there",
        )
        explain(
            menu.add.button("Game report", app.go.open_report), "Accuracy of both sides and the moves that cost most"
        )
        explain(menu.add.button("How to play", app.go.open_tutorial), "The rules of English draughts, with examples")
        explain(menu.add.button("Keys", app.go.open_help), "What every key does")
        explain(menu.add.button("Preferences …", app.go.open_preferences), "Themes, letters, board, sounds")
        explain(menu.add.button("Quit", app.quit), "Unfinished games are kept")

    def _described(self) -> str:
        preferences = self.app.preferences
        if preferences.mode == "human-human":
            return "Two people at this board"
        if preferences.mode == "agent-agent":
            return f"{stored_spec(self.app, 'black').label} against {stored_spec(self.app, 'white').label}"
        return f"Against {stored_spec(self.app, 'agent').label}"

    def _play(self) -> None:
        if self.app.preferences.opening == "position":
            self.app.preferences.opening = "start"
        start(self.app, self)


def start(app: "App", page: Page) -> None:
    """Begins the game that the preferences describe, or says why not."""
    try:
        plan = plan_of(app)
    except DraughtsError as error:
        page.say(str(error), alarm=True)
        return
    app.save_preferences()
    app.go.start_game(plan)


class NewGamePage(Page):
    """Who plays, from where, with which clock."""

    title = "New game"
    board = True

    def fill(self, menu: pygame_menu.Menu) -> None:
        app, preferences = self.app, self.app.preferences
        explain(menu.add.button("Start", self._start), "Begins the game")
        self._select(menu, "Players: ", MODES, "mode", "Who sits at the board", True)
        if preferences.mode == "human-agent":
            self._select(menu, "You play: ", SIDES, "side", "Black begins, from squares 1 to 12", False)
            self._opponent(menu, "Against: ", "agent")
        elif preferences.mode == "agent-agent":
            self._opponent(menu, "Black: ", "black")
            self._opponent(menu, "White: ", "white")
        else:
            self._opponent(menu, "Hints by: ", "agent")
        self._select(menu, "From: ", OPENINGS, "opening", "Ballots are openings of three moves, drawn by lot", True)
        if preferences.opening == "ballot":
            ballot = ballots()[preferences.ballot - 1]
            button = menu.add.button(
                f"Ballot {ballot.number}:  {ballot}", lambda: app.go.show(MenuScene(app, BallotPage(app)))
            )
            explain(button, "Choose one of the 174 ballots")
        labels = [(TimeControl.parse(text).label, text) for text in self._clocks()]
        self._select(
            menu, "Clock: ", labels, "time_control", "Per move, or a time for the game with a bonus per move", False
        )
        explain(menu.add.button("Back", self._back), "")

    def _clocks(self) -> list[str]:
        own = self.app.preferences.time_control
        return [*CLOCKS] if own in CLOCKS else [*CLOCKS, own]

    def _select(self, menu: pygame_menu.Menu, title: str, items: Any, field: str, meaning: str, rebuild: bool) -> None:
        preferences = self.app.preferences
        now = getattr(preferences, field)
        default = next((index for index, item in enumerate(items) if item[1] == now), 0)

        def chosen(value: str) -> None:
            setattr(preferences, field, value)
            if rebuild:
                self.rebuild()

        explain(menu.add.selector(title, list(items), default=default, onchange=self.guard(chosen)), meaning)

    def _opponent(self, menu: pygame_menu.Menu, title: str, who: str) -> None:
        app = self.app
        label = stored_spec(app, who).label
        button = menu.add.button(f"{title}{label} …", lambda: app.go.show(MenuScene(app, OpponentPage(app, who))))
        explain(button, "Kind and strength of the agent, and every setting of its search")

    def _start(self) -> None:
        if self.app.preferences.opening == "position":
            self.app.go.open_setup()
        else:
            start(self.app, self)

    def _back(self) -> None:
        self.app.go.back()

    def leave(self) -> None:
        self.app.save_preferences()


class OpponentPage(Page):
    """Kind and strength of one opponent."""

    def __init__(self, app: "App", who: str) -> None:
        super().__init__(app)
        self.who = who
        self.title = {"agent": "The agent", "black": "Black's agent", "white": "White's agent"}[who]

    @property
    def spec(self) -> OpponentSpec:
        return stored_spec(self.app, self.who)

    def change(self, rebuild: bool = True, **changes: object) -> None:
        """Changes the opponent, or says why it cannot be."""
        try:
            spec = self.spec.changed(**changes)
        except DraughtsError as error:
            self.say(str(error), alarm=True)
            return
        store_spec(self.app, self.who, spec)
        if rebuild:
            self.rebuild()

    def fill(self, menu: pygame_menu.Menu) -> None:
        app, spec = self.app, self.spec
        kinds = [(KIND_NAMES[kind], kind) for kind in app.opponents.kinds]
        default = [kind for _, kind in kinds].index(spec.kind)
        kind = menu.add.selector("Kind: ", kinds, default=default, onchange=self.guard(self._kind))
        explain(kind, "Network: what the program has taught itself. Others need no network.")
        if spec.kind == "network":
            name = next((e.label for e in app.opponents.checkpoints() if e.folder == spec.checkpoint), spec.name)
            button = menu.add.button(
                f"Network: {name} …", lambda: app.go.show(MenuScene(app, CheckpointPage(app, self)))
            )
            explain(button, "Choose one of the checkpoints, by its Elo")
        if spec.kind == "external":
            command = menu.add.text_input(
                "Command: ", default=spec.command or "", maxchar=200, onchange=self.guard(self._command)
            )
            explain(command, "How the engine is started; it speaks the Hub protocol, version 2")
        if spec.kind in ("network", "rollout", "alphabeta"):
            units = [("amount of search", False), ("seconds per move", True)]
            unit = menu.add.selector("Strength by: ", units, default=int(spec.timed),
                                     onchange=self.guard(lambda value: self.change(timed=value)))  # fmt: skip
            explain(unit, "An amount of search is the same on every machine")
        self._strength(menu, spec)
        if spec.kind == "network":
            vary = menu.add.selector("Vary its moves: ", ON_OFF, default=int(spec.vary),
                                     onchange=self.guard(self._vary))  # fmt: skip
            explain(vary, "Games differ: the noise and the temperature of the search are used")
            ponder = menu.add.selector("Think in your time: ", ON_OFF, default=int(spec.ponder),
                                       onchange=self.guard(self._ponder))  # fmt: skip
            explain(ponder, "It searches on while you think, and answers sooner or better")
            settings = menu.add.button(
                "Settings of the search …", lambda: app.go.show(MenuScene(app, SearchPage(app, self)))
            )
            explain(settings, "Exploration, temperature, noise, oracle and all the others")
        explain(menu.add.button("Back", app.go.back), "")

    def _kind(self, kind: str) -> None:
        command = self.spec.command or ("engine" if kind == "external" else None)
        self.change(kind=kind, command=command)

    def _vary(self, value: bool) -> None:
        self.change(vary=value, rebuild=False)

    def _ponder(self, value: bool) -> None:
        self.change(ponder=value, rebuild=False)

    def _command(self, text: str) -> None:
        if text.strip():
            self.change(rebuild=False, command=text.strip())
        else:
            self.say("An external engine needs a command", alarm=True)

    def _strength(self, menu: pygame_menu.Menu, spec: OpponentSpec) -> None:
        steps = strength_steps(spec)
        if not steps:
            return

        def title() -> str:
            return f"Strength:  {strength_text(self.spec)}  "

        def moved(value: float) -> None:
            store_spec(self.app, self.who, with_strength(self.spec, round(value)))
            slider.set_title(title())

        slider = menu.add.range_slider(
            title(), strength_position(spec), list(range(len(steps))), onchange=self.guard(moved),
            range_text_value_enabled=False, slider_text_value_enabled=False, width=self._slider_width(menu),
        )  # fmt: skip
        explain(slider, "Left and right arrow make it weaker and stronger")

    def _slider_width(self, menu: pygame_menu.Menu) -> int:
        """What the title leaves of the page."""
        unit, width = self.app.style.unit, menu.get_width()
        return round(min(width * 0.42, max(4 * unit, width - 21 * unit)))


class CheckpointPage(Page):
    """The list of networks with their Elo."""

    title = "Networks"

    def __init__(self, app: "App", opponent: OpponentPage) -> None:
        super().__init__(app)
        self.opponent = opponent

    def fill(self, menu: pygame_menu.Menu) -> None:
        explain(menu.add.button("The shipped network", lambda: self._choose(None)), "Comes with the program")
        entries = self.app.opponents.checkpoints()
        for entry in entries:
            explain(
                menu.add.button(entry.label, lambda folder=entry.folder: self._choose(folder)),
                entry.detail or entry.folder,
            )
        text = menu.add.text_input("Folder: ", default="", maxchar=300, onreturn=self._choose)
        explain(text, "A checkpoint's or a run's folder that is not in the list; Enter takes it")
        explain(menu.add.button("Back", self.app.go.back), "")

    def _choose(self, folder: str | None) -> None:
        self.opponent.change(checkpoint=folder or None)
        self.app.go.back()


class SearchPage(Page):
    """Every setting of the search."""

    title = "Settings of the search"

    def __init__(self, app: "App", opponent: OpponentPage) -> None:
        super().__init__(app)
        self.opponent = opponent

    def fill(self, menu: pygame_menu.Menu) -> None:
        group = ""
        spec = self.opponent.spec
        for setting in SETTINGS:
            if setting.group != group:
                group = setting.group
                menu.add.label(group, font_color=self.app.style.theme.accent)
            self._add(menu, setting, spec)
        explain(menu.add.button("As they come", self._reset), "Sets all of these back")
        explain(menu.add.button("Back", self.app.go.back), "")

    def _add(self, menu: pygame_menu.Menu, setting: Setting, spec: OpponentSpec) -> None:
        value = setting.text(spec.search)
        idle = "" if in_use(spec, setting.name) else f"; has no effect now (needs: {setting.needs})"
        meaning = f"{setting.meaning} — {setting.range_text}; default {setting.default_text}{idle}"

        change = partial(self._change, setting)
        title = f"{setting.label}: "
        widget: Any
        if setting.kind in ("bool", "choice"):
            options = ["off", "on"] if setting.kind == "bool" else list(setting.choices)
            items = [(option, option) for option in options]
            widget = menu.add.selector(title, items, default=options.index(value), onchange=self.guard(change))
        else:
            widget = menu.add.text_input(title, default=value, maxchar=12, onchange=self.guard(change))
        if idle:
            widget.update_font({"color": self.app.style.theme.dim})
        explain(widget, meaning)

    def _change(self, setting: Setting, text: str) -> None:
        try:
            search = with_setting(self.opponent.spec.search, setting.name, text)
        except SettingError as error:
            self.say(str(error), alarm=True)
            return
        self.say("")
        self.opponent.change(rebuild=setting.kind in ("bool", "choice"), search=search)
        if setting.kind in ("bool", "choice"):
            self.rebuild()

    def _reset(self) -> None:
        self.opponent.change(search=OpponentSpec().search)
        self.rebuild()


class BallotPage(Page):
    """The 174 ballots."""

    title = "Ballots"

    def fill(self, menu: pygame_menu.Menu) -> None:
        for ballot in ballots():
            note = STATUS_TEXT[ballot.status]
            text = f"{ballot.number}.  {ballot}" + (f"   ({ballot.status})" if note else "")
            explain(
                menu.add.button(text, lambda number=ballot.number: self._choose(number)),
                note or "played in tournaments",
            )
        chosen = menu.get_widgets()[self.app.preferences.ballot - 1]
        menu.select_widget(chosen)

    def _choose(self, number: int) -> None:
        self.app.preferences.ballot = number
        self.app.go.back()
