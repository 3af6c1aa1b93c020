"""The configuration of a run, and the presets it starts from."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.game import GAME, GameName, check_game
from engine.players.spec import AlphaBetaSpec, HubSpec, NetworkSpec, RandomSpec, RolloutSpec, parse_player
from engine.rules import played
from engine.sealed import sealed, unsealed
from engine.search import SearchConfig
from learner.inference import BackendName
from learner.network import NETWORKS, NetworkConfig, setting_name
from learner.trainer import TrainerConfig

from ..games.replay import ReplayConfig
from ..games.tree_samples import TreeSampleConfig
from ..rating.gate import GateConfig
from .retired import without_retired

DEFAULT_PRESET = "quick"


class ConfigError(ValueError):
    """A setting does not exist or has an invalid value; the message names it."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SelfPlayConfig(_Settings):
    """How the games of self-play are played."""

    actors: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = Field(
        1,
        description="number of actors, with one thread each; auto: one for every core, also of nodes that join later "
        "(with a shared evaluator on a GPU, three for every two cores of this machine)",
    )
    nice: int = Field(
        10, ge=0, le=19, description="how far actors lower their priority, so that they do not slow down the learner"
    )
    games_in_lockstep: int = Field(128, ge=1, le=4096, description="games that an actor plays at once: its batch")
    backend: BackendName = Field("auto", description="inference backend of actors; auto: by network and device")
    evaluator: Literal["auto", "own", "shared"] = Field(
        "auto", description="own: one in each actor; shared: two processes evaluate for all; auto: shared on a GPU"
    )
    positions_per_shard: int = Field(
        2000, ge=1, le=1_000_000, description="samples at which an actor delivers its finished games"
    )
    full_search_fraction: float = Field(0.5, gt=0, le=1, description="fraction of full searches (KataGo: 0.25)")
    tree_samples: TreeSampleConfig = TreeSampleConfig()
    fast_simulations: int = Field(8, ge=0, description="simulations of other searches, which train only the value")
    fork_fraction: float = Field(0.0, ge=0, le=1, description="fraction of games that begin beside an earlier one")
    ballot_fraction: float = Field(
        0.5 if played.HAS_BALLOTS else 0.0, ge=0, le=1, description="fraction of other games that start from a ballot"
    )
    random_opening_plies: int = Field(6, ge=0, le=40, description="most random plies at the start of all other games")
    max_plies: int = Field(240, ge=10, le=2000, description="a game of this length is a draw")
    resign_value: float | None = Field(None, ge=-1, le=0, description="resign below this value; none: never resign")
    resign_moves: int = Field(3, ge=1, description="moves in a row with a value below it before a side resigns")
    play_on_fraction: float = Field(0.1, ge=0, le=1, description="fraction of games never resigned nor adjudicated")
    adjudicate: bool = Field(False, description="end games inside the endgame tables, with the tables' value")
    rescore: bool = Field(False, description="correct the results of finished games by the endgame tables (lc0)")
    table_pieces: int = Field(4, ge=2, le=10, description="most pieces at which games are adjudicated or rescored")


class LoopConfig(_Settings):
    """How self-play, learning and gating take turns."""

    minutes: float | None = Field(
        None, gt=0, description="length of the run from its first games on; none: it ends after max_iterations"
    )
    max_iterations: int | None = Field(None, ge=1, description="number of candidates after which the run ends")
    steps_per_iteration: int = Field(500, ge=1, description="training steps between two candidates")
    games_per_iteration: int | None = Field(
        None,
        ge=1,
        description="as in AlphaGo Zero: a candidate after this many games and the training on all their samples",
    )
    samples_before_training: int = Field(5000, ge=1, description="samples needed before the first training step")
    reuse: float = Field(
        4.0, gt=0, description="most training samples drawn per new sample: the learner waits, actors never do"
    )
    deterministic: bool = Field(
        False, description="learner and one actor take turns: on a CPU the same seed gives the same run"
    )
    save_seconds: float = Field(60.0, gt=0, description="seconds between two saves of the training state")
    anchors: tuple[str, ...] = Field(("random", "rollout:200"), description="fixed players that rate the networks")
    anchor_games: int = Field(20, ge=0, description="games of each promoted network against each anchor")
    exam_positions: int = Field(
        5000 if played.HAS_TABLES else 0,
        ge=0,
        description="endgame positions that test each promoted network's win/draw/loss head",
    )
    keep_checkpoints: int = Field(50, ge=2, description="candidates kept beside the promoted ones")


