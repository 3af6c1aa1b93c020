"""Lessons, endings, puzzles, and the records of who solves them. No pygame."""
