"""``crownhead engine``: a player served to other programs by the Hub protocol. Torch is loaded when it searches."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from engine.hub.params import Param, Value
from engine.hub.server import Identity, serve
from engine.players import Player, PlayerError, parse_player
from engine.players.network_text import CHAMPION, BackendName, NetworkText, OracleName, one_of, why_no_network
from engine.players.search_player import MAX_SIMULATIONS
from engine.version import installed_version

from .compiling import made_beside_compiling

_FILES = "checkpoint.json", "config.json"  # one of these is in the folder of a checkpoint or a run


def engine_command(player: str, simulations: int, backend: str = "auto") -> None:
    """Serves until standard input ends.

    Args:
        player: see ``selfplay.players.make_player``.
        simulations: of a network, per move, where the other program sets no level; it can change them.
        backend: of a network's evaluator; the other program can change it too.

    Raises:
        PlayerError: no such player, or no such backend.
    """
    built_in = parse_player(player)
    named = NetworkText.parse(player)
    one_of(backend, BackendName, "backend", PlayerError)
    if built_in is None and named.folder != CHAMPION:
        folder = Path(named.folder)
        if not named.folder or not any((folder / name).is_file() for name in _FILES):
            if named.folder and folder.is_dir():
                raise PlayerError(f"{player!r} is no player: there is no checkpoint and no run in it")
            raise PlayerError(why_no_network(named.folder))
    simulations = simulations if named.simulations is None else named.simulations
    if not 0 <= simulations <= MAX_SIMULATIONS:
        raise PlayerError(f"number of simulations is {simulations}, not in 0 to {MAX_SIMULATIONS}")
    params = [
        Param("simulations", simulations, "int", 0, MAX_SIMULATIONS),
        Param("oracle", named.oracle, "enum", values=get_args(OracleName)),
        Param("contempt", not named.impartial, "bool"),
        Param("backend", named.backend or backend, "enum", values=get_args(BackendName)),
    ]

    def make(values: Mapping[str, Value]) -> Player:
        if built_in is not None:
            return built_in
        text = f"{named.folder}@{values['oracle']}{'' if values['contempt'] else '@impartial'}"
        backend = str(values["backend"])

        def make_network() -> Player:
            from .players import make_player

            return make_player(text, int(values["simulations"]), backend=backend, timed=True)

        return made_beside_compiling(make_network)

    identity = Identity(version=installed_version())
    serve(make, sys.stdin, sys.stdout, identity=identity, params=[] if built_in is not None else params)
