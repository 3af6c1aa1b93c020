"""``crownhead reproduce popic``: self-play as in Popič, Bošković and Brest 2021, beside that of this project.

There is a training with the settings of each, then games of its last version against all earlier ones. All figures of
the report are read from the folder, so an interrupted reproduction has a report, too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.claims import claimed
from engine.console import progress_console
from engine.game import ENGLISH, check_game
from engine.players.spec import NetworkSpec, PlayerSpec
from learner.network import ResidualConfig
from learner.report import Figure, make_writable_folder
from selfplay.games.openings import make_openings
from selfplay.matches.commands import open_pool, settings_of
from selfplay.matches.ladder import LadderPlayer, LadderResults, Standings
from selfplay.matches.ladder_commands import play_missing, results_table
from selfplay.matches.tasks import Pairing
from selfplay.rating.elo import Tally
from selfplay.run.config import RunConfig, config_from, make_config
from selfplay.run.figures import ratings_image
from selfplay.run.folder import RunState

from .experiment import (
    Experiment,
    Measure,
    ReproduceError,
    Row,
    chosen_experiments,
    print_experiments,
    report_experiments,
)
from .runs import RESULTS, Version, check_run, played_games, read_run, tally_figures, train_run, unfinished
from .settings import POPIC

PUBLISHED = {
    "v0": (32, 13, 5),
    "v1": (27, 18, 5),
    "v2": (26, 19, 5),
    "v3": (33, 10, 7),
    "v4": (29, 17, 4),
    "v5": (26, 13, 11),
    "v6": (18, 16, 16),
    "v7": (11, 20, 19),
    "v8": (14, 14, 22),
    "v9": (17, 16, 17),
}
"""Published (table 2): wins, draws, losses of the last version, v9, in 50 games against each version, also itself."""
_POPIC_HOURS = 14 * 24  # "about two weeks"
SYSTEMS: dict[str, Callable[..., RunConfig]] = {"popic": partial(config_from, "popic", POPIC), "own": make_config}
"""Experiment → function that makes its configuration from settings and top-level fields."""
_NAMES = {"popic": "published settings", "own": "this project's settings"}
_OPENINGS = "ballots"
_OVERTIME = 1.1  # times the minutes: a longer training is mentioned in the report
_TITLE = "Popič, Bošković and Brest 2021, “Deep Learning and the Game of Checkers”, done again"
_INTRODUCTION = (
    "A network learns checkers from its own games; each version that passes the gate becomes the best. The last "
    "version plays all earlier ones. Published figures are shown beside those measured here, with the published "
    "settings and with this project's own in the same time."
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
    """A training, by its name in ``SYSTEMS``, and the games of its last version against the others."""

    name: str
    config: RunConfig
    out: Path
    games: int

    @property
    def run(self) -> Path:
        return self.out / self.name

    @property
    def _results_path(self) -> Path:
        return self.out / f"{self.name}-games.json"

    def _results(self) -> LadderResults:
        simulations, seed = self.config.match_search.num_simulations, self.config.seed
        settings = {"simulations": simulations, "openings": _OPENINGS, "seed": seed}
        return LadderResults(self._results_path, settings)

    def play(self, quiet: bool) -> list[str]:
        """Plays the missing games; returns error messages of games that were forfeited."""
        versions = read_run(self.run)[1]
        if len(versions) == 1:
            return []
        simulations, seed = self.config.match_search.num_simulations, self.config.seed

        def pairing(player_a: PlayerSpec, player_b: PlayerSpec) -> Pairing:
            return Pairing(player_a, player_b, seed=seed, plain=True)

        specs = [NetworkSpec(str(version.checkpoint), "off", simulations) for version in versions]
        players = [
            LadderPlayer(version.name, spec, settings_of(spec, pairing(spec, spec).conditions), True)
            for version, spec in zip(versions, specs, strict=True)
        ]
        pairings = {(players[-1], player): pairing(specs[-1], player.spec) for player in players[:-1]}
        openings = make_openings(_OPENINGS, (self.games + 1) // 2, seed)
        pool = open_pool(None, None, None, self.games * len(pairings))
        with claimed(self._results_path):
            return play_missing(pairings, openings, self.games, pool, self._results(), quiet)

    def found(self) -> "_Found":
        state, versions = read_run(self.run)
        results, last = self._results(), versions[-1].name if versions else ""
        tallies = {version.name: results.tally(last, version.name, self.games) for version in versions[:-1]}
        games = played_games(self.run) if versions else 0
        return _Found(self, state, versions, {name: tally for name, tally in tallies.items() if tally.games}, games)


@dataclass(frozen=True)
class _Found:
    """Figures of a system so far: of self-play, and of the last version's games against earlier ones."""

    system: _System
    state: RunState
    versions: Sequence[Version]
    tallies: dict[str, Tally]
    games: int

    @property
    def last(self) -> str:
        return self.versions[-1].name

    def standings(self) -> Standings:
        """Ratings of the versions that have played; the last version, the opponent of all, comes first and has 0."""
        names = [self.last, *(version.name for version in self.versions if version.name in self.tallies)]
        players = [LadderPlayer(name, NetworkSpec(name), "", True) for name in names]
        return Standings.of(players, {(self.last, name): tally for name, tally in self.tallies.items()})

    def experiment(self) -> Experiment:
        """Results of the last version against all earlier ones."""
        name = self.system.name
        published = {version: Tally.of_games(*wdl) for version, wdl in PUBLISHED.items()} if name == "popic" else {}
        rows = [
            Row(version, tally_figures(published.get(version)), tally_figures(self.tallies.get(version)))
            for version in dict.fromkeys([*published, *(version.name for version in self.versions[:-1])])
        ]
        theirs = "Published (table 2): games of version 9, won, drawn, lost"
        tables = [results_table(theirs, [(version, *wdl) for version, wdl in PUBLISHED.items()])]
        figures = []
        if self.tallies:
            standings, ours = self.standings(), f"Measured: games of {self.last}, won, drawn, lost"
            tables.append(results_table(ours, list(standings.against(self.last))))
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
        config, versions = self.system.config, len(self.versions)
        none = "No version has passed the gate yet, so there is nothing to compare: give more --minutes."
        played, wanted = sum(tally.games for tally in self.tallies.values()), self.system.games * max(0, versions - 1)
        notes = unfinished(self.state, versions, config, none, played, wanted)
        limit = config.loop.minutes
        if limit is not None and self.state.minutes > _OVERTIME * limit:
            notes.append(f"The last gate's games took the training from {limit:g} minutes to {self.state.minutes:.1f}.")
        return notes

    def row(self) -> Row:
        """Results of the last version against the first, with the size of the training."""
        size = {"versions": len(self.versions) - 1, "games": self.games, "hours": self.state.minutes / 60}
        measured = tally_figures(self.tallies.get("v0")) | size
        published = tally_figures(Tally.of_games(*PUBLISHED["v0"])) | {
            "versions": len(PUBLISHED) - 1,
            "hours": _POPIC_HOURS,
        }
        return Row(f"{_NAMES[self.system.name]}, {self.last} v v0 (published: v9 v v0)", published, measured)

    def verdict(self) -> str:
        """A sentence on whether the last version beats the first by more than was published."""
        name, first = _NAMES[self.system.name], self.tallies.get("v0")
        if first is None:
            return f"With {name} there is no game of a promoted version against the first yet."
        elo, published = first.elo_diff(), Tally.of_games(*PUBLISHED["v0"]).elo_diff()
        more = elo.score > published.score
        error = math.hypot(elo.elo_error, published.elo_error)  # the published games are as few
        verdict = "more" if elo.elo - published.elo > error else "more, but within the error,"
        wins, draws, losses = PUBLISHED["v0"]
        said = (
            f"With {name} the games of {self.last} v v0 end {first.wins}–{first.draws}–{first.losses} "
            f"({100 * elo.score:.1f} %, Elo {elo.elo:+.0f} ± {elo.elo_error:.0f}), {verdict if more else 'no more'} "
            f"than the published {wins}–{draws}–{losses} ({100 * published.score:.1f} %, Elo {published.elo:+.0f})."
        )
        if more:
            return said
        return f"{said} It has had {self.state.minutes:.0f} minutes, where the paper had about two weeks."


