"""Writes a game's report into the game (glyphs, evaluations, better moves as variations) and as numbers. No pygame."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

from engine.board import Board
from engine.fen import Color
from engine.pdn import PdnGame, PdnNode

from ..game.game_lines import copied
from ..game.game_report import SIGNS, GameReport, MoveReport
from ..game.session import GLYPHS, glyph_of


class FaultFigures(TypedDict):
    """A move that gave something away: ``loss`` of expected score (0 to 1), and the line of the better move in PDN."""

    ply: int
    move: str
    judgement: str
    loss: float
    better: list[str]


class SideFigures(TypedDict):
    """How well a side played: accuracy (0 to 100, None without a choice) and faults."""

    name: str
    accuracy: float | None
    faults: list[FaultFigures]


class AnnotatedGame(TypedDict):
    """A judged game; ``number`` counts the games of the file from 1."""

    number: int
    result: str
    plies: int
    black: SideFigures
    white: SideFigures


def annotated(game: PdnGame, report: GameReport, annotator: str) -> PdnGame:
    """Returns a copy of the game with its report. Earlier comments, variations and glyphs are kept.

    Every move gets its evaluation as a comment: the expected score of Black (``Black 52%``). For a fault, the comment
    also names the better move, and its line becomes a variation.

    Args:
        report: report of the game's main line.
        annotator: who judged, for the game's Annotator tag.
    """
    nodes = copied(game.moves)
    board = Board(game.start_fen)
    for node, move, score in zip(nodes, report.moves, report.graph[1:], strict=True):
        _annotate(node, move, score, board)
        board.push(node.move)
    return replace(game, headers={**game.headers, "Annotator": annotator}, moves=nodes, comments=list(game.comments))


def _annotate(node: PdnNode, move: MoveReport, score: float, before: Board) -> None:
    text = f"Black {100 * score:.0f}%"
    if move.judgement and not move.forced:
        if glyph_of(node) is None:
            node.nags.insert(0, GLYPHS.index(SIGNS[move.judgement]) + 1)
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
