"""Opponents and their strength, the settings menu's data, and what is said of endgames."""

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, get_args
from unittest.mock import Mock

import pytest
from programs import PATIENCE
from pydantic import ValidationError

import crownhead_board
from engine.board import Board
from engine.fen import Color
from engine.players import AlphaBetaPlayer, PlayerError, RandomPlayer, RolloutPlayer, WatchablePlayer
from engine.players.alphabeta import MAX_DEPTH
from engine.search import SearchConfig
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED
from gui.game import endgame_info
from gui.game.endgame_info import EndgameInfo, ExactMove, Verdict
from gui.game.opponents import (
    KIND_NAMES,
    CheckpointEntry,
    Kind,
    OpponentError,
    Opponents,
    OpponentSpec,
    strength_position,
    strength_steps,
    strength_text,
    with_strength,
)
from gui.game.snapshot import MoveRow, Snapshot, with_verdict
from gui.search_settings import SETTINGS, SettingError, in_use, with_setting
from gui.views import game_facts as facts

EXTERNAL = OpponentSpec(kind="external", command="/usr/games/engine --quiet")

# --- opponents


def test_every_kind_has_a_name() -> None:
    assert set(KIND_NAMES) == set(get_args(Kind))


@pytest.mark.parametrize(
    ("spec", "name", "label"),
    [
        (OpponentSpec(), "Crownhead", "Crownhead, 400 simulations"),
        (OpponentSpec(checkpoint="/runs/a/checkpoints/000012"), "000012", "000012, 400 simulations"),
        (OpponentSpec(timed=True, seconds=2.0), "Crownhead", "Crownhead, 2 s"),
        (OpponentSpec(kind="random", timed=True), "random", "random"),
        (OpponentSpec(kind="rollout", rollouts=1), "rollout:1", "roll-outs, 1 roll-out"),
        (OpponentSpec(kind="alphabeta", depth=5), "alphabeta:5", "alpha-beta, 5 plies"),
        (OpponentSpec(kind="alphabeta", timed=True, seconds=0.5), "alphabeta:0.5s", "alpha-beta, 0.5 s"),
        (EXTERNAL, "engine", "engine, 1 s"),
        *(
            (OpponentSpec(kind="external", command=command), name, f"{name}, 1 s")
            for command, name in (
                ("/usr/bin/python3 -u '/home/me/my engines/dragon.py' --depth 3", "dragon"),
                ("python crownhead.py engine", "crownhead"),
                ("java -jar lib/Checkers.jar hub", "Checkers"),
                ("scan hub", "scan"),
                ("python", "python"),
                ("engine 'unclosed", "engine"),
            )
        ),
    ],
)
def test_names_and_labels(spec: OpponentSpec, name: str, label: str) -> None:
    assert (spec.name, spec.label) == (name, label)


@pytest.mark.parametrize("kind", ["network", "rollout", "alphabeta"])
@pytest.mark.parametrize("timed", [False, True])
def test_the_strength_slider_reaches_every_stop(kind: Kind, timed: bool) -> None:
    spec = OpponentSpec(kind=kind, timed=timed)
    steps = strength_steps(spec)
    assert list(steps) == sorted(set(steps))
    for position, amount in enumerate(steps):
        moved = with_strength(spec, position)
        assert moved.amount == amount
        assert strength_position(moved) == position
        assert f"{amount:g}" in strength_text(moved) or str(amount) in strength_text(moved)
        assert moved.changed(**{"timed": spec.timed}) == moved
    assert with_strength(spec, -5).amount == steps[0]
    assert with_strength(spec, 99).amount == steps[-1]


def test_the_slider_shows_the_nearest_stop_of_other_strengths() -> None:
    assert strength_position(OpponentSpec(timed=True, seconds=600)) == len(strength_steps(OpponentSpec(timed=True))) - 1
    none = OpponentSpec(search=SearchConfig(num_simulations=0))
    assert strength_position(none) == 0
    assert strength_steps(none)[strength_position(OpponentSpec(search=SearchConfig(num_simulations=390)))] == 400
    spec = OpponentSpec(kind="random")
    assert (strength_steps(spec), strength_position(spec), with_strength(spec, 3), spec.amount) == ((), 0, spec, 0)
    assert with_strength(EXTERNAL, 0).seconds == 0.1


