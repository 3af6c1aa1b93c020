"""The commands ``crownhead train`` and ``crownhead analyse``."""

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

from engine.board import Board
from engine.console import Console, Table
from engine.errors import IllegalMoveError
from engine.files import make_folder
from engine.players.base import search_moves
from engine.players.search_player import SearchPlayer, best_first, thoughts_of
from engine.players.spec import BackendName, NetworkSpec
from learner.checkpoint import Checkpoint, load_checkpoint, read_info, save_checkpoint
from learner.inference import check_backend, make_evaluator
from learner.network import try_network
from learner.report import missing_packages

from .conditions import Conditions
from .machines.threads import choose_device
from .players import checkpoint_folder, make_player
from .progress import TrainingProgress
from .rating.ratings import Ratings
from .requests import AnalyseRequest, TrainRequest
from .run.config import AGAINST, DEFAULT_PRESET, RunConfig, make_config
from .run.folder import RunError, RunFolder
from .run.mirror import Mirror
from .run.stages import next_stage
from .training.loop import Training, TrainingFigures

_ANALYSED = 800  # simulations of ``analyse`` where neither option nor network say
_BOARD_S = 0.1  # seconds of each search whose rate is compared with that of self-play


class TrainFigures(TrainingFigures):
    """Figures of a run, and two rates to compare its self-play with.

    ``network_evaluations_per_second`` is what the actors' networks could do if the actors did nothing else;
    ``selfplay_to_network_ratio`` is the rate of self-play divided by it. ``board_evaluations_per_second`` is the rate
    of a search of a single position with the best network; ``actor_to_board_ratio`` is the rate of one playing actor
    divided by it.
    """

    network_evaluations_per_second: float
    selfplay_to_network_ratio: float
    board_evaluations_per_second: float
    actor_to_board_ratio: float


class MoveFigures(TypedDict):
    """A move with prior (0 to 1), value (-1 to 1) and win/draw/loss for the side to move; None where unknown."""

    move: str
    visits: int
    prior: float | None
    value: float | None
    wdl: tuple[float, float, float] | None
    proof: str | None


class AnalyseFigures(TypedDict):
    """An analysed position: win/draw/loss for the side to move, the expected line, and all moves, best first."""

    fen: str
    best: str
    wdl: list[float]
    pv: list[str]
    moves: list[MoveFigures]


def train_command(request: TrainRequest, quiet: bool) -> TrainFigures:
    """Starts or continues a run; see ``crownhead train --help``.

    Raises:
        KeyboardInterrupt: the run is saved; the message says how to continue it.
    """
    try:
        return _train(request, quiet)
    except KeyboardInterrupt as error:
        if not (request.folder / "state.json").exists():
            raise
        if error.args:  # the run has ended
            raise
        raise KeyboardInterrupt(
            f"saved; `crownhead train --run {shlex.quote(str(request.folder))} --resume` goes on"
        ) from error


def _train(request: TrainRequest, quiet: bool) -> TrainFigures:
    if request.address:
        from .machines.cluster import check_address

        check_address(request.address)
    mirror = Mirror(request.mirror) if request.mirror else None
    if mirror is not None:
        mirror.check_place(request.folder)
    if mirror is not None and not request.resume and not mirror.is_empty:
        raise RunError(f"{mirror.url} holds a run already: continue it with --resume, or choose another URL")
    run = RunFolder(request.folder)
    if mirror is not None and request.resume and not mirror.is_empty and not run.config_path.exists():
        make_folder(run.path)
        with run.locked():  # another process may fetch it, too, and go on with it
            if not run.config_path.exists():
                mirror.pull(run.path)
    beginning = None if request.resume else _beginning(request)
    if beginning is None:
        RunFolder.open(run.path)  # raises if there is no run
    else:
        run.check_free()
    if mirror is not None:
        mirror.check_writable()
    is_new = not run.path.exists()
    make_folder(run.path)
    with run.locked(), _kept_once_begun(run, is_new):
        if mirror is not None and beginning is None:
            mirror.check(run)
        config = _resumed(run, request) if beginning is None else _begun(run, beginning)
        with TrainingProgress(quiet) as progress:
            training = Training(run, config, progress)
            progress.limit(training.minutes, training.state.minutes_limit)
            summary = training.run()
        figures: TrainFigures = {**summary, **_rates(run, config, summary)}  # type: ignore[typeddict-item]
    if not quiet:
        _print_ratings(training.ratings)
        _print_training(figures, run.checkpoint(summary["best"]))
    return figures


