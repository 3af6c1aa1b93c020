"""What ``crownhead probe`` does."""

import contextlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from engine.board import Board
from engine.errors import FenError
from engine.tablebase import MissingTableError, Tablebase, open_tablebase

from .member import UNTESTED_CONFIDENCE
from .oracle import Oracle, open_oracle
from .validation import OUTCOMES

_FEN_WIDTH = 30  # of six pieces


class ProbeError(ValueError):
    """Nothing to probe, or something that is no position."""


def probe_command(fens: Sequence[str], net: Path | None, folder: Path | None, quiet: bool) -> list[dict[str, Any]]:
    """What oracle and tables say of positions; see ``crownhead probe --help``.

    Args:
        fens: positions; none, or ``-`` among them, reads standard input too, one position a line.
        net: folder of an oracle or a network; None for the oracle that is shipped.
        folder: of the tables; None for the default one.

    Returns:
        For each position ``fen``, ``exact`` (for the side to move, or None), ``distance`` (plies to the end of the game
        or None) and the fields of ``oracle.Answer``.

    Raises:
        ValueError: no position, a text that is none, or an oracle or a table that cannot be read.
    """
    torch.set_num_threads(1)
    boards = [Board(fen) for fen in fens if fen != "-"]
    if len(boards) < len(fens) or not fens:
        boards += _boards_of_standard_input()
    if not boards:
        raise ProbeError("no position on standard input")
    oracle = open_oracle(net)
    with open_tablebase(folder) as tables:
        found = [_probed(board, oracle, tables) for board in boards]
    if not quiet:
        _print_probes(found)
        _print_doubt(oracle, boards)
    return found


def _boards_of_standard_input() -> list[Board]:
    if sys.stdin is None or sys.stdin.isatty():
        raise ProbeError("no position: give FENs, or write them to standard input, one a line")
    if isinstance(sys.stdin, io.TextIOWrapper):  # bytes that are no UTF-8 are shown in the message about their line
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="backslashreplace")
    boards = []
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            try:
                boards.append(Board(line.strip()))
            except FenError as error:
                raise ProbeError(f"line {number} of standard input: {error}") from error
    return boards


def _probed(board: Board, oracle: Oracle, tables: Tablebase) -> dict[str, Any]:
    answer, value = oracle.probe(board), tables.get_wdl(board)
    distance = None
    with contextlib.suppress(MissingTableError):
        distance = tables.probe_distance(board)
    return {
        "fen": board.fen(),
        "exact": None if value is None else OUTCOMES[1 - value],
        "distance": distance,
        **answer._asdict(),
        "wdl": list(answer.wdl),
    }


def _print_probes(found: Sequence[dict[str, Any]]) -> None:
    heads = "position", "exact", "plies", "verdict", "win", "draw", "loss", "source"
    table = Table(*heads, box=None, padding=(0, 2, 0, 0))
    # A position is there to be copied: whole, and in one line if the others leave it room.
    table.columns[0].overflow = table.columns[-1].overflow = "fold"
    table.columns[0].no_wrap = all(len(answer["fen"]) <= _FEN_WIDTH for answer in found)
    table.columns[-1].min_width = max(len(word) for answer in found for word in answer["source"].split())
    for answer in found:
        distance = "" if answer["distance"] is None else str(answer["distance"])
        shares = (f"{share:.2%}" for share in answer["wdl"])
        table.add_row(answer["fen"], answer["exact"] or "", distance, answer["verdict"], *shares, answer["source"])
    Console().print(table)


def _print_doubt(oracle: Oracle, boards: Sequence[Board]) -> None:
    """Says what confidence is worth, where it is worth less than it looks."""
    doubted = {member for member in map(oracle.member_of, boards) if not member.calibrated}
    texts = ["Confidence: as the network states it; it was never calibrated."] if doubted else []
    tested = max(member.calibrated for member in oracle.members)
    if tested and any(len(board.piece_map()) > tested for board in boards):
        texts.append(
            f"Confidence: checked on positions of up to {tested} pieces; beyond, the oracle guesses, and states "
            f"{UNTESTED_CONFIDENCE:.0%} at most."
        )
    for text in texts:
        Console().print(text, highlight=False)
