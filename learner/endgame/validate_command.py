"""What ``crownhead oracle validate`` and ``oracle report`` do: an oracle measured on exact values."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.console import Console, Table
from engine.tablebase.material import MIN_PIECES

from ..report import check_packages, check_title, make_writable_folder
from .calibration import calibrate_oracle
from .commands import (
    QUICK_BUDGET,
    QUICK_POSITIONS,
    OracleCommandError,
    check_pieces,
    curves_in,
    open_values,
    sampler_of,
)
from .data import TEST, EndgameBatch, EndgameSampler, Values, labelled
from .oracle import Oracle, open_oracle, oracle_folder, shipped_folder
from .progress import OracleProgress
from .reached import some, with_tables
from .validation import (
    ACCURACY_KEYS,
    METHODS,
    REPORT_TITLE,
    Judgements,
    Validation,
    calibration_error,
    reliability_bins,
    validate,
)

_CHUNK, _FEW = 1 << 14, 1 << 6  # positions between two updates of the progress; few where trees are searched
GAMES = "games"


def oracle_validate_command(
    net: Path | None,
    pieces: int,
    positions: int,
    seed: int,
    folder: Path | None,
    quiet: bool,
    out: Path | None = None,
    games: np.ndarray | None = None,
    trees: bool = False,
) -> dict[str, Any]:
    """Measures an oracle on fresh positions; see ``crownhead oracle validate --help`` and ``oracle report --help``.

    Args:
        net: folder of an oracle or a network; None for the oracle that is shipped. A network alone is calibrated first,
            on the validation split.
        pieces: positions of 2 to ``pieces`` pieces are drawn, uniformly, from the test split.
        folder: of the tables; of up to six pieces, what it lacks is solved in memory.
        out: folder for a report with figures; None for no report.
        games: uint32 [N, 4], positions of games: those of 2 to ``pieces`` pieces are judged as well, each once.
        trees: whether trees are searched where the oracle is unsure; some tenths of a second each.

    Returns:
        ``Validation.to_json`` and the figures of the measurement; with ``games``, the same of these positions as
        ``games``; with ``out``, the page of the ``report``.

    Raises:
        ValueError: bad arguments, or a file that cannot be read.
        StorageError: ``out`` cannot be written.
    """
    torch.set_num_threads(1)
    check_pieces(pieces)
    if positions < 1:
        raise OracleCommandError(f"{positions} positions to validate on: at least 1 is needed")
    alone = None if net is None or oracle_folder(net) is not None else net
    if out is not None or alone is not None:  # a report has figures; a network alone is calibrated
        check_packages()
    if out is not None:
        check_title(out, REPORT_TITLE, "--out")
        make_writable_folder(out)  # now, not after a minute
    oracle, of_games = open_oracle(net, trees), None
    if trees and oracle.trees is None:
        raise OracleCommandError(f"--trees: {net} has no tree search; fit one by crownhead oracle trees")
    curves = {} if out is None else curves_in(shipped_folder() if net is None else net)
    reached = None if games is None else _positions_of(games, pieces)  # told now, not after the tables
    with OracleProgress(quiet) as progress, open_values(folder, pieces, progress) as tables:
        if alone is not None:
            few = min(positions, QUICK_POSITIONS)
            oracle = calibrate_oracle(oracle.networks, tables, QUICK_BUDGET, few, seed, progress.part)
        chunk = _CHUNK if oracle.trees is None else _FEW
        drawn = _drawn(sampler_of(tables, pieces, seed, TEST), positions, chunk)
        validation, figures = _measured(oracle, drawn, positions, pieces, progress)
        if reached is not None:
            of_games = _measured(oracle, _listed(reached, tables, chunk), len(reached), pieces, progress)[1]
    figures |= {"pieces": pieces, "seed": seed, "members": oracle.settings, "tree_search": oracle.trees is not None}
    if of_games is not None:
        figures[GAMES] = of_games
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
        **({} if of_games is None else _facts_of(of_games)),
    }
    from .oracle_report import write_oracle_report  # needs Matplotlib

    page = write_oracle_report(out, validation, curves, facts)
    Console(quiet=quiet, soft_wrap=True).print(f"Report: {page}")
    return {**figures, "report": str(page)}


def _positions_of(games: np.ndarray, pieces: int) -> np.ndarray:
    """The distinct positions of games that have exact values; raises ``OracleCommandError`` if there is none."""
    found = with_tables(some(games, 2, pieces))
    if len(found) == 0:
        raise OracleCommandError(f"the games have no position of 2 to {pieces} pieces")
    return found


def _drawn(sampler: EndgameSampler, positions: int, chunk: int) -> Iterator[EndgameBatch]:
    for start in range(0, positions, chunk):
        yield sampler.draw(min(chunk, positions - start))


def _listed(positions: np.ndarray, tables: Values, chunk: int) -> Iterator[EndgameBatch]:
    for start in range(0, len(positions), chunk):
        yield labelled(positions[start : start + chunk], tables)


def _measured(
    oracle: Oracle, batches: Iterator[EndgameBatch], positions: int, pieces: int, progress: OracleProgress
) -> tuple[Validation, dict[str, Any]]:
    """Statistics of an oracle's answers, and these with the figures of the measurement as JSON."""
    progress.phase("judging", positions)
    judgements, ece_network, evaluations, seconds = _judged(oracle, batches, progress)
    thresholds = {oracle.member_for(number).threshold for number in range(MIN_PIECES, pieces + 1)}
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    validation = validate(judgements, threshold=threshold, parameters=oracle.parameters)
    return validation, validation.to_json() | {
        "ece_network": ece_network,
        "evaluations": evaluations,
        "seconds": seconds,
    }


