"""Self-play and its outer loop: game records, shards, replay window, matches, gate, Elo. Imports no pygame."""
