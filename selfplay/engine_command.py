"""``crownhead engine``: a player served to other programs by the Hub protocol. Torch is loaded when it searches."""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.hub.params import Param, Value
from engine.hub.server import Identity, serve
from engine.players import Player, PlayerError, parse_player

ORACLES = ("off", "tablebase", "network")
_MOST_SIMULATIONS = 200_000


def engine_command(player: str, simulations: int) -> None:
    """Serves until standard input ends.

    Args:
        player: see ``selfplay.players.make_player``.
        simulations: of a network, per move, where the other program sets no level; it can change them.

    Raises:
        PlayerError: no such player.
    """
    built_in = parse_player(player)
    folder, _, oracle = player.rpartition("@")
    folder, oracle = (folder, oracle) if folder and oracle in ORACLES else (player, "tablebase")
    if built_in is None and folder != "champion" and not Path(folder).exists():
        raise PlayerError(f"{player!r} is no player: there is no such folder")
    params = [
        Param("simulations", simulations, "int", 1, _MOST_SIMULATIONS),
        Param("oracle", oracle, "enum", values=ORACLES),
    ]

    def make(values: Mapping[str, Value]) -> Player:
        if built_in is not None:
            return built_in
        from .players import make_player
        from .threads import use_single_thread

        use_single_thread()  # torch keeps this number for the calling thread
        return make_player(f"{folder}@{values['oracle']}", int(values["simulations"]))

    try:
        number = version("crownhead")
    except PackageNotFoundError:
        number = ""
    serve(make, sys.stdin, sys.stdout, identity=Identity(version=number), params=[] if built_in is not None else params)
