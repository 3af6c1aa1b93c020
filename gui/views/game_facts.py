"""Makes the states of a game's panels from the state of the game: plain values, so that changes can be seen."""

from engine.board import Board
from engine.fen import Color

from ..game.controller import GameController
from ..game.game_lines import numbered
from ..game.session import GLYPHS, glyph_of
from ..game.snapshot import MoveRow, Snapshot, of_black
from ..help import Action, keys_of
from .board_view import Arrow
from .move_panels import LineState, MoveListState, TableRow, TableState
from .panels import GraphState, PlayerState, ThoughtHead

_ARROWS = 4
_LEAST_SHARE = 0.04  # smallest fraction of the visits of a move with an arrow
_LOW_CLOCK = 20.0  # seconds
_NO_ESTIMATE = {"loading": "getting ready", "thinking": "no estimate yet"}


def player_state(controller: GameController, color: Color) -> PlayerState:
    board, clock = controller.session.board, controller.clock
    pieces = board.piece_map().values()
    own = sum(owner is color for owner, _ in pieces)
    left = clock.remaining(color)
    over = controller.session.is_over
    name = controller.session.names[color]
    to_move = not over and board.turn is color
    runs = not over and not clock.paused and clock.running is color
    low = runs and left is not None and left < _LOW_CLOCK and clock.control.kind == "fischer"
    shown = name if name.lower() == str(color).lower() else f"{color} · {name}"
    return PlayerState(color, shown, clock.text(color), to_move, own, 2 * own - len(pieces), low, runs)


def signed(value: float | None) -> str:
    """A value in [-1, 1] as text with its sign; "" for None."""
    return "" if value is None else f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def short_count(count: int) -> str:
    """A count as text of at most five characters."""
    if count < 10_000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"


def thought_head(snapshot: Snapshot | None, verdict: tuple[str, ...]) -> ThoughtHead:
    if snapshot is None:
        return ThoughtHead(None, "Thoughts", (), verdict, f"{keys_of(Action.ANALYSE)}: think along")
    value = snapshot.black_value
    text = f"{snapshot.turn}: {snapshot.player}" if value is None else f"Black {signed(value)}"
    parts = [f"{short_count(snapshot.count)} {snapshot.counted}" if snapshot.count else ""]
    parts.append(f"depth {snapshot.depth}" if snapshot.depth else "")
    parts.append(f"{short_count(round(snapshot.per_second))}/s" if snapshot.per_second else "")
    undecided = bool(snapshot.moves) and snapshot.moves[0].proof is None
    if snapshot.mode == "analyse" and snapshot.status == "done" and undecided:
        parts.append("memory full")
    wdl, score = snapshot.black_wdl, snapshot.score
    hint = _NO_ESTIMATE.get(snapshot.status, "it gives no estimate")
    if score is not None:  # for an engine that gives a score but no win/draw/loss
        hint = f"Black may expect {100 * score:.0f} % of the points"
    return ThoughtHead(wdl, text, tuple(filter(None, parts)), verdict, hint)


def _table_row(row: MoveRow, turn: Color) -> TableRow:
    proof: str = row.proof or ""
    if proof and row.proof_plies is not None:
        proof += f" in {row.proof_plies + 1}"
    prior = "" if row.prior is None else f"{100 * row.prior:.0f}%"
    visits = short_count(row.visits) if row.visits else ""
    texts = row.pdn, visits, prior, signed(row.value)
    return TableRow(texts, row.share, of_black(row.wdl, turn), proof)


def table_state(snapshot: Snapshot | None, hovered: int | None, most: int, first: int = 0) -> TableState:
    """The state of the table with at most ``most`` rows from ``first`` on, limited so that the last rows fill it."""
    if snapshot is None:
        return TableState()
    first = max(0, min(first, len(snapshot.moves) - most))
    shown = snapshot.moves[first : first + most]
    more = len(snapshot.moves) - first - len(shown)
    return TableState(tuple(_table_row(row, snapshot.turn) for row in shown), hovered, first, more)


def line_state(snapshot: Snapshot | None, first: Color, hovered: int | None) -> LineState:
    if snapshot is None or not snapshot.pv_pdn:
        return LineState("line", ())
    return LineState("line", numbered(snapshot.pv_pdn, snapshot.ply + (first is Color.WHITE), "…"), hovered)


def graph_state(controller: GameController, hovered: int | None) -> GraphState:
    count, known = len(controller.session.nodes) + 1, controller.scores
    scores = tuple(round(known[ply], 3) if ply in known else None for ply in range(count))
    return GraphState(scores, controller.session.ply, hovered=hovered)


def move_list_state(controller: GameController, scroll: int, hovered: int | None) -> MoveListState:
    session = controller.session
    result = ""
    if session.ending is not None:
        result = f"{session.ending.result.replace('1/2-1/2', '½–½')}  {session.ending.text}"
    first = int(session.first_color is Color.WHITE)
    glyphs = [glyph_of(node) for node in session.nodes]
    texts = (text + (GLYPHS[glyph - 1] if glyph else "") for text, glyph in zip(session.texts, glyphs, strict=True))
    return MoveListState(tuple(texts), first, session.ply, result, scroll, hovered)


def line_board(snapshot: Snapshot, moves: int) -> Board:
    """The board after some moves of the principal variation."""
    board = Board(snapshot.fen)
    for move in snapshot.pv[:moves]:
        board.push(move)
    return board


def arrows(controller: GameController, row: int | None) -> tuple[Arrow, ...]:
    """Arrows for the search's moves in the position shown, wider with more visits. If a row of the table is pointed at,
    only for its move."""
    snapshot = controller.thought()
    moves = snapshot.moves if snapshot is not None else ()
    if row is not None and row < len(moves):
        return (Arrow(moves[row].move.path, 1.0),)
    if controller.hint is not None:
        return (Arrow(controller.hint.path, 0.8, hint=True),)
    top = max((move.share for move in moves), default=0.0) or 1.0
    heavy = [move for move in moves[:_ARROWS] if move.share >= _LEAST_SHARE]
    shown = [Arrow(move.move.path, round(move.share / top, 1)) for move in heavy]
    return tuple(shown or [Arrow(move.move.path, 1.0) for move in moves[:1]])  # or the only move known
