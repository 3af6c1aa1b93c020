"""Pictures of ratings."""

from collections.abc import Mapping, Sequence

from ..rating.elo import EloRating

_LONGEST_NAME = 30  # characters in a picture


def ratings_image(
    table: Sequence[EloRating],
    reference: str,
    places: Mapping[str, float],
    title: str,
    what: str = "promoted networks",
    axis: str = "minutes of training",
    doubling: bool = False,
) -> bytes:
    """Draws the Elo of networks over training time, and of other players as horizontal lines; returns a PNG.

    Args:
        table: ratings of all players; rejected candidates (names of digits that are not in ``places``) are left out.
        reference: name of the player rated 0.
        places: network → x-coordinate: minutes of training at its promotion, or another measure.
        what, axis: labels of the networks and of the x-axis.
        doubling: whether the x-axis is logarithmic to base 2.
    """
    from matplotlib.figure import Figure  # not pyplot, which has global state and may open windows

    from learner.endgame.figures import png_of

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    climbed = sorted((places[line.player], line) for line in table if line.player in places)
    if climbed:
        along = [place for place, _ in climbed]
        ratings = [line.rating for _, line in climbed]
        errors = [line.error for _, line in climbed]
        axes.errorbar(along, ratings, errors, fmt="o-", capsize=3, color="#1f4e79", label=_plain(f"{what}, ± 95 %"))
    for line in table:
        if line.player not in places and not line.player.isdigit():  # not rejected candidates
            axes.axhline(line.rating, linestyle="--", linewidth=1, color="#b8860b")
            axes.annotate(
                _short(line.player),
                (1, line.rating),
                xytext=(4, 0),
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                va="center",
                color="#7a5a00",
            )
    if doubling:
        axes.set_xscale("log", base=2)
    axes.set(xlabel=axis, ylabel=f"Elo ({_short(reference)} = 0)", title=_plain(title))
    axes.grid(alpha=0.3)
    if climbed:
        figure.legend(loc="outside lower center", frameon=False)  # outside the axes, where it hides no name
    return png_of(figure)


def _short(name: str) -> str:
    """The end of a name, which may be a path: a long one would leave no room for the axes."""
    return _plain(name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}")


def _plain(text: str) -> str:
    """A text in which nothing is a formula for matplotlib."""
    return text.replace("$", r"\$")