def _first_and_last(found: Sequence[_Found]) -> Experiment:
    begun = [system for system in found if system.versions]
    question = "Does the last version beat random weights by more than was published, in a fraction of the time?"
    rows, verdicts = [system.row() for system in begun], [system.verdict() for system in begun]
    return Experiment(
        "first", "Last version against the first", question, (*RESULTS, *_SIZE), rows, figures=[], notes=verdicts
    )


def popic_command(
    experiment: str | None, minutes: float, games: int, seed: int, out: Path, quiet: bool, settings: Sequence[str] = ()
) -> dict[str, Any]:
    """Trains and plays as Popič, Bošković and Brest 2021 did; see ``crownhead reproduce popic --help``.

    Args:
        experiment: a name in ``SYSTEMS``; None for both, each with half of the minutes.
        settings: ``key=value`` texts that change both presets, for tests.

    Returns:
        ``first`` and name of each system → ``Experiment.to_json``.

    Raises:
        ValueError: the experiment is unknown, a number is out of range, the folder has runs with other settings, or
            this process plays another game.
        KeyboardInterrupt: Ctrl-C; runs and games are saved, and the report shows them.
    """
    check_game("the paper", ENGLISH)  # its games begin with ballots
    names = chosen_experiments(experiment, SYSTEMS, minutes, out, _TITLE)
    if games < 2:
        raise ReproduceError(f"--games {games}: a pairing has at least 2 games")
    each = minutes / len(names)
    systems = [
        _System(name, SYSTEMS[name](settings=[*settings, f"loop.minutes={each}"], seed=seed), out, games)
        for name in names
    ]
    for system in systems:
        check_run(system.run, system.config)  # before any training, to find errors early
    make_writable_folder(out)
    console = progress_console(quiet)
    errors: list[str] = []
    try:
        for system in systems:
            console.print(f"{_NAMES[system.name]}: training of {each:g} minutes", highlight=False)
            train_run(system.run, system.config, quiet)
            _write(systems, minutes)  # so that a kill during the games leaves a report
            console.print(f"{_NAMES[system.name]}: games of the last version", highlight=False)
            errors += system.play(quiet)
            _write(systems, minutes)
    except KeyboardInterrupt as error:
        page, _ = _write(systems, minutes)
        text = f"runs and games are saved in {out}, and {page} shows them; the same command goes on"
        raise KeyboardInterrupt(text) from error
    for line in errors:
        console.print(line, soft_wrap=True)
    return print_experiments(*_write(systems, minutes), quiet)


def _write(systems: Sequence[_System], minutes: float) -> tuple[Path, list[Experiment]]:
    """Writes the report of all results so far; returns the path of its page, and its experiments."""
    found, first = [system.found() for system in systems], systems[0]
    experiments = [_first_and_last(found), *(system.experiment() for system in found)]
    facts: dict[str, str | int | float] = {
        "minutes of training": minutes,
        "games of each pairing": first.games,
        "seed": first.config.seed,
        **{f"network, {_NAMES[system.name]}": _network(system.config) for system in systems},
    }
    return report_experiments(first.out, _TITLE, _INTRODUCTION, facts, experiments), experiments


def _network(config: RunConfig) -> str:
    network, simulations = config.network, f"PUCT, {config.search.num_simulations} simulations"
    if not isinstance(network, ResidualConfig):
        return f"{network.size}; {simulations}"
    kernel, board = f"{network.kernel_size}×{network.kernel_size}", network.board.replace("x", "×")
    return f"{network.size}, {kernel}, {board}, {network.activation}; {simulations}"
