"""What the command line's oracle commands do: they show progress and return the figures of --json."""

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.material import MAX_PIECES, materials_between

from ..checkpoint import whole_folder
from ..report import make_writable_folder
from .calibration import DEFAULT_BUDGET, calibrate_oracle
from .data import TEST, TRAIN, VALIDATION, EndgameSampler
from .networks import CARD_FILE, EndgameNetwork, SelfPlayNetwork, new_network, read_card, save_endgame_network
from .oracle import (
    ORACLE_FOLDER,
    Oracle,
    check_oracle_place,
    open_oracle,
    oracle_folder,
    read_oracle_card,
    save_oracle,
    shipped_folder,
)
from .oracle_report import write_oracle_report
from .progress import OracleProgress
from .training import CurvePoint, EndgameTrainer
from .validation import (
    ACCURACY_KEYS,
    METHODS,
    Judgements,
    Validation,
    calibration_error,
    reliability_bins,
    validate,
)

STATE_FILE, NETWORK_FOLDER = "training.safetensors", "network"
CALIBRATION_POSITIONS = 100_000
_FEWEST_CALIBRATION, _CALIBRATION_RATE = 5_000, 20_000  # least, and per minute of training: half a minute at most
QUICK_BUDGET, QUICK_POSITIONS = 4.0, 5_000  # of calibrating networks that are slow, or come alone
_CHUNK = 1 << 14
_CURVE_POSITIONS = 20_000
CURVE, CURVES = "learning_curve", "learning_curves"
"""Names among the figures of a network's card, and of an oracle's: there by the pieces that the member is for."""
MOST_POINTS = 24  # of a curve on an oracle's card: some two kilobytes
Curve = list[dict[str, Any]]


class OracleCommandError(ValueError):
    """A command that cannot be carried out as it was given."""


class Beginning(NamedTuple):
    """The network that a training begins with.

    Attributes:
        kind: of a new network, "pair" if None.
        net: folder of a network to train on instead.
        freeze_body: train the head of a self-play network alone.
    """

    kind: str | None = None
    net: Path | None = None
    freeze_body: bool = False


def oracle_train_command(
    beginning: Beginning, pieces: int, minutes: float, seed: int, folder: Path | None, out: Path, quiet: bool
) -> dict[str, Any]:
    """Trains an oracle of one network; see ``crownhead oracle train --help``. Returns the figures of ``--json``.

    A training that was interrupted continues if the same command is given again.

    Args:
        out: gets the training's state, the network in full precision, and the oracle.

    Raises:
        ValueError: bad arguments, or a file that cannot be read.
        StorageError: ``out`` cannot be written.
        KeyboardInterrupt: with a message that says what was saved.
    """
    torch.set_num_threads(1)
    _check_pieces(pieces)
    torch.manual_seed(seed)
    network = _network_to_train(*beginning)
    make_writable_folder(out)
    try:
        with OracleProgress(quiet) as progress:
            oracle, last = _train(network, pieces, minutes, seed, folder, out, progress)
    except KeyboardInterrupt as error:
        if not (out / STATE_FILE).exists():
            raise
        message = f"the training is saved in {shlex.quote(str(out))}; the same command goes on where it was"
        raise KeyboardInterrupt(message) from error
    Console(emoji=False, quiet=quiet).print(
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
    pieces: int,
    minutes: float,
    seed: int,
    folder: Path | None,
    out: Path,
    progress: OracleProgress,
) -> tuple[Oracle, CurvePoint]:
    """Trains, calibrates and saves; returns the oracle and the last point of the learning curve."""
    tables = _tables(folder, pieces, progress)
    quiescent = network.kind == "pair"  # the others are published as, or come as, judges of all positions
    sampler = _sampler(tables, pieces, seed, TRAIN, quiescent)
    sample = _sampler(tables, pieces, seed, VALIDATION, quiescent).draw(_CURVE_POSITIONS)
    progress.phase("training", 60 * minutes)
    trainer = EndgameTrainer(network, sampler, minutes=minutes, validation=sample)
    curve = trainer.run(out / STATE_FILE, progress.training)
    last = curve[-1]
    points: Curve = [
        {"positions": p.positions, "seconds": p.seconds, "loss": p.loss, "validation_accuracy": p.accuracy}
        for p in curve
    ]
    figures = {"positions": last.positions, "seconds": last.seconds}
    save_endgame_network(out / NETWORK_FOLDER, network, (2, pieces), {**figures, CURVE: points})
    budget, most = (DEFAULT_BUDGET, CALIBRATION_POSITIONS) if quiescent else (QUICK_BUDGET, QUICK_POSITIONS)
    positions = min(most, int(max(_FEWEST_CALIBRATION, _CALIBRATION_RATE * minutes)))
    oracle = calibrate_oracle([(network, (2, pieces))], tables, budget, positions, seed, progress.part)
    save_oracle(out / ORACLE_FOLDER, oracle.members, {**figures, CURVES: {f"2-{pieces}": thinned(points)}})
    return oracle, last


