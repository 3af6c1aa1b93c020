"""Where the weights that come with the program lie."""

from importlib.resources import files
from pathlib import Path

SHIPPED_PACKAGE = "checkpoints"
CHAMPION_FOLDER = "champion"


def shipped_weights() -> Path:
    """The folder of all shipped weights; raises ``ModuleNotFoundError`` if this installation has none."""
    return Path(str(files(SHIPPED_PACKAGE)))
