"""What ``crownhead train`` and ``crownhead analyse`` do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.board import Board
from engine.errors import IllegalMoveError
from engine.players.base import search_moves
from engine.players.search_player import SearchPlayer, thoughts_of
from engine.players.spec import NetworkSpec
from engine.players.watching import Proof, Wdl
from learner.checkpoint import load_checkpoint, save_checkpoint

from .conditions import Conditions
from .config import RunConfig, make_config
from .players import checkpoint_folder, make_player
from .progress import TrainingProgress
from .ratings import Ratings
from .requests import AnalyseRequest, TrainRequest
from .results import Result
from .run_folder import RunError, RunFolder
from .stages import next_stage

_BOARD_S = 0.1  # of the searches that self-play is compared with


@dataclass(frozen=True)
class TrainReport(Result):
    """What a training did; the fields but the last four are those of ``Training.summary``.

    Attributes:
        network_evaluations_per_second: what the actors' networks could do with nothing else to do.
        board_evaluations_per_second: what a search of one position makes with the best network, as at the board.
        actor_to_board_ratio: evaluations per second of an actor that plays, as a share of that.
    """

    run: str
    iterations: int
    games: int
    samples: int
    promotions: int
    minutes: float
    steps: int
    best: str
    actors_busy: float
    learner_busy: float
    evaluations_per_second: float
    games_per_second: float
    samples_per_second: float
    network_evaluations_per_second: float
    selfplay_to_network_ratio: float
    board_evaluations_per_second: float
    actor_to_board_ratio: float


def train_command(request: TrainRequest, quiet: bool) -> TrainReport:
    """Starts or continues a run; see ``crownhead train --help``."""
    from .bench import bare_network_rate
    from .board_rates import board_rates
    from .training import Training

    if request.address:
        from .ray_pool import check_address

        check_address(request.address)
    run, config = RunFolder.open(request.folder) if request.resume else _begun(request)
    with run.locked():
        if request.resume:
            config = _resumed(run, config, request.all_settings, request.minutes).model_copy(update=request.pools)
        with TrainingProgress(quiet) as progress:
            training = Training(run, config, progress)
            progress.limit(training.minutes, training.state.minutes_limit)
            figures = training.run()
        best = run.checkpoint(figures["best"])
        bare = bare_network_rate(load_checkpoint(best).network, config)
        board = board_rates(NetworkSpec(str(best), backend=config.selfplay.backend), (_BOARD_S,))[0].evaluations
    playing = figures["actors_busy"] * config.selfplay.actors
    report = TrainReport(
        **figures,
        network_evaluations_per_second=round(bare, 1),
        selfplay_to_network_ratio=round(figures["evaluations_per_second"] / bare, 3),
        board_evaluations_per_second=round(board, 1),
        actor_to_board_ratio=round(figures["evaluations_per_second"] / max(playing, 1e-9) / board, 3),
    )
    if not quiet:
        _print_ratings(training.ratings)
        _print_training(report, run)
    return report


def _begun(request: TrainRequest) -> tuple[RunFolder, RunConfig]:
    """A new run."""
    changes: dict[str, Any] = {**request.pools}
    settings = request.all_settings
    teacher = load_checkpoint(checkpoint_folder(request.teacher)) if request.teacher else None
    if teacher is not None:
        changes |= {"teacher": {"digest": teacher.info.digest}}
    elif any(setting.startswith("teacher.") for setting in settings):
        raise RunError("settings of a teacher need one: name it with --teacher")
    first = load_checkpoint(checkpoint_folder(request.init)) if request.init else None
    if first is not None:
        if any(setting.partition("=")[0].partition(".")[0] == "network" for setting in settings):
            raise RunError("a run keeps the size of the network it begins with: leave --set network or --init out")
        changes |= {"network": first.info.network.model_dump(), "init": first.info.digest}
    config = make_config(request.preset, settings, **changes)
    run = RunFolder.create(request.folder, config)
    if first is not None:
        save_checkpoint(run.checkpoint("000000"), first.network, {"steps": 0}, first.info.digest)
    if teacher is not None:
        info = teacher.info
        save_checkpoint(run.teacher, teacher.network, info.figures, info.parent)
    return run, config


def _print_training(report: TrainReport, run: RunFolder) -> None:
    console = Console()
    console.print(f"Best network: {run.checkpoint(report.best)} ({report.promotions} promotions)")
    console.print(f"Busy: actors {report.actors_busy:.0%}, learner {report.learner_busy:.0%} of the time")
    console.print(
        f"Self-play: {report.evaluations_per_second:,.0f} evaluations/s "
        f"({report.selfplay_to_network_ratio:.0%} of the bare network's; while it plays an actor makes "
        f"{report.actor_to_board_ratio:.0%} of the rate of a search at the board), "
        f"{report.samples_per_second:,.0f} samples/s, {60 * report.games_per_second:,.0f} games/min"
    )


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


@dataclass(frozen=True)
class MoveAnalysis:
    """A move; ``value`` and ``wdl`` are seen by the side to move, None where it has neither visits nor proof."""

    move: str
    visits: int
    prior: float | None
    value: float | None
    wdl: Wdl | None
    proof: Proof | None


@dataclass(frozen=True)
class AnalysisReport(Result):
    """What a search thinks of a position.

    Attributes:
        wdl: win, draw, loss for the side to move. pv: the expected line in PDN. moves: the best first.
    """

    fen: str
    best: str
    wdl: list[float]
    pv: list[str]
    moves: list[MoveAnalysis]


def analyse_command(request: AnalyseRequest, quiet: bool) -> AnalysisReport:
    """Searches one position; see ``crownhead analyse --help``. What its network's text says behind @ goes first."""
    board = Board(request.fen)
    if not board.legal_moves:
        raise IllegalMoveError(f"{request.fen}: the game is over, {board.turn} has no legal move")
    player = make_player(request.spec, Conditions(request.simulations, backend=request.backend))
    assert isinstance(player, SearchPlayer)
    legal = search_moves(board)
    result, line, choice = player.analyse(board)
    moves = [
        MoveAnalysis(board.pdn(known.move), known.visits, known.prior, known.value, known.wdl, known.proof)
        for known in thoughts_of(result, legal)
    ]
    moves.sort(key=lambda move: (move.proof == "win", move.visits), reverse=True)
    after, pv = board.copy(), []
    for move in line:
        pv.append(after.pdn(move))
        after.push(move)
    report = AnalysisReport(board.fen(), board.pdn(legal[choice]), [float(p) for p in result.wdl], pv, moves)
    if not quiet:
        _print_analysis(board, report)
    return report


def _print_analysis(board: Board, report: AnalysisReport) -> None:
    console = Console()
    console.print(str(board), markup=False, highlight=False)
    win, draw, loss = report.wdl
    console.print(f"{board.turn} to move: win {win:.1%}, draw {draw:.1%}, loss {loss:.1%}; best {report.best}")
    table = Table("move", "visits", "prior", "value", "win", "draw", "loss", "proof")
    for move in report.moves:
        shares = [f"{share:.1%}" for share in move.wdl or ()] or ["", "", ""]
        value = "" if move.value is None else f"{move.value:+.3f}"
        table.add_row(move.move, str(move.visits), f"{move.prior or 0.0:.1%}", value, *shares, move.proof or "")
    console.print(table)
    console.print("line: " + " ".join(report.pv), markup=False)
