"""Makes opponents and games from arguments of the command line."""

from engine.board import Board
from engine.errors import DraughtsError
from engine.fen import START_FEN, Color
from engine.players.levels import Level
from engine.players.spec import CHAMPION, AlphaBetaSpec, HubSpec, NetworkSpec, RandomSpec, RolloutSpec, parse_player

from .game.move_reasons import why_no_game
from .game.opponents import OpponentError, OpponentSpec
from .game.plan import BOTH, GamePlan

_HUMANS = {"black": frozenset({Color.BLACK}), "white": frozenset({Color.WHITE}), "both": BOTH, "none": frozenset()}


def spec_of(
    text: str, simulations: int | None = None, seconds: float | None = None, backend: str = "auto"
) -> OpponentSpec:
    """The opponent for a PLAYER of the command line (see ``engine.players.parse_player``).

    Args:
        simulations: simulations per move of a network, unless ``text`` has its own.
        seconds: seconds per move, for opponents that use time.
        backend: backend of a network, unless ``text`` has its own.

    Raises:
        PlayerSpecError, OpponentError: the text is not a player, or values contradict each other or are out of range.
    """
    timing: dict[str, object] = {} if seconds is None else {"timed": True, "seconds": seconds}
    match parse_player(text):
        case RandomSpec():
            return OpponentSpec(kind="random")
        case RolloutSpec(rollouts):
            return OpponentSpec(kind="rollout").changed(rollouts=rollouts, **timing)
        case AlphaBetaSpec(depth):
            return OpponentSpec(kind="alphabeta").changed(depth=depth, **timing)
        case HubSpec(command):
            return OpponentSpec(kind="external", command=command).changed(**timing)
        case NetworkSpec(level=Level(name=name)):
            return OpponentSpec(kind="level", level=name)
        case NetworkSpec(alphabeta=False) as named:
            number = simulations if named.simulations is None else named.simulations
            search = {"oracle": named.oracle} | ({} if number is None else {"num_simulations": number})
            spec = OpponentSpec(kind="network")
            return spec.changed(
                checkpoint=None if named.folder == CHAMPION else named.folder,
                search=named.changed(spec.search).model_copy(update=search),
                backend=named.backend or backend,
                ponder=named.ponder,
                **timing,
            )
    raise OpponentError(f"{text}: this kind of player cannot be an opponent at the board")


def plan_for(spec: OpponentSpec, side: str = "black", fen: str = START_FEN) -> GamePlan:
    """The plan of a game in which a person plays ``side``; raises ``DraughtsError`` if the game cannot be played."""
    if side not in _HUMANS:
        raise OpponentError(f"side {side!r}: choose {', '.join(_HUMANS)}")
    board = Board(fen)
    if reasons := why_no_game(board):
        raise DraughtsError(f"{fen}: the game is over, {' and '.join(reasons)}")
    return GamePlan(_HUMANS[side], dict.fromkeys(Color, spec), board.fen())
