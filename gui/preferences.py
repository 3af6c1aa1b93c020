"""The user's preferences, stored in the platform's folder for settings. A file that cannot be used is renamed."""

import os
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from engine.files import atomic_write, make_folder

from .game.clocks import TimeControlText

FILE_NAME = "preferences.json"
BROKEN_SUFFIX = ".broken"
_LARGEST_FILE = 1 << 20  # bytes of the largest file that is read
_SHOWN = 60


class Preferences(BaseModel):
    """The settings that are kept between starts. Assigning an invalid value raises ``ValidationError``."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, allow_inf_nan=False)

    version: Literal[1] = Field(1, description="version of this file's format")
    theme: str = Field("classic", min_length=1, max_length=40, description="colours of the board and the window")
    show_numbers: bool = Field(True, description="PDN numbers on the squares")
    bottom: Literal["own", "white", "black"] = Field("own", description="the side at the bottom of the board")
    show_targets: bool = Field(True, description="mark where the selected piece can go")
    show_movable: bool = Field(True, description="outline the pieces that can, or must, move")
    show_last_move: bool = Field(True, description="mark the last move")
    animation_ms: int = Field(220, ge=0, le=2000, description="milliseconds per step on the board; 0: no animation")
    one_click: bool = Field(False, description="one click plays a move if only one is possible")
    auto_complete: bool = Field(True, description="finish a capture automatically if only one is left")
    show_arrows: bool = Field(True, description="arrows for the moves that the agent considers")
    show_wdl: bool = Field(True, description="bar of wins, draws and losses")
    show_graph: bool = Field(True, description="graph of the game's evaluation")
    show_moves_table: bool = Field(True, description="table of the moves that the agent considers")
    show_line: bool = Field(True, description="the line that the agent expects")
    sounds: bool = Field(True, description="sounds of moves and of the end of a game")
    window_width: int = Field(1100, ge=480, le=16384, description="width of the window in pixels")
    window_height: int = Field(760, ge=360, le=16384, description="height of the window in pixels")
    fullscreen: bool = Field(False, description="fill the screen")
    ui_scale: float = Field(0.0, ge=0, le=4, description="size of texts and buttons; 0 follows the screen")
    mode: Literal["human-agent", "human-human", "agent-agent"] = Field("human-agent", description="who plays whom")
    side: Literal["black", "white", "random"] = Field("black", description="your side against the agent")
    adaptive: bool = Field(False, description="the next level is one up after a win, one down after a loss")
    opening: Literal["start", "random-ballot", "ballot", "position"] = Field("start", description="where games start")
    ballot: int = Field(1, ge=1, le=174, description="number of the chosen ballot")
    time_control: TimeControlText = "-"
    opponents: dict[str, dict[str, JsonValue]] = Field({}, max_length=8, description="agents by seat")
    search: dict[str, JsonValue] = Field({}, exclude=True, max_length=64, description="in older files; nothing uses it")
    collection: str = Field("", max_length=4096, description="file or folder of games for the openings")
    last_folder: str = Field("", max_length=4096, description="folder where a game was last saved or loaded")


def preferences_path() -> Path:
    return platformdirs.user_config_path("crownhead", appauthor=False) / FILE_NAME


def load_preferences(path: Path) -> tuple[Preferences, str]:
    """Reads the preferences; uses the defaults if there is no file or it cannot be used. Never raises.

    Returns:
        The preferences; and a one-line message that says what was wrong and where the file is now, "" if nothing.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        return Preferences(), ""
    except OSError as error:  # the defaults must not replace it
        return Preferences(), _set_aside(path, f"cannot read {path}: {error.strerror or error}")
    if len(data) > _LARGEST_FILE:
        return Preferences(), _set_aside(path, f"it is larger than {_LARGEST_FILE >> 20} MiB")
    try:
        return Preferences.model_validate_json(data), ""
    except ValidationError as error:
        return Preferences(), _set_aside(path, _first_error(error))


def save_preferences(preferences: Preferences, path: Path) -> None:
    """Writes the preferences; raises ``StorageError`` on failure, and then the file is unchanged."""
    make_folder(path.parent)
    atomic_write(path, preferences.model_dump_json(indent=2).encode() + b"\n")


def _set_aside(path: Path, why: str) -> str:
    return f"preferences: {why}; the defaults are used, and the file {set_aside(path)}"


def set_aside(path: Path) -> str:
    """Renames a file that cannot be used, for a new one not to replace it; says what became of it. Never raises."""
    broken = path.with_name(path.name + BROKEN_SUFFIX)
    try:
        os.replace(path, broken)
    except OSError as error:
        return f"cannot be set aside: {error.strerror or error}"
    return f"is kept as {broken.name}"


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "the file cannot be read"
    if not first["loc"]:
        return "the file holds no settings"
    where = ".".join(map(str, first["loc"]))[:_SHOWN]
    return f"{where!r} is no setting" if first["type"] == "extra_forbidden" else f"the value of {where!r} does not fit"
