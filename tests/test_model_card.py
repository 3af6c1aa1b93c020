"""``crownhead card``: what is measured, what is kept, and what the card says."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.files import StorageError
from engine.players import HubPlayer
from engine.sealed import unsealed
from engine.tablebase import MissingTableError
from engine.tablebase.folder import SHIPPED
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from learner.student import STUDENT_FOLDER
from selfplay.matches.ladder_commands import ratings_table
from selfplay.measures import card as model_card
from selfplay.measures import card_text
from selfplay.measures.card import TRIALS, Trial, card_command
from selfplay.requests import CardRequest
from selfplay.run.config import config_json, make_config, read_config
from selfplay.run.folder import RunError, RunFolder
from selfplay.run.stages import next_stage

LADDER = {
    "reference": "000001",
    "ratings": [{"player": "000002", "elo": 120.4, "elo_error": 30.0, "games": 40, "score": 0.7}],
    "steps": [{"network": "000002", "before": "000001", "elo": 120.4, "elo_error": 30.0, "verdict": "stronger"}],
    "climb": {"network": "000002", "before": "000001", "elo": 120.4, "elo_error": 30.0, "verdict": "stronger"},
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(model_card, "TRIALS", (Trial("random", "random", 2, "random:30", simulations=2),))
    monkeypatch.setattr(model_card, "ENDGAME_PIECES", 3)
    monkeypatch.setattr(model_card, "ENDGAME_POSITIONS", 200)
    monkeypatch.setattr(model_card, "HEAD_POSITIONS", 100)
    monkeypatch.setattr(model_card, "WON_POSITIONS", 3)
    monkeypatch.setattr(model_card, "first_move", lambda player: {"seconds": 1.25, "simulations": 400})
    torch.manual_seed(0)
    config = make_config("smoke", ["trainer.learning_rate=0.005"])
    folder = RunFolder.create(tmp_path / "run", config)
    folder.config_path.write_bytes(config_json(next_stage(config, ["search.c_puct=3"], 1, 7)))  # it goes on
    figures = {"steps": 7, "games": 12_345, "samples": 400, "minutes": 3.4}
    save_checkpoint(folder.checkpoint("000000"), make_network(NETWORKS["tiny"]), figures)
    (folder.path / "ladder").mkdir()
    (folder.path / "ladder" / "report.json").write_text(json.dumps(LADDER))
    return folder


def card(run: RunFolder, out: Path, /, **options: Any) -> dict[str, Any]:
    quiet = options.pop("quiet", True)
    given = {"run": run.path, "folder": SHIPPED, "out": out, "jobs": 1, **options}
    return card_command(CardRequest(str(run.checkpoint("000000")), **given), quiet)


@pytest.mark.slow
def test_a_card(run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "card"
    (tmp_path / "games.pdn").write_text('[FEN "W:W32,31:B1"]\n\n1. 31-27 1-6 2. 27-23 6-10 1/2-1/2\n')
    figures = card(run, out, games=tmp_path / "games.pdn")
    assert set(figures["results"]) == {"endgames", "head", "first move", "match random", "conversion"}
    head = figures["results"]["head"]["by_pieces"]
    assert [line["pieces"] for line in head] == [2, 3, 4, 5]
    assert [line["games"] and line["games"]["positions"] for line in head] == [None, 4, None, None]
    assert all(0 <= line["uniform"]["network"]["accuracy"] <= 1 for line in head)
    assert figures["results"]["match random"]["games"] == 2
    names = {"README.md", "card.json", "config.json", "matches"}
    assert {path.name for path in out.iterdir()} == names
    assert (out / "matches" / "random.pdn").read_text().count("[Event ") == 2
    text = (out / "README.md").read_text()
    assert "1 blocks of 16 channels" in text
    assert figures["digest"] in text
    assert "12,345" in text
    assert "crownhead train --preset smoke --set trainer.learning\\_rate=0.005" in text
    assert "--resume" not in text
    assert read_config(out / "config.json") == make_config("smoke", ["trainer.learning_rate=0.005"])
    assert "crownhead match NET random --games 2 --simulations 2 --openings random:30 --seed 1" in text
    assert "First to last: 120 ± 30 Elo." in text
    assert "1.2 s, with compiled functions" in text
    # Given again it measures nothing that it knows.
    for name in ("match_command", "convert_command", "oracle_validate_command"):
        monkeypatch.setattr(model_card, name, None)
    assert card(run, out) == figures
    (out / "README.md").unlink()
    assert card(run, out, run=None) == figures
    assert (out / "README.md").read_text() == text, "configuration and ladder are kept"
    data = unsealed((out / "card.json").read_bytes())
    (out / "card.json").write_text(json.dumps({**data, "digest": "0" * 64}))
    with pytest.raises(RunError, match="the card of another network"):
        card(run, out)
    (out / "card.json").write_text("{")
    with pytest.raises(RunError, match="is not a card"):
        card(run, out)
    with pytest.raises(RunError, match="holds no run"):
        card(run, tmp_path / "other", run=tmp_path)
    assert not (tmp_path / "other").exists()


def test_figures_of_a_card_do_not_change_unseen(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_card, "_measurements", lambda *_: [("odd", lambda: {"share": 0.25})])
    out = tmp_path / "card"
    figures = card(run, out)
    assert card(run, out) == figures
    text = (out / "card.json").read_text()
    (out / "card.json").write_text(text.replace("0.25", "0.75"))
    with pytest.raises(RunError, match=r"card\.json: its checksum is wrong"):
        card(run, out)
    (out / "card.json").write_text(json.dumps(unsealed(text)))  # of an older version
    assert card(run, out) == figures


def test_a_card_replaces_no_other_files(run: RunFolder, tmp_path: Path) -> None:
    """A run would go on without its later stages, with the configuration that it had when the network was made."""
    before = run.config_path.read_bytes()
    with pytest.raises(RunError, match=r"run is the folder of a run: choose another --out"):
        card(run, run.path)
    assert run.config_path.read_bytes() == before
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(RunError, match=r"README\.md is no card: move it, or choose another --out"):
        card(run, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "run"]


def test_a_card_is_not_of_a_run_that_did_not_make_the_network(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It told another run's configuration and ladder as the network's own."""
    monkeypatch.setattr(model_card, "_measurements", lambda *_: [])
    other = str(tmp_path / "other")
    save_checkpoint(other, make_network(NETWORKS["tiny"]))
    with pytest.raises(RunError, match="run has not made this network: name the run that has"):
        card_command(CardRequest(other, run=run.path, out=tmp_path / "card"), True)
    assert not (tmp_path / "card").exists()
    shutil.copytree(run.checkpoint("000000"), tmp_path / "copy")
    card_command(CardRequest(str(tmp_path / "copy"), run=run.path, out=tmp_path / "card"), True)


