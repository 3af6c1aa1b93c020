"""Figures of repeated experiments, as the bytes of PNG images; published values have hollow marks or pale bars."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure  # not pyplot, which has global state and may open windows
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, MaxNLocator

from learner.endgame.figures import png_of, tidy

PALE, DARK, OURS = "#b9c9da", "#1f4e79", "#c0504d"
_MEASURED = (DARK, OURS, "#5fae9f", "#7a5c99")
_LEGEND_LETTERS = 90  # most letters in a line of the legend
Curve = Sequence[tuple[float, float]]


def draw_curves(
    published: Mapping[str, Curve], measured: Mapping[str, Curve], label: str, logarithmic: bool = False
) -> bytes:
    """Draws curves of right answers.

    Args:
        published, measured: name → points (x, fraction of right answers).
        label, logarithmic: of the x-axis.
    """
    figure = Figure(figsize=(8.5, 4.6), layout="constrained")
    axes = figure.subplots()
    for color, (name, points) in zip(("#7f97b2", "#b8a06a", "#8a8a8a"), published.items(), strict=False):
        axes.plot(*_percent(points), "o--", color=color, mfc="white", label=f"{name}, published")
    for color, (name, points) in zip(_MEASURED, measured.items(), strict=False):
        axes.plot(*_percent(points), "o-", ms=4, color=color, label=name)
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(EngFormatter())
    elif all(float(x).is_integer() for points in measured.values() for x, _ in points):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel=label, ylabel="right answers, %")
    axes.legend(fontsize=9, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(axes)
    return png_of(figure)


def _percent(points: Curve) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [100 * y for _, y in points]


def draw_bars(groups: Mapping[str, Mapping[str, float | None]], published: bool = True) -> bytes:
    """Draws wrong answers as bars, with a group for each setting and a colour for each method.

    Bars show wrong answers and not right ones, so that they can begin at 0 and still show that 99.5 and 99.9 % differ.

    Args:
        groups: setting → method → fraction of right answers, None if unknown; all have the same methods.
        published: whether the first method is the published one.
    """
    methods = list(next(iter(groups.values())))
    colors = dict(zip(methods, (PALE, *_MEASURED) if published else _MEASURED, strict=False))
    height = 0.8 / len(methods)
    figure = Figure(figsize=(8.5, 1.3 + 0.26 * len(methods) * len(groups)), layout="constrained")
    axes = figure.subplots()
    longest = 0.01
    for row, shares in enumerate(groups.values()):
        known = [(method, share) for method, share in shares.items() if share is not None]
        for number, (method, share) in enumerate(known):
            place, wrong = row + (number - (len(known) - 1) / 2) * height, 100 * (1 - share)
            axes.barh(place, wrong, height, color=colors[method])
            text = f"{100 * share:.2f}"
            axes.annotate(text, (wrong, place), (4, 0), textcoords="offset points", va="center", fontsize=7.5)
            longest = max(longest, wrong)
    handles = [Patch(color=color, label=method) for method, color in colors.items()]
    columns = len(methods) if sum(map(len, methods)) <= _LEGEND_LETTERS else 2
    figure.legend(handles=handles, loc="outside upper right", ncols=columns, frameon=False, fontsize=9)
    axes.set_yticks(range(len(groups)), list(groups), fontsize=9)
    axes.set(xlabel="wrong answers, % (numbers: right answers, %)", xlim=(0, 1.1 * longest))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    tidy(axes)
    return png_of(figure)


def draw_sizes(sizes: Mapping[str, tuple[float, float]]) -> bytes:
    """Draws sizes as bars: name → (megabytes of the network, 0 if none; megabytes of its corrections or codes)."""
    figure = Figure(figsize=(8.5, 1.3 + 0.5 * len(sizes)), layout="constrained")
    axes = figure.subplots()
    parts = np.array(list(sizes.values()))
    places = np.arange(len(sizes))
    axes.barh(places, parts[:, 0], 0.6, color=DARK, label="network")
    axes.barh(places, parts[:, 1], 0.6, left=parts[:, 0], color=PALE, label="exceptions or codes")
    for place, total in zip(places, parts.sum(1), strict=True):
        axes.annotate(f"{total:.2f}", (total, place), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(places, list(sizes))
    axes.set(xlabel="MB (a million bytes)", xlim=(0, 1.1 * parts.sum(1).max()), ylim=(len(sizes) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    tidy(axes)
    return png_of(figure)
