"""What ``crownhead reproduce chess-encode`` and ``chess-decode`` do."""

import importlib.util
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.console import Console
from engine.files import atomic_write, cannot_read, check_replaceable, check_writable
from engine.memory import check_memory
from learner.endgame.progress import OracleProgress

from .chess_coded import CHESS_FILE, read_coded, write_coded
from .chess_endings import endings, solve_endings
from .experiment import ReproduceError

_MEMORY_BYTES = 1_500_000_000
_COMPARED = 1000


def encode_command(output: Path, quiet: bool) -> dict[str, Any]:
    """Solves and codes all endings; see ``crownhead reproduce chess-encode --help``.

    Returns the figures of ``--json``.

    Raises:
        ValueError: there is not enough memory.
        StorageError: the file cannot be written.
    """
    check_writable(output)
    check_replaceable(output, CHESS_FILE.read, CHESS_FILE.what)
    check_memory(_MEMORY_BYTES, "chess endings", "close other programs")
    start = time.monotonic()
    with OracleProgress(quiet) as progress:
        tables = solve_endings(lambda share: progress.part("solving", share))
        header = write_coded(output, tables, lambda share: progress.part("coding", share))
    figures = {
        "bytes": output.stat().st_size,
        "endings": len(tables.solved),
        **header.model_dump(include={"positions", "digest"}),
        "longest_phase": max(solved.plies or 0 for solved in tables.solved.values()),
        "seconds": time.monotonic() - start,
    }
    if not quiet:
        Console().print(
            f"{output}: {figures['bytes']:,} bytes for {figures['endings']} chess endings of 3 and 4 men, "
            f"{header.positions:,} positions coded by bits, in {figures['seconds']:.0f} s",
            highlight=False,
            soft_wrap=True,
        )
    return figures


def decode_command(
    file: Path, out: Path | None, syzygy: Path | None, positions: int | None, seed: int | None, quiet: bool
) -> dict[str, Any]:
    """Decodes a file, and compares it with Syzygy tables; see ``crownhead reproduce chess-decode --help``.

    Returns the figures of ``--json``.

    Raises:
        ValueError: a damaged or foreign file, tables that cannot be read, or there is not enough memory.
        StorageError: a file cannot be read or written.
    """
    CHESS_FILE.read(file)  # a bad file is refused before anything else
    if out is not None:
        check_writable(out)
        check_replaceable(out, _check_arrays, "decoded chess endings")
    if syzygy is None and (positions is not None or seed is not None):
        raise ReproduceError("--positions and --seed choose positions to compare: give --syzygy, too")
    compare = None if syzygy is None else _comparison(syzygy, positions or _COMPARED, 1 if seed is None else seed)
    check_memory(_MEMORY_BYTES, "chess endings", "close other programs")
    start = time.monotonic()
    figures: dict[str, Any] = {"bytes": file.stat().st_size}
    with OracleProgress(quiet) as progress:
        tables, header = read_coded(file, lambda share: progress.part("decoding", share))
        figures |= {"endings": len(tables.solved), **header.model_dump(include={"positions", "digest"})}
        if out is not None:
            progress.phase("writing")
            sets: dict[str, Any] = {ending.name: solved.sets for ending, solved in tables.solved.items()}
            atomic_write(out, lambda stream: np.savez_compressed(stream, **sets))
        if compare is not None:
            figures |= compare(tables, report=lambda share: progress.part("comparing", share))
    figures["seconds"] = time.monotonic() - start
    if not quiet:
        text = f"{file}: {len(tables.solved)} chess endings of 3 and 4 men, every value as encoded"
        if compare is not None:
            text += f"; {figures['compared']:,} positions as in {syzygy} ({figures['syzygy_bytes']:,} bytes)"
        Console().print(f"{text}, in {figures['seconds']:.0f} s", highlight=False, soft_wrap=True)
    return figures


def _check_arrays(path: Path) -> None:
    """Raises ``ValueError`` for a file that is no archive of arrays named like endings, like other arrays or a text."""
    try:
        with zipfile.ZipFile(path) as archive:
            others = set(archive.namelist()) - {f"{ending.name}.npy" for ending in endings()}
    except zipfile.BadZipFile as error:
        raise ValueError(path) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    if others:
        raise ValueError(path)


def _comparison(folder: Path, positions: int, seed: int) -> Callable[..., dict[str, Any]]:
    """What compares endings with the tables in a folder; raises ``ValueError`` if these cannot be used."""
    if importlib.util.find_spec("chess") is None:
        raise ReproduceError("Syzygy tables need python-chess: pip install 'crownhead[papers]'")
    from .chess_comparison import compare
    from .chess_positions import SyzygyTables

    return partial(compare, SyzygyTables(folder), positions, seed)
