"""``crownhead reproduce abdalla``: Abdalla 2024, with chess endgames of 3 and 4 men, in minutes on one core."""

import contextlib
import importlib.util
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.console import Console
from learner.endgame.progress import OracleProgress
from learner.report import make_writable_folder

from .experiment import Facts, ReproduceError, Step, chosen_experiments, print_experiments, run_experiments

if TYPE_CHECKING:
    from .chess_lab import ChessLab

EXPERIMENTS = ("time", "accuracy", "search", "storage")
_TITLE = "Abdalla 2024, “Beyond Tablebases”, done again"
_INTRODUCTION = (
    "Networks answer whether a chess endgame is won, drawn or lost for the side to move, in place of Syzygy tables. "
    "Published figures are shown beside those measured here, with the published network and with one like this "
    "project's endgame oracle."
)


def _steps(lab: "ChessLab", names: list[str]) -> list[tuple[str, Step]]:
    """Steps of the chosen experiments in order; accuracy is reported after each of the two networks."""
    from . import abdalla_experiments as done

    steps: list[tuple[str, Step]] = [
        ("time", partial(done.probe_time, lab)),
        ("accuracy", partial(done.accuracy, lab, ("pair",))),
        ("accuracy", partial(done.accuracy, lab, ("cnn", "pair"))),
        ("search", partial(done.search, lab)),
        ("storage", partial(done.storage, lab)),
    ]
    return [(name, step) for name, step in steps if name in names]


def abdalla_command(
    experiment: str | None, minutes: float, syzygy: Path, seed: int, out: Path, quiet: bool
) -> dict[str, Any]:
    """Runs one experiment of Abdalla 2024 or all four; see ``crownhead reproduce abdalla --help``.

    Returns:
        Name of each experiment → ``Experiment.to_json``.

    Raises:
        ValueError: python-chess is missing, the experiment is unknown, a number is out of range, or no tables can be
            read.
        StorageError: the report cannot be written.
        KeyboardInterrupt: Ctrl-C; the message says what the report contains.
    """
    names = chosen_experiments(experiment, EXPERIMENTS, minutes, out, _TITLE)
    if importlib.util.find_spec("chess") is None:
        raise ReproduceError("chess endgames need python-chess: pip install 'crownhead[papers]'")
    from .chess_lab import NAMES, NETWORKS, SETTINGS, TESTED, ChessLab
    from .chess_positions import SyzygyTables

    tables = SyzygyTables(syzygy)
    make_writable_folder(out)  # before the work, to find errors early
    if tables.missing:
        text = f"{syzygy} lacks {', '.join(tables.missing)}: positions of {', '.join(tables.left_out)} are left out"
        Console(stderr=True).print(text, soft_wrap=True, highlight=False)
    began = time.monotonic()
    with contextlib.closing(tables), OracleProgress(quiet) as progress:
        lab = ChessLab(tables, minutes, seed, progress)

        def facts() -> Facts:
            return {
                "men": " and ".join(map(str, tables.men)),
                "tables": len(tables.paths),
                "tables missing": ", ".join(tables.missing) or "none",
                "minutes of labelling and training": minutes,
                "minutes in all": round((time.monotonic() - began) / 60, 1),
                "minutes of processor time": round(time.process_time() / 60, 1),
                "positions of each test": TESTED,
                "seed": seed,
                **{f"parameters of {name}": NETWORKS[kind]().parameter_count for kind, name in NAMES.items()},
                **{f"training of {name}": SETTINGS[kind].summary for kind, name in NAMES.items()},
            }

        page, found = run_experiments(out, _TITLE, _INTRODUCTION, facts, _steps(lab, names))
    return print_experiments(page, found, quiet)
