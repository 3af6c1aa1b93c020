"""Parses a player's text on the command line into a specification; nothing is opened, started or loaded here.

Code that needs to know the kind of a player (whether it uses a network, runs a program, or uses its time) asks the
specification.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from pydantic import ValidationError

from ..errors import shortened
from ..search import BOARD_SEARCH, SearchConfig
from .alphabeta import MAX_DEPTH
from .base import PlayerError, PlayerSpecError
from .hub import PREFIX, split_command
from .levels import Level, level_named
from .rollout import MAX_SIMULATIONS as MAX_ROLLOUTS

CHAMPION = "champion"
"""The name of the network that comes with the program."""
OracleName = Literal["off", "tablebase"]
DEFAULT_ORACLE: OracleName = BOARD_SEARCH.oracle
BackendName = Literal["auto", "student", "torch", "torch-float32", "numba", "numba-int16"]
"""``auto``: the fastest one for the network. ``student``: uses the small network next to a checkpoint in its place.

``torch`` uses bf16 where the device has it, ``numba`` float32 (wide networks always take 16-bit integers).
"""
DEFAULT_NODES = 20_000  # nodes of alpha-beta with a network per move, if neither a number nor a time is given
MAX_SIMULATIONS = 200_000  # largest number of simulations per move; 0 is allowed, too
OPTIONS = "after @ write off, tablebase, ponder, impartial, simulations, a backend, or a setting like c_puct=1.2"
_VARYING = {"dirichlet_scale", "noise_fraction", "temperature", "temperature_plies", "final_temperature"}
_SETTINGS = SearchConfig.model_fields.keys() - {"num_simulations", "oracle"}  # these have options of their own
_ALPHABETA = "alphabeta:"
_LEVEL = "level:"
_EXAMPLES = {"random": "random", "rollout": "rollout:200", "alphabeta": "alphabeta:8"}
_WITHOUT_NETWORK = (*_EXAMPLES, "tablebase", "rules", "hub")


@dataclass(frozen=True)
class _Spec:
    """Base class of the specifications of players without a network."""

    kind: ClassVar[str]
    timed: ClassVar[bool] = False
    """Whether the player uses a time limit."""
    repeats: ClassVar[bool] = False
    """Whether it answers from the board alone, so that it plays the same game again."""

    @property
    def text(self) -> str:
        """The player's text on the command line, in its shortest form."""
        return ":".join([self.kind, *(str(value) for value in self.__dict__.values() if value is not None)])


@dataclass(frozen=True)
class RandomSpec(_Spec):
    """``random``."""

    kind = "random"


@dataclass(frozen=True)
class RolloutSpec(_Spec):
    """``rollout:SIMULATIONS``."""

    simulations: int
    kind = "rollout"


@dataclass(frozen=True)
class AlphaBetaSpec(_Spec):
    """``alphabeta:DEPTH``."""

    depth: int
    kind, timed = "alphabeta", True


@dataclass(frozen=True)
class TablebaseSpec(_Spec):
    """``tablebase`` or ``tablebase:FOLDER``; the default folder if None."""

    folder: str | None = None
    kind = "tablebase"


@dataclass(frozen=True)
class RulesSpec(_Spec):
    """``rules`` or ``rules:FILE``; the rules that come with the package if None."""

    path: str | None = None
    kind, repeats = "rules", True


@dataclass(frozen=True)
class HubSpec(_Spec):
    """``hub:COMMAND``, an external engine."""

    command: str
    kind, timed = "hub", True