class TeacherConfig(_Settings):
    """Another network that a run learns from, kept in the folder ``teacher`` of the run."""

    digest: str = Field(description="digest of its weights")
    policy_weight: float = Field(0.5, ge=0, le=1, description="weight of its move probabilities in the policy target")
    value_weight: float = Field(0.5, ge=0, le=1, description="weight of its win/draw/loss in the value target")
    plays: float = Field(0.0, ge=0, le=1, description="fraction of the shards whose games are searched with it")


class OpponentConfig(_Settings):
    """A network that never learns, kept in the folder ``opponent`` of the run: all games are against it.

    In these games, and in those that take the place of the gate, it searches as ``match_search`` says.
    """

    digest: str = Field(description="digest of its weights")


class StudentConfig(_Settings):
    """A second network trained on the same samples, kept in the folder ``student`` of each checkpoint.

    It learns from the batches of the first network: ``batch_size`` and ``wdl_search_weight`` of its trainer have no
    effect.
    """

    network: NetworkConfig = NETWORKS["wide512"]
    trainer: TrainerConfig = TrainerConfig(learning_rate=2e-3, weight_decay=1e-4, policy_weight=0.5)


class Stage(_Settings):
    """Settings that were changed when a run was resumed, see ``selfplay.run.stages``.

    Attributes:
        iteration, steps: iterations and training steps that the run had made by then.
        changes: dotted name → (value before, value from then on).
    """

    iteration: int = Field(ge=0)
    steps: int = Field(ge=0)
    changes: dict[str, tuple[Any, Any]]


class RunConfig(_Settings):
    """Everything that determines a run; stored as ``config.json`` in its folder."""

    preset: str = DEFAULT_PRESET
    game: GameName = Field("english", description="see ``crownhead train --game``")
    seed: int = Field(1, ge=0, lt=2**63)
    pool: Literal["local", "threads", "ray"] = Field(
        "local", description="actors are processes of this machine, threads of the learner, or processes of Ray"
    )
    mirror: str | None = Field(None, description="URL of a copy of the run, for fsspec: s3://...")
    address: str | None = Field(None, description="address of a Ray cluster; none: start Ray on this machine")
    device: str = Field("auto", description="device of the learner and the actors: cpu, cuda or auto")
    init: str | None = Field(None, description="digest of the network that the run begins with; none: random weights")
    network: NetworkConfig = NETWORKS["4x48"]
    student: StudentConfig | None = Field(None, description="a second network in training, for games with time limits")
    teacher: TeacherConfig | None = Field(None, description="see ``crownhead train --teacher``")
    opponent: OpponentConfig | None = Field(None, description="see ``crownhead train --against``")
    search: SearchConfig = SearchConfig()
    selfplay: SelfPlayConfig = SelfPlayConfig()
    match_search: SearchConfig = SearchConfig()
    trainer: TrainerConfig = TrainerConfig()
    replay: ReplayConfig = ReplayConfig()
    gate: GateConfig = GateConfig()
    loop: LoopConfig = LoopConfig()
    stages: tuple[Stage, ...] = Field((), description="changes of settings when the run was resumed")

    def _needs_tables(self) -> bool:
        searches = (self.search.oracle != "off", self.match_search.oracle != "off")
        return any((*searches, self.selfplay.adjudicate, self.selfplay.rescore, self.loop.exam_positions > 0))

    @model_validator(mode="after")
    def _check(self) -> "RunConfig":
        for anchor in self.loop.anchors:
            if isinstance(parse_player(anchor), NetworkSpec | HubSpec):
                raise ValueError(_no_anchor(anchor))
        if self.game == GAME and not played.HAS_TABLES and self._needs_tables():
            raise ValueError(f"{played.TITLE} has no endgame tables for adjudication, rescoring, search or exam")
        if self.game == GAME and not played.HAS_BALLOTS and self.selfplay.ballot_fraction > 0:
            raise ValueError(f"{played.TITLE} has no ballots: selfplay.ballot_fraction must be 0")
        if self.loop.minutes is None and self.loop.max_iterations is None:
            raise ValueError("loop.minutes or loop.max_iterations must be set, else the run never ends")
        if self.loop.deterministic and (self.loop.minutes is not None or self.selfplay.actors != 1):
            raise ValueError("loop.deterministic needs selfplay.actors=1, loop.minutes=null and loop.max_iterations")
        if self.opponent is not None and self.teacher is not None and self.teacher.plays > 0:
            raise ValueError("teacher.plays must be 0 in a run whose games are all against one network")
        trainers = [self.trainer] + ([self.student.trainer] if self.student else [])
        by_time = any(trainer.schedule == "cosine" and trainer.schedule_steps == 0 for trainer in trainers)
        if by_time and self.loop.minutes is None:
            raise ValueError("trainer.schedule cosine needs trainer.schedule_steps or loop.minutes")
        return self