def _rates(run: RunFolder, config: RunConfig, summary: TrainingFigures) -> dict[str, float]:
    """The figures of ``TrainFigures`` beside those of the training.

    Raises:
        KeyboardInterrupt: the message says that the run has ended; ``--resume`` alone would be refused.
    """
    from .measures.bench import bare_network_rate
    from .measures.board_rates import board_rates

    best = run.checkpoint(summary["best"])
    try:
        network = load_checkpoint(best).network
        bare = bare_network_rate(network, config, max(summary["actors"], 1.0))
        # Its backend by name: with ``auto`` its student would play.
        plain = cast(BackendName, make_evaluator(network, config.selfplay.backend).backend)
        board = board_rates(NetworkSpec(str(best), backend=plain), (_BOARD_S,))[0]["evaluations"]
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"the run in {run.path} has ended and is saved; its best network is {best}") from error
    return {
        "network_evaluations_per_second": round(bare, 1),
        "selfplay_to_network_ratio": round(summary["evaluations_per_second"] / bare, 3),
        "board_evaluations_per_second": round(board, 1),
        "actor_to_board_ratio": round(summary["actor_evaluations_per_second"] / board, 3),
    }


@contextmanager
def _kept_once_begun(run: RunFolder, is_new: bool) -> Iterator[None]:
    """Removes a new folder whose run could not begin, as without its cluster: it would refuse the same command again.

    The log begins once there are actors.
    """
    try:
        yield
    except Exception:
        if is_new and not run.log_path.exists():
            shutil.rmtree(run.path, ignore_errors=True)
        raise


class _Beginning(NamedTuple):
    """What a new run begins with: networks that were named, or None."""

    config: RunConfig
    first: Checkpoint | None
    teacher: Checkpoint | None
    opponent: Checkpoint | None


def _beginning(request: TrainRequest) -> _Beginning:
    """What a request wants of a new run. Writes nothing."""
    changes: dict[str, Any] = {**request.places}
    settings = request.all_settings
    named = {setting.partition("=")[0].partition(".")[0] for setting in settings}
    for key in ("preset", "init", "teacher", "mirror", "opponent"):
        if key in named and not (key == "teacher" and request.teacher):
            raise RunError(f"--set {key}: use --{'against' if key == 'opponent' else key}")
    for setting in settings:
        if setting.partition("=")[0] in ("stages", "teacher", "teacher.digest"):
            raise RunError(f"--set {setting.partition('=')[0]}: the run writes that itself")
    teacher, first, opponent = map(_named, (request.teacher, request.init, request.against))
    if teacher is not None:
        changes |= {"teacher": {"digest": teacher.info.digest}}
    if opponent is not None:
        changes |= {"opponent": {"digest": opponent.info.digest}, **AGAINST}
    if first is not None:
        if "network" in named:
            raise RunError("a run keeps the size of the network it begins with: leave --set network or --init out")
        changes |= {"network": first.info.network.model_dump(), "init": first.info.digest}
    config = make_config(request.preset or DEFAULT_PRESET, settings, **changes)
    if config.address is not None and config.pool != "ray":
        raise RunError(f"--set address joins a Ray cluster, and the pool is {config.pool}: use --address")
    _check_means(config)
    for other in (teacher, opponent):
        if other is not None:
            check_backend(other.info.network, config.selfplay.backend)
    for network in (config.network, *([config.student.network] if config.student else [])):
        try_network(network)
    return _Beginning(config, first, teacher, opponent)


def _named(network: str | None) -> Checkpoint | None:
    return load_checkpoint(checkpoint_folder(network)) if network else None


def _check_means(config: RunConfig) -> None:
    """Raises, before any file is written, if there is no such device or the backend does not compute the network."""
    choose_device(config.device)
    check_backend(config.network, config.selfplay.backend)


def _begun(run: RunFolder, beginning: _Beginning) -> RunConfig:
    """Writes a new run into its folder, which is locked; returns its configuration."""
    config, first, *others = beginning

    def fill(run: RunFolder) -> None:
        for folder, other in zip((run.teacher, run.opponent), others, strict=True):
            if other is not None:
                save_checkpoint(folder, other.network, other.info.figures, other.info.parent)
        if first is not None:
            save_checkpoint(run.checkpoint("000000"), first.network, {"steps": 0}, first.info.digest)

    RunFolder.create(run.path, config, fill)
    return config


def _print_training(figures: TrainFigures, best: Path) -> None:
    console = Console()
    console.print(f"Best network: {best} (promotions: {figures['promotions']})")
    if figures["iterations"] == 0:
        console.print("The time was too short for a candidate: continue with --resume --minutes 5")
    if missing := missing_packages(("matplotlib", "tensorboard")):
        console.print(f"No picture or curves without {', '.join(missing)}: pip install 'crownhead[report]'")
    console.print(
        f"Busy: actors {figures['actors_busy']:.0%}, learner {figures['learner_busy']:.0%} of the time; "
        f"together they used {figures['cores_used']:.2f} cores"
    )
    console.print(
        f"Self-play: {figures['evaluations_per_second']:,.0f} evaluations/s "
        f"({figures['selfplay_to_network_ratio']:.0%} of the bare network's; an actor makes "
        f"{figures['actor_to_board_ratio']:.0%} of the rate of a search at the board), "
        f"{figures['samples_per_second']:,.0f} samples/s, {60 * figures['games_per_second']:,.0f} games/min"
    )


