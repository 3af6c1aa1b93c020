"""Settings of papers that learn by self-play, as presets of runs."""

from typing import Any

from learner.network import NETWORKS, ResidualConfig


def share_of_points(factor: float) -> float:
    """Score, for a gate's ``score_threshold``, of a side with ``factor`` times the points of the other side."""
    return factor / (1 + factor)


POPIC: dict[str, Any] = {
    "network": ResidualConfig(blocks=5, channels=75, board="8x8", kernel_size=4, activation="leaky_relu").model_dump(),
    "search": {"num_simulations": 70, "temperature_plies": 25},
    "match_search": {"num_simulations": 70},
    "selfplay": {
        "games_in_lockstep": 50,
        "positions_per_shard": 200,
        "full_search_fraction": 1.0,
        "ballot_fraction": 0.0,
        "random_opening_plies": 0,
    },
    "trainer": {
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "momentum": 0.9,
        "batch_size": 256,
        "weight_decay": 1e-4,
        "warmup_steps": 0,
        "ema_decay": 0.0,
    },
    "loop": {
        "minutes": 75.0,
        "games_per_iteration": 50,
        "samples_before_training": 256,
        "reuse": 4.0,
        "anchor_games": 0,
        "exam_positions": 0,
    },
    "gate": {"rule": "winrate", "win_points": 3.0, "score_threshold": share_of_points(1.3), "max_games": 20},
    "replay": {"window_start": 60_000},
}
"""Settings of Popič, Bošković and Brest 2021; the notes in ``popic`` name what they leave open."""

MADDOCKS: dict[str, Any] = {
    "network": NETWORKS["3x32"].model_dump(),
    "search": {"num_simulations": 50},
    "match_search": {"num_simulations": 50},
    "selfplay": {"games_in_lockstep": 50, "positions_per_shard": 200, "full_search_fraction": 1.0},
    "trainer": {"learning_rate": 2e-3, "batch_size": 256, "wdl_search_weight": 0.5, "ema_decay": 0.998},
    "loop": {
        "max_iterations": 20,
        "games_per_iteration": 100,
        "samples_before_training": 256,
        "reuse": 5.0,
        "anchor_games": 0,
        "exam_positions": 0,
    },
    "gate": {"rule": "winrate", "score_threshold": 0.55, "max_games": 40},
    "replay": {"window_start": 60_000},
}
"""Settings that Maddocks makes adjustable; all others are this project's own."""
