"""``crownhead teach``: a small network for the board learns from the searches of games that the large one plays."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from engine.ballots import ballot_board, playable_ballots
from engine.board import Board
from engine.files import make_folder
from engine.players.search_player import SearchPlayer
from engine.players.spec import NetworkSpec
from engine.search import BOARD_SEARCH, Ending, Evaluator, LockstepSearch, SearchConfig
from engine.search.lockstep import MOST_STEPS
from learner.checkpoint import load_checkpoint
from learner.inference import make_evaluator
from learner.inference.student_kernels import STRIP
from learner.student import Student, StudentConfig, load_student, save_student
from learner.teaching import teach

from .conditions import Conditions
from .knowledge import leaf_oracle
from .players import checkpoint_folder, make_player
from .progress import CountProgress
from .threads import use_single_thread
from .tree_samples import SUFFIX, SampleReader, TreeSamples, offshoots, training_batch

TOGETHER = 16
"""Games side by side."""
_LEAVES = 8
_BALLOTS = 0.2  # share of the games that begin with one
_MOST_RANDOM_PLIES = 12  # that the others begin with
_FREE_PLIES, _TEMPERATURES = 10, (1.0, 0.3)  # first so many plies drawn by the visits, and then; a shares the rest
_DECIDED, _DECIDED_MOVES = 0.95, 3  # a game ends when so many searches in a row say so
_FEW_PIECES = 5, 8  # or when the tables know the rest; two games of three sooner: most samples would be endings
_LEFT_SOONER = 2 / 3
_LONGEST_GAME = 180
_GAMES_PER_FILE = 50


class TeachingError(ValueError):
    """A student cannot be taught as asked."""


def samples_of_games(
    evaluator: Evaluator, network: Evaluator, config: SearchConfig, games: int, seed: Sequence[int]
) -> Iterator[TreeSamples]:
    """The samples of so many games of self-play, game by game as they end.

    Args:
        evaluator: that searches.
        network: that says what the offshoots are worth.
        config: of the search.
        seed: numbers of which any other gives other games.
    """
    rng = np.random.default_rng(seed)
    together = min(TOGETHER, games)
    search = LockstepSearch(config, together, seed=int(rng.integers(1 << 62)), leaf_oracle=leaf_oracle(config))
    reader = SampleReader(search)
    playing: list[_Game | None] = [_begin(search, slot, rng) for slot in range(together)]
    started, left = together, games
    while left:
        search.steps(evaluator, MOST_STEPS)
        done = [slot for slot in np.flatnonzero(~search.active()).tolist() if playing[slot] is not None]
        for slot in done:
            game = playing[slot]
            assert game is not None
            game.samples.append(reader.read(slot))
            if _go_on(search, slot, game):
                continue
            samples = TreeSamples.joined(game.samples)
            yield TreeSamples.joined([samples, offshoots(samples.positions[::2], network, int(rng.integers(1 << 62)))])
            left -= 1
            playing[slot] = _begin(search, slot, rng) if started < games else None
            started += 1


@dataclass
class _Game:
    """The pieces with which it ends, plies made, searches in a row that call it decided, and its samples so far."""

    few: int
    plies: int
    decided: int
    samples: list[TreeSamples]


def _begin(search: LockstepSearch, slot: int, rng: np.random.Generator) -> _Game:
    """A game from an opening whose side to move has a choice."""
    while search.set_board(slot, _opening(rng)) is not Ending.RUNNING or search.num_legal(slot) < 2:
        pass
    search.start(slot, explore=False)
    return _Game(_FEW_PIECES[rng.random() < _LEFT_SOONER], 0, 0, [])


def _opening(rng: np.random.Generator) -> Board:
    if rng.random() < _BALLOTS:
        ballots = playable_ballots()
        return ballot_board(ballots[rng.integers(len(ballots))]).copy()
    board = Board()
    for _ in range(rng.integers(_MOST_RANDOM_PLIES + 1)):
        if board.outcome() is None:
            board.push(board.legal_moves[rng.integers(len(board.legal_moves))])
    return board


def _go_on(search: LockstepSearch, slot: int, game: _Game) -> bool:
    """Makes the move that was searched for and begins the next search; False if the game is over."""
    win, _, loss = search.result(slot).wdl
    move = search.choose(slot, _TEMPERATURES[game.plies >= _FREE_PLIES])
    plies, ending = search.play(slot, move, through_forced=True)
    game.plies += plies
    game.decided = game.decided + 1 if abs(float(win - loss)) > _DECIDED else 0
    own, opp, *_ = (int(word) for word in search.position(slot))
    few = (own | opp).bit_count() <= game.few
    if ending is not Ending.RUNNING or few or game.plies > _LONGEST_GAME or game.decided >= _DECIDED_MOVES:
        return False
    search.start(slot, explore=False)
    return True


def teach_command(
    net: str,
    folder: Path,
    games: int,
    epochs: float,
    simulations: int,
    units: int,
    seed: int,
    quiet: bool,
    anew: bool = False,
) -> dict[str, Any]:
    """Plays games, teaches a student by them, and writes it beside the network; see ``crownhead teach --help``.

    Args:
        anew: begin with random weights, even if there is a student with so many units.

    Returns:
        ``games``, ``samples`` (of all files in the folder), ``seconds``, ``steps`` (0: nothing was taught),
        ``student`` (its file, or None).

    Raises:
        TeachingError: there is nothing to teach with, or a layer of another size is wanted.
        CheckpointError: a file is damaged or cannot be written.
    """
    if units % STRIP:
        raise TeachingError(f"--units {units}: a multiple of {STRIP} is wanted")
    use_single_thread()
    begun = time.perf_counter()
    checkpoint = checkpoint_folder(net)
    loaded = load_checkpoint(checkpoint)
    make_folder(folder)
    kept: dict[Path, tuple[TreeSamples, int]] = {}
    if games:
        network = make_evaluator(loaded.network)
        conditions = Conditions(timed=True, device="cpu")
        player = make_player(NetworkSpec(str(checkpoint)), conditions)
        assert isinstance(player, SearchPlayer)
        evaluator = player.evaluator
        kept = _play(folder, evaluator, network, games, simulations, seed, quiet)
    kept |= {path: TreeSamples.load(path) for path in sorted(folder.glob(f"*{SUFFIX}")) if path not in kept}
    if not kept:
        raise TeachingError(f"{folder}: no samples there; let games be played with --games")
    parts, played = zip(*kept.values(), strict=True)
    figures: dict[str, Any] = {"games": sum(played), "samples": sum(map(len, parts))}
    steps, path = 0, None
    if epochs > 0:
        taught = None if anew else load_student(checkpoint, loaded.info.digest)
        student = taught[0] if taught and taught[0].config.units == units else Student(StudentConfig(units=units))
        steps = _teach(student, TreeSamples.joined(list(parts)), epochs, seed, quiet)
        path = save_student(checkpoint, student, loaded.info.digest, {**figures, "steps": steps, "epochs": epochs})
    figures |= {"steps": steps, "seconds": time.perf_counter() - begun, "student": None if path is None else str(path)}
    if not quiet:
        end = f"; student in {path}, {steps:,} steps" if path else ""
        Console().print(f"{figures['games']:,} games, {figures['samples']:,} samples{end}", markup=False)
    return figures


def _play(
    folder: Path, evaluator: Evaluator, network: Evaluator, games: int, simulations: int, seed: int, quiet: bool
) -> dict[Path, tuple[TreeSamples, int]]:
    """Plays games and writes their samples, some games to a file; files that are there are not played again.

    Returns:
        Samples and number of games of all these files.
    """
    config = BOARD_SEARCH.model_copy(
        update={"num_simulations": simulations, "leaves_in_flight": _LEAVES, "draw_value": 0.0, "shot_prior": 0.0}
    )
    kept: dict[Path, tuple[TreeSamples, int]] = {}
    with CountProgress("games", games, quiet) as progress:
        for first in range(0, games, _GAMES_PER_FILE):
            path, number = folder / f"{seed}-{first:06d}{SUFFIX}", min(_GAMES_PER_FILE, games - first)
            if path.is_file():
                kept[path] = TreeSamples.load(path)
            if path not in kept or kept[path][1] < number:
                parts: list[TreeSamples] = []
                for samples in samples_of_games(evaluator, network, config, number, (seed, first)):
                    parts.append(samples)
                    progress.show(first + len(parts), games)
                kept[path] = TreeSamples.joined(parts), number
                kept[path][0].save(path, number)
            progress.show(first + number, games)
    return kept


def _teach(student: Student, samples: TreeSamples, epochs: float, seed: int, quiet: bool) -> int:
    offsets = np.concatenate([[0], np.cumsum(samples.lengths, dtype=np.int64)])
    with CountProgress("steps", None, quiet) as progress:
        return teach(
            student,
            len(samples),
            lambda rows: training_batch(samples, offsets, rows),
            epochs,
            seed,
            lambda step: progress.show(step.step, step.steps, f"loss {step.loss:.3f}"),
        )
