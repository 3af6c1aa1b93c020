"""Files of many games: listed, searched and read from an index; broken files and indexes; what is thrown away."""

import io
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import BinaryIO

import pytest

from engine.board import Board
from engine.errors import PdnError
from engine.fen import START_FEN
from engine.files import StorageError
from engine.pdn import PdnGame, format_game
from engine.position_keys import key_of
from gui.archive.game_index import KEPT, Filling, Source, opened_as, source_of
from gui.archive.game_library import GameLibrary, IndexInUseError, Played, Query
from gui.game.pdn_files import PdnGames, game_at

GAMES = """[Event "Spring"] [Black "Anna"] [White "Bruno"] [Date "2026.03.01"]
1. 11-15 23-19 2. 9-14 27-23 1-0

[Event "Spring"]
[Black "Bruno"]
[White "Zoë"]
1. 9-14 { not the usual } 23-19 2. 11-15 22-17 ( 27-23 8-11 ) 2. 5-9 1/2-1/2 [Event "Autumn"] [Black "Anna"]
1. 10-14 99-1 0-1

[Event "Ending"] [FEN "W:WK31:BK2"] [SetUp "1"] 1. 31-26 *
"""


@pytest.fixture
def open_games(tmp_path: Path) -> Callable[..., GameLibrary]:
    def open_file(data: str | bytes = GAMES, wait: bool = True) -> GameLibrary:
        path = tmp_path / "games.pdn"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        library = GameLibrary(path, tmp_path / "index")
        if wait:
            library.wait()
        return library

    return open_file


def numbers(library: GameLibrary, *query: str | int | None) -> list[int]:
    return [game.number for game in library.search(Query(*query), 0, 100)[1]]  # type: ignore[arg-type]


def test_the_list_is_that_of_the_text(open_games: Callable[..., GameLibrary]) -> None:
    library = open_games()
    count, games = library.search(Query(), 0, 100)
    assert count == library.count == 4
    assert not library.cut_short
    assert [game.title for game in games] == PdnGames(GAMES).titles
    assert games[0].opening == games[0].opening.strip() != ""
    assert games[3].opening == ""
    assert [game.number for game in library.search(Query(), 1, 2)[1]] == [2, 3]


def test_search_by_words_result_and_position(open_games: Callable[..., GameLibrary]) -> None:
    library = open_games()
    assert numbers(library, "anna") == [1, 3]
    assert numbers(library, "ANNA spring") == [1]
    assert numbers(library, "zoë") == [2]
    assert numbers(library, "defiance") == [1]
    assert numbers(library, "100%_") == []
    assert numbers(library, "", "0-1") == [3]
    board = Board()
    for move in ["11-15", "23-19", "9-14"]:
        board.push_pdn(move)
    assert numbers(library, "", "", key_of(board)) == [1, 2]  # the second one on another way
    assert numbers(library, "bruno", "1-0", key_of(board)) == [1]
    assert library.search(Query(key=key_of(board)), 0, 1)[1][0].ply == 3
    assert numbers(library, "", "", key_of(Board("W:WK31:BK2"))) == [4]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_games_are_read_where_they_lie(open_games: Callable[..., GameLibrary], ends: str) -> None:
    library, text = open_games(GAMES.replace("\n", ends)), PdnGames(GAMES)
    for number in (1, 2, 4):
        assert library.game(number) == text.game(number)
    with pytest.raises(PdnError) as by_index:
        library.game(3)
    with pytest.raises(PdnError) as by_text:
        text.game(3)
    assert str(by_index.value) == str(by_text.value)
    with pytest.raises(PdnError, match="no game 5"):
        library.game(5)


def test_a_late_game_costs_what_an_early_one_does() -> None:
    with pytest.raises(PdnError, match=r"^line 1000000000, column 8: "):
        game_at(["*   1. 1-32 *"], 10**9, 5)


def test_old_files_in_latin_1(open_games: Callable[..., GameLibrary]) -> None:
    library = open_games(GAMES.encode("latin-1"))
    assert library.game(2).headers["White"] == "Zoë"
    assert numbers(library, "zoë") == [2]


