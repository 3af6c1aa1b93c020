"""Stages of a run: changes of its settings when it was resumed."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learner.network import NETWORKS

from .config import (
    AGAINST,
    DEFAULT_PRESET,
    PRESETS,
    ConfigError,
    RunConfig,
    Stage,
    check_anchors,
    check_tree_samples,
    make_config,
    merged,
    nested,
    parse_config,
    parse_setting,
)

KEPT = {
    "preset": "it is where its settings come from",
    "network": "its weights have that size",
    "student.network": "its weights have that size",
    "teacher.digest": "its teacher is in its folder",
    "opponent": "its opponent is in its folder",
    "init": "it has begun",
    "seed": "its games follow from it",
    "pool": "use --pool",
    "address": "use --address",
    "mirror": "use --mirror",
    "stages": "they are what --set writes",
    "loop.minutes": "use --minutes",
    "loop.reuse": "samples and steps are counted from its beginning",
    "loop.steps_per_iteration": "its iterations are counted from its beginning",
    "loop.games_per_iteration": "its iterations are counted from its beginning",
    "trainer.batch_size": "samples and steps are counted from its beginning",
    "trainer.optimizer": "its state is of that optimizer",
    "student.trainer.optimizer": "its state is of that optimizer",
}
"""Setting that a run cannot change → reason."""


def _flattened(fields: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{before}{key}.")
        else:
            yield before + key, value


def flat_settings(config: RunConfig) -> dict[str, Any]:
    """Dotted name → value in JSON form, of all settings; without the stages."""
    return dict(_flattened(config.model_dump(mode="json", exclude={"stages"})))


def next_stage(config: RunConfig, settings: Sequence[str], iteration: int, steps: int) -> RunConfig:
    """Returns a run's configuration with changed settings as a new stage; ``config`` itself if nothing changes.

    Args:
        settings: ``key=value`` texts, as for ``make_config``.
        iteration, steps: iterations and training steps of the run so far.

    Raises:
        ConfigError: there is no such setting or value, or a run cannot change it (``KEPT``).
    """
    fields = config.model_dump(mode="json")
    for text in settings:
        if text.startswith("teacher.") and config.teacher is None:
            raise ConfigError(f"--set {text}: the run has no teacher, and only a new run can begin with one")
        fields = merged(fields, parse_setting(text))
    changed = parse_config(fields)
    before, after = flat_settings(config), flat_settings(changed)
    # Keys of both: what was set to null, like student, has no keys in ``after``.
    changes = {key: (before.get(key), after.get(key)) for key in before | after if before.get(key) != after.get(key)}
    for key in [*changes, *(("stages",) if changed.stages != config.stages else ())]:
        for kept, reason in KEPT.items():
            if key == kept or key.startswith(f"{kept}."):
                raise ConfigError(f"--set {key} cannot change a run under way: {reason}")
    if not changes:
        return config
    if "loop.anchors" in changes:
        check_anchors(changed)
    if any(key.startswith("selfplay.tree_samples.") for key in changes):
        check_tree_samples(changed)
    stage = Stage(iteration=iteration, steps=steps, changes=changes)
    return changed.model_copy(update={"stages": (*config.stages, stage)})


def config_at(config: RunConfig, steps: int) -> RunConfig:
    """A run's configuration as it was after ``steps`` training steps: later stages are undone."""
    kept = [stage for stage in config.stages if stage.steps < steps]
    fields = config.model_dump(mode="json", exclude={"stages"})
    for stage in reversed(config.stages[len(kept) :]):
        for key, (before, _) in stage.changes.items():
            fields = merged(fields, nested(key, before))
    return parse_config({**fields, "stages": kept})


def training_commands(config: RunConfig) -> list[str]:
    """The commands that repeat a run, one for each stage.

    If its preset is not in ``PRESETS``, all settings that differ from the default preset are named.
    """
    first = config_at(config, 0)
    name = config.preset if config.preset in PRESETS else DEFAULT_PRESET
    base = make_config(name, **(AGAINST if first.opponent is not None else {}))
    preset, own = flat_settings(base), flat_settings(first.model_copy(update={"preset": name}))
    # By options; what repeats a run needs a copy of its own
    named = {"init", "teacher.digest", "opponent.digest", "mirror"}
    differs = [key for key in own if key not in preset or own[key] != preset[key]]
    changed = {key: own[key] for key in differs if key not in named and not key.startswith("network.")}
    if first.network != base.network and first.init is None:  # else it has that network's size
        names = [name for name, network in NETWORKS.items() if network == first.network]
        changed = {"network": names[0] if names else first.network.model_dump(), **changed}
    options = {"--init": first.init, "--teacher": first.teacher, "--against": first.opponent}
    begun = "".join(f" {option} NET" for option, network in options.items() if network is not None)
    stages = [{key: after for key, (_, after) in stage.changes.items()} for stage in config.stages]
    return [
        " ".join([command, *(f"--set {_setting(key, value)}" for key, value in changes.items())])
        for command, changes in [
            (f"crownhead train --preset {name}{begun}", changed),
            *(("crownhead train --resume", stage) for stage in stages),
        ]
    ]


def _setting(key: str, value: Any) -> str:
    """``key=value`` as ``parse_setting`` reads it, quoted for a shell where needed."""
    plain = isinstance(value, str) and parse_setting(f"text={value}") == {"text": value}
    return shlex.quote(f"{key}={value if plain else json.dumps(value)}")
