"""Compression, the fifth experiment of Wang 2023: all values of 2-5 pieces as a network and what corrects it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from engine.tablebase.material import MIN_PIECES, materials_between

from ..endgame.codec_commands import train_codec_network
from ..endgame.codec_file import CodecError, CodecHeader, read_coded, write_coded
from ..endgame.data import count_positions
from ..report import Figure
from . import published
from .experiment import Experiment, Measure, Row
from .figures import draw_sizes
from .wang_lab import Lab, Training

CODEC_WEIGHT = 2.0  # share of the time, in the unit of ``Training.weight``
_MOST_PIECES = 5
_FLOAT_BYTES = 4
_MEGABYTE = 1e6


def _training(pieces: int) -> Training:
    return Training("wang", MIN_PIECES, min(pieces, _MOST_PIECES))


def compression_trainings(pieces: int) -> list[Training]:
    """What ``compression`` needs, beside ``CODEC_WEIGHT`` for the codec's own network."""
    return [_training(pieces)]


def _coded(lab: Lab, pieces: int) -> tuple[int, CodecHeader]:
    """Bytes and header of a file that has been decoded again, every value as before."""
    network = train_codec_network(lab.tables, pieces, lab.extra_minutes, lab.seed, lab.progress)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "coded"
        lab.progress.phase("coding")
        write_coded(path, lab.tables, pieces, network, report=lab.progress.tables)
        lab.progress.phase("decoding")
        decoded, header = read_coded(path, report=lab.progress.tables)
        for material in materials_between(MIN_PIECES, pieces):
            if not np.array_equal(decoded.slice_rows(material), lab.tables.slice_rows(material)):
                raise CodecError(f"slice {material.name} is not decoded as it was encoded: the codec is at fault")
        return path.stat().st_size, header


def compression(lab: Lab, pieces: int) -> Experiment:
    """Is a network with corrections smaller than a codec made by hand?"""
    training = _training(pieces)
    most = training.most
    scores = lab.scores(training, MIN_PIECES, most, published.THRESHOLD)
    positions = sum(map(count_positions, materials_between(MIN_PIECES, most)))
    network_bytes = _FLOAT_BYTES * lab.trained(training).network.parameter_count
    exceptions = round((1 - max(scores.values())) * positions)
    exception_bytes = published.EXCEPTION_BYTES * exceptions
    size, header = _coded(lab, most)
    sizes = published.SIZES
    rows = [
        Row("Wang: network", {"bytes": sizes["network"]}, {"bytes": network_bytes}),
        Row(
            f"Wang: exceptions of {published.EXCEPTION_BYTES} bytes",
            {"bytes": sizes["exceptions"]},
            {"bytes": exception_bytes, "exceptions": exceptions},
        ),
        Row("Wang: together", {"bytes": sizes["together"]}, {"bytes": network_bytes + exception_bytes}),
        Row("Chinook's codec", {"bytes": sizes["chinook"]}),
        Row("neural codec: network", {}, {"bytes": header.weights_bytes}),
        Row("neural codec: corrections", {}, {"bytes": header.corrections_bytes, "exceptions": header.exceptions}),
        Row("neural codec: file, all told", {}, {"bytes": size}),
    ]
    bars = {
        "Wang, published": (sizes["network"] / _MEGABYTE, sizes["exceptions"] / _MEGABYTE),
        "Wang's way, measured": (network_bytes / _MEGABYTE, exception_bytes / _MEGABYTE),
        "Chinook, published": (0.0, sizes["chinook"] / _MEGABYTE),
        "neural codec, measured": (header.weights_bytes / _MEGABYTE, (size - header.weights_bytes) / _MEGABYTE),
    }
    notes = [
        f"Scaled: the codec's network was trained for {lab.extra_minutes:.1f} minutes. {lab.why_missed()}",
        f"The exceptions of Wang's way are estimated: the best method's share of wrong answers among {lab.tested:,} "
        f"positions, times {positions:,}. The neural codec's file was written, and decoded again with every value as "
        "before; its exceptions are coded bits that it held for less likely.",
    ]
    if most < _MOST_PIECES:
        notes.append(f"Measured on 2–{most} pieces, published for 2–{_MOST_PIECES}: the sizes cannot be compared.")
    return Experiment(
        "compression",
        f"Compression: every value of 2–{most} pieces",
        "A network and whatever corrects it, down to the last position, against a codec made by hand.",
        (Measure("bytes", "bytes", "bytes"), Measure("exceptions", "exceptions", "count")),
        rows,
        [Figure("compression", draw_sizes(bars), f"Bytes: 2–5 pieces as published, 2–{most} as measured.")],
        notes,
    )
