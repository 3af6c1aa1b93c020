"""An actor: plays many games against itself in lockstep and returns the finished ones."""

import time
from dataclasses import dataclass, field

import numpy as np

from engine.board import Board, Termination
from engine.fen import Color
from engine.outcomes import DRAW, UNKNOWN, WIN
from engine.search import CompiledEvaluator, Ending, Evaluator, LockstepSearch, SearchConfig

from ..games.endgame import EndgameKnowledge, adjudicated, rescored, rescored_found, without_held_out
from ..games.forks import Forks
from ..games.openings import selfplay_opening
from ..games.records import ADJUDICATION, GameRecord, GameRecordBuilder
from ..games.tree_samples import TreeReader, offshoots
from ..matches.match import PLY_CAP
from ..run.config import SelfPlayConfig

RESIGNATION = "RESIGNATION"
_TERMINATIONS = {
    Ending.LOST: Termination.NO_MOVES.name,
    Ending.REPETITION: Termination.REPETITION.name,
    Ending.REVERSIBLE: Termination.REVERSIBLE_PLIES.name,
}


@dataclass
class PlayStats:
    """What an actor did in one call.

    Attributes:
        evaluations: positions judged by the network.
        seconds, processor_seconds: wall time, and processor time of this thread.
        resign_checks: games that were played on although one side would have resigned by the rule.
        resign_false: of these, the games that this side did not lose.
    """

    games: int = 0
    samples: int = 0
    plies: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    resign_checks: int = 0
    resign_false: int = 0


@dataclass
class _Game:
    """One game in play.

    Attributes:
        full: whether the current search is a full one, whose policy becomes a training target.
        plays_on: whether the game is played to its end, without resignation or adjudication: this gives samples of
            endgames and shows false resignations.
        below: side → number of its latest moves in a row with a value below ``resign_value``.
        would_resign: the side that would have resigned first, in a game that plays on; None if neither.
    """

    record: GameRecordBuilder
    turn: Color
    full: bool = True
    plays_on: bool = False
    below: dict[Color, int] = field(default_factory=lambda: {Color.BLACK: 0, Color.WHITE: 0})
    would_resign: Color | None = None


