"""The games of a gate on disk, so that a run that is killed goes on with them where they stood."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from engine.board import Board
from engine.files import atomic_write
from engine.sealed import sealed, unsealed

from .match import Running
from .openings import Opening

_VERSION = 1
_SAVE_S = 2.0
_LOG = logging.getLogger(__name__)


class GateGames:
    """The moves of a gate's games, those that are over included; one JSON file.

    Args:
        path: of the file; what it says counts only for the same two networks.
        networks: digests of the candidate and of the best network.
        openings: two games each.
    """

    def __init__(self, path: Path, networks: tuple[str, str], openings: Sequence[Opening]) -> None:
        self._path, self._networks, self._openings = path, list(networks), openings
        self._moves: dict[str, list[str]] = {}
        self._saved = time.monotonic()
        if path.exists():
            self._moves = self._read()

    def _read(self) -> dict[str, list[str]]:
        try:
            fields = unsealed(self._path.read_bytes())
            if fields["schema_version"] != _VERSION or fields["networks"] != self._networks:
                return {}
            games = fields["games"]
            for number, moves in games.items():
                self._board(int(number), moves)
            return dict(games)
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            _LOG.warning("%s: the gate begins anew: %s", self._path, error)
            return {}

    def boards(self) -> dict[int, Board]:
        """The boards of games that have begun, by their numbers."""
        return {int(number): self._board(int(number), moves) for number, moves in self._moves.items()}

    def _board(self, number: int, moves: Sequence[str]) -> Board:
        board = self._openings[number // 2].board.copy()
        for move in moves:
            board.push_pdn(move)
        return board

    def note(self, running: Sequence[Running]) -> None:
        """Takes down the moves of games, and writes them now and then; raises ``StorageError``."""
        for game in running:
            moves = game.board.move_stack[game.opening.board.ply :]
            self._moves[str(game.index)] = [str(move) for move in moves]
        if time.monotonic() - self._saved > _SAVE_S:
            fields = {"schema_version": _VERSION, "networks": self._networks, "games": self._moves}
            atomic_write(self._path, sealed(fields))
            self._saved = time.monotonic()
