"""Stored configurations with settings that no longer exist."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from engine.search import SearchConfig
from selfplay.run.config import ConfigError, RunConfig, make_config, read_config
from selfplay.run.retired import without_retired
from selfplay.run.stages import config_at, training_commands

CHAMPION = Path(__file__).parents[1] / "checkpoints" / "champion" / "config.json"
GONE: dict[str, Any] = {
    "gumbel_considered": 16,
    "gumbel_scale": 1.0,
    "c_visit": 50.0,
    "c_scale": 0.1,
    "rescale_q": True,
    "oracle_pieces": 6,
    "oracle_confidence": 0.99,
}


def stored(folder: Path, config: RunConfig, **search: Any) -> Path:
    """A ``config.json`` of an older version."""
    fields = config.model_dump(mode="json")
    for name in ("search", "match_search"):
        fields[name] |= GONE | {"root": "puct"}
    fields["search"] |= search
    path = folder / "config.json"
    path.write_text(json.dumps(fields))
    return path


def test_the_champion_s_configuration_can_be_read(caplog: pytest.LogCaptureFixture) -> None:
    config = read_config(CHAMPION)
    assert (config.search.num_simulations, config.search.policy_temperature) == (96, 2.0)
    assert len(config.stages) == 5
    assert config_at(config, 0).search.num_simulations == 32
    assert not caplog.records


def test_what_is_gone_is_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = make_config("smoke", ["search.c_puct=2"])
    assert read_config(stored(tmp_path, config)) == config
    assert not caplog.records


def test_another_search_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = make_config("smoke")
    found = read_config(stored(tmp_path, config, root="gumbel", oracle="network"))
    assert found.search == config.search.model_copy(update={"oracle": "tablebase"})
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"{tmp_path / 'config.json'}: the run searched with a Gumbel root and continues with PUCT, and with a network "
        "as endgame oracle and continues with tables"
    )


@pytest.mark.parametrize("backend", ["onnxruntime", "onnxruntime-int8", "openvino", "openvino-bf16", "openvino-int8"])
def test_backends_that_are_gone(tmp_path: Path, backend: str) -> None:
    path = stored(tmp_path, make_config("smoke"))
    fields = json.loads(path.read_text())
    fields["selfplay"]["backend"] = backend
    path.write_text(json.dumps(fields))
    assert read_config(path) == make_config("smoke", ["selfplay.backend=auto"])


def test_a_bucket_that_is_gone(tmp_path: Path) -> None:
    path = stored(tmp_path, make_config("smoke"))
    fields = json.loads(path.read_text())
    fields["loop"]["bucket_steps"] = 500
    path.write_text(json.dumps(fields))
    assert read_config(path) == make_config("smoke")


def test_the_gate_by_points(tmp_path: Path) -> None:
    path = stored(tmp_path, make_config("smoke"))
    fields = json.loads(path.read_text())
    del fields["gate"]["win_points"]
    for rule, settings in (("winrate", []), ("points", ["gate.win_points=3", f"gate.score_threshold={1.3 / 2.3}"])):
        fields["gate"] |= {"rule": rule, "points_factor": 1.3}
        path.write_text(json.dumps(fields))
        assert read_config(path) == make_config("smoke", settings)


def test_stages_without_what_is_gone(tmp_path: Path) -> None:
    fields = make_config("quick", ["search.c_puct=3"]).model_dump(mode="json")
    changes: list[dict[str, list[Any]]] = [
        {"search.gumbel_considered": [16, 8], "match_search.root": ["gumbel", "puct"]},
        {"search.c_scale": [0.1, 0.5], "search.c_puct": [1.5, 3.0], "selfplay.backend": ["openvino-int8", "auto"]},
        {"selfplay.backend": ["onnxruntime", "torch"], "search.oracle": ["network", "off"]},
        {"loop.bucket_steps": [500, 50], "gate.points_factor": [1.3, 2.0]},
    ]
    fields["stages"] = [{"iteration": i, "steps": 10 * i, "changes": one} for i, one in enumerate(changes, start=1)]
    fields["selfplay"]["backend"] = "torch"
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields))
    config = read_config(path)
    assert [(stage.steps, stage.changes) for stage in config.stages] == [
        (20, {"search.c_puct": (1.5, 3.0)}),
        (30, {"selfplay.backend": ("auto", "torch"), "search.oracle": ("tablebase", "off")}),
    ]
    assert config_at(config, 0).search == SearchConfig(num_simulations=100, oracle="tablebase")
    assert len(training_commands(config)) == 3


SETTINGS = [f"{name}={json.dumps(value)}" for name, value in (GONE | {"root": "puct"}).items()]


@pytest.mark.parametrize("setting", SETTINGS)
def test_they_cannot_be_set(setting: str) -> None:
    with pytest.raises(ConfigError, match=rf"search\.{setting.partition('=')[0]}: there is no such setting"):
        make_config("smoke", [f"search.{setting}"])


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        {"search": 3, "selfplay": [], "loop": 3, "stages": {}},
        {"stages": [3, {}, {"changes": 3}, {"changes": {"search.oracle": 3, "search.c_puct": []}}]},
        {"selfplay": {"backend": 3}, "search": {"oracle": []}},
    ],
)
def test_what_is_no_configuration_stays(fields: Any) -> None:
    assert without_retired(fields, "here") == fields
