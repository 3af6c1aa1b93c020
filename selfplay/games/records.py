"""Records of self-play games: the game itself, and its training samples.

Samples are of three kinds: positions of the game that were searched (``GAME``), positions inside the trees of these
searches (``TREE``), and positions a few random moves beside those (``OFFSHOOT``); see ``tree_samples``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from engine import movegen
from engine.fen import START_FEN, Color, format_fen, parse_fen
from engine.outcomes import DRAW, UNKNOWN
from engine.players.kernels import play

GAME, TREE, OFFSHOOT = 0, 1, 2  # kinds of samples
MAX_PLIES = 2**16 - 1
ADJUDICATION = "TABLEBASE"  # termination of a game that was adjudicated by endgame tables
_SUM_TOLERANCE = 0.01  # float16 rounding of up to 128 probabilities stays below this


class RecordError(ValueError):
    """A game record contradicts itself or the rules."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples, stored by columns; all values are for the side to move.

    Attributes:
        positions: uint32 [n, 4]: own, opp, kings, reversible plies (``engine.encoding``).
        policy_offsets: int64 [n + 1]: the policy of row i is ``move_probabilities[policy_offsets[i]:
            policy_offsets[i + 1]]``.
        move_probabilities: float16 [policy_offsets[n]]: the search's policies over the legal moves in the order of
            ``movegen.generate`` with ``DISTINCT``; empty for rows without ``has_policy``.
        search_wdl: float16 [n, 3]: win, draw, loss by the search.
        result: uint8 [n]: result of the game (perhaps corrected, see ``GameRecord``): 0 win, 1 draw, 2 loss;
            ``UNKNOWN`` if the kind is not ``GAME``.
        has_policy: bool [n]: whether the policy is a training target. It is not after fast searches (playout-cap
            randomisation, Wu 2019, 3.1) and for positions with few visits in a tree.
        ply: uint16 [n]: number of moves in the game before the position, or before the root of its tree.
        kind: uint8 [n]: ``GAME``, ``TREE`` or ``OFFSHOOT``.
    """

    positions: np.ndarray
    policy_offsets: np.ndarray
    move_probabilities: np.ndarray
    search_wdl: np.ndarray
    result: np.ndarray
    has_policy: np.ndarray
    ply: np.ndarray
    kind: np.ndarray

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: slice) -> "Samples":
        """Consecutive rows (step 1), as views where possible."""
        first, last, step = rows.indices(len(self))
        if step != 1:
            raise IndexError(f"samples are cut into runs of consecutive rows, not in steps of {step}")
        last = max(first, last)
        offsets = self.policy_offsets[first : last + 1]
        per_row = {name: getattr(self, name)[first:last] for name in ROW_COLUMNS}
        return Samples(
            policy_offsets=offsets - offsets[0],
            move_probabilities=self.move_probabilities[offsets[0] : offsets[-1]],
            **per_row,
        )

    def take(self, rows: np.ndarray) -> "Samples":
        """Copies of ``rows`` (integer [m]) in this order; a row may occur several times."""
        starts = self.policy_offsets[rows]
        counts = self.policy_offsets[rows + 1] - starts
        offsets = offsets_of(counts)
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
        per_row = {name: getattr(self, name)[rows] for name in ROW_COLUMNS}
        return Samples(policy_offsets=offsets, move_probabilities=self.move_probabilities[places], **per_row)


ROW_COLUMNS = ("positions", "search_wdl", "result", "has_policy", "ply", "kind")


def found_samples(
    kind: int, positions: np.ndarray, wdl: np.ndarray, policy_counts: np.ndarray, move_probabilities: np.ndarray
) -> Samples:
    """Makes samples of positions that are not in the game itself: without result, and with ply 0 for now.

    Args:
        kind: ``TREE`` or ``OFFSHOOT``.
        positions, wdl: as in ``Samples``, of any numeric type.
        policy_counts: int64 [n], number of legal moves of rows with a policy, 0 for other rows.
        move_probabilities: [sum of policy_counts], row after row.
    """
    n = len(positions)
    return Samples(
        positions=positions,
        policy_offsets=offsets_of(policy_counts),
        move_probabilities=move_probabilities.astype(np.float16),
        search_wdl=wdl.astype(np.float16),
        result=np.full(n, UNKNOWN, np.uint8),
        has_policy=policy_counts > 0,
        ply=np.zeros(n, np.uint16),
        kind=np.full(n, kind, np.uint8),
    )


def joined(parts: Sequence[Samples]) -> Samples:
    """Concatenates samples; there must be at least one part."""
    counts = np.concatenate([np.diff(part.policy_offsets) for part in parts])
    rows = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ROW_COLUMNS}
    probabilities = np.concatenate([part.move_probabilities for part in parts])
    return Samples(policy_offsets=offsets_of(counts), move_probabilities=probabilities, **rows)


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """First index of each row of lengths ``counts`` [n], then the end of the last row: int64 [n + 1]."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


