"""Table files: reading gives what was written; damaged, cut, foreign and renamed files are refused."""

import errno
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import files
from engine.files import StorageError
from engine.tablebase import slice_file
from engine.tablebase.build import Builder
from engine.tablebase.layout import layout_of
from engine.tablebase.material import parse_name
from engine.tablebase.slice_file import (
    FORMAT,
    RULES,
    Kind,
    SliceCounts,
    SliceFile,
    TableFileError,
    file_name,
    write_slice,
)
from engine.tablebase.wdl_codec import BLOCK_WORDS, NUM_MODELS, no_priors, num_blocks

SMALL = parse_name("1011")
FILES = ["1011.wdl", "2100.distance"]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, bytes]]:
    """Files that tests may damage: their folder and their intact content."""
    tables, folder = tmp_path_factory.mktemp("tables"), tmp_path_factory.mktemp("damaged")
    list(Builder(tables, 3, distance=True, threads=1).run())
    return {name: (folder / name, (tables / name).read_bytes()) for name in FILES}


def parts_of(file: SliceFile) -> tuple[Any, ...]:
    """Everything that a reader takes from a file."""
    blocks = tuple(file.block(number) for number in range(file.header.blocks))
    return file.header, file.priors().tobytes() if file.header.kind == "wdl" else b"", blocks


def refused(path: Path, checked: bool) -> str:
    """The error with which a file is refused; "" if all of it can be read."""
    try:
        with SliceFile(path, checked) as file:
            parts_of(file)
        return ""
    except TableFileError as caught:
        error = str(caught)
    assert str(path) in error
    assert "\n" not in error
    assert "crownhead tablebase build" in error
    return error


@pytest.mark.parametrize("kind", ["wdl", "distance"])
def test_a_file_says_what_it_is(kind: Kind, tmp_path: Path) -> None:
    counts = {"1110": SliceCounts(win=1, draw=2, loss=3, longest_win=5, longest_fen="B:WK1:BK2,3")}
    counts["1101"] = SliceCounts(win=4, draw=5, loss=6)
    pair, blocks = parse_name("1110"), [os.urandom(n) for n in (0, 700)][: num_blocks(layout_of(parse_name("1110")))]
    priors = np.random.default_rng(3).integers([-127, 0], 128, (NUM_MODELS, 2)).astype(np.int8)
    write_slice(tmp_path, pair, kind, counts, priors if kind == "wdl" else None, blocks)
    assert [path.name for path in tmp_path.iterdir()] == [f"1110.{kind}"]
    with SliceFile(tmp_path / f"1110.{kind}", checked=True) as file:
        assert (file.pair, file.header.slice, file.header.kind) == (pair, "1110", kind)
        assert (file.header.format, file.header.rules, file.header.block_words) == (FORMAT, RULES, BLOCK_WORDS)
        assert file.header.slices == counts
        assert [file.block(number) for number in range(file.header.blocks)] == blocks
        if kind == "wdl":
            assert np.array_equal(file.priors(), priors)


def test_a_file_is_named_after_its_pair() -> None:
    assert file_name(parse_name("1110"), "wdl") == file_name(parse_name("1101"), "wdl") == "1110.wdl"
    assert file_name(parse_name("1110"), "distance") == "1110.distance"


@pytest.mark.parametrize("checked", [True, False])
@settings(max_examples=300)
@given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(
    copies: dict[str, tuple[Path, bytes]], checked: bool, name: str, place: float, bit: int
) -> None:
    """At any place: on opening, or when a block is read. Unless ``checked``, the last 32 bytes (checksum) are
    ignored."""
    path, data = copies[name]
    at = int(place * len(data))
    path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
    assert refused(path, checked) or (not checked and at >= len(data) - 32), f"{name}: bit {bit} of byte {at}"


@pytest.mark.parametrize("name", FILES)
def test_every_byte_of_the_header_is_noticed(copies: dict[str, tuple[Path, bytes]], name: str) -> None:
    """Also if a digit becomes another one (bit 3 changes 1 to 9)."""
    path, data = copies[name]
    believed = []
    for at in range(data.index(b"}}}") + 3):
        for bit in {at % 8, 3}:
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            if not refused(path, checked=False):
                believed.append((at, bit))
    assert not believed


@pytest.mark.parametrize("checked", [True, False])
@given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), more=st.binary(max_size=40))
def test_a_file_of_another_length_is_refused(
    copies: dict[str, tuple[Path, bytes]], checked: bool, name: str, place: float, more: bytes
) -> None:
    path, data = copies[name]
    path.write_bytes(data[: int(place * len(data))])
    assert refused(path, checked)
    path.write_bytes(data + more)
    assert bool(refused(path, checked)) == bool(more)


