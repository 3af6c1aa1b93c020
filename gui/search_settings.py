"""The settings of a search for a menu: every field of ``SearchConfig`` with its meaning and range."""

from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from engine.errors import DraughtsError
from engine.players.spec import MAX_SIMULATIONS
from engine.search import BOARD_SEARCH, SearchConfig

from .game.opponents import OpponentSpec

SettingKind = Literal["int", "float", "bool", "choice"]
SettingValue = int | float | bool | str
_MOST = {"num_simulations": MAX_SIMULATIONS}  # limits of players that are lower than those of ``SearchConfig``
_SHOWN = 20  # characters of a wrong text that an error message repeats

# group → name → label, and what must be chosen for the setting to have an effect; in the order of the menu
_GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Search": {
        "num_simulations": ("Simulations", "strength by simulations"),
        "c_puct": ("Exploration", ""),
        "fpu_reduction": ("Untried moves", ""),
        "policy_temperature": ("Policy temperature", ""),
        "shot_prior": ("Shots", ""),
        "shot_visits": ("Shots after visits", ""),
        "draw_value": ("Value of a draw", ""),
        "contempt_lead": ("Full contempt if ahead by", "contempt"),
        "reuse_tree": ("Keep the tree", ""),
        "transpositions": ("Share positions", ""),
        "leaves_in_flight": ("Leaves in flight", ""),
        "virtual_loss": ("Virtual loss", "leaves in flight"),
    },
    "Variety": {
        "temperature": ("Temperature", "varied play"),
        "temperature_plies": ("Temperature plies", "varied play"),
        "final_temperature": ("Later temperature", "varied play"),
        "noise_fraction": ("Noise", "varied play"),
        "dirichlet_scale": ("Noise spread", "varied play, noise"),
    },
    "Endgame": {"oracle": ("Oracle", "")},
}


class SettingError(DraughtsError):
    """A value is not allowed for a setting; the message has one line."""


class Setting(NamedTuple):
    """One field of ``SearchConfig``.

    Attributes:
        minimum, maximum: range of a number; the minimum itself is excluded if ``above_minimum``.
        choices: values of a choice.
        needs: what else must be chosen for the setting to have an effect, in words separated by commas; "" if nothing.
    """

    name: str
    label: str
    meaning: str
    group: str
    kind: SettingKind
    minimum: float | None = None
    maximum: float | None = None
    above_minimum: bool = False
    choices: tuple[str, ...] = ()
    needs: str = ""

    @property
    def range_text(self) -> str:
        if self.kind == "bool":
            return "on or off"
        if self.kind == "choice":
            return ", ".join(self.choices[:-1]) + " or " + self.choices[-1]
        low = f"above {self.minimum:g}" if self.above_minimum else f"{self.minimum:,.10g}"
        return f"{low} to {self.maximum:,.10g}"

    def text(self, config: SearchConfig = BOARD_SEARCH) -> str:
        """The setting's value in a configuration as text, in the form that ``with_setting`` reads."""
        value = getattr(config, self.name)
        if isinstance(value, bool):
            return "on" if value else "off"
        return f"{value:g}" if isinstance(value, float) else str(value)


def _setting(name: str, field: FieldInfo, group: str, label: str, needs: str) -> Setting:
    choices: tuple[str, ...] = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    kinds: dict[Any, SettingKind] = {bool: "bool", int: "int", float: "float"}
    kind = "choice" if choices else kinds[field.annotation]
    bounds = {
        sign: getattr(bound, sign) for bound in field.metadata for sign in ("gt", "ge", "le") if hasattr(bound, sign)
    }
    least, most = bounds.get("gt", bounds.get("ge")), _MOST.get(name, bounds.get("le"))
    meaning = (field.description or "").replace("``", "")
    return Setting(name, label, meaning, group, kind, least, most, "gt" in bounds, choices, needs)


SETTINGS: tuple[Setting, ...] = tuple(
    _setting(name, SearchConfig.model_fields[name], group, label, needs)
    for group, fields in _GROUPS.items()
    for name, (label, needs) in fields.items()
)
_BY_NAME = {entry.name: entry for entry in SETTINGS}


def with_setting(config: SearchConfig, name: str, value: SettingValue) -> SearchConfig:
    """A copy of ``config`` with one setting changed to a value or its text; raises ``SettingError``."""
    entry = _BY_NAME[name]
    refusal = SettingError(f"{entry.label} is {entry.range_text}, not {str(value)[:_SHOWN]!r}")
    try:
        value = value.strip() if isinstance(value, str) else value
        changed = SearchConfig.model_validate({**config.model_dump(), name: value})
    except ValidationError as error:
        raise refusal from error
    if entry.maximum is not None and getattr(changed, name) > entry.maximum:
        raise refusal
    return changed


def in_use(spec: OpponentSpec, name: str) -> bool:
    """Whether a setting has an effect on the opponent's play with its present other settings."""
    config = spec.search
    given = {
        "strength by simulations": not spec.by_time,
        "varied play": spec.vary,
        "noise": config.noise_fraction > 0,
        "contempt": config.draw_value < 0,
        "leaves in flight": config.leaves_in_flight > 1,
    }
    needs = _BY_NAME[name].needs
    return spec.kind == "network" and all(given[need] for need in needs.split(", ") if need)
