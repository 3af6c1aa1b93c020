"""Preferences: kept, checked, and set aside when they are broken."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine.files import StorageError
from gui.preferences import Preferences, load_preferences, preferences_path, save_preferences


def test_none_yet(tmp_path: Path) -> None:
    assert load_preferences(tmp_path / "none" / "preferences.json") == (Preferences(), "")


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "new" / "preferences.json"
    preferences = Preferences(theme="dusk", animation_ms=0, time_control="300+3", mode="agent-agent")
    preferences.opponents = {"agent": {"kind": "network", "simulations": 800, "seconds": None, "path": "a/é"}}
    save_preferences(preferences, path)
    assert load_preferences(path) == (preferences, "")
    assert json.loads(path.read_text("utf-8"))["theme"] == "dusk"
    assert [file.name for file in path.parent.iterdir()] == ["preferences.json"]


def test_a_retired_setting_is_read_and_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "preferences.json"
    path.write_text('{"version": 1, "theme": "dusk", "search": {"c_puct": 1.75, "reuse_tree": false}}')
    preferences, message = load_preferences(path)
    assert (preferences.theme, message) == ("dusk", "")
    save_preferences(preferences, path)
    assert "search" not in json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file cannot be read"),
        (b"{", "the file cannot be read"),
        (b"\xff\xfe\x00", "the file cannot be read"),
        (b"[]", "the file holds no settings"),
        (b"null", "the file holds no settings"),
        (b'{"colour": 1}', "'colour' is no setting"),
        (b'{"animation_ms": -1}', "the value of 'animation_ms' does not fit"),
        (b'{"ui_scale": NaN}', "'ui_scale'"),
        (b'{"version": 2}', "'version'"),
        (b'{"mode": "human\\nhuman"}', "'mode'"),
        (b'{"time_control": "soon"}', "the value of 'time_control' does not fit"),
        (b"[" * 100_000, "the file cannot be read"),
        (b" " * ((1 << 20) + 1), "larger than 1 MiB"),
        (b'{"' + b"a" * 5000 + b'": 1}', "is no setting"),
    ],
)
def test_a_broken_file_is_set_aside(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "preferences.json"
    path.write_bytes(data)
    preferences, line = load_preferences(path)
    assert preferences == Preferences()
    assert line.startswith("preferences: ")
    assert message in line
    assert "\n" not in line
    assert len(line) < 200
    assert str(tmp_path) not in line
    assert not path.exists()
    assert (tmp_path / "preferences.json.broken").read_bytes() == data
    assert "preferences.json.broken" in line
    assert load_preferences(path) == (Preferences(), "")


def test_the_defaults_do_not_replace_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "preferences.json"
    save_preferences(Preferences(theme="dusk"), path)
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as without_permission:
        without_permission.setattr(Path, "open", refuse)
        preferences, line = load_preferences(path)
    assert preferences == Preferences()
    assert "cannot read" in line
    assert "is kept as preferences.json.broken" in line
    save_preferences(preferences, path)
    assert (tmp_path / "preferences.json.broken").read_bytes() == before


def test_what_cannot_be_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "preferences.json"
    path.write_text("{")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    preferences, line = load_preferences(path)
    assert preferences == Preferences()
    assert "cannot be set aside: Permission denied" in line
    with pytest.raises(StorageError):
        save_preferences(Preferences(), path)
    assert path.read_text() == "{"


def test_a_value_that_does_not_fit_is_refused() -> None:
    preferences = Preferences()
    for name, value in (("animation_ms", 3000), ("side", "red"), ("ballot", 175), ("time_control", "1/0")):
        before = getattr(preferences, name)
        with pytest.raises(ValidationError):
            setattr(preferences, name, value)
        assert getattr(preferences, name) == before
    preferences.time_control = " 60 "
    assert preferences.time_control == "60+0"


def test_defaults_are_not_shared() -> None:
    Preferences().opponents["black"] = {"kind": "random"}
    assert Preferences().opponents == {}


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Preferences.model_fields.values())


def test_the_place_is_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platformdirs.user_config_path", lambda *names, **options: tmp_path / names[0])
    assert preferences_path() == tmp_path / "crownhead" / "preferences.json"
    save_preferences(Preferences(bottom="black"), preferences_path())
    assert load_preferences(preferences_path())[0].bottom == "black"
