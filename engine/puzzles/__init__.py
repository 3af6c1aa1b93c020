"""Puzzles, positions in which exactly one move wins or exactly one draws: their file, their themes, and ratings."""
