"""How often a self-play network's win/draw/loss head alone judges endgames right, by number of pieces."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.tablebase.material import MAX_PIECES, MIN_PIECES, materials

from .data import TEST, EndgameBatch, EndgameSampler, labelled
from .labels import FileTables
from .networks import EndgameNetwork, load_endgame_network
from .probabilities import softmax
from .reached import some, with_tables
from .validation import calibration_error, reliability_bins, wilson_interval

Figures = dict[str, Any]


def head_figures(
    networks: dict[str, Path],
    folder: Path | None,
    games: np.ndarray | None,
    positions: int,
    seed: int,
) -> list[Figures]:
    """How often networks are right in endgames when asked once, without any search.

    Args:
        networks: folders of checkpoints, by what they are called.
        folder: of the tables; None for the default one. Numbers of pieces whose tables it lacks are left out.
        games: uint32 [N, 4], positions that games reached; each counts once. None: only uniform ones.
        positions: uniform ones for each number of pieces, of the test split.

    Returns:
        By number of pieces: ``pieces``, ``uniform`` and ``games`` (None without any), each with the number of
        ``positions`` and, by the names of the networks, ``accuracy``, its 95 % ``interval``, ``draws`` (share of the
        exact draws that are called so, or None) and ``ece``.
    """
    torch.set_num_threads(1)
    asked = {name: load_endgame_network(place) for name, place in networks.items()}
    found: list[Figures] = []
    with FileTables(folder) as tables:
        for pieces in range(MIN_PIECES, MAX_PIECES + 1):
            slices = materials(pieces)
            if not all(material in tables for material in slices):
                break
            uniform = EndgameSampler(tables, slices, seed, TEST).draw(positions)
            reached = np.zeros((0, 4), np.uint32) if games is None else with_tables(some(games, pieces, pieces))
            of_games = _figures(asked, labelled(reached, tables)) if len(reached) else None
            found.append({"pieces": pieces, "uniform": _figures(asked, uniform), "games": of_games})
    return found


def _figures(networks: dict[str, EndgameNetwork], batch: EndgameBatch) -> Figures:
    return {"positions": len(batch.values), **{name: _score(network, batch) for name, network in networks.items()}}


def _score(network: EndgameNetwork, batch: EndgameBatch) -> Figures:
    shares = softmax(network.wdl_logits(batch.positions))
    right, drawn = shares.argmax(1) == batch.classes, batch.values == 0
    return {
        "accuracy": float(right.mean()),
        "interval": list(wilson_interval(int(right.sum()), len(right))),
        "draws": float(right[drawn].mean()) if drawn.any() else None,
        "ece": calibration_error(reliability_bins(shares.max(1), right)),
    }