@dataclass(frozen=True, eq=False)
class GameRecord:
    """One finished self-play game.

    Attributes:
        start_fen: first position of the record, as ``format_fen`` writes it.
        moves: uint8 [plies]: index of each played move among the legal moves, in the order of ``movegen.generate``
            with ``DISTINCT``; with forced moves.
        result: 1 Black won, 0 draw, -1 White won.
        termination: why the game ended: name of an ``engine.board.Termination``, or ``RESIGNATION``, ``PLY_CAP`` or
            ``TABLEBASE`` (adjudicated by endgame tables).
        network: digest of the weights that played.
        samples: first the searched positions in order of ``ply`` (forced moves are not searched), with the result of
            the game unless endgame tables have corrected it (``endgame.rescored``); then samples of other kinds.
            Positions held out for validation are missing.
    """

    start_fen: str
    moves: np.ndarray
    result: int
    termination: str
    network: str
    samples: Samples

    def positions(self) -> np.ndarray:
        """All positions of the game: uint32 [plies + 1, 4], own, opp, kings and reversible plies.

        Each is seen by its side to move. Raises ``RecordError`` if a move is not legal.
        """
        line = np.zeros((len(self.moves) + 1, 4), np.uint32)
        line[0, :3] = parse_fen(self.start_fen)[1:]
        legal = _replay(line, self.moves, movegen.new_moves())
        if legal < len(self.moves):
            raise RecordError(f"ply {legal}: there is no move number {self.moves[legal]}")
        return line


@njit(cache=True)
def _replay(line, made, moves):
    """Fills ``line`` with the position after each move of ``made``; returns the number of moves that were legal."""
    for ply in range(made.shape[0]):
        count = movegen.generate(line[ply, 0], line[ply, 1], line[ply, 2], moves, movegen.DISTINCT)
        if made[ply] >= count:
            return ply
        play(line, ply, moves[made[ply]])
    return made.shape[0]


