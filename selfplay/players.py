"""Makes players from their specifications, networks included, and finds the folders of networks."""

import os
from pathlib import Path
from typing import NamedTuple

from engine.files import StorageError
from engine.game import check_game
from engine.players.alphabeta import MAX_DEPTH, AlphaBetaPlayer
from engine.players.base import Player, PlayerError
from engine.players.first_search import search_is_compiled
from engine.players.levels import Level, LevelPlayer
from engine.players.pondering import PonderingPlayer
from engine.players.search_player import SearchPlayer
from engine.players.simple import make_simple_player
from engine.players.spec import CHAMPION, DEFAULT_NODES, NetworkSpec, PlayerSpec, why_no_network
from engine.search import BOARD_SEARCH, SearchConfig
from learner.checkpoint import INFO_FILE, WEIGHTS_FILE, CheckpointInfo, load_checkpoint, read_info, whole_folder
from learner.inference import BackendError, NetworkEvaluator, make_evaluator
from learner.inference.wide_alphabeta import WideNodeSearch
from learner.network import Network, WideConfig, maker_of
from learner.shipped import CHAMPION_FOLDER, shipped_weights
from learner.student import has_student, load_student, read_student_info
from learner.wide import SHOT_VISITS, WideNetwork

from .conditions import USUAL, Conditions
from .knowledge import leaf_oracle, shared_tablebase
from .machines.threads import choose_device, use_single_thread
from .rating.ratings import Ratings, RatingsError
from .run.folder import RunError, RunFolder

RUNS = Path("runs")
_RECORDED = "policy_temperature", "shot_prior", "draw_value", "contempt_lead", "transpositions"
DEFAULT_SIMULATIONS = 64  # per move, if neither a number nor a time is given


def checkpoint_folder(path: str | os.PathLike[str]) -> Path:
    """The folder of the checkpoint that ``path`` names: itself, the best one of a run, or that of ``champion``.

    Raises ``PlayerError`` if there is no checkpoint, ``RunError`` if the run's state cannot be read.
    """
    folder = Path(path)
    if (whole_folder(folder) / INFO_FILE).is_file():
        return folder
    run = RunFolder(folder)
    if run.config_path.is_file():
        return run.best_checkpoint
    if str(path) == CHAMPION:
        return _champion_folder()
    if (folder / WEIGHTS_FILE).is_file():
        raise PlayerError(f"{folder} is an incomplete checkpoint without {INFO_FILE}: copy the folder again")
    raise PlayerError(why_no_network(str(path)))


def _champion_folder() -> Path:
    try:
        folder = shipped_weights() / CHAMPION_FOLDER
    except ModuleNotFoundError:
        folder = Path(CHAMPION)
    if not (folder / INFO_FILE).is_file():
        raise PlayerError("no network comes with this installation: name the folder of one, or train one")
    return folder


class RatedNetwork(NamedTuple):
    """A promoted network of a run, with its Elo and half of the 95 % interval; None if it has not been rated."""

    run: str
    folder: Path
    elo: float | None
    error: float | None


def rated_networks() -> list[RatedNetwork]:
    """The promoted networks of all runs in ``RUNS``; unreadable runs are skipped."""
    networks = []
    for config in sorted(RUNS.glob("*/config.json")):
        run = RunFolder(config.parent)
        try:
            promoted = [promotion.checkpoint for promotion in run.read_state().promotions]
            ratings = {line.player: line for line in Ratings(run.elo_path).table()}
        except (RunError, RatingsError, StorageError):
            continue
        for name in promoted:
            line = ratings.get(name)
            elo, error = (line.rating, line.error) if line else (None, None)
            networks.append(RatedNetwork(run.path.name, run.checkpoint(name), elo, error))
    return networks


