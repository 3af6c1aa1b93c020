"""Figures of the oracle's validation, each as the bytes of a PNG image."""

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure  # no pyplot: neither a window nor a global state
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, Polygon, Rectangle
from matplotlib.ticker import EngFormatter

from engine.bitboard import squares_of
from engine.fen import NUMBERS, Color, parse_fen, to_number

from .validation import HISTOGRAM_EDGES, METHODS, OUTCOMES, Score, Validation, WorstPosition, wilson_interval

COLORS = {"network": "#9db4cc", "search": "#e3bf58", "oracle": "#5fae9f"}
_RIGHT, _WRONG = "#1f4e79", "#c0504d"
_ROWS_OF_SLICES = 52  # in one column of the figure
_TRUSTED_POSITIONS = 100
_RIGHT_EDGE = 1.02  # of axes of confidence: points next to 1 must not lie on the frame
_LIGHT_SQUARE, _DARK_SQUARE = "#f3efe6", "#b4c3a8"
_DISCS = {Color.BLACK: ("#222222", "#f7f4ec"), Color.WHITE: ("#ffffff", "#222222")}  # face; ring and crown
_RADIUS, _RING_RADIUS = 0.35, 0.28
_SHIFT = 0.05  # of a piece to the lower right, away from the number of its square
_CROWN = ((-0.15, -0.14), (0.15, -0.14), (0.20, 0.11), (0.09, 0.0), (0.0, 0.17), (-0.09, 0.0), (-0.20, 0.11))


