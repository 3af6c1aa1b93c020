"""Files that are whole or absent: atomic writing, checksums, and one clear error when the disk refuses."""

import codecs
import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, TextIO

WINDOWS = os.name == "nt"
LARGEST_TEXT = 64 << 20  # bytes; a game in PDN has about 1,000
_TEMPORARY = re.compile(r".+\.\d+-[0-9a-f]{8}\.tmp")  # as ``atomic_write`` names them: others' are left alone
_STALE_S = 60.0
_REPLACE_ATTEMPTS = 10
_REPLACE_PAUSE_S = 0.05


class StorageError(OSError):
    """A file or folder cannot be read or written; the message names it and says why. ``errno`` is the cause's."""

    def __str__(self) -> str:
        return str(self.strerror)


def sha256_of(source: bytes | str | os.PathLike[str]) -> str:
    """SHA-256 of bytes, or of the file at a path, as 64 hexadecimal digits; raises ``OSError`` if it cannot be read."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with open(source, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def atomic_write(path: str | os.PathLike[str], data: bytes | Callable[[BinaryIO], object]) -> None:
    """Writes a file so that ``path`` holds, at every moment, either what it held before or all of ``data``.

    The data goes into a temporary file beside it, is forced to the disk, and replaces ``path`` in one step; the folder
    is forced to the disk as well, so the new name outlives a power cut.

    A link stays one: the file that it names is replaced. Its permissions stay.

    Args:
        data: the content, or a function that writes it into the open binary file it is given.

    Raises:
        StorageError: no room, no permission, no such folder, or ``path`` is a device or pipe, or what ``data`` raised;
            nothing is left behind.
    """
    target, temporary = _places(path)
    try:
        _refuse_device(target)
        with open(temporary, "xb") as file:
            if callable(data):
                data(file)
            else:
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):  # a new file, or a file system without permissions
            shutil.copymode(target, temporary)
        _replace(temporary, target)
        sync_folder(target.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, StorageError):  # that of ``data`` names its own file
            raise StorageError(error.errno, f"cannot write {path}: {error.strerror or error}") from error
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises the ``StorageError`` of ``atomic_write`` where that cannot begin; for what takes long before it writes."""
    target, temporary = _places(path)
    try:
        _refuse_device(target)
        if target.is_dir():
            raise OSError(errno.EISDIR, "it is a folder; name a file")
        with open(temporary, "xb"):
            pass
        temporary.unlink()
    except OSError as error:
        raise StorageError(error.errno, f"cannot write {path}: {error.strerror or error}") from error


def check_replaceable(path: Path, read: Callable[[Path], object], what: str) -> None:
    """Raises ``StorageError`` for a file that is there and holds something else, as after a slip of the shell.

    Args:
        read: reads a file of the kind that may be replaced; raises ``ValueError`` for any other.
        what: what such files hold, in words.
    """
    try:
        if path.exists() and path.stat().st_size:
            read(path)
    except ValueError:
        why = f"{path} exists already and holds no {what}: choose another name"
        raise StorageError(errno.EEXIST, why) from None


def _places(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """The file that a path names, and a new name beside it."""
    target = Path(os.path.realpath(path))
    return target, target.with_name(f"{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _refuse_device(target: Path) -> None:
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(errno.EINVAL, "it is a device or pipe; name a file")


def bounded_lines(file: TextIO, most: int) -> Iterator[str]:
    """The lines of a file or stream as they come; one longer than ``most`` is cut behind one character more."""
    while line := file.readline(most + 1):
        rest = line
        while len(rest) > most and not rest.endswith("\n"):
            rest = file.readline(most + 1)
        yield line


def cannot_read(path: str | os.PathLike[str], error: Exception) -> StorageError:
    """What is raised where a file cannot be read: one line with its name and the reason."""
    shown = " ".join(str(path).encode("utf-8", "replace").decode().split())
    reason = getattr(error, "strerror", None) or error
    return StorageError(getattr(error, "errno", None), f"cannot read {shown}: {reason}")


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """What a file holds; raises ``StorageError`` if it cannot be read, which does not say that it is damaged."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from error


def read_text(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> str:
    """The text of a file that people or older programs wrote: UTF-8; lines that are not are read as Latin-1.

    Raises ``StorageError`` if the file cannot be read, or is larger than ``most`` bytes.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise cannot_read(path, error) from error
    if len(data) > most:
        raise StorageError(None, f"cannot read {path}: it is larger than {most >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:  # perhaps parts of several files
        return "".join(map(decoded, data.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)))


def decoded(line: bytes) -> str:
    """A line in UTF-8, else in Latin-1."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def make_folder(path: str | os.PathLike[str]) -> None:
    """Makes a folder and those above it, where they are not there yet; raises ``StorageError``."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        blocked = isinstance(error, FileExistsError | NotADirectoryError)
        why = "a file is in the way" if blocked else error.strerror or error
        raise StorageError(error.errno, f"cannot make the folder {path}: {why}") from error


def remove_stale_temporaries(folder: str | os.PathLike[str]) -> None:
    """Removes what ``atomic_write`` left in a folder when its process was killed; another process may be writing those
    that are less than a minute old."""
    for path in Path(folder).iterdir():
        with contextlib.suppress(OSError):
            if _TEMPORARY.fullmatch(path.name) and time.time() - path.stat().st_mtime >= _STALE_S:
                path.unlink()


def _replace(source: Path, target: Path) -> None:
    """``os.replace``, patient on Windows, where a reader or a virus scanner may hold the target for a moment."""
    for attempt in range(_REPLACE_ATTEMPTS):
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if not WINDOWS or attempt == _REPLACE_ATTEMPTS - 1:
                raise
            time.sleep(_REPLACE_PAUSE_S)


def sync_folder(folder: Path) -> None:
    """Forces a folder's entries to the disk, where the system can do that: Windows and some network drives cannot."""
    if WINDOWS:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def open_locked(path: Path) -> BinaryIO:
    """Opens a file, which may be new, and locks it until it is closed.

    Raises ``StorageError`` if it cannot be opened, another ``OSError`` (see ``lock``) if another process holds it.
    """
    try:
        file = open(path, "a+b")  # noqa: SIM115 - open as long as the lock is held
    except OSError as error:
        raise StorageError(error.errno, f"cannot write {path}: {error.strerror or error}") from error
    try:
        lock(file)
    except OSError:
        file.close()
        raise
    return file


def lock(file: IO[bytes]) -> None:
    """Locks an open file until it is closed or the process ends, however it ends; raises ``OSError`` if another holds
    it."""
    if WINDOWS:
        import msvcrt

        file.seek(0)  # the lock is of one byte from here on
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
