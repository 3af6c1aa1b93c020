"""``crownhead matches``: several matches from a file."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from programs import ROOT, crownhead_program, wait_until

from engine.pdn import read_games
from selfplay.match_queue import matches_command, words_of
from selfplay.requests import MatchesRequest, RequestError

QUEUE = """
# two short ones
random rollout:2 --games 4 --openings random:4 --jobs 1
random alphabeta:1 --games 2 --jobs 1 --sprt 0,100   # ended by its games
"""


def test_a_queue_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "queue.txt", tmp_path / "games"
    file.write_text(QUEUE)
    first, second = matches_command(MatchesRequest(file, out), quiet=True)["matches"]
    assert (first["match"], first["games"], first["kept"]) == (QUEUE.splitlines()[2], 4, 0)
    assert second["match"] == "random alphabeta:1 --games 2 --jobs 1 --sprt 0,100"
    assert "sprt" in second
    assert [len(list(read_games(Path(match["pdn"]).read_text()))) for match in (first, second)] == [4, 2]
    assert capsys.readouterr().out == ""
    Path(second["pdn"]).unlink()
    file.write_text("# another order\n" + "\n".join(reversed(QUEUE.splitlines())))
    again = matches_command(MatchesRequest(file, out), quiet=False)["matches"]
    assert [match["kept"] for match in again] == [0, 4]
    assert again[1]["score"] == first["score"]
    table = capsys.readouterr().out
    assert re.search(r"1 of 2: random alphabeta:1", table)
    assert "SPRT" in table


def test_games_that_cannot_be_continued_are_told_before_anything_is_played(tmp_path: Path) -> None:
    """As where a run has promoted another network since the queue was played."""
    file, out = tmp_path / "queue.txt", tmp_path / "games"
    file.write_text(QUEUE)
    first, second = (Path(match["pdn"]) for match in matches_command(MatchesRequest(file, out), quiet=True)["matches"])
    second.write_text(second.read_text().replace("alphabeta:1", "alphabeta:2"))
    first.unlink()
    with pytest.raises(RequestError, match=r"queue\.txt, line 4: .* cannot be resumed: game 1: its Event"):
        matches_command(MatchesRequest(file, out), quiet=True)
    assert not first.exists()


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_names_no_option_that_a_queue_has_not(tmp_path: Path) -> None:
    (tmp_path / "queue.txt").write_text("rollout:30 random --games 4000 --jobs 2\n")
    out = tmp_path / "games"
    command = crownhead_program("matches", tmp_path / "queue.txt", "--out", out)
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: any(out.glob("*.pdn")), process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert re.fullmatch(r"crownhead: interrupted: \d+ of 4000 games are in .*; the same command goes on", said.strip())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("random", "Missing argument 'PLAYER'"),
        ("random nobody", "'nobody' is no player"),
        ("random random --games none", "should be a valid integer"),
        ("random random --pdn x.pdn", "--pdn and --resume are not for a queue"),
        ("random 'random", "No closing quotation"),
        ("--help", "write the arguments of crownhead match"),
        ("random rollout:2 --games 2", "this match is in the file twice"),
        ("random random --openings nothing", "neither ballots nor random:K"),
        ("random random --openings file:nowhere", "cannot read nowhere"),
        ("random hub:false", "closed its output before it was ready"),
        ("random tablebase:nowhere", "cannot read the folder nowhere"),
        ("champion@ponder random", "pondering is for games with a time limit"),
    ],
)
def test_a_wrong_line_is_named_before_anything_is_played(tmp_path: Path, line: str, message: str) -> None:
    file, out = tmp_path / "queue.txt", tmp_path / "games"
    file.write_text(f"random rollout:2 --games 2\n{line}\n")
    with pytest.raises(RequestError, match=rf"queue\.txt, line 2: .*{re.escape(message)}"):
        matches_command(MatchesRequest(file, out), quiet=True)
    assert not out.exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("random net#2 --games 2  # don't", ["random", "net#2", "--games", "2"]),
        ("# all", []),
        ("", []),
        ("a 'b #c' #d", ["a", "b #c"]),
        ('"a # b"#c \\#d # e', ["a # b#c", "#d"]),
    ],
)
def test_a_comment_begins_with_a_word(line: str, words: list[str]) -> None:
    assert words_of(line) == words


def test_an_empty_queue_is_refused(tmp_path: Path) -> None:
    (tmp_path / "queue.txt").write_text("# nothing yet\n\n")
    with pytest.raises(RequestError, match=r"queue\.txt has no match: write one a line"):
        matches_command(MatchesRequest(tmp_path / "queue.txt", tmp_path / "games"), quiet=True)
