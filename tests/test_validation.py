"""Validation of the endgame oracle: statistics compared with slow, plain ones, figures, boards and the report."""

import io
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle
from PIL import Image
from scipy.stats import binomtest

from engine.bitboard import mask_of
from engine.board import Board
from engine.fen import Color, format_fen, parse_fen
from engine.tablebase.material import Material, materials
from learner.endgame import figures
from learner.endgame.figures import draw_board, square_centre
from learner.endgame.oracle_report import write_oracle_report
from learner.endgame.validation import (
    FLAGS,
    HISTOGRAM_EDGES,
    METHODS,
    OUTCOMES,
    Judgements,
    Score,
    Validation,
    validate,
    wilson_interval,
)

KEYS = {"network": "accuracy", "search": "accuracy_search", "oracle": "accuracy_oracle"}
NAMES = {1: "win", 0: "draw", -1: "loss"}
SHORT = ("B:WK1:B5", "B:W32:BK29", "B:WK10,18:B7", "B:W21,K22:B9,K3")


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Turns warnings into errors: division by zero, empty means and logarithms of zero would otherwise only warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def words(material: Material, squares: list[int]) -> tuple[int, int, int]:
    own = material.own_men + material.own_kings
    kings = squares[material.own_men : own] + squares[own + material.opp_men :]
    return mask_of(squares[:own]), mask_of(squares[own:]), mask_of(kings)


def sample(n: int, seed: int = 0, pieces: int = 5, sharpness: float = 3.0) -> Judgements:
    """Plausible judgements: a network that is right except for noise, and a search that is sometimes wrong."""
    rng = np.random.default_rng(seed)
    choice = [material for count in range(2, pieces + 1) for material in materials(count)]
    chosen = [choice[i] for i in rng.integers(len(choice), size=n)]
    positions = np.zeros((n, 4), np.uint32)
    for row, material in zip(positions, chosen, strict=True):
        row[:3] = words(material, (4 + rng.permutation(24)[: material.pieces]).tolist())
    values = rng.integers(-1, 2, n).astype(np.int8)
    logits = rng.normal(0, 1.5, (n, 3))
    logits[np.arange(n), 1 - values] += sharpness
    odds = np.exp(logits)
    p = (odds / odds.sum(1, keepdims=True)).astype(np.float32)
    oracle = (1 - p.argmax(1)).astype(np.int8)
    search = np.where(rng.random(n) < 0.9, values, rng.integers(-1, 2, n)).astype(np.int8)
    network = np.where(rng.random(n) < 0.8, oracle, search)
    flags = rng.integers(3, size=n).astype(np.uint8)
    codes = np.array([material.code for material in chosen], np.int64)
    return Judgements(positions, values, flags, codes, {"network": network, "search": search, "oracle": oracle}, p)


def by_hand(fens: list[str], values: list[int], p: list[tuple[float, float, float]], **changes: Any) -> Judgements:
    """Judgements on positions with Black to move; search and oracle are right unless a test changes them."""
    positions = np.array([[*parse_fen(fen)[1:], 0] for fen in fens], np.uint32)
    codes = []
    for own, opp, kings, _ in positions.tolist():
        kinds = (own & ~kings, own & kings, opp & ~kings, opp & kings)
        codes.append(Material(*(kind.bit_count() for kind in kinds)).code)
    probabilities, exact = np.array(p, np.float32), np.array(values, np.int8)
    verdicts = {"oracle": (1 - probabilities.argmax(1)).astype(np.int8), "search": exact, "network": exact}
    verdicts.update({name: np.array(changes[name], np.int8) for name in METHODS if name in changes})
    flags = np.array(changes.get("flags", [0] * len(fens)), np.uint8)
    return Judgements(positions, exact, flags, np.array(codes, np.int64), verdicts, probabilities)


def checked(judgements: Judgements, **options: Any) -> Validation:
    return validate(judgements, threshold=0.9, parameters=1000, **options)