def test_a_second_opening_reads_nothing_anew(
    open_games: Callable[..., GameLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_games()
    monkeypatch.setattr("gui.archive.game_index.tokenize", lambda lines: pytest.fail("read anew"))
    again = open_games()
    assert again.search(Query(), 0, 9) == first.search(Query(), 0, 9)


def test_a_broken_index_is_made_anew(open_games: Callable[..., GameLibrary], tmp_path: Path) -> None:
    open_games()
    (index,) = (tmp_path / "index").iterdir()
    index.write_bytes(b"no database " * 1000)
    assert numbers(open_games()) == [1, 2, 3, 4]
    assert len(list((tmp_path / "index").iterdir())) == 1


def random_game(seed: int) -> str:
    rng, board = random.Random(seed), Board()
    while board.outcome() is None and board.ply < 60:
        board.push(rng.choice(board.legal_moves))
    return format_game(PdnGame.from_board(board))


def test_games_can_be_looked_up_between_two_commits(tmp_path: Path) -> None:
    path, index = tmp_path / "many.pdn", sqlite3.connect(tmp_path / "index")
    index.execute("PRAGMA cache_size = 10")  # as if it were large
    path.write_text("\n".join(map(random_game, range(40))))
    filling = Filling(index, lambda: False, lambda count: None)
    with path.open("rb") as file, closing(sqlite3.connect(tmp_path / "index", timeout=0)) as reader, closing(index):
        filling.add(source_of(path), file)
        assert reader.execute("SELECT count(*) FROM games").fetchone() == (0,)
        filling.finish()
        assert reader.execute("SELECT count(*) FROM games").fetchone() == (40,)


def test_an_index_that_is_being_written_is_not_called_broken(
    open_games: Callable[..., GameLibrary], tmp_path: Path
) -> None:
    library = open_games()
    (index,) = (tmp_path / "index").iterdir()
    with closing(sqlite3.connect(index)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(IndexInUseError, match="being written"):
            library.search(Query(), 0, 9)
    assert library.search(Query(), 0, 9)[0] == 4


def test_an_index_with_texts_that_are_none_is_said_to_be_broken(open_games: Callable[..., GameLibrary]) -> None:
    library = open_games()
    with closing(sqlite3.connect(library._index)) as index:  # type: ignore[arg-type]
        index.execute("UPDATE games SET title = cast(x'ff41' AS text)")
        index.commit()
    with pytest.raises(StorageError, match="is broken"):
        library.search(Query(), 0, 9)


def test_a_file_that_changed_is_said(open_games: Callable[..., GameLibrary]) -> None:
    library = open_games()
    library.path.write_text("\n" + GAMES)
    with pytest.raises(StorageError, match="has changed"):
        library.game(1)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    library = GameLibrary(tmp_path / "none.pdn", tmp_path / "index")
    with pytest.raises(StorageError, match=r"none\.pdn"):
        library.wait()
    assert library.search(Query(), 0, 9) == (0, [])


def test_without_a_cache_a_temporary_place_serves(
    open_games: Callable[..., GameLibrary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "index").write_text("in the way")
    library = open_games()
    assert numbers(library) == [1, 2, 3, 4]
    library.close()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_index_serves_in_a_cache_that_can_only_be_read(
    open_games: Callable[..., GameLibrary], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_games()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("utime", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    assert numbers(open_games()) == [1, 2, 3, 4]


def test_what_is_stopped_leaves_nothing(open_games: Callable[..., GameLibrary], tmp_path: Path) -> None:
    library = open_games(GAMES * 2000, wait=False)
    library.close()
    library.wait()
    assert list((tmp_path / "index").glob("*")) == []


def test_only_so_many_indexes_are_kept(open_games: Callable[..., GameLibrary], tmp_path: Path) -> None:
    for number in range(KEPT + 2):
        open_games(f'[Event "{number}"] 11-15 *')
        for path in (tmp_path / "index").iterdir():
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    assert len(list((tmp_path / "index").iterdir())) == KEPT
    assert numbers(open_games(f'[Event "{KEPT + 1}"] 11-15 *')) == [1]


def after(*moves: str, fen: str = START_FEN) -> int:
    """Key of the position after PDN moves."""
    board = Board(fen)
    for move in moves:
        board.push_pdn(move)
    return key_of(board)


def test_moves_played_in_a_position(open_games: Callable[..., GameLibrary]) -> None:
    library = open_games()
    opening = [Played(after("11-15"), 1), Played(after("10-14"), 0, 0, 1), Played(after("9-14"), 0, 1)]
    assert sorted(library.played(after())) == sorted(opening)
    met = library.played(after("11-15", "23-19", "9-14"))  # by transposition in game 2; the view is White's
    assert sorted(met) == sorted(
        [
            Played(after("11-15", "23-19", "9-14", "27-23"), 0, 0, 1),
            Played(after("11-15", "23-19", "9-14", "22-17"), 0, 1),
        ]
    )
    (only,) = library.played(key_of(Board("W:WK31:BK2")))
    assert (only.games, only.unknown) == (1, 1)
    assert library.played(after("12-16")) == []


def test_a_position_met_twice_counts_once(open_games: Callable[..., GameLibrary]) -> None:
    fen = "W:WK31:BK2"
    library = open_games(f'[FEN "{fen}"] [SetUp "1"] 1. 31-26 2-7 2. 26-31 7-2 3. 31-27 2-6 0-1')
    assert library.played(after(fen=fen)) == [Played(after("31-26", fen=fen), 1)]


@pytest.mark.parametrize("result", ["", "?", "1-0 (time)", "*"])
def test_a_result_that_is_none_is_open(open_games: Callable[..., GameLibrary], result: str) -> None:
    library = open_games(f'[Black "Anna"] [White "Bruno"] [Result "{result}"] 1. 11-15 23-19')
    assert numbers(library, "", "*") == [1]
    assert library.search(Query(), 0, 1)[1][0].title == "Anna - Bruno, *, 1 move"


def test_a_set_up_position_that_is_none_is_the_fault_of_its_game_alone(open_games: Callable[..., GameLibrary]) -> None:
    library = open_games(f'[Black "Dora"] [FEN "W:W1:B32"] 1. 11-15 *\n\n{GAMES}')
    assert numbers(library) == [1, 2, 3, 4, 5]
    assert numbers(library, "dora") == [1]
    with pytest.raises(PdnError, match="a man of White on 1, its promotion row"):
        library.game(1)
    assert library.game(2) == PdnGames(GAMES).game(1)


def test_games_of_other_variants_are_listed_but_not_counted(open_games: Callable[..., GameLibrary]) -> None:
    """Pool checkers begins with the same moves."""
    library = open_games('[GameType "21"] 1. 11-15 23-19 1-0 [GameType "23"] 1. 11-15 23-19 1-0')
    assert [(game.number, game.opening) for game in library.search(Query(), 0, 9)[1]] == [(1, "Old Faithful"), (2, "")]
    assert library.played(after()) == [Played(after("11-15"), 1)]


@pytest.fixture
def games_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "a.pdn").write_text(GAMES)
    (folder / "b.pdn").write_text('[Event "Home"] [Black "Dora"] 1. 11-15 23-18 1-0')
    (folder / "a.json").write_text("{}")
    return folder


def test_a_folder_is_one_library(games_folder: Path, tmp_path: Path) -> None:
    library = GameLibrary(games_folder, tmp_path / "index")
    library.wait()
    assert library.count == 5
    assert numbers(library, "dora") == [5]
    assert library.game(5).headers["Black"] == "Dora"
    assert library.game(1) == PdnGames(GAMES).game(1)
    assert next(one for one in library.played(after()) if one.after == after("11-15")) == Played(after("11-15"), 2)


def test_an_annotated_copy_beside_its_original_is_left_out(games_folder: Path, tmp_path: Path) -> None:
    for name in ("B.annotated.pdn", "c.annotated.pdn"):
        shutil.copy(games_folder / "b.pdn", games_folder / name)
    library = GameLibrary(games_folder, tmp_path / "index")
    library.wait()
    assert library.count == 6, "that of a file that is not there counts"


def test_a_folder_is_read_again_where_it_has_changed(
    games_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    GameLibrary(games_folder, tmp_path / "index").wait()
    read: list[str] = []
    monkeypatch.setattr("gui.archive.game_index.opened_as", _noting(read))
    (games_folder / "b.pdn").write_text('[Event "Home"] [Black "Dora"] 1. 11-15 23-18 0-1')
    (games_folder / "c.pdn").write_text('[Black "Emil"] 1. 9-13 *')
    library = GameLibrary(games_folder, tmp_path / "index")
    library.wait()
    assert read == ["b.pdn", "c.pdn"]
    assert [len(numbers(library, name)) for name in ("dora", "emil", "anna")] == [1, 1, 2]
    assert next(one for one in library.played(after()) if one.after == after("11-15")).lost == 1
    (games_folder / "a.pdn").unlink()
    smaller = GameLibrary(games_folder, tmp_path / "index")
    smaller.wait()
    assert smaller.count == 2
    assert read == ["b.pdn", "c.pdn"]
    assert [smaller.game(number).headers["Black"] for number in numbers(smaller)] == ["Dora", "Emil"]


def test_a_file_that_fails_in_the_middle_is_read_again(
    games_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            if self.tell() > 50:
                raise OSError("input/output error")
            return super().readline(size)

    monkeypatch.setattr("gui.archive.game_index.opened_as", lambda source: Broken(source.path.read_bytes()))
    GameLibrary(games_folder, tmp_path / "index").wait()
    monkeypatch.undo()
    library = GameLibrary(games_folder, tmp_path / "index")
    library.wait()
    assert library.count == 5


def _noting(read: list[str]) -> Callable[[Source], AbstractContextManager[BinaryIO]]:
    def noting(source: Source) -> AbstractContextManager[BinaryIO]:
        read.append(source.path.name)
        return opened_as(source)

    return noting


def test_what_is_read_serves_after_a_halt(open_games: Callable[..., GameLibrary], tmp_path: Path) -> None:
    library = open_games(GAMES * 2000, wait=False)
    while not library.count:
        time.sleep(0.01)
    library.halt()
    library.wait()
    assert 0 < library.count < 8000
    assert library.cut_short
    assert library.played(after())
    library.close()
    assert list((tmp_path / "index").glob("*")) == []
