"""Chess endgames of Abdalla 2024: positions, networks and search against plain references, and the whole command."""

import json
import os
import shutil
import struct
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from papers.abdalla import EXPERIMENTS, abdalla_command

chess = pytest.importorskip("chess", reason="python-chess is not installed (pip install 'crownhead[papers]')")
from chess.syzygy import tablenames  # noqa: E402

from papers import abdalla_experiments, chess_lab  # noqa: E402
from papers.abdalla_experiments import children_of, one_ply_search  # noqa: E402
from papers.chess_lab import NETWORKS, SETTINGS, ChessLab, PoolTrainer  # noqa: E402
from papers.chess_networks import AbdallaNetwork, ManPairNetwork, pair_features, planes_of  # noqa: E402
from papers.chess_positions import (  # noqa: E402
    IMAGES,
    NO_MAN,
    TEST,
    TRAIN,
    Labelled,
    SyzygyError,
    SyzygyTables,
    canonical,
    draw_board,
    draw_boards,
    label,
    men_of,
    split_of,
    table_name,
)

SHARED = Path(os.environ.get("CROWNHEAD_SHARED", Path(__file__).parents[2] / "shared"))
FOLDER = SHARED / "data" / "syzygy"
needs_tables = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the folder ../shared with the Syzygy tables is not there"
)
KINDS = "KQRBNPkqrbnp"


def drawn(count: int, men: tuple[int, ...] = (3, 4), seed: int = 1) -> list[Any]:
    source = Random(seed)
    return [draw_board(men, source) for _ in range(count)]


def rows_of(boards: list[Any]) -> np.ndarray:
    return np.array([men_of(board) for board in boards], np.int16)


@pytest.fixture(scope="module")
def tables() -> SyzygyTables:
    return SyzygyTables(FOLDER)


