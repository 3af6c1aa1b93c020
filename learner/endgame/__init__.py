"""The endgame oracle: samples of the exact tables, networks that learn their values, and how these are trained."""
