"""What papers about self-play published."""

POPIC = {
    "v0": (32, 13, 5),
    "v1": (27, 18, 5),
    "v2": (26, 19, 5),
    "v3": (33, 10, 7),
    "v4": (29, 17, 4),
    "v5": (26, 13, 11),
    "v6": (18, 16, 16),
    "v7": (11, 20, 19),
    "v8": (14, 14, 22),
    "v9": (17, 16, 17),
}
"""Popič, Bošković and Brest 2021, "Deep Learning and the Game of Checkers", table 2: wins, draws and losses of their
last version, the ninth, in 50 games against each one, itself included."""
POPIC_VERSIONS = 9
POPIC_HOURS = 14 * 24  # "about two weeks"
