"""What ``crownhead reproduce popic`` does: self-play as of Popič, Bošković and Brest 2021, and this project's.

A training with each one's settings, then games of its last version against all before it. All figures of the report
are read from the folder, so one that was broken off has a report, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.console import progress_console
from engine.players.time_control import TimeControl
from learner.report import Figure, make_writable_folder
from learner.reproduce.experiment import (
    Experiment,
    Measure,
    ReproduceError,
    Row,
    chosen_experiments,
    print_experiments,
    report_experiments,
)

from ..config import RunConfig, make_config
from ..elo import Tally
from ..figures import ratings_image
from ..ladder import LadderPlayer, LadderResults, Standings
from ..ladder_commands import play_missing, results_table
from ..match_commands import choose_jobs, inspect_player, make_pairing
from ..openings import make_openings
from ..run_folder import RunState
from .published import POPIC, POPIC_HOURS, POPIC_VERSIONS
from .runs import RESULTS, Version, check_run, played_games, read_run, tally_figures, train_run, unfinished_training

SYSTEMS = {"popic": "popic", "own": "quick"}
"""Experiment → preset."""
_NAMES = {"popic": "published settings", "own": "this project's settings"}
_OPENINGS = "ballots"
_OVERTIME = 1.1  # times the minutes: what is more is told
_TITLE = "Popič, Bošković and Brest 2021, “Deep Learning and the Game of Checkers”, done again"
_INTRODUCTION = (
    "A network learns checkers from its own games; each version that passes the gate becomes the best. The last one "
    "plays all before it. Published figures stand beside those measured here, with the published settings and with "
    "this project's own in the same time."
)
_SIZE = (
    Measure("versions", "promoted versions", "count"),
    Measure("games", "games of self-play", "count"),
    Measure("hours", "hours of training", "number"),
)
_NOTES = {
    "popic": (
        "A row is the last version against that of the row, each in its own training.",
        "As published: 70 simulations, the first 25 plies drawn by visits and then the most visited move, 4×4 "
        "convolutions with 75 kernels on the 8×8 board, 5 residual blocks, leaky ReLU, batch norm, SGD with rate 0.1 "
        "and momentum 0.9, batches of 256, 50 games of self-play an iteration, a gate of 20 games at 3/1/0 and 1.3.",
        "Otherwise than published: a game is drawn after 80 plies without a capture or a move of a man, by repetition, "
        "and after 240 plies, not after 40 moves without a capture; the momentum is Nesterov's, gradients are cut off "
        "at norm 1 and weights decay by 1e-4; the value head knows win, draw and loss. Not known, so this project's: "
        "planes, heads, exploration (PUCT 1.5, Dirichlet noise of 0.25) and how often a sample is learnt from (4 "
        "times, from a window of 60,000 samples that grows). The games of an iteration are 50 on the mean: those in "
        "play when it ends are finished in the next.",
    ),
    "own": ("The preset quick with nothing changed but its time.",),
}
_GAMES_NOTE = (
    "The games start from three-move ballots, each with colours swapped, and both sides search with their network "
    "alone (no endgame tables), with the training's number of simulations, as in the gate and without noise. No "
    "version plays itself."
)


@dataclass(frozen=True)
class _System:
    """One training and the games of its last version.

    Attributes:
        name: of ``SYSTEMS``. out: the report's folder. games: of each pairing.
    """

    name: str
    config: RunConfig
    out: Path
    games: int

    @property
    def run(self) -> Path:
        return self.out / self.name

    def _results(self) -> LadderResults:
        settings = {
            "simulations": self.config.match_search.num_simulations,
            "openings": _OPENINGS,
            "seed": self.config.seed,
        }
        return LadderResults(self.out / f"{self.name}-games.json", settings)

    def play(self, quiet: bool) -> list[str]:
        """Plays the games that are missing; what went wrong in those that were forfeited."""
        versions, control = read_run(self.run)[1], TimeControl()
        if len(versions) == 1:
            return []
        simulations, seed = self.config.match_search.num_simulations, self.config.seed
        texts = [f"{version.checkpoint}@off@{simulations}" for version in versions]
        facts = [inspect_player(text, None, control, plain=True) for text in texts]
        players = [
            LadderPlayer(version.name, fact.text, fact.settings, True)
            for version, fact in zip(versions, facts, strict=True)
        ]
        pairings = {
            (players[-1], player): make_pairing((facts[-1], fact), control, None, seed, plain=True)
            for player, fact in zip(players[:-1], facts[:-1], strict=True)
        }
        openings = make_openings(_OPENINGS, (self.games + 1) // 2, seed)
        jobs = choose_jobs(None, (), control, self.games * len(pairings))
        return play_missing(pairings, openings, self.games, jobs, self._results(), quiet)

    def found(self) -> "_Found":
        state, versions = read_run(self.run)
        results, last = self._results(), versions[-1].name if versions else ""
        tallies = {version.name: results.tally(last, version.name, self.games) for version in versions[:-1]}
        games = played_games(self.run) if versions else 0
        return _Found(self, state, versions, {name: tally for name, tally in tallies.items() if tally.games}, games)


@dataclass(frozen=True)
class _Found:
    """A system's figures so far.

    Attributes:
        versions: none before the run has begun.
        tallies: of the last version against those before it, as far as they have played.
        games: of self-play.
    """

    system: _System
    state: RunState
    versions: Sequence[Version]
    tallies: dict[str, Tally]
    games: int

    @property
    def last(self) -> str:
        return self.versions[-1].name

    def standings(self) -> Standings:
        """Ratings of the versions that have played; the last one, which has played them all, comes first and has 0."""
        names = [self.last, *(version.name for version in self.versions if version.name in self.tallies)]
        players = [LadderPlayer(name, name, "", True) for name in names]
        return Standings.of_tallies(players, {(self.last, name): tally for name, tally in self.tallies.items()})

    def experiment(self) -> Experiment:
        """The last version against all before it."""
        name = self.system.name
        published = {version: _tally(*wdl) for version, wdl in POPIC.items()} if name == "popic" else {}
        rows = [
            Row(version, tally_figures(published.get(version)), tally_figures(self.tallies.get(version)))
            for version in dict.fromkeys([*published, *(version.name for version in self.versions[:-1])])
        ]
        tables = [
            results_table(
                "Published (table 2): games of version 9, won, drawn, lost", [(v, *wdl) for v, wdl in POPIC.items()]
            )
        ]
        figures = []
        if self.tallies:
            standings = self.standings()
            tables.append(
                results_table(f"Measured: games of {self.last}, won, drawn, lost", list(standings.against(self.last)))
            )
            minutes = {version.name: version.minutes for version in self.versions}
            title = f"{_NAMES[name]}: {self.games:,} games in {self.state.minutes:.0f} minutes"
            image = ratings_image(standings.fit.table, standings.players[0].name, minutes, title)
            figures.append(Figure(f"{name}-versions", image, f"Elo of the versions over minutes of training, {title}"))
        return Experiment(
            name,
            f"Last version against all before it, {_NAMES[name]}",
            "How do the last version's games against every version before it end? v0 has random weights.",
            RESULTS,
            rows,
            figures,
            [*self._unfinished(), *_NOTES[name], _GAMES_NOTE],
            tables,
        )

    def _unfinished(self) -> list[str]:
        config = self.system.config
        notes = unfinished_training(self.state, config)
        if not notes and len(self.versions) == 1:
            notes.append("No version has passed the gate yet, so there is nothing to compare: give more --minutes.")
        limit = config.loop.minutes
        if limit is not None and self.state.minutes > _OVERTIME * limit:
            notes.append(f"The last gate's games took the training from {limit:g} minutes to {self.state.minutes:.1f}.")
        wanted = self.system.games * max(0, len(self.versions) - 1)
        played = sum(tally.games for tally in self.tallies.values())
        if played < wanted:
            notes.append(f"Not finished: {played} of {wanted} games are played; the same command goes on.")
        return notes

    def row(self) -> Row:
        """The last version against the first, and what it took to get there."""
        size = {"versions": len(self.versions) - 1, "games": self.games, "hours": self.state.minutes / 60}
        measured = tally_figures(self.tallies.get("v0")) | size
        published = {**tally_figures(_tally(*POPIC["v0"])), "versions": POPIC_VERSIONS, "hours": POPIC_HOURS}
        return Row(f"{_NAMES[self.system.name]}, {self.last} v v0 (published: v9 v v0)", published, measured)

    def verdict(self) -> str:
        """Whether the last version beats the first by more than was published."""
        name, first = _NAMES[self.system.name], self.tallies.get("v0")
        if first is None:
            return f"With {name} there is no game of a promoted version against the first yet."
        elo, published = first.elo_diff(), _tally(*POPIC["v0"]).elo_diff()
        more = elo.score > published.score
        verdict = "more" if elo.elo - elo.elo_error > published.elo else "more, but within the error,"
        wins, draws, losses = POPIC["v0"]
        said = (
            f"With {name} the games of {self.last} v v0 end {first.wins}–{first.draws}–{first.losses} "
            f"({100 * elo.score:.1f} %, Elo {elo.elo:+.0f} ± {elo.elo_error:.0f}), {verdict if more else 'no more'} "
            f"than the published {wins}–{draws}–{losses} ({100 * published.score:.1f} %, Elo {published.elo:+.0f})."
        )
        if more:
            return said
        return f"{said} It has had {self.state.minutes:.0f} minutes, where the paper had about two weeks."


def _tally(wins: int, draws: int, losses: int) -> Tally:
    """Published results, of which only the sums are known."""
    return Tally(singles=[losses, draws, wins], wins=wins, draws=draws, losses=losses)


def _first_and_last(found: Sequence[_Found]) -> Experiment:
    begun = [system for system in found if system.versions]
    return Experiment(
        "first",
        "Last version against the first",
        "Does the last version beat random weights by more than was published, in a fraction of the time?",
        (*RESULTS, *_SIZE),
        [system.row() for system in begun],
        [],
        [system.verdict() for system in begun],
    )


def popic_command(
    experiment: str | None, minutes: float, games: int, seed: int, out: Path, quiet: bool, settings: Sequence[str] = ()
) -> dict[str, Any]:
    """Trains and plays as Popič, Bošković and Brest 2021 did; see ``crownhead reproduce popic --help``.

    Args:
        experiment: of ``SYSTEMS``; None for both, which then share the minutes.
        minutes: of all trainings, those done before in this folder included. Games come on top.
        games: of the last version against each one before it, 2 or more.
        out: gets the runs (``popic``, ``own``), the games, and the report. Given again, everything goes on.
        settings: ``key=value``, changed in both presets: for tests.

    Returns:
        For ``first`` and each system, by name, ``Experiment.to_json``.

    Raises:
        ValueError: an unknown experiment, bad numbers, or a folder with other settings.
        StorageError: something cannot be written.
        KeyboardInterrupt: runs and games are saved, and the report shows them.
    """
    names = chosen_experiments(experiment, SYSTEMS, minutes, out, _TITLE)
    if games < 2:
        raise ReproduceError(f"--games {games}: a pairing has 2 games at least")
    each = minutes / len(names)
    systems = [
        _System(name, make_config(SYSTEMS[name], [*settings, f"loop.minutes={each}"], seed=seed), out, games)
        for name in names
    ]
    for system in systems:
        check_run(system.run, system.config)  # now, not after the training of another one
    make_writable_folder(out)
    console = progress_console(quiet)
    errors: list[str] = []
    try:
        for system in systems:
            console.print(f"{_NAMES[system.name]}: training of {each:g} minutes", highlight=False)
            train_run(system.run, system.config, quiet)
            _write(systems, minutes)  # a kill from now on leaves it
            console.print(f"{_NAMES[system.name]}: games of the last version", highlight=False)
            errors += system.play(quiet)
            _write(systems, minutes)
    except KeyboardInterrupt as error:
        page, _ = _write(systems, minutes)
        text = f"runs and games are saved in {out}, and {page} shows them; the same command goes on"
        raise KeyboardInterrupt(text) from error
    for line in errors:
        console.print(line, markup=False, soft_wrap=True)
    return print_experiments(*_write(systems, minutes), quiet)


def _write(systems: Sequence[_System], minutes: float) -> tuple[Path, list[Experiment]]:
    """The report of all that is there; its page and its parts."""
    found = [system.found() for system in systems]
    experiments = [_first_and_last(found), *(system.experiment() for system in found)]
    first = systems[0]
    facts: dict[str, str | int | float] = {
        "minutes of training": minutes,
        "games of each pairing": first.games,
        "seed": first.config.seed,
        **{f"network, {_NAMES[system.name]}": _network(system.config) for system in systems},
    }
    return report_experiments(first.out, _TITLE, _INTRODUCTION, facts, experiments), experiments


def _network(config: RunConfig) -> str:
    network, search = config.network, config.search
    return (
        f"{network.blocks} blocks of {network.channels} channels, {network.kernel_size}×{network.kernel_size}, "
        f"{network.board.replace('x', '×')}, {network.activation}; PUCT, {search.num_simulations} simulations"
    )