def _judged(
    oracle: Oracle, batches: Iterator[EndgameBatch], progress: OracleProgress
) -> tuple[Judgements, float, float, float]:
    """Judgements of positions, expected calibration error of the networks alone, evaluations per position, and seconds
    of the oracle's searches."""
    parts: list[tuple[np.ndarray, ...]] = []
    done, seconds = 0, 0.0
    for batch in batches:
        network = oracle.network_probabilities(batch.positions)
        search, start = oracle.capture_search(batch.positions), time.monotonic()
        found = oracle.search(batch.positions)
        seconds += time.monotonic() - start
        parts.append((*batch, network, search.probabilities, found.probabilities, found.evaluations))
        done += len(batch.values)
        progress.done(done)
    *drawn, network, search_shares, shares, evaluations = map(np.concatenate, zip(*parts, strict=True))
    board_positions, values, flags, codes = drawn
    answers = {
        method: (1 - p.argmax(1)).astype(np.int8)
        for method, p in zip(METHODS, (network, search_shares, shares), strict=True)
    }
    judgements = Judgements(board_positions, values, flags, codes.astype(np.int64), answers, shares)
    ece = calibration_error(reliability_bins(network.max(1), answers["network"] == values))
    return judgements, ece, float(evaluations.mean()), seconds


def _facts_of(games: dict[str, Any]) -> dict[str, str | int | float | None]:
    """What a report says of the positions of games."""
    rows = {
        f"right on positions of games, {pieces} pieces": f"{score['accuracy_oracle']:.3%} of {score['positions']}"
        for pieces, score in games["by_pieces"].items()
    }
    return {**rows, "expected calibration error on positions of games": f"{games['ece']:.5f}"}


def _print_validation(figures: dict[str, Any]) -> None:
    _print_scores(f"Right answers on 2 to {figures['pieces']} pieces (uniform, test split)", figures)
    if GAMES in figures:
        _print_scores("Right answers on positions of games, each once", figures[GAMES])
    Console().print(f"{figures['parameters']} parameters")


def _print_scores(title: str, figures: dict[str, Any]) -> None:
    table = Table("", "positions", *METHODS, title=title)

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
        f"Expected calibration error {figures['ece']:.5f}; {figures['evaluations']:.2f} evaluations per position, "
        f"{1e3 * figures['seconds'] / figures['positions']:.2f} ms"
    )
