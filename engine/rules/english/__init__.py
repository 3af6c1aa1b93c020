"""English draughts, also called American checkers (rules: World Checkers Draughts Federation)."""

# ruff: noqa: F401 - the names that every game has, see ``engine.rules``

from .movegen import MAX_MOVES, count_moves, generate, jumpers_of, move_direction, move_hops
from .notation import CAPTURE_SIGN, EXAMPLES, PDN_SQUARE, SQUARE, between, path_bits, square_name, square_number
from .policy import MAX_HOPS, hop_indices, move_end, move_logit

TITLE = "English draughts"
PDN_GAME_TYPE = "21,B,8,8,N1,0"
FIRST_TO_MOVE = "B"
START_FEN = "B:W21,22,23,24,25,26,27,28,29,30,31,32:B1,2,3,4,5,6,7,8,9,10,11,12"
REPETITIONS_TO_DRAW = 3  # WCDF rules, 1.32.1
REVERSIBLE_PLIES_TO_DRAW = 80  # WCDF rules, 1.32.2: 40 moves by each side
HAS_BALLOTS = HAS_TABLES = True
