"""Systems of papers done again with self-play: configurations of the project's own parts, and their reports."""