def test_a_spec_can_be_stored_and_compared() -> None:
    spec = OpponentSpec(kind="alphabeta", timed=True, seconds=3.0)
    again = OpponentSpec.model_validate_json(spec.model_dump_json())
    assert again == spec
    assert hash(again) == hash(spec)
    assert spec != spec.changed(seconds=2.0)
    with pytest.raises(ValidationError):
        OpponentSpec.model_validate({"kind": "random", "colour": "black"})


def test_stored_settings_that_are_gone_are_passed_over() -> None:
    spec = OpponentSpec(timed=True, search=SearchConfig(c_puct=2.0, oracle="tablebase"))
    stored = spec.model_dump(mode="json")
    gone = {"root": "gumbel", "gumbel_scale": 1.0, "c_visit": 50.0, "rescale_q": True, "oracle_confidence": 0.99}
    stored["search"] |= gone | {"oracle": "network"}
    stored["backend"] = "openvino-int8"
    assert OpponentSpec.model_validate(stored) == OpponentSpec.model_validate_json(json.dumps(stored)) == spec
    with pytest.raises(ValidationError):
        OpponentSpec.model_validate(stored | {"search": {"roof": "gumbel"}})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "external"}, "needs the command"),
        ({"kind": "external", "command": "  "}, "needs the command"),
        ({"seconds": 0.0}, "^seconds: .*greater than or equal"),
        ({"depth": MAX_DEPTH + 1}, "^depth: "),
        ({"rollouts": "many"}, "^rollouts: "),
        ({"kind": "chess"}, "^kind: "),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(OpponentError, match=message) as caught:
        OpponentSpec().changed(**changes)
    assert "\n" not in str(caught.value)


def test_built_in_opponents_are_made_as_their_spec_says() -> None:
    opponents = Opponents()
    assert opponents.kinds == ("alphabeta", "rollout", "random")
    assert isinstance(opponents.make(OpponentSpec(kind="random")), RandomPlayer)
    rollout = opponents.make(OpponentSpec(kind="rollout", rollouts=7))
    assert isinstance(rollout, RolloutPlayer)
    assert rollout.simulations == 7
    alphabeta = opponents.make(OpponentSpec(kind="alphabeta", depth=3))
    timed = opponents.make(OpponentSpec(kind="alphabeta", depth=3, timed=True, seconds=4.0))
    assert isinstance(alphabeta, AlphaBetaPlayer)
    assert isinstance(timed, AlphaBetaPlayer)
    assert (alphabeta.depth, alphabeta.seconds, timed.depth, timed.seconds) == (3, None, MAX_DEPTH, 4.0)
    assert opponents.checkpoints() == ()


def test_two_games_against_the_same_opponent_need_not_be_alike() -> None:
    opponents, board = Opponents(), Board()
    moves = {opponents.make(OpponentSpec(kind="random")).choose([board])[0] for _ in range(60)}
    assert len(moves) > 1


def test_other_opponents_come_from_outside() -> None:
    asked = []

    def factory(spec: OpponentSpec) -> RandomPlayer:
        asked.append(spec)
        return RandomPlayer()

    opponents = Opponents(network=factory, external=factory)
    assert opponents.kinds == tuple(KIND_NAMES)
    opponents.make(OpponentSpec())
    opponents.make(EXTERNAL)
    assert asked == [OpponentSpec(), EXTERNAL]
    with pytest.raises(PlayerError, match="external engine: not available here"):
        Opponents(network=factory).make(EXTERNAL)


