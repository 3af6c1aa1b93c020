"""The table of keys, and the tutorial's pages."""

from itertools import pairwise

import pytest

from engine.board import Board
from gui.help import BINDINGS, SCENES, Action, action_for, combination, help_rows, key_label, keys_of
from gui.tutorial import PAGES, Page, Tutorial


def test_no_key_means_two_things_in_a_scene() -> None:
    seen = [(scene, key) for bound in BINDINGS for scene in bound.scenes for key in bound.keys]
    assert len(seen) == len(set(seen))


def test_every_action_can_be_reached_by_a_key() -> None:
    assert {bound.action for bound in BINDINGS} == set(Action)
    for bound in BINDINGS:
        assert bound.keys
        assert bound.scenes
        assert set(bound.scenes) <= set(SCENES)
        for scene in bound.scenes:
            assert [action_for(scene, key) for key in bound.keys] == [bound.action] * len(bound.keys)


def test_keys_are_written_as_combination_writes_them() -> None:
    for bound in BINDINGS:
        for key in bound.keys:
            name = key if len(key) == 1 else "+" if key.endswith("++") else key.rpartition("+")[2]
            assert combination(name, "ctrl+" in key, "shift+" in key, "alt+" in key) == key


@pytest.mark.parametrize(
    ("name", "held", "text", "key"),
    [
        ("z", {"ctrl": True}, "\x1a", "ctrl+z"),
        ("Z", {"ctrl": True, "shift": True}, "", "ctrl+shift+z"),
        ("enter", {}, "\r", "return"),
        ("[5]", {}, "5", "5"),
        ("[-]", {}, "-", "-"),
        ("[+]", {"ctrl": True}, "", "ctrl++"),
        ("=", {"ctrl": True, "shift": True}, "", "ctrl++"),
        ("=", {"ctrl": True}, "=", "ctrl+="),
        ("/", {"shift": True}, "?", "?"),
        ("/", {"shift": True}, "", "?"),
        ("&", {"shift": True}, "1", "1"),
        ("6", {}, "-", "-"),
        ("page up", {}, "", "page up"),
        ("f6", {"shift": True}, "", "shift+f6"),
    ],
)
def test_combination(name: str, held: dict[str, bool], text: str, key: str) -> None:
    held = {"ctrl": False, "shift": False, "alt": False} | held
    assert combination(name, held["ctrl"], held["shift"], held["alt"], text) == key


def test_dispatch() -> None:
    assert action_for("game", "ctrl+z") is Action.UNDO
    assert action_for("game", "x") is Action.TYPE
    assert action_for("setup", "1") is Action.SET_MAN_BLACK
    assert action_for("menu", "ctrl+z") is None
    assert action_for("game", "ctrl+alt+z") is None
    assert all(action_for(scene, "f1") is Action.HELP for scene in SCENES)
    assert all(action_for(scene, "ctrl+q") is Action.QUIT for scene in SCENES)


def test_labels() -> None:
    labels = {"ctrl+shift+z": "Ctrl+Shift+Z", "page up": "Page Up", "return": "Enter", "ctrl++": "Ctrl++", "?": "?"}
    assert {key: key_label(key) for key in labels} == labels
    assert keys_of(Action.UNDO) == "Ctrl+Z or U"


def test_help_rows() -> None:
    rows = help_rows("game")
    assert ("Game", "Ctrl+Z or U", "take back") in rows
    assert ("Moving", "0-9, -, x", "type a move, like 11-15 or 15x22") in rows
    assert len(rows) == sum("game" in bound.scenes for bound in BINDINGS)
    assert all(all(row) for scene in SCENES for row in help_rows(scene))
    groups = [row[0] for row in rows]
    assert sum(a != b for a, b in pairwise(groups)) + 1 == len(set(groups))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_page_shows_what_the_rules_allow(page: Page) -> None:
    board = Board(page.fen)
    for text in page.moves:
        assert board.outcome() is None
        assert board.pdn(board.parse_pdn(text)) == text or str(board.parse_pdn(text)) == text
        board.push_pdn(text)
    assert all(1 <= square <= 32 for square in page.highlights)
    assert 40 < len(page.text) < 450
    assert page.text == page.text.strip()


def page_called(title: str) -> Page:
    return next(page for page in PAGES if page.title == title)


def test_what_the_pages_claim() -> None:
    choice = Board(page_called("Taking is compulsory").fen)
    assert sorted(map(str, choice.legal_moves)) == ["10x17x26", "10x19"]
    crowned = Board(page_called("Becoming a king").fen)
    assert list(map(str, crowned.legal_moves)) == ["22x31"]
    crowned.push_pdn("22x31")
    assert crowned.piece_map()[31][1]
    assert Board("B:W27:BK31").legal_moves[0].captured == (27,)
    for title, result in (("Winning", "1-0"), ("Draws", "1/2-1/2")):
        page = page_called(title)
        board = Board(page.fen)
        for text in page.moves:
            board.push_pdn(text)
        assert board.result() == result
    shot = page_called("Give one, take two")
    board = Board(shot.fen)
    board.push_pdn(shot.moves[0])
    assert list(map(str, board.legal_moves)) == [shot.moves[1]]
    king = page_called("How kings move")
    assert {move.end for move in Board(king.fen).legal_moves} == set(king.highlights)


def test_reading_on_and_back() -> None:
    tutorial = Tutorial()
    assert (tutorial.index, tutorial.step) == (0, 0)
    tutorial.go_to(-1)
    assert tutorial.index == 0
    tutorial.go_to(1)
    assert tutorial.page is PAGES[1]
    assert str(tutorial.show_move()) == "10-14"
    assert (tutorial.step, str(tutorial.board.peek())) == (1, "10-14")
    assert str(tutorial.show_move()) == "23-19"
    assert tutorial.show_move() is None
    assert tutorial.step == 2
    tutorial.rewind()
    assert tutorial.board.fen() == PAGES[1].fen
    for _ in range(len(PAGES) + 3):
        tutorial.go_to(tutorial.index + 1)
    assert tutorial.index == len(PAGES) - 1
    tutorial.go_to(-5)
    assert tutorial.index == 0
    tutorial.go_to(99)
    assert tutorial.index == len(PAGES) - 1
