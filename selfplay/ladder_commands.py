"""What ``crownhead ladder`` does: plays the games that are missing, and writes tables, figure and report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.players.spec import NetworkSpec, PlayerSpec, parse_network
from learner.report import Block, Cell, Figure, Report, Section, Text, make_writable_folder, write_report
from learner.report import Table as ReportTable

from .figures import ratings_image
from .ladder import LadderPlayer, LadderResults, Standings, evenly_spaced, ladder_pairs
from .match_commands import choose_jobs, settings_of, start_engines
from .match_pool import MatchPool, Pairing, Task, make_tasks
from .openings import MatchError, Opening, make_openings
from .progress import LadderProgress
from .requests import LadderRequest
from .results import Result
from .run_folder import RunError, RunFolder

_RESULTS_FILE = "ladder.json"
_FIRST_DOUBLED = 32  # simulations
Pairs = Sequence[tuple[LadderPlayer, LadderPlayer]]


@dataclass(frozen=True)
class _Climbers:
    """Those whose ladder it is, from the first to the last.

    Attributes:
        specs: name → player.
        places: name → where it stands along the figure's axis: minutes of training, or simulations per move.
        what: they are, for the report.
        axis: the axis's name; ``doubling``: in steps of twice as much.
    """

    specs: Mapping[str, NetworkSpec]
    places: Mapping[str, float]
    what: str
    axis: str
    doubling: bool

    @staticmethod
    def of(request: LadderRequest) -> "_Climbers":
        """Those that are asked for."""
        if request.doublings is None:
            return _Climbers._of_run(request.run, request.networks)
        first = _FIRST_DOUBLED if request.simulations is None else request.simulations
        return _Climbers._of_doublings(request.run, first, request.doublings)

    @staticmethod
    def _of_run(folder: Path, networks: int | None) -> "_Climbers":
        """A run's promoted networks, or so many of them."""
        run = RunFolder(folder)
        if not run.config_path.is_file():
            raise RunError(f"{folder} holds no run; for the ladder of a single network give --doublings")
        minutes = {promotion.checkpoint: promotion.minutes for promotion in run.read_state().promotions}
        if not minutes:
            raise RunError(f"{folder} has promoted no network yet: there is no ladder to climb")
        specs = {name: NetworkSpec(str(run.checkpoint(name))) for name in evenly_spaced(list(minutes), networks)}
        return _Climbers(specs, minutes, "promoted networks", "minutes of training", False)

    @staticmethod
    def _of_doublings(network: Path, first: int, doublings: int) -> "_Climbers":
        """One network with ``first`` simulations per move, with twice as many, and so on."""
        numbers, spec = [first << doubling for doubling in range(doublings + 1)], parse_network(str(network))
        specs = {str(number): replace(spec, simulations=number) for number in numbers}
        places = {str(number): float(number) for number in numbers}
        return _Climbers(specs, places, str(network), "simulations per move", True)


@dataclass(frozen=True)
class LadderReport(Result):
    """What a ladder says.

    Attributes:
        run: its folder, or the network that was asked for. out: where the report lies.
        errors: what went wrong in games that were forfeited.
    """

    run: Path
    out: Path
    standings: Standings
    errors: list[str]

    def figures(self) -> dict[str, Any]:
        """See ``Result.figures``."""
        return {"run": str(self.run), "out": str(self.out), **self.standings.figures(), "errors": self.errors}


def ladder_command(request: LadderRequest, quiet: bool) -> LadderReport:
    """Measures a run's promoted networks, or what more simulations are worth; see ``crownhead ladder --help``."""
    games, control = request.games, request.control
    climbers = _Climbers.of(request)
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
        raise MatchError(f"{players[0].name} is alone on the ladder: name anchors")
    settings = {"time_control": str(control), "openings": request.openings, "seed": request.seed}
    start_engines(specs.values())
    make_writable_folder(request.target)
    results = LadderResults(request.target / _RESULTS_FILE, settings)
    pairings = {(a, b): pairing(a.spec, b.spec) for a, b in pairs}
    jobs = choose_jobs(request.jobs, None, games * len(pairs))
    errors = play_missing(pairings, openings, games, jobs, results, quiet)
    report = LadderReport(request.run, request.target, Standings.of(players, pairs, results, games), errors)
    of_networks = players[0].settings.partition(" weights=")[0]
    if request.doublings is not None:
        of_networks = of_networks.partition(" ")[2]  # without the simulations
    _write(report, climbers, {**settings, "networks": of_networks})
    if not quiet:
        _print(report)
    return report


