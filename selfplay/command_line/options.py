"""Options that several commands have, and how they print for machines."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object last.")]
Fen = Annotated[str | None, typer.Option(help="Position, like B:W21,22,K23:B1-4,K30; the start position if left out.")]
Tables = Annotated[
    Path | None, typer.Option("--dir", help="Folder of the tables; if left out, one in the user's cache.")
]
Net = Annotated[
    str | None,
    typer.Option("--net", help="Folder of an oracle, a network or a run, or best: a run's best; if none, as shipped."),
]
Pieces = Annotated[int, typer.Option(min=2, max=7, help="Positions of 2 to so many pieces.")]
Positions = Annotated[int, typer.Option(min=1, help="How many positions.")]
MAX_SEED = (1 << 32) - 1
MAX_GAMES = 20_000  # the openings of all are made beforehand
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of the positions drawn.")]
Backend = Annotated[
    str, typer.Option(help="What computes networks, like torch or numba-int16; auto: the fastest for them.")
]
PLAYER = (
    "random, rollout:N, alphabeta:N, tablebase, hub:COMMAND, champion, FOLDER; "
    "networks also @off, @800, @ponder, @impartial."
)


def print_json(figures: Any) -> None:
    """The last line of a command's output with ``--json``."""
    print(json.dumps(figures))