def test_men_are_the_pieces_seen_by_the_side_to_move() -> None:
    for board in drawn(300):
        seen = board if board.turn == chess.WHITE else board.mirror()
        expected = {64 * KINDS.index(piece.symbol()) + square for square, piece in seen.piece_map().items()}
        men = men_of(board)
        assert {man for man in men if man != NO_MAN} == expected
        assert men.count(NO_MAN) == 4 - len(expected)
        assert [man // 64 for man in men[:2]] == [0, 6]
        planes = planes_of(np.array([men], np.int16))[0]
        for kind, letter in enumerate(KINDS):
            squares = seen.pieces(chess.Piece.from_symbol(letter).piece_type, letter.isupper())
            assert planes[kind].flatten().nonzero().flatten().tolist() == list(squares)


def test_drawn_positions_are_legal_and_alike_in_odds() -> None:
    boards = drawn(3000, (4,))
    assert all(board.is_valid() and len(board.piece_map()) == 4 for board in boards)
    turns = sum(board.turn for board in boards) / len(boards)
    assert abs(turns - 0.5) < 0.05
    same = sum(len(set(table_name(board).replace("v", ""))) == 2 for board in boards)  # KXXvK and KXvKX
    assert 0.15 < same / len(boards) < 0.25  # the second kind is one of five
    assert sum(len(board.piece_map()) == 3 for board in drawn(3000)) < 50  # one in 300


def image_slowly(board: Any, image: int) -> Any:
    found = chess.Board(None)
    for square, piece in board.piece_map().items():
        found.set_piece_at(int(IMAGES[image][square]), piece)
    found.turn = board.turn
    return found


def test_mirror_images_are_one_position() -> None:
    boards = [board for board in drawn(200) if board.turn]
    for board in boards:
        images = [image_slowly(board, n) for n in range(2 if board.pawns else 8)]
        rows = rows_of(images)
        found = canonical(rows)
        assert (found == found[0]).all()
        assert sorted(found[0].tolist()) in [sorted(row) for row in rows.tolist()]
        assert len(set(split_of(rows))) == 1
        square = found[0, 0]
        assert square % 8 < 4
        if not board.pawns:
            assert square // 8 <= square % 8
    swapped = [board.mirror() for board in boards]
    assert (rows_of(swapped) == rows_of(boards)).all()
    assert len({tuple(row) for row in canonical(rows_of(drawn(500))).tolist()}) > 490
    assert 0.03 < split_of(rows_of(drawn(5000))).mean() < 0.1  # one in 16


def test_pairs_are_the_pairs_on_the_board() -> None:
    rows, seen = rows_of(drawn(300)), {}
    features, materials = pair_features(rows)
    padding = 78 * 15 * 15 + 12 * 64
    for men, found in zip(rows.tolist(), features.tolist(), strict=True):
        for i in range(4):
            assert found[6 + i] == (padding if men[i] == NO_MAN else 78 * 15 * 15 + men[i])
            for j in range(i):
                (a, s), (b, t) = divmod(men[i], 64), divmod(men[j], 64)
                absent = men[i] == NO_MAN
                key = padding if absent else (frozenset([a, b]), s % 8 - t % 8, s // 8 - t // 8)
                assert seen.setdefault(found[i * (i - 1) // 2 + j], key) == key
    assert len(seen) == len(set(seen.values())) > 1000
    assert max(row for row in seen if row != padding) < 78 * 15 * 15
    kinds = [tuple(man // 64 for man in men[2:]) for men in rows.tolist()]
    assert len(set(kinds)) == len(set(zip(kinds, materials.tolist(), strict=True))) == len(set(materials.tolist()))


def scrambled(men: np.ndarray) -> np.ndarray:
    """Pseudo-random but reproducible classes."""
    return (men.astype(np.int64) @ np.array([7, 11, 13, 17]) // 3) % 5


def one_ply_slowly(board: Any) -> int:
    if board.is_checkmate():
        return 0
    if board.is_stalemate() or board.is_insufficient_material():
        return 2
    best = 0
    for move in board.legal_moves:
        after = board.copy()
        after.push(move)
        if after.is_checkmate():
            value = 0
        elif after.is_stalemate() or after.is_insufficient_material():
            value = 2
        else:
            value = int(scrambled(np.array([men_of(after)]))[0])
        best = max(best, 4 - value)
    return best


def test_one_ply_search_is_a_loop_over_the_moves() -> None:
    boards = [*drawn(200), chess.Board("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), chess.Board("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1")]
    before = [board.fen() for board in boards]
    found = one_ply_search(scrambled, children_of(boards))
    assert found.tolist() == [one_ply_slowly(board) for board in boards]
    assert found[-2:].tolist() == [2, 0]
    assert [board.fen() for board in boards] == before
    assert one_ply_search(scrambled, children_of([])).tolist() == []


@needs_tables
def test_one_ply_search_is_exact_where_the_judge_is(tables: SyzygyTables) -> None:
    def exact(men: np.ndarray) -> np.ndarray:
        classes = []
        for row in men.tolist():
            board = chess.Board(None)
            for man in row:
                if man != NO_MAN:
                    board.set_piece_at(man % 64, chess.Piece.from_symbol(KINDS[man // 64]))
            classes.append(tables.probe(board))
        return np.array(classes, np.int64)

    boards = drawn(300, (3, 4))
    assert (one_ply_search(exact, children_of(boards)) == label(tables, boards).classes).all()


@needs_tables
def test_splits_share_no_position(tables: SyzygyTables) -> None:
    parts = [
        canonical(label(tables, list(islice(draw_boards(tables, split, (3,), Random(1)), n))).men)
        for split, n in ((TRAIN, 3000), (TEST, 300))
    ]
    trained, tested = ({tuple(row) for row in part.tolist()} for part in parts)
    assert len(trained) > 2500
    assert not trained & tested


def test_the_published_network_has_its_layers_and_ours_is_smaller() -> None:
    convolutions = (12 * 64 + 64 * 128 + 128 * 256) * 9 + 64 + 128 + 256
    dense = 256 * 512 + 512 + 512 * 5 + 5
    assert AbdallaNetwork().parameter_count == convolutions + dense
    assert ManPairNetwork().parameter_count < AbdallaNetwork().parameter_count
    rows = rows_of(drawn(50))
    for make in NETWORKS.values():
        network = make()
        assert network(rows).shape == (50, 5)
        assert network.judge(rows).tolist() == network(rows).argmax(1).tolist()
        assert network.judge(rows[:0]).tolist() == []


@pytest.mark.parametrize("kind", list(NETWORKS))
def test_a_training_learns(kind: Any) -> None:
    torch.manual_seed(1)
    rows = rows_of(drawn(64, (3,)))
    classes = np.where(rows[:, 2] < 64 * 6, 4, 0).astype(np.int64)  # whoever has the third man wins
    settings = SETTINGS[kind].model_copy(update={"batch_size": 64, "warmup_steps": 5})
    trainer = PoolTrainer(NETWORKS[kind](), Labelled(rows, classes), settings, 10.0, 1)
    losses = [trainer.step() for _ in range(100)]
    assert trainer.seen == 100 * 64
    assert losses[0] > 1
    assert losses[-1] < 0.1
    assert (trainer._network.judge(rows) == classes).mean() > 0.95


@needs_tables
def test_fresh_positions_are_judged_better_than_by_material(tables: SyzygyTables) -> None:
    pool, test = (
        label(tables, list(islice(draw_boards(tables, split, (3,), Random(1)), n)))
        for split, n in ((TRAIN, 8000), (TEST, 500))
    )
    torch.manual_seed(1)
    trainer = PoolTrainer(NETWORKS["pair"](), pool, SETTINGS["pair"].model_copy(update={"batch_size": 1024}), 10.0, 1)
    for _ in range(150):
        trainer.step()
    right = (trainer._network.judge(test.men) == test.classes).mean()
    material = (abdalla_experiments.material_answers(pool, test.men) == test.classes).mean()
    assert right > 0.9
    assert right > material


def linked(folder: Path, *without: str) -> Path:
    """A folder with copies of the tables, except for some."""
    folder.mkdir()
    for file in FOLDER.glob("*.rtbw"):
        if file.stem not in without:
            shutil.copy(file, folder)
    return folder


@needs_tables
def test_a_missing_table_leaves_out_what_needs_it(tmp_path: Path) -> None:
    tables = SyzygyTables(linked(tmp_path / "tables", "KQvK"))
    assert tables.missing == ["KQvK"]
    promotions = {"KBvKP", "KNvKP", "KRvKP"}  # the pawn may capture and become a queen
    assert set(tables.left_out) == {name for name in tablenames(piece_count=4) if "Q" in name} | promotions
    boards = list(islice(draw_boards(tables, TRAIN, (3, 4), Random(1)), 300))
    assert not any(board.queens for board in boards)
    label(tables, boards)
    assert not tables.holds(chess.Board("r7/1P6/8/8/8/8/8/K1k5 w - - 0 1"))
    few = SyzygyTables(linked(tmp_path / "few", "KQRvK"))
    assert few.left_out == ["KQRvK"]
    three = SyzygyTables(linked(tmp_path / "three", *(name for name in tablenames(piece_count=4) if len(name) == 5)))
    assert three.men == [3]


@needs_tables
def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    folder = linked(tmp_path / "tables")
    (folder / "KRvKN.rtbw").write_bytes((FOLDER / "KRvKN.rtbw").read_bytes()[:100])
    with pytest.raises(SyzygyError, match=r"KRvKN\.rtbw: is no readable"):
        SyzygyTables(folder)
    (folder / "KRvKN.rtbw").write_bytes((FOLDER / "KRvKN.rtbw").read_bytes()[: 64 * 781 + 16])  # a size as it could be
    with pytest.raises(SyzygyError, match=r"KRvKN\.rtbw: is no readable"):
        SyzygyTables(folder)


@needs_tables
@pytest.mark.timeout(60)
def test_a_table_of_other_men_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """python-chess would look for them forever; in tables with other damage it calls itself without end."""
    folder = linked(tmp_path / "tables")
    for name, other in (("KRvKP", "KQvKR"), ("KPPvK", "KPvKP"), ("KQvKQ", "KRvKR")):
        shutil.copy(FOLDER / f"{other}.rtbw", folder / f"{name}.rtbw")
        with pytest.raises(SyzygyError, match=f"{name}.rtbw: is no readable Syzygy table: it is not of the men"):
            SyzygyTables(folder)
        shutil.copy(FOLDER / f"{name}.rtbw", folder)
    monkeypatch.setattr(chess.syzygy.WdlTable, "calc_symlen", lambda table, *rest: table.calc_symlen(*rest))
    with pytest.raises(SyzygyError, match="is no readable Syzygy table: maximum recursion depth"):
        SyzygyTables(folder)


@needs_tables
def test_damage_that_shows_late_is_told_in_one_line(tables: SyzygyTables, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(board: Any) -> int:
        raise struct.error("unpack_from requires a buffer of at least 87368 bytes")

    monkeypatch.setattr(tables._tables, "probe_wdl", damaged)
    with pytest.raises(SyzygyError, match="Syzygy table KQvK, or one that a capture leads to from there, is damaged"):
        tables.probe(chess.Board("8/8/8/8/8/k7/8/KQ6 w - - 0 1"))


def quicken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes commands use few positions, for fast tests."""
    monkeypatch.setattr(chess_lab, "TESTED", 100)
    for name, value in (("_BATCH", 50), ("_SINGLE", 5), ("_REPETITIONS", 2)):
        monkeypatch.setattr(abdalla_experiments, name, value)


def run(out: Path, folder: Path = FOLDER, **changes: Any) -> dict[str, Any]:
    arguments = {"experiment": None, "minutes": 0.02, "seed": 1, "quiet": True} | changes
    return abdalla_command(syzygy=folder, **({"out": out} | arguments))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"experiment": "alchemy"}, "time, accuracy, search, storage"),
        ({"minutes": 0.0}, "--minutes 0"),
        ({"minutes": float("nan")}, "--minutes nan"),
        ({"out": Path(__file__)}, "is a file"),
        ({"folder": Path(__file__).parent / "nowhere"}, "no such folder"),
        ({"folder": Path(__file__).parent}, "none of the Syzygy tables"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        run(**({"out": tmp_path / "report"} | changes))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_python_chess_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'crownhead\[papers\]'"):
        run(tmp_path / "report")


@needs_tables
def test_all_experiments_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quicken(monkeypatch)
    folder = linked(tmp_path / "tables", "KBNvK")
    figures = run(tmp_path / "report", folder, seed=2)
    data = json.loads((tmp_path / "report" / "report.json").read_text())
    assert data["experiments"] == json.loads(json.dumps(figures))
    assert list(figures) == list(EXPERIMENTS)
    assert data["facts"]["tables missing"] == "KBNvK"
    assert "not done, or not whole" not in data["facts"]
    accuracy, storage = ({row["name"]: row for row in figures[name]["rows"]} for name in ("accuracy", "storage"))
    first = accuracy["3–4 men (published: ≤ 6, 10 epochs)"]
    assert first["published"]["cnn"] == 0.921
    assert accuracy["≤ 6 men, 50 epochs"]["published"]["cnn"] == 0.910
    assert any(note.startswith("Of the 1 published figures") for note in figures["accuracy"]["notes"])
    assert "3–4 men, draw (recall)" in accuracy
    tables, network = (row["measured"] for row in figures["time"]["rows"][:2])
    assert f"takes {network['one'] / tables['one']:.1f} times as long" in figures["time"]["notes"][0]
    assert first["measured"]["pair"] == storage["ManPairNetwork, float32"]["measured"]["right"]
    assert any("KBNvK" in note for note in figures["accuracy"]["notes"])
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert storage["Syzygy tables of 3–4 men"]["measured"]["bytes"] == size
    assert all(row["measured"]["one"] > 0 for row in figures["time"]["rows"])
    assert all(0 <= row["measured"]["cnn_search"] <= 1 for row in figures["search"]["rows"])


@needs_tables
def test_an_interrupted_run_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(lab: ChessLab) -> None:
        raise KeyboardInterrupt

    quicken(monkeypatch)
    monkeypatch.setattr(abdalla_experiments, "search", interrupted)
    out = tmp_path / "report"
    with pytest.raises(KeyboardInterrupt, match="holds what was done: time, accuracy"):
        run(out)
    data = json.loads((out / "report.json").read_text())
    assert list(data["experiments"]) == ["time", "accuracy"]
    assert data["facts"]["not done, or not whole"] == "search, storage"
    assert (out / "accuracy.png").exists()
