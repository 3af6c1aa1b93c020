"""The five experiments of Wang 2023: sampling, piece counts, transfer, threshold and compression."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from engine.tablebase.material import MIN_PIECES, materials_between
from learner.endgame.calibration import calibrate_oracle
from learner.endgame.codec_commands import train_codec_network
from learner.endgame.codec_file import CodecError, CodecHeader, read_coded, write_coded
from learner.endgame.data import TEST, VALIDATION, count_positions
from learner.endgame.validation import OUTCOMES
from learner.report import Figure

from . import published
from .experiment import Experiment, Measure, Row, comparison_note
from .figures import draw_bars, draw_curves, draw_sizes
from .wang_lab import SAMPLE_STEP, Kind, Lab, Training, share

KINDS: tuple[Kind, ...] = ("wang", "pair")
ACCURACIES = (
    Measure("network", "network alone"),
    Measure("search", "one-ply search"),
    Measure("both", f"both, threshold {published.THRESHOLD}"),
)
PAIR = Measure("pair", "PairNetwork with capture search")
_SAMPLE = Measure("sample", "positions, Wang's network", "count")
_PAIR_SAMPLE = Measure("pair_sample", "positions, PairNetwork", "count")
NOWHERE, EVERYWHERE = 0.0, 1.01  # thresholds at which no position, and every position, is searched
_CURVE = np.append(np.linspace(0.34, 0.98, 33), (0.99, 0.995, 0.999, EVERYWHERE))
_CALIBRATION_BUDGET = 8.0
_THRESHOLD_MEASURES = (
    Measure("wang", "Wang's network"),
    Measure("wang_searched", "searched, Wang's network"),
    Measure("pair", "PairNetwork"),
    Measure("pair_searched", "searched, PairNetwork"),
)
CODEC_WEIGHT = 2.0  # time for the codec's network, in the unit of ``Training.weight``
_MOST_PIECES = 5
_FLOAT_BYTES = 4
_MEGABYTE = 1e6


def named(fewest: int, most: int) -> str:
    """A range of piece counts as text, like "2–5" or "7 alone"."""
    return f"{most} alone" if fewest == most else f"{fewest}–{most}"


def _measured(lab: Lab, wang: Training, pair: Training, fewest: int, most: int) -> dict[str, float]:
    """The four accuracies on positions of ``fewest`` to ``most`` pieces."""
    scores = lab.scores(wang, fewest, most, published.THRESHOLD)
    return scores | {"pair": lab.capture_score(pair, fewest, most)}


def _draw_sampling(rows: Sequence[Row], pieces: int) -> Figure:
    theirs = {
        measure.title: [(row.published["sample"], row.published[measure.key]) for row in rows]
        for measure in ACCURACIES[:2]
    }
    ours = {
        f"Wang's {measure.title}": [(row.measured["sample"], row.measured[measure.key]) for row in rows]
        for measure in ACCURACIES[:2]
    }
    ours[PAIR.title] = [(row.measured["pair_sample"], row.measured["pair"]) for row in rows]
    png = draw_curves(theirs, ours, "different positions learned from", logarithmic=True)
    caption = f"Right answers by size of the sample: on 2–7 pieces as published, on 2–{pieces} as measured."
    return Figure("sampling", png, caption)


def sampling(lab: Lab, pieces: int) -> Experiment:
    """Experiment: how does the number of training positions matter?"""
    rows = []
    for tenths, (size, figures) in enumerate(published.SAMPLING.items()):
        wang, pair = (Training(kind, MIN_PIECES, pieces, tenths) for kind in KINDS)
        sizes = {"sample": lab.trained(wang).distinct, "pair_sample": lab.trained(pair).distinct}
        name = f"1/{SAMPLE_STEP**tenths} of it" if tenths else "the largest sample"
        measured = _measured(lab, wang, pair, MIN_PIECES, pieces) | sizes
        rows.append(Row(name, {"sample": size, **figures}, measured))
    return Experiment(
        "sampling",
        "Sampling: how many positions are needed?",
        "Networks learn equally long from samples of four sizes, each a tenth of the one before, and are tested on "
        "positions that no sample holds.",
        (_SAMPLE, *ACCURACIES, _PAIR_SAMPLE, PAIR),
        rows,
        [_draw_sampling(rows, pieces)],
        [
            f"Scaled: 2–{pieces} pieces instead of 2–7; the largest sample is what a network sees once in its time, "
            "not 202 million positions. The smaller ones are gone through more often: all trainings take "
            "equally long, only the number of different positions differs.",
            comparison_note(rows, ACCURACIES, lab.why_missed()),
        ],
    )


def _ranges(pieces: int) -> list[tuple[int, int]]:
    return [(MIN_PIECES, most) for most in range(max(MIN_PIECES, pieces - 2), pieces + 1)] + [(pieces, pieces)]


def _recall_rows(lab: Lab, wang: Training, pair: Training, pieces: int) -> list[Row]:
    """Rows with the recall of each exact value."""
    batch, answers = lab.answers(wang, MIN_PIECES, pieces)
    _, captured = lab.captures(pair, MIN_PIECES, pieces)
    rows = []
    for place, outcome in enumerate(OUTCOMES):
        chosen = batch.classes == place
        if chosen.any():
            right = {"network": share(answers.network[chosen] == batch.values[chosen])}
            right |= {"pair": share(captured[chosen] == batch.values[chosen])}
            name = f"{named(MIN_PIECES, pieces)}, {outcome} (recall)"
            rows.append(Row(name, {"network": published.RECALL[outcome]}, right))
    return rows


def _draw_each(lab: Lab, wang: Training, pair: Training, pieces: int) -> Figure:
    """Figure of right answers by number of pieces."""
    counts = range(MIN_PIECES, pieces + 1)
    curves = {
        "Wang's network alone": [(n, lab.network_score(wang, n, n)) for n in counts],
        PAIR.title: [(n, lab.capture_score(pair, n, n)) for n in counts],
    }
    caption = f"Right answers by number of pieces, of the networks trained on 2–{pieces}, measured."
    return Figure("pieces-each", draw_curves({}, curves, "pieces"), caption)


def _draw_ranges(rows: Sequence[Row]) -> Figure:
    bars = {
        row.name: {
            "published (both, else network)": row.published.get("both", row.published.get("network")),
            "Wang's network, both": row.measured.get("both"),
            PAIR.title: row.measured.get("pair"),
        }
        for row in rows
    }
    return Figure("pieces", draw_bars(bars), "Wrong answers on the piece counts that a network was trained on.")


def across_pieces(lab: Lab, pieces: int) -> Experiment:
    """Experiment: how do right answers change with the number of pieces?"""
    rows = []
    for counts in _ranges(pieces):
        wang, pair = (Training(kind, *counts) for kind in KINDS)
        rows.append(Row(named(*counts), published.PIECES.get(named(*counts), {}), _measured(lab, wang, pair, *counts)))
    known = {row.name for row in rows}
    rows += [Row(name, figures) for name, figures in published.PIECES.items() if name not in known]
    wang, pair = (Training(kind, MIN_PIECES, pieces) for kind in KINDS)
    return Experiment(
        "pieces",
        "Across piece counts",
        "Networks are trained and tested on the same piece counts.",
        (*ACCURACIES, PAIR),
        [*rows, *_recall_rows(lab, wang, pair, pieces)],
        [_draw_ranges(rows), _draw_each(lab, wang, pair, pieces)],
        [
            f"Scaled: at most {pieces} pieces; rows without measured figures are of more. "
            f"“{pieces} alone” is like the published “7 alone” (four against three): there every capture leads "
            "to fewer pieces than the network has ever seen, which cost the published search dearly.",
            "The published recall is on 2–7 pieces, the best of any method.",
            comparison_note(rows, ACCURACIES, lab.why_missed()),
        ],
    )


def _tuned(kind: Kind, start: int | None, pieces: int) -> Training:
    before = None if start is None else Training(kind, MIN_PIECES, start)
    return Training(kind, pieces, pieces, start=before, freeze_body=True)


def _transfers(pieces: int) -> list[tuple[str, str | None, Training, Training]]:
    """(name here, name of the corresponding published row or None, training of each network)."""
    theirs = list(published.TRANSFER)
    two_fewer, one_fewer = named(MIN_PIECES, pieces - 2), named(MIN_PIECES, pieces - 1)
    settings = [
        (f"{pieces - 2} → {pieces}", theirs[0], lambda kind: Training(kind, pieces - 2, pieces - 2)),
        (f"{two_fewer} → {pieces}", None, lambda kind: Training(kind, MIN_PIECES, pieces - 2)),
        (f"{one_fewer} → {pieces}", None, lambda kind: Training(kind, MIN_PIECES, pieces - 1)),
        (f"{two_fewer} → {pieces}, classifier fine-tuned", theirs[2], lambda kind: _tuned(kind, pieces - 2, pieces)),
        (f"{one_fewer} → {pieces}, classifier fine-tuned", theirs[3], lambda kind: _tuned(kind, pieces - 1, pieces)),
        (f"{pieces} → {pieces}, trained directly", theirs[4], lambda kind: Training(kind, pieces, pieces)),
        (f"{pieces} → {pieces}, random frozen features", theirs[5], lambda kind: _tuned(kind, None, pieces)),
    ]
    return [(name, like, training("wang"), training("pair")) for name, like, training in settings]


def transfer(lab: Lab, pieces: int) -> Experiment:
    """Experiment: how often is a network right on more pieces than it was trained on?"""
    rows, bars = [], {}
    used = set()
    for name, like, wang, pair in _transfers(pieces):
        figures = {} if like is None else published.TRANSFER[like]
        measured = _measured(lab, wang, pair, pieces, pieces)
        label = name if like in (name, None) else f"{name} (published: {like})"
        rows.append(Row(label, figures, measured))
        bars[label.replace(" (", "\n(")] = {
            "published, network": figures.get("network"),
            "Wang's network alone": measured["network"],
            PAIR.title: measured["pair"],
        }
        used.add(like)
    rows += [Row(name, figures) for name, figures in published.TRANSFER.items() if name not in used]
    return Experiment(
        "transfer",
        "Transfer to more pieces",
        f"Networks that learned from fewer pieces are tested on {pieces}: as they are, or with their classifier "
        "trained on while the body stays; beside them those trained directly, and a classifier on random features.",
        (*ACCURACIES, PAIR),
        rows,
        [Figure("transfer", draw_bars(bars), f"Wrong answers on {pieces} pieces.")],
        [
            f"Scaled: at most {pieces} pieces where 7 (four against three) were published. Here all positions of "
            f"{pieces} pieces are tested on, also those where one side is far ahead, which are easy. Fine-tuning has "
            "half of a training's time, not five passes. The row without measured figures needs tables of 7.",
            "The body of the PairNetwork is its vectors of pairs and their biases.",
            comparison_note(rows, ACCURACIES, lab.why_missed()),
        ],
    )


def _trainings(pieces: int) -> dict[str, Training]:
    """Key of a measure → training."""
    return {kind: Training(kind, MIN_PIECES, pieces) for kind in KINDS}


def _curve(lab: Lab, training: Training, split: int) -> list[tuple[float, float]]:
    """Points (threshold, fraction of right answers)."""
    batch, answers = lab.answers(training, training.fewest, training.most, split)
    return [(float(threshold), share(answers.both(threshold) == batch.values)) for threshold in _CURVE]


def _chosen(lab: Lab, training: Training) -> float:
    """The threshold with the fewest errors on the validation split."""
    return max(_curve(lab, training, VALIDATION), key=lambda point: point[1])[0]


def _row(lab: Lab, pieces: int, name: str, thresholds: dict[str, float], figure: float | None = None) -> Row:
    """A row with right answers and searched positions; ``thresholds``: key of a measure → threshold."""
    measured = {}
    for key, training in _trainings(pieces).items():
        batch, answers = lab.answers(training, MIN_PIECES, pieces)
        measured[key] = share(answers.both(thresholds[key]) == batch.values)
        measured[f"{key}_searched"] = share(answers.confidence < thresholds[key])
    return Row(name, {} if figure is None else {"wang": figure}, measured)


def _rows(lab: Lab, pieces: int, chosen: dict[str, float]) -> list[Row]:
    theirs, trainings = published.PIECES["2–7"], _trainings(pieces)
    fixed: list[tuple[str, float, float | None]]
    fixed = [("network alone", NOWHERE, theirs["network"]), ("one-ply search", EVERYWHERE, theirs["search"])]
    for value in published.THRESHOLDS:
        fixed.append((f"both, threshold {value}", value, theirs["both"] if value == published.THRESHOLD else None))
    rows = [_row(lab, pieces, name, dict.fromkeys(trainings, value), figure) for name, value, figure in fixed]
    rows.append(_row(lab, pieces, "both, threshold chosen on the validation split", chosen))
    captures = {key: lab.capture_score(training, MIN_PIECES, pieces) for key, training in trainings.items()}
    return [*rows, Row("capture search", {}, captures), _oracle_row(lab, pieces)]


def _oracle_row(lab: Lab, pieces: int) -> Row:
    """The row of the project's oracle, calibrated on the validation split: it searches where it is unsure."""
    lab.progress.phase("calibrating the oracle")
    training = _trainings(pieces)["pair"]
    networks = [(lab.trained(training).network, (MIN_PIECES, pieces))]
    oracle = calibrate_oracle(networks, lab.tables, _CALIBRATION_BUDGET, lab.tested, lab.seed, lab.progress.part)
    batch, _ = lab.answers(training, MIN_PIECES, pieces)
    found = oracle.search(batch.positions)
    name = (
        f"oracle, threshold {oracle.members[0].threshold:g} chosen for {_CALIBRATION_BUDGET:g} evaluations a position"
    )
    return Row(name, {}, {"pair": share(found.values == batch.values), "pair_searched": share(found.rounds > 0)})


