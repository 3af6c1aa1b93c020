"""``crownhead ladder``: who meets whom, what is kept, and ratings that can be worked out by hand."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from programs import crownhead_here

from engine.files import StorageError
from engine.players.base import PlayerSpecError
from engine.players.spec import NetworkSpec
from learner.checkpoint import CheckpointError, save_checkpoint
from learner.network import NETWORKS, make_network
from learner.report import ReportError, evenly_spaced
from selfplay.games.openings import MatchError
from selfplay.matches.ladder import LadderPlayer, LadderResults, Standings, ladder_pairs
from selfplay.matches.ladder_commands import ladder_command
from selfplay.matches.pool import MatchPool
from selfplay.rating.elo import EloRating, PairingResult, Tally, elo_from_score, fit_elo
from selfplay.rating.ratings import Ratings
from selfplay.requests import LadderRequest, RequestError
from selfplay.run.config import make_config
from selfplay.run.figures import ratings_image
from selfplay.run.folder import Promotion, RunError, RunFolder, RunState


def player(name: str) -> LadderPlayer:
    return LadderPlayer(name, NetworkSpec(name), f"weights={name}" if name.isdigit() else "", name.isdigit())


NETWORKS_AND_ANCHORS = [player(name) for name in ("000001", "000004", "000007", "000009", "random", "alphabeta:2")]


# Who plays


def test_evenly_spaced_networks() -> None:
    names = [f"{number:06}" for number in range(11)]
    assert evenly_spaced(names, None) == evenly_spaced(names, 11) == evenly_spaced(names, 50) == names
    assert evenly_spaced(names, 2) == [names[0], names[-1]]
    assert evenly_spaced(names, 3) == [names[0], names[5], names[10]]
    for number in range(2, 12):
        chosen = evenly_spaced(names, number)
        assert len(set(chosen)) == number
        assert chosen == sorted(chosen)
        assert (chosen[0], chosen[-1]) == (names[0], names[-1])
        gaps = [int(b) - int(a) for a, b in pairwise(chosen)]
        assert max(gaps) - min(gaps) <= 1


def test_pairs() -> None:
    names = [(a.name, b.name) for a, b in ladder_pairs(NETWORKS_AND_ANCHORS, False)]
    neighbours = {("000004", "000001"), ("000007", "000004"), ("000009", "000007")}
    last = {("000009", "000001"), ("000009", "000004"), ("000009", "000007")}
    anchors = {(network.name, anchor) for network in NETWORKS_AND_ANCHORS[:4] for anchor in ("random", "alphabeta:2")}
    assert set(names) == neighbours | last | anchors
    assert len(names) == len(set(names))
    everybody = [frozenset((a.name, b.name)) for a, b in ladder_pairs(NETWORKS_AND_ANCHORS, True)]
    assert len(everybody) == len(set(everybody)) == 15
    assert ladder_pairs(NETWORKS_AND_ANCHORS[:1], True) == []


# Results on disk


def results(folder: Path, **settings: Any) -> LadderResults:
    return LadderResults(folder / "ladder.json", {"seed": 1, "openings": "random:3", **settings})


def test_results_are_kept(tmp_path: Path) -> None:
    table = results(tmp_path)
    for entry in NETWORKS_AND_ANCHORS:
        table.admit(entry)
    for index, score in ((3, 0.0), (0, 1.0), (1, 0.5), (4, 0.5), (6, 1.0)):
        table.add("000004", "000001", index, score)
    table.save()
    again = results(tmp_path)
    assert dict(again.scores("000004", "000001")) == {0: 1.0, 1: 0.5, 3: 0.0, 4: 0.5, 6: 1.0}
    assert again.scores("000004", "random") == {}
    tally = again.tally("000004", "000001", 6)
    assert (tally.pairs, tally.singles) == ([0, 0, 0, 1, 0], [1, 1, 0])  # one pair, and two games without their second
    assert again.tally("000004", "000001", 8).games == 5
    with pytest.raises(MatchError, match="another 000004"):
        again.admit(LadderPlayer("000004", NetworkSpec("x"), "weights=other", True))
    with pytest.raises(MatchError, match=r"games with seed 1, not 2: choose another --out"):
        results(tmp_path, seed=2)


def test_results_count_whichever_player_is_named_first(tmp_path: Path) -> None:
    """The game of the other colours takes the other number of the pair."""
    table = results(tmp_path)
    for index, score in ((0, 1.0), (1, 0.5), (3, 0.0)):
        table.add("a", "b", index, score)
    assert table.scores("b", "a") == {1: 0.0, 0: 0.5, 2: 1.0}
    turned, tally = table.tally("b", "a", 4), table.tally("a", "b", 4)
    assert (turned.wins, turned.draws, turned.losses) == (tally.losses, tally.draws, tally.wins) == (1, 1, 1)


def test_a_file_from_before_openings_had_digests_goes_on(tmp_path: Path) -> None:
    results(tmp_path).save()
    results(tmp_path, openings_digest="a").save()
    results(tmp_path, openings_digest="a")
    with pytest.raises(MatchError, match=r"games with openings_digest a, not b: choose another --out"):
        results(tmp_path, openings_digest="b")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    table = results(tmp_path)
    table.add("a", "b", 0, 1.0)
    table.save()
    path = tmp_path / "ladder.json"
    text = path.read_text()
    path.write_text(text.replace('"0": 1.0', '"0": 0.5'))
    with pytest.raises(MatchError, match="is damaged"):
        results(tmp_path)
    for cut in (0, 1, len(text) // 2, len(text) - 3):
        path.write_text(text[:cut])
        with pytest.raises(MatchError, match="is not a ladder"):
            results(tmp_path)


def test_nobody_is_told_to_remove_what_cannot_be_read(tmp_path: Path) -> None:
    """It may be sound: of another user, or on a disk that is away."""
    for name, read in (("ladder.json", results), ("elo.json", lambda folder: Ratings(folder / "elo.json"))):
        (tmp_path / name).mkdir()  # is no file that could be read, for any user
        with pytest.raises(StorageError, match=rf"cannot read .*{name}: ") as caught:
            read(tmp_path)
        assert "remove it" not in str(caught.value)


# Ratings


def standings(folder: Path, scores: dict[tuple[str, str], list[float]]) -> Standings:
    folder.mkdir(exist_ok=True)
    table = results(folder)
    names = list(dict.fromkeys(name for pair in scores for name in sorted(pair)))
    players = sorted((player(name) for name in names), key=lambda entry: (not entry.promoted, entry.name))
    for pair, points in scores.items():
        for index, score in enumerate(points):
            table.add(*pair, index, score)
    return Standings.of(players, {(a, b): table.tally(a, b, 1000) for a, b in scores})


def test_ratings_worked_out_by_hand(tmp_path: Path) -> None:
    """In a chain of players each step has its own score, (points + 1/2) / (games + 1), with one imagined draw."""
    scores = {("000002", "000001"): [1, 1, 1, 0.5] * 10, ("000003", "000002"): [1, 0.5, 0, 0.5] * 10}
    table = standings(tmp_path, scores)
    first = elo_from_score((35 + 0.5) / 41)
    figures = table.figures()
    assert figures["reference"] == "000001"
    ratings = {line["player"]: line["elo"] for line in figures["ratings"]}
    assert ratings == {"000001": 0.0, "000002": pytest.approx(first), "000003": pytest.approx(first)}
    step, level = table.steps()
    assert (step["network"], step["before"], step["verdict"]) == ("000002", "000001", "stronger")
    assert (level["network"], level["before"], level["verdict"]) == ("000003", "000002", "within the error")
    assert level["elo"] == pytest.approx(0, abs=1e-6)
    # The pairs of the first step have 2 and 1 1/2 points in turn: 10 and 10, and one spread over all five outcomes.
    weights = [0.2 / 21, 0.2 / 21, 0.2 / 21, 10.2 / 21, 10.2 / 21]
    mean = sum(weight * place / 2 for place, weight in enumerate(weights))
    variance = 20 * sum(weight * (place / 2 - mean) ** 2 for place, weight in enumerate(weights))
    score = (35 + 0.5) / 41
    spread = variance + score * (1 - score)  # and the imagined draw
    per_nat = elo_from_score(10 / 11) / 2.302585093
    expected = 1.959964 * per_nat * spread**0.5 / (41 * score * (1 - score))
    assert step["elo_error"] == pytest.approx(expected)
    climb = table.climb()
    assert climb is not None
    assert climb["elo"] == pytest.approx(first)
    assert climb["elo_error"] == pytest.approx((step["elo_error"] ** 2 + level["elo_error"] ** 2) ** 0.5)
    assert figures["climb"]["verdict"] == climb["verdict"] == "stronger"
    assert list(table.against("000002")) == [("000001", 30, 10, 0), ("000003", 10, 20, 10)]
    weaker = standings(tmp_path / "other", {("000002", "000001"): [0, 0, 0.5, 0] * 10})
    assert weaker.steps()[0]["verdict"] == "weaker"


def test_what_is_common_to_two_players_is_no_doubt_between_them() -> None:
    """The difference of two networks far above the anchor has a smaller error than either rating."""
    close = Tally(pairs=[5, 10, 20, 10, 5], losses=20, draws=60, wins=20)
    far = Tally(pairs=[0, 0, 0, 1, 9], losses=0, draws=1, wins=19)
    fit = fit_elo([("a", "b", close), ("a", "anchor", far), ("b", "anchor", far)], {"anchor": 0.0})
    errors = {line.player: line.error for line in fit.table}
    difference, error = fit.difference("a", "b")
    assert difference == pytest.approx(0, abs=1e-6)
    assert error < 0.7 * errors["a"]
    assert fit.difference("a", "anchor")[1] == pytest.approx(errors["a"])
    assert fit.difference("b", "a") == pytest.approx((-difference, error), abs=1e-6)


def test_names_with_dollars_are_no_formulas() -> None:
    """They ended a ladder after its last game, without a report."""
    name = r"a$\frac$b"
    table = [EloRating("000001", 0.0, 1.0, 2, 0.5), EloRating(name, 9.0, 1.0, 2, 0.5)]
    assert ratings_image(table, name, {"000001": 1.0}, name, name).startswith(b"\x89PNG")


def test_a_table_without_anchors_begins_with_the_oldest_network_it_knows(tmp_path: Path) -> None:
    """Also where the table of a run was removed, because it was damaged."""
    ratings = Ratings(tmp_path / "elo.json")
    ratings.add(PairingResult("000007", "000006", 5, 5, 0))
    ratings.save()
    assert Ratings(tmp_path / "elo.json").reference == "000006"
    assert {line.player: line.rating for line in ratings.table()}["000006"] == 0


def test_the_opponent_of_all_games_is_no_anchor(tmp_path: Path) -> None:
    """Else the ratings of a run against one network jumped at each gate, until the anchors were met again."""
    ratings = Ratings(tmp_path / "elo.json")
    ratings.add(PairingResult("000001", "opponent", 0, 1, 3))
    assert ratings.reference == "opponent"
    ratings.add(PairingResult("000001", "random", 3, 0, 1))
    ratings.add(PairingResult("000002", "opponent", 1, 0, 3))
    assert ratings.reference == "random"


def test_players_without_a_link_to_the_reference_have_no_rating_yet(tmp_path: Path) -> None:
    """In the table that a run against one network began anew, the next gate was an error at each --resume."""
    ratings = Ratings(tmp_path / "elo.json")
    ratings.add(PairingResult("000002", "random", 3, 0, 1))
    ratings.add(PairingResult("000003", "opponent", 1, 0, 3))
    ratings.save()
    assert {line.player for line in Ratings(tmp_path / "elo.json").table()} == {"000002", "random"}
    ratings.add(PairingResult("000003", "random", 4, 0, 0))
    assert {line.player for line in ratings.table()} == {"000002", "000003", "opponent", "random"}


@pytest.mark.parametrize("anchors", [(), ("random", "rollout:200")])
def test_rejected_candidates_are_rated_as_in_a_fit_of_all(
    tmp_path: Path, anchors: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a fit takes minutes with thousands of them, at each gate."""
    rng, ratings, best = np.random.default_rng(1), Ratings(tmp_path / "elo.json"), "000000"
    for number in range(1, 42):
        ratings.add(PairingResult(name := f"{number:06d}", best, *map(int, rng.multinomial(60, [0.4, 0.3, 0.3]))))
        if number % 10 == 0:
            best = name
            for anchor in anchors:
                ratings.add(PairingResult(best, anchor, *map(int, rng.multinomial(20, [0.7, 0.2, 0.1]))))
    tallies = [(one.player_a, one.player_b, Tally.of_games(*one[2:])) for one in ratings.results]
    expected = {line.player: line for line in fit_elo(tallies, {ratings.reference: 0.0}).table}
    fitted = list[str]()

    def watched(some: Any, fixed: Any) -> Any:
        fitted.extend(name for tally in some for name in tally[:2])
        return fit_elo(some, fixed)

    monkeypatch.setattr("selfplay.rating.ratings.fit_elo", watched)
    table = {line.player: line for line in ratings.table()}
    assert table.keys() == expected.keys()
    for name, line in table.items():
        assert line[1:] == pytest.approx(expected[name][1:], rel=1e-6, abs=1e-5)
    assert len(set(fitted)) <= 5 + len(anchors), "promoted networks and anchors"


