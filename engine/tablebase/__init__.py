"""Exact endgame tables: built from the rules alone, stored in small files, with random access."""

from .probe import MissingTableError, Tablebase, open_tablebase

__all__ = ["MissingTableError", "Tablebase", "open_tablebase"]
