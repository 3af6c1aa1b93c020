"""Learning curves on the cards of networks and oracles: how the networks came to know what they know."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..checkpoint import whole_folder
from .networks import CARD_FILE, read_card
from .oracle_files import oracle_folder, read_oracle_card
from .training import CurvePoint

CURVE, CURVES = "learning_curve", "learning_curves"
"""Names among the figures of a network's card, and of an oracle's: there by the pieces that the member is for."""
MOST_POINTS = 24  # of a curve on an oracle's card: some two kilobytes
Curve = list[dict[str, Any]]


def to_json(curve: Sequence[CurvePoint]) -> Curve:
    """Points as cards and reports hold them."""
    return [
        {"positions": p.positions, "seconds": p.seconds, "loss": p.loss, "validation_accuracy": p.accuracy}
        for p in curve
    ]


def thinned(curve: Curve) -> Curve:
    """At most ``MOST_POINTS`` points, evenly chosen, the first and the last among them."""
    if len(curve) <= MOST_POINTS:
        return curve
    return [curve[round(i * (len(curve) - 1) / (MOST_POINTS - 1))] for i in range(MOST_POINTS)]


def member_name(pieces: tuple[int, int]) -> str:
    """How curves name the member for these pieces."""
    return f"{pieces[0]}-{pieces[1]}"


def curves_in(folder: Path | str) -> Mapping[str, Curve]:
    """Learning curves by ``member_name`` of the oracle or the network in a folder; none for a self-play network.

    Raises:
        CheckpointError: a card is damaged.
    """
    place = oracle_folder(folder)
    if place is not None:
        return read_oracle_card(place).figures.get(CURVES) or {}  # type: ignore[return-value]
    if not (whole_folder(Path(folder)) / CARD_FILE).exists():
        return {}
    card = read_card(folder)
    curve: Any = card.figures.get(CURVE)
    return {member_name(card.pieces): thinned(curve)} if curve else {}
