"""The player that searches a tree with an evaluator (a network); training makes this one stronger."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..board import Board, Move
from ..fen import START_FEN
from ..search import Evaluator, LeafOracle, LockstepSearch, SearchConfig, SearchResult
from ..search.lockstep import MOST_STEPS
from ..search.tree import NO_DISTANCE
from .base import search_moves
from .spec import check_simulations
from .time_control import search_time
from .watching import MoveThought, Proof, Purpose, Thought, Unit

ANALYSIS = 4_000_000  # simulations of an analysis; they about fill the largest arena, and sums of visits are float32
_TIMED_SIMULATIONS = (50_000, 4_000_000)  # smallest and largest limit of a timed search; sums of visits are float32
_FASTEST = 2_000_000  # simulations per second to allow for; their memory is only used when it is needed
_SLICE = 512  # simulations in one call, at least: if no leaf needs an evaluation, a call ends only after all of them
_PER_SECOND_LEFT = 100_000  # and for each second that is left: a fifth of what fits in
_PLANNING = 0.5  # largest part of a move's time for planning how to convert a win, see ``engine.search.conversion``
_FIRST = 64  # simulations of the searches that only load compiled code
_ENDGAMES = (  # decided, to be converted, drawn, on the way
    "B:W22,25:B3,K10", "W:WK12,K23,21:BK11,K22", "W:W20,K5:BK19,K30", "B:W13,14,21,22:B2,5,6",
)  # fmt: skip
_PROOFS: tuple[Proof | None, ...] = ("win", "draw", "loss", None)


class SearchPlayer:
    """Plays the most visited move of a search without noise; all boards are searched in lockstep.

    Args:
        name: name on the command line.
        evaluator: evaluates leaves.
        config: settings of the search; ``num_simulations`` per move.
        seconds: seconds per move in place of a number of simulations; boards of one call share the sum of their times.
        leaf_oracle: gives exact values of leaves with few pieces; required unless ``config.oracle`` is ``off``.
        explore: whether to play as in training, with the noise and temperature of ``config``, so that games vary.
        seed: seed of the random numbers, used if ``explore``.

    Attributes:
        planning_s: seconds that ``begin`` may take to plan a conversion; None: half of ``seconds``, or no limit.
        values: P(win) - P(loss) for the side to move in each board of the last ``choose``; empty if a single board was
            searched with a time limit.

    Raises:
        PlayerError: ``num_simulations`` is out of range.
        ValueError: ``config`` needs a leaf oracle and there is none.
    """

    def __init__(
        self,
        name: str,
        evaluator: Evaluator,
        config: SearchConfig | None = None,
        seconds: float | None = None,
        leaf_oracle: LeafOracle | None = None,
        explore: bool = False,
        seed: int = 0,
    ) -> None:
        config = config or SearchConfig()
        if seconds is not None:
            least, most = _TIMED_SIMULATIONS
            config = config.model_copy(update={"num_simulations": int(max(least, min(_FASTEST * seconds, most)))})
        else:
            check_simulations(config.num_simulations)
        self.name, self.config, self.evaluator = name, config, evaluator
        self.seconds, self.explore = seconds, explore
        self.planning_s: float | None = None
        self._leaf_oracle = leaf_oracle
        self._search = LockstepSearch(config, 1, leaf_oracle=leaf_oracle)
        self._watched: dict[Purpose, TreeSearch] = {}
        self.values: list[float] = []
        self.seed(seed)

    def seed(self, seed: int) -> None:
        self._seed = seed
        _reseed(self._search, seed)
        for search in self._watched.values():
            search.seed(seed)

    def prepare(self, endgames: bool = True) -> None:
        """Loads or compiles the functions that searches (and with ``endgames`` those of endgames) need, so that this
        takes no time of a move."""
        self._search.steps(self.evaluator, 0)
        self.evaluator.evaluate(np.array([[*Board().words(), 0]], np.uint32))  # as for leaves that waited for a table
        search = LockstepSearch(self.config, 1, _FIRST, leaf_oracle=self._leaf_oracle)
        for fen in (START_FEN, *(_ENDGAMES if endgames and self._leaf_oracle is not None else ())):
            search.set_board(0, Board(fen))
            search.start(0, _FIRST, False)
            search.run(self.evaluator)
            search.result(0)
            search.play(0, search.choose(0))

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        """See ``Player.choose``. A single board with a time limit is searched by ``begin``, so that the tree is kept
        from move to move."""
        moves = [search_moves(board) for board in boards]
        self.values = []
        if len(boards) == 1 and self.seconds is not None:
            if len(moves[0]) == 1:
                return [moves[0][0]]
            deadline = time.perf_counter() + search_time(self.seconds)
            search = self.begin(boards[0])
            search.advance(deadline - time.perf_counter())
            return [search.choose()]
        self.think(boards, self.explore)
        chosen = []
        for slot, (board, legal) in enumerate(zip(boards, moves, strict=True)):
            win, _, loss = self._search.result(slot).wdl
            self.values.append(float(win - loss))
            temperature = self.config.temperature_at(board.ply) if self.explore else 0.0
            chosen.append(legal[self._search.choose(slot, temperature)])
        return chosen

    def think(self, boards: Sequence[Board], explore: bool = False) -> LockstepSearch:
        """Searches the boards and returns the trees: board ``i`` is in slot ``i``."""
        if len(boards) > self._search.slots:
            before = self._search
            self._search = LockstepSearch(self.config, len(boards), leaf_oracle=self._leaf_oracle)
            _reseed(self._search, self._seed)
            for slot in range(before.slots):  # these go on with their random numbers
                self._search.generator(slot).bit_generator.state = before.generator(slot).bit_generator.state
        self._search.stop()  # those that a failure has left unfinished would go on in the other slots
        begun = time.perf_counter()
        self._search.plan_until(begun + self._planning(pondering=False) * len(boards))
        for slot, board in enumerate(boards):
            self._search.set_board(slot, board)
            self._search.start(slot, explore=explore)
        if self.seconds is None:
            self._search.run(self.evaluator)
        else:
            deadline = begun + self.seconds * len(boards)
            while self._search.step(self.evaluator) and time.perf_counter() < deadline:
                pass
            self._search.stop()
        return self._search

    def analyse(self, board: Board) -> tuple[SearchResult, list[Move], int]:
        """Searches one board; returns the result, the principal variation, and the index of the move to play.

        Raises:
            PlayerError: there is no legal move.
        """
        search_moves(board)
        search = self.think([board])
        return search.result(0), line_of(search, board), search.choose(0)

    def begin(self, board: Board, purpose: Purpose = "move", pondering: bool = False) -> "TreeSearch":
        """See ``WatchablePlayer.begin``. With ``config.reuse_tree`` the tree is kept for later boards of the same game.

        An analysis always uses transpositions. Its tree can take a gigabyte, which is released when a board of another
        game or line is analysed.

        Args:
            pondering: whether this player is the opponent of the side to move, see ``LockstepSearch.start``.
        """
        search = self._watched.get(purpose)
        if search is not None and purpose == "analysis" and search.moves_to(board) is None:
            search = None
            del self._watched[purpose]
        if search is None:
            search = self._watched[purpose] = self._new_search(purpose)
        search.set_board(board, pondering, time.perf_counter() + self._planning(pondering))
        return search

    def _planning(self, pondering: bool) -> float:
        """Seconds for planning: not the slices of ``advance``, which are too short; none in the opponent's time."""
        if pondering:
            return 0.0
        if self.planning_s is not None:
            return self.planning_s
        return math.inf if self.seconds is None else _PLANNING * self.seconds

    def _new_search(self, purpose: Purpose) -> "TreeSearch":
        config = self.config
        if purpose == "game":
            config = config.model_copy(update={"num_simulations": _TIMED_SIMULATIONS[1]})
        elif purpose == "analysis":
            long = {"num_simulations": ANALYSIS, "transpositions": True}
            config = config.impartial().model_copy(update=long)
        trees = LockstepSearch(config, 1, leaf_oracle=self._leaf_oracle)
        _reseed(trees, self._seed)
        return TreeSearch(trees, self.evaluator, self.explore and purpose != "analysis")


