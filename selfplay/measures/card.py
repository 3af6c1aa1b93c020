"""``crownhead card``: makes all measurements of a network and writes its model card; a second call continues."""

import json
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, cast

import numpy as np
from pydantic import BaseModel

from engine.board import Board
from engine.console import Console, progress_console
from engine.files import atomic_write, read_bytes
from engine.players import HubPlayer
from engine.players.alphabeta import MAX_DEPTH
from engine.players.spec import CHAMPION
from engine.sealed import ChecksumError, sealed, unsealed
from engine.tablebase import open_tablebase
from engine.tablebase.material import MAX_PIECES
from learner.checkpoint import INFO_FILE, CheckpointInfo, load_checkpoint, read_info
from learner.endgame.head import head_figures
from learner.endgame.validate_command import oracle_validate_command
from learner.report import Report, make_writable_folder, to_markdown
from learner.student import STUDENT_FOLDER, load_student

from ..machines.threads import choose_device, describe_machine
from ..matches.commands import match_command
from ..matches.ladder_commands import LadderFigures
from ..players import checkpoint_folder
from ..requests import CardRequest, ConvertRequest, MatchRequest
from ..run.config import RunConfig, config_json, read_config
from ..run.folder import RunError, RunFolder
from ..run.reached import reached_positions
from ..run.stages import config_at
from .card_text import card_sections, ladder_section
from .convert import ConvertFigures, board_of, convert_command

CARD_FILE, DATA_FILE, CONFIG_FILE = "README.md", "card.json", "config.json"
_ENDGAME_KEYS = ("positions", "seed", "accuracy", "accuracy_search", "accuracy_oracle", "by_pieces")
HEAD_POSITIONS = 5_000  # positions for each number of pieces
ENDGAME_PIECES, ENDGAME_POSITIONS, WON_POSITIONS, CONVERSION_SIMULATIONS, SEED = 5, 40_000, 250, 400, 1


class Trial(NamedTuple):
    """A match that every card contains."""

    name: str
    opponent: str
    games: int
    openings: str
    seconds: float | None = None
    simulations: int | None = None

    def request(self, player: str) -> MatchRequest:
        limits = self.simulations, self.seconds
        return MatchRequest(player, self.opponent, self.games, *limits, openings=self.openings, seed=SEED)

    def command(self, player: str) -> str:
        limit = f"--seconds {self.seconds:g}" if self.seconds is not None else f"--simulations {self.simulations}"
        rest = f"--games {self.games} {limit} --openings {self.openings} --seed {SEED}"
        return f"crownhead match {player} {self.opponent} {rest}"


TRIALS = (
    Trial("random", "random", 100, "ballots", simulations=64),
    Trial("rollout-200", "rollout:200", 100, "ballots", simulations=64),
    Trial("alphabeta-4", "alphabeta:4", 200, "random:3", simulations=64),
    Trial("alphabeta-8", "alphabeta:8", 200, "random:3", seconds=0.1),
    Trial("alphabeta-same-time", f"alphabeta:{MAX_DEPTH}", 200, "random:3", seconds=0.1),
    Trial("alphabeta-8-ballots", "alphabeta:8", 100, "ballots", seconds=0.1),
)


class CardData(BaseModel, extra="forbid"):
    """Contents of ``card.json``, which has a checksum beside them; those of older versions have none.

    Attributes:
        digest, student: digests of the measured network and of its student.
        results: name of a measurement → its figures.
        ladder: figures of ``crownhead ladder`` for the run that the network comes from; None if there were none.
    """

    schema_version: Literal[1] = 1
    digest: str
    student: str | None = None
    machine: str
    results: dict[str, Any] = {}
    ladder: dict[str, Any] | None = None


class CardFigures(TypedDict):
    """The path of a card, and its data: see ``CardData``."""

    card: str
    schema_version: int
    digest: str
    student: str | None
    machine: str
    results: dict[str, Any]
    ladder: LadderFigures | None


