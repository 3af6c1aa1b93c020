"""What the command line's commands do: they read players and runs, show progress, and return the figures of --json."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.board import Board
from engine.console import progress_console
from engine.errors import IllegalMoveError
from engine.players.base import search_moves
from engine.players.network_text import NetworkText, oracle_name
from engine.players.search_player import thoughts_of
from learner.checkpoint import load_checkpoint, save_checkpoint

from .config import RunConfig, make_config
from .players import board_search, checkpoint_folder, checkpoint_player
from .progress import TrainingProgress
from .ratings import Ratings
from .run_folder import RunError, RunFolder
from .stages import next_stage
from .threads import use_single_thread


def train_command(
    folder: Path,
    preset: str,
    resume: bool,
    pool: str | None,
    address: str | None,
    minutes: float | None,
    settings: Sequence[str],
    quiet: bool,
    init: str | None = None,
) -> dict[str, Any]:
    """Starts or continues a run; see ``crownhead train --help``."""
    from .bench import bare_network_rate
    from .training import Training

    changes: dict[str, Any] = {}
    if address:
        from .ray_pool import check_address

        check_address(address)
    if pool or address:
        changes |= {"pool": pool or "ray", "address": address}
    if resume:
        if init:
            raise RunError("a run goes on with its own network: --init cannot be given with --resume")
        run, config = RunFolder.open(folder)
    else:
        if minutes is not None:
            settings = [*settings, f"loop.minutes={minutes}"]
        first = load_checkpoint(checkpoint_folder(init)) if init else None
        if first is not None:
            if any(setting.partition("=")[0].partition(".")[0] == "network" for setting in settings):
                raise RunError("a run keeps the size of the network it begins with: leave --set network or --init out")
            changes |= {"network": first.info.network.model_dump(), "init": first.info.digest}
        config = make_config(preset, settings, **changes)
        run = RunFolder.create(folder, config)
        if first is not None:
            save_checkpoint(run.checkpoint("000000"), first.network, {"steps": 0}, first.info.digest)
    with run.locked():
        if resume:
            config = _resumed(run, config, settings, minutes).model_copy(update=changes)
        with TrainingProgress(quiet) as progress:
            training = Training(run, config, progress)
            progress.limit(training.minutes, training.state.minutes_limit)
            figures = training.run()
            ratings = training.ratings
        bare = bare_network_rate(load_checkpoint(run.checkpoint(figures["best"])).network, config)
    figures["network_evaluations_per_second"] = round(bare, 1)
    figures["selfplay_to_network_ratio"] = round(figures["evaluations_per_second"] / bare, 3)
    if not quiet:
        _print_ratings(ratings)
        console = Console()
        console.print(f"Best network: {run.checkpoint(figures['best'])} ({figures['promotions']} promotions)")
        console.print(f"Busy: actors {figures['actors_busy']:.0%}, learner {figures['learner_busy']:.0%} of the time")
        console.print(
            f"Self-play: {figures['evaluations_per_second']:,.0f} evaluations/s "
            f"({figures['selfplay_to_network_ratio']:.0%} of the bare network's), "
            f"{figures['samples_per_second']:,.0f} samples/s, {60 * figures['games_per_second']:,.0f} games/min"
        )
    return figures


def _resumed(run: RunFolder, config: RunConfig, settings: Sequence[str], minutes: float | None) -> RunConfig:
    """The configuration that a run goes on with; new settings and minutes are written down, unless it cannot go on."""
    state, changed = run.read_state(), config
    if settings:
        changed = next_stage(config, settings, state.iteration, run.steps_of(state.iteration))
    most = changed.loop.max_iterations
    if minutes is None and state.minutes_limit is not None and state.minutes >= state.minutes_limit:
        raise RunError(f"{run.path} has had its {state.minutes_limit:.2f} minutes: give it more with --minutes")
    if minutes is None and most is not None and state.iteration >= most:
        raise RunError(
            f"{run.path} has made its {most} iterations: give it more with --set loop.max_iterations=N or --minutes"
        )
    if changed is not config:
        run.begin_stage(changed)
    if minutes is None:
        return changed
    run.write_state(state.model_copy(update={"minutes_limit": state.minutes + minutes}))
    loop = changed.loop.model_copy(update={"max_iterations": None, "minutes": minutes})
    return changed.model_copy(update={"loop": loop})


def _print_ratings(ratings: Ratings) -> None:
    table = Table("player", "Elo", "±", "games", "score", "endgames right", title=f"Ratings ({ratings.reference} = 0)")
    for line in ratings.table():
        endgames = f"{ratings.endgames[line.player]:.1%}" if line.player in ratings.endgames else ""
        cells = f"{line.rating:.0f}", f"{line.error:.0f}", str(line.games), f"{line.score:.1%}", endgames
        table.add_row(line.player, *cells)
    Console().print(table)


def analyse_command(
    fen: str, net: str, simulations: int, oracle: str | None, quiet: bool, backend: str = "auto"
) -> dict[str, Any]:
    """Searches one position; see ``crownhead analyse --help``. What ``net`` says behind @ goes first.

    The keys of the result are those of ``--json``: ``wdl`` and ``value`` are seen by the side to move, ``pv`` is the
    expected line in PDN.
    """
    use_single_thread()
    board = Board(fen)
    if not board.legal_moves:
        raise IllegalMoveError(f"{fen}: the game is over, {board.turn} has no legal move")
    named = NetworkText.parse(net)
    folder = checkpoint_folder(named.folder)
    config = board_search(named, simulations).impartial()
    if oracle is not None:
        config = config.model_copy(update={"oracle": oracle_name(oracle)})
    player = checkpoint_player(folder, net, config, backend=named.backend or backend)
    legal = search_moves(board)
    result, line, choice = player.analyse(board)
    moves = [
        {
            "move": board.pdn(known.move),
            "visits": known.visits,
            "prior": known.prior,
            "value": known.value,
            "wdl": known.wdl,
            "proof": known.proof,
        }
        for known in thoughts_of(result, legal)
    ]
    moves.sort(key=lambda move: (move["proof"] == "win", move["visits"]), reverse=True)
    after, pv = board.copy(), []
    for move in line:
        pv.append(after.pdn(move))
        after.push(move)
    best = board.pdn(legal[choice])
    figures = {"fen": board.fen(), "best": best, "wdl": [float(p) for p in result.wdl], "pv": pv, "moves": moves}
    if not quiet:
        _print_analysis(board, figures)
    return figures


def _print_analysis(board: Board, figures: dict[str, Any]) -> None:
    console = Console()
    console.print(str(board), markup=False, highlight=False)
    win, draw, loss = figures["wdl"]
    console.print(f"{board.turn} to move: win {win:.1%}, draw {draw:.1%}, loss {loss:.1%}; best {figures['best']}")
    table = Table("move", "visits", "prior", "value", "win", "draw", "loss", "proof")
    for move in figures["moves"]:
        shares = [f"{share:.1%}" for share in move["wdl"] or ()] or ["", "", ""]
        value = "" if move["value"] is None else f"{move['value']:+.3f}"
        table.add_row(move["move"], str(move["visits"]), f"{move['prior']:.1%}", value, *shares, move["proof"] or "")
    console.print(table)
    console.print("line: " + " ".join(figures["pv"]), markup=False)


def bench_command(net: str, board: str | None, quiet: bool, backend: str = "auto") -> dict[str, Any]:
    """Measures this machine; see ``crownhead bench --help``."""
    if board is not None:
        from .board_rates import board_rates_command

        return board_rates_command(board, quiet, backend)
    from .bench import run_bench

    return run_bench(net, progress_console(quiet), backend)
