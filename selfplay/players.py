"""Players by their text on the command line, networks included."""

import os
import secrets
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from engine.players import parse_player
from engine.players.base import Player, PlayerError, check_range
from engine.players.network_text import CHAMPION, NetworkText, why_no_network
from engine.players.pondering import PonderingPlayer
from engine.players.search_player import MAX_SIMULATIONS, SearchPlayer
from engine.search import BOARD_SEARCH, CachedEvaluator, SearchConfig
from learner.checkpoint import INFO_FILE, WEIGHTS_FILE, Checkpoint, load_checkpoint
from learner.inference import BackendError, NetworkEvaluator, WideEvaluator, make_evaluator
from learner.network import Network
from learner.student import has_student, load_student

from .knowledge import leaf_oracle
from .ratings import Ratings, RatingsError
from .run_folder import RunError, RunFolder
from .threads import choose_device, use_single_thread

RUNS = Path("runs")
_STUDENT_SHOT_VISITS = 32
BoardEvaluator = CachedEvaluator | NetworkEvaluator
DEFAULT_SIMULATIONS = 64  # per move, where nobody says how many or how long


def checkpoint_folder(path: str | os.PathLike[str]) -> Path:
    """The checkpoint that a path names: a checkpoint's folder, a run's (its best), or ``champion``.

    Raises:
        PlayerError: neither.
        RunError: the run's state cannot be read.
    """
    folder = Path(path)
    if (folder / INFO_FILE).is_file():
        return folder
    run = RunFolder(folder)
    if run.config_path.is_file():
        return run.best_checkpoint
    if str(path) == CHAMPION:
        return _champion_folder()
    if (folder / WEIGHTS_FILE).is_file():
        raise PlayerError(f"{folder}: no whole checkpoint, {INFO_FILE} is missing; copy the folder anew")
    raise PlayerError(why_no_network(str(path)))


def _champion_folder() -> Path:
    try:
        folder = Path(str(files("checkpoints"))) / CHAMPION
    except ModuleNotFoundError:
        folder = Path(CHAMPION)
    if not (folder / INFO_FILE).is_file():
        raise PlayerError("no network comes with this installation: name the folder of one, or train one")
    return folder


class RatedNetwork(NamedTuple):
    """A promoted network of a run, with its Elo and half of the 95 % interval where it has been rated."""

    run: str
    folder: Path
    elo: float | None
    error: float | None


def rated_networks(runs: Path = RUNS) -> list[RatedNetwork]:
    """The promoted networks of all runs in a folder; runs that cannot be read are left out."""
    networks = []
    for config in sorted(runs.glob("*/config.json")):
        run = RunFolder(config.parent)
        try:
            promoted = [promotion.checkpoint for promotion in run.read_state().promotions]
            ratings = {line.player: line for line in Ratings(run.elo_path).table()}
        except (RunError, RatingsError):
            continue
        for name in promoted:
            line = ratings.get(name)
            elo, error = (line.rating, line.error) if line else (None, None)
            networks.append(RatedNetwork(run.path.name, run.checkpoint(name), elo, error))
    return networks


def network_folder(text: str | None) -> Path | None:
    """The folder of a network or an oracle that ``--net`` names: a run's is that of its best network.

    ``best`` is the best network of the run in ``runs/`` worked on last, ``champion`` the one that comes with the
    program; other folders and None stay as they are.

    Raises:
        PlayerError: ``best``, but there is no run, or ``champion``, but there is none.
        RunError: the run's state cannot be read.
    """
    if text is None:
        return None
    folder = Path(text)
    if text == "best" and not folder.exists():
        states = sorted(RUNS.glob("*/state.json"), key=lambda path: path.stat().st_mtime)
        if not states:
            raise PlayerError(f"best: {RUNS}/ has no run; name the folder of a network, or train one")
        folder = states[-1].parent
    if text == CHAMPION and not folder.exists():
        return _champion_folder()
    run = RunFolder(folder)
    is_run = run.config_path.is_file() and not (folder / INFO_FILE).is_file()  # a measured network has a config, too
    return run.best_checkpoint if is_run else folder


def network_player(
    network: Network,
    name: str,
    config: SearchConfig,
    seconds: float | None = None,
    device: str = "auto",
    explore: bool = False,
    seed: int = 0,
    backend: str = "auto",
) -> SearchPlayer:
    """A player that searches with a network, and with what ``config.oracle`` names; see ``SearchPlayer``.

    Args:
        backend: of its evaluator, see ``learner.inference.make_evaluator``.

    Raises:
        BackendError: no such backend, or it cannot compute this network.
        TableFileError: a table in the default folder is damaged or foreign.
    """
    evaluator = remembering(make_evaluator(network, backend, choose_device(device)))
    config = search_with(evaluator, config)
    return SearchPlayer(name, evaluator, config, seconds, leaf_oracle(config), explore, seed)


def remembering(evaluator: NetworkEvaluator) -> BoardEvaluator:
    """With a memory, unless to judge a position again takes less time than to look it up."""
    return evaluator if isinstance(evaluator, WideEvaluator) else CachedEvaluator(evaluator)


def _together(config: SearchConfig, batch: int) -> int:
    """How many positions a call will have, with so many games side by side."""
    return batch * config.leaves_in_flight


def uses_student(folder: Path, backend: str, device: str, timed: bool) -> bool:
    """Whether the student beside a network judges in its place; see ``board_evaluator``."""
    wanted = backend == "student" or (backend == "auto" and timed and choose_device(device) == "cpu")
    return wanted and has_student(folder)


