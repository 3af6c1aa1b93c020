"""The game that the command line asks for."""

import shlex

from engine.board import Board
from engine.errors import DraughtsError
from engine.fen import START_FEN, Color
from engine.players import AlphaBetaPlayer, RolloutPlayer, parse_player
from engine.players.network_text import CHAMPION, NetworkText

from .move_reasons import why_no_game
from .opponents import OpponentError, OpponentSpec
from .plan import BOTH, GamePlan

_HUMANS = {
    "black": frozenset({Color.BLACK}),
    "white": frozenset({Color.WHITE}),
    "both": BOTH,
    "none": frozenset(),
}
ENGINE_PREFIX = "hub:"


def spec_of(
    text: str, simulations: int | None = None, seconds: float | None = None, backend: str = "auto"
) -> OpponentSpec:
    """The opponent that a PLAYER of the command line names.

    Args:
        text: ``random``, ``rollout:SIMULATIONS``, ``alphabeta:DEPTH``, ``hub:COMMAND``, or a ``NetworkText``.
        simulations: of a network, per move.
        seconds: per move, where the opponent can be timed.
        backend: of a network's evaluator.

    Raises:
        PlayerSpecError: it begins like one of these and is none.
        OpponentError: the values contradict each other or are out of range.
    """
    timing: dict[str, object] = {} if seconds is None else {"timed": True, "seconds": seconds}
    if text.startswith(ENGINE_PREFIX):
        command = text.removeprefix(ENGINE_PREFIX)
        if not _splits(command):
            raise OpponentError(f"{text!r}: behind {ENGINE_PREFIX} comes the command that starts the engine")
        return OpponentSpec(kind="external", command=command).changed(**timing)
    player = parse_player(text)
    if isinstance(player, AlphaBetaPlayer):
        return OpponentSpec(kind="alphabeta", depth=player.depth).changed(**timing)
    if isinstance(player, RolloutPlayer):
        return OpponentSpec(kind="rollout", rollouts=player.simulations).changed(**timing)
    if player is not None:
        return OpponentSpec(kind="random")
    named, spec = NetworkText.parse(text), OpponentSpec(kind="network")
    search: dict[str, object] = {"oracle": named.oracle}
    number = simulations if named.simulations is None else named.simulations
    if number is not None:
        search["num_simulations"] = number
    return spec.changed(
        checkpoint=None if named.folder == CHAMPION else named.folder,
        search=(spec.search.impartial() if named.impartial else spec.search).model_copy(update=search),
        backend=named.backend or backend,
        ponder=named.ponder,
        **timing,
    )


def _splits(command: str) -> bool:
    try:
        return bool(shlex.split(command))
    except ValueError:
        return False


def plan_for(spec: OpponentSpec, side: str = "black", fen: str = START_FEN) -> GamePlan:
    """A game of a person who plays ``side`` against an opponent.

    Raises:
        FenError: the position cannot be read, or is none.
        OpponentError: there is no such side.
    """
    if side not in _HUMANS:
        raise OpponentError(f"side {side!r}: choose {', '.join(_HUMANS)}")
    board = Board(fen)
    if reasons := why_no_game(board):
        raise DraughtsError(f"{fen}: the game is over, {' and '.join(reasons)}")
    return GamePlan(_HUMANS[side], dict.fromkeys(Color, spec), board.fen())
