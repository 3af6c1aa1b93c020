"""The game: rules, notation, encoding, search and players. It imports no networks, processes or windows."""

from .code_cache import check_sources, part_code_cache, provide_code_cache
from .game import ENGLISH, GAME

provide_code_cache()
check_sources()
if GAME != ENGLISH:
    part_code_cache(GAME)