class TreeSearch:
    """A search of one board, see ``watching.Thinking``.

    Args:
        trees: trees with one slot; their ``config.num_simulations`` is the limit of the search.
        evaluator: evaluates leaves.
        explore: whether to use the configuration's noise and temperature.

    Attributes:
        when_chosen: called with the move that ``choose`` returns for the current board.
    """

    unit: Unit = "simulations"

    def __init__(self, trees: LockstepSearch, evaluator: Evaluator, explore: bool) -> None:
        self._trees, self._evaluator, self._explore = trees, evaluator, explore
        self._wanted = trees.config.num_simulations
        self._board: Board | None = None
        self._moves: list[Move] = []
        self._kept, self._finished = 0, False
        self.when_chosen: Callable[[Move], object] | None = None

    def seed(self, seed: int) -> None:
        """Restarts the random numbers and drops the tree."""
        _reseed(self._trees, seed)
        self._board = None

    def set_board(self, board: Board, pondering: bool, deadline: float) -> None:
        """Starts a search of a board; keeps the subtree of an earlier search if the board continues its game.

        ``pondering``: see ``SearchPlayer.begin``; ``deadline``: see ``LockstepSearch.plan_until``. Raises
        ``PlayerError`` if there is no legal move.
        """
        self._trees.plan_until(deadline)
        moves = search_moves(board)
        if not self._follow(board):
            self._trees.set_board(0, board)
        self._board, self._moves, self.when_chosen = board.copy(), moves, None
        self._trees.start(0, 0, self._explore, pondering)  # which drops the tree where tables know the root
        self._kept, self._finished = self._made(), False

    def moves_to(self, board: Board) -> list[Move] | None:
        """The moves from the earlier board to this one; None if it does not continue that game, or no tree is kept."""
        if self._board is None or not self._trees.config.reuse_tree:
            return None
        made = self._board.move_stack
        if board.start_fen != self._board.start_fen or board.move_stack[: len(made)] != made:
            return None
        return board.move_stack[len(made) :]

    def _follow(self, board: Board) -> bool:
        """Plays the moves from the earlier board to this one in the tree; False if the tree cannot be used for it."""
        later = self.moves_to(board)
        if later is None or self._board is None:
            return False
        follower, self._board = self._board.copy(), None  # Ctrl-C may leave the tree between the two boards
        for move in later:
            moves = search_moves(follower)
            if move not in moves:  # the tree has another move to the same position in its place
                return False
            self._trees.play(0, moves.index(move))
            follower.push(move)
        return follower.words() == board.words()

    def _made(self) -> int:
        return self._trees.simulations(0)

    @property
    def count(self) -> int:
        return self._made() - self._kept

    @property
    def progress(self) -> float:
        return 1.0 if self._finished else min(1.0, self._made() / max(self._wanted, 1))

    def advance(self, seconds: float) -> bool:
        now = time.perf_counter()
        deadline, steps = now + seconds, 1
        while not self._finished:
            more = _SLICE + int(_PER_SECOND_LEFT * min(max(deadline - now, 0.0), 1.0))
            asked = min(self._made() + more, self._wanted)
            self._trees.extend(0, asked)
            judged = self._trees.steps(self._evaluator, steps)
            if not judged and (asked == self._wanted or self._made() < asked):  # all are made, or it is decided
                self._finished = True
            begun, now = now, time.perf_counter()
            if now >= deadline:
                break
            step = (now - begun) * self._trees.config.leaves_in_flight / max(judged, 1)
            steps = max(1, min(MOST_STEPS, int((deadline - now) / (2 * step))))  # half of the steps that should fit
        return not self._finished

    def choose(self) -> Move:
        """The move to play; drawn at random by visits if the player explores."""
        assert self._board is not None
        temperature = self._trees.config.temperature_at(self._board.ply) if self._explore else 0.0
        move = self._moves[self._trees.choose(0, temperature)]
        if self.when_chosen is not None:
            self.when_chosen(move)
        return move

    def thought(self) -> Thought:
        assert self._board is not None
        result = self._trees.result(0)
        line = tuple(line_of(self._trees, self._board))  # unlike ``choose``, this uses no random number
        best = self._moves.index(line[0]) if line else int(result.priors.argmax())
        known = thoughts_of(result, self._moves)
        moves = best_first(known, known[best].move)
        win, draw, loss = (float(share) for share in result.wdl)
        return Thought(moves, line or (moves[0].move,), win - loss, (win, draw, loss), result.simulations, self._kept)


