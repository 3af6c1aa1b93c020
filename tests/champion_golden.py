"""The signature of the champion, the network of the package.

``python tests/champion_golden.py`` writes ``data/champion.json`` (``PYTHONPATH=.`` if the project is not installed). Do
this only if another network is shipped or the search is meant to change.
"""

import json
import random
from pathlib import Path
from typing import Any

from search_boards import random_game

from engine.search import LockstepSearch, SearchConfig
from learner.checkpoint import load_checkpoint
from learner.inference.torch_evaluator import TorchEvaluator
from selfplay.players import CHAMPION, checkpoint_folder

GOLDEN = Path(__file__).parent / "data" / "champion.json"
POSITIONS, SIMULATIONS = 24, 100


def champion_signature() -> dict[str, Any]:
    """Digest of the weights; for positions of fixed random games, win/draw/loss and visits of a search."""
    loaded = load_checkpoint(checkpoint_folder(CHAMPION))
    boards = [random_game(random.Random(seed), 2 * seed) for seed in range(POSITIONS)]
    search = LockstepSearch(SearchConfig(num_simulations=SIMULATIONS), len(boards))
    for slot, board in enumerate(boards):
        search.set_board(slot, board)
        search.start(slot, explore=False)
    search.run(TorchEvaluator(loaded.network, precision="float32"))
    positions = []
    for slot, board in enumerate(boards):
        result = search.result(slot)
        positions.append(
            {
                "fen": board.fen(),
                "wdl": [round(float(share), 5) for share in result.wdl],
                "visits": result.visits.tolist(),
            }
        )
    return {"digest": loaded.info.digest, "positions": positions}


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(champion_signature(), indent=1) + "\n")
