"""Golden trees and the signature of the search, with a deterministic stand-in for a network.

``python tests/search_golden.py`` writes ``data/search_golden.json`` (``PYTHONPATH=.`` if the project is not installed).
Do this only for an intended change of the search's behaviour, and report with it the changes of the signature and of
strength.
"""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from search_boards import played, random_game, started
from search_reference import HashEvaluator

from engine.fen import START_FEN
from engine.search import SearchConfig

GOLDEN = Path(__file__).parent / "data" / "search_golden.json"
# Start, middle game, men near promotion, king ending, multi-jumps, an ending of three kings, close to a repetition.
CASES: list[tuple[str, str]] = [
    (START_FEN, ""),
    (START_FEN, "11-15 23-19 8-11 22-17 9-13 17-14 10x17 21x14 15-18"),
    ("W:W18,19,22,25,27,30,31:B1,3,6,10,11,12,15", ""),
    ("B:W14,K22,K23:BK6,K7,13", ""),
    ("B:W6,7,14,15,22,23:BK2,K29", ""),
    ("B:WK18,K23:BK3", ""),
    ("B:WK31,22:BK1,K5", "1-6 31-27 6-1 27-31 1-6 31-27 6-1"),
]
SIGNATURE_GAMES = 48


def golden_trees() -> list[dict[str, Any]]:
    """The results of the engine's search in all golden cases."""
    trees = []
    search = started(SearchConfig(num_simulations=200), [played(*case) for case in CASES])
    search.run(HashEvaluator())
    for slot, (fen, moves) in enumerate(CASES):
        result = search.result(slot)
        trees.append(
            {
                "fen": fen,
                "moves": moves,
                "visits": result.visits.tolist(),
                "values": [round(float(value), 5) for value in result.values],
                "policy": [round(float(share), 5) for share in result.policy],
                "wdl": [round(float(share), 5) for share in result.wdl],
                "proofs": result.proofs.tolist(),
                "principal_variation": search.principal_variation(slot),
            }
        )
    return trees


def bench_signature() -> str:
    """A digest of the root visits in positions of fixed random games, which shows any change of the search."""
    boards = [random_game(random.Random(seed), 2 * seed) for seed in range(SIGNATURE_GAMES)]
    search = started(SearchConfig(num_simulations=64), boards)
    search.run(HashEvaluator())
    visits = np.concatenate([search.result(slot).visits for slot in range(len(boards))])
    return hashlib.sha256(visits.astype("<i4").tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    golden = {"signature": bench_signature(), "trees": golden_trees()}
    lines = ",\n".join("    " + json.dumps(tree) for tree in golden["trees"])
    text = f'{{\n  "signature": {json.dumps(golden["signature"])},\n  "trees": [\n{lines}\n  ]\n}}\n'
    GOLDEN.write_text(text)
    print(golden["signature"])
