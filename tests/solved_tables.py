"""Tables solved in memory, for tests."""

from pathlib import Path

from engine.tablebase.dense import DenseTables, load_tables


def solve_tables(pieces: int, threads: int | None = None) -> DenseTables:
    """Solves all tables of 2 to ``pieces`` pieces, without files."""
    return load_tables(Path(__file__).parent / "no such folder", pieces, threads)
