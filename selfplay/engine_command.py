"""``crownhead engine``: serves a player to other programs by the Hub protocol. Torch is loaded at the first search."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from secrets import randbits
from typing import cast, get_args

from engine.game import ENGLISH, check_game
from engine.hub.params import Param, Value
from engine.hub.server import serve
from engine.players import Player, PlayerError, make_simple_player
from engine.players.spec import (
    CHAMPION,
    DEFAULT_NODES,
    MAX_SIMULATIONS,
    BackendName,
    NetworkSpec,
    OracleName,
    why_no_network,
)
from engine.sealed import unsealed
from engine.search import BOARD_SEARCH
from engine.version import installed_version

from .conditions import Conditions
from .machines.compiling import made_beside_compiling
from .requests import EngineRequest

_SIMULATIONS = 400  # per move of a network, if neither options nor the other program say it
_FILES = "checkpoint.json", "config.json"  # one of these is in the folder of a checkpoint or a run


def engine_command(request: EngineRequest) -> None:
    """Serves until standard input ends. The other program can set simulations, oracle, contempt and backend."""
    check_game("the protocol", ENGLISH)
    if sys.stdin is None:
        raise PlayerError("standard input is closed: the other program writes its commands there")
    spec, version, seed = request.spec, installed_version(), randbits(32)
    if not isinstance(spec, NetworkSpec):
        player = make_simple_player(spec, seed=seed)
        serve(lambda _: player, sys.stdin, sys.stdout, version=version, params=[])
        return
    if spec.level is not None:
        level = Conditions(seed=seed)
        serve(lambda _: _made(spec, level), sys.stdin, sys.stdout, version=version, params=[])
        return
    _check_folder(spec)
    spec.changed(BOARD_SEARCH)  # a setting that is out of range is told now
    spec.check_steady()
    usual = DEFAULT_NODES if spec.alphabeta else _SIMULATIONS
    simulations = Conditions(request.simulations).limit_of(spec.simulations, usual)
    params = [
        Param("simulations", simulations, "int", int(spec.alphabeta), MAX_SIMULATIONS),
        Param("oracle", spec.oracle, "enum", values=get_args(OracleName)),
    ]
    if not spec.alphabeta:
        params.append(Param("contempt", not spec.impartial, "bool"))
        params.append(Param("backend", spec.backend or request.backend, "enum", values=get_args(BackendName)))

    def make(values: Mapping[str, Value]) -> Player:
        oracle, impartial = cast(OracleName, values["oracle"]), not values.get("contempt", True)
        named = replace(spec, oracle=oracle, impartial=impartial, simulations=None, backend=None, ponder=False)
        simulations, backend = int(values["simulations"]), str(values.get("backend", request.backend))
        return _made(named, Conditions(simulations, timed=not spec.alphabeta, backend=backend, seed=seed))

    serve(make, sys.stdin, sys.stdout, version=version, params=params)


def _made(spec: NetworkSpec, conditions: Conditions) -> Player:
    from .players import make_player  # loads torch

    return made_beside_compiling(lambda: make_player(spec, conditions))


def _game_of(file: Path) -> str:
    try:
        return str(unsealed(file.read_bytes()).get("game", ENGLISH))
    except (OSError, ValueError, AttributeError) as error:
        raise PlayerError(f"{file}: cannot be read: {error}") from error


def _check_folder(spec: NetworkSpec) -> None:
    """Raises ``PlayerError`` or ``OtherGameError`` if the folder holds no such network, before torch is loaded."""
    folder = Path(spec.folder)
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None) if spec.folder else None
    if file is not None:
        check_game(spec.folder, _game_of(file))
        return
    if spec.folder == CHAMPION:
        return
    if spec.folder and folder.is_dir():
        raise PlayerError(f"{spec.text!r} is no player: there is no checkpoint and no run in it")
    raise PlayerError(why_no_network(spec.folder))