def reference_score(judgements: Judgements, chosen: Callable[[int], bool]) -> tuple[int, dict[str, int]]:
    indices = [i for i in range(len(judgements.values)) if chosen(i)]
    return len(indices), {
        method: sum(int(judgements.verdicts[method][i]) == int(judgements.values[i]) for i in indices)
        for method in METHODS
    }


def assert_score(score: Score, reference: tuple[int, dict[str, int]]) -> None:
    assert (score.positions, dict(score.right)) == reference


def test_scores_of_all_groups() -> None:
    j = sample(800)
    v = checked(j)
    n = range(len(j.values))
    pieces = [Board.piece_map(board_of(j, i)) for i in n]
    assert_score(v.overall, reference_score(j, lambda i: True))
    assert list(v.by_outcome) == ["win", "draw", "loss"]
    for name in OUTCOMES:
        assert_score(v.by_outcome[name], reference_score(j, lambda i, name=name: NAMES[int(j.values[i])] == name))
    assert list(v.by_flag) == ["none", "capture", "threatened capture"]
    for number, name in enumerate(FLAGS):
        assert_score(v.by_flag[name], reference_score(j, lambda i, number=number: int(j.flags[i]) == number))
    assert list(v.by_pieces) == [2, 3, 4, 5]
    for count in v.by_pieces:
        assert_score(v.by_pieces[count], reference_score(j, lambda i, count=count: len(pieces[i]) == count))
    names = [wang_name(pieces[i]) for i in n]
    assert set(v.by_slice) == set(names)
    assert list(v.by_slice) == sorted(v.by_slice, key=lambda name: (sum(map(int, name)), name))
    for name in v.by_slice:
        assert_score(v.by_slice[name], reference_score(j, lambda i, name=name: names[i] == name))


def board_of(j: Judgements, index: int) -> Board:
    """The position with Black to move, read back through the report's own FEN format."""
    return Board(format_fen(Color.BLACK, *j.positions[index, :3].tolist()))


def wang_name(pieces: dict[int, tuple[Color, bool]]) -> str:
    """Black kings, White kings, black men, white men: Black is to move."""
    count = Counter(pieces.values())
    kinds = ((Color.BLACK, True), (Color.WHITE, True), (Color.BLACK, False), (Color.WHITE, False))
    return "".join(str(count[kind]) for kind in kinds)


def test_confusion_precision_recall_and_correlation() -> None:
    j = sample(700, seed=1)
    v = checked(j)
    for method in METHODS:
        pairs = Counter(zip(j.values.tolist(), j.verdicts[method].tolist(), strict=True))
        table = [[pairs[exact, verdict] for verdict in (1, 0, -1)] for exact in (1, 0, -1)]
        assert v.confusion[method].tolist() == table
        for value, name in NAMES.items():
            answered = sum(pairs[exact, value] for exact in NAMES)
            there = sum(pairs[value, verdict] for verdict in NAMES)
            assert v.precision(method)[name] == pytest.approx(pairs[value, value] / answered)
            assert v.recall(method)[name] == pytest.approx(pairs[value, value] / there)
    network, search = (j.verdicts[method] == j.values for method in ("network", "search"))
    both = Counter(zip(network.tolist(), search.tolist(), strict=True))
    assert v.correlation.tolist() == [[both[True, True], both[True, False]], [both[False, True], both[False, False]]]


