"""The table of all keys and their actions, used by the help page, the tooltips and the dispatch of keys."""

import enum
from functools import cache
from typing import NamedTuple

SCENES = ("menu", "game", "setup", "help", "report", "exercise", "openings")


Action = enum.StrEnum(  # what a key or a button can do
    "Action",
    "CURSOR_LEFT CURSOR_RIGHT CURSOR_UP CURSOR_DOWN NEXT_SQUARE PREVIOUS_SQUARE ENTER TYPE BACKSPACE CANCEL UNDO REDO "
    "FIRST PREVIOUS NEXT LAST NEW_GAME RESIGN OFFER_DRAW ACCEPT DECLINE PAUSE HINT MOVE_NOW TAKE_OVER ANALYSE REPORT "
    "SAVE LOAD COPY_FEN COPY_PDN COPY_PICTURE PASTE SETUP FLIP NUMBERS ARROWS PANELS THEME LARGER SMALLER FULLSCREEN "
    "NEXT_CONTROL PREVIOUS_CONTROL MENU SETTINGS LESSONS HELP QUIT SET_MAN_BLACK SET_KING_BLACK SET_MAN_WHITE "
    "SET_KING_WHITE SET_ERASER SET_TURN SET_CLEAR SET_START SET_SWAP SET_DONE NEXT_PAGE PREVIOUS_PAGE REWIND VARIATION "
    "COMMENT REMATCH OPENINGS TEXT_UP TEXT_DOWN",
)


class Binding(NamedTuple):
    """An action, its keys (see ``combination``) in some scenes, and its text and heading on the help page."""

    action: Action
    keys: tuple[str, ...]
    text: str
    group: str
    scenes: tuple[str, ...]


DIRECTIONS = {Action(f"cursor_{direction}"): direction for direction in ("left", "right", "up", "down")}
_GAME = ("game",)
_BOARDS = ("game", "setup")
_ENTRY = ("game", "exercise")  # a move can be entered
_CURSOR = ("game", "setup", "exercise")
_REVIEW = ("game", "report", "openings")
_TURNED = (*_CURSOR, "report", "openings")
_TEXTS = ("setup", "exercise", "report", "openings")
_SETUP = ("setup",)
_PAGES = ("help",)
_DIGITS = tuple("0123456789-x")

