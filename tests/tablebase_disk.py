"""What tests of builds on disk share."""

from collections.abc import Iterable
from pathlib import Path

from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import Material, pairs_up_to

REPOSITORY = Path(__file__).parents[1]


def shipped(pairs: int | Iterable[Material], *kinds: str) -> dict[str, bytes]:
    """The shipped files of pairs, or of 2 to so many pieces: values, or these kinds."""
    pairs = pairs_up_to(pairs) if isinstance(pairs, int) else pairs
    names = [f"{pair.name}.{kind}" for pair in pairs for kind in kinds or ("wdl",)]
    return {name: (SHIPPED / name).read_bytes() for name in names}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
