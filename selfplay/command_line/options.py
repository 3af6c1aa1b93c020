"""Options that several commands share, and commands whose options are the fields of a request."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def _note_json(context: typer.Context, wanted: bool) -> bool:
    """Stores in the root context whether to print the figures that a command returns."""
    context.find_root().obj = wanted
    return wanted


Json = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=_note_json,
        help="Print the results as JSON: an object in the last line (probe: an array, a line for each element).",
    ),
]
Fen = Annotated[
    str | None,
    typer.Option(help="Position, like B:W21,22,K23:B1-4,K30; the start position if left out."),
]
Tables = Annotated[
    Path | None,
    typer.Option("--dir", help="Folder of the tables; if left out, that in the user's cache, then the package's."),
]
Net = Annotated[
    str | None,
    typer.Option(
        "--net", help="Folder of an oracle, network or run; best: that of the latest run; else the shipped oracle."
    ),
]
MOST_PIECES = 8  # most pieces of tables: ``engine.tablebase.material.MAX_PIECES``, which takes a second to import
Pieces = Annotated[int, typer.Option(min=2, max=MOST_PIECES, help="Positions of 2 to this many pieces.")]
Games = Annotated[
    Path | None, typer.Option(help="Games whose positions are used as well: folder of a run or of shards, or PDN.")
]
Trees = Annotated[
    bool,
    typer.Option(
        "--trees/--no-trees", help="Whether trees are searched where the oracle is unsure, tenths of a second each."
    ),
]
Positions = Annotated[int, typer.Option(min=1, help="Number of positions.")]
MAX_SEED = (1 << 32) - 1
MAX_GAMES = 20_000  # limited because all openings are made in advance
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the positions drawn.")]
Backend = Annotated[
    str, typer.Option(help="Backend that computes networks, like torch or numba-int16; auto: the fastest one.")
]
PLAYER = (
    "random, rollout:N, alphabeta:N, tablebase, rules, level:NAME, hub:COMMAND, champion, FOLDER, alphabeta:FOLDER; "
    "networks also @off, @800, @ponder, @impartial."
)


def request_command(request: type[Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a typer command whose options are the fields of a request and whose help is the request's docstring.

    Args:
        run: called with the request. If it has a second parameter, ``quiet``, the command gets the option ``--json``:
            with it, only the figures that ``run`` returns are printed.
    """
    hints = get_type_hints(request, include_extras=True)
    parameters = [one.replace(annotation=hints[one.name]) for one in inspect.signature(request).parameters.values()]
    has_json = len(inspect.signature(run).parameters) > 1
    if has_json:
        parameters.append(inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json))

    def command(**options: Any) -> Any:
        quiet = [options.pop("quiet")] if has_json else []
        return run(request(**options), *quiet)

    command.__doc__ = request.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command
