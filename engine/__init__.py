"""The game: rules, notation, encoding, search and players. Knows nothing of networks, processes or windows."""
