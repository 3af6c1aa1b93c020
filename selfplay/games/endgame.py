"""Endgame knowledge in self-play: adjudication of games in play, and rescoring of finished games."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engine.draw_rules import REVERSIBLE_PLIES_TO_DRAW
from engine.fen import Color, parse_fen
from engine.movegen import jumpers_of
from engine.outcomes import DRAW, LOSS, UNKNOWN
from engine.search import LeafOracle

from .records import GAME, GameRecord


@dataclass(frozen=True)
class EndgameKnowledge:
    """Endgame knowledge of an actor; none by default.

    Attributes:
        leaf_oracle: oracle of the search; needed if ``search.oracle`` is not ``off``.
        table: exact values for adjudication and rescoring; needed if one of them is on.
        held_out: positions uint32 [N, 4] → bool [N], true for positions kept for validation: they never become samples.
    """

    leaf_oracle: LeafOracle | None = None
    table: LeafOracle | None = None
    held_out: Callable[[np.ndarray], np.ndarray] | None = None


def adjudicated(table: LeafOracle, positions: np.ndarray, max_pieces: int, forced: np.ndarray) -> np.ndarray:
    """Returns the outcomes by which games may be ended at these positions, UNKNOWN where they must be played on.

    A draw by the tables is a draw under all rules. A win or loss counts only right after an irreversible move (as in
    lc0's self-play), or if the win comes before the 80-ply draw by its distance. Positions with a capture to make are
    always played on.

    Args:
        positions: uint32 [n, 4]: own, opp, kings, reversible plies.
        forced: int64 [n], number of forced moves at the end of each game; "right after" an irreversible move ignores
            them.

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
    """Corrects the results of a game's samples by a table; the result of the game itself does not change.

    The rule is that of lc0's rescorer (``ApplySyzygyRescoring``), in two passes over the positions of the game:

    1. Take each position inside the tables that follows an irreversible move. Its table value becomes the result of
       this position and (seen by each side to move) of all positions before it, back to the previous such position or
       to the start of the game.
    2. Take each other position inside the tables whose table value contradicts its result. A table draw becomes a
       draw. A table win or loss counts if its distance ends the game before the 80-ply rule and no position since the
       last irreversible move has occurred twice; otherwise the result becomes a draw.

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
    """Gives a game's ``TREE`` and ``OFFSHOOT`` samples the table's value where it is certain.

    It is certain for draws by the table, and for all positions right after an irreversible move.
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
    """Removes the samples of positions kept for validation from a game."""
    samples = record.samples
    kept = np.flatnonzero(~np.asarray(held_out(samples.positions), bool))
    return record if len(kept) == len(samples) else replace(record, samples=samples.take(kept))
