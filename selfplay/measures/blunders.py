"""``crownhead blunders``: moves that throw away a win or a draw, by exact endgame tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np

from engine.board import Board, Move
from engine.console import Console, Table
from engine.errors import PartlyReadError
from engine.knowledge.lines import Prover
from engine.outcomes import OUTCOMES
from engine.players.base import close_player
from engine.players.spec import PlayerSpec
from engine.reasons.explaining import Explainer
from engine.reasons.fault import Fault
from engine.reasons.reason import Reason
from engine.tablebase import open_tablebase
from learner.endgame.progress import OracleProgress
from learner.endgame.validation import wilson_interval

from ..conditions import Conditions
from ..games.openings import MatchError
from ..matches.commands import settings_of, tell_ignored
from ..requests import BlundersRequest
from .convert import board_of
from .decisions import Decision, drawn_decisions, recorded_decisions

MOST_DRAWN = 6  # most pieces of randomly drawn positions: the tables of all of them are held in memory
_POSITIONS, _SEED = 500, 1  # of a player's positions, where the request does not say
_BATCH = 32  # positions that a network without a time limit searches at once
_SHOWN = 10
_LINE = 12  # plies of a line that the tables prove


class BlunderCounts(TypedDict):
    """Counts of blunders by kind.

    ``positions`` are those where moves differ in value; ``share`` is blunders / positions (0 to 1), ``interval`` its
    95 % interval.
    """

    positions: int
    blunders: int
    share: float
    interval: tuple[float, float]
    win_to_draw: int
    win_to_loss: int
    draw_to_loss: int


class PiecesBlunders(BlunderCounts):
    pieces: int


class PlayerBlunders(BlunderCounts):
    player: str
    by_pieces: list[PiecesBlunders]


class Blunder(TypedDict):
    """A move that has lost a win or a draw.

    ``was`` and ``became`` are ``win``, ``draw`` or ``loss`` for the player before and after the move. ``better`` is a
    move that keeps the value. ``kind`` and ``reason`` say why the move is a blunder, if reasons are asked for.
    """

    player: str
    fen: str
    move: str
    was: str
    became: str
    better: str
    kind: str | None
    reason: str | None


class BlundersFigures(TypedDict):
    """Results of ``crownhead blunders``.

    ``pieces`` is the largest number of pieces, ``games`` the path of the games (None: positions were drawn at random),
    ``unread`` has one message for each game that could not be read.
    """

    games: str | None
    unread: list[str]
    pieces: int
    time_control: str
    simulations: int | None
    players: list[PlayerBlunders]
    blunders: list[Blunder]


def blunders_command(request: BlundersRequest, quiet: bool) -> BlundersFigures:
    """Counts blunders; see ``crownhead blunders --help``.

    Raises:
        MatchError: there is no decision in the games, or one of them cannot be read and ``strict`` is set.
        PartlyReadError: at the end, if some games could not be read.
        MissingTableError: there are no tables for this number of pieces.
    """
    conditions = Conditions(request.simulations, request.seconds, batch=_BATCH if request.seconds is None else 1)
    if request.spec is not None:
        settings_of(request.spec, conditions)  # raises now if there is no such network
        if not quiet:
            tell_ignored([request.spec], request.control)
    with OracleProgress(quiet) as progress:
        answers, unread = _decisions(request, progress)
        if request.spec is not None:
            chosen = _sample(answers, *_drawn(request))
            answers = list(_answers(request.spec, chosen, conditions, progress))
        blunders = _blunders([one for one in answers if one.blunder], request, progress)
    by_player: dict[str, list[Decision]] = {}
    for one in answers:
        by_player.setdefault(one.player, []).append(one)
    figures: BlundersFigures = {
        "games": str(request.games) if request.games else None,
        "unread": unread,
        "pieces": request.pieces,
        "time_control": str(request.control),
        "simulations": request.simulations,
        "players": [_player(name, made) for name, made in by_player.items()],
        "blunders": blunders,
    }
    if not quiet:
        _print(figures)
    if unread:
        raise PartlyReadError(f"games left out of {request.games}: {len(unread)}; the first: {unread[0]}", figures)
    return figures


def _decisions(request: BlundersRequest, progress: OracleProgress) -> tuple[list[Decision], list[str]]:
    """Returns the decisions, and a message for each game that cannot be read."""
    with open_tablebase(request.folder) as tables:
        tables.probe_wdl(board_of(request.pieces))  # raises at once if tables are missing
        progress.phase("looking for decisions")
        if request.games is None:
            drawn = drawn_decisions(request.pieces, *_drawn(request), request.folder, tables, progress.tables)
            return drawn, []
        decisions, unread = recorded_decisions(request.games, request.pieces, tables)
        if unread and request.strict:
            raise MatchError(f"games in {request.games}: {unread[0]}")
        if not decisions:
            what = f"no move of at most {request.pieces} pieces could be a blunder"
            left_out = f"; games that cannot be read: {len(unread)}, the first: {unread[0]}" if unread else ""
            raise MatchError(f"games in {request.games}: {what}{left_out}")
        return decisions, unread


def _drawn(request: BlundersRequest) -> tuple[int, int]:
    """Number and seed of the positions that a player is asked about."""
    return request.positions or _POSITIONS, _SEED if request.seed is None else request.seed


def _sample(decisions: Sequence[Decision], number: int, seed: int) -> list[Decision]:
    """At most ``number`` different positions, in random order."""
    different = list({(one.board.turn, one.board.words()): one for one in decisions}.values())
    order = np.random.default_rng(seed).permutation(len(different))
    return [different[index] for index in order[:number]]


def _answers(
    spec: PlayerSpec, decisions: Sequence[Decision], conditions: Conditions, progress: OracleProgress
) -> Iterator[Decision]:
    """Yields the decisions with the moves that the player chooses."""
    from ..players import make_player

    progress.phase(f"asking {spec.text}", len(decisions))
    player, together = make_player(spec, conditions), conditions.batch
    try:
        for first in range(0, len(decisions), together):
            part = decisions[first : first + together]
            for decision, move in zip(part, player.choose([one.board for one in part]), strict=True):
                yield replace(decision, player=spec.text, move=move)
            progress.done(first + len(part))
    finally:
        close_player(player)


def _player(name: str, answers: Sequence[Decision]) -> PlayerBlunders:
    numbers = sorted({one.pieces for one in answers})
    by_pieces: list[PiecesBlunders] = [
        {**_counts([one for one in answers if one.pieces == n]), "pieces": n} for n in numbers
    ]
    return {**_counts(answers), "player": name, "by_pieces": by_pieces}


def _counts(answers: Sequence[Decision]) -> BlunderCounts:
    kinds = Counter(answer.change for answer in answers if answer.blunder)
    return {
        "positions": len(answers),
        "blunders": kinds.total(),
        "share": kinds.total() / len(answers),
        "interval": wilson_interval(kinds.total(), len(answers)),
        "win_to_draw": kinds[1, 0],
        "win_to_loss": kinds[1, -1],
        "draw_to_loss": kinds[0, -1],
    }


def _blunders(answers: Sequence[Decision], request: BlundersRequest, progress: OracleProgress) -> list[Blunder]:
    """Describes each blunder, with its reason if reasons are asked for."""
    if not request.reasons:
        return [_blunder(answer, None) for answer in answers]
    progress.phase("finding reasons", len(answers))
    told = []
    with open_tablebase(request.folder) as tables:
        explainer, prover = Explainer(tables.get_wdl), Prover(tables)
        for answer in answers:
            told.append(_blunder(answer, explainer.explain(_fault(answer, prover))))
            progress.done(len(told))
    return told


def _fault(answer: Decision, prover: Prover) -> Fault:
    """A blunder with the lines that the tables prove after it and after a better move."""
    assert answer.move is not None
    before, after = ((1 + value) / 2 for value in answer.change)
    better, board = _better(answer), answer.board
    line = (better, *_proven_line(board, better, prover))
    return Fault(board, answer.move, better, before, after, line, _proven_line(board, answer.move, prover))


def _proven_line(board: Board, move: Move, prover: Prover) -> tuple[Move, ...]:
    """The line after ``move`` that the tables prove, at most ``_LINE`` plies; () for a draw or if the game is over."""
    after = board.copy()
    after.push(move)
    proven = prover.prove(after, _LINE).line if after.legal_moves else ()
    return tuple(after.push_pdn(step.text) for step in proven)


def _better(answer: Decision) -> Move:
    """A move that keeps the value."""
    return next(move for move in answer.board.distinct_moves if answer.value_of(move) == answer.best)


def _blunder(answer: Decision, reason: Reason | None) -> Blunder:
    assert answer.move is not None
    was, became = (OUTCOMES[1 - value] for value in answer.change)
    board = answer.board
    return {
        "player": answer.player,
        "fen": board.fen(),
        "move": board.pdn(answer.move),
        "was": was,
        "became": became,
        "better": board.pdn(_better(answer)),
        "kind": None if reason is None else reason.kind.value,
        "reason": None if reason is None else reason.text,
    }


def _print(figures: BlundersFigures) -> None:
    console = Console()
    for player in figures["players"]:
        title = player["player"]
        table = Table("pieces", "decisions", "blunders", "share", "win→draw", "win→loss", "draw→loss", title=title)
        lines: list[tuple[str, BlunderCounts]] = [(str(line["pieces"]), line) for line in player["by_pieces"]]
        for pieces, line in [*lines, ("all", player)]:
            numbers = pieces, str(line["positions"]), str(line["blunders"]), f"{line['share']:.2%}"
            table.add_row(*numbers, str(line["win_to_draw"]), str(line["win_to_loss"]), str(line["draw_to_loss"]))
        console.print(table)
    blunders = figures["blunders"]
    for one in blunders[:_SHOWN]:
        text = f"{one['player']}: {one['fen']} {one['move']}: a {one['was']} became a {one['became']}"
        text = f"{text}. {one['reason']}" if one["reason"] else text
        console.print(text, highlight=False)
    if len(blunders) > _SHOWN:
        console.print(f"and {len(blunders) - _SHOWN} more: see --json")
    for reason in figures["unread"][:_SHOWN]:
        console.print(f"Left out: {reason}", highlight=False, soft_wrap=True)
