"""What ``crownhead ladder`` does: plays the games that are missing, and writes tables, figure and report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from learner.report import Block, Cell, Figure, Report, Section, Text, make_writable_folder, write_report
from learner.report import Table as ReportTable

from .figures import ratings_image
from .ladder import LadderPlayer, LadderResults, Standings, evenly_spaced, ladder_pairs
from .match_commands import choose_jobs, inspect_player, make_pairing, start_engines, time_control
from .match_pool import MatchPool, Pairing, Task, make_tasks
from .openings import MatchError, Opening, make_openings
from .progress import LadderProgress
from .run_folder import RunError, RunFolder

_RESULTS_FILE = "ladder.json"
_FIRST_DOUBLED = 32  # simulations
Pairs = Sequence[tuple[LadderPlayer, LadderPlayer]]


@dataclass(frozen=True)
class _Climbers:
    """Those whose ladder it is, from the first to the last.

    Attributes:
        texts: name → player as on the command line.
        places: name → where it stands along the figure's axis: minutes of training, or simulations per move.
        what: they are, for the report.
        axis: the axis's name; ``doubling``: in steps of twice as much.
    """

    texts: Mapping[str, str]
    places: Mapping[str, float]
    what: str
    axis: str
    doubling: bool

    @staticmethod
    def of_run(folder: Path, networks: int | None) -> "_Climbers":
        """A run's promoted networks, or so many of them."""
        run = RunFolder(folder)
        if not run.config_path.is_file():
            raise RunError(f"{folder} holds no run; for the ladder of a single network give --doublings")
        minutes = {promotion.checkpoint: promotion.minutes for promotion in run.read_state().promotions}
        if not minutes:
            raise RunError(f"{folder} has promoted no network yet: there is no ladder to climb")
        texts = {name: str(run.checkpoint(name)) for name in evenly_spaced(list(minutes), networks)}
        return _Climbers(texts, minutes, "promoted networks", "minutes of training", False)

    @staticmethod
    def of_doublings(network: Path, first: int, doublings: int) -> "_Climbers":
        """One network with ``first`` simulations per move, with twice as many, and so on."""
        numbers = [first << doubling for doubling in range(doublings + 1)]
        texts = {str(number): f"{network}@{number}" for number in numbers}
        places = {str(number): float(number) for number in numbers}
        return _Climbers(texts, places, str(network), "simulations per move", True)


def _climbers(
    folder: Path, networks: int | None, doublings: int | None, simulations: int | None, seconds: float | None
) -> _Climbers:
    if doublings is None:
        return _Climbers.of_run(folder, networks)
    if seconds is not None or networks is not None:
        raise MatchError("--doublings are of one network's simulations: leave --seconds and --networks out")
    return _Climbers.of_doublings(folder, _FIRST_DOUBLED if simulations is None else simulations, doublings)


def ladder_command(
    folder: Path,
    games: int,
    anchors: str,
    networks: int | None,
    doublings: int | None,
    everybody: bool,
    simulations: int | None,
    seconds: float | None,
    openings: str,
    jobs: int | None,
    seed: int,
    out: Path | None,
    quiet: bool,
) -> dict[str, Any]:
    """Measures a run's promoted networks, or what more simulations are worth; see ``crownhead ladder --help``."""
    control = time_control(simulations, seconds, None)
    climbers = _climbers(folder, networks, doublings, simulations, seconds)
    texts = dict(climbers.texts)
    fixed = (text for text in (anchor.strip() for anchor in anchors.split(",")) if text)
    texts |= {text: text for text in fixed if text not in texts.values()}
    facts = {name: inspect_player(text, simulations, control) for name, text in texts.items()}
    players = [LadderPlayer(name, fact.text, fact.settings, name in climbers.texts) for name, fact in facts.items()]
    chosen = make_openings(openings, (games + 1) // 2, seed)
    pairs = ladder_pairs(players, everybody)
    if not pairs:
        raise MatchError(f"{players[0].name} is alone on the ladder: name anchors")
    target = out or (Path("ladder") if doublings is not None else folder / "ladder")
    settings = {"time_control": str(control), "openings": openings, "seed": seed}
    start_engines(facts.values())
    make_writable_folder(target)
    results = LadderResults(target / _RESULTS_FILE, settings)
    wanted = choose_jobs(jobs, (), control, games * len(pairs))
    pairings = {(a, b): make_pairing((facts[a.name], facts[b.name]), control, simulations, seed) for a, b in pairs}
    errors = play_missing(pairings, chosen, games, wanted, results, quiet)
    standings = Standings.of(players, pairs, results, games)
    figures = {"run": str(folder), "out": str(target), **standings.figures(), "errors": errors}
    of_networks = players[0].settings.partition(" weights=")[0]
    if doublings is not None:
        of_networks = of_networks.partition(" ")[2]  # without the simulations
    _write(target, standings, figures, climbers, {**settings, "networks": of_networks})
    if not quiet:
        _print(standings, target, errors)
    return figures


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
    names = {player.text: player.name for pair in pairings for player in pair}
    total = games * len(pairings)
    kept = total - sum(len(task.starts) for task in tasks)
    return _play(tasks, min(jobs, max(1, len(tasks))), results, names, kept, quiet)


def _play(
    tasks: Sequence[Task], jobs: int, results: LadderResults, names: Mapping[str, str], kept: int, quiet: bool
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


def _write(
    folder: Path,
    standings: Standings,
    figures: Mapping[str, Any],
    climbers: _Climbers,
    settings: Mapping[str, Any],
) -> None:
    table = standings.fit.table
    reference = standings.players[0].name
    places = {name: climbers.places[name] for name in standings.networks}
    image = ratings_image(
        table,
        reference,
        places,
        f"Ladder of {Path(figures['run']).name}",
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
    write_report(folder, Report(f"Ladder of {figures['run']}", sections, figures))


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


def _print(standings: Standings, folder: Path, errors: Sequence[str]) -> None:
    console = Console()
    verdicts = {step.network: step.verdict for step in standings.steps()}
    table = Table("player", "Elo", "±", "games", "score", "than the one before")
    for line in standings.fit.table:
        cells = f"{line.rating:.0f}", f"{line.error:.0f}", str(line.games), f"{line.score:.1%}"
        table.add_row(line.player, *cells, verdicts.get(line.player, ""))
    console.print(table)
    console.print(_summary(standings), soft_wrap=True)
    if errors:  # told in full when they happened
        console.print(f"forfeited or lost on time: {len(errors)} games")
    console.print(f"Report: {folder / 'report.html'}", markup=False, soft_wrap=True)
