"""Curves of a run for TensorBoard."""

from pathlib import Path
from typing import Any

from learner.report import missing_packages


class Curves:
    """Writes values over training steps into a folder; does nothing if TensorBoard is not installed."""

    def __init__(self, folder: Path) -> None:
        self._writer: Any = None
        if not missing_packages(("tensorboard",)):
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder))

    def add(self, name: str, value: float, step: int) -> None:
        if self._writer is not None:
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
