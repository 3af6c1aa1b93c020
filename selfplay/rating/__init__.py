"""Elo, error bars, sequential tests, the gate's rule, and the ratings of a run."""