BINDINGS = (
    Binding(Action.CURSOR_LEFT, ("left",), "cursor one square left", "Moving", _CURSOR),
    Binding(Action.CURSOR_RIGHT, ("right",), "cursor one square right", "Moving", _CURSOR),
    Binding(Action.CURSOR_UP, ("up",), "cursor one row up", "Moving", _CURSOR),
    Binding(Action.CURSOR_DOWN, ("down",), "cursor one row down", "Moving", _CURSOR),
    Binding(Action.NEXT_SQUARE, ("tab",), "cursor to the next piece or target", "Moving", _GAME),
    Binding(Action.PREVIOUS_SQUARE, ("shift+tab",), "cursor to the piece or target before", "Moving", _GAME),
    Binding(Action.ENTER, ("return", "space"), "choose the piece or target; play the typed move", "Moving", _ENTRY),
    Binding(Action.ENTER, ("return", "space"), "put down or take away a piece", "Moving", _SETUP),
    Binding(Action.TYPE, _DIGITS, "type a move, like 11-15 or 15x22", "Moving", _ENTRY),
    Binding(Action.BACKSPACE, ("backspace",), "take back a typed character", "Moving", _ENTRY),
    Binding(Action.CANCEL, ("escape",), "drop what is typed or chosen; otherwise open the menu", "Moving", _GAME),
    Binding(Action.UNDO, ("ctrl+z", "u"), "take back", "Game", _GAME),
    Binding(Action.REDO, ("ctrl+y", "ctrl+shift+z"), "make again what was taken back", "Game", _GAME),
    Binding(Action.FIRST, ("home",), "go to the first position", "Game", _REVIEW),
    Binding(Action.PREVIOUS, ("page up", ","), "go one move back", "Game", _REVIEW),
    Binding(Action.NEXT, ("page down", "."), "go one move forward", "Game", _REVIEW),
    Binding(Action.LAST, ("end",), "go to the last position", "Game", _REVIEW),
    Binding(Action.VARIATION, ("v",), "go to another move that was made here", "Game", _GAME),
    Binding(Action.COMMENT, ("c",), "comment on the last move; remove a variation", "Game", _GAME),
    Binding(Action.NEW_GAME, ("ctrl+n",), "new game", "Game", _GAME),
    Binding(Action.REMATCH, ("ctrl+r",), "after the game: again, with the colours swapped", "Game", _GAME),
    Binding(Action.RESIGN, ("r",), "resign", "Game", _GAME),
    Binding(Action.OFFER_DRAW, ("d",), "offer a draw", "Game", _GAME),
    Binding(Action.ACCEPT, ("y",), "say yes to a question", "Game", _GAME),
    Binding(Action.DECLINE, ("n",), "say no to a question", "Game", _GAME),
    Binding(Action.PAUSE, ("p",), "stop the clock, or let it run on", "Game", _GAME),
    Binding(Action.HINT, ("h",), "show a good move", "Agent", _GAME),
    Binding(Action.HINT, ("h",), "a hint: the piece, then its target, then the line", "Puzzles", ("exercise",)),
    Binding(Action.REWIND, ("z", "ctrl+z"), "take a wrong answer back; start again", "Puzzles", ("exercise",)),
    Binding(Action.NEXT_PAGE, ("n", "page down"), "the next one", "Puzzles", ("exercise",)),
    Binding(Action.PREVIOUS_PAGE, ("page up",), "the one before, of lessons and mistakes", "Puzzles", ("exercise",)),
    Binding(Action.MOVE_NOW, ("m",), "have the agent move now", "Agent", _GAME),
    Binding(Action.TAKE_OVER, ("t",), "take over the other side", "Agent", _GAME),
    Binding(Action.ANALYSE, ("a",), "analyse this position, or stop", "Agent", ("game", "openings")),
    Binding(Action.OPENINGS, ("o",), "openings: what was played from here, with results", "Agent", _GAME),
    Binding(Action.REPORT, ("g",), "report on the whole game", "Agent", _GAME),
    Binding(Action.SAVE, ("ctrl+s",), "save the game as PDN", "Files", _GAME),
    Binding(Action.LOAD, ("ctrl+o",), "load a game", "Files", _GAME),
    Binding(Action.COPY_FEN, ("ctrl+c",), "copy the position as FEN", "Files", _BOARDS),
    Binding(Action.COPY_PDN, ("ctrl+shift+c",), "copy the game as PDN", "Files", _GAME),
    Binding(Action.COPY_PICTURE, ("ctrl+p",), "copy the position as a picture, which is saved as well", "Files", _GAME),
    Binding(Action.PASTE, ("ctrl+v",), "paste a position or a game", "Files", _GAME),
    Binding(Action.PASTE, ("ctrl+v",), "paste a position", "Files", _SETUP),
    Binding(Action.SETUP, ("ctrl+e",), "set up a position", "Files", _GAME),
    Binding(Action.SET_MAN_BLACK, ("1",), "put down black men", "Setting up", _SETUP),
    Binding(Action.SET_KING_BLACK, ("2",), "put down black kings", "Setting up", _SETUP),
    Binding(Action.SET_MAN_WHITE, ("3",), "put down white men", "Setting up", _SETUP),
    Binding(Action.SET_KING_WHITE, ("4",), "put down white kings", "Setting up", _SETUP),
    Binding(Action.SET_ERASER, ("0", "delete"), "take pieces away", "Setting up", _SETUP),
    Binding(Action.SET_TURN, ("t",), "change the side to move", "Setting up", _SETUP),
    Binding(Action.SET_CLEAR, ("c",), "clear the board", "Setting up", _SETUP),
    Binding(Action.REWIND, ("z", "ctrl+z"), "take the last change back", "Setting up", _SETUP),
    Binding(Action.SET_START, ("s",), "the start position", "Setting up", _SETUP),
    Binding(Action.SET_SWAP, ("w",), "change the colours and turn the board", "Setting up", _SETUP),
    Binding(Action.SET_DONE, ("ctrl+return",), "play from this position", "Setting up", _SETUP),
    Binding(Action.NEXT_PAGE, ("right", "page down"), "next page", "Pages", _PAGES),
    Binding(Action.PREVIOUS_PAGE, ("left", "page up"), "page before", "Pages", _PAGES),
    Binding(Action.CURSOR_UP, ("up",), "the mistake before", "Pages", ("report",)),
    Binding(Action.CURSOR_DOWN, ("down",), "the next mistake", "Pages", ("report",)),
    Binding(Action.CURSOR_UP, ("up",), "the move above", "Pages", ("openings",)),
    Binding(Action.CURSOR_DOWN, ("down",), "the move below", "Pages", ("openings",)),
    Binding(Action.ENTER, ("return", "space"), "go on with the chosen move", "Pages", ("openings",)),
    Binding(Action.TEXT_UP, ("shift+up",), "back in a text that does not fit", "Pages", _TEXTS),
    Binding(Action.TEXT_DOWN, ("shift+down",), "on in a text that does not fit", "Pages", _TEXTS),
    Binding(Action.FLIP, ("f",), "turn the board round", "Window", _TURNED),
    Binding(Action.NUMBERS, ("b",), "numbers on the squares on or off", "Window", _TURNED),
    Binding(Action.ARROWS, ("w",), "arrows for the agent's moves on or off", "Window", _GAME),
    Binding(Action.PANELS, ("e",), "what the agent thinks: show or hide", "Window", _GAME),
    Binding(Action.THEME, ("ctrl+t",), "next theme", "Window", SCENES),
    Binding(Action.LARGER, ("ctrl+=", "ctrl++"), "larger texts and buttons", "Window", SCENES),
    Binding(Action.SMALLER, ("ctrl+-",), "smaller texts and buttons", "Window", SCENES),
    Binding(Action.FULLSCREEN, ("f11", "alt+return"), "fill the screen, or a window again", "Window", SCENES),
    Binding(Action.NEXT_CONTROL, ("f6",), "to the next button", "Window", SCENES[1:]),
    Binding(Action.PREVIOUS_CONTROL, ("shift+f6",), "to the button before", "Window", SCENES[1:]),
    Binding(Action.NEXT_CONTROL, ("tab",), "to the next button", "Window", SCENES[2:]),
    Binding(Action.PREVIOUS_CONTROL, ("shift+tab",), "to the button before", "Window", SCENES[2:]),
    Binding(Action.ENTER, ("return", "space"), "press the chosen button", "Window", ("report",)),
    Binding(Action.MENU, ("escape",), "back", "Window", SCENES[2:]),
    Binding(Action.MENU, ("f10",), "the menu", "Window", _GAME),
    Binding(Action.SETTINGS, ("ctrl+,",), "preferences", "Window", _GAME),
    Binding(Action.LESSONS, ("f2",), "lessons: the rules and the endings, done at the board", "Window", SCENES),
    Binding(Action.HELP, ("f1", "?"), "this page", "Window", SCENES),
    Binding(Action.QUIT, ("ctrl+q",), "close the window", "Window", SCENES),
)

