"""The game: rules, notation, encoding, search and players. Knows nothing of networks, processes or windows."""

from .code_cache import provide_code_cache

provide_code_cache()
