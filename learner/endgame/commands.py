"""What the command line's oracle commands do: they show progress and return the figures of --json."""

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.material import MAX_PIECES, materials_between

from ..report import make_writable_folder
from . import learning
from .calibration import DEFAULT_BUDGET, calibrate_oracle
from .data import TEST, TRAIN, VALIDATION, EndgameSampler
from .networks import EndgameNetwork, SelfPlayNetwork, new_network, save_endgame_network
from .oracle import Oracle, open_oracle, shipped_folder
from .oracle_files import ORACLE_FOLDER, check_oracle_place, oracle_folder, save_oracle
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


class OracleCommandError(ValueError):
    """A command that cannot be carried out as it was given."""


def oracle_train_command(
    kind: str | None,
    net: Path | None,
    freeze_body: bool,
    pieces: int,
    minutes: float,
    seed: int,
    folder: Path | None,
    out: Path,
    quiet: bool,
) -> dict[str, Any]:
    """Trains an oracle of one network; see ``crownhead oracle train --help``. Returns the figures of ``--json``.

    A training that was interrupted goes on where it was if the same command is given again.

    Args:
        kind: of a fresh network, "pair" if None. net: folder of a network to train on instead.
        freeze_body: of a self-play network, train the head alone.
        out: gets the training's state, the network in full precision, and the oracle.

    Raises:
        ValueError: bad arguments, or a file that cannot be read.
        StorageError: ``out`` cannot be written.
        KeyboardInterrupt: with a message that says what was saved.
    """
    torch.set_num_threads(1)
    _check_pieces(pieces)
    torch.manual_seed(seed)
    network = _network_to_train(kind, net, freeze_body)
    make_writable_folder(out)
    try:
        with OracleProgress(quiet) as progress:
            oracle, last = _train(network, pieces, minutes, seed, folder, out, progress)
    except KeyboardInterrupt as error:
        if not (out / STATE_FILE).exists():
            raise
        message = f"the training is saved in {shlex.quote(str(out))}; the same command goes on where it was"
        raise KeyboardInterrupt(message) from error
    result = {
        "oracle": str(out / ORACLE_FOLDER),
        "kind": network.kind,
        "parameters": network.parameter_count,
        "positions": last.positions,
        "seconds": last.seconds,
        "accuracy": last.accuracy,
        "members": oracle.settings,
    }
    if not quiet:
        Console().print(
            f"Oracle: {out / ORACLE_FOLDER} ({last.positions / 1e6:.0f} M positions, network alone {last.accuracy:.3%})"
        )
    return result


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
    last, points = curve[-1], learning.to_json(curve)
    figures = {"positions": last.positions, "seconds": last.seconds}
    save_endgame_network(out / NETWORK_FOLDER, network, (2, pieces), {**figures, learning.CURVE: points})
    budget, most = (DEFAULT_BUDGET, CALIBRATION_POSITIONS) if quiescent else (QUICK_BUDGET, QUICK_POSITIONS)
    positions = min(most, int(max(_FEWEST_CALIBRATION, _CALIBRATION_RATE * minutes)))
    oracle = calibrate_oracle([(network, (2, pieces))], tables, budget, positions, seed, progress.part)
    curves = {learning.member_name((2, pieces)): learning.thinned(points)}
    save_oracle(out / ORACLE_FOLDER, oracle.members, {**figures, learning.CURVES: curves})
    return oracle, last


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
    """Makes an oracle of one or several networks; see ``crownhead oracle calibrate --help``.

    Args:
        nets: folders of endgame networks, each for the pieces it was trained on. out: gets the oracle.
        budget: evaluations per position on the mean. positions: drawn from the validation split for each choice.
    """
    torch.set_num_threads(1)
    if not nets:
        raise OracleCommandError("no network: name the folders of those that shall make up the oracle")
    networks = [network for net in nets for network in open_oracle(net).networks]
    curves = {name: curve for net in nets for name, curve in learning.curves_in(net).items()}
    pieces = min(MAX_PIECES, max(most for _, (_, most) in networks))
    check_oracle_place(out)
    with OracleProgress(quiet) as progress:
        tables = _tables(folder, pieces, progress)
        oracle = calibrate_oracle(networks, tables, budget, positions, seed, report=progress.part)
    save_oracle(out, oracle.members, {"budget": budget, learning.CURVES: curves})
    figures = {
        "oracle": str(out),
        "parameters": oracle.parameters,
        "members": oracle.settings,
    }
    if not quiet:
        for member in oracle.members:
            Console().print(
                f"{member.pieces[0]} to {member.pieces[1]} pieces: temperature {member.temperature:.3f}, "
                f"threshold {member.threshold}, up to {member.rounds} rounds"
            )
    return figures


def oracle_validate_command(
    net: Path | None, pieces: int, positions: int, seed: int, folder: Path | None, quiet: bool
) -> dict[str, Any]:
    """Measures an oracle on fresh positions; see ``crownhead oracle validate --help``.

    Args:
        net: folder of an oracle or a network; None for the oracle that is shipped. A network alone is calibrated first,
            on the validation split.
        pieces: positions of 2 to ``pieces`` pieces are drawn, uniformly, from the test split.
        folder: of the tables; what it lacks is solved in memory.

    Returns:
        ``Validation.to_json`` and the figures of the measurement.

    Raises:
        ValueError: bad arguments, or a file that cannot be read.
    """
    _, figures = _validated(net, pieces, positions, seed, folder, quiet)
    if not quiet:
        _print_validation(figures)
    return figures


def oracle_report_command(
    net: Path | None, pieces: int, positions: int, seed: int, folder: Path | None, out: Path, quiet: bool
) -> dict[str, Any]:
    """Measures an oracle and writes a report with figures into ``out``; see ``oracle_validate_command``."""
    make_writable_folder(out)  # now, not after a minute
    validation, figures = _validated(net, pieces, positions, seed, folder, quiet)
    curves = learning.curves_in(shipped_folder() if net is None else net)
    facts: dict[str, str | int | float | None] = {
        "oracle": "as shipped" if net is None else str(net),
        "positions of": f"2 to {pieces} pieces, test split",
        "seed": seed,
        "expected calibration error of the networks alone": f"{figures['ece_network']:.5f}",
        "evaluations per position": f"{figures['evaluations']:.2f}",
    }
    page = write_oracle_report(out, validation, curves, facts)
    if not quiet:
        _print_validation(figures)
        Console().print(f"Report: {page}")
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
    console = Console()
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