def _reseed(search: LockstepSearch, seed: int) -> None:
    for slot in range(search.slots):
        search.reseed(slot, seed + slot)


def best_first(thoughts: Sequence[MoveThought], best: Move) -> tuple[MoveThought, ...]:
    """The thoughts with that on the best move first; then proven wins, the most visited moves, proven losses."""

    def rank(thought: MoveThought) -> tuple[bool, bool, bool, int, float]:
        shown = thought.move == best, thought.proof == "win", thought.proof != "loss"
        return *shown, thought.visits, thought.prior or 0.0

    return tuple(sorted(thoughts, key=rank, reverse=True))


def thoughts_of(result: SearchResult, moves: Sequence[Move]) -> list[MoveThought]:
    """What a search found about each of ``moves``, which are in the order of the result."""
    thoughts = []
    for index, move in enumerate(moves):
        visits, proof = int(result.visits[index]), _PROOFS[result.proofs[index]]
        value, draw = float(result.values[index]), float(result.draws[index])
        wdl = (max(0.0, (1 - draw + value) / 2), draw, max(0.0, (1 - draw - value) / 2))
        plies = int(result.proof_plies[index])
        thought = MoveThought(move, visits, float(result.priors[index]), proof=proof)
        if visits > 0 or proof is not None:
            thought = replace(thought, value=value, wdl=wdl)
        if proof in ("win", "loss") and plies < NO_DISTANCE:
            thought = replace(thought, proof_plies=plies)
        thoughts.append(thought)
    return thoughts


def line_of(search: LockstepSearch, board: Board) -> list[Move]:
    """The principal variation of the tree in slot 0; ``board`` is the position of its root."""
    line: list[Move] = []
    after = board.copy()
    for index in search.principal_variation(0):
        line.append(search_moves(after)[index])
        after.push(line[-1])
    return line
