"""The experiments of Abdalla 2024, "Beyond Tablebases": accuracy, a search on top, probe time, storage."""

import copy
import time
from collections.abc import Callable, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

import chess
import numpy as np
import safetensors.torch
import torch

from learner.report import Figure

from .chess_lab import NAMES, NETWORKS, TESTED, ChessLab, Kind, Test
from .chess_networks import ChessNetwork, pair_features
from .chess_positions import CLASSES, MOST_MEN, TEST, Labelled, draw_boards, men_of
from .experiment import Experiment, Measure, Row, comparison_note
from .figures import draw_bars

PUBLISHED_EPOCHS = {"10 epochs": 0.921, "50 epochs": 0.910}
"""Published fraction of right answers on 1,000 fresh positions of at most 6 men."""
PUBLISHED_TABLE_BYTES = 70e9
"""Approximate size of the Syzygy win/draw/loss tables of at most 6 men."""
_MATERIAL = Measure("material", "most frequent class of the material")
_ACCURACIES: dict[Kind, Measure] = {kind: Measure(kind, f"{name}, right") for kind, name in NAMES.items()}
_SEARCHES: dict[Kind, Measure] = {
    kind: Measure(f"{kind}_search", f"{name}, one-ply search") for kind, name in NAMES.items()
}
_BATCH, _SINGLE, _REPETITIONS = 1000, 200, 5
_MICROSECONDS = 1e6
LOSS, DRAW, WIN = 0, 2, 4
"""Indices in ``CLASSES``. The class of a position is ``WIN`` minus its class for the opponent."""
Judge = Callable[[np.ndarray], np.ndarray]


class Children(NamedTuple):
    """The positions one ply after N positions.

    Attributes:
        men: int16 [M, 4], the M children that the rules do not decide, each seen by its own side to move.
        parents: int64 [M], indices of their parents.
        settled: int64 [N], the best class for the parent among the children that the rules decide; ``LOSS`` if none.
    """

    men: np.ndarray
    parents: np.ndarray
    settled: np.ndarray


def _settled(board: chess.Board) -> int | None:
    """The class of a position for its side to move if the rules decide it, else None."""
    if board.is_checkmate():
        return LOSS
    if board.is_stalemate() or board.is_insufficient_material():
        return DRAW
    return None


def children_of(boards: Sequence[chess.Board]) -> Children:
    """The children of positions of at most 4 men. The boards are unchanged afterwards.

    Mate, stalemate and insufficient material are decided by the rules, also in the positions themselves. ``men`` cannot
    express captures en passant: a child with one is judged as if there were none.
    """
    rows: list[list[int]] = []
    parents: list[int] = []
    settled = np.full(len(boards), LOSS, np.int64)
    for place, board in enumerate(boards):
        known = _settled(board)
        if known is not None:
            settled[place] = known
            continue
        for move in list(board.legal_moves):
            board.push(move)
            answer = _settled(board)
            if answer is None:
                rows.append(men_of(board))
                parents.append(place)
            else:
                settled[place] = max(settled[place], WIN - answer)
            board.pop()
    return Children(np.array(rows, np.int16).reshape(-1, MOST_MEN), np.array(parents, np.int64), settled)


def one_ply_search(judge: Judge, children: Children) -> np.ndarray:
    """int64 [N]: the best class for each parent among its children, decided by the rules or else by ``judge``."""
    found = children.settled.copy()
    np.maximum.at(found, children.parents, len(CLASSES) - 1 - judge(children.men))
    return found


def share(answers: np.ndarray, test: Test) -> float:
    return float((answers == test.labelled.classes).mean())


def material_answers(pool: Labelled, men: np.ndarray) -> np.ndarray:
    """int64 [N]: the most frequent class in the pool of positions with the same men, on whatever squares."""
    counts = np.zeros((1 << 8, len(CLASSES)), np.int64)
    np.add.at(counts, (pair_features(pool.men)[1], pool.classes), 1)
    return counts.argmax(1)[pair_features(men)[1]]


def scale_note(lab: ChessLab) -> str:
    """A note for the report: what was scaled down, and how."""
    seen = ", ".join(f"{NAMES[kind]} {count:,}" for kind, count in lab.seen.items())
    men = lab.tables.men
    tenth = ", a tenth of them of three men" if len(men) == 2 else ""
    return (
        f"Scaled: positions of {' and '.join(map(str, men))} men where at most 6 were published. Trained on "
        f"{len(lab.pool.men):,} labelled positions ({lab.labelling_rate:,.0f} drawn and labelled per second; 1,000,000 "
        f"published){tenth}; positions seen in training, repetitions counted: {seen}."
    )