def _confidence_rows(lab: Lab, pieces: int) -> list[Row]:
    rows = []
    for place, outcome in enumerate(OUTCOMES):
        for right in ("right", "wrong"):
            measured = {}
            for key, training in _trainings(pieces).items():
                batch, answers = lab.answers(training, MIN_PIECES, pieces)
                chosen = (batch.classes == place) & ((answers.network == batch.values) == (right == "right"))
                if chosen.any():
                    measured[key] = float(answers.confidence[chosen].mean())
            name = f"mean confidence of {right} answers, {outcome}"
            rows.append(Row(name, {"wang": published.CONFIDENCE[outcome][right]}, measured))
    return rows


def threshold(lab: Lab, pieces: int) -> Experiment:
    """Experiment: at which confidence should the network decide, and not the search?"""
    trainings = _trainings(pieces)
    chosen = {key: _chosen(lab, training) for key, training in trainings.items()}
    curves = {
        "Wang's network": _curve(lab, trainings["wang"], TEST),
        "PairNetwork": _curve(lab, trainings["pair"], TEST),
    }
    rows = _rows(lab, pieces, chosen)
    points = {"both, 2–7 pieces": [(published.THRESHOLD, published.PIECES["2–7"]["both"])]}
    png = draw_curves(points, curves, "threshold: from this confidence on, the network decides")
    return Experiment(
        "threshold",
        "Threshold between network and search",
        "Where the network's confidence reaches a threshold it decides, elsewhere the one-ply search.",
        _THRESHOLD_MEASURES,
        [*rows, *_confidence_rows(lab, pieces)],
        [Figure("threshold", png, f"Right answers on 2–{pieces} pieces by threshold; at the end the search alone.")],
        [
            f"Scaled: 2–{pieces} pieces where 2–7 were published. Thresholds chosen on the validation split: "
            f"{chosen['wang']:.3g} for Wang's network, {chosen['pair']:.3g} for the PairNetwork; above 1, the search "
            "always decides.",
            "The PairNetwork learns only from positions without captures. Alone and in a one-ply search, it is asked "
            "about captures that it has never seen; the capture search asks it only about positions without captures.",
            comparison_note(rows, _THRESHOLD_MEASURES, lab.why_missed()),
        ],
    )