def network_folder(text: str | None) -> Path | None:
    """The folder of the network or oracle that ``--net`` names.

    The folder of a run becomes that of its best network. ``best`` is the best network of the latest run in ``runs/``,
    ``champion`` the network that comes with the program. Other folders and None are returned unchanged.

    Raises:
        PlayerError, RunError: there is no such run or network, or the run's state cannot be read.
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
    is_run = run.config_path.is_file() and not (folder / INFO_FILE).is_file()  # measured networks have a config, too
    return run.best_checkpoint if is_run else folder


def evaluator_player(
    name: str, evaluator: NetworkEvaluator, search: SearchConfig, conditions: Conditions = USUAL
) -> SearchPlayer:
    """A player that searches with an evaluator; of the conditions time, exploration and seed count."""
    oracle = leaf_oracle(search)
    return SearchPlayer(name, evaluator, search, conditions.seconds, oracle, conditions.explore, conditions.seed)


def make_player(spec: PlayerSpec, conditions: Conditions = USUAL) -> Player:
    """Makes the player of a specification. For a network, torch is set to one thread.

    With the backend ``auto`` on a CPU, the student of a network plays where time limits the search: it judges ten times
    as many positions in this time, each a little worse.

    Raises:
        PlayerError: there is no such player, or it is asked to ponder in games without a time limit.
        BackendError: there is no such backend, it cannot compute this network, or there is no student.
        CheckpointError: the checkpoint cannot be read, or the student is damaged or belongs to another network.
        TableFileError: a table in the default folder is damaged or not one of this program.
    """
    if not isinstance(spec, NetworkSpec):
        return make_simple_player(spec, conditions.seconds, conditions.seed)
    _check(spec, conditions)
    folder = checkpoint_folder(spec.folder)
    use_single_thread()
    if spec.level is not None:
        return _level_player(spec.level, folder, conditions)
    search, backend = search_of(spec, conditions), spec.backend or conditions.backend
    student = load_student(folder) if _student_plays(spec, conditions) else None
    if spec.alphabeta:
        network = student.network if student else load_checkpoint(folder).network
        return _alphabeta_player(spec, network, conditions)
    if student is not None:
        evaluator = make_evaluator(student.network)
    else:
        evaluator = make_evaluator(load_checkpoint(folder).network, backend, choose_device(conditions.device))
    player = evaluator_player(spec.text, evaluator, search, conditions)
    if conditions.is_timed and search_is_compiled():
        player.prepare()
    return PonderingPlayer(player) if spec.ponder else player


def _check(spec: NetworkSpec, conditions: Conditions) -> None:
    """Raises, without loading the network, what is wrong with a player under these conditions."""
    if spec.ponder and conditions.seconds is None and conditions.search is None:
        raise PlayerError(f"{spec.text}: pondering is for games with a time limit: give seconds or a clock")
    if not conditions.explore:
        spec.check_steady()
    folder = checkpoint_folder(spec.folder)
    if spec.alphabeta and maker_of(network := _info(spec, conditions).network) is not WideNetwork:
        raise BackendError(f"{spec.text}: alpha-beta is for wide networks, and this one is {network.family}")
    wants_student = not spec.alphabeta and (spec.backend or conditions.backend) == "student"
    if wants_student and not has_student(folder):
        raise BackendError(
            f"{folder}: there is no student beside this network; train with --set student.network=wide512"
        )


def _level_player(level: Level, folder: Path, conditions: Conditions) -> LevelPlayer:
    student = load_student(folder)
    if student is None:
        raise BackendError(f"{folder}: there is no student beside this network, which levels play with")
    evaluator = make_evaluator(student.network)
    player = SearchPlayer(level.name, evaluator, level.search, explore=True, seed=conditions.seed)
    return LevelPlayer(level, player)


def _alphabeta_player(spec: NetworkSpec, network: Network, conditions: Conditions) -> AlphaBetaPlayer:
    assert isinstance(network, WideNetwork)  # see ``_check``
    oracle = shared_tablebase() if spec.oracle == "tablebase" else None
    nodes = None if conditions.is_timed else conditions.limit_of(spec.simulations, DEFAULT_NODES)
    search = WideNodeSearch(network, oracle, patient=not conditions.is_timed)
    return AlphaBetaPlayer(MAX_DEPTH, conditions.seconds, conditions.seed, search=search, nodes=nodes, name=spec.text)


def search_of(spec: NetworkSpec, conditions: Conditions) -> SearchConfig:
    """The search of a network, or of its student if that plays; raises what ``checkpoint_folder`` raises."""
    if spec.level is not None:
        return spec.level.search
    search = conditions.search
    if search is None:
        changes: dict[str, object] = {
            "num_simulations": conditions.limit_of(spec.simulations, DEFAULT_SIMULATIONS),
            "oracle": spec.oracle,
            "leaves_in_flight": BOARD_SEARCH.leaves_in_flight if conditions.batch == 1 else 1,
        }
        search = (SearchConfig() if conditions.plain else BOARD_SEARCH).model_copy(update=changes)
    if isinstance(_info(spec, conditions).network, WideConfig):
        search = search.model_copy(update={"shot_visits": max(search.shot_visits, SHOT_VISITS)})
    return spec.changed(search)


def _info(spec: NetworkSpec, conditions: Conditions) -> CheckpointInfo:
    """Information on the network that plays: that of the folder, or its student. It is of the game of this process."""
    folder = checkpoint_folder(spec.folder)
    student = read_student_info(folder) if _student_plays(spec, conditions) else None
    info = student or read_info(folder)
    check_game(str(folder), info.game)
    return info


def settings_text(spec: NetworkSpec, conditions: Conditions) -> str:
    """Settings of a network that its text leaves open, like ``simulations=64 oracle=tablebase weights=0123456789ab``.

    A resumed match or ladder keeps earlier games only if this text is the same. The network is not loaded.
    """
    _check(spec, conditions)
    folder, search = checkpoint_folder(spec.folder), search_of(spec, conditions)
    if spec.alphabeta:
        limit = f"nodes={conditions.limit_of(spec.simulations, DEFAULT_NODES)} " if conditions.seconds is None else ""
        return f"{limit}oracle={spec.oracle} weights={_info(spec, conditions).digest[:12]}"
    limit = f"simulations={search.num_simulations} " if conditions.seconds is None or spec.level else ""
    limit += f"temperature={search.temperature:g} " if spec.level else ""
    chosen = spec.backend or (conditions.backend if conditions.backend != "auto" else None)
    backend = f"backend={chosen} " if chosen else ""
    recorded = " ".join(f"{name}={getattr(search, name):g}" for name in _RECORDED)
    settings = f"{limit}{backend}oracle={spec.oracle} {recorded} weights={read_info(folder).digest[:12]}"
    plays = _info(spec, conditions)
    if isinstance(plays.network, WideConfig):
        settings += f" shot_visits={search.shot_visits}"
    return f"{settings} student={plays.digest[:12]}" if _student_plays(spec, conditions) else settings


def _student_plays(spec: NetworkSpec, conditions: Conditions) -> bool:
    """Whether the student plays in place of its network."""
    backend = spec.backend or conditions.backend
    if spec.alphabeta:
        return has_student(checkpoint_folder(spec.folder))
    automatic = backend == "auto" and conditions.is_timed and choose_device(conditions.device) == "cpu"
    return (automatic or backend == "student") and has_student(checkpoint_folder(spec.folder))
