"""``crownhead match``: files of games that can be continued, early ends, openings from files, time limits."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from programs import ROOT, crownhead_program, wait_until

from engine.ballots import playable_ballots
from engine.board import Board
from engine.claims import FileInUseError, claimed
from engine.errors import PdnError
from engine.files import StorageError
from engine.pdn import PdnGame, read_games
from engine.players import EngineError, HubPlayer, parse_player
from engine.players.base import PlayerError
from engine.players.time_control import TimeControl
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.conditions import Conditions
from selfplay.games.openings import MatchError, make_openings
from selfplay.matches.commands import choose_jobs, match_command, settings_of
from selfplay.matches.record import FLAG, MatchGame, MatchResult, MoveNote
from selfplay.matches.steady_file import SteadyFile
from selfplay.matches.tasks import Pairing
from selfplay.players import checkpoint_folder
from selfplay.rating.gate import log_likelihood_ratio
from selfplay.rating.sprt import Sprt
from selfplay.requests import MatchRequest, RequestError
from selfplay.run.config import PRESETS, make_config

RULES = {"NO_MOVES", "REPETITION", "REVERSIBLE_PLIES"}


def match(player_a: str = "random", player_b: str = "rollout:4", games: int = 6, **options: Any) -> dict[str, Any]:
    quiet = options.pop("quiet", True)
    given: dict[str, Any] = {"openings": "random:4", "jobs": 1, **options}
    return match_command(MatchRequest(player_a, player_b, games, **given), quiet)


def games_of(path: Path) -> list[PdnGame]:
    return list(read_games(path.read_text()))


def moves_of(path: Path) -> list[list[str]]:
    return [[str(node.move) for node in game.moves] for game in games_of(path)]


# Files


def test_a_late_write_that_fails_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that was full for a moment does not end what writes again."""

    def full(*_: object) -> None:
        raise StorageError(28, "no room")

    file = SteadyFile(tmp_path / "file", lambda: b"content")
    file._next = time.monotonic() + 0.5  # the next writing is late
    with monkeypatch.context() as patch:
        patch.setattr("selfplay.matches.steady_file.atomic_write", full)
        file.changed()
        wait_until(lambda: file._failure is not None)
    with pytest.raises(StorageError, match="no room"):
        file.changed()
    file.changed()
    file.write()
    assert file.path.read_bytes() == b"content"