def _compressed(pieces: int) -> Training:
    return Training("wang", MIN_PIECES, min(pieces, _MOST_PIECES))


def _coded(lab: Lab, pieces: int) -> tuple[int, CodecHeader]:
    """Encodes the tables, checks that decoding restores every value; returns size in bytes and header of the file."""
    network = train_codec_network(lab.tables, pieces, lab.extra_minutes, lab.seed, lab.progress)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "coded"
        lab.progress.phase("coding")
        write_coded(path, lab.tables, pieces, network, report=lab.progress.tables)
        lab.progress.phase("decoding")
        decoded, header = read_coded(path, report=lab.progress.tables)
        for material in materials_between(MIN_PIECES, pieces):
            if not np.array_equal(decoded.slice_rows(material), lab.tables.slice_rows(material)):
                raise CodecError(f"slice {material.name} is not decoded as it was encoded: the codec is at fault")
        return path.stat().st_size, header


def compression(lab: Lab, pieces: int) -> Experiment:
    """Experiment: is a network with corrections smaller than a codec made by hand?"""
    training = _compressed(pieces)
    most = training.most
    scores = lab.scores(training, MIN_PIECES, most, published.THRESHOLD)
    positions = sum(map(count_positions, materials_between(MIN_PIECES, most)))
    network_bytes = _FLOAT_BYTES * lab.trained(training).network.parameter_count
    exceptions = round((1 - max(scores.values())) * positions)
    exception_bytes = published.EXCEPTION_BYTES * exceptions
    size, header = _coded(lab, most)
    sizes = published.SIZES
    rows = [
        Row("Wang: network", {"bytes": sizes["network"]}, {"bytes": network_bytes}),
        Row(
            f"Wang: exceptions of {published.EXCEPTION_BYTES} bytes",
            {"bytes": sizes["exceptions"]},
            {"bytes": exception_bytes, "exceptions": exceptions},
        ),
        Row("Wang: together", {"bytes": sizes["together"]}, {"bytes": network_bytes + exception_bytes}),
        Row("Chinook's codec", {"bytes": sizes["chinook"]}),
        Row("neural codec: network", {}, {"bytes": header.weights_bytes}),
        Row("neural codec: corrections", {}, {"bytes": header.corrections_bytes, "exceptions": header.exceptions}),
        Row("neural codec: whole file", {}, {"bytes": size}),
    ]
    bars = {
        "Wang, published": (sizes["network"] / _MEGABYTE, sizes["exceptions"] / _MEGABYTE),
        "Wang's way, measured": (network_bytes / _MEGABYTE, exception_bytes / _MEGABYTE),
        "Chinook, published": (0.0, sizes["chinook"] / _MEGABYTE),
        "neural codec, measured": (header.weights_bytes / _MEGABYTE, (size - header.weights_bytes) / _MEGABYTE),
    }
    notes = [
        f"Scaled: the codec's network was trained for {lab.extra_minutes:.1f} minutes. {lab.why_missed()}",
        f"The exceptions of Wang's way are estimated: the best method's share of wrong answers among {lab.tested:,} "
        f"positions, times {positions:,}. The neural codec's file was written, and decoded again with every value as "
        "before; its exceptions are coded bits that it held for less likely.",
    ]
    if most < _MOST_PIECES:
        notes.append(f"Measured on 2–{most} pieces, published for 2–{_MOST_PIECES}: the sizes cannot be compared.")
    return Experiment(
        "compression",
        f"Compression: every value of 2–{most} pieces",
        "A network with corrections of all its errors, against a codec made by hand.",
        (Measure("bytes", "bytes", "bytes"), Measure("exceptions", "exceptions", "count")),
        rows,
        [Figure("compression", draw_sizes(bars), f"Bytes: 2–5 pieces as published, 2–{most} as measured.")],
        notes,
    )


def trainings_for(experiment: str, pieces: int) -> list[Training]:
    """Trainings that an experiment needs; compression also trains the codec's network, see ``CODEC_WEIGHT``."""
    sizes = range(len(published.SAMPLING))
    return {
        "sampling": [Training(kind, MIN_PIECES, pieces, tenths) for kind in KINDS for tenths in sizes],
        "pieces": [Training(kind, *counts) for kind in KINDS for counts in _ranges(pieces)],
        "transfer": [training for *_, wang, pair in _transfers(pieces) for training in (wang, pair)],
        "threshold": list(_trainings(pieces).values()),
        "compression": [_compressed(pieces)],
    }[experiment]
