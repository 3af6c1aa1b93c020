"""Trained weights that come with the program; ``learner.endgame.oracle.default_oracle`` finds them."""
