"""The outer loop: games in, training steps, candidates, the gate."""
