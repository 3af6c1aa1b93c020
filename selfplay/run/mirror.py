"""A copy of a run at any location that fsspec knows (S3, GCS, NFS, ...), from which another machine can continue it.

Contents of files are stored under their SHA-256 in ``objects/``; ``run.json`` maps file names to these. It is written
last, so the copy is always one complete state of the run, though perhaps an older one.
"""

import logging
import math
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.errors import one_line
from engine.files import atomic_write, make_folder, sha256_of
from engine.sealed import sealed, unsealed

from ..games.shards import SUFFIX
from .folder import RunError, RunFolder, RunState

_LIST = "run.json"
_VERSION = 1
_LAST_S = 300.0  # seconds that the end of a run waits for its copy
_LOCAL = (".tmp", ".old", "lock")  # endings of files that are not copied
_LOG = logging.getLogger(__name__)

_Stamp = tuple[int, int] | None  # size and time of weights: what is the same is not read again; None: another file


class _NotAloneError(Exception):
    """Another process has written to the copy."""


class Mirror:
    """The copy at a location; raises ``RunError`` if fsspec does not know the location or cannot reach it.

    Args:
        url: URL for fsspec, like ``s3://bucket/run``.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            import fsspec
            from fsspec.implementations.local import LocalFileSystem

            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError, OSError) as error:
            raise RunError(f"{url}: {one_line(error)}; S3 needs pip install s3fs, GCS pip install gcsfs") from error
        self._is_local = isinstance(self._files, LocalFileSystem)
        self._stored = self._read_list()
        self._stamps: Mapping[str, _Stamp] = {}  # of the files that were copied
        self._objects: set[str] | None = None  # digests of all objects there; None: not looked yet
        self._thread: threading.Thread | None = None
        self._whole: set[str] = set()  # digests of the objects that this process has written
        self._tried: Mapping[str, str] = self._stored  # the list that this process has written last, or tried to
        self._is_lost = False  # whether another process writes the copy, too

    @property
    def is_empty(self) -> bool:
        return not self._stored

    def check(self, folder: RunFolder) -> None:
        """Raises ``RunError`` if the copy is of another run, or was continued on another machine."""
        if self.is_empty:
            return
        if self._is_of_another(folder):
            raise RunError(f"{self.url} holds another run: choose another --mirror")
        there = RunState.model_validate_json(self._read("state.json")).minutes
        here = folder.read_state().minutes
        if there > here:
            raise RunError(
                f"the copy at {self.url} is ahead of {folder.path} by {math.ceil(60 * (there - here))} s of training: "
                "continue it with --resume, --mirror and an empty --run"
            )

    def _is_of_another(self, folder: RunFolder) -> bool:
        """Whether the copy is of another run: its seed or its games differ (games differ even with the same seed)."""
        if unsealed(self._read("config.json"))["seed"] != unsealed(folder.config_path.read_bytes())["seed"]:
            return True
        shards = sorted(name for name in self._stored if name.endswith(SUFFIX) and (folder.path / name).is_file())
        return any(
            sha256_of((folder.path / name).read_bytes()) != self._stored[name] for name in shards[:1] + shards[-1:]
        )

    def check_place(self, run: Path) -> None:
        """Raises ``RunError`` if the copy lies in the run's folder."""
        if self._is_local and Path(self._root).resolve().is_relative_to(run.resolve()):
            raise RunError(f"{self.url} lies in the run that it shall be a copy of: choose another --mirror")

    def check_writable(self) -> None:
        """Rewrites ``run.json`` unchanged; raises ``RunError`` if it cannot be written."""
        try:
            self._files.makedirs(f"{self._root}/objects", exist_ok=True)
            self._write_list(self._stored)
        except Exception as error:  # each file system has errors of its own
            raise RunError(f"{self.url} cannot be written: {one_line(error)}") from error

    def _write_list(self, stored: Mapping[str, str]) -> None:
        data = sealed({"schema_version": _VERSION, "files": stored})
        if self._is_local:  # where pipe_file, if it is killed, leaves a part
            atomic_write(Path(self._root) / _LIST, data)
        else:
            self._files.pipe_file(f"{self._root}/{_LIST}", data)

    def pull(self, folder: Path) -> None:
        """Fills the run's folder from the copy; ``config.json`` comes last, so a partial folder is no run.

        Raises:
            RunError: the copy is damaged or cannot be read, or the folder holds other games.
            StorageError: a file cannot be written.
        """
        here = {path.relative_to(folder).as_posix() for path in folder.glob(f"shards/*{SUFFIX}")}
        if others := sorted(here - self._stored.keys()):
            raise RunError(
                f"{folder} holds games that the copy lacks ({others[0]}): remove them, or name another --run"
            )
        for name in sorted(self._stored, key=lambda name: name == "config.json"):
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()):
                raise RunError(f"{self.url}: {name!r} is not a file of a run")
            make_folder(path.parent)
            atomic_write(path, self._read(name))

    def push(self, folder: RunFolder, wait: bool = False) -> None:
        """Updates the copy to the run's present state, in a thread; does nothing while an earlier update runs.

        Errors are logged; the next call tries again.

        Args:
            wait: wait for an earlier update and for this one, up to ``_LAST_S`` seconds each.
        """
        if self._is_lost:
            return
        if self._thread is not None:
            self._thread.join(_LAST_S if wait else 0.0)
            if self._thread.is_alive():
                if wait:
                    self._warn_of_delay()
                return
        try:
            stamps, changing = _contents(folder.path)
        except OSError as error:
            _LOG.warning("the copy at %s is behind: %s", self.url, one_line(error))
            return
        self._thread = threading.Thread(target=self._push, args=(folder.path, stamps, changing), daemon=True)
        self._thread.start()
        if wait:
            self._thread.join(_LAST_S)
            if self._thread.is_alive():
                self._warn_of_delay()

    def _warn_of_delay(self) -> None:
        _LOG.warning("the copy at %s is behind: it has taken more than %.0f s", self.url, _LAST_S)

    def _push(self, folder: Path, stamps: Mapping[str, _Stamp], changing: Mapping[str, bytes]) -> None:
        try:
            self._check_alone()
            stored: dict[str, str] = {}
            there = {*self._stored.values(), *self._whole}
            objects = self._objects = self._list_objects() if self._objects is None else self._objects
            for name, stamp in stamps.items():
                if name not in changing and name in self._stored and stamp == self._stamps.get(name):
                    stored[name] = self._stored[name]
                    continue
                data = changing[name] if name in changing else (folder / name).read_bytes()
                stored[name] = digest = sha256_of(data)
                if digest not in there:
                    self._files.makedirs(f"{self._root}/objects", exist_ok=True)
                    objects.add(digest)
                    self._files.pipe_file(self._object(digest), data)
                    self._whole.add(digest)
            self._check_alone()
            self._tried = stored
            self._write_list(stored)
            self._stored, self._stamps, self._whole = stored, stamps, set()
            for digest in objects - set(stored.values()):  # also what was written by updates that failed
                objects.remove(digest)
                with suppress(FileNotFoundError):  # of one whose writing failed
                    self._files.rm_file(self._object(digest))
        except _NotAloneError:
            self._is_lost = True
            _LOG.warning("another process writes to %s, too: this one does not any more", self.url)
        except Exception as error:  # each file system has errors of its own
            _LOG.warning("the copy at %s is behind: %s", self.url, one_line(error))

    def _check_alone(self) -> None:
        """Raises if the copy is no longer as this process has left it: two would remove each other's objects."""
        there = self._read_list()
        if self._stored and not there:  # such as a share that is not mounted now: it may come back
            raise RunError(f"{_LIST} is gone; if it was removed, --resume makes a new copy")
        if there not in (self._stored, self._tried):
            raise _NotAloneError

    def _read(self, name: str) -> bytes:
        digest = self._stored.get(name)
        if digest is None:
            raise RunError(f"{self.url} lacks {name}: it is no whole copy of a run")
        try:
            data: bytes = self._try(lambda: self._files.cat_file(self._object(digest)))
        except FileNotFoundError as error:
            raise RunError(f"{self.url}: the contents of {name} are missing") from error
        if sha256_of(data) != digest:
            raise RunError(f"{self.url}: {name} is damaged")
        return data

    def _list_objects(self) -> set[str]:
        try:
            names = {Path(name).name for name in self._files.ls(f"{self._root}/objects", detail=False)}
        except FileNotFoundError:
            return set()
        return {name for name in names if re.fullmatch("[0-9a-f]{64}", name)}  # files of others are left alone

    def _object(self, digest: str) -> str:
        return f"{self._root}/objects/{digest}"

    def _read_list(self) -> dict[str, str]:
        try:
            fields = unsealed(self._try(lambda: self._files.cat_file(f"{self._root}/{_LIST}")))
            if fields["schema_version"] != _VERSION:
                raise ValueError("it is of another version")
            return {str(name): str(digest) for name, digest in fields["files"].items()}
        except FileNotFoundError:
            return {}
        except RunError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{self.url}/{_LIST}: {one_line(error)}") from error

    def _try(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except FileNotFoundError:
            raise
        except Exception as error:  # each file system has errors of its own
            raise RunError(f"{self.url} cannot be read: {one_line(error)}") from error


def _contents(folder: Path) -> tuple[dict[str, _Stamp], dict[str, bytes]]:
    """The files of a run by name, and the contents of those that change often; raises ``OSError``."""
    stamps: dict[str, _Stamp] = {}
    changing = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name.endswith(_LOCAL):
            continue
        stamp = None
        with suppress(FileNotFoundError):  # it has been removed meanwhile
            if _is_weights(name):
                status = path.stat()
                stamp = status.st_size, status.st_mtime_ns
            elif not name.endswith(SUFFIX):
                changing[name] = path.read_bytes()
            stamps[name] = stamp
    return stamps, changing


def _is_weights(name: str) -> bool:
    """Whether a file has the weights of a checkpoint, which change only if a candidate is made again after a kill."""
    return name.startswith("checkpoints/") and name.endswith(".safetensors")
