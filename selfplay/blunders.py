"""``crownhead blunders``: moves that throw away a win or a draw, by exact endgame tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from engine.board import Move
from engine.players.base import close_player
from engine.tablebase import open_tablebase
from learner.endgame.progress import OracleProgress
from learner.endgame.validation import wilson_interval

from .convert import board_of
from .decisions import Decision, drawn_decisions, recorded_decisions
from .match_commands import inspect_player, time_control
from .openings import MatchError

MOST_DRAWN = 6  # pieces of positions that are drawn: the values of all are held in memory
_TOGETHER = 32  # positions that a network without a time judges side by side
_SHOWN = 10
_NAMES = {1: "win", 0: "draw", -1: "loss"}


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
            decisions = drawn_decisions(pieces, positions, seed, folder, tables, progress.tables)
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
    for player in figures["players"]:
        title = player["player"]
        table = Table("pieces", "decisions", "blunders", "share", "win→draw", "win→loss", "draw→loss", title=title)
        for line in [*player["by_pieces"], {**player, "pieces": "all"}]:
            kinds = [str(line[key]) for key in ("win_to_draw", "win_to_loss", "draw_to_loss")]
            counts = [str(line[key]) for key in ("pieces", "positions", "blunders")]
            table.add_row(*counts, f"{line['share']:.2%}", *kinds)
        console.print(table)
    for one in figures["blunders"][:_SHOWN]:
        text = f"{one['player']}: {one['fen']} {one['move']}: a {one['was']} became a {one['became']}"
        console.print(text, markup=False, highlight=False)
    if len(figures["blunders"]) > _SHOWN:
        console.print(f"and {len(figures['blunders']) - _SHOWN} more: see --json")
