"""``crownhead reproduce maddocks``: an agent trained by self-play plays against UCT with random roll-outs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.claims import claimed
from engine.console import progress_console
from engine.game import ENGLISH, check_game
from engine.players.simple import make_simple_player
from engine.players.spec import NetworkSpec, RolloutSpec
from learner.report import Figure, make_writable_folder
from selfplay.games.openings import make_openings
from selfplay.matches.commands import open_pool, settings_of
from selfplay.matches.ladder import LadderPlayer, LadderResults
from selfplay.matches.ladder_commands import play_missing
from selfplay.matches.tasks import Pairing
from selfplay.rating.elo import Tally, fit_elo
from selfplay.run.config import RunConfig, config_from
from selfplay.run.figures import ratings_image

from .command_line import MaddocksRequest
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
from .settings import MADDOCKS

_TITLE = "Maddocks, “Playing checkers using reinforcement learning”, done again"
_INTRODUCTION = (
    "An agent learns from its own games with the settings that the report makes adjustable, and plays against tree "
    "search with random roll-outs, which has as many searches per move. Published figures are not known."
)
_MATCH_NOTES = (
    "As in the report: an iteration is a number of games of self-play, of epochs of training, and of games of "
    "comparison in which the new network must reach the replacement threshold; the search is PUCT with a network, its "
    "opponent UCT with random roll-outs.",
    "Otherwise: a game is drawn after 80 plies without a capture or a move of a man, by repetition, and in self-play "
    "after 240 plies, not after 40 moves without a capture or at one piece each; an epoch is as many samples as are "
    "new, drawn from a window of 60,000 that grows; the policy is a logit for every legal move, not 8×8×8; PyTorch "
    "with AdamW takes the place of the library written for it. The exploration constant is the agent's (PUCT); the "
    "roll-outs' is √2 (UCB1).",
    "The games start from three-move ballots, each with colours swapped; the agent has no endgame tables.",
)


def _config(request: MaddocksRequest, settings: Sequence[str]) -> RunConfig:
    """Configuration of the agent's run; raises ``ConfigError``, which names the first bad setting."""
    chosen = {
        "loop.games_per_iteration": request.selfplay_games,
        "gate.max_games": request.comparison_games,
        "search.num_simulations": request.searches,
        "match_search.num_simulations": request.searches,
        "search.c_puct": request.exploration,
        "match_search.c_puct": request.exploration,
        "gate.score_threshold": request.threshold,
        "loop.reuse": request.epochs,
        "loop.max_iterations": request.iterations,
        "loop.minutes": request.minutes,
    }
    texts = [f"{key}={value}" for key, value in chosen.items()]
    return config_from("maddocks", MADDOCKS, [*settings, *texts], seed=request.seed)


