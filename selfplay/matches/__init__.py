"""Matches and ladders: games between two players, kept, repeated, spread over processes or nodes."""
