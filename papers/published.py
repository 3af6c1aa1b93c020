"""What Wang 2023, "Deep Dive on Checkers Endgame Data" (thesis), published: shares of right answers, and sizes.

``network`` is the network alone, ``search`` the one-ply search with it, ``both`` the network above a confidence
threshold and the search below it.
"""

SAMPLING = {
    202_000_000: {"network": 0.9546, "search": 0.9330, "both": 0.9595},
    20_200_000: {"network": 0.9511, "search": 0.9572},
    2_020_000: {"network": 0.9327, "search": 0.9333},
    202_000: {"network": 0.9079, "search": 0.9340},
}
"""On 2-7 pieces (7: only four against three), by number of positions trained on."""

PIECES = {
    "2–5": {"both": 0.99377},
    "2–7": SAMPLING[202_000_000],
    "7 alone": {"network": 0.9584, "search": 0.8153},
}
"""Trained and tested on the same piece counts."""
RECALL = {"win": 0.9853, "draw": 0.9352, "loss": 0.9671}
"""On 2-7 pieces, at best."""

TRANSFER = {
    "4 → 6": {"network": 0.8268, "search": 0.8328},
    "5 → 7": {"network": 0.8293, "search": 0.8056},
    "2–5 → 7, classifier fine-tuned": {"network": 0.9488, "search": 0.9372},
    "2–6 → 7, classifier fine-tuned": {"network": 0.9524, "search": 0.9261},
    "7 → 7, trained directly": PIECES["7 alone"],
    "7 → 7, random frozen features": {"network": 0.9032, "search": 0.7566},
}

THRESHOLD = 0.8
"""Picked by hand from ``THRESHOLDS``."""
THRESHOLDS = (0.7, 0.8, 0.9)
CONFIDENCE = {
    "win": {"right": 0.985, "wrong": 0.773},
    "draw": {"right": 0.943, "wrong": 0.749},
    "loss": {"right": 0.977, "wrong": 0.739},
}
"""Mean confidence of right and of wrong answers, by exact value, on 2-7 pieces."""

TRAINING = "97.6 million positions were gone through 30 times in about 9 hours on a graphics card for 5 pieces alone"
SETTINGS = "radam, rate 0.0002, batch 1024"

PARAMETERS = 533_163
EXCEPTION_BYTES = 5
SIZES = {"network": 2_130_000, "exceptions": 4_330_000, "together": 6_460_000, "chinook": 1_590_303}
"""Bytes of all values of 2-5 pieces: the network, its table of exceptions, both; and the Chinook project's codec."""
