"""``crownhead status``: shows the state of a run in the terminal, once or repeatedly, or serves it as metrics."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from engine.console import Console, Table
from engine.errors import one_line

from ..rating.ratings import RatingsError
from ..requests import StatusRequest
from .folder import RunError, RunFolder
from .status import MachineFigures, StatusFigures, read_status

_WATCH_S = 2.0  # seconds between two updates


def status_command(request: StatusRequest, quiet: bool) -> StatusFigures:
    """Shows the state of a run; with ``--watch`` or ``--prometheus`` until it is interrupted.

    Raises:
        RunError: there is no such run, or the package for metrics is not installed.
        OSError: the port is in use.
    """
    run = RunFolder(request.run)
    if quiet and (request.watch or request.prometheus):
        raise RunError("--json shows the state once: leave --watch and --prometheus out")
    if not run.config_path.is_file():
        raise RunError(f"{request.run} holds no run: name the folder of one, like runs/quick")

    def read() -> StatusFigures:
        return read_status(run, 60 * request.minutes)

    figures, console = read(), Console(quiet=quiet)
    with ExitStack() as closing:
        if request.prometheus is not None:
            closing.callback(_serve_metrics(read, request.prometheus))
            console.print(f"Metrics: http://127.0.0.1:{request.prometheus}/metrics (Ctrl-C ends)")
        if not (request.watch or request.prometheus):
            console.print(_page(figures))
            return figures
        show = _display(console, closing)
        show(_page(figures))
        while True:
            time.sleep(_WATCH_S)
            if request.watch:
                show(_page_now(read))


def _display(console: Console, closing: ExitStack) -> Callable[[RenderableType], object]:
    """What shows a page: in place of the last one in a terminal, below it in a pipe or file."""
    if not console.is_terminal:
        return console.print
    live = closing.enter_context(Live(console=console, auto_refresh=False))
    return partial(live.update, refresh=True)


def _page_now(read: Callable[[], StatusFigures]) -> RenderableType:
    """The page, or why the run cannot be read at this moment: its file system may be away for a while."""
    try:
        return _page(read())
    except (RunError, RatingsError, OSError) as error:
        return Text(f"The run cannot be read now: {one_line(error)}", style="red")


def _serve_metrics(read: Callable[[], StatusFigures], port: int) -> Callable[[], None]:
    try:
        from .metrics import serve_metrics
    except ModuleNotFoundError as error:
        raise RunError(f"--prometheus needs pip install 'crownhead[prometheus]': {error}") from error
    try:
        return serve_metrics(read, port)
    except OSError as error:
        raise OSError(f"--prometheus: port {port} cannot be opened: {error}") from error


def _page(figures: StatusFigures) -> Group:
    """The figures as text for the terminal."""
    limit = f" of {figures['minutes_limit']:.1f}" if figures["minutes_limit"] else ""
    ago, elo = figures["seconds_ago"], figures["elo"]
    when = "nothing has happened yet" if ago is None else f"last event {ago:.0f} s ago"
    rating = "" if elo is None else f" (Elo {elo:.0f})"
    lines: list[RenderableType] = [
        f"{figures['run']}: {figures['minutes']:.1f}{limit} min, {when}",
        f"Best network: {figures['best']}{rating}, promotions: {figures['promotions']} of "
        f"{figures['iteration']} candidates",
        f"{figures['games']:,} games, {figures['samples']:,} samples (window {figures['window']:,}), "
        f"{figures['steps']:,} steps",
        f"Shards requested: {figures['in_flight']}, refused as too old: {figures['refused']}",
    ]
    if figures["dashboard"]:
        lines.append(f"Ray's dashboard: {figures['dashboard']}")
    if (learner := figures["learner"]) is not None:
        lines.append(
            f"Learner: {learner['steps_per_second']:.1f} steps/s at a rate of {learner['learning_rate']:.2g}, loss "
            f"{learner['loss']:.3f} (policy {learner['policy_loss']:.3f}, win/draw/loss {learner['wdl_loss']:.3f})"
        )
    if figures["machines"]:
        lines.append(_table(figures["machines"]))
    for gate in figures["gates"]:
        verb = "promoted" if gate["decision"] == "promote" else "not promoted"
        lines.append(f"{gate['checkpoint']} {verb}: +{gate['wins']} ={gate['draws']} -{gate['losses']}")
    for fault in figures["faults"]:
        lines.append(Text(f"{fault['seconds_ago'] / 60:.0f} min ago: {fault['text']}", style="red"))
    return Group(*lines)


def _table(machines: Sequence[MachineFigures]) -> Table:
    has_gpu = any(machine["gpu_busy"] is not None for machine in machines)
    gpu = ["GPU busy"] if has_gpu else []
    table = Table("machine", "actors", "games/s", "samples/s", "evaluations/s", *gpu, "networks behind")
    for machine in machines:
        busy = "-" if machine["gpu_busy"] is None else f"{machine['gpu_busy']:.0f} %"
        table.add_row(
            machine["machine"],
            str(machine["actors"]),
            *(f"{machine[key]:,.1f}" for key in ("games_per_second", "samples_per_second", "evaluations_per_second")),
            *([busy] if has_gpu else []),
            str(machine["behind"]),
        )
    return table
