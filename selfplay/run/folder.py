"""A run on disk: one folder with all its state, written so that a kill at any moment does not damage it."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import BaseModel, ValidationError

from engine.files import StorageError, atomic_write, make_folder, open_locked, remove_stale_temporaries, sha256_of
from learner.checkpoint import read_info, read_tensors

from .config import RunConfig, config_json, read_config

STATE_VERSION: Literal[1] = 1


class RunError(ValueError):
    """A run's folder cannot be used; the message says why and what to do."""


class Promotion(BaseModel, extra="forbid", frozen=True):
    """A network that became the best, after ``steps`` training steps and ``minutes`` of the run."""

    checkpoint: str
    iteration: int
    steps: int
    minutes: float


class RunState(BaseModel, extra="forbid", frozen=True):
    """State of a run; ``iteration``, ``best`` and ``promotions`` change only between iterations."""

    schema_version: Literal[1] = STATE_VERSION
    iteration: int = 0
    best: str = "000000"
    promotions: tuple[Promotion, ...] = ()
    minutes: float = 0.0
    minutes_limit: float | None = None
    checksum: str = ""

    def sealed(self) -> "RunState":
        """A copy with its checksum."""
        bare = self.model_copy(update={"checksum": ""})
        return bare.model_copy(update={"checksum": sha256_of(bare.model_dump_json().encode())})


