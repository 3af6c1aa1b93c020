"""Published figures of Wang 2023, "Deep Dive on Checkers Endgame Data" (thesis): fractions of right answers, and sizes.

``network`` is the network alone, ``search`` the one-ply search with it. ``both`` uses the network where its confidence
reaches a threshold, and the search elsewhere.
"""

SAMPLING = {
    202_000_000: {"network": 0.9546, "search": 0.9330, "both": 0.9595},
    20_200_000: {"network": 0.9511, "search": 0.9572},
    2_020_000: {"network": 0.9327, "search": 0.9333},
    202_000: {"network": 0.9079, "search": 0.9340},
}
"""Number of training positions → results on 2-7 pieces (7: only four against three)."""

PIECES = {
    "2–5": {"both": 0.99377},
    "2–7": SAMPLING[202_000_000],
    "7 alone": {"network": 0.9584, "search": 0.8153},
}
"""Numbers of pieces → results of networks trained and tested on these."""
RECALL = {"win": 0.9853, "draw": 0.9352, "loss": 0.9671}
"""Recall of each value on 2-7 pieces, of the best method."""

TRANSFER = {
    "4 → 6": {"network": 0.8268, "search": 0.8328},
    "5 → 7": {"network": 0.8293, "search": 0.8056},
    "2–5 → 7, classifier fine-tuned": {"network": 0.9488, "search": 0.9372},
    "2–6 → 7, classifier fine-tuned": {"network": 0.9524, "search": 0.9261},
    "7 → 7, trained directly": PIECES["7 alone"],
    "7 → 7, random frozen features": {"network": 0.9032, "search": 0.7566},
}

THRESHOLD = 0.8
"""The threshold chosen by hand from ``THRESHOLDS``."""
THRESHOLDS = (0.7, 0.8, 0.9)
CONFIDENCE = {
    "win": {"right": 0.985, "wrong": 0.773},
    "draw": {"right": 0.943, "wrong": 0.749},
    "loss": {"right": 0.977, "wrong": 0.739},
}
"""Exact value → mean confidence of right and of wrong answers, on 2-7 pieces."""

TRAINING = "97.6 million positions were gone through 30 times in about 9 hours on a graphics card for 5 pieces alone"
SETTINGS = "radam, rate 0.0002, batch 1024"

PARAMETERS = 533_163
EXCEPTION_BYTES = 5
SIZES = {"network": 2_130_000, "exceptions": 4_330_000, "together": 6_460_000, "chinook": 1_590_303}
"""Bytes to store all values of 2-5 pieces: network, its table of exceptions, both together; and Chinook's codec."""