def thinned(curve: Curve) -> Curve:
    """At most ``MOST_POINTS`` points, evenly chosen, the first and the last among them."""
    if len(curve) <= MOST_POINTS:
        return curve
    return [curve[round(i * (len(curve) - 1) / (MOST_POINTS - 1))] for i in range(MOST_POINTS)]


def curves_in(folder: Path | str) -> Mapping[str, Curve]:
    """Learning curves of the oracle or the network in a folder, by pieces as in "2-5"; none for a self-play network.

    Raises:
        CheckpointError: a card is damaged.
    """
    place = oracle_folder(folder)
    if place is not None:
        return read_oracle_card(place).figures.get(CURVES) or {}  # type: ignore[return-value]
    if not (whole_folder(Path(folder)) / CARD_FILE).exists():
        return {}
    card = read_card(folder)
    curve: Any = card.figures.get(CURVE)
    return {f"{card.pieces[0]}-{card.pieces[1]}": thinned(curve)} if curve else {}


def _network_to_train(kind: str | None, net: Path | None, freeze_body: bool) -> EndgameNetwork:
    if net is None:
        if freeze_body or kind == "selfplay":
            raise OracleCommandError("only a self-play network that --net names has a body to train on or to freeze")
        return new_network(kind or "pair")
    if kind is not None:
        raise OracleCommandError("give a kind of network or a network to train on, not both")
    members = open_oracle(net).members
    if len(members) > 1:
        raise OracleCommandError(f"{net} holds {len(members)} networks: name the folder of one")
    network = members[0].network
    if not freeze_body:
        return network
    if not isinstance(network, SelfPlayNetwork):
        raise OracleCommandError(f"{net} holds no self-play network, so there is no body to freeze")
    return SelfPlayNetwork.from_checkpoint(net, freeze_body=True)


def oracle_calibrate_command(
    nets: Sequence[Path], folder: Path | None, out: Path, budget: float, positions: int, seed: int, quiet: bool
) -> dict[str, Any]:
    """Makes an oracle of networks, each for its pieces; see ``crownhead oracle calibrate --help``."""
    torch.set_num_threads(1)
    if not nets:
        raise OracleCommandError("no network: name the folders of those that shall make up the oracle")
    networks = [network for net in nets for network in open_oracle(net).networks]
    curves = {name: curve for net in nets for name, curve in curves_in(net).items()}
    pieces = min(MAX_PIECES, max(most for _, (_, most) in networks))
    check_oracle_place(out)
    with OracleProgress(quiet) as progress:
        tables = _tables(folder, pieces, progress)
        oracle = calibrate_oracle(networks, tables, budget, positions, seed, report=progress.part)
    save_oracle(out, oracle.members, {"budget": budget, CURVES: curves})
    if not quiet:
        for member in oracle.members:
            Console(emoji=False).print(
                f"{member.pieces[0]} to {member.pieces[1]} pieces: temperature {member.temperature:.3f}, "
                f"threshold {member.threshold}, up to {member.rounds} rounds"
            )
    return {"oracle": str(out), "parameters": oracle.parameters, "members": oracle.settings}


def oracle_validate_command(
    net: Path | None, pieces: int, positions: int, seed: int, folder: Path | None, quiet: bool, out: Path | None = None
) -> dict[str, Any]:
    """Measures an oracle on fresh positions; see ``crownhead oracle validate --help`` and ``oracle report --help``.

    Args:
        net: folder of an oracle or a network; None for the oracle that is shipped. A network alone is calibrated first,
            on the validation split.
        pieces: positions of 2 to ``pieces`` pieces are drawn, uniformly, from the test split.
        folder: of the tables; what it lacks is solved in memory.
        out: folder for a report with figures; None for no report.

    Returns:
        ``Validation.to_json`` and the figures of the measurement; with ``out``, the page of the ``report``.

    Raises:
        ValueError: bad arguments, or a file that cannot be read.
        StorageError: ``out`` cannot be written.
    """
    if out is not None:
        make_writable_folder(out)  # now, not after a minute
    validation, figures = _validated(net, pieces, positions, seed, folder, quiet)
    if not quiet:
        _print_validation(figures)
    if out is None:
        return figures
    facts: dict[str, str | int | float | None] = {
        "oracle": "as shipped" if net is None else str(net),
        "positions of": f"2 to {pieces} pieces, test split",
        "seed": seed,
        "expected calibration error of the networks alone": f"{figures['ece_network']:.5f}",
        "evaluations per position": f"{figures['evaluations']:.2f}",
    }
    page = write_oracle_report(out, validation, curves_in(shipped_folder() if net is None else net), facts)
    Console(emoji=False, quiet=quiet).print(f"Report: {page}")
    return {**figures, "report": str(page)}