def test_a_card_names_the_networks_that_a_run_learnt_from() -> None:
    def told(**changes: Any) -> str:
        return card_text._origin(make_config("smoke", **changes))

    first, teacher = {"init": "a" * 64}, {"teacher": {"digest": "b" * 64}}
    assert told() == "It began with random weights. No games or evaluations of others were used."
    assert told(**first) == "It began with the network aaaaaaaaaaaa."
    assert told(**teacher).startswith("It began with random weights, and learnt from")
    against = told(**first, opponent={"digest": "c" * 64})
    assert against.endswith("aaaaaaaaaaaa. All its games were against the network cccccccccccc.")
    both = told(**teacher, opponent={"digest": "c" * 64})
    assert "from the answers of the network bbbbbbbbbbbb as well. All its games were against the" in both
    assert "aaaaaaaaaaaa, and learnt from the answers of the network bbbbbbbbbbbb" in told(**first, **teacher)


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000, '{"ratings": []}'])
def test_what_cannot_be_read_is_refused_before_anything_is_measured(
    run: RunFolder, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged report of a ladder ended in a traceback and in a damaged card, after the first measurement."""
    monkeypatch.setattr(model_card, "oracle_validate_command", None)
    with pytest.raises(OSError, match=r"nowhere\.pdn"):
        card(run, tmp_path / "card", games=tmp_path / "nowhere.pdn")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="empty holds no tables"):
        card(run, tmp_path / "card", folder=tmp_path / "empty")
    monkeypatch.setattr(model_card, "ENDGAME_PIECES", 5)
    with pytest.raises(MissingTableError, match="no table with distances"):
        card(run, tmp_path / "card")
    assert not (tmp_path / "card").exists()
    monkeypatch.setattr(model_card, "ENDGAME_PIECES", 3)
    (run.path / "ladder" / "report.json").write_text(text)
    with pytest.raises(RunError, match=r"report\.json is not the report of a ladder"):
        card(run, tmp_path / "card")
    assert not (tmp_path / "card").exists()


def test_a_match_goes_on_by_whatever_path_its_network_is_named(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = run.checkpoint("000000")
    for path in (whole.relative_to(tmp_path), whole, whole / ".." / "000000"):
        request = CardRequest(str(path), folder=SHIPPED, out=tmp_path / "card", jobs=1)
        measures = dict(model_card._measurements(request, path, None, tmp_path / "card", True))
        (tmp_path / "card").mkdir(exist_ok=True)
        assert measures["match random"]()["games"] == 2
    assert (tmp_path / "card" / "matches" / "random.pdn").read_text().count("[Event ") == 2


def test_trials_are_those_that_were_asked_for() -> None:
    commands = [trial.command("NET") for trial in TRIALS]
    assert "crownhead match NET alphabeta:8 --games 200 --seconds 0.1 --openings random:3 --seed 1" in commands
    assert "crownhead match NET alphabeta:8 --games 100 --seconds 0.1 --openings ballots --seed 1" in commands
    assert len({trial.name for trial in TRIALS}) == len(TRIALS)


@pytest.mark.slow
def test_another_student_plays_again_what_a_student_plays(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timed = Trial("timed", "random", 2, "random:30", seconds=0.01)
    monkeypatch.setattr(model_card, "TRIALS", (*model_card.TRIALS, timed))
    out, student = tmp_path / "card", make_network(NETWORKS["wide32"])
    (tmp_path / "games.pdn").write_text('[FEN "W:W32,31:B1"]\n\n1. 31-27 1-6 2. 27-23 6-10 1/2-1/2\n')
    before = card(run, out, games=tmp_path / "games.pdn")
    games = {name: (out / "matches" / f"{name}.pdn").read_bytes() for name in ("random", "timed")}
    assert before["student"] is None
    info = save_checkpoint(run.checkpoint("000000") / STUDENT_FOLDER, student, {}, before["digest"])
    for name in ("convert_command", "oracle_validate_command"):
        monkeypatch.setattr(model_card, name, None)
    capsys.readouterr()
    after = card(run, out, quiet=False, games=tmp_path / "games.pdn")
    assert after["results"]["head"]["games"]
    assert "measured again: head, first move, match timed" in capsys.readouterr().err
    assert after["student"] == info.digest
    changed = {name for name in before["results"] if before["results"][name] != after["results"][name]}
    assert changed <= {"head", "first move", "match timed"}, "the new games may have ended like the old ones"
    assert (out / "matches" / "random.pdn").read_bytes() == games["random"]
    assert b"student=" in (out / "matches" / "timed.pdn").read_bytes()
    assert b"student=" not in games["timed"]


@pytest.mark.slow
def test_first_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]))
    levels: list[dict[str, float]] = []
    begin = HubPlayer.begin

    def noted(self: HubPlayer, *arguments: Any) -> Any:
        levels.append(self._level)
        return begin(self, *arguments)

    monkeypatch.setattr(HubPlayer, "begin", noted)
    figures = model_card.first_move(str(tmp_path / "net"), 0.2)
    assert levels == 2 * [{"move-time": 0.2}]
    assert figures["move_seconds"] == 0.2
    assert figures["seconds"] > 0.2


def test_a_ladder_of_an_older_program_is_shown_without_scores() -> None:
    """As on the champion's card."""
    line = {"player": "000055", "elo": 616.0, "elo_error": 101.0, "games": 400}
    table = ratings_table({"reference": "random", "ratings": [line], "steps": []}, "Ratings")  # type: ignore[typeddict-item]
    assert table.rows == [["000055", "616", "101", 400, ""]]
