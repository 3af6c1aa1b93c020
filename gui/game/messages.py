"""One-line messages of a game to its players. No pygame."""

import re
from typing import TYPE_CHECKING, NamedTuple

from engine.fen import Color

from ..help import Action, keys_of

if TYPE_CHECKING:
    from .controller import GameController


_TEXT = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"  # a string as written by Python's repr
_QUOTED_FEN = re.compile(rf"FEN {_TEXT}: ")
_WHERE = re.compile(r" in [BW]:[BW][K0-9,]*:[BW][K0-9,]*(?=[:;])")


def without_fen(text: str) -> str:
    """Removes the FEN from an error message: at the board, the position can be seen."""
    return _WHERE.sub("", _QUOTED_FEN.sub("position: ", text))


class Message(NamedTuple):
    """A message: ``kind`` is ``calm``, ``busy``, ``warn`` or ``over``; ``progress`` is 0 to 1 or None."""

    text: str
    kind: str = "calm"
    detail: str = ""
    progress: float | None = None


_PATIENCE_S = 0.5  # seconds after which ``_GETTING_READY`` is shown
_GETTING_READY = Message("Getting ready", "busy", "longer at the first start")  # the first start compiles the search


def message_of(game: "GameController") -> Message:
    """The most important message: a refused input, a notice, the result, an offer, or whose turn it is."""
    session, entry = game.session, game.input
    if entry.message:
        return Message(entry.message, "warn")
    if game.notice:
        return Message(game.notice, "warn" if game.alarm else "calm")
    if game.autosave.error:
        return Message(game.autosave.error, "warn")
    if session.ending is not None and session.at_end:
        comment = session.annotation()[1]
        return Message(f"{session.ending.text}. {comment}" if comment else session.ending.text, "over")
    if session.draw_offer is not None and session.at_end:
        other = session.draw_offer.other
        waits = "Move now goes on" if game.paused else f"{other} answers when it has thought"
        waits = "" if other in game.humans else waits
        return Message(f"{session.draw_offer} offers a draw", detail=waits)
    if entry.typed:
        return Message(f"Move: {entry.typed}", detail="Enter plays it, Escape drops it")
    turn = session.board.turn
    if game.agent_to_move:
        return Message("Paused", detail="Move now goes on") if game.paused else _thinking(game, turn)
    if game.thinking == "play":  # for a person who has asked for that
        return _thinking(game, turn)
    if game.thinking == "hint":
        return _GETTING_READY if _getting_ready(game) else Message("Looking for a hint", "busy")
    if game.browsing and (comment := session.annotation()[1]):
        return Message(comment)  # a detail has one line, which would cut it
    if game.browsing:
        return Message(f"{turn} to move", detail=_about_position(game))
    if game.paused and game.clock.running is not None and game.clock.control.kind != "none":
        return Message("The clocks stand", detail=f"{keys_of(Action.PAUSE)} lets them run on")
    text = f"{turn} to move" if len(game.humans) != 1 else "Your move"
    return Message(text, detail=f"{turn} must capture" if entry.must_capture else "")


def _about_position(game: "GameController") -> str:
    """The position's number in its line, and the alternatives to the last move."""
    session = game.session
    where = f"position {session.ply} of {len(session.nodes)}" + ("" if session.on_main_line else " of a variation")
    others = ", ".join(session.others())
    return f"{where}; also {others} ({keys_of(Action.VARIATION)})" if others else where


def _thinking(game: "GameController", turn: Color) -> Message:
    snapshot = game.thought()
    if snapshot is None or not snapshot.busy:
        return Message(f"{turn} to move")
    if _getting_ready(game):
        return _GETTING_READY
    effort = f"{snapshot.count:,} {snapshot.counted}" if snapshot.count else ""
    return Message(f"{turn} is thinking", "busy", effort, snapshot.progress)


def _getting_ready(game: "GameController") -> bool:
    """Whether a player is still being made or has not begun to search. Engines need not report counts."""
    snapshot = game.thinker.snapshot
    agent = game.agents[game.session.board.turn].kind if game.thinking == "play" else game.adviser().kind
    if snapshot is None or not snapshot.busy or game.waited < _PATIENCE_S:
        return False
    return snapshot.status == "loading" or (not snapshot.count and agent not in ("random", "external"))
