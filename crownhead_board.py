"""The commands with a board: what ``gui`` gets from packages that it must not import."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.game import ENGLISH, check_game
from selfplay.command_line.options import Json
from selfplay.requests import PlayRequest

if TYPE_CHECKING:
    from engine.board import Board
    from engine.players import HubPlayer, Player
    from gui.game.endgame_info import OracleAnswer
    from gui.game.opponents import CheckpointEntry, OpponentSpec


def play(request: PlayRequest) -> None:
    """Plays a game in the terminal, or opens the board."""
    if request.text:
        from selfplay.text_play import text_play

        text_play(request)
        return
    check_game("the window's board", ENGLISH)
    from engine.fen import START_FEN
    from gui.app import run
    from gui.game.match_series import MatchTools
    from gui.game.opponents import Opponents
    from gui.launch import plan_for, spec_of

    plan = None
    if request != PlayRequest(menu=request.menu, puzzles=request.puzzles):
        spec = spec_of(request.opponent or "champion", request.simulations, request.seconds, request.backend)
        if spec.checkpoint is not None:  # a bad checkpoint is reported before a window opens
            from learner.checkpoint import read_info
            from selfplay.players import checkpoint_folder

            check_game(spec.checkpoint, read_info(checkpoint_folder(spec.checkpoint)).game)
        elif spec.kind == "external":
            _make_engine(spec)  # raises if there is no such program; it is started beside the window
        plan = plan_for(spec, request.side or "black", request.fen or START_FEN)
    tools = MatchTools(_match_openings, _match_elo)
    options: dict[str, Any] = {"plan": plan, "menu": request.menu, "match_tools": tools}
    if request.puzzles is not None:
        from engine.puzzles.book import read_book

        book = read_book(request.puzzles)  # a bad file is reported before a window opens
        options |= {"puzzles": lambda: book.puzzles, "first": "puzzles"}
    run(Opponents(make_network, start_engine, find_networks), ask_oracle, **options)


def make_network(spec: "OpponentSpec") -> "Player":
    """Makes a network player for ``gui``, which does not import torch."""
    from secrets import randbits

    from engine.board import Board
    from engine.players import WatchablePlayer
    from selfplay.conditions import Conditions
    from selfplay.machines.compiling import made_beside_compiling

    seconds = spec.seconds if spec.timed else None
    conditions = Conditions(seconds=seconds, search=spec.search, explore=spec.vary, seed=randbits(32))

    def make() -> "Player":
        from selfplay.players import make_player

        return make_player(spec.player, conditions)

    player = made_beside_compiling(make)
    board = Board()
    for _ in range(2):  # what a first search, and one that keeps a tree, still compile is not time of a clock
        if isinstance(player, WatchablePlayer):
            player.begin(board).advance(0.0)
        else:
            player.choose([board])
        board.push(board.legal_moves[0])
    return player


def _make_engine(spec: "OpponentSpec") -> "HubPlayer":
    from engine.players import HubPlayer

    return HubPlayer(spec.command or "", spec.seconds)


def start_engine(spec: "OpponentSpec") -> "Player":
    """Makes the player of an external engine for ``gui`` and starts it: getting ready is not time of its clock."""
    player = _make_engine(spec)
    player.start()
    return player


def find_networks() -> "list[CheckpointEntry]":
    """The networks that the menu of ``gui`` offers."""
    from gui.game.opponents import CheckpointEntry
    from selfplay.players import rated_networks

    return [
        CheckpointEntry(f"{run} {folder.name}", str(folder), elo, error, f"Promoted network of {folder.parent.parent}")
        for run, folder, elo, error in rated_networks()
    ]


def _match_openings(text: str, number: int, seed: int) -> "list[Board]":
    """The openings of matches in ``gui``."""
    from selfplay.games.openings import make_openings

    return [opening.board for opening in make_openings(text, number, seed)]


def _match_elo(results: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Elo of the first player of a match in ``gui``, and half of its 95 % interval."""
    from selfplay.rating.elo import Tally

    tally = Tally()
    for scores in results:
        tally.add(scores)
    return tally.elo_diff()[:2]


def ask_oracle(board: "Board") -> "OracleAnswer":
    """The endgame oracle's answer, for ``gui``."""
    from selfplay.knowledge import shared_oracle

    return shared_oracle().probe(board)


def annotate(
    games: Annotated[Path, typer.Argument(help="Games in PDN.")],
    out: Annotated[
        Path | None, typer.Option(help="File for the annotated copy; GAMES with the ending .annotated.pdn if left out.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.05, max=600, help="Seconds of search per position.")] = 0.2,
    quiet: Json = False,
) -> Any:
    """Annotate every game of a file by the champion: write a copy with glyphs, evaluations and better moves.

    After an interruption run it again to continue; at most one game is lost.
    """
    from gui.annotate_command import annotate_command
    from gui.game.opponents import Opponents

    return annotate_command(games, out, seconds, Opponents(make_network), quiet)
