"""Makes the pages of the reference from the code: command line, JSON keys, configuration, players."""

import inspect
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import crownhead
from engine.players.levels import LEVELS
from learner.network import NETWORKS
from learner.network_base import FamilyConfig
from selfplay.run.config import PRESETS, RunConfig, StudentConfig, make_config
from selfplay.run.stages import flat_settings

JSON_KEYS = Path(__file__).with_name("json_keys.toml")
MEANINGS = Path(__file__).with_name("json_meanings.toml")
Command = tuple[str, Any]


def commands() -> Iterator[Command]:
    """Yields (name, typer command) of every command; commands of groups have names like "tablebase build"."""

    def below(name: str, command: Any) -> Iterator[Command]:
        for part, inner in getattr(command, "commands", {}).items():
            yield from below(f"{name} {part}".strip(), inner)
        if not hasattr(command, "commands"):
            yield name, command

    yield from below("", typer.main.get_command(crownhead.app))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def commands_page() -> str:
    """Every command with its arguments and options, as ``--help`` shows them."""
    parts = [
        "# Command line\n",
        "Made from the program. Every command shows the same with `--help`. Bad input ends with one line on standard "
        "error and exit code 2; `CROWNHEAD_DEBUG=1` shows the traceback. Ctrl-C and SIGTERM save what can be "
        "continued and end with exit code 130. `crownhead --version` prints the version, and "
        "`crownhead --import MODULE COMMAND` imports your own networks first. Variables of the environment: "
        "`CROWNHEAD_IMPORT`, `CROWNHEAD_GAME`, `CROWNHEAD_TABLEBASE` (folder of tables), `CROWNHEAD_DEBUG`.\n",
    ]
    for name, command in commands():
        context = typer.Context(command, info_name=f"crownhead {name}")
        usage = re.sub(r"{(\w+)}", lambda match: match[1].upper(), " ".join(command.collect_usage_pieces(context)))
        help_text = inspect.cleandoc(command.help or "")
        parts += [f"## crownhead {name}\n", help_text + "\n", f"```text\ncrownhead {name} {usage}\n```\n"]
        records = [record for one in command.params if (record := one.get_help_record(context))]
        if records:
            rows = [(_code(" ".join(names.split())), _cell(text)) for names, text in records]
            parts.append(_table(("argument or option", "meaning"), rows))
    return "\n".join(parts)