@pytest.mark.parametrize("watchable", [True, False])
def test_a_network_has_searched_before_its_clock_runs(monkeypatch: pytest.MonkeyPatch, watchable: bool) -> None:
    """The first search of a pondering player compiled on its clock, and the first game was lost on time."""
    player = Mock(spec=WatchablePlayer if watchable else ["name", "seed", "choose"])
    monkeypatch.setattr("selfplay.machines.compiling.made_beside_compiling", lambda make: player)
    assert crownhead_board.make_network(OpponentSpec(kind="network", ponder=True)) is player
    searches = player.begin.return_value.advance if watchable else player.choose
    assert searches.call_count == 2, "the second keeps a tree"


def test_an_engine_is_ready_before_its_clock_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that loaded its tables for longer than its clock had lost before its first move."""
    started = Mock()
    monkeypatch.setattr("engine.players.hub.HubPlayer.start", started)
    crownhead_board.start_engine(OpponentSpec(kind="external", command=sys.executable))
    started.assert_called_once_with()


@pytest.mark.parametrize(("kind", "player"), [("alphabeta", AlphaBetaPlayer), ("rollout", RolloutPlayer)])
def test_what_comes_with_the_board_has_searched_before_its_clock_runs(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, player: type
) -> None:
    begun: list[Board] = []
    begin = player.begin

    def noted(self: WatchablePlayer, board: Board, *rest: object) -> object:
        begun.append(board)
        return begin(self, board, *rest)

    monkeypatch.setattr(player, "begin", noted)
    Opponents().make(OpponentSpec(kind=kind))
    assert begun


def test_checkpoints_are_listed_strongest_first() -> None:
    entries = [
        CheckpointEntry("b", "runs/b"),
        CheckpointEntry("weak", "runs/w", -12.4, 30.2),
        CheckpointEntry("a", "runs/a"),
        CheckpointEntry("strong", "runs/s", 431.0),
    ]
    listed = Opponents(find_checkpoints=lambda: entries).checkpoints()
    labels = [entry.label for entry in listed]
    assert labels == ["strong — Elo 431", "weak — Elo -12 ± 30", "a — not rated", "b — not rated"]


# --- settings of the search


def test_every_field_of_the_search_is_a_setting_with_its_meaning_and_range() -> None:
    assert sorted(entry.name for entry in SETTINGS) == sorted(SearchConfig.model_fields)
    for entry in SETTINGS:
        assert entry.label
        assert entry.meaning
        assert entry.range_text
        assert with_setting(SearchConfig(), entry.name, entry.text(SearchConfig())) == SearchConfig()
    assert len({entry.label for entry in SETTINGS}) == len(SETTINGS)


@pytest.mark.parametrize("entry", SETTINGS, ids=lambda entry: entry.name)
def test_ranges_are_those_of_the_search(entry) -> None:
    """The limits of each range in the menu are accepted, and values beyond them are refused."""
    refused: list[object] = ["much", "", None]
    if entry.kind in ("int", "float"):
        step = 1 if entry.kind == "int" else 1e-6
        taken = [entry.maximum, entry.minimum + (step if entry.above_minimum else 0)]
        refused += [entry.maximum + step, entry.minimum - (0 if entry.above_minimum else step), "nan", "inf"]
    else:
        taken = [True, False, "on", "off"] if entry.kind == "bool" else list(entry.choices)
    for value in taken:
        changed = with_setting(SearchConfig(), entry.name, value)
        assert with_setting(SearchConfig(), entry.name, f" {value} ") == changed
        if not isinstance(value, str):
            assert getattr(changed, entry.name) == value
    for value in refused:
        with pytest.raises(SettingError, match=entry.label) as caught:
            with_setting(SearchConfig(), entry.name, value)
        assert entry.range_text in str(caught.value)
        assert "\n" not in str(caught.value)


def test_how_ranges_are_written() -> None:
    names = ("c_puct", "fpu_reduction", "num_simulations", "oracle", "reuse_tree")
    by_name = {entry.name: entry for entry in SETTINGS}
    assert [by_name[name].range_text for name in names] == [
        "above 0 to 20",
        "0 to 2",
        "0 to 200,000",
        "off or tablebase",
        "on or off",
    ]


def test_settings_without_effect_are_known() -> None:
    def used(**changes: object) -> set[str]:
        search = {name: changes.pop(name) for name in list(changes) if name in SearchConfig.model_fields}
        spec = OpponentSpec(vary=False, search=SearchConfig.model_validate(search)).changed(**changes)
        return {entry.name for entry in SETTINGS if in_use(spec, entry.name)}

    plain = {
        "num_simulations",
        "c_puct",
        "fpu_reduction",
        "policy_temperature",
        "shot_prior",
        "shot_visits",
        "reuse_tree",
        "transpositions",
        "leaves_in_flight",
        "draw_value",
        "oracle",
    }
    variety = {"temperature", "temperature_plies", "final_temperature", "noise_fraction", "dirichlet_scale"}
    assert used() == plain
    assert used(timed=True) == plain - {"num_simulations"}
    assert used(vary=True) == plain | variety
    assert used(vary=True, noise_fraction=0.0) == plain | variety - {"dirichlet_scale"}
    assert used(draw_value=-0.3) == plain | {"contempt_lead"}
    assert used(leaves_in_flight=8) == plain | {"virtual_loss"}
    assert used(kind="alphabeta") == set()


# --- endgames


class Answer(NamedTuple):
    wdl: tuple[float, float, float]
    verdict: str
    confidence: float
    source: str


def test_every_move_and_the_whole_line_of_an_endgame() -> None:
    board = Board("W:WK14,K15:BK12")
    info = EndgameInfo()
    verdict = lookup(info, board)
    assert verdict.exact == "win"
    assert {known.move for known in verdict.moves} == set(board.legal_moves)
    best = verdict.moves[0]
    assert (best.exact, best.plies) == ("win", verdict.plies)
    assert [known.rank for known in verdict.moves] == sorted(known.rank for known in verdict.moves)
    assert len(verdict.line) == verdict.plies
    for move in verdict.line:
        board.push(move)
    assert board.outcome() is not None
    empty = Snapshot(1, "analyse", "thinking", "nobody", Board("W:WK14,K15:BK12").fen(), 0, Color.WHITE)
    shown = with_verdict(empty, verdict)
    assert len(shown.moves) == len(verdict.moves)
    assert all(row.proof and row.pdn for row in shown.moves)
    assert facts.table_state(shown, None, 99).rows[0].proof == f"win in {verdict.plies}"
    assert len(facts.line_state(shown, Color.WHITE, None).moves) == verdict.plies
    assert with_verdict(empty, None) is empty
    assert with_verdict(empty, verdict._replace(fen="B:W1:B2")) is empty
    info.close()


def test_moves_that_are_as_good_by_the_tables_stand_as_the_search_has_them() -> None:
    board = Board("W:WK14,K15:BK12")
    exact = tuple(ExactMove(move, board.pdn(move), "win", None) for move in board.legal_moves)
    verdict = Verdict(board.fen(), board.turn, "win", moves=exact)
    searched = tuple(MoveRow(move, pdn=board.pdn(move)) for move in board.legal_moves[3:1:-1])
    shown = with_verdict(
        Snapshot(1, "analyse", "thinking", "somebody", board.fen(), 0, board.turn, searched, pv=(searched[0].move,)),
        verdict,
    )
    assert [row.move for row in shown.moves[:2]] == [row.move for row in searched]
    assert len(shown.moves) == len(board.legal_moves)
    assert shown.pv == (searched[0].move,)


def lookup(info: EndgameInfo, board: Board) -> Verdict:
    deadline = time.monotonic() + 60
    while (verdict := info.ask(board)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return verdict


@pytest.fixture
def endgames():
    made = []

    def make(*args: object, **kwargs: object) -> EndgameInfo:
        made.append(EndgameInfo(*args, **kwargs))
        return made[-1]

    yield make
    for info in made:
        info.close()
        info.close()


@pytest.mark.parametrize("fen", ["W:WK14,K15:BK12", "B:WK14,K15:BK12", "W:WK10:BK19", "W:W32:BK1,2", "B:WK1:BK8"])
def test_exact_results_are_those_of_the_tables(endgames: Callable[..., EndgameInfo], fen: str) -> None:
    board = Board(fen)
    verdict = lookup(endgames(), board)
    with open_tablebase() as tables:
        value, plies = tables.probe_wdl(board), tables.probe_distance(board)
    assert (verdict.exact, verdict.plies) == ({1: "win", 0: "draw", -1: "loss"}[value], plies)
    winner = {1: board.turn, -1: board.turn.other}.get(value)
    start = "Draw (tables)" if winner is None else f"{winner} wins in {plies} pl"
    assert verdict.lines[0].startswith(start)
    assert (verdict.fen, verdict.oracle, verdict.error) == (board.fen(), None, None)


def test_the_oracle_is_asked_within_its_reach_and_beside_the_window(
    endgames: Callable[..., EndgameInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    go, asked = threading.Event(), []

    def oracle(board: Board) -> Answer:
        assert go.wait(PATIENCE)
        asked.append(board.fen())
        return Answer((0.0, 0.01, 0.99999), "loss", 0.99999, "two-ply search")

    monkeypatch.setattr(endgame_info, "ORACLE_PIECES", 10)
    info, board = endgames(oracle=oracle), Board("W:W21,22,K4,30,31:B1,2,3,K9")
    for _ in range(50):
        assert info.ask(board) is None
    go.set()
    verdict = lookup(info, board)
    assert asked == [board.fen()]  # once, however often it is asked for
    assert verdict.exact is None
    assert verdict.lines == ("Oracle: Black wins, 99.9% sure",)
    assert info.ask(Board()) is None
    assert len(asked) == 1


def test_two_threads_wait_for_the_tables_that_are_opened(endgames: Callable[..., EndgameInfo]) -> None:
    begun = threading.Event()

    def slowly() -> Tablebase:
        begun.set()
        time.sleep(0.1)
        return open_tablebase(SHIPPED)

    info, board = endgames(slowly), Board("B:W22,K23:BK1")
    assert info.ask(board) is None
    assert begun.wait(PATIENCE)
    assert info.value(board) is not None, "asked by the thread that thinks, while the other opens them"
    assert lookup(info, board).exact is not None


def test_what_fails_is_told_in_one_line_and_the_rest_stands(endgames: Callable[..., EndgameInfo]) -> None:
    opened = []

    def broken() -> None:
        opened.append(1)
        raise OSError("disk\n gone")

    def oracle(board: Board) -> Answer:
        return Answer((0.2, 0.7, 0.1), "draw", 0.7, "network")

    info = endgames(broken, oracle)
    verdict = lookup(info, Board("W:WK14,K15:BK12"))
    assert (verdict.exact, verdict.error) == (None, "tables: disk gone")
    assert verdict.lines == ("Oracle: Draw, 70.0% sure", "tables: disk gone")
    assert lookup(info, Board("W:WK14:BK12")).error is None
    assert len(opened) == 1

    def crash(board: Board) -> None:
        raise ZeroDivisionError

    verdict = lookup(endgames(oracle=crash), Board("W:WK14,K15:BK12"))
    assert (verdict.exact, verdict.error) == ("win", "oracle: ZeroDivisionError")

    def damaged(board: Board) -> None:
        raise ValueError("/a/long/way/to/oracle.json: damaged, not 3/4 whole")

    verdict = lookup(endgames(oracle=damaged), Board("W:WK14,K15:BK12"))
    assert verdict.error == "oracle: oracle.json: damaged, not 3/4 whole"


def test_finished_games_and_full_boards_have_no_verdict(endgames: Callable[..., EndgameInfo]) -> None:
    info = endgames()
    assert lookup(info, Board("B:W21:B")) == Verdict("B:W21:B", Color.BLACK)
    assert lookup(info, Board("B:W21:B")).lines == ()
    assert info.ask(Board()) is None
    info.close()
    assert info.ask(Board("W:WK10:BK19")) is None
