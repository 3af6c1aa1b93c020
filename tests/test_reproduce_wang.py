"""The experiments of Wang 2023: all run, are compared with published results, are reported, and refuse bad input."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from rich.console import Console
from solved_tables import solve_tables

from engine.board import Board
from engine.fen import Color, format_fen
from engine.tablebase.dense import DenseTables
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import materials
from learner.endgame.data import TEST, TRAIN, EndgameSampler
from learner.endgame.networks import EndgameNetwork, WangNetwork
from learner.endgame.progress import OracleProgress
from learner.endgame.training import DEFAULT_SETTINGS
from learner.report import Figure, Report, write_report
from papers import figures as figures_module
from papers import published, wang, wang_experiments, wang_lab
from papers.experiment import (
    Experiment,
    Measure,
    Row,
    comparison_note,
    report_experiments,
    run_experiments,
)
from papers.wang import EXPERIMENTS, wang_command
from papers.wang_lab import Answers, FixedSample, Lab, Training, one_ply_search

PIECES = 4
ACCURACIES = ("network", "search", "both", "pair")
WHICH = ("published", "measured")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def tables() -> DenseTables:
    return solve_tables(3)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("wang") / "report"
    return out, wang_command(None, 0.02, PIECES, 1, SHIPPED, out, quiet=True)


def rows_of(figures: dict[str, Any], name: str, which: str) -> dict[str, dict[str, float]]:
    """Row → its values."""
    return {
        row["name"]: {key: value for key, value in row[which].items() if value is not None}
        for row in figures[name]["rows"]
        if any(value is not None for value in row[which].values())
    }


def test_every_experiment_gives_rows(done: tuple[Path, dict[str, Any]]) -> None:
    _, figures = done
    assert json.loads(json.dumps(figures)) == figures
    assert list(figures) == ["sampling", "pieces", "transfer", "threshold", "compression"] == list(EXPERIMENTS)
    for name, found in figures.items():
        assert set(found) == {"title", "rows", "notes"}
        assert any("Scaled" in note for note in found["notes"])
        assert rows_of(figures, name, "published")
        for row in found["rows"]:
            assert set(row) == {"name", "published", "measured"}
            assert row["published"].keys() == row["measured"].keys()
            assert any(value is not None for value in [*row["published"].values(), *row["measured"].values()])
    for name in ("sampling", "pieces", "transfer", "threshold"):
        for row in rows_of(figures, name, "measured").values():
            shares = [value for key, value in row.items() if "sample" not in key]
            assert all(0 <= value <= 1 for value in shares)


def test_published_figures_are_the_ones_in_one_place(done: tuple[Path, dict[str, Any]]) -> None:
    _, figures = done
    sampling = list(rows_of(figures, "sampling", "published").values())
    assert sampling == [{"sample": size, **row} for size, row in published.SAMPLING.items()]
    pieces = rows_of(figures, "pieces", "published")
    assert {name: row for name, row in pieces.items() if "recall" not in name} == published.PIECES
    assert {name.split(", ")[1].split()[0]: row["network"] for name, row in pieces.items() if "recall" in name} == (
        published.RECALL
    )
    transfer = rows_of(figures, "transfer", "published")
    assert {name.split("(published: ")[-1].rstrip(")"): row for name, row in transfer.items()} == published.TRANSFER
    threshold = rows_of(figures, "threshold", "published")
    assert threshold.pop("network alone") == {"wang": 0.9546}
    assert threshold.pop("one-ply search") == {"wang": 0.9330}
    assert threshold.pop("both, threshold 0.8") == {"wang": 0.9595}
    assert {row["wang"] for row in threshold.values()} == {
        value for row in published.CONFIDENCE.values() for value in row.values()
    }
    compression = [row["bytes"] for row in rows_of(figures, "compression", "published").values()]
    assert compression == list(published.SIZES.values())
    assert published.SIZES["network"] + published.SIZES["exceptions"] == published.SIZES["together"]


def test_what_is_measured_fits_together(done: tuple[Path, dict[str, Any]]) -> None:
    _, figures = done
    sampling = list(rows_of(figures, "sampling", "measured").values())
    sizes = [row["pair_sample"] for row in sampling]
    assert sizes[1:] == [max(10, sizes[0] // 10**tenths) for tenths in (1, 2, 3)]
    pieces, transfer = rows_of(figures, "pieces", "measured"), rows_of(figures, "transfer", "measured")
    assert set(pieces) >= {"2–3", "2–4", "4 alone"}
    assert pieces["2–4"] == {key: sampling[0][key] for key in ACCURACIES}
    assert pieces["4 alone"] == transfer["4 → 4, trained directly (published: 7 → 7, trained directly)"]
    threshold = rows_of(figures, "threshold", "measured")
    assert threshold["network alone"]["wang"] == pieces["2–4"]["network"]
    assert threshold["one-ply search"]["wang"] == pieces["2–4"]["search"]
    assert (threshold["network alone"]["wang_searched"], threshold["one-ply search"]["wang_searched"]) == (0, 1)
    assert threshold["capture search"]["pair"] == pieces["2–4"]["pair"]
    compression = rows_of(figures, "compression", "measured")
    assert compression["Wang: network"] == {"bytes": 4 * published.PARAMETERS}
    parts = compression["neural codec: network"]["bytes"] + compression["neural codec: corrections"]["bytes"]
    assert parts < compression["neural codec: whole file"]["bytes"] < parts + 2000


def test_the_report_is_whole(done: tuple[Path, dict[str, Any]]) -> None:
    out, figures = done
    data = json.loads((out / "report.json").read_text())
    assert data["experiments"] == figures
    assert data["facts"]["seed"] == 1
    page = (out / "report.html").read_text()
    for png in ("sampling", "pieces", "pieces-each", "transfer", "threshold", "compression"):
        assert (out / f"{png}.png").read_bytes().startswith(PNG)
    assert page.count("<img") == 6
    for found in figures.values():
        assert found["title"] in page
    assert "99.38 %" in page
    assert "1,590,303" in page


def test_tables_are_readable_at_80_columns(done: tuple[Path, dict[str, Any]]) -> None:
    _, found = done
    measures = {
        "sampling": (wang_experiments._SAMPLE, *wang_experiments.ACCURACIES, wang_experiments._PAIR_SAMPLE),
        "pieces": (*wang_experiments.ACCURACIES, wang_experiments.PAIR),
        "transfer": (*wang_experiments.ACCURACIES, wang_experiments.PAIR),
        "threshold": wang_experiments._THRESHOLD_MEASURES,
        "compression": (Measure("bytes", "bytes", "bytes"), Measure("exceptions", "exceptions", "count")),
    }
    for name, figures in found.items():
        known = {measure.key for measure in measures[name]} | {"pair", "pair_sample"}
        rows = [
            Row(row["name"], *({k: v for k, v in row[which].items() if v is not None} for which in WHICH))
            for row in figures["rows"]
        ]
        more = [wang_experiments.PAIR] if name == "sampling" else []
        experiment = Experiment(name, figures["title"], "Why?", (*measures[name], *more), rows, [], [])
        assert {key for row in rows for key in (*row.published, *row.measured)} <= known
        console = Console(width=80, file=io.StringIO(), color_system=None)
        experiment.print(console)
        printed = console.file.getvalue()  # type: ignore[attr-defined]
        assert "…" not in printed
        words = " ".join(re.split(r"[\s│]+", printed))
        for measure in (*measures[name], *more):
            for row in rows:
                for values in (row.published, row.measured):
                    if measure.key in values:
                        shown = measure.shown(values[measure.key])
                        assert (f"{shown:,}" if isinstance(shown, int) else str(shown)) in words


def test_a_codec_that_errs_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(path: Path, report: Any) -> tuple[DenseTables, None]:
        decoded = solve_tables(PIECES)
        decoded.slice_rows(materials(PIECES)[-1])[-1, 0] ^= 1
        return decoded, None

    monkeypatch.setattr(wang_experiments, "read_coded", wrong)
    with pytest.raises(ValueError, match="not decoded"):
        wang_command("compression", 0.01, PIECES, 1, SHIPPED, tmp_path, quiet=True)


def test_one_experiment_alone_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = wang_command("threshold", 0.01, PIECES, 2, SHIPPED, tmp_path, quiet=False)
    assert list(figures) == ["threshold"]
    printed = capsys.readouterr().out
    assert "95.95 %" in printed
    assert str(tmp_path / "report.html") in printed.replace("\n", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"experiment": "alchemy"}, "sampling, pieces, transfer, threshold, compression"),
        ({"minutes": 0.0}, "--minutes 0"),
        ({"minutes": -1.0}, "--minutes -1"),
        ({"minutes": float("nan")}, "--minutes nan"),
        ({"pieces": 3}, "4 to 6"),
        ({"pieces": 7}, "4 to 6"),
        ({"out": Path(__file__)}, "is a file"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    arguments = {"experiment": None, "minutes": 1.0, "pieces": PIECES, "out": tmp_path / "report"} | changes
    with pytest.raises(ValueError, match=message) as caught:
        wang_command(seed=1, folder=SHIPPED, quiet=True, **arguments)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_that_ends_early_leaves_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(lab: Lab, pieces: int) -> Experiment:
        raise KeyboardInterrupt

    monkeypatch.setitem(wang.EXPERIMENTS, "threshold", stopped)
    with pytest.raises(KeyboardInterrupt):
        wang_command("threshold", 0.01, PIECES, 1, SHIPPED, tmp_path / "report", quiet=True)
    assert list((tmp_path / "report").iterdir()) == []


def test_an_interrupted_run_keeps_the_experiments_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def done(lab: Lab, pieces: int) -> Experiment:
        trained.append(list(lab._trained))
        return Experiment("sampling", "S", "Why?", [Measure("right", "right")], [Row("a", {}, {"right": 0.5})], [], [])

    def stopped(lab: Lab, pieces: int) -> Experiment:
        raise KeyboardInterrupt

    wanted = {"sampling": [Training("pair", 2, 2)], "threshold": [Training("pair", 3, 3)]}
    monkeypatch.setattr(wang, "EXPERIMENTS", {"sampling": done, "threshold": stopped})
    monkeypatch.setattr(wang.wang_experiments, "trainings_for", lambda name, pieces: wanted[name])
    out = tmp_path / "report"
    with pytest.raises(KeyboardInterrupt, match=r"report in .* holds what was done: sampling$"):
        wang_command(None, 0.01, PIECES, 1, SHIPPED, out, quiet=True)
    assert trained == [wanted["sampling"]]  # the other's training is not waited for
    data = json.loads((out / "report.json").read_text())
    assert list(data["experiments"]) == ["sampling"]
    assert data["facts"]["not done, or not whole"] == "threshold"


def test_an_experiment_may_be_done_by_and_by(tmp_path: Path) -> None:
    def step(value: float) -> Callable[[], Experiment]:
        row = Row("a", {}, {"right": value})
        return lambda: Experiment("x", "X", "Why?", [Measure("right", "right")], [row], [], [])

    def so_far() -> dict[str, int]:
        states.append(json.loads(file.read_text()) if file.exists() else None)
        return {"seed": 1}

    states: list[Any] = []
    file = tmp_path / "report.json"
    page, found = run_experiments(tmp_path, "T", "I.", so_far, [("x", step(0.25)), ("x", step(0.5))])
    assert page.exists()
    assert [experiment.rows[0].measured["right"] for experiment in found] == [0.5]
    assert states[0] is None
    assert states[1]["experiments"]["x"]["rows"][0]["measured"]["right"] == 0.25
    assert states[1]["facts"]["not done, or not whole"] == "x"
    assert "not done, or not whole" not in json.loads(file.read_text())["facts"]


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_interrupt_while_the_report_is_written_loses_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def interrupted(*arguments: Any) -> Path:
        calls.append(arguments)
        if place == "after" or len(calls) > 1:
            page = report_experiments(*arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return page

    def result() -> Experiment:
        row = Row("a", {}, {"right": 0.5})
        return Experiment("x", "X", "Why?", [Measure("right", "right")], [row], [], [])

    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr("papers.experiment.report_experiments", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"holds what was done: x$"):
        run_experiments(tmp_path, "T", "I.", dict, [("x", result), ("y", result)])
    report = json.loads((tmp_path / "report.json").read_text())
    assert list(report["experiments"]) == ["x"]
    assert report["facts"] == {"not done, or not whole": "y"}


class Judge(EndgameNetwork):
    """A network whose answers come from a function of the positions."""

    def __init__(self, values: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__()
        self.values = values

    def forward(self, positions: np.ndarray) -> torch.Tensor:
        return torch.nn.functional.one_hot(torch.from_numpy(1 - self.values(positions).astype(np.int64)), 3).float()


def scrambled(positions: np.ndarray) -> np.ndarray:
    """Pseudo-random but reproducible values."""
    words = positions[:, :3].astype(np.uint64) @ np.array([2654435761, 40503, 97], np.uint64)
    return (words >> np.uint64(7)).astype(np.int64) % 3 - 1


def words_of(fen: str) -> tuple[int, int, int, int]:
    return (*Board(fen).words(), 0)


def one_ply_slowly(position: np.ndarray) -> int:
    """The rule of Wang 2023, move by move; a side without a move has lost, whatever the judge says."""
    board = Board(format_fen(Color.BLACK, *position[:3].tolist()))
    best = -1
    for move in board.distinct_moves:
        after = board.copy()
        after.push(move)
        words = np.array([[*after.words(), 0]], np.uint32)
        best = max(best, 1 if not after.legal_moves else -int(scrambled(words)[0]))
    return best


def test_one_ply_search_follows_the_rule(tables: DenseTables) -> None:
    positions = EndgameSampler(tables, [m for n in (2, 3) for m in materials(n)], 5).draw(400).positions
    found = one_ply_search(Judge(scrambled), positions)
    assert found.tolist() == [one_ply_slowly(position) for position in positions]
    blocking = np.array([words_of("B:W12:BK7,K8,K4")], np.uint32)
    assert one_ply_search(Judge(lambda asked: np.zeros(len(asked))), blocking).tolist() == [1]
    assert set(found.tolist()) == {-1, 0, 1}
    assert one_ply_search(Judge(scrambled), positions[:0]).tolist() == []


def test_one_ply_search_is_exact_where_the_judge_is(tables: DenseTables) -> None:
    def exact(positions: np.ndarray) -> np.ndarray:
        values = np.ones(len(positions), np.int8)  # wrong for who has no piece: it must not be asked
        there = positions[:, 0] != 0
        values[there] = tables.lookup(positions[there])
        return values

    batch = EndgameSampler(tables, materials(3), 6).draw(20_000)
    assert (one_ply_search(Judge(exact), batch.positions) == batch.values).all()


def test_the_threshold_decides_who_is_heard() -> None:
    answers = Answers(np.array([1, 1, 1]), np.array([0, 0, 0]), np.array([0.5, 0.8, 0.95], np.float32))
    assert answers.both(0.9).tolist() == [0, 0, 1]
    assert answers.both(0.5).tolist() == [1, 1, 1]


def test_a_fixed_sample_is_gone_through_evenly(tables: DenseTables) -> None:
    sample = FixedSample(tables, materials(3), 3, True, 70)
    drawn = [sample.draw(30) for _ in range(14)]
    seen = [tuple(row) for batch in drawn for row in batch.positions.tolist()]
    pool = [tuple(row) for row in sample.sample.positions.tolist()]
    assert {position: seen.count(position) for position in pool} == {p: 6 * pool.count(p) for p in pool}
    assert set(seen) == set(pool)
    assert seen[:70] != seen[70:140]
    for batch in drawn:
        assert (tables.lookup(batch.positions) == batch.values).all()


def lab_of(tables: DenseTables, *wanted: Training, minutes: float = 0.01) -> Lab:
    return Lab(tables, wanted, minutes, 0.0, 1, OracleProgress(quiet=True))


def test_trainings_with_the_published_settings(tables: DenseTables, tmp_path: Path) -> None:
    training = Training("wang", 2, 3)
    quick, slow = (
        Lab(tables, [training], 0.01, 0.0, 1, OracleProgress(quiet=True), as_published)
        for as_published in (False, True)
    )
    assert slow.settings["wang"] == DEFAULT_SETTINGS["wang"].model_copy(update={"report_s": 2.0})
    assert quick.settings["wang"] != slow.settings["wang"]
    assert quick.settings["pair"] == slow.settings["pair"]
    assert slow.trained(training).seen % 1024 == 0
    wang_command("threshold", 0.01, PIECES, 1, SHIPPED, tmp_path, True, as_published=True)
    facts = json.loads((tmp_path / "report.json").read_text())["facts"]
    assert facts["training of Wang's network"] == "radam, rate 0.0002 (constant), batch 1024"
    assert facts["training of Wang's network"].replace(" (constant)", "") == published.SETTINGS


def test_a_lab_trains_what_is_needed_once_and_within_its_time(tables: DenseTables) -> None:
    tuned = Training("wang", 3, 3, start=Training("wang", 2, 2), freeze_body=True)
    lab = lab_of(tables, tuned, Training("wang", 2, 3, tenths=1), Training("wang", 2, 2))
    start, after = lab.trained(Training("wang", 2, 2)), lab.trained(tuned)
    assert start is lab.trained(Training("wang", 2, 2))
    before = start.network.state_dict()
    changed = {
        name.split(".")[0] for name, tensor in after.network.state_dict().items() if (tensor != before[name]).any()
    }
    assert changed == {"classifier"}
    whole, tenth = lab.trained(Training("wang", 2, 3)), lab.trained(Training("wang", 2, 3, tenths=1))
    assert tenth.distinct == whole.seen // 10
    assert isinstance(whole.network, WangNetwork)
    assert whole.network.parameter_count == published.PARAMETERS


def test_what_a_lab_trains_has_learned(tables: DenseTables) -> None:
    training = Training("pair", 2, 3)
    lab = lab_of(tables, training, minutes=0.12)
    assert lab.capture_score(training, 2, 3) > 0.8
    batch, answers = lab.answers(training, 2, 3)
    assert lab.network_score(training, 2, 3) == lab.scores(training, 2, 3, 0.7)["network"]
    assert lab.scores(training, 2, 3, 0.7)["both"] == (answers.both(0.7) == batch.values).mean()


@pytest.mark.parametrize("kind", ["wang", "pair"])
def test_random_features_stay_random(tables: DenseTables, kind: Any) -> None:
    lab = lab_of(tables, Training(kind, 3, 3, freeze_body=True))
    network = lab.trained(Training(kind, 3, 3, freeze_body=True)).network
    torch.manual_seed(lab.seed)
    fresh = type(network)(network.config) if kind == "pair" else type(network)()
    body = ("pairs", "biases", "stem", "blocks")
    states = network.state_dict(), fresh.state_dict()
    same = {name for name in states[0] if torch.equal(states[0][name], states[1][name])}
    assert {name for name in states[0] if name.startswith(body)} <= same < set(states[0])


def test_tests_are_drawn_from_what_was_not_trained_on(tables: DenseTables) -> None:
    lab = lab_of(tables, Training("wang", 2, 3))
    tested = {tuple(row) for row in lab.draw(2, 3, TEST).positions.tolist()}
    trained = {tuple(row) for row in EndgameSampler(tables, materials(3), 1, TRAIN).draw(50_000).positions.tolist()}
    assert len(tested) > 100
    assert not tested & trained


def test_no_training_pays_for_compiling(tables: DenseTables, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[tuple[str, float | None]] = []
    run = wang_lab.EndgameTrainer.run

    def recorded(trainer: Any, *arguments: Any, **options: Any) -> Any:
        budgets.append((trainer.network.kind, trainer.minutes))
        return run(trainer, *arguments, **options)

    monkeypatch.setattr(wang_lab.EndgameTrainer, "run", recorded)
    lab = lab_of(tables, Training("wang", 2, 2), Training("pair", 2, 2), Training("pair", 2, 3))
    lab.run([Training("wang", 2, 2), Training("pair", 2, 2), Training("pair", 2, 3)])
    assert [(kind, minutes is None) for kind, minutes in budgets] == [
        ("wang", True),
        ("wang", False),
        ("pair", True),
        ("pair", False),
        ("pair", False),
    ]


def test_figures_that_were_missed_are_named_with_the_reason() -> None:
    measures = [Measure("right", "right answers"), Measure("sure", "sure answers")]
    rows = [Row("a", {"right": 0.5}, {"right": 0.5, "sure": 0.1}), Row("b", {"right": 0.9}, {"right": 0.625})]
    assert comparison_note(rows, measures, "Too short.") == (
        "Of the 2 published figures beside measured ones 1 are reached; missed: b, right answers (62.50 %, published "
        "90.00 %). Too short."
    )
    assert comparison_note(rows[:1], measures, "?") == "Of the 1 published figures beside measured ones 1 are reached."
    assert comparison_note(rows, measures[1:], "?") == "No published figure is of what was measured here."


def test_a_report_tells_what_was_missed_and_what_is_otherwise(done: tuple[Path, dict[str, Any]]) -> None:
    out, figures = done
    for name in ("sampling", "transfer", "threshold"):
        missed = 0
        for row in figures[name]["rows"]:
            for key in ("network", "search", "both", "wang"):
                here, there = row["measured"].get(key), row["published"].get(key)
                missed += "confidence" not in row["name"] and None not in (here, there) and here < there
        notes = [note for note in figures[name]["notes"] if note.startswith("Of the")]
        assert len(notes) == 1
        assert notes[0].count(", published ") == missed > 0
        assert "9 hours on a graphics card" in notes[0]
    facts = json.loads((out / "report.json").read_text())["facts"]
    assert facts["training of Wang's network, published"] == "radam, rate 0.0002, batch 1024"


@pytest.mark.parametrize("published_first", [True, False])
def test_a_legend_is_inside_its_figure(monkeypatch: pytest.MonkeyPatch, published_first: bool) -> None:
    drawn: list[Any] = []
    png = figures_module.png_of
    monkeypatch.setattr(figures_module, "png_of", lambda figure: drawn.append(figure) or png(figure))
    shares = {"Abdalla's network, right": 0.5, "Abdalla's network, one-ply search": 0.6}
    shares |= {"ManPairNetwork, right": 0.7, "ManPairNetwork, one-ply search": 0.8}
    figures_module.draw_bars({"3 men": shares}, published=published_first)
    (legend,) = drawn[0].legends
    box, whole = legend.get_window_extent(), drawn[0].bbox
    assert box.x0 >= whole.x0
    assert box.x1 <= whole.x1
    pale = [patch for patch in legend.get_patches() if to_hex(patch.get_facecolor()) == figures_module.PALE]
    assert len(pale) == published_first


def test_another_report_is_not_overwritten(tmp_path: Path) -> None:
    write_report(tmp_path, Report("Larson_2016, “x”", [], {}))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"holds the report “Larson_2016, “x””; choose another folder"):
        wang_command("threshold", 0.01, PIECES, 1, SHIPPED, tmp_path, quiet=True)
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}
    write_report(tmp_path, Report(wang._TITLE, [], {}))
    assert wang_command("threshold", 0.01, PIECES, 1, SHIPPED, tmp_path, quiet=True)


def test_an_experiment_checks_its_rows() -> None:
    measure = Measure("right", "right answers")
    for row, message in ((Row("a", {"wrong": 0.5}), "wrong"), (Row("b", {}, {"right": 95.0}), "95")):
        with pytest.raises(ValueError, match=message):
            Experiment("x", "X", "Why?", [measure], [row], [], [])


def test_tables_show_published_beside_measured(tmp_path: Path) -> None:
    measures = [Measure("right", "right answers"), Measure("size", "size", "bytes"), Measure("none", "never known")]
    rows = [Row("a", {"right": 0.5}, {"right": 0.625, "size": 1_234_567}), Row("b", {}, {"size": 8})]
    experiment = Experiment("x", "X", "Why?", measures, rows, [Figure("f", PNG, "A figure.")], ["A note."])
    table = experiment.table()
    assert table.header == ["", "right answers, published", "right answers, measured", "size"]
    assert table.rows == [["a", "50.00 %", "62.50 %", 1_234_567], ["b", None, None, 8]]
    page = report_experiments(tmp_path, "Title", "Introduction.", {"seed": 3}, [experiment])
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["experiments"]["x"]["rows"][1] == {
        "name": "b",
        "published": {"right": None, "size": None, "none": None},
        "measured": {"right": None, "size": 8, "none": None},
    }
    assert "A note." in page.read_text()