def _less_seen(lab: ChessLab) -> str:
    return (
        f"{NAMES['cnn']} has seen {lab.seen['cnn']:,} positions, repetitions counted, where the published one saw ten "
        "million: more --minutes bring it closer."
    )


def left_out_note(lab: ChessLab) -> list[str]:
    """A note for the report on positions that the tables in the folder could not judge; [] if all are there."""
    tables = lab.tables
    if not tables.missing:
        return []
    return [
        f"Tables that the folder lacks: {', '.join(tables.missing)}. Left out of training and tests: all positions of "
        f"{', '.join(tables.left_out)}, which are these or lead to them by a capture."
    ]


def accuracy(lab: ChessLab, kinds: Sequence[Kind]) -> Experiment:
    """Experiment: how often are the networks ``kinds`` right?"""
    networks = {kind: lab.network(kind) for kind in kinds}
    rows = []
    for number, (name, test) in enumerate(lab.tests().items()):
        lab.progress.phase(f"testing on {name}")
        answers = {kind: network.judge(test.labelled.men) for kind, network in networks.items()}
        measured: dict[str, float] = {kind: share(found, test) for kind, found in answers.items()}
        measured["material"] = share(material_answers(lab.pool, test.labelled.men), test)
        known = {"cnn": PUBLISHED_EPOCHS["10 epochs"]} if number == 0 else {}
        rows.append(Row(name if number else f"{name} (published: ≤ 6, 10 epochs)", known, measured))
        if number == 0:
            by_class = _by_class(name, test, answers)
    rows.append(Row("≤ 6 men, 50 epochs", {"cnn": PUBLISHED_EPOCHS["50 epochs"]}))
    bars = {
        row.name: {"published": row.published.get("cnn")}
        | {NAMES[kind]: row.measured.get(kind) for kind in kinds}
        | {_MATERIAL.title: row.measured.get("material")}
        for row in rows
    }
    absent = [name for place, name in enumerate(CLASSES) if not (lab.pool.classes == place).any()]
    notes = [
        scale_note(lab),
        f"Each row has its own {TESTED:,} fresh positions (published: 1,000), drawn uniformly from all legal ones that "
        "a hash keeps apart from training, mirror images included; nearly all positions of 3 to 4 men have 4.",
        "Both networks see the board from the side to move; nothing is published on how the twelve planes tell whose "
        "turn it is. Kernels of 3×3 and ReLU are assumed.",
    ]
    if "cnn" in kinds:
        notes.append(comparison_note(rows, [_ACCURACIES["cnn"]], _less_seen(lab)))
    if absent:
        notes.append(f"No labelled position of this size was a {' or a '.join(absent)}: these classes go unlearned.")
    return Experiment(
        "accuracy",
        "Accuracy: a network in place of the tables",
        "Networks learn the values of the Syzygy tables from random positions, and are asked about fresh ones. The "
        "baseline is the class that positions with the same men have most often, on whatever squares.",
        [*_ACCURACIES.values(), _MATERIAL],
        [*rows, *by_class],
        [Figure("accuracy", draw_bars(bars), "Wrong answers on fresh positions.")],
        [*notes, *left_out_note(lab)],
    )


def _by_class(test_name: str, test: Test, answers: dict[Kind, np.ndarray]) -> list[Row]:
    rows = []
    for place, name in enumerate(CLASSES):
        chosen = test.labelled.classes == place
        if chosen.any():
            right: dict[str, float] = {kind: float((found[chosen] == place).mean()) for kind, found in answers.items()}
            rows.append(Row(f"{test_name}, {name} (recall)", {}, right))
    return rows


def search(lab: ChessLab) -> Experiment:
    """Experiment: how much does a search of one ply gain?"""
    rows = []
    for name, test in lab.tests().items():
        lab.progress.phase(f"making the moves of {name}")
        children = children_of(test.boards)
        measured: dict[str, float] = {"children": len(children.parents) / len(test.boards)}
        for kind in NAMES:
            lab.progress.phase(f"searching with {NAMES[kind]} on {name}")
            network = lab.network(kind)
            measured[kind] = share(network.judge(test.labelled.men), test)
            measured[f"{kind}_search"] = share(one_ply_search(network.judge, children), test)
        rows.append(Row(name, {}, measured))
    bars = {
        row.name: {measure.title: row.measured[measure.key] for kind in NAMES for measure in _measures(kind)}
        for row in rows
    }
    return Experiment(
        "search",
        "One-ply search on top",
        "Every legal move is made, and the network judges the positions after all moves in one batch; the best one "
        "decides.",
        [*(measure for kind in NAMES for measure in _measures(kind)), Measure("children", "judged children", "count")],
        rows,
        [
            Figure(
                "search",
                draw_bars(bars, published=False),
                "Wrong answers of the networks alone and with a one-ply search.",
            )
        ],
        [
            "Mate, stalemate and insufficient material are judged by the rules, not by the network. Nothing was "
            "published with a search. The networks cannot see captures en passant.",
            scale_note(lab),
            *left_out_note(lab),
        ],
    )