@dataclass(frozen=True)
class NetworkSpec:
    """``FOLDER[@OPTION]...``, tree search with a network. Options may stand in any order.

    ``alphabeta:FOLDER`` is alpha-beta with the network; its options are ``@off`` and the number of nodes per move.

    Attributes:
        folder: folder of a checkpoint or a run, or ``champion``.
        oracle: endgame oracle, ``@off`` or ``@tablebase`` (the default).
        simulations: simulations per move (``@800``), or nodes with ``alphabeta``; None: as the match says.
        backend: backend of the evaluator (``@numba-int16``); None: as the match says.
        ponder: whether it searches in its opponent's time (``@ponder``).
        impartial: whether a draw counts as half a win (``@impartial``); otherwise the search has contempt for draws.
        settings: names and values of other settings of the search (``SearchConfig``), as ``@c_puct=1.2``.
        alphabeta: whether it searches by alpha-beta.
        level: level of ``level:NAME``, played by the champion's student; it determines the other attributes.
    """

    folder: str
    oracle: OracleName = DEFAULT_ORACLE
    simulations: int | None = None
    backend: BackendName | None = None
    ponder: bool = False
    impartial: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    alphabeta: bool = False
    level: Level | None = None

    @property
    def timed(self) -> bool:
        """Whether the player uses a time limit."""
        return self.level is None

    @property
    def repeats(self) -> bool:
        """Whether, without a time limit, it plays the same game again; others draw moves by chance."""
        return self.level is None and not self.alphabeta

    @property
    def text(self) -> str:
        """The player's text on the command line, without options that have their default."""
        if self.level is not None:
            return f"{_LEVEL}{self.level.name}"
        oracle = None if self.oracle == DEFAULT_ORACLE else self.oracle
        flags = ("ponder" if self.ponder else None, "impartial" if self.impartial else None)
        settings = (f"{name}={value}" for name, value in self.settings)
        options = (self.simulations, oracle, self.backend, *flags, *settings)
        folder = f"{_ALPHABETA}{self.folder}" if self.alphabeta else self.folder
        return "@".join([folder, *(str(option) for option in options if option is not None)])

    def changed(self, search: SearchConfig) -> SearchConfig:
        """``search`` with the changes of these options; raises ``PlayerSpecError`` if a setting is out of range."""
        for name, value in self.settings:
            try:
                search = SearchConfig.model_validate({**search.model_dump(), name: value})
            except ValidationError as error:
                raise PlayerSpecError(f"{self.folder}@{name}={value}: {error.errors()[0]['msg']}") from error
        return search.impartial() if self.impartial else search

    def check_steady(self) -> None:
        """Raises ``PlayerSpecError`` for a setting that has no effect in a search without noise and temperature."""
        for name, value in self.settings:
            if name in _VARYING:
                raise PlayerSpecError(
                    f"{self.folder}@{name}={value}: noise and temperature count only at the graphical board and in "
                    "training: leave it out"
                )


SimpleSpec = RandomSpec | RolloutSpec | AlphaBetaSpec | TablebaseSpec | RulesSpec | HubSpec
"""Players that ``simple.make_simple_player`` makes."""
PlayerSpec = SimpleSpec | NetworkSpec


def parse_player(text: str) -> PlayerSpec:
    """Parses the text of a player.

    It is ``random``, ``rollout:SIMULATIONS``, ``alphabeta:DEPTH``, ``tablebase``, ``tablebase:FOLDER``, ``rules``,
    ``rules:FILE``, ``hub:COMMAND``, ``level:NAME``, ``alphabeta:FOLDER``, or the folder of a network with its options.

    Raises:
        PlayerSpecError: a number is missing, invalid, out of range, or not allowed here; there is no such level; or a
            command or an option cannot be parsed.
        PlayerError: the number of simulations is out of range.
    """
    if text.startswith(PREFIX):
        command = text.removeprefix(PREFIX).strip()
        split_command(command)
        return HubSpec(command)
    if text.startswith(_LEVEL):
        return at_level(level_named(text.removeprefix(_LEVEL)))
    kind, colon, number = text.partition(":")
    if kind == "tablebase":
        return TablebaseSpec(number or None)
    if kind == "rules":
        return RulesSpec(number or None)
    if kind not in _EXAMPLES:
        return _parse_network(text)
    if text.startswith(_ALPHABETA) and not re.match(r" *[0-9]|$", number):
        return _parse_alphabeta(number)
    if kind == "random" and not colon:
        return RandomSpec()
    if kind == "random" or not re.fullmatch("[0-9]{1,9}", number):
        raise PlayerSpecError(f"{shortened(text, 40)!r} is no player: write it like {_EXAMPLES[kind]}")
    most = MAX_ROLLOUTS if kind == "rollout" else MAX_DEPTH
    if not 1 <= int(number) <= most:
        raise PlayerSpecError(f"{text!r} is no player: its number is not in 1 to {most}")
    return RolloutSpec(int(number)) if kind == "rollout" else AlphaBetaSpec(int(number))


