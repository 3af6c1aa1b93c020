"""What a network player's text says: ``FOLDER[@OPTION]...``. The network itself is for other rooms."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from .base import PlayerError

CHAMPION = "champion"
"""The name of the network that comes with the program."""
OracleName = Literal["off", "tablebase"]
DEFAULT_ORACLE: OracleName = "tablebase"
BackendName = Literal["auto", "student", "torch", "torch-float32", "numba", "numba-int16"]
"""``auto``: the fastest for the network. ``student``: the small network that lies beside a checkpoint, in its place.

``torch`` uses bf16 where the device has it, ``numba`` float32.
"""

_WITHOUT_NETWORK = ("random", "rollout", "alphabeta", "tablebase", "hub")
OPTIONS = "behind @ stands off, tablebase, network, ponder, impartial, a number of simulations, or a backend"


@dataclass(frozen=True)
class NetworkText:
    """A network player as the command line names it. Options stand in any order.

    Attributes:
        folder: of a checkpoint or a run, or ``champion``.
        oracle: of its endgames, ``@off`` or ``@tablebase`` (the default).
        simulations: of its search per move, ``@800``; None: those of the match.
        backend: of its evaluator, ``@numba-int16``; None: that of the match.
        ponder: it searches in its opponent's time, ``@ponder``.
        impartial: a draw is half a win to it, ``@impartial``; else it risks something to avoid one.
    """

    folder: str
    oracle: OracleName = DEFAULT_ORACLE
    simulations: int | None = None
    backend: BackendName | None = None
    ponder: bool = False
    impartial: bool = False

    @staticmethod
    def parse(text: str) -> "NetworkText":
        """Reads options from the end on; what comes before the first that is none is the folder's name."""
        options: dict[str, Any] = {"oracle": DEFAULT_ORACLE}
        while True:
            folder, _, ending = text.rpartition("@")
            option = _option(ending) if folder else None
            if option is None:
                return NetworkText(text, **options)
            options[option[0]] = option[1]
            text = folder


def why_no_network(text: str) -> str:
    """What is wrong with a text that names no network, and what to write."""
    if text.partition(":")[0] in _WITHOUT_NETWORK:
        return f"{text!r} is a player without a network: it takes no options behind @, and there is nothing to load"
    folder, at, ending = text.rpartition("@")
    if at and NetworkText.parse(text).folder != text:
        return f"{text!r}: the network alone is wanted here, without options behind @"
    if at and not Path(text).exists():
        return f"{text!r}: {ending!r} is no option of {folder}: {OPTIONS}"
    return (
        f"{text!r} is no player: not the folder of a checkpoint or a run, nor champion, random, rollout:SIMULATIONS, "
        "alphabeta:DEPTH, tablebase or hub:COMMAND"
    )


def _option(ending: str) -> tuple[str, object] | None:
    """Attribute and value that an option stands for; None if it is no option."""
    if ending in get_args(OracleName):
        return "oracle", ending
    if ending in get_args(BackendName):
        return "backend", ending
    if ending in ("ponder", "impartial"):
        return ending, True
    if ending.isascii() and ending.isdigit():
        return "simulations", int(ending)
    return None


def one_of(text: str, names: Any, what: str, error: type[ValueError]) -> Any:
    """``text``, if it is one of the names of a ``Literal``; raises ``error``, which says what it should be, if not."""
    if text not in get_args(names):
        raise error(f"{text!r} is no {what}: choose one of {', '.join(get_args(names))}")
    return text


def oracle_name(text: str) -> OracleName:
    """The oracle of that name.

    Raises:
        PlayerError: there is none.
    """
    oracle: OracleName = one_of(text, OracleName, "oracle", PlayerError)
    return oracle
