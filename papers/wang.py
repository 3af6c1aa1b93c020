"""``crownhead reproduce wang``: the five experiments of Wang 2023, scaled down to minutes on two cores."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from engine.tablebase.dense import load_tables
from learner.endgame.progress import OracleProgress
from learner.report import make_writable_folder

from . import published, wang_experiments
from .experiment import Experiment, Facts, ReproduceError, chosen_experiments, print_experiments, run_experiments
from .wang_lab import NAMES, Lab

EXPERIMENTS: dict[str, Callable[[Lab, int], Experiment]] = {
    "sampling": wang_experiments.sampling,
    "pieces": wang_experiments.across_pieces,
    "transfer": wang_experiments.transfer,
    "threshold": wang_experiments.threshold,
    "compression": wang_experiments.compression,
}
FEWEST_PIECES, MOST_PIECES = 4, 6  # transfer needs tables of two pieces fewer; more pieces do not fit into memory
_TITLE = "Wang 2023, “Deep Dive on Checkers Endgame Data”, done again"
_INTRODUCTION = (
    "Networks learn the exact values of endgames, win, draw or loss for the side to move, and are tested on positions "
    "that they were not trained on. Published figures are shown beside those measured here, with the published network "
    "in a fraction of the time, and with a network and a search of this project."
)


def wang_command(
    experiment: str | None,
    minutes: float,
    pieces: int,
    seed: int,
    folder: Path | None,
    out: Path,
    quiet: bool,
    as_published: bool = False,
) -> dict[str, Any]:
    """Runs one experiment of Wang 2023 or all five; see ``crownhead reproduce wang --help``.

    Returns:
        Name of each experiment → ``Experiment.to_json``.

    Raises:
        ValueError: the experiment is unknown, a number is out of range, or a table cannot be read.
        StorageError: the report cannot be written.
        KeyboardInterrupt: Ctrl-C; the message says what the report contains.
    """
    names = chosen_experiments(experiment, EXPERIMENTS, minutes, out, _TITLE)
    if not FEWEST_PIECES <= pieces <= MOST_PIECES:
        raise ReproduceError(f"--pieces {pieces}: {FEWEST_PIECES} to {MOST_PIECES} are possible")
    make_writable_folder(out)  # before the work, to find errors early
    began = time.monotonic()
    with OracleProgress(quiet) as progress:
        progress.phase(f"tables of 2 to {pieces} pieces")
        tables = load_tables(folder, pieces, report=progress.tables)
        wanted = [training for name in names for training in wang_experiments.trainings_for(name, pieces)]
        extra = wang_experiments.CODEC_WEIGHT if "compression" in names else 0.0
        lab = Lab(tables, wanted, minutes, extra, seed, progress, as_published)

        def facts() -> Facts:
            return {
                "pieces": f"2 to {pieces}",
                "minutes of training": minutes,
                "minutes in all": round((time.monotonic() - began) / 60, 1),
                "positions of each test": lab.tested,
                "seed": seed,
                **{f"training of {NAMES[kind]}": lab.settings[kind].summary for kind in NAMES},
                f"training of {NAMES['wang']}, published": published.SETTINGS,
            }

        steps = [(name, partial(_done, name, lab, pieces)) for name in names]
        page, found = run_experiments(out, _TITLE, _INTRODUCTION, facts, steps)
    return print_experiments(page, found, quiet)


def _done(name: str, lab: Lab, pieces: int) -> Experiment:
    """Runs the trainings that an experiment needs, then the experiment."""
    lab.run(wang_experiments.trainings_for(name, pieces))
    return EXPERIMENTS[name](lab, pieces)