def test_a_match_goes_on_after_any_game(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.pdn", tmp_path / "part.pdn"
    figures = match(pdn=whole)
    keys = ["player_a", "player_b", "games", "wins", "draws", "losses", "score", "elo", "elo_error", "errors"]
    assert list(figures) == keys
    texts = [text + "\n" for text in whole.read_text().split("\n\n[")]
    texts = [texts[0], *("[" + text for text in texts[1:])]
    assert len(texts) == 6
    for kept in range(7):
        part.write_text("\n".join(texts[:kept]))
        assert match(pdn=part, resume=True) == {**figures, "kept": kept}
        assert part.read_text() == whole.read_text()
    part.write_text("\n".join(texts[index] for index in (4, 1, 2)))  # as several processes may leave it
    assert match(pdn=part, resume=True, jobs=2) == {**figures, "kept": 3}
    assert part.read_text() == whole.read_text()
    assert match("random", "rollout:04", pdn=part, resume=True)["kept"] == 6, "the same player"
    part.unlink()
    assert match(pdn=part, resume=True)["kept"] == 0
    longer = match(pdn=part, resume=True, games=8)  # a match may become longer
    assert (longer["games"], longer["kept"]) == (8, 6)
    assert part.read_text().startswith(whole.read_text())
    assert list(tmp_path.iterdir()) == [whole, part] or set(tmp_path.iterdir()) == {whole, part}


def test_a_game_that_was_cut_short_is_played_again(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.pdn", tmp_path / "part.pdn"
    figures = match(pdn=whole)
    text = whole.read_text()
    last = text.rindex("[Event")
    for cut in range(text.index("1. ", last), len(text) - 4, 97):
        part.write_text(text[:cut])
        assert match(pdn=part, resume=True) == {**figures, "kept": 5}
        assert part.read_text() == text
    part.write_text(text[: text.index("1. ") + 20] + "\n\n" + text[text.index("[Event", 9) :])  # not the last one
    assert match(pdn=part, resume=True) == {**figures, "kept": 5}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 2}, "Seed is '1', not '2'"),
        ({"player_a": "rollout:3"}, "Event is"),
        ({"openings": "ballots"}, "Openings is 'random:4', not 'ballots'"),
        ({"games": 4}, "it has games beyond --games 4; give --games 6"),
        ({"clock": "60+1"}, "TimeControl is '-', not '60[+]1'"),
    ],
)
def test_another_match_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = tmp_path / "games.pdn"
    match(pdn=path)
    text = path.read_text()
    with pytest.raises(MatchError, match=rf"games\.pdn cannot be resumed: (game [15]: )?.*{words}") as caught:
        match(**{"pdn": path, "resume": True, **changes})
    assert "\n" not in str(caught.value)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('[Round "1.2"]', '[Round "?"]', "Round is"),
        ('[Round "1.2"]', f'[Round "{"9" * 5000}.2"]', "Round is"),  # more digits than Python reads
        ('[Black "random"]', '[Black "me"]', "Black is 'me', not 'random'"),
        ("1. ", "1. 99-98 ", "line"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "games.pdn"
    match(pdn=path, games=4)
    text = path.read_text().replace(old, new, 1)
    path.write_text(text)
    with pytest.raises(MatchError, match=f"cannot be resumed: .*{words}"):
        match(pdn=path, games=4, resume=True)
    assert path.read_text() == text
    path.unlink()
    match(pdn=path, games=4)
    path.write_text(path.read_text() + "\n" + path.read_text())
    with pytest.raises(MatchError, match=r"game 5: round 1\.1 is there twice"):
        match(pdn=path, games=4, resume=True)
    path.write_text("Dear diary, today I played a game.\n")
    with pytest.raises(MatchError, match="cannot be resumed"):
        match(pdn=path, games=4, resume=True)
    assert path.read_text().startswith("Dear diary")
    for notes in ('{"games": [1, 2]}\n', "; notes on the match\n"):  # comments in PDN
        path.write_text(notes)
        with pytest.raises(MatchError, match="cannot be resumed: it holds something else than games"):
            match(pdn=path, games=4, resume=True)
        assert path.read_text() == notes
    path.write_text("\n")
    assert match(pdn=path, games=4, resume=True)["kept"] == 0


def test_another_network_under_the_same_name_is_refused(tmp_path: Path) -> None:
    path, folder = tmp_path / "games.pdn", tmp_path / "net"
    for seed in (0, 1):
        torch.manual_seed(seed)
        save_checkpoint(folder, make_network(NETWORKS["tiny"]), {"steps": 0})
        options: dict[str, Any] = {"games": 2, "simulations": 2, "openings": "random:30", "pdn": path}
        if seed == 0:
            match(f"{folder}@off", "random", **options)
            (first, second) = games_of(path)
            settings = first.headers["BlackSettings"]
            search = "policy_temperature=2 shot_prior=0.3 draw_value=-0.3 contempt_lead=0.1 transpositions=1"
            assert settings.startswith(f"simulations=2 oracle=off {search} weights=")
            assert second.headers["WhiteSettings"] == settings
            assert match(f"{folder}@off", "random", **options, resume=True)["kept"] == 2
        else:
            with pytest.raises(MatchError, match="BlackSettings is"):
                match(f"{folder}@off", "random", **options, resume=True)


def test_games_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    path.touch()  # an empty file holds nothing to lose
    match("alphabeta:1", "random", games=2, pdn=path)
    text = path.read_text()
    with pytest.raises(RequestError, match=r"games\.pdn exists already: .*--resume"):
        match("alphabeta:1", "random", games=2, pdn=path)
    assert path.read_text() == text


def test_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    match("alphabeta:3", "random", games=2, seed=7, pdn=path)
    for number, game in enumerate(games_of(path), 1):
        tags = game.headers
        assert (tags["Seed"], tags["TimeControl"], tags["Openings"]) == ("7", "-", "random:4")
        assert tags["Round"] == f"1.{number}"
        assert tags["Termination"] in RULES
        comments = [" ".join(node.comments) for node in game.moves]
        assert comments[:4] == [""] * 4
        own = comments[4 + (number == 2) :: 2]
        assert sum("[%eval" in comment for comment in own) > len(own) / 3
        assert "%emt" not in "".join(comments), "no time was taken"
        again = MatchGame.from_pdn(game, number - 1, number == 1)
        assert any(note.value is not None for note in again.notes)
        assert again.result == game.result


def test_clocks_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    match("alphabeta:5", "random", games=1, clock="20+0.5", openings="random:30", pdn=path)
    (game,) = games_of(path)
    assert game.headers["TimeControl"] == "20+0.5"
    later = game.moves[30:]
    assert all(node.clock is not None and 0 < node.clock < 60 for node in later)
    assert sum(node.elapsed is not None for node in later) >= len(later) / 3
    note = MoveNote(3725.04, 59.9999, -0.25)
    assert note.comment() == "[%clk 0:01:00.000] [%emt 1:02:05.040] [%eval -0.250]"
    game.moves[0].comments = [note.comment()]
    assert MoveNote.of(game.moves[0]) == MoveNote(3725.04, 60.0, -0.25)


def test_late_moves_are_counted_for_who_made_them() -> None:
    (opening,) = make_openings("random:2", 1, 1)
    board = opening.board.copy()
    notes = [MoveNote(), MoveNote()]
    for seconds in (0.2, 0.104, 0.106, None, 0.1051, 0.1):  # Black, White, Black, ...
        board.push(board.legal_moves[0])
        notes.append(MoveNote(seconds))
    moves = tuple(board.move_stack)
    game = MatchGame(1, "", "b", "a", False, board.start_fen, moves, None, "PLY_CAP", notes=tuple(notes))
    first, second = MatchResult("a", "b", (game,)).punctuality(0.1)
    assert first == {"player": "a", "moves": 2, "late": 0, "worst_s": 0.004}
    assert second == {"player": "b", "moves": 3, "late": 3, "worst_s": 0.1}
    first, second = MatchResult("a", "b", (game,)).punctuality(0.102)
    assert (first["late"], second["late"]) == (0, 1), "5 ms of a tenth of a second are never late, nor 5 %"


def test_a_match_with_a_time_says_how_it_was_kept() -> None:
    figures = match("alphabeta:4", "random", games=2, seconds=0.01)
    names, moves = zip(*((kept["player"], kept["moves"]) for kept in figures["punctuality"]), strict=True)
    assert names == ("alphabeta:4", "random")
    assert min(moves) > 0


def test_a_flag_falls(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    figures = match("random", "rollout:30000", games=2, clock="0.2", pdn=path)
    assert figures["wins"] == 2
    for game in games_of(path):
        assert game.headers["Termination"] == FLAG
        assert "loses on time" in " ".join(game.moves[-1].comments)
    assert match("random", "rollout:30000", games=2, clock="0.2", pdn=path, resume=True)["kept"] == 2


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_games_outlive_the_program(tmp_path: Path, end: signal.Signals) -> None:
    path = tmp_path / "games.pdn"
    command = crownhead_program("match", "rollout:30", "random", "--games", 4000, "--pdn", path, "--jobs", 2)
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, process_group=0)
    try:
        wait_until(lambda: path.exists() and path.read_text().count("[Event") >= 3, process)
        os.killpg(process.pid, end) if end is signal.SIGINT else process.send_signal(end)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    rounds = [game.headers["Round"].split(".") for game in games_of(path)]
    kept = len(rounds)
    assert 3 <= kept < 4000
    if end is signal.SIGINT:
        assert process.returncode == 130
        words = f"{kept} of 4000 games are in {path}; the same command with --resume goes on"
        assert said.strip() == f"crownhead: interrupted: {words}"
    games = max(2 * int(pair) for pair, _ in rounds)
    figures = match("rollout:30", "random", games=games, openings="ballots", pdn=path, resume=True)
    assert (figures["kept"], figures["games"]) == (kept, games)


@pytest.mark.skipif(os.name == "nt", reason="names of files have no line breaks there")
def test_a_name_that_is_no_tag_is_told_before_any_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openings = tmp_path / "two\nlines"
    openings.write_text("B:W21-32:B1-12\n")
    monkeypatch.setattr("selfplay.matches.commands.open_pool", lambda *_: pytest.fail("a game was played"))
    with pytest.raises(PdnError, match="tag Openings: the value must not hold a line break"):
        match(openings=f"file:{openings}", pdn=tmp_path / "games.pdn")


# The sequential test


def test_sprt_ends_a_match(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    figures = match("alphabeta:2", "random", games=200, sprt="0,100", pdn=path, jobs=2)
    test = figures["sprt"]
    assert test["decision"] == "H1"
    assert figures["games"] == 2 * test["pairs"] == len(games_of(path)) < 200
    assert (test["lower"], test["upper"]) == (pytest.approx(-2.944, abs=0.001), pytest.approx(2.944, abs=0.001))
    assert test["llr"] >= test["upper"]
    other = match("random", "alphabeta:2", games=200, sprt="0,100")["sprt"]
    assert other["decision"] == "H0"
    assert other["llr"] <= other["lower"]
    short = match("random", "random", games=4, sprt="0,5")
    assert short["sprt"]["decision"] is None
    assert short["games"] == 4


def test_a_decision_takes_no_games_away_that_were_there(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    match("alphabeta:2", "random", games=20, pdn=path)
    before = moves_of(path)
    figures = match("alphabeta:2", "random", games=20, pdn=path, resume=True, sprt="-100,100")
    assert figures["sprt"]["decision"] == "H1"
    assert figures["games"] < 20 == len(before)
    assert moves_of(path) == before


def test_two_matches_never_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "games.pdn"
    with claimed(path), pytest.raises(FileInUseError, match=r"games\.pdn is in use by another process"):
        match(pdn=path)
    assert list(tmp_path.iterdir()) == []
    hold = f"from engine.claims import claimed; claim = claimed(Path({str(path)!r})); claim.__enter__()"
    killed = f"import os; from pathlib import Path; {hold}; os._exit(1)"
    subprocess.run([sys.executable, "-c", killed], cwd=ROOT, check=False)
    assert [left.name for left in tmp_path.iterdir()] == [".games.pdn.lock"]  # it holds nothing any more
    match(games=1, pdn=path)
    assert list(tmp_path.iterdir()) == [path]


def test_sprt_counts_pairs_in_order_and_stands_by_its_word() -> None:
    test = Sprt.parse("-5, 12.5")
    assert (test.elo0, test.elo1) == (-5, 12.5)
    counts = [0] * 5
    results = [(1, 1), (1, 0.5), (0.5, 0.5), (1, 0.5)] * 100
    for pair in results:
        counts[int(2 * sum(pair))] += 1
        decision = test.add(*pair)
        llr = log_likelihood_ratio(counts, -5, 12.5)
        assert test.llr == pytest.approx(llr)
        assert (decision == "H1") == (llr >= test.bounds[1])
        if decision:
            break
    assert sum(counts) < 100
    for _ in range(50):
        assert test.add(0, 0) == "H1"
    assert sum(test.tally.pairs) == sum(counts)
    assert str(test).startswith("SPRT -5,12.5: LLR ")
    assert "accepted: +12.5 Elo rather than -5" in str(test)


@pytest.mark.parametrize("text", ["", "5", "5,", "10,0", "0,0", "a,b", "0,10,20", "0,5000", "nan,5"])
def test_nonsense_is_no_sprt(text: str) -> None:
    with pytest.raises(MatchError, match="sprt: "):
        Sprt.parse(text)


# Openings


def test_openings_of_a_file_of_fens(tmp_path: Path) -> None:
    path = tmp_path / "set:ups.txt"
    path.write_text("# won endings\n\nB:WK10,K11:BK30\n  W:W30:B1,2\n")
    drawn = make_openings(f"file:{path}", 5, 0)
    assert [opening.board.fen() for opening in drawn] == [
        Board(fen).fen() for fen in ("B:WK10,K11:BK30", "W:W30:B1,2") * 2 + ("B:WK10,K11:BK30",)
    ]
    assert [opening.name for opening in drawn[:3]] == ["set:ups.txt 1", "set:ups.txt 2", "set:ups.txt 1"]


def test_positions_have_no_first_plies(tmp_path: Path) -> None:
    path = tmp_path / "setups.txt"
    path.write_text("B:WK10,K11:BK30\n")
    with pytest.raises(MatchError, match=r"setups.txt: positions, which have no first 4 plies: leave out :4"):
        make_openings(f"file:{path}:4", 2, 0)


def test_openings_of_a_file_of_games(tmp_path: Path) -> None:
    path = tmp_path / "book.pdn"
    book = '[Event "a"]\n\n1. 11-15 23-19 2. 8-11 22-17 3. 4-8 17-13 4. 15-18 *\n\n'
    path.write_text(book + '[Event "b"]\n[Result "1-0"]\n\n1. 10-14 24-20 2. 6-10 28-24 3. 1-6 23-19 4. 11-16 1-0\n')
    assert [opening.board.ply for opening in make_openings(f"file:{path}", 2, 0)] == [7, 6]
    shorter = make_openings(f"file:{path}:3", 2, 0)
    assert [[str(move) for move in opening.board.move_stack] for opening in shorter] == [
        ["11-15", "23-19", "8-11"],
        ["10-14", "24-20", "6-10"],
    ]
    pdn = tmp_path / "games.pdn"
    match(games=4, openings=f"file:{path}", pdn=pdn)
    assert [moves[:6] for moves in moves_of(pdn)[2:]] == [["10-14", "24-20", "6-10", "28-24", "1-6", "23-19"]] * 2
    assert match(games=4, openings=f"file:{path}", pdn=pdn, resume=True)["kept"] == 4
    path.write_text(book)  # the second pair's opening has become another
    with pytest.raises(MatchError, match=r"cannot be resumed: game 3: it does not begin with book\.pdn 1"):
        match(games=4, openings=f"file:{path}", pdn=pdn, resume=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there are none"),
        ("B:WK10,K11:BK30\nB:W40:B1\n", "line 2: .*40"),
        ("B:W1:B32\nB:WK1:B\n", "in number .* the game is over|line"),
        ("B:W21:B1\nW:W21:B\n", "in number 2 the game is over"),
        ("1. 11-15 23-19 2. 8-12", "line 1, column"),
    ],
)
def test_a_bad_file_of_openings(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "book"
    path.write_text(text)
    with pytest.raises(MatchError, match=words) as caught:
        make_openings(f"file:{path}", 2, 0)
    assert str(path) in str(caught.value)
    with pytest.raises(OSError, match=r"cannot read .*nothing"):
        make_openings(f"file:{tmp_path}/nothing", 2, 0)


# Limits


def test_limits_that_make_no_difference_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    match("random", "alphabeta:1", games=1, seconds=0.01, openings="random:30", quiet=False)
    said = capsys.readouterr().err
    assert "random ignores time limits" in said
    assert "alphabeta" not in said
    match("random", "alphabeta:1", games=1, quiet=False)
    assert "ignores time limits" not in capsys.readouterr().err
    match("random", "random", games=1, seconds=0.01, quiet=False)
    assert capsys.readouterr().err.count("ignores time limits") == 1


def test_a_number_that_a_time_overrides_and_games_that_repeat_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    net = str(tmp_path / "net")
    save_checkpoint(net, make_network(NETWORKS["tiny"]))
    (tmp_path / "one.fen").write_text("B:W32:B5\n")
    openings, twice = f"file:{tmp_path / 'one.fen'}", "openings of 2 pairs: 1; players repeat games"
    match(f"{net}@5@off", "random", games=1, seconds=0.01, openings=openings, quiet=False)
    assert capsys.readouterr().err.count("@5@off: time alone limits its search, 5 is ignored") == 1
    match(f"{net}@5@off", f"{net}@3@off", games=4, openings=openings, quiet=False)
    said = capsys.readouterr().err
    assert "is ignored" not in said
    assert twice in said
    for other, games in ((f"{net}@3@off", 2), ("rollout:4", 4)):
        match(f"{net}@5@off", other, games=games, openings=openings, quiet=False)
        assert "openings" not in capsys.readouterr().err


def test_no_gate_plays_its_games_twice() -> None:
    assert all(make_config(name).gate.max_games <= 2 * len(playable_ballots()) for name in PRESETS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seconds": 1.0, "clock": "60"}, "--seconds or --clock, not both"),
        ({"simulations": 5, "seconds": 1.0}, "--simulations or --seconds, not both"),
        ({"simulations": 5, "seconds": 1.0, "clock": "1+1"}, "one of --simulations, --seconds, --clock"),
        ({"clock": "1/5"}, "clock '1/5': write seconds and increment"),
        ({"clock": "-"}, "clock '-': write seconds and increment"),
        ({"clock": "soon"}, "clock 'soon': write seconds and increment"),
        ({"resume": True}, "name it with --pdn"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        match(**options)


def test_how_many_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selfplay.machines.threads.num_cores", lambda: 8)
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]), {"steps": 0})
    timed = TimeControl("move", 1.0)
    net, random, external, ponders = (
        parse_player(text)
        for text in (str(tmp_path / "net"), "random", f"hub:{sys.executable}", f"{tmp_path / 'net'}@ponder")
    )
    assert settings_of(random, Conditions()) == settings_of(external, Conditions()) == ""
    assert "weights=" in settings_of(net, Conditions())
    assert choose_jobs(None, Pairing(net, random), 100) == 1
    assert choose_jobs(3, Pairing(net, random), 100) == 3
    assert choose_jobs(None, Pairing(net, random, timed), 100) == 8
    assert choose_jobs(None, Pairing(net, external), 100) == 8
    assert choose_jobs(None, Pairing(random, random), 100) == 8
    assert choose_jobs(None, Pairing(random, random), 3) == 3
    assert choose_jobs(None, Pairing(random, random), 0) == 1
    assert choose_jobs(None, Pairing(net, ponders, timed), 100) == 4
    assert choose_jobs(None, Pairing(ponders, ponders, timed), 100) == 4
    assert choose_jobs(None, None, 100) == 8
    assert choose_jobs(None, None, 100, (net, ponders)) == 4


def test_a_clock_reaches_an_external_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clocks: list[tuple[float, float]] = []
    plain = HubPlayer.set_clock

    def noted(self: HubPlayer, remaining_s: float, increment_s: float) -> None:
        clocks.append((remaining_s, increment_s))
        plain(self, remaining_s, increment_s)

    monkeypatch.setattr(HubPlayer, "set_clock", noted)
    log = tmp_path / "log"
    script = tmp_path / "engine.py"
    script.write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        f"    open({str(log)!r}, 'a').write(line)\n"
        "    said = {'hub': 'wait', 'init': 'ready', 'go': 'done move=99-98'}.get(line.split()[0])\n"
        "    print(said or '', flush=True)\n"
    )
    figures = match(f"hub:{sys.executable} {script}", "random", games=2, clock="9+0.5")
    assert figures["losses"] == 2
    assert [error.partition(":")[0] for error in figures["errors"]] == ["game 1", "game 2"]
    assert "illegal move" in figures["errors"][0]
    assert len(clocks) == 2, "only for its moves"
    assert clocks[0] == (9.0, 0.5)
    assert clocks[1] in ((9.0, 0.5), (9.5, 0.5))  # where its first move was forced it has gained by that
    assert "level time=8.5 inc=0.5" in log.read_text()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "closed its output before it was ready"),
        ("print('hub'); input(); print('wait', flush=True)", "closed its output before it was ready"),
        ("input(); print('wait'); print('error message=no'); print('ready', flush=True); input()", "it said: no"),
    ],
)
def test_a_program_that_never_gets_ready_is_refused_before_any_game(tmp_path: Path, script: str, words: str) -> None:
    path, pdn = tmp_path / "engine.py", tmp_path / "games.pdn"
    path.write_text(script)
    with pytest.raises(EngineError, match=words):
        match("random", f"hub:{sys.executable} {path}", pdn=pdn)
    assert not pdn.exists()


@pytest.mark.parametrize(("path", "words"), [("/dev/null", "it is a device or pipe"), ("", "it is a folder")])
def test_where_no_file_can_be_nothing_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, words: str
) -> None:
    monkeypatch.setattr("selfplay.matches.commands.open_pool", lambda *_: pytest.fail("it plays"))
    with pytest.raises(StorageError, match=words):
        match("random", "random", pdn=Path(path) if path else tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nobody", "'nobody' is no player: networks are the folder of a checkpoint or a run"),
        ("random@800", "'random' is a player without a network: it has no options after @"),
        ("champion@foo", "'foo' is no option of champion: after @ write off, tablebase"),
        ("champion@-4", "'-4' is no option of champion: after @ write off, tablebase"),
    ],
)
def test_what_is_wrong_with_a_player_is_said(text: str, words: str) -> None:
    with pytest.raises(PlayerError, match=f"^{re.escape(words)}|: {re.escape(words)}"):
        match(text, "random")


def test_a_network_alone_has_no_options() -> None:
    with pytest.raises(PlayerError, match="'champion@800': name only the network here"):
        checkpoint_folder("champion@800")
    with pytest.raises(PlayerError, match="'rollout:3' is a player without a network"):
        checkpoint_folder("rollout:3")