def test_confidence_reliability_and_ece() -> None:
    j = sample(900, seed=2)
    v = checked(j)
    confidence = [min(float(max(row)), 1.0) for row in j.probabilities]
    right = (j.verdicts["oracle"] == j.values).tolist()
    for value, name in NAMES.items():
        for column, wanted in enumerate((True, False)):
            found = [c for c, r, x in zip(confidence, right, j.values, strict=True) if r is wanted and x == value]
            assert v.confidence.means[name][column] == pytest.approx(sum(found) / len(found))
    for counts, wanted in ((v.confidence.right, True), (v.confidence.wrong, False)):
        assert sum(counts) == right.count(wanted)
        for count, low, high in zip(counts, HISTOGRAM_EDGES, HISTOGRAM_EDGES[1:], strict=False):
            inside = [low <= c < high or c == high == 1 for c, r in zip(confidence, right, strict=True) if r is wanted]
            assert count == sum(inside)
    error = 0.0
    filled = []
    for k in range(15):
        low, high = k / 15, (k + 1) / 15
        inside = [(c, r) for c, r in zip(confidence, right, strict=True) if low < c <= high]
        if inside:
            mean, share = sum(c for c, _ in inside) / len(inside), sum(r for _, r in inside) / len(inside)
            filled.append((low, high, mean, share, len(inside)))
            error += abs(mean - share) * len(inside) / len(confidence)
    bins = [(b.low, b.high, b.confidence, b.accuracy, b.count) for b in v.reliability]
    assert np.array(bins) == pytest.approx(np.array(filled))
    assert v.ece == pytest.approx(error)


def test_a_case_by_hand() -> None:
    j = by_hand(
        list(SHORT),
        [1, 0, -1, 1],
        [(0.5, 0.25, 0.25), (0.75, 0.25, 0.0), (0.0, 0.0, 1.0), (0.25, 0.75, 0.0)],
        search=[1, 0, 1, 0],
        network=[1, 0, -1, 0],
        flags=[0, 0, 1, 1],
    )
    v = validate(j, threshold=None, parameters=77)
    data = v.to_json()
    assert [data[KEYS[method]] for method in METHODS] == [0.75, 0.5, 0.5]
    assert (data["positions"], data["parameters"], data["threshold"]) == (4, 77, None)
    # Bins: 0.5 right; two of 0.75, both wrong; 1.0 right.
    assert data["ece"] == pytest.approx((0.5 + 2 * 0.75 + 0.0) / 4)
    assert data["by_outcome"]["loss"]["accuracy"] == 1.0
    assert data["by_outcome"]["win"]["accuracy_search"] == 0.5
    assert data["by_flag"]["threatened capture"] == {
        "positions": 0,
        **dict.fromkeys(KEYS.values()),
        "intervals": dict.fromkeys(KEYS.values()),
    }
    assert list(data["by_slice"]) == ["0110", "1001", "0111", "1111"]
    assert data["by_pieces"]["2"]["positions"] == 2
    assert data["confusion"]["oracle"] == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert data["precision"]["oracle"] == {"win": 0.5, "draw": 0.0, "loss": 1.0}
    assert data["precision"]["search"]["loss"] is None
    assert data["correlation"] == {
        "network_right": {"search_right": 2, "search_wrong": 1},
        "network_wrong": {"search_right": 0, "search_wrong": 1},
    }
    assert data["confidence"]["mean"]["draw"] == {"right": None, "wrong": 0.75}
    assert [(worst["fen"], worst["exact"], worst["oracle"], worst["search"]) for worst in data["worst"]] == [
        (SHORT[1], "draw", "win", "draw"),
        (SHORT[3], "win", "draw", "draw"),
    ]
    assert data["worst"][1] == {
        "fen": SHORT[3],
        "exact": "win",
        "network": "draw",
        "search": "draw",
        "oracle": "draw",
        "confidence": 0.75,
        "wdl": [0.25, 0.75, 0.0],
        "flag": "capture",
    }
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_worst_come_first_and_once() -> None:
    j = sample(400, seed=3)
    twice = Judgements(
        *(np.concatenate([a, a]) for a in (j.positions, j.values, j.flags, j.codes)),
        {method: np.concatenate([a, a]) for method, a in j.verdicts.items()},
        np.concatenate([j.probabilities, j.probabilities]),
    )
    wrong = [i for i in range(400) if j.verdicts["oracle"][i] != j.values[i]]
    assert len(wrong) > 20
    wrong.sort(key=lambda i: -float(j.probabilities[i].max()))
    fens = [board_of(j, i).fen() for i in wrong]
    assert [worst.fen for worst in checked(twice, worst=10).worst] == fens[:10]
    assert len(checked(twice, worst=10**6).worst) == len(set(fens))
    assert checked(j, worst=0).worst == ()
    assert all(worst.fen.startswith("B:") for worst in checked(j).worst)