def png_of(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG image."""
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=120)
    return image.getvalue()


def draw_confusion(validation: Validation) -> bytes:
    """Confusion matrices, a panel for each method; shares of the exact outcome (rows) and counts."""
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    for axes, method in zip(figure.subplots(1, len(METHODS)), METHODS, strict=True):
        counts = validation.confusion[method]
        shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for (row, column), share in np.ndenumerate(shares):
            text = f"{100 * share:.2f} %\n{counts[row, column]:,}" if counts[row].any() else "–"
            axes.text(column, row, text, ha="center", va="center", color="white" if share > 0.5 else "black")
        axes.set(title=method, xlabel="verdict", ylabel="exact")
        axes.set_xticks(range(3), OUTCOMES)
        axes.set_yticks(range(3), OUTCOMES, rotation=90, va="center")
    return png_of(figure)


def draw_groups(groups: Mapping[str, Mapping[str, Score]]) -> bytes:
    """Share of wrong answers per group, with the accuracies written beside the bars.

    Bars show what is wrong, not what is right, so that they may begin at 0 and still tell 99.5 from 99.9 %.

    Args:
        groups: title → name → score; a panel for each title, in the order given.
    """
    sizes = [len(scores) for scores in groups.values()]
    limit = _longest_bar([score for scores in groups.values() for score in scores.values()])
    figure = Figure(figsize=(8.5, 1.2 + sum(0.35 + 0.62 * size for size in sizes)), layout="constrained")
    panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    for axes, (title, scores) in zip(panels, groups.items(), strict=True):
        _draw_bars(axes, scores, limit)
        axes.set_yticks(range(len(scores)), [f"{name}\n{score.positions:,}" for name, score in scores.items()])
        axes.set_title(title, loc="left", fontsize=11)
        _tidy_bars(axes, len(scores), limit)
    panels[-1].set_xlabel("wrong answers, % (lines: 95 % interval; numbers: accuracy, %)")
    _add_legend(figure, [Patch(color=COLORS[method], label=method) for method in METHODS])
    return png_of(figure)


def _draw_bars(axes: Axes, scores: Mapping[str, Score], limit: float) -> None:
    height = 0.27
    for offset, method in zip((-height, 0.0, height), METHODS, strict=True):
        for row, score in enumerate(scores.values()):
            accuracy, interval = score.accuracy(method), score.interval(method)
            if accuracy is None or interval is None:
                continue
            low, high = (min(100 * (1 - bound), limit) for bound in reversed(interval))
            axes.barh(row + offset, 100 * (1 - accuracy), height, color=COLORS[method])
            axes.hlines(row + offset, low, high, color="#222222", linewidth=1)
            _note(axes, high, row + offset, accuracy)


def draw_slices(by_slice: Mapping[str, Score]) -> bytes:
    """Share of wrong answers per slice: bars of the network, worst first, marks of the two other methods.

    Many slices stand in several columns, read downwards and then to the right, all with the same scale.
    """
    ordered = sorted(by_slice.items(), key=lambda item: (item[1].accuracy("network") or 0.0, item[0]))
    columns = max(1, math.ceil(len(ordered) / _ROWS_OF_SLICES))
    rows = math.ceil(len(ordered) / columns)
    limit = _longest_bar([score for _, score in ordered])
    figure = Figure(figsize=(max(6.0, 3.6 * columns), 1.4 + 0.19 * rows), layout="constrained")
    for number, axes in enumerate(figure.subplots(1, columns, sharex=True, squeeze=False)[0]):
        marks = _draw_slice_column(axes, ordered[number * rows : (number + 1) * rows], limit)
        _tidy_bars(axes, rows, limit)
    figure.supxlabel("wrong answers, % (numbers: accuracy of the network, %)", fontsize=10)
    _add_legend(figure, [Patch(color=COLORS["network"], label="network"), *marks])
    return png_of(figure)


def _draw_slice_column(axes: Axes, slices: Sequence[tuple[str, Score]], limit: float) -> list[Line2D]:
    places = np.arange(len(slices))
    wrong = {
        method: np.array([100 * (1 - (score.accuracy(method) or 0.0)) for _, score in slices]) for method in METHODS
    }
    axes.barh(places, wrong["network"], 0.7, color=COLORS["network"])
    bound = np.minimum(wrong["search"], limit), np.minimum(wrong["oracle"], limit)
    marks = axes.plot(bound[0], places, "|", color="#8a5a00", ms=7, mew=2, label="search", clip_on=False, zorder=3)
    marks += axes.plot(bound[1], places, "o", color="#1b1b1b", ms=3, label="oracle", clip_on=False, zorder=3)
    for place, (_, score) in enumerate(slices):
        farthest = max(wrong[method][place] for method in METHODS)
        _note(axes, min(farthest, limit), place, score.accuracy("network") or 0.0)
    axes.set_yticks(places, [name for name, _ in slices], family="monospace")
    return marks


def _longest_bar(scores: Sequence[Score]) -> float:
    """Per cent that bars are drawn up to: the worst of the groups that are large enough to trust their share."""
    trusted = [score for score in scores if score.positions >= _TRUSTED_POSITIONS] or scores
    shares = [score.right[method] / score.positions for score in trusted if score.positions for method in METHODS]
    return max(100 * (1 - min(shares)) * 1.3, 0.01)


def _note(axes: Axes, x: float, y: float, accuracy: float) -> None:
    text = f"{100 * accuracy:.2f}"
    axes.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=7.5, in_layout=False)


def tidy(axes: Axes, which: Literal["both", "x"] = "both") -> None:
    """A pale grid behind what is drawn, and no frame at the top and on the right."""
    axes.grid(axis=which, alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _tidy_bars(axes: Axes, rows: int, limit: float) -> None:
    axes.tick_params(axis="y", length=0, labelsize=8.5)
    axes.set(xlim=(0, 1.13 * limit), ylim=(rows - 0.45, -0.55))  # room for the numbers
    tidy(axes, "x")


def _add_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False)


def draw_confidence(validation: Validation) -> bytes:
    """Histogram of the oracle's confidence in right and in wrong answers, counts on a logarithmic scale."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    confidence = validation.confidence
    axes.stairs(confidence.right, HISTOGRAM_EDGES, fill=True, color=_RIGHT, alpha=0.35, label="right")
    axes.stairs(confidence.wrong, HISTOGRAM_EDGES, color=_WRONG, linewidth=2, label="wrong")
    if validation.threshold is not None:
        label = f"threshold {validation.threshold:.4g}"
        axes.axvline(validation.threshold, color="#111111", linewidth=1.5, dashes=(4, 2), label=label)
    axes.set_yscale("log")
    axes.set(xlabel="confidence of the oracle", ylabel="positions", ylim=(0.7, None))
    axes.set_xlim(HISTOGRAM_EDGES[0], _RIGHT_EDGE)
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left")
    return png_of(figure)


def draw_reliability(validation: Validation) -> bytes:
    """Reliability diagram: accuracy over confidence with 95 % intervals, and how many answers each bin holds."""
    bins = validation.reliability
    confidence = np.array([b.confidence for b in bins])
    accuracy = np.array([b.accuracy for b in bins])
    intervals = np.array([wilson_interval(b.right, b.count) for b in bins])
    errors = np.abs(intervals.T - accuracy)
    figure = Figure(figsize=(6, 6.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    upper.plot([0, 1], [0, 1], linestyle="--", color="#888888", label="perfect calibration")
    upper.errorbar(confidence, accuracy, errors, fmt="o-", capsize=3, color=_RIGHT, label="oracle, 95 % interval")
    bottom = min(0.3, float(intervals.min()))
    upper.set(ylabel="share of right answers", xlim=(0.3, 1.01), ylim=(max(0.0, bottom - 0.02), 1.02))
    upper.set_title(f"expected calibration error {validation.ece:.4f}", fontsize=11)
    upper.grid(alpha=0.3)
    upper.legend(loc="lower right")
    low, width, count = [b.low for b in bins], [b.high - b.low for b in bins], [b.count for b in bins]
    lower.bar(low, count, width, align="edge", color=_RIGHT, alpha=0.5, edgecolor="white")
    lower.set_yscale("log")
    lower.set(xlabel="confidence of the oracle", ylabel="positions", ylim=(0.7, None))
    lower.grid(alpha=0.3)
    return png_of(figure)


def draw_learning_curve(curve: Sequence[Mapping[str, Any]]) -> bytes:
    """Loss and wrong validation answers while the network learned.

    ``curve`` has points in order, each with ``positions`` and with ``loss``, ``validation_accuracy`` (0-1) or both.
    Raises ``ValueError`` if there are no points, or one has no ``positions``.
    """
    if not curve or not all("positions" in point for point in curve):
        raise ValueError("learning curve: needs points that all have positions")
    figure = Figure(figsize=(10, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, key, label, scale in (
        (left, "loss", "training loss", 1),
        (right, "validation_accuracy", "validation accuracy, %", 100),
    ):
        points = [(point["positions"], scale * point[key]) for point in curve if point.get(key) is not None]
        axes.plot([x for x, _ in points], [y for _, y in points], "o-", markersize=3, color=_RIGHT)
        axes.set(xlabel="positions seen", ylabel=label)
        axes.xaxis.set_major_formatter(EngFormatter())
        axes.grid(alpha=0.3)
        if not points:
            axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes)
    return png_of(figure)


def draw_worst(positions: Sequence[WorstPosition], columns: int = 4) -> bytes:
    """Positions as a grid of boards, Black to move, numbered from 1; above each the exact value and the verdict."""
    columns = min(columns, len(positions))
    rows = math.ceil(len(positions) / columns)
    figure = Figure(figsize=(2.7 * columns, 0.3 + 3.05 * rows), layout="constrained")
    figure.suptitle("Black to move, down the board", fontsize=10)
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for number, (axes, position) in enumerate(zip(grid, positions, strict=False), 1):
        draw_board(axes, position.fen)
        verdict = f"oracle: {position.verdicts['oracle']} {100 * position.confidence:.1f} %"
        axes.set_title(f"{number}. exact: {position.exact}\n{verdict}", fontsize=9)
    for axes in grid:  # what the last row has left over
        axes.set_axis_off()
    return png_of(figure)


def square_centre(number: int) -> tuple[float, float]:
    """Where a PDN number (1-32) lies, as column and row from the upper left corner; a square is 1 wide."""
    row, place = divmod(number - 1, 4)
    return 2 * place + 1.5 - row % 2, row + 0.5


def draw_board(axes: Axes, fen: str) -> None:
    """Draws a position on axes that hold nothing else: dark squares with PDN numbers, men as discs, kings crowned.

    White men are plain discs, black ones carry a ring, so that print and poor eyes tell them apart as well. Raises
    ``FenError`` if the text is no position.
    """
    turn, own, opp, kings = parse_fen(fen)
    axes.set(xlim=(0, 8), ylim=(8, 0), aspect="equal", xticks=[], yticks=[], facecolor=_LIGHT_SQUARE)
    for number in range(1, NUMBERS + 1):
        x, y = square_centre(number)
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color=_DARK_SQUARE, linewidth=0))
        axes.text(
            x - 0.46, y - 0.46, str(number), fontsize=5, va="top", ha="left", color="#3d4a35", zorder=4, in_layout=False
        )
    for color, pieces in ((turn, own), (turn.other, opp)):
        for square in squares_of(pieces):
            king = square in squares_of(pieces & kings)
            _draw_piece(axes, square_centre(to_number(square, turn)), color, king)


def _draw_piece(axes: Axes, centre: tuple[float, float], color: Color, king: bool) -> None:
    face, mark = _DISCS[color]
    x, y = centre[0] + _SHIFT, centre[1] + _SHIFT
    axes.add_patch(Circle((x, y), _RADIUS, facecolor=face, edgecolor="#222222", linewidth=1, zorder=2))
    if color is Color.BLACK:
        axes.add_patch(Circle((x, y), _RING_RADIUS, fill=False, edgecolor=mark, linewidth=0.8, zorder=3))
    if king:
        points = [(x + right, y - up) for right, up in _CROWN]  # rows are counted downwards
        axes.add_patch(Polygon(points, closed=True, facecolor=mark, edgecolor=mark, linewidth=0.5, zorder=3))