_TABLE = {(scene, key): bound.action for bound in BINDINGS for scene in bound.scenes for key in bound.keys}
_LABELS = {"return": "Enter", "escape": "Esc"}
_TYPED = frozenset("0123456789-+=?,.")  # characters whose keys differ between keyboards


def combination(name: str, ctrl: bool = False, shift: bool = False, alt: bool = False, text: str = "") -> str:
    """A key with its modifiers in the form of this table, like ``ctrl+shift+z``.

    Args:
        name: pygame's name of the key. The keypad's ``[5]`` is 5 and ``enter`` is ``return``.
        text: the character that the key typed, if known. Digits and signs go by this character, since their keys differ
            between keyboards.
    """
    name = name.lower()
    if len(name) == 3 and name[0] == "[" and name[-1] == "]":
        name = name[1]
    if text in _TYPED and not ctrl and not alt:
        return text
    held = [modifier for modifier, on in (("ctrl", ctrl), ("alt", alt), ("shift", shift)) if on]
    key = "+".join([*held, {"enter": "return"}.get(name, name)])
    return {"shift+/": "?", "ctrl+shift+=": "ctrl++"}.get(key, key)


def action_for(scene: str, key: str) -> Action | None:
    """The action of a combination in a scene; None if it has none."""
    return _TABLE.get((scene, key))


def key_label(key: str) -> str:
    """A combination as text for people: ``Ctrl+Shift+Z``, ``Page Up``, ``Enter``."""
    plus = key.endswith("++")
    parts = key.removesuffix("++").split("+") + (["+"] if plus else [])
    return "+".join(_LABELS.get(part, part.title()) for part in parts)


@cache  # asked for every button in every frame
def keys_of(action: Action) -> str:
    """The keys for an action in a game, ``Ctrl+Z or U``."""
    keys = (key for bound in BINDINGS if "game" in bound.scenes and bound.action is action for key in bound.keys)
    return " or ".join(map(key_label, keys))


def help_rows(scene: str) -> list[tuple[str, str, str]]:
    """The help page of a scene: heading, keys, and what they do, in the order of the table."""
    return [
        (bound.group, "0-9, -, x" if bound.keys == _DIGITS else " or ".join(map(key_label, bound.keys)), bound.text)
        for bound in BINDINGS
        if scene in bound.scenes
    ]