def play_missing(
    pairings: Mapping[tuple[LadderPlayer, LadderPlayer], Pairing],
    openings: Sequence[Opening],
    games: int,
    jobs: int,
    results: LadderResults,
    quiet: bool,
) -> list[str]:
    """Plays those of the first ``games`` games of each pairing that are missing in the results.

    Returns:
        What went wrong in games that were forfeited.

    Raises:
        MatchError: the results are of other players.
        KeyboardInterrupt: all games that are over have been kept.
    """
    for player in {player: None for pair in pairings for player in reversed(pair)}:  # earlier versions first
        results.admit(player)
    tasks: list[Task] = []
    for (a, b), pairing in pairings.items():
        played = results.scores(a.name, b.name)
        tasks += make_tasks(pairing, [(i, openings[i // 2]) for i in range(games) if i not in played], jobs)
    names = {player.spec: player.name for pair in pairings for player in pair}
    total = games * len(pairings)
    kept = total - sum(len(task.starts) for task in tasks)
    return _play(tasks, min(jobs, max(1, len(tasks))), results, names, kept, quiet)


def _play(
    tasks: Sequence[Task], jobs: int, results: LadderResults, names: Mapping[PlayerSpec, str], kept: int, quiet: bool
) -> list[str]:
    """Plays the games of all tasks; what went wrong in those that were forfeited."""
    total = kept + sum(len(task.starts) for task in tasks)
    errors = []
    before = len(results)
    with LadderProgress(total, kept, quiet) as progress, MatchPool(jobs) as pool:
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


def _write(report: LadderReport, climbers: _Climbers, settings: Mapping[str, Any]) -> None:
    standings = report.standings
    table = standings.fit.table
    reference = standings.players[0].name
    places = {name: climbers.places[name] for name in standings.networks}
    image = ratings_image(
        table,
        reference,
        places,
        f"Ladder of {report.run.name}",
        climbers.what,
        climbers.axis,
        climbers.doubling,
    )
    rating_rows: list[list[Cell]] = [
        [line.player, f"{line.rating:.0f}", f"{line.error:.0f}", line.games, f"{100 * line.score:.1f} %"]
        for line in table
    ]
    last = standings.networks[-1]
    blocks: list[Block] = [
        ReportTable(
            f"Most likely ratings together; {reference} is 0; ± is half the 95 % interval",
            ["player", "Elo", "±", "games", "score"],
            rating_rows,
        ),
        Figure("ladder", image, f"Elo of {climbers.what} over {climbers.axis}, and of the anchors"),
    ]
    sections = [
        Section("Ratings", blocks),
        Section("Every step against the one before", [_steps_table(standings), Text(_summary(standings))]),
        Section(
            f"{last} against all others",
            [
                results_table(
                    f"Games of {last}: won, drawn, lost (the form of Popič, Bošković and Brest 2021, table 2)",
                    list(standings.against(last)),
                )
            ],
        ),
        Section("Cross-table", [_cross_table(standings)]),
        Section(
            "Conditions", [Text("; ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()))]
        ),
    ]
    write_report(report.out, Report(f"Ladder of {report.run}", sections, report.figures()))


def results_table(caption: str, rows: Sequence[tuple[str, int, int, int]]) -> ReportTable:
    """Wins, draws and losses as three rows, a column for each opponent (``Standings.against``)."""
    return ReportTable(
        caption,
        ["opponent", *(opponent for opponent, *_ in rows)],
        [[letter, *(row[place] for row in rows)] for place, letter in ((1, "W"), (2, "D"), (3, "L"))],
    )


def _steps_table(standings: Standings) -> ReportTable:
    rows: list[list[Cell]] = [
        [step.network, step.before, f"{step.elo:.0f}", f"{step.elo_error:.0f}", step.verdict]
        for step in standings.steps()
    ]
    return ReportTable("Elo above the network before", ["network", "before", "Elo", "±", "verdict"], rows)


def _cross_table(standings: Standings) -> ReportTable:
    names = [player.name for player in standings.players]
    rows: list[list[Cell]] = []
    for name in names:
        cells = {opponent: f"+{wins} ={draws} −{losses}" for opponent, wins, draws, losses in standings.against(name)}
        rows.append([name, *(cells.get(opponent) for opponent in names)])
    return ReportTable("Results of the player of the row against that of the column", ["player", *names], rows)


def _summary(standings: Standings) -> str:
    steps, climb = standings.steps(), standings.climb()
    if climb is None:
        return "There is one network only."
    counts = {
        verdict: sum(step.verdict == verdict for step in steps)
        for verdict in ("stronger", "within the error", "weaker")
    }
    return (
        f"Steps stronger than the error: {counts['stronger']}, within it: {counts['within the error']}, weaker: "
        f"{counts['weaker']}. {climb.network} against {climb.before}: Elo {climb.elo:+.0f} ± {climb.elo_error:.0f}."
    )


def _print(report: LadderReport) -> None:
    console, standings = Console(), report.standings
    verdicts = {step.network: step.verdict for step in standings.steps()}
    table = Table("player", "Elo", "±", "games", "score", "than the one before")
    for line in standings.fit.table:
        cells = f"{line.rating:.0f}", f"{line.error:.0f}", str(line.games), f"{line.score:.1%}"
        table.add_row(line.player, *cells, verdicts.get(line.player, ""))
    console.print(table)
    console.print(_summary(standings), soft_wrap=True)
    if report.errors:  # told in full when they happened
        console.print(f"forfeited or lost on time: {len(report.errors)} games")
    console.print(f"Report: {report.out / 'report.html'}", markup=False, soft_wrap=True)
