"""``crownhead card``: measures a network as a whole and writes its model card. Given again, it goes on."""

import json
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from learner.student import STUDENT_FILE, Student, StudentInfo, load_student
from pydantic import BaseModel, ConfigDict
from rich.console import Console

from engine.board import Board
from engine.console import progress_console
from engine.files import atomic_write, sha256_of
from engine.players import HubPlayer
from engine.players.alphabeta import MAX_DEPTH
from learner.checkpoint import CheckpointInfo, load_checkpoint, read_info
from learner.endgame.commands import oracle_validate_command
from learner.network import Network
from learner.report import Report, make_writable_folder, to_markdown

from .card_text import card_sections
from .config import RunConfig, config_json, read_config
from .convert import convert_command
from .export import export_command
from .machine import describe_machine
from .match_commands import match_command
from .players import checkpoint_folder
from .run_folder import RunError, RunFolder
from .stages import config_at
from .threads import choose_device

CARD_FILE, DATA_FILE, EXPORT_FILE, CONFIG_FILE = "README.md", "card.json", "model-int8.onnx", "config.json"
_ENDGAME_KEYS = ("positions", "seed", "accuracy", "accuracy_search", "accuracy_oracle", "by_pieces")
ENDGAME_PIECES, ENDGAME_POSITIONS, WON_POSITIONS, CONVERSION_SIMULATIONS, SEED = 5, 40_000, 250, 400, 1


@dataclass(frozen=True)
class Trial:
    """A match that every card has."""

    name: str
    opponent: str
    games: int
    openings: str
    seconds: float | None = None
    simulations: int | None = None

    def command(self, player: str) -> str:
        """The command that plays it."""
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


