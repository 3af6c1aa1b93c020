"""Curves of a run for TensorBoard."""

from pathlib import Path
from typing import Any

from learner.report import make_writable_folder, missing_packages


class Curves:
    """Writes values over training steps into a folder; does nothing if TensorBoard is not installed.

    Raises ``StorageError`` if the folder cannot be made or written into.
    """

    def __init__(self, folder: Path) -> None:
        self._writer: Any = None
        if not missing_packages(("tensorboard",)):
            make_writable_folder(folder)
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder))

    def add(self, name: str, value: float, step: int) -> None:
        if self._writer is not None:
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