class _MatchStudy:
    """The agent and its games against roll-out MCTS."""

    def __init__(self, config: RunConfig, out: Path, games: int) -> None:
        self.config, self.run, self.games = config, out / "run", games
        self._results_path = out / "games.json"
        self._rollout = RolloutSpec(config.search.num_simulations)
        self.opponent = self._rollout.text
        make_simple_player(self._rollout)  # raises before the training if it cannot be made

    def _results(self) -> LadderResults:
        settings = {"simulations": self.config.match_search.num_simulations, "openings": "ballots"}
        return LadderResults(self._results_path, {**settings, "seed": self.config.seed})

    def _tallies(self, versions: Sequence[Version]) -> dict[str, Tally]:
        """Version → its results so far; without those that have not played."""
        results = self._results()
        tallies = {version.name: results.tally(version.name, self.opponent, self.games) for version in versions}
        return {name: tally for name, tally in tallies.items() if tally.games}

    def versions(self) -> list[Version]:
        """The first and the last version; one if they are the same, none before the run has begun."""
        _, versions = read_run(self.run)
        return list(dict.fromkeys([*versions[:1], *versions[-1:]]))

    def play(self, quiet: bool) -> list[str]:
        """Plays the missing games of the first version (random weights) and of the last one.

        Returns error messages of games that were forfeited.
        """
        search, seed = self.config.match_search, self.config.seed

        def player(name: str, spec: NetworkSpec | RolloutSpec) -> LadderPlayer:
            conditions = Pairing(spec, self._rollout, seed=seed, plain=True).conditions
            return LadderPlayer(name, spec, settings_of(spec, conditions), isinstance(spec, NetworkSpec))

        opponent, pairings = player(self.opponent, self._rollout), {}
        for version in self.versions():
            settings = (("c_puct", str(search.c_puct)),)
            spec = NetworkSpec(str(version.checkpoint), "off", search.num_simulations, settings=settings)
            pairings[player(version.name, spec), opponent] = Pairing(spec, self._rollout, seed=seed, plain=True)
        openings = make_openings("ballots", (self.games + 1) // 2, seed)
        pool = open_pool(None, None, None, self.games * len(pairings))
        with claimed(self._results_path):
            return play_missing(pairings, openings, self.games, pool, self._results(), quiet)

    def experiment(self) -> Experiment:
        versions, rows = self.versions(), []
        tallies = self._tallies(versions)
        for version in versions:
            name = "random weights (v0)" if version.name == "v0" else f"agent ({version.name})"
            figures = {"minutes": version.minutes, **tally_figures(tallies.get(version.name))}
            rows.append(Row(f"{name} v {self.opponent}", measured=figures))
        return Experiment(
            "match",
            "The agent against tree search with random roll-outs",
            "Is the trained agent stronger than roll-out MCTS with as many searches per move?",
            (*RESULTS, Measure("minutes", "minutes of training", "number")),
            rows,
            self._drawn(versions, tallies),
            [*self._notes(tallies, self.games * len(versions)), *_MATCH_NOTES],
        )

    def _notes(self, tallies: Mapping[str, Tally], wanted: int) -> list[str]:
        """Notes on what is missing and on the results; ``wanted`` is the number of all games."""
        state, versions = read_run(self.run)
        none = "No network has passed the comparison yet: the agent plays with its random weights."
        played = sum(tally.games for tally in tallies.values())
        notes = unfinished(state, len(versions), self.config, none, played, wanted)
        for name, tally in tallies.items():
            elo = tally.elo_diff()
            notes.append(f"{name} is {elo.elo:+.0f} ± {elo.elo_error:.0f} Elo against {self.opponent}.")
        if versions:
            notes.append(
                f"The run: {state.iteration} iterations, {played_games(self.run)} games of self-play, "
                f"{len(versions) - 1} replacements in {state.minutes:.1f} minutes."
            )
        return notes

    def _drawn(self, versions: Sequence[Version], tallies: Mapping[str, Tally]) -> list[Figure]:
        minutes = {version.name: version.minutes for version in versions}
        results = [(name, self.opponent, tally) for name, tally in tallies.items()]
        if not results:
            return []
        table = fit_elo(results, {self.opponent: 0.0}).table
        title = f"the agent before and after {played_games(self.run):,} games of self-play"
        image = ratings_image(table, self.opponent, minutes, title, "agent")
        return [Figure("match", image, f"Elo against {self.opponent}, which has as many searches per move.")]


def maddocks_command(request: MaddocksRequest, quiet: bool, settings: Sequence[str] = ()) -> dict[str, Any]:
    """Trains and measures as Maddocks did; see ``crownhead reproduce maddocks --help``.

    Args:
        settings: ``key=value`` texts that change the preset, for tests.

    Returns:
        ``match`` → ``Experiment.to_json``.

    Raises:
        ValueError: a number is out of range, the folder holds another run, or this process plays another game.
        KeyboardInterrupt: Ctrl-C; the run is saved, and the report shows the results so far.
    """
    check_game("the paper", ENGLISH)  # its games begin with ballots
    out, games = request.out, request.games
    chosen_experiments(None, ("match",), request.minutes, out, _TITLE)  # checks minutes and folder
    if games < 1:
        raise ReproduceError(f"--games {games}: a match has at least 1 game")
    study = _MatchStudy(_config(request, settings), out, games)
    check_run(study.run, study.config)  # before its report is replaced
    make_writable_folder(out)
    facts = {name.replace("_", " "): value for name, value in asdict(request).items() if name != "out"}
    facts["games of each match"] = facts.pop("games")

    def write() -> tuple[Path, list[Experiment]]:
        """Writes the report of all results so far; returns the path of its page, and its experiments."""
        experiments = [study.experiment()]
        return report_experiments(out, _TITLE, _INTRODUCTION, facts, experiments), experiments

    try:
        train_run(study.run, study.config, quiet)
        write()  # so that a kill during the games leaves a report
        errors = study.play(quiet)
    except KeyboardInterrupt as error:
        page, _ = write()
        text = f"run and games are saved in {out}, and {page} shows them; the same command goes on"
        raise KeyboardInterrupt(text) from error
    for line in errors:
        progress_console(quiet).print(line, soft_wrap=True)
    return print_experiments(*write(), quiet)
