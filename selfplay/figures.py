"""Figures of a run."""

from collections.abc import Mapping, Sequence

from .elo import EloRating


def ratings_image(
    table: Sequence[EloRating],
    reference: str,
    places: Mapping[str, float],
    title: str,
    what: str = "promoted networks",
    axis: str = "minutes of training",
    doubling: bool = False,
) -> bytes:
    """Draws the Elo of a run's promoted networks over time as PNG; the other players as level lines.

    Args:
        places: network → minutes of training when it was promoted (the random weights: 0), or another measure.
        what, axis: names of the networks and of the measure.
        doubling: the axis is in steps of twice as much.
    """
    from matplotlib.figure import Figure  # no pyplot: neither a window nor a global state

    from learner.endgame.figures import png_of

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    climbed = sorted((places[line.player], line) for line in table if line.player in places)
    if climbed:
        along = [place for place, _ in climbed]
        ratings = [line.rating for _, line in climbed]
        errors = [line.error for _, line in climbed]
        axes.errorbar(along, ratings, errors, fmt="o-", capsize=3, color="#1f4e79", label=f"{what}, ± 95 %")
    for line in table:
        if line.player not in places and not line.player.isdigit():  # not the candidates that were turned down
            axes.axhline(line.rating, linestyle="--", linewidth=1, color="#b8860b")
            axes.annotate(
                line.player,
                (1, line.rating),
                xytext=(4, 0),
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                va="center",
                color="#7a5a00",
            )
    if doubling:
        axes.set_xscale("log", base=2)
    axes.set(xlabel=axis, ylabel=f"Elo ({reference} = 0)", title=title)
    axes.grid(alpha=0.3)
    if climbed:
        figure.legend(loc="outside lower center", frameon=False)  # beside the lines, where it hides no name
    return png_of(figure)
