"""Runs inside a report's folder: started, continued, and read."""

from pathlib import Path
from typing import NamedTuple

from selfplay.games.shards import SUFFIX, read_shard_info
from selfplay.progress import TrainingProgress
from selfplay.rating.elo import Tally
from selfplay.run.config import RunConfig
from selfplay.run.folder import RunError, RunFolder, RunState
from selfplay.run.stages import flat_settings

from .experiment import Measure

RESULTS = (
    Measure("wins", "won", "count"),
    Measure("draws", "drawn", "count"),
    Measure("losses", "lost", "count"),
    Measure("score", "score"),
)
_LIMITS = "loop.minutes", "loop.max_iterations"  # may differ when a run is continued


class Version(NamedTuple):
    """A promoted network of a run, and the minutes of training at its promotion; v0 has random weights."""

    name: str
    checkpoint: Path
    minutes: float


def check_run(folder: Path, config: RunConfig) -> None:
    """Raises ``RunError`` if the folder holds a run whose settings differ from ``config``; it names the first one."""
    if not RunFolder(folder).config_path.exists():
        return
    stored = RunFolder.open(folder)[1]
    was, now = ({**flat_settings(each), "stages": each.stages} for each in (stored, config))
    for name in now:
        if name not in _LIMITS and was.get(name) != now[name]:
            raise RunError(f"{folder} holds a run with {name} {was.get(name)}, not {now[name]}: choose another --out")


def train_run(folder: Path, config: RunConfig, quiet: bool) -> None:
    """Starts or continues a run until its minutes or its iterations are used up; Ctrl-C saves.

    Raises ``RunError`` if the folder holds a run with other settings, or another process trains in it.
    """
    from selfplay.training.loop import Training

    check_run(folder, config)
    run = RunFolder(folder)
    if not run.config_path.exists():
        run = RunFolder.create(folder, config)
    with run.locked():
        state = run.read_state()
        if is_over(state, config) and not run.gate_path.exists():  # else a candidate is to be judged
            return
        run.write_state(state.model_copy(update={"minutes_limit": config.loop.minutes}))
        with TrainingProgress(quiet) as progress:
            training = Training(run, config, progress)
            progress.limit(training.minutes, config.loop.minutes)
            training.run()
        state = run.read_state()
        if not is_over(state, config):  # too little time for another candidate is left: count it as used
            run.write_state(state.model_copy(update={"minutes": config.loop.minutes}))


def is_over(state: RunState, config: RunConfig) -> bool:
    """Whether a run has used up its minutes or its iterations."""
    minutes, iterations = config.loop.minutes, config.loop.max_iterations
    return (minutes is not None and state.minutes >= minutes) or (
        iterations is not None and state.iteration >= iterations
    )


def read_run(folder: Path) -> tuple[RunState, list[Version]]:
    """State of a run, and its versions from random weights to the last promoted one; no versions before its start."""
    run = RunFolder(folder)
    first = run.checkpoint("000000")
    if not run.config_path.exists() or not first.exists():
        return RunState(), []
    state = run.read_state()
    promoted = (
        Version(f"v{number}", run.checkpoint(made.checkpoint), made.minutes)
        for number, made in enumerate(state.promotions, 1)
    )
    return state, [Version("v0", first, 0.0), *promoted]


def played_games(folder: Path) -> int:
    return sum(read_shard_info(path).games for path in RunFolder(folder).shards.glob(f"*{SUFFIX}"))


def unfinished(state: RunState, versions: int, config: RunConfig, none: str, played: int, wanted: int) -> list[str]:
    """Notes on what is missing: training, promoted versions, or games.

    Args:
        versions: number of versions, with that of random weights.
        none: note for the case that no version was promoted.
        played, wanted: numbers of games played and of all games.
    """
    notes = []
    if not is_over(state, config):
        done = f"{state.minutes:.1f} of {config.loop.minutes:g} minutes of training are done"
        notes.append(f"Not finished: {done}; the same command goes on.")
    elif versions == 1:
        notes.append(none)
    if played < wanted:
        notes.append(f"Not finished: {played} of {wanted} games are played; the same command goes on.")
    return notes


def tally_figures(tally: Tally | None) -> dict[str, float]:
    """Key of ``RESULTS`` → value; empty without games."""
    if tally is None or not tally.games:
        return {}
    return {"wins": tally.wins, "draws": tally.draws, "losses": tally.losses, "score": tally.points / tally.games}