# The command


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with three promoted networks, of which none plays well."""
    folder = RunFolder.create(tmp_path / "run", make_config("smoke", []))
    names = ("000001", "000003", "000004")
    for seed, name in enumerate(("000000", *names)):
        torch.manual_seed(seed)
        save_checkpoint(folder.checkpoint(name), make_network(NETWORKS["tiny"]), {"steps": 0})
    promotions = [
        Promotion(checkpoint=name, iteration=number, steps=number, minutes=float(number))
        for number, name in enumerate(names, 1)
    ]
    folder.write_state(RunState(iteration=4, best=names[-1], promotions=tuple(promotions)))
    return folder


def test_a_network_that_a_copied_run_lacks_is_named(run: RunFolder) -> None:
    """The message said that its folder was no player, and which players there are."""
    shutil.rmtree(run.checkpoint("000003"))
    with pytest.raises(CheckpointError, match=r"000003/checkpoint\.json: No such file"):
        ladder_command(LadderRequest(run.path, 2), True)


def ladder(run: RunFolder, games: int = 2, **options: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"anchors": "random", "simulations": 2, "openings": "random:24", "jobs": 1, **options}
    quiet = given.pop("quiet", True)
    return ladder_command(LadderRequest(run.path, games, **given), quiet)


def test_a_page_of_something_else_is_not_replaced(run: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("report.html", "report.json"):
        (out / name).write_text("of somebody else")
        with pytest.raises(ReportError, match=f"holds a {name} of something else; choose another folder"):
            ladder(run, out=out)
        assert [(path.name, path.read_text()) for path in out.iterdir()] == [(name, "of somebody else")]
        (out / name).unlink()
    (out / "report.md").write_text("# Another\n")
    with pytest.raises(ReportError, match="holds the report “Another”; choose another folder"):
        ladder(run, out=out)


def test_commas_of_a_command_stand_in_quotes(tmp_path: Path) -> None:
    def anchors(text: str) -> list[str]:
        return [spec.text for spec in LadderRequest(tmp_path, anchors=text).fixed]

    assert anchors(" random, alphabeta:4,,rules ") == ["random", "alphabeta:4", "rules"]
    assert anchors("""hub:prog -x "a,b" 'c,d',random""") == ["""hub:prog -x "a,b" 'c,d'""", "random"]
    assert anchors("Ann's,Bob's, hub:one,hub:two") == ["Ann's", "Bob's", "hub:one", "hub:two"]
    assert anchors("") == []
    with pytest.raises(PlayerSpecError, match="No closing quotation"):
        anchors('random,hub:prog "a,b')


def test_a_ladder_tells_what_a_match_tells(run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.fen").write_text("B:W32:B5\n")
    one = f"file:{tmp_path / 'one.fen'}"
    ladder(run, games=4, openings=one, out=tmp_path / "a", quiet=False)
    said = capsys.readouterr().err
    assert "openings of 2 pairs: 1; players repeat games" in said
    assert "ignores time limits" not in said
    ladder(run, networks=2, simulations=None, seconds=0.01, openings=one, out=tmp_path / "b", quiet=False)
    said = capsys.readouterr().err
    assert said.count("random ignores time limits") == 1
    assert "repeat games" not in said


def test_a_ladder_of_simulations(run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network, out = run.checkpoint("000004"), tmp_path / "doublings"
    options: dict[str, Any] = {
        "doublings": 2,
        "simulations": 3,
        "everybody": True,
        "anchors": "",
        "openings": "random:2",
    }
    figures = ladder(RunFolder(network), out=out, quiet=False, **options)
    assert figures["reference"] == "3"
    assert [(step["network"], step["before"]) for step in figures["steps"]] == [("6", "3"), ("12", "6")]
    kept = json.loads((out / "ladder.json").read_text())
    search = "policy_temperature=2 shot_prior=0.3 draw_value=-0.3 contempt_lead=0.1 transpositions=1"
    assert kept["players"]["12"].startswith(f"simulations=12 oracle=tablebase {search} weights=")
    text = (out / "report.md").read_text()
    assert "000004 over simulations per move" in text
    assert "networks oracle=tablebase" in text
    with pytest.raises(RequestError, match="leave --seconds and --networks out"):
        ladder(run, doublings=2, simulations=None, seconds=0.1)
    with pytest.raises(RunError, match="holds no run; for the ladder of a single network give --doublings"):
        ladder(RunFolder(network))


def test_a_ladder(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    figures = ladder(run, quiet=False)
    assert set(figures) == {"run", "out", "reference", "games", "ratings", "pairings", "steps", "climb", "errors"}
    assert figures["reference"] == "000001"
    pairings = {(entry["player_a"], entry["player_b"]): entry for entry in figures["pairings"]}
    assert set(pairings) == {
        ("000003", "000001"),
        ("000004", "000003"),
        ("000004", "000001"),
        ("000001", "random"),
        ("000003", "random"),
        ("000004", "random"),
    }
    assert figures["games"] == 12
    assert all(entry["games"] == 2 == entry["wins"] + entry["draws"] + entry["losses"] for entry in pairings.values())
    assert {line["player"] for line in figures["ratings"]} == {"000001", "000003", "000004", "random"}
    assert [(step["network"], step["before"]) for step in figures["steps"]] == [
        ("000003", "000001"),
        ("000004", "000003"),
    ]
    assert all(step["verdict"] in ("stronger", "within the error", "weaker") for step in figures["steps"])
    folder = run.path / "ladder"
    assert {path.name for path in folder.iterdir()} == {
        "ladder.json",
        "ladder.png",
        "report.html",
        "report.json",
        "report.md",
    }
    assert json.loads((folder / "report.json").read_text()) == figures
    text = (folder / "report.md").read_text()
    against = pairings["000004", "random"]
    assert "000004 against all others" in text
    row = next(line for line in text.splitlines() if line.startswith("| random | ") and "=" in line)
    assert f"+{against['losses']} ={against['draws']} −{against['wins']}" in row
    said = capsys.readouterr().out
    assert "000004" in said
    assert "Stronger than the one before: " in said


def test_a_ladder_goes_on(run: RunFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fixed = {"anchors": str(run.checkpoint("000000"))}  # it answers from the board alone
    whole = ladder(run, out=tmp_path / "whole", **fixed)
    plain, played = MatchPool.play, []

    def interrupted(self: MatchPool, tasks: Any) -> Any:
        for number, (task, game) in enumerate(plain(self, tasks)):
            if number == 5:
                raise KeyboardInterrupt
            played.append(game)
            yield task, game

    monkeypatch.setattr(MatchPool, "play", interrupted)
    with pytest.raises(KeyboardInterrupt, match="5 of 12 games are kept; the same command goes on"):
        ladder(run, **fixed)
    counted: list[int] = []

    def counting(self: MatchPool, tasks: Any) -> Any:
        counted.append(sum(len(task.starts) for task in tasks))
        return plain(self, tasks)

    monkeypatch.setattr(MatchPool, "play", counting)
    figures = ladder(run, **fixed)
    assert counted == [7]
    assert {**figures, "out": ""} == {**whole, "out": ""}
    assert ladder(run, **fixed) == figures
    assert counted == [7, 0]
    assert ladder(run, everybody=True, anchors=f"{fixed['anchors']},random", games=4)["games"] == 40
    assert counted[-1] == 40 - 12
    smaller = ladder(run, networks=2, **fixed)
    assert [step["network"] for step in smaller["steps"]] == ["000004"]
    assert counted[-1] == 0, "what has been played is there"
    with pytest.raises(MatchError, match="choose another --out"):
        ladder(run, seed=2)
    with pytest.raises(MatchError, match="another 000001"):
        ladder(run, simulations=3)


def test_a_ladder_does_not_go_on_with_other_openings(run: RunFolder, tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("W:WK32:BK1\n")
    given: dict[str, Any] = {"openings": f"file:{book}", "networks": 2}
    figures = ladder(run, **given)
    assert ladder(run, **given) == figures
    book.write_text("B:WK32:BK1\n")
    with pytest.raises(MatchError, match="has games with openings_digest"):
        ladder(run, **given)


def test_what_a_ladder_cannot_do(run: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nobody"):
        ladder(run, anchors="random,nobody")
    with pytest.raises(RunError, match="holds no run"):
        ladder(RunFolder(tmp_path / "nowhere"))
    run.write_state(RunState())
    with pytest.raises(RunError, match="promoted no network yet"):
        ladder(run)
    run.write_state(RunState(promotions=(Promotion(checkpoint="000003", iteration=1, steps=1, minutes=1.0),)))
    with pytest.raises(MatchError, match="000003 is alone on the ladder"):
        ladder(run, anchors="")
    assert not (run.path / "ladder").exists()
    alone = ladder(run, anchors="random")
    assert (alone["climb"], alone["steps"]) == (None, [])


@pytest.mark.filterwarnings("error:constrained_layout")
def test_from_the_command_line(run: RunFolder, tmp_path: Path) -> None:
    def crownhead(*arguments: object) -> dict[str, Any]:
        done = crownhead_here(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    out = tmp_path / "out"
    given = ("--games", 2, "--anchors", f"{run.checkpoint('000000')}@off", "--networks", 2, "--simulations", 0)
    figures = crownhead("ladder", run.path, *given, "--openings", "random:34", "--jobs", 1, "--out", out)
    assert (figures["out"], figures["games"]) == (str(out), 6)
    assert (out / "report.html").exists()
    pdn = tmp_path / "games.pdn"
    given = ("--games", 2, "--clock", "9+0.5", "--sprt", "0,5", "--pdn", pdn, "--openings", "random:9", "--jobs", 1)
    figures = crownhead("match", "random", "random", *given, "--resume")
    assert (figures["games"], figures["sprt"]["decision"], figures["kept"]) == (2, None, 0)
    assert pdn.exists()
