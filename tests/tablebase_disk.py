"""What tests of builds on disk share."""

from pathlib import Path

from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import pairs_up_to

REPOSITORY = Path(__file__).parents[1]


def shipped(pieces: int, *kinds: str) -> dict[str, bytes]:
    """The shipped files of these kinds (values if none is named) of 2 to ``pieces`` pieces, at most 4 for distances."""
    names = [f"{pair.name}.{kind}" for pair in pairs_up_to(pieces) for kind in kinds or ("wdl",)]
    return {name: (SHIPPED / name).read_bytes() for name in names}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