@pytest.mark.parametrize("data", [b"", b"\0" * 43, b"\0" * 44, b"CRWNTAB1" + b"\xff" * 100, b"GIF89a" * 1000])
def test_what_is_no_table_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "1100.wdl").write_bytes(data)
    assert refused(tmp_path / "1100.wdl", checked=False)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("FORMAT", FORMAT + 1, f"format {FORMAT + 1}"),
        ("RULES", "flying kings", "of the rules flying kings, not of"),
        ("BLOCK_WORDS", 512, "of block words 512, not of"),
        ("MAGIC", b"CRWNTAB9", "not a table of this version"),
    ],
)
def test_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, message: str
) -> None:
    """An intact file that was written by another version."""
    with monkeypatch.context() as other:
        other.setattr(slice_file, name, value)
        write_slice(tmp_path, SMALL, "wdl", {}, no_priors(), [b"block"])
        path = tmp_path / file_name(SMALL, "wdl")
        with SliceFile(path, checked=True) as file:
            assert file.block(0) == b"block"
    assert message in refused(path, checked=False)


@pytest.mark.parametrize("number", [0, 2])
def test_a_wrong_number_of_blocks_is_refused(tmp_path: Path, number: int) -> None:
    write_slice(tmp_path, SMALL, "wdl", {}, no_priors(), [b"block"] * number)
    assert refused(tmp_path / file_name(SMALL, "wdl"), checked=False)


def test_wrong_priors_are_refused(tmp_path: Path) -> None:
    write_slice(tmp_path, SMALL, "wdl", {}, no_priors()[:-1], [b"block"])
    assert refused(tmp_path / file_name(SMALL, "wdl"), checked=True)
    write_slice(tmp_path, SMALL, "wdl", {}, None, [b"block"])
    assert refused(tmp_path / file_name(SMALL, "wdl"), checked=True)


def test_priors_with_counts_below_0_are_refused(tmp_path: Path) -> None:
    write_slice(tmp_path, SMALL, "wdl", {}, no_priors() - np.int8(5), [b"block"])
    assert "counts below 0" in refused(tmp_path / file_name(SMALL, "wdl"), checked=True)


def frame(size: int, stated: bool) -> bytes:
    """A small frame that holds ``size`` zeros."""
    chunk = zstandard.ZstdCompressor().compressobj(size=size) if stated else zstandard.ZstdCompressor().compressobj()
    return chunk.compress(bytes(size)) + chunk.flush()


@pytest.mark.parametrize("block", [frame(2**20, True), frame(2**20, False), frame(3, True), b"garbage", bytes(200_000)])
def test_blocks_of_distances_that_are_none_are_refused(tmp_path: Path, block: bytes) -> None:
    """Whole files, with right checksums; what a frame holds is not unpacked if it is another number of bytes."""
    write_slice(tmp_path, SMALL, "distance", {}, None, [block])
    refusal = r"1011\.distance is damaged: block 0 (cannot be decompressed|is too)"
    path = tmp_path / file_name(SMALL, "distance")
    with SliceFile(path, checked=True) as file, pytest.raises(TableFileError, match=refusal):
        file.distances(0)


def test_a_block_of_values_that_is_too_long_is_refused(tmp_path: Path) -> None:
    write_slice(tmp_path, SMALL, "wdl", {}, no_priors(), [bytes(200_000)])
    assert "block 0 is too long" in refused(tmp_path / file_name(SMALL, "wdl"), checked=True)


@pytest.mark.parametrize(
    ("name", "other"), [("1011.wdl", "1100.wdl"), ("1011.wdl", "1011.distance"), ("1011.wdl", "x")]
)
def test_a_file_under_another_name_is_refused(
    copies: dict[str, tuple[Path, bytes]], tmp_path: Path, name: str, other: str
) -> None:
    (tmp_path / other).write_bytes(copies[name][1])
    assert ", which its name is not" in refused(tmp_path / other, checked=False)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SliceFile(tmp_path / "1100.wdl")


# The folder


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    with pytest.raises(StorageError, match="cannot make the folder") as caught:
        Builder(tmp_path / "file" / "tables", 2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_says_no_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, call, refuse)
    with pytest.raises(StorageError, match=r"cannot write .*1100\.wdl: No space left on device") as caught:
        list(Builder(tmp_path, 2, threads=1).run())
    assert "\n" not in str(caught.value)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match=r"cannot write .*Permission denied"):
        list(Builder(tmp_path, 2, threads=1).run())
    assert list(tmp_path.iterdir()) == []


def test_stale_temporaries_go(tmp_path: Path) -> None:
    """Files of a killed build are removed, but not those that another process may be writing, nor any others."""
    old, young, other = (
        tmp_path / name for name in ("1100.wdl.1-0123abcd.tmp", "1100.wdl.2-4567ef89.tmp", "notes.txt")
    )
    for path in (old, young, other):
        path.write_bytes(b"")
    for path in (old, other):
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    Builder(tmp_path, 2)
    assert sorted(tmp_path.iterdir()) == [young, other]