_WIDE_TRAINER: dict[str, Any] = {
    "learning_rate": 2e-3,
    "batch_size": 1024,
    "weight_decay": 1e-4,
    "wdl_search_weight": 0.5,
    "schedule": "cosine",
}

_QUICK: dict[str, Any] = {
    "network": NETWORKS["wide256"].model_dump(),
    "search": {"num_simulations": 100},
    "match_search": {"num_simulations": 100},
    # With two actors beside the learner, both of two cores are busy even while the learner waits.
    "selfplay": {"actors": 2, "fast_simulations": 16, "positions_per_shard": 10_000},
    "trainer": {**_WIDE_TRAINER, "final_factor": 0.1},
    "loop": {
        "minutes": 13.5,
        "steps_per_iteration": 3000,
        "samples_before_training": 20_000,
        "reuse": 5.0,
        "anchor_games": 6,
    },
    "gate": {"max_games": 60, "elo1": 80},
    "replay": {"window_start": 400_000},
}

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "pool": "threads",
        "network": NETWORKS["tiny"].model_dump(),
        "search": {"num_simulations": 8},
        "match_search": {"num_simulations": 8},
        "selfplay": {
            "nice": 0,  # actors of low priority would hardly run beside other tests
            "games_in_lockstep": 32,
            "positions_per_shard": 300,
            "fast_simulations": 4,
            "max_plies": 120,
            "backend": "torch",
        },
        "trainer": {"batch_size": 64, "warmup_steps": 10},
        "loop": {
            "max_iterations": 2,
            "steps_per_iteration": 20,
            "samples_before_training": 500,
            "anchors": ["random"],
            "anchor_games": 4,
        },
        # Any candidate passes: this preset tests that every part of a run works, promotion included.
        "gate": {"rule": "winrate", "score_threshold": 0.0, "max_games": 8},
    },
    "quick": _QUICK,
    "laptop": {
        "network": NETWORKS["wide512"].model_dump(),
        "search": {"num_simulations": 200},
        "match_search": {"num_simulations": 200},
        "selfplay": {
            "actors": 2,
            "fast_simulations": 32,
            "positions_per_shard": 20_000,
            "random_opening_plies": 8,
            "adjudicate": True,
            "rescore": True,
            "table_pieces": 5,
        },
        "trainer": {**_WIDE_TRAINER, "final_factor": 0.02},
        "loop": {
            "minutes": 120.0,
            "steps_per_iteration": 4000,
            "samples_before_training": 50_000,
            "reuse": 6.0,
            "anchor_games": 6,
        },
        "gate": {"rule": "winrate", "score_threshold": 0.5, "max_games": 60},
        "replay": {"window_start": 1_000_000},
    },
    "gpu": {  # searches as the later part of the champion's run did
        "network": NETWORKS["10x128"].model_dump(),
        "student": {"network": NETWORKS["wide512"].model_dump()},
        "search": {
            "num_simulations": 96,
            "policy_temperature": 1.7,
            "temperature_plies": 14,
            "final_temperature": 0.3,
        },
        "selfplay": {
            "actors": "auto",
            "games_in_lockstep": 512,
            "positions_per_shard": 20_000,
            "full_search_fraction": 0.35,
            "fast_simulations": 16,
            "adjudicate": True,
            "rescore": True,
            "table_pieces": 5,
        },
        "trainer": {
            "learning_rate": 2e-3,
            "schedule": "cosine",
            "batch_size": 2048,
            "wdl_search_weight": 0.5,
            "precision": "bf16",
        },
        "match_search": {"num_simulations": 64, "policy_temperature": 2.0},
        "loop": {
            "minutes": 25.0,
            "steps_per_iteration": 1000,
            "samples_before_training": 50_000,
            "reuse": 5.0,
            "anchor_games": 6,
        },
        "gate": {"max_games": 312, "elo1": 30},  # every ballot once: networks would play the same games again
        "replay": {"window_start": 500_000},
    },
}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merges ``changes`` into ``base``, nested dictionaries too; a network is replaced as a whole."""
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict) and "family" not in value
        result[key] = merged(result[key], value) if both else value
    return result


def nested(key: str, value: Any) -> dict[str, Any]:
    """Nested dictionaries that hold ``value`` under a dotted key: ``a.b`` gives ``{"a": {"b": value}}``."""
    first, _, rest = key.partition(".")
    return {first: nested(rest, value) if rest else value}


def parse_setting(text: str) -> dict[str, Any]:
    """Parses ``search.c_puct=2`` into nested dictionaries; raises ``ConfigError``."""
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise ConfigError(f"--set {text!r}: write key=value, like search.num_simulations=32")
    is_network = key in ("network", "student.network")
    if is_network and value in NETWORKS:
        return nested(key, NETWORKS[value].model_dump())
    if is_network and not value.startswith("{"):
        names = ", ".join(NETWORKS)
        raise ConfigError(f"--set {text!r}: choose one of {names}, or add your own with crownhead --import")
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = value
    return nested(key, parsed)


AGAINST: dict[str, Any] = {"gate": {"rule": "always"}}
"""What a run with an opponent begins with, beside its preset: games with its candidates are a measurement, no gate."""


def make_config(preset: str = DEFAULT_PRESET, settings: Sequence[str] = (), **changes: Any) -> RunConfig:
    """Returns the configuration of a preset with changes.

    Args:
        settings: ``key=value`` texts with dotted keys (``trainer.learning_rate=0.001``, ``network=5x64``).
        changes: values of top-level fields; ``settings`` override them.

    Raises:
        ConfigError: there is no such preset or setting, or a value is out of range.
    """
    if preset not in PRESETS:
        raise ConfigError(f"no preset {preset!r}: choose one of {', '.join(PRESETS)}")
    return config_from(preset, PRESETS[preset], settings, **changes)


def config_from(preset: str, fields: dict[str, Any], settings: Sequence[str] = (), **changes: Any) -> RunConfig:
    """Does what ``make_config`` does, for a preset that is not in ``PRESETS``.

    Args:
        preset: its name.
        fields: its values; all other fields have their defaults.
        settings, changes: see ``make_config``.

    Raises:
        ConfigError: there is no such setting, or a value is out of range.
    """
    fields = merged({**fields, "preset": preset, "game": GAME}, changes)
    for text in settings:
        fields = merged(fields, parse_setting(text))
    config = parse_config(fields)
    check_anchors(config)
    check_tree_samples(config)
    return config


def check_anchors(config: RunConfig) -> None:
    """Refuses anchors that cannot play any position by themselves, which earlier runs may have; ``ConfigError``."""
    for anchor in config.loop.anchors:
        if not isinstance(parse_player(anchor), RandomSpec | RolloutSpec | AlphaBetaSpec):
            raise ConfigError(_no_anchor(anchor))


def check_tree_samples(config: RunConfig) -> None:
    """Refuses settings that ask for samples of trees and give none, which earlier runs may have; ``ConfigError``."""
    wanted, name = config.selfplay.tree_samples, "selfplay.tree_samples"
    if wanted.offshoots > 0 and wanted.most == 0:
        raise ConfigError(f"{name}.offshoots are of the samples inside trees, of which {name}.most allows none")
    largest = max(config.search.num_simulations, config.selfplay.fast_simulations)
    if wanted.most > 0 and wanted.least_visits > largest:
        raise ConfigError(f"{name}.least_visits is {wanted.least_visits}, and a search has {largest} simulations")


def _no_anchor(anchor: str) -> str:
    return f"loop.anchors: {anchor!r} is not random, rollout:N or alphabeta:DEPTH"


def parse_config(fields: Any, source: str = "configuration") -> RunConfig:
    """Checks the fields of a configuration.

    Args:
        source: where they come from, for messages.

    Raises:
        ConfigError: a setting is wrong; the message names the first one.
        OtherGameError: the configuration is for another game than this process plays.
    """
    try:
        config = RunConfig.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = setting_name(first["loc"]) or "settings"
        reason = "there is no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigError(f"{source}: {place}: {reason}") from error
    check_game(source, config.game)
    return config


def config_json(config: RunConfig) -> bytes:
    """Contents of a ``config.json``."""
    return sealed(config.model_dump(mode="json"))


def read_config(path: Path) -> RunConfig:
    """Reads a ``config.json`` and drops retired settings; raises ``ConfigError``, whose message names the file."""
    try:
        fields = unsealed(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse_config(without_retired(fields, str(path)), str(path))
