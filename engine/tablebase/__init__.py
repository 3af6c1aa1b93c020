"""Exact endgame tables by retrograde analysis."""