def _measures(kind: Kind) -> tuple[Measure, Measure]:
    return _ACCURACIES[kind], _SEARCHES[kind]


def _fastest(work: Callable[[], object], positions: int) -> float:
    """Microseconds per position in the fastest of ``_REPETITIONS``, which other processes disturbed least."""
    seconds = []
    for _ in range(_REPETITIONS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return _MICROSECONDS * min(seconds) / positions


def probe_time(lab: ChessLab) -> Experiment:
    """Experiment: how long does an answer take, starting from a board of python-chess?"""
    boards = list(islice(draw_boards(lab.tables, TEST, lab.tables.men, Random(lab.seed)), _BATCH))
    single = boards[:_SINGLE]
    lab.progress.phase("measuring probe times")

    def one_by_one(answer: Callable[[Sequence], object]) -> float:
        return _fastest(lambda: [answer([board]) for board in single], len(single))

    rows = [Row("Syzygy tables, python-chess", {}, {"one": one_by_one(lambda few: lab.tables.probe(few[0]))})]
    for kind, name in NAMES.items():
        network = NETWORKS[kind]()

        def ask(some: Sequence, network: ChessNetwork = network) -> object:
            return network.judge(np.array([men_of(board) for board in some], np.int16).reshape(-1, MOST_MEN))

        def look_ahead(some: Sequence, network: ChessNetwork = network) -> object:
            return one_ply_search(network.judge, children_of(some))

        for title, answer in ((name, ask), (f"{name}, one-ply search", look_ahead)):
            many = _fastest(lambda answer=answer: answer(boards), len(boards))  # type: ignore[misc]
            rows.append(Row(title, {}, {"one": one_by_one(answer), "many": many}))
    return Experiment(
        "time",
        "Probe time",
        "The time of an answer, starting from a board of python-chess: with tables that are in memory already, and "
        "with networks including the conversion of boards to their input.",
        [
            Measure("one", "one at a time", "microseconds"),
            Measure("many", f"in batches of {_BATCH:,}", "microseconds"),
        ],
        rows,
        [],
        [
            "Published: about the time of a probe of the tables, without figures. The probe here is python-chess's, "
            f"in Python, as published. {_slower(rows)}",
            f"Fastest of {_REPETITIONS} repetitions, {torch.get_num_threads()} torch thread(s). Untrained weights take "
            "as long as trained ones.",
        ],
    )


def _slower(rows: Sequence[Row]) -> str:
    tables, network = rows[0].measured["one"], rows[1].measured
    return (
        f"Asked one at a time, {NAMES['cnn']} takes {network['one'] / tables:.1f} times as long as that, in batches "
        f"{network['many'] / tables:.1f} times."
    )


def storage(lab: ChessLab) -> Experiment:
    """Experiment: how many bytes do the networks and the tables need?"""
    name, test = next(iter(lab.tests().items()))
    measures = [Measure("bytes", "bytes", "bytes"), Measure("right", f"right on {name}")]
    rows = [
        Row("Syzygy tables of ≤ 6 men", {"bytes": PUBLISHED_TABLE_BYTES}),
        Row(f"Syzygy tables of {name}", {}, {"bytes": lab.tables.bytes, "right": 1.0}),
    ]
    for kind in NAMES:
        network = lab.network(kind)
        for dtype, text in ((torch.float32, "float32"), (torch.float16, "float16")):
            stored = {key: value.to(dtype).contiguous() for key, value in network.state_dict().items()}
            again = copy.deepcopy(network)
            again.load_state_dict(stored)
            right = share(again.judge(test.labelled.men), test)
            size = len(safetensors.torch.save(stored))
            rows.append(Row(f"{NAMES[kind]}, {text}", {}, {"bytes": size, "right": right}))
    parameters = " and ".join(f"{lab.network(kind).parameter_count:,} ({NAMES[kind]})" for kind in NAMES)
    return Experiment(
        "storage",
        "Storage",
        "A network has the same size for any number of men, while tables grow about a hundredfold with each man; for "
        "three and four men tables are small. They are also always right.",
        measures,
        rows,
        [],
        [
            f"Parameters: {parameters}. Bytes are those of a safetensors file; published: far below the tables of 6 "
            "men, without a figure for the network.",
            scale_note(lab),
            *left_out_note(lab),
        ],
    )
