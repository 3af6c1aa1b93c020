"""A game with what its report says: glyphs, evaluations, the better moves as variations; and in figures. No pygame."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

from engine.board import Board
from engine.fen import Color
from engine.pdn import PdnGame, PdnNode

from .game_lines import copied
from .game_report import GameReport, MoveReport
from .session import GLYPHS

_GLYPHS = {"inaccuracy": 6, "mistake": 2, "blunder": 4}  # ?!, ? and ??


class FaultFigures(TypedDict):
    """A move that gave something away: ``loss`` of expected score, 0 to 1, and how the better one goes on."""

    ply: int
    move: str
    judgement: str
    loss: float
    better: list[str]


class SideFigures(TypedDict):
    """How a side played."""

    name: str
    accuracy: float | None
    faults: list[FaultFigures]


class AnnotatedGame(TypedDict):
    """A game that was judged."""

    number: int
    result: str
    plies: int
    black: SideFigures
    white: SideFigures


def annotated(game: PdnGame, report: GameReport, annotator: str) -> PdnGame:
    """The game with the report in it. What was said of a move before stays; a glyph that it had does, too.

    Args:
        report: of the game's main line.
        annotator: who judged, for the game's tag.

    Every move has its evaluation as a comment, the score that Black can expect (``52%``), and one with a fault what
    would have been better; how that goes on is a variation of the move.
    """
    nodes = copied(game.moves)
    board = Board(game.start_fen)
    for node, move, score in zip(nodes, report.moves, report.graph[1:], strict=True):
        _annotate(node, move, score, board)
        board.push(node.move)
    return replace(game, headers={**game.headers, "Annotator": annotator}, moves=nodes, comments=list(game.comments))


def _annotate(node: PdnNode, move: MoveReport, score: float, before: Board) -> None:
    text = f"{100 * score:.0f}%"
    if move.judgement and not move.forced:
        if not any(1 <= nag <= len(GLYPHS) for nag in node.nags):
            node.nags.insert(0, _GLYPHS[move.judgement])
        text += f", {100 * move.loss:.0f}% given away; better {move.best_pdn}"
        if line := _line(before, move.line):
            node.variations.insert(0, line)
    node.comments.append(text)


def _line(before: Board, texts: Sequence[str]) -> list[PdnNode]:
    board = before.copy()
    return [PdnNode(board.push_pdn(text)) for text in texts]


def figures_of(number: int, game: PdnGame, report: GameReport) -> AnnotatedGame:
    """The report on game ``number`` of a file."""
    black, white = (_side(color, game, report) for color in Color)
    return {"number": number, "result": game.result, "plies": len(game.moves), "black": black, "white": white}


def _side(color: Color, game: PdnGame, report: GameReport) -> SideFigures:
    accuracy = report.accuracy(color)
    return {
        "name": game.headers.get(str(color), ""),
        "accuracy": None if accuracy is None else round(accuracy, 2),
        "faults": [
            {
                "ply": move.ply,
                "move": move.pdn,
                "judgement": move.judgement,
                "loss": round(move.loss, 4),
                "better": list(move.line) or [move.best_pdn],
            }
            for move in report.moves
            if move.color is color and move.judgement and not move.forced
        ],
    }
