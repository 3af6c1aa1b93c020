"""What the command line's oracle commands do: they show progress and return the figures of --json."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from engine.claims import claimed
from engine.console import Console
from engine.files import sha256_of
from engine.tablebase.dense import load_tables
from engine.tablebase.folder import build_advice, default_folder
from engine.tablebase.material import MAX_PIECES, MIN_PIECES, materials_between

from ..checkpoint import CheckpointError, weights_of, whole_folder
from ..network import setting_name
from ..report import check_packages, evenly_spaced, make_writable_folder
from .calibration import DEFAULT_BUDGET, calibrate_oracle, members_of
from .data import TRAIN, VALIDATION, EndgameSampler, Sampler, Values
from .labels import FileTables
from .mixture import ListSampler, MixedSampler
from .networks import (
    CARD_FILE,
    EndgameNetwork,
    PairConfig,
    PairNetwork,
    SelfPlayNetwork,
    new_network,
    read_card,
    save_endgame_network,
)
from .oracle import (
    ORACLE_FILE,
    ORACLE_FOLDER,
    Oracle,
    check_oracle_place,
    open_oracle,
    oracle_folder,
    read_oracle_card,
    save_oracle,
)
from .progress import OracleProgress
from .reached import reached_sampler, some, with_tables
from .training import CurvePoint, EndgameTrainer, check_beginning
from .widening import sizes_of, widened

DENSE_PIECES = 6  # most pieces of tables that are held in memory: of seven they take gigabytes, and minutes to read
REACHED_FRACTION = 0.6  # part of the samples, in a training with games
REACHED_FRACTION_OF_LISTS = 0.9  # where both are lists: the uniform one is short, since each value is a block to read
_UNIFORM_LIST = 1 << 17
STATE_FILE, NETWORK_FOLDER = "training.safetensors", "network"
CALIBRATION_POSITIONS = 100_000
_FEWEST_CALIBRATION, _CALIBRATION_RATE = 5_000, 20_000  # least, and per minute of training: half a minute at most
QUICK_BUDGET, QUICK_POSITIONS = 4.0, 5_000  # for calibrating networks that are slow, or come alone
_CURVE_POSITIONS = 20_000
CURVE, CURVES = "learning_curve", "learning_curves"
"""Names among the figures of a network's card, and of an oracle's: there by the pieces that the member is for."""
MOST_POINTS = 24  # points of a curve on an oracle's card: some two kilobytes
Curve = list[dict[str, float | None]]
_CURVES = TypeAdapter(dict[str, Curve])


class OracleCommandError(ValueError):
    """A command that cannot be carried out as it was given."""


class Beginning(NamedTuple):
    """The network that a training begins with.

    Attributes:
        kind: kind of a new network; None: "pair".
        net: folder of a network that is trained further, in place of a new one.
        freeze_body: train the head of a self-play network alone.
        width: width of a pair network, see ``PairConfig``; the two layers after it have as many units, and half as
            many. A network that is trained further is widened. None: the default, or its own width.
    """

    kind: str | None = None
    net: Path | None = None
    freeze_body: bool = False
    width: int | None = None


class Lessons(NamedTuple):
    """What a training learns from.

    Attributes:
        pieces, fewest: the most and the fewest pieces of positions.
        minutes: minutes of training, without what comes before and after.
        folder: folder of the tables.
        games: uint32 [N, 4], positions that games reached, for ``REACHED_FRACTION`` of every batch; None: only uniform.
    """

    pieces: int
    minutes: float
    seed: int = 1
    folder: Path | None = None
    fewest: int = MIN_PIECES
    games: np.ndarray | None = None


def oracle_train_command(beginning: Beginning, lessons: Lessons, out: Path, quiet: bool) -> dict[str, Any]:
    """Trains an oracle of one network; see ``crownhead oracle train --help``. Returns the figures of ``--json``.

    A training that was interrupted continues if the same command is given again; with another seed or network to begin
    with it is refused.

    Args:
        out: gets the training's state, the network in full precision, and the oracle.

    Raises:
        ValueError: bad arguments, a file that cannot be read, or another training in ``out``.
        StorageError: ``out`` cannot be written.
        KeyboardInterrupt: with a message that says what was saved.
    """
    torch.set_num_threads(1)
    check_pieces(lessons.pieces)
    if not MIN_PIECES <= lessons.fewest <= lessons.pieces:
        raise OracleCommandError(f"--fewest {lessons.fewest}: {MIN_PIECES} to --pieces {lessons.pieces} are possible")
    torch.manual_seed(lessons.seed)
    network = _network_to_train(beginning, lessons.pieces)
    digest = sha256_of(weights_of(network)) if beginning.net else None
    begun_with = {"seed": lessons.seed, "network to begin with": digest}
    check_packages()
    make_writable_folder(out)
    check_oracle_place(out / ORACLE_FOLDER)  # told now, not after the training
    check_beginning(out / STATE_FILE, begun_with, network, materials_between(lessons.fewest, lessons.pieces))
    if lessons.games is not None and not len(with_tables(some(lessons.games, lessons.fewest, lessons.pieces))):
        raise OracleCommandError(f"the games have no position of {lessons.fewest} to {lessons.pieces} pieces")
    try:
        with (
            claimed(out),
            OracleProgress(quiet) as progress,
            open_values(lessons.folder, lessons.pieces, progress, millions=True) as tables,
        ):
            oracle, last = _train(network, begun_with, lessons, tables, out, progress)
    except KeyboardInterrupt as error:
        if not (out / STATE_FILE).exists():
            raise
        message = f"the training is saved in {shlex.quote(str(out))}; the same command goes on where it was"
        raise KeyboardInterrupt(message) from error
    Console(quiet=quiet, soft_wrap=True).print(
        f"Oracle: {out / ORACLE_FOLDER} ({last.positions / 1e6:.0f} M positions, network alone {last.accuracy:.3%})"
    )
    return {
        "oracle": str(out / ORACLE_FOLDER),
        "kind": network.kind,
        "parameters": network.parameter_count,
        "positions": last.positions,
        "seconds": last.seconds,
        "accuracy": last.accuracy,
        "members": oracle.settings,
    }


def _train(
    network: EndgameNetwork,
    begun_with: Mapping[str, int | str | None],
    lessons: Lessons,
    tables: Values,
    out: Path,
    progress: OracleProgress,
) -> tuple[Oracle, CurvePoint]:
    """Trains, calibrates and saves; returns the oracle and the last point of the learning curve."""
    pieces, seed, minutes = lessons.pieces, lessons.seed, lessons.minutes
    quiescent = network.kind == "pair"  # the others are published as, or come as, judges of all positions
    uniform = sampler_of(tables, pieces, seed, TRAIN, quiescent, lessons.fewest)
    sample = sampler_of(tables, pieces, seed, VALIDATION, quiescent, lessons.fewest).draw(_CURVE_POSITIONS)
    sampler = training_sampler(uniform, lessons)
    progress.phase("training", 60 * minutes)
    trainer = EndgameTrainer(network, sampler, minutes=minutes, validation=sample, beginning=begun_with)
    curve = trainer.run(out / STATE_FILE, progress.training)
    last = curve[-1]
    points: Curve = [
        {"positions": p.positions, "seconds": p.seconds, "loss": p.loss, "validation_accuracy": p.accuracy}
        for p in curve
    ]
    figures = {"positions": last.positions, "seconds": last.seconds}
    trained = lessons.fewest, pieces
    save_endgame_network(out / NETWORK_FOLDER, network, trained, {**figures, CURVE: points})
    budget, most = (DEFAULT_BUDGET, CALIBRATION_POSITIONS) if quiescent else (QUICK_BUDGET, QUICK_POSITIONS)
    positions = min(most, int(max(_FEWEST_CALIBRATION, _CALIBRATION_RATE * minutes)))
    oracle = calibrate_oracle([(network, trained)], tables, budget, positions, seed, progress.part, lessons.games)
    curves = {f"{lessons.fewest}-{pieces}": evenly_spaced(points, MOST_POINTS)}
    save_oracle(out / ORACLE_FOLDER, oracle.members, {**figures, CURVES: curves})
    return oracle, last


def training_sampler(uniform: EndgameSampler, lessons: Lessons) -> Sampler:
    """What draws the samples of a training.

    Args:
        uniform: draws uniform ones. Of more pieces than are held in memory a list is drawn once.
    """
    source: Sampler = uniform
    dense, seed = lessons.pieces <= DENSE_PIECES, lessons.seed
    if not dense:
        source = ListSampler(uniform.draw(_UNIFORM_LIST), uniform.materials, seed, TRAIN, uniform.quiet)
    if lessons.games is None:
        return source
    reached = reached_sampler(lessons.games, uniform, dense, seed)
    return MixedSampler(source, reached, REACHED_FRACTION if dense else REACHED_FRACTION_OF_LISTS)


def curves_in(folder: Path | str) -> Mapping[str, Curve]:
    """Learning curves of the oracle or the network in a folder, by pieces as in "2-5"; none for a self-play network.

    Raises:
        CheckpointError: a card is damaged.
    """
    place = oracle_folder(folder)
    if place is not None:
        return _checked(place / ORACLE_FILE, read_oracle_card(place).figures.get(CURVES) or {})
    if not (whole_folder(Path(folder)) / CARD_FILE).exists():
        return {}
    card = read_card(folder)
    curve: Any = card.figures.get(CURVE)
    name = f"{card.pieces[0]}-{card.pieces[1]}"
    return _checked(Path(folder) / CARD_FILE, {name: evenly_spaced(curve, MOST_POINTS)} if curve else {})


def _checked(path: Path, curves: Any) -> Mapping[str, Curve]:
    try:
        _CURVES.validate_python(curves)
        return curves  # as they were written: the copy that was checked has other types of numbers
    except ValidationError as error:
        raise CheckpointError(
            f"{path}: the learning curves are damaged: {setting_name(error.errors()[0]['loc'])}"
        ) from error


def _network_to_train(beginning: Beginning, pieces: int) -> EndgameNetwork:
    kind, net, freeze_body, width = beginning
    if width is not None and not (2 <= width <= 512 and width % 2 == 0):
        raise OracleCommandError(f"--width {width}: an even number from 2 to 512 is needed")
    if net is None:
        if freeze_body or kind == "selfplay":
            raise OracleCommandError("only a self-play network that --net names has a body to train on or to freeze")
        if width is not None and kind not in (None, "pair"):
            raise OracleCommandError(f"--width is a pair network's: leave it out for a {kind} network")
        if kind not in (None, "pair", "wang"):
            raise OracleCommandError(f"--kind {kind}: choose pair or wang")
        sizes = sizes_of(width or PairConfig().width, pieces).model_dump() if kind in (None, "pair") else None
        return new_network(kind or "pair", sizes)
    if kind is not None:
        raise OracleCommandError("give a kind of network or a network to train on, not both")
    members = open_oracle(net).members
    if len(members) > 1:
        raise OracleCommandError(f"{net} holds {len(members)} networks: name the folder of one")
    network = members[0].network
    if width is not None:
        if not isinstance(network, PairNetwork):
            raise OracleCommandError(f"{net} holds no pair network, so it cannot be widened")
        return widened(network, sizes_of(width, max(pieces, network.config.pieces)))
    if not freeze_body:
        return network
    if not isinstance(network, SelfPlayNetwork):
        raise OracleCommandError(f"{net} holds no self-play network, so there is no body to freeze")
    return SelfPlayNetwork.from_checkpoint(net, freeze_body=True)


def oracle_calibrate_command(
    nets: Sequence[Path],
    folder: Path | None,
    out: Path,
    budget: float,
    positions: int,
    seed: int,
    quiet: bool,
    games: np.ndarray | None = None,
    keep: bool = False,
) -> dict[str, Any]:
    """Makes an oracle of networks, each for its pieces; see ``crownhead oracle calibrate --help``."""
    torch.set_num_threads(1)
    check_packages()
    if not nets:
        raise OracleCommandError("no network: name the folders of those that shall make up the oracle")
    given = [open_oracle(net) for net in nets]
    members = [member for oracle in given for member in oracle.members]
    kept = [member for member in members if keep and member.calibrated]
    networks = [(member.network, member.pieces) for member in members if not (keep and member.calibrated)]
    trees = next((oracle.trees.settings for oracle in given if keep and oracle.trees is not None), None)
    curves = {name: curve for net in nets for name, curve in curves_in(net).items()}
    pieces = max(member.pieces[1] for member in members)
    if pieces > MAX_PIECES:  # a self-play network's: it is for all that there are tables of
        with FileTables(folder) as there:
            pieces = there.pieces
    check_oracle_place(out)
    members_of(networks, budget, pieces, kept)  # told now, not after the tables
    with OracleProgress(quiet) as progress, open_values(folder, pieces, progress) as tables:
        oracle = calibrate_oracle(networks, tables, budget, positions, seed, progress.part, games, kept)
    save_oracle(out, oracle.members, {"budget": budget, CURVES: curves}, trees)
    if not quiet:
        for member in oracle.members:
            Console().print(
                f"{member.pieces[0]} to {member.pieces[1]} pieces: temperature {member.temperature:.3f}, "
                f"threshold {member.threshold}, up to {member.rounds} rounds"
            )
    return {"oracle": str(out), "parameters": oracle.parameters, "members": oracle.settings}


def check_pieces(pieces: int) -> None:
    if not 2 <= pieces <= MAX_PIECES:
        raise OracleCommandError(f"--pieces {pieces}: exact values are known for 2 to {MAX_PIECES}")


@contextmanager
def open_values(folder: Path | None, pieces: int, progress: OracleProgress, millions: bool = False) -> Iterator[Values]:
    """Exact values of 2 to ``pieces`` pieces, from the tables' files where these are there.

    Args:
        millions: of values will be asked for. Up to ``DENSE_PIECES`` they are then held in memory; so they are where
            files are lacking.

    Raises:
        OracleCommandError: files are lacking of more pieces than that.
    """
    with FileTables(folder, lambda part: progress.part("reading tables", part)) as tables:
        complete = tables.pieces >= pieces
        if complete and not (millions and pieces <= DENSE_PIECES):
            yield tables
            return
    if pieces > DENSE_PIECES:
        place = folder or default_folder()
        advice = build_advice(place, pieces, False)
        raise OracleCommandError(f"{place} lacks tables of up to {pieces} pieces; build them with {advice}")
    progress.phase(f"tables of 2 to {pieces} pieces")
    yield load_tables(folder, pieces, report=progress.tables)


def sampler_of(
    tables: Values, pieces: int, seed: int, split: int, quiet: bool = False, fewest: int = MIN_PIECES
) -> EndgameSampler:
    """Uniform samples of ``fewest`` to ``pieces`` pieces."""
    return EndgameSampler(tables, materials_between(fewest, pieces), seed, split, quiet)
