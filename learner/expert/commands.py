"""What ``crownhead pretrain`` does."""

import math
import shlex
from pathlib import Path
from typing import Any

import torch

from engine.claims import claimed
from engine.console import Console, Table

from ..checkpoint import INFO_FILE, WEIGHTS_FILE, CheckpointError, load_checkpoint, naming_errors, save_checkpoint
from ..endgame.progress import OracleProgress
from ..network import NETWORKS, Network, make_network, try_network
from ..report import make_writable_folder
from .accuracy import TOPS, MoveAccuracy, move_accuracy
from .games import ExpertGames, ExpertGamesError, read_expert_games, split_by_game
from .pretrain import Pretraining, PretrainPoint


def pretrain_command(games: Path, out: Path, net: str, minutes: float, seed: int, quiet: bool) -> dict[str, Any]:
    """Learns from recorded games; see ``crownhead pretrain --help``.

    Returns:
        The figures of ``--json``. ``seen`` counts moves that ``test`` leaves out, because other games have their
        positions too; ``test_with_seen`` has them.

    Raises:
        ValueError: no such network, bad minutes, games that cannot be learnt from, or another training in ``out``.
        StorageError: a file cannot be read or written.
    """
    if not 0 < minutes < math.inf:
        raise ExpertGamesError(f"--minutes {minutes:g}: the training needs more than none, and not for ever")
    _check_replaceable(out)
    with claimed(out):
        return _learnt(games, out, net, minutes, seed, quiet)


def _learnt(games: Path, out: Path, net: str, minutes: float, seed: int, quiet: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    network, parent = named_network(net, seed)
    with OracleProgress(quiet) as progress:
        read = read_with_progress(games, progress)
        split = split_by_game(read, seed)
        training = Pretraining(network, split.train, minutes, seed)
        interrupted = train_with_progress(training, minutes, progress) is None
        progress.phase("measuring")
        learnt = training.trainer.ema_network
        figures: dict[str, Any] = {
            "games": len(read.keys),
            "twice": read.twice,
            "unread": len(read.unread),
            "unfinished": read.unfinished,
            "positions": len(split.train.moves),
            "seen": len(split.seen.moves),
            "steps": training.trainer.steps,
            "epochs": training.epochs,
        }
        try:
            validation, test, both = (
                move_accuracy(learnt, samples) for samples in (split.validation, split.test, split.test_with_seen)
            )
            figures |= {"validation": validation.to_json(), "test": test.to_json(), "test_with_seen": both.to_json()}
        except KeyboardInterrupt:
            interrupted = True
    kept = {"games": figures["games"], "samples": figures["positions"], **figures}
    save_checkpoint(out, learnt, kept, parent)
    if interrupted:
        raise KeyboardInterrupt(f"what was learnt until then is in {shlex.quote(str(out))}")
    if not quiet:
        _print(figures, test, both)
        Console().print(f"Network: {out} (play without search: {out}@0)", soft_wrap=True)
    return {"checkpoint": str(out), **figures}


def _check_replaceable(out: Path) -> None:
    """Raises ``CheckpointError`` or ``StorageError`` if no checkpoint can be written there, or files would be lost."""
    with naming_errors(out):
        there = {path.name for path in out.iterdir()} if out.exists() else set()
    if there and INFO_FILE not in there:
        raise CheckpointError(f"{out}: is in the way and no checkpoint; choose another --out")
    if others := sorted(there - {INFO_FILE, WEIGHTS_FILE}):
        raise CheckpointError(f"{out}: {others[0]} would be lost with the checkpoint there; choose another --out")
    make_writable_folder(out.absolute().parent)


def named_network(net: str, seed: int) -> tuple[Network, str | None]:
    """A new network of that size, or one to begin with; and the digest of the latter's checkpoint.

    Raises ``ExpertGamesError`` if it is neither, ``CheckpointError`` if a checkpoint cannot be read, ``NetworkError``
    if an own network is faulty.
    """
    if net in NETWORKS:
        try_network(NETWORKS[net])
        torch.manual_seed(seed)
        return make_network(NETWORKS[net]), None
    if not Path(net).is_dir():
        raise ExpertGamesError(f"--net {net}: choose one of {', '.join(NETWORKS)}, or the folder of a checkpoint")
    begun = load_checkpoint(net)
    return begun.network, begun.info.digest


def read_with_progress(games: Path, progress: OracleProgress) -> ExpertGames:
    progress.phase("reading games")
    return read_expert_games(games, lambda number, share: progress.part(f"reading games: {number}", share))


def train_with_progress(training: Pretraining, minutes: float, progress: OracleProgress) -> PretrainPoint | None:
    """Trains, and shows how it goes; None if it was interrupted."""
    progress.phase("training", 60 * minutes)

    def show(point: PretrainPoint) -> None:
        steps = f"{point.steps} steps ({point.steps / point.seconds:.1f}/s), {point.epochs:.1f} epochs"
        progress.done(point.seconds, f"{steps}, loss {point.loss:.3f}, {point.top1:.0%} of moves")

    try:
        return training.run(show)
    except KeyboardInterrupt:
        return None


def _print(figures: dict[str, Any], test: MoveAccuracy, with_seen: MoveAccuracy) -> None:
    table = Table("first", *map(str, TOPS), title=f"Moves of unseen games found, {test.samples:,} unseen positions")
    for name, shares in (
        ("of the legal moves", test.legal),
        ("where there is a choice", test.with_choice),
        ("of all 128 outputs", test.raw),
        ("legal, seen positions too", with_seen.legal),
    ):
        table.add_row(name, *(f"{shares[k]:.1%}" for k in TOPS))
    console = Console()
    console.print(table)
    counts = f"{figures['games']} games; {figures['twice']} more were there twice, {figures['unread']} cannot be read"
    seen = f"{figures['seen']} moves of the test games lie in positions that other games have"
    console.print(f"{counts}; {seen}.", soft_wrap=True)
