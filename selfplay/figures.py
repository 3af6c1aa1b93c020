"""Figures of a run."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.files import atomic_write

from .elo import EloRating


def draw_ratings(
    path: Path, table: Sequence[EloRating], reference: str, minutes: Mapping[str, float], title: str
) -> None:
    """Writes the figure ``ratings_image``.

    Raises:
        StorageError: ``path`` cannot be written.
    """
    atomic_write(path, ratings_image(table, reference, minutes, title))


def ratings_image(table: Sequence[EloRating], reference: str, minutes: Mapping[str, float], title: str) -> bytes:
    """Draws the Elo of a run's promoted networks over time as PNG; the other players as level lines.

    Args:
        table: ratings of all players; ``reference`` has 0.
        minutes: network → minutes of training when it was promoted (the random weights: 0).
    """
    from matplotlib.figure import Figure  # no pyplot: neither a window nor a global state

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    promoted = sorted((minutes[line.player], line) for line in table if line.player in minutes)
    if promoted:
        times = [time for time, _ in promoted]
        ratings = [line.rating for _, line in promoted]
        errors = [line.error for _, line in promoted]
        axes.errorbar(times, ratings, errors, fmt="o-", capsize=3, color="#1f4e79", label="promoted networks, ± 95 %")
    last = max((time for time, _ in promoted), default=1.0)
    for line in table:
        if not line.player.isdigit():
            axes.axhline(line.rating, linestyle="--", linewidth=1, color="#b8860b")
            axes.annotate(line.player, (last, line.rating), ha="right", va="bottom", color="#7a5a00")
    axes.set(xlabel="minutes of training", ylabel=f"Elo ({reference} = 0)", title=title)
    axes.grid(alpha=0.3)
    if promoted:
        axes.legend(loc="lower right")
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=120)
    return image.getvalue()
