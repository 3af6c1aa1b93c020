"""Making puzzles: games that hold some, what settles them, how hard they are; and the commands."""
