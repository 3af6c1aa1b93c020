"""A game at the board: moves, turns, clocks, thinking, the report, files. No pygame."""
