"""The table of keys."""

from itertools import pairwise

import pytest

from gui.help import BINDINGS, SCENES, Action, action_for, combination, help_rows, key_label, keys_of


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
    assert ("Puzzles", "Page Up", "the one before, of lessons and mistakes") in help_rows("exercise")
    groups = [row[0] for row in rows]
    assert sum(a != b for a, b in pairwise(groups)) + 1 == len(set(groups))
