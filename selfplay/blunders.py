"""``crownhead blunders``: moves that throw away a win or a draw, by exact endgame tables.

Asked about are *decisions*: positions in which not all moves have the same value. Values are those of the tables, which
know neither draws by repetition nor the 80-ply rule.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

from engine.bitboard import turned
from engine.board import Board, Move
from engine.errors import DraughtsError
from engine.fen import Color, format_fen
from engine.files import read_text
from engine.movegen import MAX_MOVES, generate, new_moves
from engine.pdn import read_games
from engine.players.base import close_player
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED
from engine.tablebase.load import load_tables
from engine.tablebase.material import materials
from learner.endgame.data import EndgameSampler
from learner.endgame.progress import OracleProgress
from learner.endgame.validation import wilson_interval

from .convert import PIECES as SHIPPED_PIECES
from .convert import board_of
from .match_commands import inspect_player, time_control
from .openings import MatchError

MOST_DRAWN = 6  # pieces of positions that are drawn: the values of all are held in memory
_TOGETHER = 32  # positions that a network without a time judges side by side
_DRAWN_AT_ONCE = 8  # times the positions wanted: a sixth of all are decisions
_DRAWS = 100  # until that is all there is: two pieces have few decisions
_SHOWN = 10
_NAMES = {1: "win", 0: "draw", -1: "loss"}

Words = tuple[int, int, int]


@dataclass(frozen=True)
class Decision:
    """A position in which a move can be a blunder.

    Attributes:
        values: the position after each move, as ``Board.words`` shows it → value for the side that moved: 1 win,
            0 draw, -1 loss.
        player: who made ``move`` in a recorded game; "" if it was drawn.
    """

    board: Board
    values: dict[Words, int]
    player: str = ""
    move: Move | None = None

    @property
    def best(self) -> int:
        """Value of the position for the side to move."""
        return max(self.values.values())

    @property
    def pieces(self) -> int:
        """On the board."""
        own, opp, _ = self.board.words()
        return (own | opp).bit_count()

    def value_of(self, move: Move) -> int:
        """What the position is worth to the side to move after ``move``."""
        after = self.board.copy()
        after.push(move)
        return self.values[after.words()]


@dataclass(frozen=True)
class Answer:
    """What a player did in a decision."""

    player: str
    decision: Decision
    move: Move

    @property
    def change(self) -> tuple[int, int]:
        """Value for the player before and after the move."""
        return self.decision.best, self.decision.value_of(self.move)

    @property
    def blunder(self) -> bool:
        """The move has made it worse."""
        before, after = self.change
        return after < before


@njit(cache=True)
def _positions_behind(positions, moves, behind, ends):
    """Writes the positions behind all moves of each position, as the side then to move sees them."""
    n = 0
    for i in range(positions.shape[0]):
        for j in range(generate(positions[i, 0], positions[i, 1], positions[i, 2], moves, True)):
            behind[n, 0], behind[n, 1] = turned(moves[j].opp), turned(moves[j].own)
            behind[n, 2] = turned(moves[j].kings)
            n += 1
        ends[i] = n


def move_values(positions: np.ndarray, tables: Tablebase) -> list[dict[Words, int]]:
    """What the moves in each position are worth, see ``Decision.values``.

    Args:
        positions: uint32 [N, 3 or more]: own, opp, kings.

    Raises:
        MissingTableError: no table covers the position behind a move.
    """
    behind, ends = np.zeros((MAX_MOVES * len(positions), 3), np.uint32), np.zeros(len(positions), np.int64)
    _positions_behind(positions, new_moves(), behind, ends)
    behind = behind[: ends[-1] if len(ends) else 0]
    values = np.ones(len(behind), np.int8)  # of those that have taken the last piece
    goes_on = behind[:, 0] != 0
    values[goes_on] = -tables.probe_wdl_many(behind[goes_on])
    worth = list(zip(map(tuple, behind.tolist()), values.tolist(), strict=True))
    return [dict(worth[first:end]) for first, end in pairwise([0, *ends.tolist()])]


def drawn_decisions(pieces: int, number: int, seed: int, folder: Path | None, tables: Tablebase) -> list[Decision]:
    """Decisions of 2 to ``pieces`` pieces, Black to move; every such is equally likely. Fewer where there are few.

    Args:
        folder: of the tables of more than ``SHIPPED_PIECES`` pieces; the default one if None.
    """
    values = load_tables(SHIPPED if pieces <= SHIPPED_PIECES else folder, pieces)
    sampler = EndgameSampler(values, [slice for n in range(2, pieces + 1) for slice in materials(n)], seed)
    found: dict[Words, Decision] = {}
    for _ in range(_DRAWS):
        drawn = sampler.draw(_DRAWN_AT_ONCE * number)
        positions = drawn.positions[drawn.values >= 0, :3]  # what is lost cannot be thrown away
        for (own, opp, kings), worth in zip(positions.tolist(), move_values(positions, tables), strict=True):
            if len(set(worth.values())) > 1:
                board = Board(format_fen(Color.BLACK, own, opp, kings))
                found.setdefault(board.words(), Decision(board, worth))
        if len(found) >= number:
            break
    return list(found.values())[:number]


def recorded_decisions(path: Path, pieces: int, tables: Tablebase) -> list[Decision]:
    """Decisions of at most ``pieces`` pieces in recorded games, with the moves made, in the order of the file.

    Raises:
        StorageError: the file cannot be read.
        MatchError: it holds something else than games.
    """
    try:
        moves = list(_recorded_moves(path, pieces))
    except DraughtsError as error:
        raise MatchError(f"games in {path}: {error}") from error
    positions = np.array([board.words() for board, _, _ in moves], np.uint32).reshape(-1, 3)
    worth = move_values(positions, tables)
    return [
        Decision(board, values, player, move)
        for (board, player, move), values in zip(moves, worth, strict=True)
        if len(set(values.values())) > 1
    ]


def _recorded_moves(path: Path, pieces: int) -> Iterator[tuple[Board, str, Move]]:
    for game in read_games(read_text(path)):
        board = Board(game.start_fen)
        for node in game.moves:
            own, opp, _ = board.words()
            if (own | opp).bit_count() <= pieces:
                yield Board(board.fen()), game.headers.get(str(board.turn), "?"), node.move
            board.push(node.move)


def blunders_command(
    player: str | None,
    games: Path | None,
    pieces: int,
    positions: int,
    simulations: int | None,
    seconds: float | None,
    folder: Path | None,
    seed: int,
    quiet: bool,
) -> dict[str, Any]:
    """Counts blunders; see ``crownhead blunders --help``.

    Args:
        folder: of the tables to judge by; the default one if None.

    Raises:
        MatchError: neither a player nor games, or no decision in the games.
        MissingTableError: no tables of so many pieces.
    """
    if player is None and games is None:
        raise MatchError("name a PLAYER, or recorded games by --games FILE, or both")
    if games is None and pieces > MOST_DRAWN:
        raise MatchError(f"--pieces {pieces}: positions of up to {MOST_DRAWN} pieces are drawn; more only of --games")
    control = time_control(simulations, seconds, None)
    if player is not None:
        inspect_player(player, simulations, control)
    with open_tablebase(folder) as tables, OracleProgress(quiet) as progress:
        tables.probe_wdl(board_of(pieces))  # missing tables are told at once
        progress.phase("looking for decisions")
        if games is None:
            decisions = drawn_decisions(pieces, positions, seed, folder, tables)
        else:
            decisions = recorded_decisions(games, pieces, tables)
            if not decisions:
                raise MatchError(f"games in {games}: no move of at most {pieces} pieces could be a blunder")
        if player is None:
            answers = [Answer(one.player, one, one.move) for one in decisions if one.move is not None]
        else:
            chosen = _sample(decisions, positions, seed)
            answers = list(_answers(player, chosen, simulations, seconds, progress))
    limit = {"time_control": str(control), "simulations": simulations if control.kind == "none" else None}
    figures = {"games": str(games) if games else None, "pieces": pieces, **limit, **_figures(answers)}
    if not quiet:
        _print(figures)
    return figures


def _sample(decisions: Sequence[Decision], number: int, seed: int) -> list[Decision]:
    """So many different ones, or all, in random order."""
    different = list({(one.board.turn, one.board.words()): one for one in decisions}.values())
    order = np.random.default_rng(seed).permutation(len(different))
    return [different[index] for index in order[:number]]


def _answers(
    text: str, decisions: Sequence[Decision], simulations: int | None, seconds: float | None, progress: OracleProgress
) -> Iterator[Answer]:
    from .players import make_player

    together = _TOGETHER if seconds is None else 1
    progress.phase(f"asking {text}", len(decisions))
    player = make_player(text, simulations, seconds, batch=together)
    try:
        for first in range(0, len(decisions), together):
            part = decisions[first : first + together]
            for decision, move in zip(part, player.choose([one.board for one in part]), strict=True):
                yield Answer(text, decision, move)
            progress.done(first + len(part))
    finally:
        close_player(player)


def _figures(answers: Sequence[Answer]) -> dict[str, Any]:
    players = []
    for name in dict.fromkeys(answer.player for answer in answers):
        own = [answer for answer in answers if answer.player == name]
        by_pieces = [
            {"pieces": n, **_counts([answer for answer in own if answer.decision.pieces == n])}
            for n in sorted({answer.decision.pieces for answer in own})
        ]
        players.append({"player": name, **_counts(own), "by_pieces": by_pieces})
    blunders = [
        {
            "player": answer.player,
            "fen": answer.decision.board.fen(),
            "move": answer.decision.board.pdn(answer.move),
            "was": _NAMES[answer.change[0]],
            "became": _NAMES[answer.change[1]],
        }
        for answer in answers
        if answer.blunder
    ]
    return {"players": players, "blunders": blunders}


def _counts(answers: Sequence[Answer]) -> dict[str, Any]:
    kinds = Counter(answer.change for answer in answers if answer.blunder)
    blunders = kinds.total()
    return {
        "positions": len(answers),
        "blunders": blunders,
        "share": blunders / len(answers),
        "interval": list(wilson_interval(blunders, len(answers))),
        **{f"{_NAMES[was]}_to_{_NAMES[became]}": kinds[was, became] for was, became in ((1, 0), (1, -1), (0, -1))},
    }


def _print(figures: dict[str, Any]) -> None:
    console = Console()
    table = Table("player", "pieces", "decisions", "blunders", "share", "95 %", "win→draw", "win→loss", "draw→loss")
    for player in figures["players"]:
        for line in [*player["by_pieces"], {"pieces": "all", **player}]:
            low, high = line["interval"]
            numbers = [str(line[key]) for key in ("win_to_draw", "win_to_loss", "draw_to_loss")]
            shares = f"{line['share']:.2%}", f"{low:.2%}-{high:.2%}"
            table.add_row(
                player["player"], str(line["pieces"]), str(line["positions"]), str(line["blunders"]), *shares, *numbers
            )
    console.print(table)
    for one in figures["blunders"][:_SHOWN]:
        text = f"{one['player']}: {one['fen']} {one['move']}: a {one['was']} became a {one['became']}"
        console.print(text, markup=False, highlight=False)
    if len(figures["blunders"]) > _SHOWN:
        console.print(f"and {len(figures['blunders']) - _SHOWN} more: see --json")
