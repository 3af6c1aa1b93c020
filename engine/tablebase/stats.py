"""What table files say about endgames: how many positions are won, drawn and lost, and how long wins take."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .folder import build_advice
from .material import MIN_PIECES, Material, materials, materials_between
from .slice_file import Kind, SliceCounts, SliceFile
from .store import find_files


def slice_counts(folders: Iterable[Path]) -> dict[Material, SliceCounts]:
    """Counts of every slice that the folders have a table of, in the order in which slices are solved.

    Raises:
        TableFileError: a file is damaged or foreign.
        OSError: a folder cannot be read.
    """
    files = find_files(folders)
    found: dict[str, SliceCounts] = {}
    kinds: tuple[Kind, ...] = ("wdl", "distance")  # only the latter knows the longest wins
    for kind in kinds:
        for (_, other), path in files.items():
            if other == kind:
                with SliceFile(path, checked=True) as file:
                    found |= file.header.slices
    most = max((pair.pieces for pair, _ in files), default=0)
    return {m: found[m.name] for m in materials_between(MIN_PIECES, most) if m.name in found}


def table_stats(folders: Iterable[Path], pieces: int | None = None) -> dict[str, Any]:
    """Figures of ``crownhead tablebase stats --json``.

    Args:
        pieces: only slices of so many pieces; of all if None.

    Returns:
        ``slices``: by name, ``win``, ``draw``, ``loss``, ``longest_win`` (plies, null without distances or wins) and
        ``longest_win_fen``; ``pieces``: the same, summed, by number of pieces, for those of which every slice is there.

    Raises:
        ValueError: there is no table, or none of so many pieces.
    """
    folders = list(folders)
    counts = {m: c for m, c in slice_counts(folders).items() if pieces is None or m.pieces == pieces}
    if not counts:
        what = "" if pieces is None else f" of {pieces} pieces"
        raise ValueError(
            f"{' and '.join(map(str, folders))} has no table{what}; "
            f"build it with {build_advice(folders[0], pieces, False)}"
        )
    by_pieces = {}
    for n in sorted({material.pieces for material in counts}):
        if all(material in counts for material in materials(n)):
            by_pieces[str(n)] = _total([counts[material] for material in materials(n)])
    return {"pieces": by_pieces, "slices": {m.name: _total([count]) for m, count in counts.items()}}


def _total(counts: list[SliceCounts]) -> dict[str, Any]:
    longest = max(counts, key=lambda count: count.longest_win or 0)
    return {
        "win": sum(count.win for count in counts),
        "draw": sum(count.draw for count in counts),
        "loss": sum(count.loss for count in counts),
        "longest_win": longest.longest_win,
        "longest_win_fen": longest.longest_fen,
    }
