"""What ``crownhead tablebase encode`` and ``decode`` do."""

import time
from pathlib import Path
from typing import Any

import torch

from engine.console import Console
from engine.files import check_replaceable, check_writable
from engine.memory import check_memory
from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.folder import SHIPPED, default_folder
from engine.tablebase.material import MAX_PIECES, MIN_PIECES, pairs_up_to
from engine.tablebase.store import find_files

from ..report import make_writable_folder
from .codec import CodecError, coding_bytes
from .codec_file import read_coded, read_header, write_coded, write_tables
from .data import EndgameSampler
from .integer_network import finish_rounded, train_rounded
from .networks import PairConfig, PairNetwork
from .oracle import open_oracle
from .progress import OracleProgress
from .training import EndgameTrainer, TrainingSettings

WIDTH, EXPERTS, HIDDEN = 16, 32, 16
_ROUNDED_SHARE = 0.4  # part of the training with the pairs rounded
_RATE, _ROUNDED_RATE = 8e-3, 4e-3
CHINOOK_BYTES, WANG_BYTES = 1_590_303, 6_460_000  # tables of 2-5 pieces by Chinook's codec; by Wang 2023


def train_codec_network(
    tables: DenseTables, pieces: int, minutes: float, seed: int, progress: OracleProgress
) -> PairNetwork:
    """A small network for the positions that are coded, trained on all of them: they are what it is to reproduce.

    In the last part of the time it is trained as it will be stored, with rounded weights.
    """
    torch.manual_seed(seed)
    network = PairNetwork(PairConfig(width=WIDTH, experts=EXPERTS, hidden=HIDDEN, pieces=pieces))
    for part, (share, rate) in enumerate(((1 - _ROUNDED_SHARE, _RATE), (_ROUNDED_SHARE, _ROUNDED_RATE))):
        if part == 1:
            train_rounded(network)
        progress.phase("training", 60 * share * minutes)
        sampler = EndgameSampler(tables, pairs_up_to(pieces), seed + part, quiet=True)
        settings = TrainingSettings(learning_rate=rate)
        EndgameTrainer(network, sampler, settings, share * minutes).run(report=progress.training)
    finish_rounded(network)
    return network


def _pair_network(net: Path, pieces: int) -> PairNetwork:
    """The network in a folder; of an oracle the one for as many pieces."""
    network = open_oracle(net, trees=False).member_for(pieces).network
    if not isinstance(network, PairNetwork):
        raise CodecError(f"{net} is a network of kind {network.kind!r}: the codec needs one of kind 'pair'")
    return network


def encode_command(
    tables_folder: Path | None, pieces: int, output: Path, net: Path | None, minutes: float, seed: int, quiet: bool
) -> dict[str, Any]:
    """Codes all values of 2 to ``pieces`` pieces into one file; see ``crownhead tablebase encode --help``.

    Args:
        tables_folder: of ordinary tables; what it lacks is solved in memory. None for the default one.
        net: a network of kind "pair" to code with, or an oracle with one; None trains one for ``minutes`` minutes.

    Returns:
        The figures of ``--json``. ``exceptions`` are coded bits that were thought less likely; ``training_seconds`` are
        a part of ``seconds``; ``plain_bytes`` is None where there is not every ordinary table, ``chinook_bytes`` and
        ``wang_bytes`` where there are other than 5 pieces.

    Raises:
        ValueError: a number of pieces out of range, or a network or a table that cannot be used.
        StorageError: the file cannot be written.
    """
    if not MIN_PIECES <= pieces <= MAX_PIECES:
        raise CodecError(f"tables have {MIN_PIECES} to {MAX_PIECES} pieces, not {pieces}")
    check_writable(output)
    check_replaceable(output, read_header, "coded tables")
    if tables_folder is not None:
        find_files([tables_folder])  # it is there and can be read
    check_memory(coding_bytes(pieces), f"coding of 2-{pieces} pieces", "choose fewer pieces")
    torch.set_num_threads(1)
    given = None if net is None else _pair_network(net, pieces)  # told now, not after the tables
    start = time.monotonic()
    with OracleProgress(quiet) as progress:
        progress.phase("tables")
        tables = load_tables(tables_folder, pieces, report=progress.tables)
        before_training = time.monotonic()
        network = train_codec_network(tables, pieces, minutes, seed, progress) if given is None else given
        trained = time.monotonic()
        progress.phase("coding")
        header = write_coded(output, tables, pieces, network, report=progress.tables)
    figures = {
        "pieces": pieces,
        "bytes": output.stat().st_size,
        **header.model_dump(include={"weights_bytes", "corrections_bytes", "positions", "exceptions"}),
        "seconds": time.monotonic() - start,
        "training_seconds": trained - before_training if net is None else 0.0,
        "plain_bytes": _plain_bytes([tables_folder] if tables_folder else [default_folder(), SHIPPED], pieces),
        "chinook_bytes": CHINOOK_BYTES if pieces == 5 else None,
        "wang_bytes": WANG_BYTES if pieces == 5 else None,
    }
    if not quiet:
        _print_sizes(output, figures)
    return figures


def _plain_bytes(folders: list[Path], pieces: int) -> int | None:
    files = find_files([folder for folder in folders if folder.exists()])
    paths = [files.get((pair, "wdl")) for pair in pairs_up_to(pieces)]
    return None if None in paths else sum(path.stat().st_size for path in paths if path)


def _print_sizes(output: Path, figures: dict[str, Any]) -> None:
    text = f"{output}: {figures['bytes']:,} bytes for 2-{figures['pieces']} pieces: {figures['weights_bytes']:,} of "
    text += f"weights, {figures['corrections_bytes']:,} of corrections to {figures['positions']:,} positions "
    text += f"({figures['exceptions']:,} exceptions), in {figures['seconds']:.0f} s"
    others = [("ordinary tables", "plain_bytes"), ("Chinook", "chinook_bytes"), ("Wang 2023", "wang_bytes")]
    known = [f"{name} {figures[key]:,}" for name, key in others if figures[key] is not None]
    Console().print("; ".join([text, *known]), highlight=False, soft_wrap=True)


def decode_command(file: Path, tables_folder_out: Path, quiet: bool) -> dict[str, Any]:
    """Writes the ordinary tables that a coded file holds; see ``crownhead tablebase decode --help``.

    Returns the figures of ``--json``; ``digest`` is SHA-256 of all values, verified. Tables that are in the folder
    already are replaced.

    Raises:
        ValueError: a damaged or foreign file.
        OSError: the file cannot be read, or the folder not be written.
    """
    start = time.monotonic()
    read_header(file)  # a bad file is refused before anything is made
    make_writable_folder(tables_folder_out)
    with OracleProgress(quiet) as progress:
        progress.phase("decoding")
        tables, header = read_coded(file, report=progress.tables)
        progress.phase("writing")
        written = write_tables(tables_folder_out, tables, header.pieces)
    figures = {
        "pieces": header.pieces,
        "bytes": file.stat().st_size,
        "plain_bytes": written,
        **header.model_dump(include={"positions", "exceptions", "digest"}),
        "seconds": time.monotonic() - start,
    }
    if not quiet:
        text = f"{tables_folder_out}: all tables of 2-{header.pieces} pieces, {written:,} bytes, every value as encoded"
        Console().print(f"{text}, in {figures['seconds']:.0f} s", highlight=False, soft_wrap=True)
    return figures
