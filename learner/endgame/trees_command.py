"""What ``crownhead oracle trees`` does: fits how much tree searches count beside what an oracle says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from engine.console import Console
from engine.tablebase.material import MIN_PIECES

from ..report import check_packages
from .calibration import Questions
from .commands import OracleCommandError, check_pieces, open_values
from .oracle import Oracle, check_oracle_place, oracle_folder, read_members, read_oracle_card, save_oracle
from .progress import OracleProgress
from .resolve import PROVEN
from .tree_search import ASK_BELOW, SIMULATIONS, ChampionTrees, TreeSettings, TreeWeights, fit_rounds

FEWEST = 50  # positions that three numbers can be fitted on


def oracle_trees_command(
    net: Path,
    pieces: int,
    positions: int,
    seed: int,
    folder: Path | None,
    quiet: bool,
    games: np.ndarray | None = None,
    simulations: Sequence[int] = SIMULATIONS,
    trees: ChampionTrees | None = None,
    fewest: int = MIN_PIECES,
) -> dict[str, Any]:
    """Gives an oracle tree searches; see ``crownhead oracle trees --help``.

    Args:
        net: folder of the oracle, which is rewritten.
        positions: of the validation split to be drawn for each number of pieces; those that leave the oracle unsure
            are searched.
        games: uint32 [N, 4], positions of games: half of the positions then lie around them.
        fewest: fewest pieces of positions to search; what trees of the same champion count about fewer stays.

    Raises:
        ValueError: ``net`` is no oracle, bad arguments, or too few positions that the oracle is unsure of.
    """
    torch.set_num_threads(1)
    check_pieces(pieces)
    if positions < FEWEST:  # told now, not after the tables
        raise OracleCommandError(f"--positions {positions}: draw more, at least {FEWEST}")
    place = oracle_folder(net)
    if place is None:
        raise OracleCommandError(f"{net}: is no oracle; make one with crownhead oracle calibrate")
    check_oracle_place(place)
    check_packages()  # now, not after ten minutes of searching
    card, oracle = read_oracle_card(place), Oracle(read_members(place))  # without trees
    searched = trees or ChampionTrees(simulations[-1])
    if pieces < searched.fewest:
        raise OracleCommandError(f"--pieces {pieces}: tables know these; trees serve from {searched.fewest} on")
    fewest = max(fewest, searched.fewest)
    weights = _kept(card.trees, fewest, searched)
    if not len(weights) == fewest - searched.fewest <= pieces - searched.fewest:
        raise OracleCommandError(
            f"--fewest {fewest}: at most --pieces {pieces}, and trees have to be fitted for all from {searched.fewest} "
            "pieces on, with the present champion: leave it out"
        )
    with OracleProgress(quiet) as progress, open_values(folder, pieces, progress) as tables:
        questions = Questions(tables, positions, seed, games)
        progress.phase("drawing positions")  # all of them before the first search, in case they are too few
        doubts = {number: _doubts(oracle, questions, number) for number in range(fewest, pieces + 1)}
        for number, doubt in doubts.items():
            progress.phase(f"searching trees of {number} pieces", len(doubt.positions))
            rounds = fit_rounds(*doubt, simulations, searched, progress.done)
            weights.append(TreeWeights(pieces=number, rounds=rounds))
    settings = TreeSettings(weights=tuple(weights), network=searched.network)
    save_oracle(place, oracle.members, card.figures, settings)
    console = Console(quiet=quiet)
    for fitted in settings.weights:
        for one in fitted.rounds:
            console.print(
                f"{fitted.pieces} pieces, {one.simulations} simulations: "
                f"weights: oracle {one.own:.2f}, tree {one.tree:.2f}, draws {one.draw:+.2f}"
            )
    return {
        "oracle": str(place),
        "searched": sum(len(doubt.positions) for doubt in doubts.values()),
        "trees": settings.model_dump(mode="json"),
    }


def _kept(before: TreeSettings | None, fewest: int, searched: ChampionTrees) -> list[TreeWeights]:
    """The weights for fewer than ``fewest`` pieces that the same network was fitted with."""
    if before is None or fewest == searched.fewest or before.network != searched.network:
        return []
    return [weights for weights in before.weights if weights.pieces < fewest]


class _Doubt(NamedTuple):
    """Positions uint32 [N, 4] that leave an oracle unsure, its probabilities float32 [N, 3] and the right classes
    int64 [N]."""

    positions: np.ndarray
    own: np.ndarray
    classes: np.ndarray


def _doubts(oracle: Oracle, questions: Questions, pieces: int) -> _Doubt:
    batch = questions.draw(pieces, pieces, 0)
    found = oracle.search(batch.positions)
    unsure = np.flatnonzero((found.confidence < ASK_BELOW) & (found.ways != PROVEN))
    if len(unsure) < FEWEST:
        raise OracleCommandError(
            f"the oracle is unsure of {len(unsure)} of {len(batch.positions)} positions of {pieces} pieces: draw more"
        )
    return _Doubt(batch.positions[unsure], found.probabilities[unsure], 1 - batch.values[unsure].astype(np.int64))
