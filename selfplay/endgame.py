"""Endgame knowledge in self-play: what actors are handed, adjudication, and the rescoring of finished games."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engine.draw_rules import REVERSIBLE_PLIES_TO_DRAW
from engine.fen import Color, parse_fen
from engine.movegen import jumpers_of
from engine.outcomes import DRAW, LOSS, UNKNOWN
from engine.search import LeafOracle

from .config import RunConfig
from .records import GAME, GameRecord


@dataclass(frozen=True)
class EndgameKnowledge:
    """What an actor knows of endgames; nothing by default.

    Attributes:
        leaf_oracle: for the search; needed where ``search.oracle`` is not ``off``.
        table: exact values, for adjudication and rescoring; needed where one of them is on.
        held_out: uint32 [N, 4] → bool [N]: positions kept for validation, which are never made samples.
    """

    leaf_oracle: LeafOracle | None = None
    table: LeafOracle | None = None
    held_out: Callable[[np.ndarray], np.ndarray] | None = None


KnowledgeFactory = Callable[[RunConfig], EndgameKnowledge]


def adjudicated(table: LeafOracle, positions: np.ndarray, max_pieces: int, forced: np.ndarray) -> np.ndarray:
    """How games may be ended at positions, UNKNOWN where they are played on.

    A table draw stands under all rules. A win is given right after an irreversible move (as lc0 adjudicates its
    self-play), or where its distance is within what is left until the 80-ply draw. Positions with a capture pending
    are played on.

    Args:
        positions: uint32 [n, 4]: own, opp, kings, reversible plies.
        forced: int64 [n], how many of the last moves were forced; they do not stand between an irreversible move and
            the verdict.

    Returns:
        uint8 [n]: UNKNOWN, WIN, DRAW or LOSS for the side to move.
    """
    verdicts = np.full(len(positions), UNKNOWN, np.uint8)
    few = np.bitwise_count(positions[:, 0] | positions[:, 1]) <= min(max_pieces, table.max_pieces)
    quiet = [row for row in np.flatnonzero(few).tolist() if not jumpers_of(*positions[row, :3])]
    if quiet:
        outcomes, plies = table.judge(positions[quiet])
        reversible = positions[quiet, 3].astype(np.int64)
        in_time = (plies >= 0) & (plies <= REVERSIBLE_PLIES_TO_DRAW - reversible)
        stands = (outcomes == DRAW) | (reversible <= forced[quiet]) | in_time
        verdicts[quiet] = np.where(stands, outcomes, UNKNOWN)
    return verdicts


def rescored(record: GameRecord, table: LeafOracle, max_pieces: int) -> GameRecord:
    """A game with its samples' results corrected by a table; the result of the game stays what was played.

    The rule is that of lc0's rescorer (``ApplySyzygyRescoring``), in two passes over the positions of the game:

    1. The table's value of a position that an irreversible move led to holds for it and for all positions before it,
       back to the last such position inside the tables. (Seen from the first table position that is the whole game
       before it; inside the tables it is the stretch of moves in which a mistake, if any, was made.)
    2. Other positions inside the tables: a table draw is a draw. A table win or loss that the result contradicts is
       given where its distance ends the game before the 80-ply rule and no position of the stretch has come twice;
       else the best that can be said is a draw.

    Args:
        max_pieces: positions with more pieces are not looked up.
    """
    positions = record.positions()
    inside = np.flatnonzero(np.bitwise_count(positions[:, 0] | positions[:, 1]) <= min(max_pieces, table.max_pieces))
    if len(inside) == 0:
        return record
    outcomes, plies = np.zeros(len(positions), np.uint8), np.full(len(positions), -1, np.int16)
    outcomes[inside], plies[inside] = table.judge(positions[inside])
    black_to_move = (np.arange(len(positions)) % 2 == 0) == (parse_fen(record.start_fen)[0] is Color.BLACK)
    results = np.where(black_to_move, DRAW - record.result, DRAW + record.result)
    reversible = positions[:, 3].astype(np.int64)
    first = 0
    for ply in inside[(outcomes[inside] != UNKNOWN) & (reversible[inside] == 0)]:
        result = int(outcomes[ply])
        for earlier in range(ply, first - 1, -1):
            results[earlier] = result if (ply - earlier) % 2 == 0 else LOSS - result
        first = ply + 1
    for ply in inside[(outcomes[inside] != UNKNOWN) & (reversible[inside] > 0)]:
        result = int(outcomes[ply])
        if result == results[ply]:
            continue
        start = ply - min(ply, int(reversible[ply]))
        certain = 0 <= plies[ply] <= REVERSIBLE_PLIES_TO_DRAW - reversible[ply]
        stretch = positions[start : ply + 1, :3]
        repeated = any(len(np.unique(side, axis=0)) < len(side) for side in (stretch[::2], stretch[1::2]))
        results[ply] = result if certain and not repeated else DRAW
    samples = record.samples
    corrected = np.where(samples.kind == GAME, results[samples.ply], UNKNOWN).astype(np.uint8)
    return replace(record, samples=replace(samples, result=corrected))


def rescored_found(record: GameRecord, table: LeafOracle, max_pieces: int) -> GameRecord:
    """A game whose ``TREE`` and ``OFFSHOOT`` samples have the table's value where it is certain.

    That is where the table sees a draw, or right after an irreversible move.
    """
    samples = record.samples
    pieces = np.bitwise_count(samples.positions[:, 0] | samples.positions[:, 1])
    rows = np.flatnonzero((samples.kind != GAME) & (pieces <= min(max_pieces, table.max_pieces)))
    if len(rows) == 0:
        return record
    outcomes, _ = table.judge(samples.positions[rows])
    certain = (outcomes == DRAW) | ((outcomes != UNKNOWN) & (samples.positions[rows, 3] == 0))
    wdl = samples.search_wdl.copy()
    wdl[rows[certain]] = np.eye(3, dtype=np.float16)[outcomes[certain]]
    return replace(record, samples=replace(samples, search_wdl=wdl))


def without_held_out(record: GameRecord, held_out: Callable[[np.ndarray], np.ndarray]) -> GameRecord:
    """A game without the samples of positions kept for validation."""
    samples = record.samples
    kept = np.flatnonzero(~np.asarray(held_out(samples.positions), bool))
    return record if len(kept) == len(samples) else replace(record, samples=samples.take(kept))