class CardData(BaseModel):
    """Contents of ``card.json``.

    Attributes:
        digest: of the network that was measured.
        student: sha256 of the file of the student beside it, if there is one.
        machine: where. results: name of a measurement → its figures.
        ladder: figures of ``crownhead ladder`` for the run that the network comes from, if they were there.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = 1
    digest: str
    student: str | None = None
    machine: str
    results: dict[str, Any] = {}
    ladder: dict[str, Any] | None = None


def card_command(
    net: str, run: Path | None, tables: Path | None, out: Path | None, jobs: int | None, quiet: bool
) -> dict[str, Any]:
    """Measures a network and writes its card; see ``crownhead card --help``.

    Args:
        run: that the network comes from, for its configuration and ladder; the card keeps both.
        tables: with distances of 5 pieces, for perfect defence.
        out: folder of the card; that of the checkpoint if None.

    Raises:
        ValueError: the network, the run or the tables cannot be read, or ``out`` has the card of another network. With
            another student, what the one before has played is measured again.
        StorageError: a file cannot be written.
    """
    folder = checkpoint_folder(net)
    info, target = read_info(folder), out or folder
    make_writable_folder(target)
    network, taught = load_checkpoint(folder).network, load_student(folder, info.digest)
    student = None if taught is None else sha256_of(folder / STUDENT_FILE)
    console = progress_console(quiet)
    data = _read_data(target / DATA_FILE, info.digest, student)
    config = _read_config(target, run, info)
    if data.student != student:
        data = _without_student(data, student, target, console)

    def write() -> None:
        atomic_write(target / DATA_FILE, (data.model_dump_json(indent=1) + "\n").encode())
        atomic_write(target / CARD_FILE, to_markdown(_card(info, network, taught, data, config)).encode())

    if run is not None and config is not None:
        atomic_write(target / CONFIG_FILE, config_json(config))
        if (path := run / "ladder" / "report.json").is_file():
            data.ladder = json.loads(path.read_text("utf-8"))
    for name, measure in _measurements(net, folder, target, tables, jobs, quiet):
        if name not in data.results:
            console.print(f"{name} ...", markup=False)
            data.results[name] = measure()
            write()  # what is known is there to read, whatever happens to the rest
    write()
    if not quiet:
        Console().print(f"Card: {target / CARD_FILE}", markup=False, soft_wrap=True)
    return {"card": str(target / CARD_FILE), **data.model_dump()}


def _read_config(target: Path, run: Path | None, info: CheckpointInfo) -> RunConfig | None:
    """The run's configuration as it was when the network was made, or what the card's folder has kept of it.

    The run may have gone on with another.
    """
    if run is None:
        return read_config(target / CONFIG_FILE) if (target / CONFIG_FILE).is_file() else None
    path = RunFolder(run).config_path
    if not path.is_file():
        raise RunError(f"{run} holds no run")
    return config_at(read_config(path), int(str(info.figures.get("steps", sys.maxsize))))


def _read_data(path: Path, digest: str, student: str | None) -> CardData:
    """What the card there says, perhaps with another student, or an empty card."""
    if not path.exists():
        return CardData(digest=digest, student=student, machine=describe_machine(choose_device("auto")))
    try:
        data = CardData.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise RunError(f"{path} is no card: remove it, or choose another --out") from error
    if data.digest != digest:
        raise RunError(f"{path} is the card of another network: remove it, or choose another --out")
    return data


def _without_student(data: CardData, student: str | None, target: Path, console: Console) -> CardData:
    """The card without what another student has played: a student plays where time is limited, else the network."""
    timed = {f"match {trial.name}": _games(target, trial) for trial in TRIALS if trial.seconds is not None}
    gone = [name for name in data.results if name in timed]
    if gone:
        console.print(f"Another student than the card's: measured again: {', '.join(gone)}", markup=False)
    for games in timed.values():
        games.unlink(missing_ok=True)  # begun ones, too: the rest of a match is for the same player to play
    kept = {name: figures for name, figures in data.results.items() if name not in timed}
    machine = describe_machine(choose_device("auto"))
    return data.model_copy(update={"student": student, "results": kept, "machine": machine})


def _games(target: Path, trial: Trial) -> Path:
    return target / "matches" / f"{trial.name}.pdn"


def _measurements(
    player: str, folder: Path, target: Path, tables: Path | None, jobs: int | None, quiet: bool
) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """Names and measurements, the quick ones first."""

    def endgames() -> dict[str, Any]:
        figures = oracle_validate_command(folder, ENDGAME_PIECES, ENDGAME_POSITIONS, SEED, None, True)
        return {key: figures[key] for key in _ENDGAME_KEYS}

    def conversion() -> dict[str, Any]:
        return convert_command(
            player, ENDGAME_PIECES, WON_POSITIONS, CONVERSION_SIMULATIONS, None, tables, jobs, SEED, quiet
        )

    def exported() -> dict[str, Any]:
        figures = export_command(player, target / EXPORT_FILE, "onnx", True, True, True)
        return {**figures, "path": EXPORT_FILE}  # wherever the card may lie

    def trial(which: Trial) -> Callable[[], dict[str, Any]]:
        path = _games(target, which)

        def play() -> dict[str, Any]:
            path.parent.mkdir(exist_ok=True)
            limits = (which.simulations, which.seconds, None)
            figures = match_command(
                player, which.opponent, which.games, *limits, which.openings, None, path, True, jobs, SEED, quiet
            )
            return {"command": which.command("NET"), **figures}

        return play

    alone = [("int8", exported), ("endgames", endgames), ("first move", lambda: first_move(player))]
    return [*alone, ("conversion", conversion), *((f"match {which.name}", trial(which)) for which in TRIALS)]


def first_move(player: str, simulations: int = 400) -> dict[str, Any]:
    """Seconds from the command ``crownhead engine`` to its first move, the second time, when all is compiled."""
    command = [sys.executable, "-m", "crownhead", "engine", player, "--simulations", str(simulations)]
    seconds = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        with HubPlayer(shlex.join(command), start_patience=600) as engine:
            engine.choose([Board()])
            seconds = time.perf_counter() - begun
    return {"seconds": seconds, "simulations": simulations}


def _card(
    info: CheckpointInfo,
    network: Network,
    taught: tuple[Student, StudentInfo] | None,
    data: CardData,
    config: RunConfig | None,
) -> Report:
    student = None if taught is None else taught[1]
    sizes = [sum(weights.numel() for weights in part.parameters()) for part in (network, *(taught or ())[:1])]
    sections = card_sections(info, sizes, student, data.results, data.machine, config, data.ladder)
    return Report("Model card", sections, {})