class RunFolder:
    """Paths and small files of a run; ``create`` makes a new run, ``open`` reads an existing one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config_path = self.path / "config.json"  # the configuration (``RunConfig``)
        self.state_path = self.path / "state.json"  # iteration, best network, promotions, time used; with a checksum
        self.trainer_path = self.path / "trainer.safetensors"  # learner: weights, average, optimizer, number of steps
        self.student_path = self.path / "student.safetensors"  # the same for the student, if there is one
        self.teacher = self.path / "teacher"  # checkpoint of the teacher, if there is one
        self.opponent = self.path / "opponent"  # checkpoint of the opponent of all games, if there is one
        self.shards = self.path / "shards"  # games
        self.checkpoints = self.path / "checkpoints"  # 000000 (random weights), 000001, ...: candidates
        self.gate_path = self.path / "gate.json"  # games of the gate in play, to survive a kill
        self.anchor_path = self.path / "anchor.json"  # the same of a match with an anchor
        self.elo_path = self.path / "elo.json"  # results of all matches and the table of ratings
        self.figure_path = self.path / "ratings.png"  # picture of the ratings, drawn when training ends
        self.log_path = self.path / "log.jsonl"  # one JSON object per event
        self.tensorboard = self.path / "tensorboard"  # curves

    @staticmethod
    def create(
        path: str | os.PathLike[str], config: RunConfig, fill: Callable[["RunFolder"], None] = lambda folder: None
    ) -> "RunFolder":
        """Makes a new run; raises ``RunError`` if the folder has one already, or ``StorageError``.

        Args:
            fill: writes the networks that the run begins with.
        """
        folder = RunFolder(path)
        folder.check_free()
        for part in (folder.path, folder.shards, folder.checkpoints):
            make_folder(part)
        fill(folder)
        # Last, because a folder with a configuration counts as a run.
        folder.write_state(RunState(minutes_limit=config.loop.minutes))
        atomic_write(folder.config_path, config_json(config))
        return folder

    @staticmethod
    def open(path: str | os.PathLike[str]) -> tuple["RunFolder", RunConfig]:
        """An existing run and its configuration; raises ``RunError`` or ``ConfigError`` if it cannot be read."""
        folder = RunFolder(path)
        if not folder.config_path.is_file():
            raise RunError(f"{path} holds no run to resume: start one without --resume")
        remove_stale_temporaries(folder.path)
        return folder, read_config(folder.config_path)

    @property
    def is_judging(self) -> bool:
        """Whether the run was stopped during a gate or a match with an anchor, which it finishes when it is resumed."""
        return self.gate_path.exists() or self.anchor_path.exists()

    def check_free(self) -> None:
        """Raises ``RunError`` if the folder has a run already, or what is left of one."""
        if self.config_path.exists():
            raise RunError(
                f"{self.path} holds a run already: continue it with --resume, choose another --run, or delete it"
            )
        # A new run would go on from an old learner's weights and steps.
        files = self.trainer_path, self.student_path, self.elo_path
        if any(path.exists() for path in (*files, *self.checkpoints.glob("*"), *self.shards.glob("*"))):
            raise RunError(
                f"{self.path} holds the games or networks of a run without its config.json: choose another --run"
            )

    def change_config(self, before: RunConfig, config: RunConfig) -> None:
        """Replaces the configuration, and logs the stages that are new in it; raises ``StorageError``."""
        atomic_write(self.config_path, config_json(config))
        for stage in config.stages[len(before.stages) :]:
            self.log("settings", **stage.model_dump(mode="json"))

    def steps_of(self, iteration: int) -> int:
        """Training steps of the candidate of an iteration; raises ``CheckpointError``."""
        steps = read_info(self.checkpoint(f"{iteration:06d}")).figures.get("steps")
        return steps if isinstance(steps, int) else 0

    def steps_made(self) -> int:
        """Training steps of the saved learner; 0 before its first save. Raises ``CheckpointError``."""
        return int(read_tensors(self.trainer_path)[1]["steps"]) if self.trainer_path.exists() else 0

    def read_state(self) -> RunState:
        """Reads the state; raises ``RunError`` if ``state.json`` is missing or damaged."""
        try:
            state = RunState.model_validate_json(self.state_path.read_bytes())
            what = "wrong checksum" if state != state.sealed() else None
        except OSError as error:
            raise RunError(f"{self.state_path} cannot be read: {error.strerror or error}") from error
        except ValidationError as error:
            what = " ".join(error.errors()[0]["msg"].split())
        if what is not None:
            raise RunError(f"{self.state_path} is damaged ({what}): restore it from a copy, or begin another run")
        return state

    def write_state(self, state: RunState) -> None:
        """Replaces ``state.json``; raises ``StorageError``."""
        atomic_write(self.state_path, (state.sealed().model_dump_json(indent=2) + "\n").encode())

    def checkpoint(self, name: str) -> Path:
        return self.checkpoints / name

    @property
    def best_checkpoint(self) -> Path:
        """Folder of the best network; raises ``RunError`` if the state cannot be read."""
        return self.checkpoint(self.read_state().best)

    def log(self, event: str, **fields: Any) -> None:
        """Appends an event with its time to the log; raises ``StorageError``."""
        line = json.dumps({"time": round(time.time(), 3), "event": event, **fields}) + "\n"
        try:
            with open(self.log_path, "a+b") as file:
                if file.tell() and _last_byte(file) != b"\n":
                    line = "\n" + line  # a kill cut the last line short
                file.write(line.encode())
        except OSError as error:
            raise StorageError(error.errno, f"cannot write {self.log_path}: {error.strerror or error}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder for one training process; raises ``RunError`` if another one holds the lock.

        The lock ends with the process.
        """
        try:
            file = open_locked(self.path / "lock")
        except StorageError:
            raise
        except OSError:
            raise RunError(f"{self.path} is in use by another training process") from None
        with file:
            yield


class _FaultLog(logging.Handler):
    def __init__(self, folder: RunFolder) -> None:
        super().__init__(logging.WARNING)
        self._folder = folder

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # on a full disk a warning must not end what went on
            self._folder.log("fault", text=record.getMessage())


@contextmanager
def faults_logged(folder: RunFolder) -> Iterator[None]:
    """Inside this context, warnings of this package also go to the run's log, as events ``fault``."""
    handler, logger = _FaultLog(folder), logging.getLogger("selfplay")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _last_byte(file: IO[bytes]) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)
