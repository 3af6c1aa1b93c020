"""Trained weights that come with the program; ``learner.endgame.oracle.open_oracle`` finds them."""
