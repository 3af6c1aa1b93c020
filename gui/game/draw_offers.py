"""Answers of agents to draw offers: by the tables if they know the position, else by the agent's own search."""

from typing import TYPE_CHECKING

from engine.fen import Color

if TYPE_CHECKING:
    from .controller import GameController

_DRAW_VALUE = 0.0  # an agent accepts a draw if its value is at most this
_TURNED = {"win": "loss", "draw": "draw", "loss": "win"}


def answer_offer(game: "GameController") -> None:
    """Lets the agent answer a person's draw offer as soon as it can; does nothing without an offer."""
    session = game.session
    offer = session.draw_offer
    if offer is None or offer.other in game.humans or not (session.at_end and session.on_main_line):
        return
    accepts = _accepts(game, offer.other)
    if accepts is not None:
        game.answer_draw(accepts)
        if not accepts:
            game.say(f"{offer.other} declines the draw")


def _accepts(game: "GameController", agent: Color) -> bool | None:
    """Whether an agent accepts a draw in the position shown; None while this is unknown."""
    verdict, ply = game.verdict(), game.session.ply
    if verdict is not None and verdict.exact is not None:
        return (verdict.exact if verdict.turn is agent else _TURNED[verdict.exact]) != "win"
    if game.endgame.looking_up(game.session.board):
        return None
    scores = game.scores
    score = scores.get(ply, scores.get(ply - 1))
    if score is not None:
        return (2 * score - 1) * (1 if agent is Color.BLACK else -1) <= _DRAW_VALUE
    return False if game.agents[agent].kind == "random" else None  # this agent never gives a value
