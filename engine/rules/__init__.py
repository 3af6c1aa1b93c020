"""The rules of the games of the family: 8x8 squares, 32 of them in use, men and kings on bitboards.

Each game is a folder with the same names in its ``__init__``; ``played`` is that of this process (``engine.game``). The
rest of the engine takes moves, planes, positions and boards from ``engine.movegen``, ``engine.encoding``,
``engine.fen`` and ``engine.board``, which are the same for every game, and reads constants of ``played``. Kernels call
the functions of ``played`` as they would any other compiled function, so that a second game costs the first nothing.
"""

from ..game import GAME

if GAME == "russian":
    from . import russian as played
else:
    from . import english as played  # type: ignore[no-redef]

__all__ = ["played"]
