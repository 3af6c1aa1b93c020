"""How outcomes are numbered wherever they are classes: in samples, in a network's WDL output and in judgements.

They are those of the side to move, in the order win, draw, loss. A *value* is 1, 0 or -1 instead: ``DRAW - class``.
Kernels of tables and of search trees have codes of their own, which also say what is not known yet.
"""

WIN, DRAW, LOSS = 0, 1, 2
NO_RESULT = 3  # neither: a game without one, or a sample that is no position of a game
OUTCOMES = ("win", "draw", "loss")
"""Names of the classes."""