def _validated(
    net: Path | None, pieces: int, positions: int, seed: int, folder: Path | None, quiet: bool
) -> tuple[Validation, dict[str, Any]]:
    torch.set_num_threads(1)
    _check_pieces(pieces)
    if positions < 1:
        raise OracleCommandError(f"{positions} positions to validate on: at least 1 is needed")
    oracle = open_oracle(net)
    with OracleProgress(quiet) as progress:
        tables = _tables(folder, pieces, progress)
        if net is not None and oracle_folder(net) is None:
            networks, few = oracle.networks, min(positions, QUICK_POSITIONS)
            oracle = calibrate_oracle(networks, tables, QUICK_BUDGET, few, seed, progress.part)
        start = time.monotonic()
        progress.phase("judging", positions)
        sampler = _sampler(tables, pieces, seed, TEST)
        judgements, ece_network, evaluations = _judged(oracle, sampler, positions, progress)
        seconds = time.monotonic() - start
    validation = validate(judgements, threshold=oracle.member_for(pieces).threshold, parameters=oracle.parameters)
    return validation, validation.to_json() | {
        "ece_network": ece_network,
        "pieces": pieces,
        "seed": seed,
        "evaluations": evaluations,
        "seconds": seconds,
        "members": oracle.settings,
    }


def _judged(
    oracle: Oracle, sampler: EndgameSampler, positions: int, progress: OracleProgress
) -> tuple[Judgements, float, float]:
    """Judgements of fresh positions, expected calibration error of the networks alone, evaluations per position."""
    parts: list[tuple[np.ndarray, ...]] = []
    for start in range(0, positions, _CHUNK):
        batch = sampler.draw(min(_CHUNK, positions - start))
        network = oracle.network_probabilities(batch.positions)
        search, found = oracle.capture_search(batch.positions), oracle.search(batch.positions)
        parts.append((*batch, network, search.probabilities, found.probabilities, found.evaluations))
        progress.done(start + len(batch.values))
    *drawn, network, search_shares, shares, evaluations = map(np.concatenate, zip(*parts, strict=True))
    board_positions, values, flags, codes = drawn
    answers = {
        method: (1 - p.argmax(1)).astype(np.int8)
        for method, p in zip(METHODS, (network, search_shares, shares), strict=True)
    }
    judgements = Judgements(board_positions, values, flags, codes.astype(np.int64), answers, shares)
    ece = calibration_error(reliability_bins(network.max(1), answers["network"] == values))
    return judgements, ece, float(evaluations.mean())


def _print_validation(figures: dict[str, Any]) -> None:
    table = Table("", "positions", *METHODS, title=f"Right answers on 2 to {figures['pieces']} pieces (test split)")

    def add(name: str, score: dict[str, Any]) -> None:
        shares = [score[key] for key in ACCURACY_KEYS.values()]
        cells = ("" if share is None else f"{share:.3%}" for share in shares)
        table.add_row(name, str(score["positions"]), *cells)

    add("all", figures)
    for group in ("by_outcome", "by_flag", "by_pieces"):
        table.add_section()
        for name, score in figures[group].items():
            add(f"{name} pieces" if group == "by_pieces" else name, score)
    console = Console(emoji=False)
    console.print(table)
    console.print(
        f"Expected calibration error {figures['ece']:.5f}; {figures['evaluations']:.2f} evaluations per position; "
        f"{figures['parameters']} parameters"
    )


def _check_pieces(pieces: int) -> None:
    if not 2 <= pieces <= MAX_PIECES:
        raise OracleCommandError(f"--pieces {pieces}: exact values are known for 2 to {MAX_PIECES}")


def _tables(folder: Path | None, pieces: int, progress: OracleProgress) -> DenseTables:
    progress.phase(f"tables of 2 to {pieces} pieces")
    return load_tables(folder, pieces, report=progress.tables)


def _sampler(tables: DenseTables, pieces: int, seed: int, split: int, quiet: bool = False) -> EndgameSampler:
    return EndgameSampler(tables, materials_between(2, pieces), seed, split, quiet)
