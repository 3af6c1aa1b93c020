"""The report of a validation: what ``crownhead oracle validate`` and ``report`` write into a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..report import Block, Cell, Figure, Report, Section, Table, Text, percent, write_report
from . import figures
from .validation import METHODS, OUTCOMES, REPORT_TITLE, Score, Validation


def write_oracle_report(
    folder: Path,
    validation: Validation,
    learning_curves: Mapping[str, Sequence[Mapping[str, Any]]],
    facts: Mapping[str, str | int | float | None],
) -> Path:
    """Writes the report of a validation: ``report.html``, ``report.md``, ``report.json`` and the figures as PNG.

    ``report.json`` holds ``Validation.to_json``, ``facts`` and ``learning_curves``.

    Args:
        learning_curves: by the pieces a network is for, like ``2-5``, points as ``figures.draw_learning_curve`` takes
            them; none of networks whose cards do not say how they learned.
        facts: what was validated and on what, by name: network, tables, seed, time, version.

    Returns:
        The path of ``report.html``.

    Raises:
        ValueError: facts or a curve that are not JSON, or a curve without points or a common axis.
        StorageError: the folder or a file in it cannot be written.
    """
    curves = {name: [dict(point) for point in curve] for name, curve in learning_curves.items()}
    data = {**validation.to_json(), "facts": dict(facts), "learning_curves": curves}
    sections = [
        _summary(validation, facts),
        _groups(validation),
        _slices(validation),
        _confusion(validation),
        _correlation(validation),
        _confidence(validation),
        _learning(learning_curves),
        _worst(validation),
    ]
    return write_report(folder, Report(REPORT_TITLE, sections, data))


def _percent(share: float | None) -> str | None:
    return percent(share, 3)


def _share(part: int, whole: int) -> str | None:
    return _percent(part / whole if whole else None)


def _summary(validation: Validation, facts: Mapping[str, str | int | float | None]) -> Section:
    overall, rows = validation.overall, []
    for method in METHODS:
        low, high = overall.interval(method) or (None, None)
        wrong = overall.positions - overall.right[method]
        rows.append((method, _percent(overall.accuracy(method)), _percent(low), _percent(high), wrong))
    about: list[tuple[str, Cell]] = [
        ("positions", overall.positions),
        ("weights of the networks", validation.parameters),
        ("confidence threshold", None if validation.threshold is None else f"{validation.threshold:.4f}"),
        ("expected calibration error", f"{validation.ece:.5f}"),
        *facts.items(),
    ]
    return Section(
        "Summary",
        [
            Text(
                "Every answer is compared with the exact value from the tablebases. The network classifies the "
                "position itself; the search follows captures to their end and classifies what they lead to; the "
                "oracle tries quiet moves as well where that leaves it less sure than its threshold."
            ),
            Table("Accuracy", ("method", "accuracy", "95 % from", "95 % to", "wrong answers"), rows),
            Table("What was validated", ("fact", "value"), about),
        ],
    )


def _score_table(caption: str, name: str, scores: Mapping[str, Score]) -> Table:
    rows = [(key, s.positions, *(_percent(s.accuracy(method)) for method in METHODS)) for key, s in scores.items()]
    return Table(caption, (name, "positions", *METHODS), rows)


def _groups(validation: Validation) -> Section:
    by_pieces = {str(pieces): score for pieces, score in validation.by_pieces.items()}
    pieces = {f"{pieces} pieces": score for pieces, score in by_pieces.items()}
    panels = {"exact outcome": validation.by_outcome, "flag": validation.by_flag, "pieces on the board": pieces}
    text = (
        "Flag: capture, the side to move can capture; threatened capture, it cannot, but its opponent could if it were "
        "to move; none, neither. In the figure, bars that reach the right edge go on: groups of very few positions do "
        "not set its scale."
    )
    blocks: list[Block] = [
        Text(text),
        Figure("groups", figures.draw_groups(panels), "Wrong answers by exact outcome, flag and piece count"),
        _score_table("By exact outcome", "outcome", validation.by_outcome),
        _score_table("By flag", "flag", validation.by_flag),
        _score_table("By piece count", "pieces", by_pieces),
    ]
    return Section("Accuracy by outcome, flag and piece count", blocks)


def _slices(validation: Validation) -> Section:
    text = (
        "A slice is named by four counts: kings of the side to move, kings of its opponent, men of the side to move, "
        "men of its opponent."
    )
    figure = Figure("slices", figures.draw_slices(validation.by_slice), "Wrong answers by slice, worst first")
    table = _score_table("By slice", "slice", validation.by_slice)
    return Section("Accuracy by slice", [Text(text), figure, table])


def _confusion(validation: Validation) -> Section:
    rows = [
        (f"{method}: {outcome}", _percent(precision), _percent(validation.recall(method)[outcome]))
        for method in METHODS
        for outcome, precision in validation.precision(method).items()
    ]
    blocks: list[Block] = [
        Text("Rows are the exact outcome, columns the verdict; the shares of each row add up to 100 %."),
        Figure("confusion", figures.draw_confusion(validation), "Normalised confusion matrices"),
        Table("Precision and recall", ("verdict", "precision", "recall"), rows),
    ]
    return Section("Confusion", blocks)


def _correlation(validation: Validation) -> Section:
    (both, network_only), (search_only, neither) = validation.correlation.tolist()
    n = validation.overall.positions
    rows = [
        ("network right", both, network_only, _share(both, n), _share(network_only, n)),
        ("network wrong", search_only, neither, _share(search_only, n), _share(neither, n)),
    ]
    header = ("", "search right", "search wrong", "search right, share", "search wrong, share")
    text = (
        "Where exactly one of the two is right, choosing well between them gains. An oracle that always chose well "
        f"would reach {_share(n - neither, n)}."
    )
    return Section("Network and search", [Text(text), Table("Positions by who is right", header, rows)])


def _confidence(validation: Validation) -> Section:
    rows = [
        (outcome, *(None if mean is None else f"{mean:.4f}" for mean in means))
        for outcome, means in validation.confidence.means.items()
    ]
    text = (
        "Confidence is the oracle's largest probability after calibration. Where it is honest, of the answers given "
        "with 90 % confidence 90 % are right."
    )
    blocks: list[Block] = [
        Text(text),
        Table("Mean confidence by exact outcome", ("outcome", "right answers", "wrong answers"), rows),
        Figure("confidence", figures.draw_confidence(validation), "Confidence of right and wrong answers"),
        Figure("reliability", figures.draw_reliability(validation), "Reliability diagram"),
    ]
    return Section("Confidence", blocks)


def _learning(curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> Section:
    if not curves:
        text = (
            "No learning curve is known: `crownhead oracle train` writes one on the card of the network it trains, and "
            "`crownhead oracle calibrate` hands it on; older networks, and those of self-play, have none."
        )
        return Section("Learning", [Text(text)])
    caption = "Training loss and validation accuracy of the network for {} pieces"
    return Section(
        "Learning",
        [
            Figure(f"learning-{name}", figures.draw_learning_curve(curve), caption.format(name))
            for name, curve in curves.items()
        ],
    )


def _worst(validation: Validation) -> Section:
    if not validation.worst:
        return Section("Worst positions", [Text("The oracle answered every position right.")])
    rows = [
        (
            str(number),
            position.fen,
            position.exact,
            *(position.verdicts[method] for method in METHODS),
            *(f"{probability:.4f}" for probability in position.wdl),
            position.flag,
        )
        for number, position in enumerate(validation.worst, 1)
    ]
    header = ("", "position", "exact", *METHODS, *(f"P({outcome})" for outcome in OUTCOMES), "flag")
    blocks: list[Block] = [
        Text("The oracle's most confident wrong answers. Black is to move and plays down the board."),
        Figure("worst", figures.draw_worst(validation.worst), "Most confident wrong answers of the oracle"),
        Table("The same positions", header, rows),
    ]
    return Section("Worst positions", blocks)
