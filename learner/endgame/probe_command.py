"""What ``crownhead probe`` does."""

import contextlib
import io
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from engine.board import Board
from engine.console import Console, progress_console
from engine.errors import FenError
from engine.players.first_search import search_is_compiled
from engine.tablebase import MissingTableError, Tablebase, open_tablebase

from .member import UNTESTED_CONFIDENCE, Member
from .oracle import SEARCHES, TREE, Oracle, open_oracle
from .tree_search import TreeSearch
from .validation import OUTCOMES

_COMMENTS = ("#", ";")  # how lines begin that are none of positions
_ROW = "{:24}  {:5} {:>5}  {:7} {:>7} {:>7} {:>7}  {}"


class ProbeError(ValueError):
    """Nothing to probe, or something that is no position."""


def probe_command(
    fens: Sequence[str], net: Path | None, folder: Path | None, quiet: bool, trees: bool = True
) -> Iterator[dict[str, Any]]:
    """What oracle and tables say of positions, one after the other; see ``crownhead probe --help``.

    Args:
        fens: positions; none, or ``-`` among them, reads standard input too, one position a line.
        net: folder of an oracle or a network; None for the oracle that is shipped.
        folder: of the tables; None for the default one.
        trees: whether trees are searched where the oracle is unsure; some tenths of a second each.

    Yields:
        For each position ``fen``, ``exact`` (for the side to move, or None), ``distance`` (plies to the end of the game
        or None) and the fields of ``oracle.Answer``; for each line of standard input that is none, ``line`` and
        ``error``.

    Raises:
        ValueError: no position, a text that is none, or an oracle or a table that cannot be read; at the end, if lines
            of standard input were no positions.
    """
    torch.set_num_threads(1)
    given = [_board(fen) for fen in fens if fen != "-"]
    from_input = len(given) < len(fens) or not fens
    if from_input and (sys.stdin is None or sys.stdin.isatty()):
        raise ProbeError("no position: give FENs, or write them to standard input, one a line")
    oracle = open_oracle(net, trees)
    console = Console(quiet=quiet, soft_wrap=True, highlight=False)
    read = bad = 0
    asked: set[tuple[Member, int]] = set()
    sources: set[str] = set()
    patience = [] if search_is_compiled() else ["The first tree search compiles its functions, for about a minute."]
    with open_tablebase(folder) as tables:
        console.print(_ROW.format("position", "exact", "plies", "verdict", "win", "draw", "loss", "source"))

        def answer(board: Board) -> dict[str, Any]:
            pieces = len(board.piece_map())
            asked.add((oracle.member_of(board), pieces))
            if patience and oracle.trees is not None and pieces >= oracle.trees.fewest:
                progress_console(quiet).print(patience.pop())
            found = _probed(board, oracle, tables)
            sources.add(found["source"])
            return _shown(found, console)

        yield from map(answer, given)
        for number, text in _lines_of_standard_input() if from_input else ():
            read += 1
            try:
                board = _board(text)
            except FenError as error:
                bad += 1
                console.print(f"line {number}: {error}")
                yield {"line": number, "error": str(error)}
            else:
                yield answer(board)
    _print_doubt(asked, console)
    if oracle.trees is not None and any(source.startswith(f"{SEARCHES[TREE]},") for source in sources):
        console.print(_doubt_of_trees(oracle.trees))
    if bad:
        raise ProbeError(f"{bad} of {read} lines of standard input are no positions, see above")
    if not asked:
        raise ProbeError("no position on standard input")


def _board(text: str) -> Board:
    board = Board(text)
    if not board.piece_map():
        raise FenError(f"FEN {text!r}: an empty board")
    return board


def _lines_of_standard_input() -> Iterator[tuple[int, str]]:
    """Lines that should be positions, with their numbers."""
    if isinstance(sys.stdin, io.TextIOWrapper):  # bytes that are no UTF-8 are shown in the message about their line
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="backslashreplace")
    for number, line in enumerate(sys.stdin, 1):
        text = line.strip()
        if text and not text.startswith(_COMMENTS):
            yield number, text


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


def _shown(answer: dict[str, Any], console: Console) -> dict[str, Any]:
    """The answer, printed as soon as it is known: a reader of a pipe need not wait for the others."""
    distance = "" if answer["distance"] is None else answer["distance"]
    shares = (f"{share:.2%}" for share in answer["wdl"])
    console.print(
        _ROW.format(answer["fen"], answer["exact"] or "", distance, answer["verdict"], *shares, answer["source"])
    )
    console.file.flush()
    return answer


def _print_doubt(asked: Collection[tuple[Member, int]], console: Console) -> None:
    """Says what confidence is worth, where it is worth less than it looks.

    Args:
        asked: which members, about how many pieces.
    """
    if not all(member.calibrated for member, _ in asked):
        console.print("Confidence: as the network states it; it was never calibrated.")
    for member in {member for member, pieces in asked if member.calibrated and pieces > member.edge}:
        told = f"Confidence: tested on positions of up to {member.edge} pieces; beyond, "
        if member.beyond is None:
            console.print(f"{told}the oracle guesses, and states {UNTESTED_CONFIDENCE:.0%} at most.")
        else:
            most = member.beyond.most
            console.print(
                f"{told}as many errors are expected on top as smaller networks made beyond their pieces: "
                f"{most:.1%} at most on {member.edge + 1}, {most**2:.1%} on {member.edge + 2}, and so on."
            )


def _doubt_of_trees(trees: TreeSearch) -> str:
    if trees.calibrated:
        return f"Tree searches were tested on up to {trees.calibrated} pieces."
    return "The weights of tree searches were fitted with another network: fit them again by crownhead oracle trees."