def board_evaluator(folder: Path, loaded: Checkpoint, backend: str, device: str, timed: bool) -> BoardEvaluator:
    """What judges the positions of a search at the board: a network, or the student beside it.

    With ``auto`` it is the student where time limits the search: it judges ten times as many positions in it, each a
    little worse.

    Args:
        folder: of the checkpoint ``loaded``.
        timed: time limits the search.

    Raises:
        BackendError: no such backend, it cannot compute this network, or there is no student.
        CheckpointError: the student is damaged, or another network's.
    """
    if uses_student(folder, backend, device, timed):
        found = load_student(folder)
        assert found is not None
        return make_evaluator(found.network)
    if backend == "student":
        raise BackendError(f"{folder}: there is no student beside this network; crownhead teach makes one")
    return remembering(make_evaluator(loaded.network, backend, choose_device(device)))


def search_with(evaluator: BoardEvaluator, config: SearchConfig) -> SearchConfig:
    """The search of an evaluator."""
    return student_search(config) if isinstance(evaluator, WideEvaluator) else config


def student_search(config: SearchConfig) -> SearchConfig:
    """The same for a student: it looks for shots later, because they take as long as several of its evaluations."""
    return config.model_copy(update={"shot_visits": max(config.shot_visits, _STUDENT_SHOT_VISITS)})


def checkpoint_player(
    folder: Path,
    name: str,
    config: SearchConfig,
    seconds: float | None = None,
    device: str = "auto",
    explore: bool = False,
    seed: int = 0,
    backend: str = "auto",
    timed: bool | None = None,
) -> SearchPlayer:
    """``network_player`` for the network in the folder of a checkpoint, or for the student beside it.

    Args:
        timed: see ``board_evaluator``; None: whether there are ``seconds``.

    Raises:
        CheckpointError: the checkpoint cannot be read.
        BackendError, TableFileError: see ``board_evaluator`` and ``network_player``.
    """
    loaded = load_checkpoint(folder)
    timed = seconds is not None if timed is None else timed
    evaluator = board_evaluator(folder, loaded, backend, device, timed)
    config = search_with(evaluator, config)
    return SearchPlayer(name, evaluator, config, seconds, leaf_oracle(config), explore, seed)


def board_player(
    checkpoint: str | None,
    name: str,
    config: SearchConfig,
    seconds: float | None = None,
    vary: bool = False,
    backend: str = "auto",
    ponder: bool = False,
) -> SearchPlayer | PonderingPlayer:
    """A network as an opponent at the board.

    Args:
        checkpoint: folder of a checkpoint or a run; None is the network that comes with the program.
        vary: games differ, by noise and temperature of the search.
        backend: see ``learner.inference.make_evaluator``.
        ponder: search on in the other side's time.

    Raises:
        PlayerError, CheckpointError, BackendError, TableFileError: see ``make_player``.
    """
    folder = checkpoint_folder(checkpoint or CHAMPION)
    use_single_thread()
    player = checkpoint_player(folder, name, config, seconds, explore=vary, seed=secrets.randbits(32), backend=backend)
    return PonderingPlayer(player) if ponder else player


def board_search(
    named: NetworkText, simulations: int | None = None, alone: bool = True, plain: bool = False
) -> SearchConfig:
    """``BOARD_SEARCH`` for what a network's text asks for.

    Args:
        simulations: per move, where its text does not say.
        alone: one game is played at a time, so that the leaves of its tree must fill a batch.
        plain: without what strengthens a search at the board: probabilities, shots and draws count as they are.
    """
    given = (named.simulations, simulations, DEFAULT_SIMULATIONS)
    number = next(value for value in given if value is not None)
    leaves = BOARD_SEARCH.leaves_in_flight if alone else 1
    changes = {"num_simulations": number, "oracle": named.oracle, "leaves_in_flight": leaves}
    config = (SearchConfig() if plain else BOARD_SEARCH).model_copy(update=changes)
    return config.impartial() if named.impartial else config


def make_player(
    text: str,
    simulations: int | None = None,
    seconds: float | None = None,
    device: str = "auto",
    backend: str = "auto",
    batch: int = 1,
    plain: bool = False,
    timed: bool | None = None,
) -> Player:
    """The player that ``text`` names.

    Args:
        text: ``random``, ``rollout:SIMULATIONS``, ``alphabeta:DEPTH``, ``champion`` (the network that comes with the
            program), or the folder of a checkpoint or a run; behind champion and folders options may stand, see
            ``NetworkText``.
        simulations: of a network player's search per move (default 64), where its text does not say.
        seconds: per move, instead of simulations or depth, for the players that can be timed.
        backend: of a network player's evaluator, see ``learner.inference.make_evaluator``.
        batch: about the number of games side by side.
        plain: see ``board_search``.
        timed: see ``checkpoint_player``.

    Raises:
        PlayerError: no such player.
        BackendError: no such backend, or it cannot compute this network.
        CheckpointError: the checkpoint cannot be read.
        TableFileError: a table in the default folder is damaged or foreign.
    """
    player = parse_player(text, seconds)
    if player is not None:
        return player
    named = NetworkText.parse(text)
    folder = checkpoint_folder(named.folder)
    simulations = simulations if named.simulations is None else named.simulations
    check_range("number of simulations", simulations or 1, MAX_SIMULATIONS)
    config = board_search(named, simulations, alone=batch == 1, plain=plain)
    use_single_thread()
    backend = named.backend or backend
    player = checkpoint_player(folder, text, config, seconds, device, backend=backend, timed=timed)
    if not named.ponder:
        return player
    if seconds is None:
        raise PlayerError(f"{text}: pondering is for games with a time: give seconds or a clock")
    return PonderingPlayer(player)
