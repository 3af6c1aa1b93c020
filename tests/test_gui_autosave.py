"""Games that save themselves: after every move, each in its file, recovered after a crash, in a thread of their own."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import PATIENCE

from engine.fen import Color
from gui.game import autosave
from gui.game.autosave import Autosave
from gui.game.session import GameSession


def session_of(*texts: str) -> GameSession:
    session = GameSession()
    for text in texts:
        session.push(session.board.parse_pdn(text))
    return session


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[Autosave]:
    made = Autosave(tmp_path / "games")
    yield made
    made.close()


def test_autosave_writes_after_every_move(saver: Autosave) -> None:
    session = GameSession()
    saver.save(session)
    saver.flush()
    assert not saver.folder.exists()  # a game without a move leaves nothing
    assert saver.games() == []
    assert saver.recover() is None
    for text in ("11-15", "22-18", "15x22"):
        session.push(session.board.parse_pdn(text))
        saver.save(session)
        saver.flush()
        (saved,) = saver.games()
        assert saved.plies == session.ply
        again = GameSession()
        again.load_file(saved.path)
        assert again.texts == session.texts
    assert saver.recover() == saved
    assert saved.title == "Black - White, *, 2 moves"
    session.resign(Color.WHITE)
    saver.save(session)
    saver.flush()
    assert saver.recover() is None
    assert saver.games()[0].result == "1-0"
    assert [path.suffix for path in saver.folder.iterdir() if path.name != "window.lock"] == [".pdn"]


def test_each_game_has_its_file_and_a_recovered_one_goes_on(saver: Autosave) -> None:
    session = session_of("11-15")
    saver.save(session)
    saver.flush()
    first = saver.games()[0].path
    os.utime(first, (1, 1))
    saver.begin()
    session.new_game(opening=("9-13",))
    saver.save(session)
    saver.flush()
    assert len(saver.games()) == 2
    assert saver.games(1)[0].path != first
    saver.resume(first)
    session.load_file(first)
    session.push(session.board.parse_pdn("22-18"))
    saver.save(session)
    saver.flush()
    assert len(saver.games()) == 2
    recovered = saver.recover()
    assert recovered is not None
    assert (recovered.path, recovered.plies) == (first, 2)


@pytest.mark.parametrize("taken_up", [False, True])
def test_the_file_of_a_game_that_is_over_is_never_changed(saver: Autosave, taken_up: bool) -> None:
    """Moves and comments added to a finished game go to one other file."""
    session = session_of("11-15", "22-18", "15x22")
    session.resign(Color.WHITE)
    saver.save(session)
    saver.flush()
    (path,) = saver.folder.glob("*.pdn")
    before = path.read_bytes()
    if taken_up:  # by a window that was opened later
        session = GameSession()
        session.load_file(path)
        saver.resume(path)
        saver.save(session)
    for text in ("9-14", "22-18", "5-9"):
        session.go_to(0 if text == "9-14" else len(session.nodes))
        session.push(session.board.parse_pdn(text))
        saver.save(session)
        saver.flush()
    session.annotate(2, "too slow")
    saver.save(session)
    saver.flush()
    assert path.read_bytes() == before
    assert len(saver.games()) == 2
    (copy,) = (game for game in saver.games() if game.path != path)
    again = GameSession()
    again.load_file(copy.path)
    assert again.texts == ["11-15", "22-18", "15x22"]
    assert again.pdn() == session.pdn()
    assert saver.recover() is None


def test_another_game_never_goes_into_the_file_of_the_last(saver: Autosave) -> None:
    """A loaded or pasted game gets its own file, also without a call of ``begin``."""
    session = session_of("11-15")
    saver.save(session)
    saver.flush()
    session.load_pdn("1. 9-13 22-18")
    saver.save(session)
    session.push(session.board.parse_pdn("12-16"))
    saver.save(session)
    saver.flush()
    assert sorted(game.plies for game in saver.games()) == [1, 3]


def test_what_is_written_already_is_not_written_again(saver: Autosave, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of("11-15", "22-18")
    saver.save(session)
    saver.flush()
    monkeypatch.setattr(autosave, "atomic_write", lambda *_: pytest.fail("written again"))
    session.go_to(0)
    saver.save(session)
    saver.flush()
    assert saver.error == ""
    assert saver.games()[0].plies == 2


def test_nothing_is_written_after_closing(saver: Autosave) -> None:
    session = session_of("11-15")
    saver.save(session)
    saver.close()
    session.push(session.board.parse_pdn("22-18"))
    saver.save(session)
    saver.close()
    assert saver.games()[0].plies == 1


def test_a_second_window_does_not_take_the_game_of_the_first(saver: Autosave) -> None:
    saver.save(session_of("11-15"))
    saver.flush()
    other = Autosave(saver.folder)
    assert other.recover() is None
    other.close()
    saver.close()
    third = Autosave(saver.folder)  # the first window is closed
    assert third.recover() is not None
    third.close()


def test_the_game_of_a_second_window_is_not_taken_once_the_first_is_closed(
    saver: Autosave, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gui.game.autosave._LOOK_S", 0.01)
    saver.save(session_of("11-15"))
    saver.flush()
    second = Autosave(saver.folder)
    second.save(session_of("9-14"))
    second.flush()
    saver.close()
    deadline = time.monotonic() + 1.0
    third = Autosave(saver.folder)
    while second._lock is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert third.recover() is None
    second.close()
    assert third.recover() is not None
    third.close()


def test_two_windows_in_one_game_go_on_in_two_files(saver: Autosave) -> None:
    session = session_of("11-15")
    saver.save(session)
    saver.flush()
    (path,) = (game.path for game in saver.games())
    other, copy = Autosave(saver.folder), GameSession()
    copy.load_file(path)
    other.resume(path)
    copy.push(copy.board.parse_pdn("22-18"))
    other.save(copy)
    other.flush()
    for text in ("23-19", "8-11"):
        session.push(session.board.parse_pdn(text))
        saver.save(session)
        saver.flush()
    other.save(copy)
    other.flush()
    assert {game.plies for game in saver.games()} == {2, 3}
    assert len(saver.games()) == 2
    read = GameSession()
    read.load_file(path)
    assert read.texts == copy.texts
    other.close()


def test_a_broken_game_is_named_and_passed_over(saver: Autosave) -> None:
    saver.save(session_of("11-15"))
    saver.flush()
    whole = saver.games()[0].path
    os.utime(whole, (1, 1))
    (saver.folder / "broken.pdn").write_text("1. 11-15 11-15")
    (saver.folder / "variant.pdn").write_text('[GameType "20"] 1. 32-28')
    (saver.folder / "folder.pdn").mkdir()
    games = {game.path.name: game for game in saver.games()}
    assert "illegal" in games["broken.pdn"].error
    assert "international" in games["variant.pdn"].error
    assert "cannot read" in games["folder.pdn"].error
    assert all("\n" not in game.error for game in games.values())
    recovered = saver.recover()
    assert recovered is not None
    assert recovered.path == whole


def test_only_so_many_games_stay(tmp_path: Path) -> None:
    saver = Autosave(tmp_path, keep=3)
    for number in range(6):
        saver.begin()
        saver.save(session_of("11-15"))
        saver.flush()
        for path in tmp_path.glob("*.pdn"):
            if path.stat().st_mtime > 1e6:
                os.utime(path, (number, number))
    assert [game.modified for game in saver.games()] == [5, 4, 3]
    saver.close()


def test_a_full_disk_is_said_in_one_line_and_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    saver = Autosave(tmp_path / "file" / "games")
    session = session_of("11-15")
    saver.save(session)
    saver.flush()
    assert saver.error.startswith("the game is not being saved: cannot make the folder")
    assert "\n" not in saver.error
    saver.folder = tmp_path / "games"
    saver.begin()
    saver.save(session)
    saver.flush()
    assert saver.error == ""
    assert len(saver.games()) == 1
    saver.close()


def test_saving_does_not_wait_for_the_disk(saver: Autosave, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a write hangs, saves return at once; the newest of them is what is written in the end."""
    hanging, written = threading.Event(), []
    plain = autosave.atomic_write

    def slow(path: Path, data: bytes) -> None:
        assert hanging.wait(PATIENCE)
        written.append(data)
        plain(path, data)

    monkeypatch.setattr(autosave, "atomic_write", slow)
    session = GameSession()
    for text in ("11-15", "22-18", "15x22", "25x18"):
        session.push(session.board.parse_pdn(text))
        saver.save(session)
    with pytest.raises(TimeoutError):
        saver.flush(0.01)
    hanging.set()
    saver.flush()
    assert len(written) == 2
    assert saver.games()[0].plies == 4


def test_the_folder_is_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platformdirs.user_data_path", lambda *names, **options: tmp_path / names[0])
    assert Autosave().folder == tmp_path / "crownhead" / "games"


def test_a_game_of_a_collection_is_saved_once_it_is_changed(saver: Autosave) -> None:
    session = GameSession()
    session.load_pdn('[Result "1-0"]\n1. 11-15 22-18 2. 15x22 25x18 1-0')
    saver.show(session)
    for ply in (0, 2, 4):
        session.go_to(ply)
        saver.save(session)
    saver.flush()
    assert saver.games() == []
    session.annotate(None, "book")
    saver.save(session)
    saver.flush()
    assert [game.result for game in saver.games()] == ["1-0"]
