"""``crownhead ladder``: plays the missing games, and writes tables, figure and report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.claims import claimed
from engine.console import Console, Table
from engine.players.spec import NetworkSpec, PlayerSpec, check_simulations, parse_network
from learner.checkpoint import read_info
from learner.report import (
    Cell,
    Figure,
    Report,
    Section,
    Text,
    check_packages,
    check_title,
    evenly_spaced,
    make_writable_folder,
    percent,
    write_report,
)
from learner.report import Table as ReportTable

from ..games.openings import MatchError, Opening, make_openings, openings_digest
from ..progress import LadderProgress
from ..requests import LadderRequest
from ..run.figures import ratings_image
from ..run.folder import RunError, RunFolder
from .commands import open_pool, settings_of, start_engines, tell_ignored, tell_repeated
from .ladder import (
    OPENINGS_DIGEST,
    LadderPlayer,
    LadderResults,
    Standings,
    StandingsFigures,
    ladder_pairs,
)
from .pool import MatchPool
from .tasks import Pairing, Task, make_tasks

_RESULTS_FILE = "ladder.json"
_TITLE = "Ladder of "
_FIRST_DOUBLED = 32  # simulations


class LadderFigures(StandingsFigures):
    """Results of ``crownhead ladder`` for a run (or network), its report's folder, and errors in games played now."""

    run: str
    out: str
    errors: list[str]


class _Climbers(NamedTuple):
    """The networks that are rated, from the first to the last.

    Attributes:
        specs: name → player.
        places: name → x-coordinate in the figure: minutes of training, or simulations per move.
        what: what they are, as a phrase for the report.
        axis: label of the x-axis.
        doubling: whether the x-axis is logarithmic.
    """

    specs: Mapping[str, NetworkSpec]
    places: Mapping[str, float]
    what: str
    axis: str
    doubling: bool


def _climbers(request: LadderRequest) -> _Climbers:
    """The networks to rate: a run's promoted networks, or one network with 1, 2, 4, ... times as many simulations."""
    if request.doublings is not None:
        first = _FIRST_DOUBLED if request.simulations is None else request.simulations
        numbers = [first << doubling for doubling in range(request.doublings + 1)]
        spec = parse_network(str(request.run))
        if spec.level is not None or spec.simulations is not None:
            raise RunError(f"{spec.text} has simulations of its own: --doublings needs a network")
        check_simulations(numbers[-1])
        specs = {str(number): replace(spec, simulations=number) for number in numbers}
        places = {str(number): float(number) for number in numbers}
        return _Climbers(specs, places, str(request.run), "simulations per move", True)
    run = RunFolder(request.run)
    if not run.config_path.is_file():
        raise RunError(f"{run.path} holds no run; for the ladder of a single network give --doublings")
    minutes = {promotion.checkpoint: promotion.minutes for promotion in run.read_state().promotions}
    if not minutes:
        raise RunError(f"{run.path} has promoted no network yet: train it longer first")
    names = evenly_spaced(list(minutes), request.networks)
    for name in names:
        read_info(run.checkpoint(name))  # raises: without its checkpoint, a copied run's network would be "no player"
    specs = {name: NetworkSpec(str(run.checkpoint(name))) for name in names}
    return _Climbers(specs, minutes, "promoted networks", "minutes of training", False)


