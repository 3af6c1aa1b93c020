"""The game: rules, notation, encoding, search and players. It imports no networks, processes or windows."""

from .code_cache import provide_code_cache

provide_code_cache()