class Actor:
    """Plays games with an evaluator; does not depend on processes, files or training.

    Unfinished games continue in the next call of ``play``. New weights of the evaluator take effect at once.

    Args:
        seed: seed of all random numbers: the same seed and evaluator give the same games.
        network: digest of the evaluator's weights, for the records; may be changed between calls.
        knowledge: endgame knowledge for the search, adjudication and rescoring; used where the settings ask for it.

    Raises:
        ValueError: the settings ask for adjudication or rescoring, and ``knowledge`` has no table.
    """

    def __init__(
        self,
        config: SelfPlayConfig,
        search: SearchConfig,
        evaluator: Evaluator,
        seed: int,
        network: str = "",
        knowledge: EndgameKnowledge | None = None,
    ) -> None:
        self._knowledge = knowledge or EndgameKnowledge()
        if (config.adjudicate or config.rescore) and self._knowledge.table is None:
            raise ValueError("selfplay.adjudicate and selfplay.rescore need endgame tables, and there are none")
        self.config = config
        self.network = network
        self.evaluator = evaluator
        most = max(search.num_simulations, config.fast_simulations)
        oracle = self._knowledge.leaf_oracle if search.oracle != "off" else None
        self._search = LockstepSearch(search, config.games_in_lockstep, most, seed, oracle)
        self._reader = TreeReader(self._search, config.tree_samples) if config.tree_samples.most else None
        self._forks = Forks()
        self._finished: list[GameRecord] = []
        self._stats = PlayStats()
        self._stopping = False
        self._games: dict[int, _Game] = {}  # by slot
        for slot in range(config.games_in_lockstep):
            self._begin(slot)

    def play(self, min_samples: int) -> tuple[list[GameRecord], PlayStats]:
        """Plays until the finished games hold at least ``min_samples`` samples, or until ``stop``; returns them."""
        started, worked = time.perf_counter(), time.thread_time()
        while self._stats.samples < min_samples and not self._stopping:
            evaluated = self._step()  # which counts offshoots itself
            self._stats.evaluations += evaluated
        self._stats.seconds, self._stats.processor_seconds = time.perf_counter() - started, time.thread_time() - worked
        records, stats = self._finished, self._stats
        self._finished, self._stats = [], PlayStats()
        return records, stats

    def _step(self) -> int:
        """Continues all searches and plays the moves of the finished ones; returns the number of evaluations."""
        if isinstance(self.evaluator, CompiledEvaluator):
            evaluations = self._search.many_steps(self.evaluator)
            self._move_finished()
            return evaluations
        self._search.select()
        while self._move_finished():  # so that the next batch has a leaf of every game
            self._search.select()
        return self._search.evaluate(self.evaluator)

    def _move_finished(self) -> bool:
        """Plays the moves of the finished searches; returns whether there were any."""
        finished = self._finished_searches()
        if len(finished):
            slots, temperature_at = self._recorded(finished), self._search.config.temperature_at
            self._play(slots, self._search, [temperature_at(self._games[slot].record.ply) for slot in slots.tolist()])
        return len(finished) > 0

    def _finished_searches(self) -> np.ndarray:
        """Slots whose moves are to be played."""
        return np.flatnonzero(~self._search.active())

    def stop(self) -> None:
        """Makes ``play`` return soon with the games finished so far; may be called from another thread."""
        self._stopping = True

    def _begin(self, slot: int) -> None:
        """Starts a new game in a slot."""
        rng, ending = self._search.generator(slot), None
        while ending is not Ending.RUNNING:
            board = self._opening(rng)
            ending = self._set_board(slot, board)
            if ending is Ending.RUNNING:
                record = GameRecordBuilder(self.network, board.fen())
                self._games[slot] = _Game(record, board.turn, plays_on=rng.random() < self.config.play_on_fraction)
                if self._search.num_legal(slot) == 1:
                    plies, ending = self._search.play(slot, 0, through_forced=True)
                    self._note_moves(slot, 0, plies)
        self._search_next([slot])

    def _set_board(self, slot: int, board: Board) -> Ending:
        """Sets the first position of a game; returns its state."""
        return self._search.set_board(slot, board)

    def _opening(self, rng: np.random.Generator) -> Board:
        """Returns the first position of a new game: a fork, a ballot or one after random moves."""
        config = self.config
        fork = self._forks.take(rng) if config.fork_fraction > 0 and rng.random() < config.fork_fraction else None
        return fork or selfplay_opening(rng, config.ballot_fraction, config.random_opening_plies)

    def _search_next(self, slots: list[int]) -> None:
        """Starts a full or fast search of the current position of each slot."""
        config, simulations = self.config, []
        for slot in slots:
            full = self._games[slot].full = self._search.generator(slot).random() < config.full_search_fraction
            simulations.append(self._search.config.num_simulations if full else config.fast_simulations)
        explore = [self._games[slot].full for slot in slots]
        self._search.start_all(np.array(slots, np.int64), np.array(simulations, np.int64), explore)

    def _recorded(self, slots: np.ndarray) -> np.ndarray:
        """Records the finished searches of slots; returns the slots where nobody resigns."""
        targets, goes_on = self._search.targets(slots), np.ones(len(slots), bool)
        values = (targets.wdl[:, 0] - targets.wdl[:, 2]).tolist()
        for row, (slot, count) in enumerate(zip(slots.tolist(), targets.counts.tolist(), strict=True)):
            game = self._games[slot]
            policy = targets.policies[row, :count] if game.full else None
            game.record.add_search(targets.positions[row], targets.wdl[row], policy)
            if game.full and self._reader is not None:
                self._add_tree(slot, game)
            if self._resigns(game, values[row]):
                self._finish(slot, RESIGNATION, game.turn.other)
                goes_on[row] = False
        return slots[goes_on]

    def _play(self, slots: np.ndarray, search: LockstepSearch, temperatures: list[float]) -> None:
        """Plays the moves that ``search`` has chosen in slots, and starts the next searches or games."""
        played, going_on = search.play_all(slots, temperatures), []
        verdicts = self._verdicts(slots, search, played)
        for slot, (index, plies, ending), verdict in zip(slots.tolist(), played.tolist(), verdicts, strict=True):
            game = self._games[slot]
            self._note_moves(slot, index, plies)
            if ending != Ending.RUNNING:
                self._finish(slot, _TERMINATIONS[ending], game.turn.other if ending == Ending.LOST else None)
            elif game.record.ply >= self.config.max_plies:
                self._finish(slot, PLY_CAP, None)
            elif verdict != UNKNOWN:
                winner = game.turn if verdict == WIN else game.turn.other
                self._finish(slot, ADJUDICATION, None if verdict == DRAW else winner)
            else:
                going_on.append(slot)
        self._search_next(going_on)

    def _verdicts(self, slots: np.ndarray, search: LockstepSearch, played: np.ndarray) -> list[int]:
        """Returns the outcome by which each game is adjudicated, for the side to move; UNKNOWN: it is played on.

        Args:
            search, played: where the moves were played, and what its ``play_all`` returned.
        """
        verdicts = np.full(len(slots), UNKNOWN, np.uint8)
        if self.config.adjudicate:
            assert self._knowledge.table is not None
            rows = [row for row, slot in enumerate(slots.tolist()) if not self._games[slot].plays_on]
            positions, forced = search.positions(slots[rows]), played[rows, 1] - 1
            verdicts[rows] = adjudicated(self._knowledge.table, positions, self.config.table_pieces, forced)
        return verdicts.tolist()

    def _note_moves(self, slot: int, index: int, plies: int) -> None:
        """Records the move ``index`` and the ``plies - 1`` forced moves after it."""
        game = self._games[slot]
        for made in [index] + [0] * (plies - 1):
            game.record.add_move(made)
        if plies % 2:
            game.turn = game.turn.other

    def _add_tree(self, slot: int, game: _Game) -> None:
        """Adds samples from the search tree of a slot, and offshoots of them."""
        assert self._reader is not None
        tree, rng = self._reader.read(slot), self._search.generator(slot)
        game.record.add_found(tree)
        share = self.config.tree_samples.offshoots
        if share > 0:
            beside = offshoots(tree.positions[rng.random(len(tree)) < share], self.evaluator, rng)
            self._stats.evaluations += len(beside)
            game.record.add_found(beside)

    def _resigns(self, game: _Game, value: float) -> bool:
        """Whether the side to move resigns; in a game that plays on, notes the side that would have."""
        if self.config.resign_value is None:
            return False
        game.below[game.turn] = game.below[game.turn] + 1 if value < self.config.resign_value else 0
        if game.below[game.turn] < self.config.resign_moves:
            return False
        if game.plays_on:
            game.would_resign = game.would_resign or game.turn
        return not game.plays_on

    def _finish(self, slot: int, termination: str, winner: Color | None) -> None:
        game = self._games[slot]
        record = game.record.finish({Color.BLACK: 1, None: 0, Color.WHITE: -1}[winner], termination)
        if self.config.fork_fraction > 0:
            self._forks.add(record.samples, self._search.generator(slot))
        knowledge = self._knowledge
        if self.config.rescore and knowledge.table is not None:
            record = rescored(record, knowledge.table, self.config.table_pieces)
            record = rescored_found(record, knowledge.table, self.config.table_pieces)
        if knowledge.held_out is not None:
            record = without_held_out(record, knowledge.held_out)
        self._finished.append(record)
        stats = self._stats
        stats.games += 1
        stats.samples += len(record.samples)
        stats.plies += len(record.moves)
        if game.would_resign is not None:
            stats.resign_checks += 1
            stats.resign_false += winner is not game.would_resign.other
        self._begin(slot)
