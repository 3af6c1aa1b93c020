"""Makes puzzles: finds them in games, decides the value of each move, and rates how hard they are; and the commands."""