@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval(counts: tuple[int, int]) -> None:
    low, high = wilson_interval(*counts)
    expected = binomtest(*counts).proportion_ci(0.95, "wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= low <= counts[0] / counts[1] <= high <= 1


@pytest.mark.parametrize("counts", [(0, 0), (-1, 5), (6, 5)])
def test_no_interval(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"[kn].*must"):
        wilson_interval(*counts)


@pytest.mark.parametrize("fen", [*SHORT, "W:W21,30,K3,K32:B1,K4,12,K29", Board().fen()])
def test_a_board_shows_every_piece_where_it_stands(fen: str) -> None:
    axes = Figure(figsize=(2, 2)).subplots()
    draw_board(axes, fen)
    pieces = Board(fen).piece_map()
    dark = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
    discs = [circle for circle in circles if circle.get_fill()]
    crowns = [patch for patch in axes.patches if isinstance(patch, Polygon)]
    assert sorted(int(text.get_text()) for text in axes.texts) == list(range(1, 33))

    def number_at(x: float, y: float) -> int:
        """PDN: four dark squares a row, Black's first row on top begins with the second column."""
        row, column = int(y), int(x)
        assert (row + column) % 2 == 1
        return 4 * row + column // 2 + 1

    assert {number_at(*map(float, square_centre(number))) for number in range(1, 33)} == set(range(1, 33))
    assert {number_at(patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in dark} == set(range(1, 33))
    black = {number_at(*disc.center) for disc in discs if sum(disc.get_facecolor()[:3]) < 1}
    white = {number_at(*disc.center) for disc in discs if sum(disc.get_facecolor()[:3]) > 2}
    assert black == {number for number, (color, _) in pieces.items() if color is Color.BLACK}
    assert white == {number for number, (color, _) in pieces.items() if color is Color.WHITE}
    assert {number_at(*circle.center) for circle in circles if not circle.get_fill()} == black
    kings = {number_at(*crown.get_xy()[:-1].mean(0)) for crown in crowns}
    assert kings == {number for number, (_, king) in pieces.items() if king}
    for text in axes.texts:
        assert number_at(*text.get_position()) == int(text.get_text())


def image_of(png: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(png)) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"))


def test_figures_show_something() -> None:
    v = checked(sample(300, seed=4, pieces=3), worst=3)
    curve = [{"positions": 10, "loss": 1.0}, {"positions": 20, "loss": 0.5, "validation_accuracy": 0.9}]
    for png in (
        figures.draw_confusion(v),
        figures.draw_groups({"flag": v.by_flag}),
        figures.draw_slices(v.by_slice),
        figures.draw_confidence(v),
        figures.draw_reliability(v),
        figures.draw_learning_curve(curve),
        figures.draw_worst(v.worst),
    ):
        assert len(np.unique(image_of(png).reshape(-1, 3), axis=0)) > 10


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """A list of the figures that are drawn later, before they become images."""
    found: list[Figure] = []
    monkeypatch.setattr(figures, "png_of", lambda figure: found.append(figure) or b"")
    return found


def test_worst_positions_say_who_is_to_move(monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawn(monkeypatch)
    figures.draw_worst(checked(sample(300, seed=4, pieces=3), worst=1).worst)
    assert found[0].get_suptitle() == "Black to move, down the board"


def test_a_threshold_next_to_one_does_not_lie_on_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawn(monkeypatch)
    figures.draw_confidence(validate(sample(300), threshold=0.998, parameters=1))
    (axes,) = found[0].axes
    (line,) = (line for line in axes.lines if "threshold" in str(line.get_label()))
    assert line.get_label() == "threshold 0.998"
    left, right = axes.get_xlim()
    assert (right - line.get_xdata()[0]) / (right - left) > 0.02


def test_the_figure_of_slices_grows_with_them() -> None:
    score = Score(1000, {"network": 990, "search": 980, "oracle": 999})
    names = [material.name for count in range(2, 8) for material in materials(count)]
    sizes = [image_of(figures.draw_slices(dict.fromkeys(names[:size], score))).shape[:2] for size in (1, 104, 155)]
    assert sizes[0][0] < sizes[1][0] <= sizes[2][0]
    assert sizes[0][1] < sizes[2][1]


@pytest.mark.parametrize("curve", [[], [{"loss": 1.0}], [{"positions": 1, "loss": 1.0}, {"seconds": 2.0, "loss": 1.0}]])
def test_a_learning_curve_without_an_axis_is_refused(curve: list[dict[str, float]]) -> None:
    with pytest.raises(ValueError, match="learning curve"):
        figures.draw_learning_curve(curve)


def test_the_report_holds_everything(tmp_path: Path) -> None:
    v = checked(sample(600, seed=5, pieces=4), worst=5)
    curve = [{"positions": step, "loss": 1 / step, "validation_accuracy": 1 - 0.1 / step} for step in (1, 2, 3)]
    page = write_oracle_report(tmp_path / "report", v, {"2-4": curve}, {"network": "some.safetensors", "seed": 7})
    folder = page.parent
    names = ("groups", "slices", "confusion", "confidence", "reliability", "learning-2-4", "worst")
    texts = {"report.html", "report.md", "report.json"}
    assert {path.name for path in folder.iterdir()} == texts | {f"{name}.png" for name in names}
    data = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert data == {
        **v.to_json(),
        "facts": {"network": "some.safetensors", "seed": 7},
        "learning_curves": {"2-4": curve},
    }
    for path in folder.glob("*.png"):
        image_of(path.read_bytes())
    markdown, html = ((folder / name).read_text(encoding="utf-8") for name in ("report.md", "report.html"))
    accuracy = f"{100 * v.overall.right['oracle'] / 600:.3f} %"
    assert f"| oracle | {accuracy} |" in markdown
    assert accuracy in html
    for worst in v.worst:
        assert worst.fen in markdown
        assert worst.fen in html
    assert html.count("<img ") == len(names)


@pytest.mark.parametrize("values", [[1], [1, 1, 1, 1]])
def test_the_report_of_a_faultless_oracle(tmp_path: Path, values: list[int]) -> None:
    n = len(values)
    j = by_hand(list(SHORT[:n]), values, [(1.0, 0.0, 0.0)] * n)
    v = validate(j, threshold=None, parameters=1)
    assert v.ece == 0.0
    write_oracle_report(tmp_path, v, {}, {})
    assert not (tmp_path / "worst.png").exists()
    assert not list(tmp_path.glob("learning*"))
    assert "No learning curve is known" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "answered every position right" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["learning_curves"] == {}


def test_the_report_of_an_oracle_that_knows_nothing(tmp_path: Path) -> None:
    j = by_hand(list(SHORT), [-1, 0, -1, 0], [(1.0, 0.0, 0.0)] * 4, search=[1] * 4, network=[1] * 4)
    v = checked(j)
    assert (v.ece, v.overall.accuracy("network"), len(v.worst)) == (1.0, 0.0, 4)
    write_oracle_report(tmp_path, v, {}, {})
    image_of((tmp_path / "worst.png").read_bytes())


def test_a_report_is_the_same_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_oracle_report(tmp_path / name, checked(sample(50, seed=6, pieces=2), worst=2), {}, {"seed": 6})
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