def card_command(request: CardRequest, quiet: bool) -> CardFigures:
    """Measures a network and writes its card; see ``crownhead card --help``.

    If the student has changed since the card was begun, measurements that depend on it are repeated.

    Raises:
        ValueError: the network, the run or the tables cannot be read, or ``out`` has the card of another network, a run
            or another README.md.
    """
    folder = checkpoint_folder(request.net)
    info, target, run = read_info(folder), request.out or folder, request.run
    if RunFolder(target).state_path.exists():
        raise RunError(f"{target} is the folder of a run: choose another --out")
    if (target / CARD_FILE).exists() and not (target / DATA_FILE).exists():
        raise RunError(f"{target / CARD_FILE} is no card: move it, or choose another --out")
    taught = load_student(folder)
    networks = [load_checkpoint(folder), *([] if taught is None else [taught])]
    student = None if taught is None else taught.info.digest
    console = progress_console(quiet)
    data = _read_data(target / DATA_FILE, info.digest, student)
    if request.games is not None and data.results.get("head", {}).get("games") is False:
        del data.results["head"]  # measured without games
    config, reached = _read_config(target, run, info), None
    if request.games is not None and ("head" not in data.results or data.student != student):
        reached = reached_positions(request.games, MAX_PIECES)
    data.ladder = _read_ladder(run) or data.ladder
    if "conversion" not in data.results:
        with open_tablebase(request.folder) as tables:
            tables.probe_distance(board_of(ENDGAME_PIECES))  # raises now, not after the other measurements
    make_writable_folder(target)
    if data.student != student:
        data = _without_student(data, student, target, console)

    def write() -> None:
        atomic_write(target / DATA_FILE, sealed(json.loads(data.model_dump_json())))
        ladder = cast(LadderFigures | None, data.ladder)
        sections = card_sections(networks, data.results, data.machine, config, ladder)
        atomic_write(target / CARD_FILE, to_markdown(Report("Model card", sections, {})).encode())

    if run is not None and config is not None:
        atomic_write(target / CONFIG_FILE, config_json(config))
    for name, measure in _measurements(request, folder, reached, target, quiet):
        if name not in data.results:
            console.print(f"{name} ...")
            data.results[name] = measure()
            write()  # after each measurement, so that an interruption loses none
    write()
    if not quiet:
        Console().print(f"Card: {target / CARD_FILE}", soft_wrap=True)
    return cast(CardFigures, {"card": str(target / CARD_FILE), **data.model_dump()})


def _read_config(target: Path, run: Path | None, info: CheckpointInfo) -> RunConfig | None:
    """The run's configuration when the network was made; without a run, the copy in the card's folder, if any.

    The run may have changed its configuration since. Raises ``RunError`` if there is no run, or it has no such network.
    """
    if run is None:
        return read_config(target / CONFIG_FILE) if (target / CONFIG_FILE).is_file() else None
    folder = RunFolder(run)
    if not folder.config_path.is_file():
        raise RunError(f"{run} holds no run")
    if all(read_info(path.parent).digest != info.digest for path in folder.checkpoints.rglob(INFO_FILE)):
        raise RunError(f"{run} has not made this network: name the run that has, or leave --run out")
    return config_at(read_config(folder.config_path), int(str(info.figures.get("steps", sys.maxsize))))


def _read_ladder(run: Path | None) -> dict[str, Any] | None:
    """Figures of the run's ladder; None if it has none."""
    if run is None or not (path := run / "ladder" / "report.json").is_file():
        return None
    data = read_bytes(path)
    try:
        figures: dict[str, Any] = json.loads(data)
        ladder_section(cast(LadderFigures, figures))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path} is not the report of a ladder: remove it, or make it by crownhead ladder") from error
    return figures