def ladder_command(request: LadderRequest, quiet: bool) -> LadderFigures:
    """Rates a run's promoted networks, or one network with more and more simulations; see ``crownhead ladder --help``.

    Raises:
        RunError, MatchError: the run has no promoted network, or the settings or files do not fit.
        CheckpointError: the checkpoint of a promoted network is missing or damaged.
        ReportError: the folder holds another report.
    """
    games, control = request.games, request.control
    climbers = _climbers(request)
    specs: dict[str, PlayerSpec] = dict(climbers.specs)
    specs |= {spec.text: spec for spec in request.fixed if spec not in specs.values()}

    def pairing(player_a: PlayerSpec, player_b: PlayerSpec) -> Pairing:
        return Pairing(player_a, player_b, control, request.simulations, request.seed)

    players = [
        LadderPlayer(name, spec, settings_of(spec, pairing(spec, spec).conditions), name in climbers.specs)
        for name, spec in specs.items()
    ]
    openings = make_openings(request.openings, (games + 1) // 2, request.seed)
    pairs = ladder_pairs(players, request.everybody)
    if not pairs:
        raise MatchError(f"{players[0].name} is alone on the ladder: name anchors with --anchors")
    check_title(request.target, _TITLE, "--out")
    settings: dict[str, str | int] = {
        "time_control": str(control),
        "openings": request.openings,
        "seed": request.seed,
    }
    if digest := openings_digest(request.openings):  # the file may change between two calls
        settings[OPENINGS_DIGEST] = digest
    pairings = {(a, b): pairing(a.spec, b.spec) for a, b in pairs}
    if not quiet:
        tell_ignored(specs.values(), control)
        tell_repeated(pairings.values(), openings)
    start_engines(specs.values())
    check_packages()
    make_writable_folder(request.target)
    with claimed(request.target / _RESULTS_FILE):
        results = LadderResults(request.target / _RESULTS_FILE, settings)
        pool = open_pool(request.jobs, request.address, None, games * len(pairs), specs.values())
        errors = play_missing(pairings, openings, games, pool, results, quiet)
    tallies = {(a.name, b.name): results.tally(a.name, b.name, games) for a, b in pairs}
    standings = Standings.of(players, tallies)
    run, out = str(request.run), str(request.target)
    figures: LadderFigures = {"run": run, "out": out, **standings.figures(), "errors": errors}
    of_networks = players[0].settings.partition(" weights=")[0]
    if request.doublings is not None:
        of_networks = of_networks.partition(" ")[2]  # drop simulations=...
    _write(request, climbers, standings, figures, {**settings, "networks": of_networks})
    if not quiet:
        _print(standings)
        console = Console()
        if errors:  # their texts were logged when they happened
            console.print(f"games forfeited or lost on time: {len(errors)}")
        console.print(f"Report: {request.target / 'report.html'}", soft_wrap=True)
    return figures


def play_missing(
    pairings: Mapping[tuple[LadderPlayer, LadderPlayer], Pairing],
    openings: Sequence[Opening],
    games: int,
    pool: MatchPool,
    results: LadderResults,
    quiet: bool,
) -> list[str]:
    """Plays the games that ``results`` lack of the first ``games`` of each pairing, and closes the pool.

    After Ctrl-C, finished games are kept.

    Returns:
        Error messages of games that were forfeited or lost on time.

    Raises:
        MatchError: the results are from other players with the same names.
        KeyboardInterrupt: Ctrl-C; the message says how many games are kept.
    """
    for player in {player: None for pair in pairings for player in reversed(pair)}:  # earlier versions first
        results.admit(player)
    tasks: list[Task] = []
    for (a, b), pairing in pairings.items():
        played = results.scores(a.name, b.name)
        tasks += make_tasks(pairing, [(i, openings[i // 2]) for i in range(games) if i not in played], pool.jobs)
    names = {player.spec: player.name for pair in pairings for player in pair}
    total, before = games * len(pairings), len(results)
    kept = total - sum(len(task.starts) for task in tasks)
    errors = []
    with LadderProgress(total, quiet, kept) as progress, pool:
        try:
            for task, game in pool.play(tasks):
                pairing = task.pairing
                results.add(names[pairing.player_a], names[pairing.player_b], game.index, game.score)
                progress.game(game)
                if game.error:
                    errors.append(game.error)
        except KeyboardInterrupt as error:
            text = f"{kept + len(results) - before} of {total} games are kept; the same command goes on"
            raise KeyboardInterrupt(text) from error
        finally:
            results.save()
    return errors


def _write(
    request: LadderRequest,
    climbers: _Climbers,
    standings: Standings,
    figures: LadderFigures,
    settings: Mapping[str, str | int],
) -> None:
    table, reference, last = standings.fit.table, figures["reference"], standings.networks[-1]
    places = {name: climbers.places[name] for name in standings.networks}
    title, what, axis = f"Ladder of {request.run.name}", climbers.what, climbers.axis
    image = ratings_image(table, reference, places, title, what, axis, climbers.doubling)
    ratings = ratings_table(figures, f"Maximum-likelihood ratings; {reference} is 0; ± is half the 95 % interval")
    against = results_table(
        f"Games of {last}: won, drawn, lost (the form of Popič, Bošković and Brest 2021, table 2)",
        list(standings.against(last)),
    )
    conditions = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())
    steps = steps_table(figures, "Elo above the network before")
    sections = [
        Section("Ratings", [ratings, Figure("ladder", image, f"Elo of {what} over {axis}, and of the anchors")]),
        Section("Every network against the one before", [steps, Text(_summary(standings))]),
        Section(f"{last} against all others", [against]),
        Section("Cross-table", [_cross_table(standings)]),
        Section("Conditions", [Text(conditions)]),
    ]
    write_report(request.target, Report(f"{_TITLE}{request.run}", sections, figures))


def ratings_table(figures: StandingsFigures, caption: str) -> ReportTable:
    """The table of ``ratings``."""
    rows: list[list[Cell]] = []
    for line in figures["ratings"]:
        elo, error = f"{line['elo']:.0f}", f"{line['elo_error']:.0f}"
        score = percent(line["score"], 1) if "score" in line else ""  # cards of older versions have none
        rows.append([line["player"], elo, error, line["games"], score])
    return ReportTable(caption, ["player", "Elo", "±", "games", "score"], rows)


def steps_table(figures: StandingsFigures, caption: str) -> ReportTable:
    """The table of ``steps``."""
    rows = [
        [step["network"], step["before"], f"{step['elo']:.0f}", f"{step['elo_error']:.0f}", step["verdict"]]
        for step in figures["steps"]
    ]
    return ReportTable(caption, ["network", "before", "Elo", "±", "verdict"], rows)


def results_table(caption: str, rows: Sequence[tuple[str, int, int, int]]) -> ReportTable:
    """Wins, draws and losses as three rows, with a column for each opponent (``rows`` of ``Standings.against``)."""
    return ReportTable(
        caption,
        ["opponent", *(opponent for opponent, *_ in rows)],
        [[letter, *(row[place] for row in rows)] for place, letter in ((1, "W"), (2, "D"), (3, "L"))],
    )


def _cross_table(standings: Standings) -> ReportTable:
    names = [player.name for player in standings.players]
    rows: list[list[Cell]] = []
    for name in names:
        cells = {opponent: f"+{wins} ={draws} −{losses}" for opponent, wins, draws, losses in standings.against(name)}
        rows.append([name, *(cells.get(opponent) for opponent in names)])
    return ReportTable("Results of the player of the row against that of the column", ["player", *names], rows)


def _summary(standings: Standings) -> str:
    climb = standings.climb()
    if climb is None:
        return "There is only one network."
    counts = Counter(step["verdict"] for step in standings.steps())
    return (
        f"Stronger than the one before: {counts['stronger']}, within the error: {counts['within the error']}, weaker: "
        f"{counts['weaker']}. {climb['network']} against {climb['before']}: "
        f"Elo {climb['elo']:+.0f} ± {climb['elo_error']:.0f}."
    )


def _print(standings: Standings) -> None:
    console = Console()
    verdicts = {step["network"]: step["verdict"] for step in standings.steps()}
    table = Table("player", "Elo", "±", "games", "score", "against the one before")
    for line in standings.fit.table:
        cells = f"{line.rating:.0f}", f"{line.error:.0f}", str(line.games), f"{line.score:.1%}"
        table.add_row(line.player, *cells, verdicts.get(line.player, ""))
    console.print(table)
    console.print(_summary(standings), soft_wrap=True)