def at_level(level: Level) -> NetworkSpec:
    """The specification of the player at a level."""
    return NetworkSpec(CHAMPION, "off", level.simulations, "student", level=level)


def _parse_network(text: str) -> NetworkSpec:
    """Parses options from the end backwards; the text before them is the folder's name.

    Of an option, or of a setting, that is given several times the last one counts.
    """
    options: dict[str, Any] = {}
    while True:
        folder, _, ending = text.rpartition("@")
        option = _option(ending) if folder else None
        if option is None:
            break
        if option[0] == "settings":
            later = dict(options.get("settings", ()))
            options["settings"] = tuple(sorted({**dict(option[1]), **later}.items()))
        else:
            options.setdefault(*option)
        text = folder
    spec = NetworkSpec(text, **options)
    check_simulations(spec.simulations or 0)
    return spec


def _parse_alphabeta(text: str) -> NetworkSpec:
    spec = replace(_parse_network(text), alphabeta=True)
    if spec != NetworkSpec(spec.folder, spec.oracle, spec.simulations, alphabeta=True):
        raise PlayerSpecError(f"{_ALPHABETA}{text}: after @ only off and a number of nodes are allowed")
    if spec.simulations == 0:
        raise PlayerSpecError(f"{_ALPHABETA}{text}: the number of nodes is 0, at least 1 is needed")
    return spec


def check_simulations(number: int) -> None:
    """Raises ``PlayerError`` unless ``number`` is an allowed number of simulations per move."""
    if not 0 <= number <= MAX_SIMULATIONS:
        raise PlayerError(f"number of simulations is {number}, not in 0 to {MAX_SIMULATIONS}")


def _option(ending: str) -> tuple[str, Any] | None:
    """Name and value of the attribute that an option sets; None if the text is not an option."""
    name, equals, value = ending.partition("=")
    if equals and name in _SETTINGS:
        return "settings", ((name, value),)
    if ending in get_args(OracleName):
        return "oracle", ending
    if ending in get_args(BackendName):
        return "backend", ending
    if ending in ("ponder", "impartial"):
        return ending, True
    if re.fullmatch("[0-9]{1,18}", ending):
        return "simulations", int(ending)
    return None


def parse_network(text: str) -> NetworkSpec:
    """Parses the text of a player with a network; raises ``PlayerError`` if it is another player."""
    spec = parse_player(text)
    if not isinstance(spec, NetworkSpec):
        raise PlayerError(why_no_network(text))
    return spec


def parse_tree_player(text: str) -> NetworkSpec:
    """``parse_network`` for what looks into the tree of a search; raises ``PlayerError`` also if there is none."""
    spec = parse_network(text)
    if spec.alphabeta or spec.level is not None:
        raise PlayerError(f"{text!r} has no search tree to look into: name only the network")
    return spec


def why_no_network(text: str) -> str:
    """Message for a text that names no network: what is wrong and what to write."""
    if text.partition(":")[0] in _WITHOUT_NETWORK:
        return f"{text!r} is a player without a network: it has no options after @, and there is no network to load"
    folder, at, ending = text.rpartition("@")
    if at and folder and _option(ending):
        return f"{text!r}: name only the network here, without options after @"
    if at and not Path(text).exists():
        return f"{text!r}: {ending!r} is no option of {folder}: {OPTIONS}"
    return (
        f"{text!r} is no player: networks are the folder of a checkpoint or a run, or champion; players without are "
        "random, rollout:SIMULATIONS, alphabeta:DEPTH, level:NAME, tablebase, rules and hub:COMMAND"
    )


def one_of(text: str, names: Any, what: str, error: type[ValueError] = PlayerError) -> Any:
    """Returns ``text`` if it is a value of the ``Literal`` ``names``; else raises ``error`` with these values.

    ``what``: what the text should be, for the message.
    """
    if text not in get_args(names):
        raise error(f"{text!r} is no {what}: choose one of {', '.join(get_args(names))}")
    return text
