"""Russian draughts: men capture backwards, too; kings fly; what is taken leaves the board after the whole move.

Rules: "Rules of the sport draughts", section I, approved by the Russian Ministry of Sport (order 481 of 12 May 2010).
A man that reaches the far row while it captures goes on as a king; any capture may be chosen, but it is made to its
end; nothing is jumped twice. Draws are the third occurrence of a position and fifteen moves by each side with kings
alone and without a capture, which includes three kings that do not catch one in fifteen moves. The limits by the number
of pieces (endings of four to seven pieces, a king on the main road against three pieces) are left out: they are never
needed to end a game.
"""

# ruff: noqa: F401 - the names that every game has, see ``engine.rules``

from .movegen import MAX_MOVES, count_moves, generate, jumpers_of, move_direction, move_hops
from .notation import CAPTURE_SIGN, EXAMPLES, PDN_SQUARE, SQUARE, between, path_bits, square_name, square_number
from .policy import MAX_HOPS, hop_indices, move_end, move_logit

TITLE = "Russian draughts"
PDN_GAME_TYPE = "25,W,8,8,A0,0"
FIRST_TO_MOVE = "W"
START_FEN = "W:Wa3,c3,e3,g3,b2,d2,f2,h2,a1,c1,e1,g1:Bb8,d8,f8,h8,a7,c7,e7,g7,b6,d6,f6,h6"
REPETITIONS_TO_DRAW = 3
REVERSIBLE_PLIES_TO_DRAW = 30
HAS_BALLOTS = HAS_TABLES = False