def _type(hint: Any) -> str:
    """Name of a type in JSON, like "number or null" or "list of text"."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Annotated,) or str(origin).endswith(("NotRequired", "Required")):
        return _type(arguments[0])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_type, arguments)))
    if origin is Literal:
        return " or ".join(map(_literal, arguments))
    if origin in (list, tuple):
        return "list of " + _type(arguments[0])
    if origin is dict:
        return f"object of {_type(arguments[1])}"
    if is_typeddict(hint):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    names = {str: "text", int: "integer", float: "number", bool: "true or false", NoneType: "null", Any: "any"}
    return names.get(hint, "any")


def _literal(value: Any) -> str:
    return "null" if value is None else f"`{value}`"


def _inner(hint: Any) -> Iterator[Any]:
    """The typed dicts that occur in a type."""
    if is_typeddict(hint):
        yield hint
    for argument in get_args(hint):
        yield from _inner(argument)


def _about(kind: Any) -> str:
    """The docstring of a typed dict as Markdown."""
    return inspect.cleandoc(kind.__doc__ or "").replace("``", "`") + "\n"


class JsonTypes:
    """Makes the sections about typed dicts, each once per page."""

    def __init__(self) -> None:
        self._meanings: dict[str, str] = tomllib.loads(MEANINGS.read_text("utf-8"))
        self._used, self._seen = set[str](), set[str]()
        self._missing: list[str] = []

    def section(self, kind: Any) -> list[str]:
        """The table of the keys of ``kind``, then the sections of typed dicts inside it; [] if it was shown before."""
        if kind.__name__ in self._seen:
            return []
        self._seen.add(kind.__name__)
        fields = get_type_hints(kind, include_extras=True)
        rows = []
        for key, hint in fields.items():
            name = _code(key) + (" (optional)" if key in kind.__optional_keys__ else "")
            rows.append((name, _type(hint), self._meaning(kind, key)))
        parts = [f"### {kind.__name__}\n", _about(kind), _table(("key", "type", "meaning"), rows)]
        for hint in fields.values():
            for inner in _inner(hint):
                parts += self.section(inner)
        return parts

    def _meaning(self, kind: Any, key: str) -> str:
        found = next((name for name in (f"{kind.__name__}.{key}", key) if name in self._meanings), None)
        if found is None:
            self._missing.append(f"{kind.__name__}.{key}")
            return ""
        self._used.add(found)
        return self._meanings[found]

    def check(self) -> None:
        """Raises ``ValueError`` unless every key has a meaning and every meaning is used."""
        if self._missing or self._meanings.keys() - self._used:
            spare = sorted(self._meanings.keys() - self._used)
            raise ValueError(f"{MEANINGS.name}: no meaning for {self._missing}, no key for {spare}")


def json_page() -> str:
    """The keys that each command prints with ``--json``, from typed dicts or from ``json_keys.toml``.

    Raises:
        ValueError: a command with ``--json`` has no description, or a description has no command.
    """
    described = tomllib.loads(JSON_KEYS.read_text("utf-8"))
    with_json = [name for name, command in commands() if any("--json" in one.opts for one in command.params)]
    if set(with_json) != set(described):
        raise ValueError(f"{JSON_KEYS.name} and the commands with --json differ: {set(with_json) ^ set(described)}")
    parts = [
        "# JSON\n",
        "With `--json` a command prints one JSON object as the last line of standard output; `probe` prints nothing "
        "but an array, one element a line. These keys are an interface: changes of them are in the list of changes. "
        "Outcomes, values and probabilities are for the side to move.\n",
    ]
    types = JsonTypes()
    for name in with_json:
        parts.append(f"## {name}\n")
        entry = described[name]
        for path in entry.get("types", []):
            module, _, kind = path.partition(":")
            parts += types.section(getattr(import_module(module), kind))
        if "keys" in entry:
            parts.append(_table(("key", "meaning"), [(_code(key), text) for key, text in entry["keys"].items()]))
        parts.append(entry.get("note", "") + "\n")
    types.check()
    return "\n".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, BaseModel):
        named = [name for name, network in NETWORKS.items() if network == value]
        return named[0] if named else type(value).__name__
    return json.dumps(value)


def _constraints(field: Any) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    found = [
        f"{words[key]} {value}"
        for one in field.metadata
        for key in words
        if (value := getattr(one, key, None)) is not None
    ]
    return ", ".join(found)


def _attributes(model: type[BaseModel]) -> dict[str, str]:
    """Field → meaning, from the section "Attributes:" of a docstring; for fields without a description."""
    _, _, section = inspect.cleandoc(model.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in textwrap.dedent(section).splitlines():
        if line and not line.startswith(" ") and ":" in line:
            head, _, text = line.partition(":")
            names = [name.strip() for name in head.split(",")]
            found |= dict.fromkeys(names, text.strip())
        else:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def _models(hint: Any) -> list[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [hint] if hint is not FamilyConfig else []  # stands for families of users
    return [model for argument in get_args(hint) for model in _models(argument)]


def _as_elsewhere(model: type[BaseModel], place: str, default: Any) -> str:
    """Refers to the place on the page where a model is shown, and names defaults that differ."""
    plain = {name: field.default for name, field in model.model_fields.items()}
    differing = {name: value for name, value in (default or {}) if value != plain[name]}
    others = ", ".join(f"`{name}` {_value(value)}" for name, value in differing.items())
    return f"as `{place}`" + (f"; by default {others}" if others else "")


def _model_section(model: type[BaseModel], prefix: str, seen: dict[type[BaseModel], str]) -> list[str]:
    """The table of a model's settings, then the sections of models inside it that were not shown yet."""
    about = inspect.cleandoc(model.__doc__ or "").partition("Attributes:")[0].replace("``", "`").strip()
    rows, inner, attributes = [], [], _attributes(model)
    fields = sorted(
        model.model_fields.items(), key=lambda item: bool(_models(item[1].annotation)) and item[1].default is None
    )
    for name, field in fields:
        key, below = _code(prefix + name), [] if name == "stages" else _models(field.annotation)
        if below and below[0] in seen:
            own = field.default if isinstance(field.default, below[0]) else None
            rows.append((key, "", "", _as_elsewhere(below[0], seen[below[0]], own)))
        elif below:
            inner += [(one, f"{prefix}{name}.") for one in below]
            seen |= dict.fromkeys(below, prefix + name)
        else:
            default = "needed" if field.default is PydanticUndefined else _code(_value(field.default))
            meaning = field.description or attributes.get(name, "")
            rows.append((key, default, _cell(_constraints(field)), _cell(meaning).replace("``", "`")))
    family = model.model_fields.get("family")
    title = (prefix.rstrip(".") or "The run") + (f" ({family.default})" if family else "")
    parts = [f"## {title}\n", about + "\n", _table(("setting", "default", "range", "meaning"), rows)]
    for one, path in inner:
        parts += _model_section(one, path, seen)
    return parts


def configuration_page() -> str:
    """All settings of a run with defaults, ranges and meanings, and the changes of each preset."""
    parts = [
        "# Configuration\n",
        "Made from the code. Every setting can be changed by `--set KEY=VALUE` of `crownhead train`. The configuration "
        "of a run is in its folder as `config.json`. Unknown settings are refused.\n",
        *_model_section(RunConfig, "", {}),
        "## Presets\n",
        "Each preset changes these settings; all others are as above.\n",
    ]
    for name in PRESETS:
        rows = [(_code(key), _code(value)) for key, value in _changes(make_config(name))]
        parts += [f"### {name}\n", _table(("setting", "value"), rows)]
    sizes = [(_code(name), config.family, config.size) for name, config in NETWORKS.items()]
    parts += ["## Named networks\n", "As in `--set network=NAME`.\n", _table(("name", "family", "size"), sizes)]
    return "\n".join(parts)


def _changes(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Settings of a preset that differ from the defaults; a network counts as one setting."""
    before = flat_settings(RunConfig.model_construct(student=StudentConfig()))
    networks = {"network.": config.network}
    if config.student is not None:
        networks["student.network."] = config.student.network
    for prefix, network in networks.items():
        yield prefix.rstrip("."), _value(network) if network in NETWORKS.values() else network.size
    for key, value in flat_settings(config).items():
        if value != before.get(key) and not key.startswith((*networks, "preset")):
            yield key, _value(value)


def levels_table() -> str:
    """Table of the levels of ``level:NAME``."""
    rows = [
        (_code(f"level:{one.name}"), one.title, str(one.temperature), str(one.simulations), str(one.elo))
        for one in LEVELS
    ]
    return _table(("player", "title", "temperature", "simulations", "Elo above the first, measured"), rows)
