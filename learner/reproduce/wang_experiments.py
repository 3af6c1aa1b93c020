"""Three experiments of Wang 2023, "Deep Dive on Checkers Endgame Data": sampling, across piece counts, transfer."""

from collections.abc import Sequence

from engine.tablebase.material import MIN_PIECES

from ..endgame.validation import OUTCOMES
from ..report import Figure
from . import published
from .experiment import Experiment, Measure, Row, comparison_note
from .figures import draw_bars, draw_curves
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


def named(fewest: int, most: int) -> str:
    """A range of piece counts as the tables name it."""
    return f"{most} alone" if fewest == most else f"{fewest}–{most}"


def _measured(lab: Lab, wang: Training, pair: Training, fewest: int, most: int) -> dict[str, float]:
    """The four accuracies on positions of ``fewest`` to ``most`` pieces."""
    scores = lab.scores(wang, fewest, most, published.THRESHOLD)
    return scores | {"pair": lab.capture_score(pair, fewest, most)}


def sampling_trainings(pieces: int) -> list[Training]:
    """What ``sampling`` needs."""
    sizes = range(len(published.SAMPLING))
    return [Training(kind, MIN_PIECES, pieces, tenths) for kind in KINDS for tenths in sizes]


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
    """How much does it matter how many positions are learned from?"""
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


def pieces_trainings(pieces: int) -> list[Training]:
    """What ``across_pieces`` needs."""
    return [Training(kind, *counts) for kind in KINDS for counts in _ranges(pieces)]


def _recall_rows(lab: Lab, wang: Training, pair: Training, pieces: int) -> list[Row]:
    """Right answers by exact value."""
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
    """Right answers by number of pieces."""
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
    """How does it get harder with more pieces?"""
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
    """Name here, name of what was published and is like it, and the two trainings."""
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


def transfer_trainings(pieces: int) -> list[Training]:
    """What ``transfer`` needs."""
    return [training for *_, wang, pair in _transfers(pieces) for training in (wang, pair)]


def transfer(lab: Lab, pieces: int) -> Experiment:
    """What does a network know of more pieces than it has seen?"""
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