def _resumed(run: RunFolder, request: TrainRequest) -> RunConfig:
    """Returns the configuration to continue a run with, and writes new settings and minutes into its locked folder.

    Raises ``RunError`` if the run has reached its limit, ``ConfigError`` if a setting is wrong or cannot change.
    """
    settings, minutes = request.all_settings, request.minutes
    state, (_, config) = run.read_state(), RunFolder.open(run.path)
    if request.preset not in (None, config.preset):
        raise RunError(f"{run.path} has begun with --preset {config.preset}, not {request.preset}")
    changed = config
    if settings:
        changed = next_stage(config, settings, state.iteration, run.steps_made())
    limit = state.minutes_limit if minutes is None else state.minutes + minutes
    by_minutes = minutes is not None or (limit is not None and limit != config.loop.minutes)  # asked for by --minutes
    if limit is not None and state.minutes >= limit and not run.is_judging:
        raise RunError(f"{run.path} has used its {limit:.2f} minutes: give it more with --minutes")
    most = changed.loop.max_iterations
    if most is not None and state.iteration >= most and not (by_minutes or run.is_judging):
        raise RunError(
            f"{run.path} has made all iterations ({most}): give it more with --set loop.max_iterations=N or --minutes"
        )
    if changed.loop.deterministic and minutes is not None:
        raise RunError("loop.deterministic: time would decide where the run ends; use --set loop.max_iterations=N")
    _check_means(changed)
    for folder, there in ((run.teacher, changed.teacher), (run.opponent, changed.opponent)):
        if there is not None:
            check_backend(read_info(folder).network, changed.selfplay.backend)
    if request.mirror:
        changed = changed.model_copy(update={"mirror": request.mirror})  # kept: later parts of the run update it, too
    elif changed.mirror is not None:
        Mirror(changed.mirror).check(run)
    if changed != config:
        run.change_config(config, changed)
    if limit != state.minutes_limit:
        run.write_state(state.model_copy(update={"minutes_limit": limit}))
    changed = changed.model_copy(update=request.places)
    if not by_minutes:
        return changed
    asked = any(setting.partition("=")[0] == "loop.max_iterations" for setting in settings)
    asked |= minutes is None and most is not None and most > state.iteration  # it may have been asked for with them
    loop = changed.loop.model_copy(update={"minutes": limit} | ({} if asked else {"max_iterations": None}))
    return changed.model_copy(update={"loop": loop})


def _print_ratings(ratings: Ratings) -> None:
    table = Table("player", "Elo", "±", "games", "score", "endgames right", title=f"Ratings ({ratings.reference} = 0)")
    for line in ratings.table():
        endgames = f"{ratings.endgames[line.player]:.1%}" if line.player in ratings.endgames else ""
        cells = f"{line.rating:.0f}", f"{line.error:.0f}", str(line.games), f"{line.score:.1%}", endgames
        table.add_row(line.player, *cells)
    Console().print(table)


def analyse_command(request: AnalyseRequest, quiet: bool) -> AnalyseFigures:
    """Searches one position; see ``crownhead analyse --help``.

    A backend in the network's text (behind @) overrides the option; ``--oracle`` overrides the text.
    """
    player = make_player(request.spec, Conditions(request.simulations or _ANALYSED, backend=request.backend))
    board = Board(request.fen)  # after the network, whose loading checks that this process plays its game
    if not board.legal_moves:
        raise IllegalMoveError(f"{request.fen}: the game is over, {board.turn} has no legal move")
    assert isinstance(player, SearchPlayer)
    legal = search_moves(board)
    result, line, choice = player.analyse(board)
    thoughts = best_first(thoughts_of(result, legal), legal[choice])
    figures: AnalyseFigures = {
        "fen": board.fen(),
        "best": board.pdn(legal[choice]),
        "wdl": [float(share) for share in result.wdl],
        "pv": list(board.pdn_line(line)),
        "moves": [
            {
                "move": board.pdn(thought.move),
                "visits": thought.visits,
                "prior": thought.prior,
                "value": thought.value,
                "wdl": thought.wdl,
                "proof": thought.proof,
            }
            for thought in thoughts
        ],
    }
    if not quiet:
        _print_analysis(board, figures)
    return figures


def _print_analysis(board: Board, figures: AnalyseFigures) -> None:
    console = Console()
    console.print(str(board), highlight=False)
    win, draw, loss = figures["wdl"]
    console.print(f"{board.turn} to move: win {win:.1%}, draw {draw:.1%}, loss {loss:.1%}; best {figures['best']}")
    table = Table("move", "visits", "prior", "value", "win", "draw", "loss", "proof")
    for move in figures["moves"]:
        shares = [f"{share:.1%}" for share in move["wdl"] or ()] or ["", "", ""]
        value = "" if move["value"] is None else f"{move['value']:+.3f}"
        prior = f"{move['prior'] or 0.0:.1%}"
        table.add_row(move["move"], str(move["visits"]), prior, value, *shares, move["proof"] or "")
    console.print(table)
    console.print("line: " + " ".join(figures["pv"]))
