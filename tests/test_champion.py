"""The network that comes with the program is the one that was measured, and plays as it did then."""

import json
from pathlib import Path

import champion_golden
import pytest
from champion_golden import GOLDEN, SIMULATIONS, champion_signature

FOLDER = Path(__file__).parents[1] / "checkpoints" / "champion"
MOST_BYTES = 16 << 20
SAME = 0.1  # of the visits may differ: other processors round otherwise


def test_signature() -> None:
    kept, found = json.loads(GOLDEN.read_text()), champion_signature()
    assert found["digest"] == kept["digest"]
    assert len(found["positions"]) == len(kept["positions"]) == champion_golden.POSITIONS
    for new, old in zip(found["positions"], kept["positions"], strict=True):
        assert new["fen"] == old["fen"]
        assert new["wdl"] == pytest.approx(old["wdl"], abs=0.02)
        moved = sum(abs(a - b) for a, b in zip(new["visits"], old["visits"], strict=True))
        assert moved <= 2 * SAME * SIMULATIONS, new["fen"]


def test_the_card_is_of_these_weights() -> None:
    digest = json.loads((FOLDER / "checkpoint.json").read_text())["digest"]
    card = json.loads((FOLDER / "card.json").read_text())
    assert card["digest"] == digest
    assert digest in (FOLDER / "README.md").read_text()
    for name, figures in card["results"].items():
        if name.startswith("match "):
            pdn = (FOLDER / "matches" / f"{name.removeprefix('match ')}.pdn").read_text()
            assert pdn.count("[Event ") == figures["games"]


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) <= MOST_BYTES