class GameRecordBuilder:
    """Builds the record of a game in play.

    For each position call ``add_search`` if it was searched, then ``add_move``.
    """

    def __init__(self, network: str, start_fen: str = START_FEN) -> None:
        self.network = network
        turn, *words = parse_fen(start_fen)
        self.start_fen = format_fen(turn, *words)
        self._black_starts = turn is Color.BLACK
        self._moves: list[int] = []
        self._positions: list[np.ndarray | Sequence[int]] = []
        self._policies: list[np.ndarray | Sequence[float] | None] = []
        self._wdl: list[np.ndarray | Sequence[float]] = []
        self._plies: list[int] = []
        self._found: list[Samples] = []

    @property
    def ply(self) -> int:
        return len(self._moves)

    def add_search(
        self,
        position: np.ndarray | Sequence[int],
        search_wdl: np.ndarray | Sequence[float],
        move_probabilities: np.ndarray | Sequence[float] | None,
    ) -> None:
        """Adds the search of the current position. The arrays are kept, not copied.

        Args:
            position: [4] uint32: own, opp, kings, reversible plies; seen by the side to move.
            search_wdl: [3]: win, draw, loss for the side to move.
            move_probabilities: [legal moves], as in ``Samples``; None for a fast search.

        Raises:
            RecordError: the current position has a search already.
        """
        ply = len(self._moves)
        if self._plies and self._plies[-1] == ply:
            raise RecordError(f"ply {ply} has been searched already; add the move first")
        self._positions.append(position)
        self._wdl.append(search_wdl)
        self._policies.append(move_probabilities)
        self._plies.append(ply)

    def add_found(self, found: Samples) -> None:
        """Adds samples made by ``found_samples`` from the search of the current position; their ply is set to it."""
        self._found.append(replace(found, ply=np.full(len(found), self.ply, np.uint16)))

    def add_move(self, index: int) -> None:
        """Adds the move played: its index among the legal moves, in the order of ``GameRecord.moves``.

        Raises ``RecordError`` if no move can have this index, or the game is too long.
        """
        if not 0 <= index < movegen.MAX_MOVES:
            raise RecordError(f"ply {self.ply}: {index} is not an index of a move (0 to {movegen.MAX_MOVES - 1})")
        if len(self._moves) == MAX_PLIES:
            raise RecordError(f"a game record holds at most {MAX_PLIES} moves")
        self._moves.append(int(index))

    def finish(self, result: int, termination: str) -> GameRecord:
        """Returns the record of the finished game; for ``result`` and ``termination`` see ``GameRecord``.

        Raises ``RecordError`` if ``result`` is none of the three, or the samples are invalid (``fault_of``).
        """
        if result not in (1, 0, -1):
            raise RecordError(f"result is {result!r}, not 1 (Black won), 0 (draw) or -1 (White won)")
        ply = np.array(self._plies, np.uint16)
        black_to_move = (ply % 2 == 0) == self._black_starts
        rows = [() if row is None else row for row in self._policies]
        samples = Samples(
            positions=np.array(self._positions, np.uint32).reshape(-1, 4),
            policy_offsets=offsets_of(np.array([len(row) for row in rows], np.int64)),
            move_probabilities=np.concatenate([*rows, ()]).astype(np.float16),
            search_wdl=np.array(self._wdl, np.float16).reshape(-1, 3),
            result=np.where(black_to_move, DRAW - result, DRAW + result).astype(np.uint8),
            has_policy=np.array([row is not None for row in self._policies], bool),
            ply=ply,
            kind=np.full(len(ply), GAME, np.uint8),
        )
        samples = joined([samples, *self._found]) if self._found else samples
        if fault := fault_of(samples):
            raise RecordError(fault)
        moves = np.array(self._moves, np.uint8)
        return GameRecord(self.start_fen, moves, int(result), termination, self.network, samples)


def fault_of(samples: Samples) -> str | None:
    """Describes what makes samples invalid; None if they are valid."""
    positions, counts = samples.positions, np.diff(samples.policy_offsets)
    own, opp, kings = positions[:, 0], positions[:, 1], positions[:, 2]
    if ((own & opp) | (kings & ~(own | opp))).any():
        return "a square holds two pieces, or a king is on an empty one"
    if (counts[samples.has_policy] != legal_moves(positions[samples.has_policy])).any():
        return "a policy does not have one probability for each legal move"
    with_policy = samples.policy_offsets[:-1][samples.has_policy]
    probabilities, wdl = samples.move_probabilities.astype(np.float32), samples.search_wdl.astype(np.float32)
    totals = np.add.reduceat(probabilities, with_policy) if len(with_policy) else np.zeros(0)
    for name, values, sums in (("move_probabilities", probabilities, totals), ("search_wdl", wdl, wdl.sum(axis=1))):
        if not ((values >= 0).all() and (np.abs(sums - 1) < _SUM_TOLERANCE).all()):
            return f"{name} are not probabilities: each row must be non-negative and sum to 1"
    return None


def legal_moves(positions: np.ndarray) -> np.ndarray:
    """Number of legal moves (int64 [n]) of positions (uint32 [n, 3 or more])."""
    counts = np.zeros(len(positions), np.int64)
    _count_moves(positions, counts, movegen.new_moves())
    return counts


@njit(cache=True)
def _count_moves(positions, counts, moves):
    for i in range(positions.shape[0]):
        counts[i] = movegen.generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, movegen.DISTINCT)
