"""JSON files with checksums: reading gives what was written, and a flipped bit never changes it unnoticed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sealed import ChecksumError, sealed, unsealed
from learner.checkpoint import CheckpointError, load_checkpoint, read_info, save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.run.config import ConfigError, config_json, make_config, read_config

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.text().filter(lambda key: key != "checksum")


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_what_was_written_comes_back(fields: dict[str, object]) -> None:
    assert unsealed(sealed(fields)) == fields
    assert unsealed(json.dumps(json.loads(sealed(fields)), indent=None)) == fields  # laid out in another way


def test_who_changes_a_file_deletes_one_line() -> None:
    lines = sealed({"a": 1, "b": [2]}).decode().splitlines()
    changed = [line.replace("1", "7") for line in lines if '"checksum"' not in line]
    assert len(changed) == len(lines) - 1
    assert unsealed("\n".join(changed)) == {"a": 7, "b": [2]}


def test_files_without_a_checksum_are_read_as_they_are() -> None:
    assert unsealed(b'{"a": 1}') == {"a": 1}
    assert unsealed("[1]") == [1]
    with pytest.raises(ValueError, match="Expecting"):
        unsealed("{")
    with pytest.raises(ValueError, match="nested too deeply"):
        unsealed("[" * 100_000)
    with pytest.raises(ChecksumError, match="delete the line"):
        unsealed('{"a": 1, "checksum": "0"}')


def assert_no_flip_is_silent(path: Path, whole: object, read: object, error: type[Exception]) -> None:
    data = path.read_bytes()
    found = 0
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        try:
            assert read(path) == whole  # type: ignore[operator]
        except error:
            found += 1
    path.write_bytes(data)
    assert found > 0.9 * len(data) / 7 * (1 - data.count(b" ") / len(data))


def test_no_flipped_bit_changes_a_setting_in_silence(tmp_path: Path) -> None:
    path, config = tmp_path / "config.json", make_config("laptop")
    path.write_bytes(config_json(config))
    assert_no_flip_is_silent(path, config, read_config, ConfigError)
    path.write_text(json.dumps({**json.loads(path.read_text()), "seed": 5}))
    with pytest.raises(ConfigError, match="checksum"):
        read_config(path)
    path.write_text(
        json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "checksum"})
    )
    assert read_config(path).seed == 5


def test_no_flipped_bit_changes_a_checkpoint_in_silence(tmp_path: Path) -> None:
    info = save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]), {"steps": 7, "loss": 1.25})
    path = tmp_path / "net" / "checkpoint.json"
    assert_no_flip_is_silent(path, info, lambda path: read_info(path.parent), CheckpointError)
    old = {key: value for key, value in json.loads(path.read_text()).items() if key != "checksum"}
    path.write_text(json.dumps(old))
    assert load_checkpoint(tmp_path / "net").info == info