def _read_data(path: Path, digest: str, student: str | None) -> CardData:
    """The data of an existing card of this network (perhaps with another student), or an empty card."""
    if not path.exists():
        return CardData(digest=digest, student=student, machine=describe_machine(choose_device("auto")))
    try:
        data = CardData.model_validate(unsealed(path.read_bytes()))
    except ChecksumError as error:
        raise RunError(f"{path}: {error}") from error
    except ValueError as error:
        raise RunError(f"{path} is not a card: remove it, or choose another --out") from error
    if data.digest != digest:
        raise RunError(f"{path} is the card of another network: remove it, or choose another --out")
    return data


def _without_student(data: CardData, student: str | None, target: Path, console: Console) -> CardData:
    """Removes results that depend on the student (timed matches, its head, the first move), and their games."""
    timed = {f"match {trial.name}": _games(target, trial) for trial in TRIALS if trial.seconds is not None}
    of_student = {*timed, "head", "first move"}
    gone = [name for name in data.results if name in of_student]
    if gone:
        console.print(f"The student has changed; measured again: {', '.join(gone)}")
    for games in timed.values():
        games.unlink(missing_ok=True)  # unfinished matches too: another student must not finish them
    kept = {name: figures for name, figures in data.results.items() if name not in of_student}
    machine = describe_machine(choose_device("auto"))
    return data.model_copy(update={"student": student, "results": kept, "machine": machine})


def _games(target: Path, trial: Trial) -> Path:
    return target / "matches" / f"{trial.name}.pdn"


def _measurements(
    request: CardRequest, folder: Path, reached: np.ndarray | None, target: Path, quiet: bool
) -> list[tuple[str, Callable[[], Mapping[str, Any]]]]:
    """(name, function that measures) of all measurements, quick ones first.

    Args:
        reached: positions of games, for the head as well.
    """
    # By its folder, as a run may promote another network meanwhile; by the whole path, which the games have as name and
    # which another call, perhaps from another folder, must find there again.
    player = request.net if request.net == CHAMPION else str(folder.resolve())

    def endgames() -> dict[str, Any]:
        figures = oracle_validate_command(folder, ENDGAME_PIECES, ENDGAME_POSITIONS, SEED, None, True)
        return {key: figures[key] for key in _ENDGAME_KEYS}

    def head() -> dict[str, Any]:
        networks = {"network": folder, "student": folder / STUDENT_FOLDER}
        networks = {name: place for name, place in networks.items() if place.is_dir()}
        found = head_figures(networks, request.folder, reached, HEAD_POSITIONS, SEED)
        return {"positions": HEAD_POSITIONS, "seed": SEED, "games": reached is not None, "by_pieces": found}

    def conversion() -> ConvertFigures:
        what = player, ENDGAME_PIECES, WON_POSITIONS, CONVERSION_SIMULATIONS
        asked = ConvertRequest(*what, folder=request.folder, jobs=request.jobs, address=request.address, seed=SEED)
        return convert_command(asked, quiet)

    def trial(which: Trial) -> Callable[[], Mapping[str, Any]]:
        path = _games(target, which)
        asked = replace(which.request(player), pdn=path, resume=True, jobs=request.jobs, address=request.address)

        def play() -> Mapping[str, Any]:
            path.parent.mkdir(exist_ok=True)
            return {"command": which.command("NET"), **match_command(asked, quiet)}

        return play

    alone: list[tuple[str, Callable[[], Mapping[str, Any]]]] = [
        ("endgames", endgames),
        ("head", head),
        ("first move", lambda: first_move(player)),
    ]
    return [*alone, ("conversion", conversion), *((f"match {which.name}", trial(which)) for which in TRIALS)]


def first_move(player: str, move_seconds: float = 0.1) -> dict[str, float]:
    """Seconds from the start of ``crownhead engine`` to the end of its first move, a search of ``move_seconds``; all
    functions are compiled (second start)."""
    command = [sys.executable, "-m", "crownhead", "engine", player]
    seconds = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        with HubPlayer(shlex.join(command), move_seconds, start_patience=600) as engine:
            engine.choose([Board()])
            seconds = time.perf_counter() - begun
    return {"seconds": seconds, "move_seconds": move_seconds}
