"""The endgame oracle: calibrated networks, with searches where they are unsure; it can be wrong, tables cannot."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.board import Board

from ..checkpoint import INFO_FILE, CheckpointError, whole_folder
from .data import FLAG_NONE, flags_of
from .member import MAX_BOARD_PIECES, UNTESTED_CONFIDENCE, Member, OracleError, log_probabilities, softmax
from .networks import CARD_FILE, EndgameNetwork, load_endgame_network, read_card
from .oracle_files import ORACLE_FILE, oracle_folder, read_members
from .resolve import Resolved, resolve
from .validation import OUTCOMES

RULES, NETWORK = "rules", "network"
SEARCHES = ("capture search", *(f"{number}-ply search" for number in ("one", "two", "three", "four", "five", "six")))
"""Names of the searches by rounds (``resolve``)."""
SHIPPED_PACKAGE = "checkpoints"


class Answer(NamedTuple):
    """What the oracle says of one position, seen by its side to move.

    Attributes:
        wdl: probabilities of win, draw, loss.
        verdict: "win", "draw" or "loss", the most probable; its probability is the ``confidence``.
        source: how it was reached: ``RULES`` where the game is over or the opponent has nothing left, ``NETWORK``, or
            one of ``SEARCHES``; then, where it applies, ", not calibrated" or ", never tested on N pieces".
    """

    wdl: tuple[float, float, float]
    verdict: str
    confidence: float
    source: str


class Oracle:
    """Judges endgames by its members' networks and searches.

    A position belongs to the member for the fewest pieces that is still for as many as it has, else to the last one.
    So do positions that a search reaches; threshold and rounds are those of the position searched.

    Raises:
        OracleError: no member.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        if not members:
            raise OracleError("an oracle needs a network")
        self.members = tuple(sorted(members, key=lambda member: member.pieces[1]))
        ends = [member.pieces[1] for member in self.members]
        self._member_of = np.minimum(np.searchsorted(ends, range(MAX_BOARD_PIECES + 1)), len(ends) - 1)

    @property
    def parameters(self) -> int:
        """Number of learned numbers of all networks."""
        return sum(member.network.parameter_count for member in self.members)

    @property
    def networks(self) -> list[tuple[EndgameNetwork, tuple[int, int]]]:
        """The networks, each with the fewest and most pieces it is for."""
        return [(member.network, member.pieces) for member in self.members]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """How each network is used (``Member.settings``)."""
        return [member.settings for member in self.members]

    def member_for(self, pieces: int) -> Member:
        """The member that positions with ``pieces`` pieces belong to."""
        return self.members[self._member_of[pieces]]

    def member_of(self, board: Board) -> Member:
        """The member that a position belongs to."""
        return self.member_for(len(board.piece_map()))

    def _shares(self, positions: np.ndarray) -> list[tuple[Member, np.ndarray]]:
        """Each member with the places of its positions."""
        owners = self._member_of[np.bitwise_count(positions[:, 0] | positions[:, 1])]
        shares = [(member, np.flatnonzero(owners == i)) for i, member in enumerate(self.members)]
        return [(member, places) for member, places in shares if len(places)]

    def network_probabilities(self, positions: np.ndarray) -> np.ndarray:
        """Calibrated win, draw, loss float32 [N, 3] of positions uint32 [N, 4] by the networks alone."""
        probabilities = np.empty((len(positions), 3), np.float32)
        for member, places in self._shares(positions):
            probabilities[places] = member.probabilities(positions[places])
        return probabilities

    def capture_search(self, positions: np.ndarray) -> Resolved:
        """Judges positions uint32 [N, 4] by what their captures, and the answers to threatened ones, lead to."""
        return resolve(positions, self.network_probabilities)

    def search(self, positions: np.ndarray) -> Resolved:
        """Judges positions uint32 [N, 4] by captures, and where these leave doubt, by quiet moves as well."""
        n = len(positions)
        result = Resolved(np.empty((n, 3), np.float32), np.empty(n, np.int64), np.empty(n, np.uint8))
        for member, places in self._shares(positions):
            part = resolve(positions[places], self.network_probabilities, member.rounds, member.threshold)
            searched = part.rounds > 0
            logs = log_probabilities(part.probabilities[searched])
            part.probabilities[searched] = softmax(logs, member.search_temperature)
            for column, values in zip(result, part, strict=True):
                column[places] = values
        return result

    def probe(self, board: Board) -> Answer:
        """Judges the position on a board; repetitions and the plies since a capture count only if they end the game."""
        outcome = board.outcome()
        if outcome is not None:
            value = 0 if outcome.winner is None else 1 if outcome.winner is board.turn else -1
            win, draw, loss = (float(value == v) for v in (1, 0, -1))
            return Answer((win, draw, loss), OUTCOMES[1 - value], 1.0, RULES)
        position = np.array([[*board.words(), 0]], np.uint32)
        found = self.search(position)
        win, draw, loss = found.probabilities[0].tolist()
        quiet = flags_of(position)[0] == FLAG_NONE
        source = SEARCHES[found.rounds[0]]
        if quiet and found.rounds[0] == 0:
            source = NETWORK if found.evaluations[0] else RULES  # an opponent without pieces
        if found.evaluations[0]:  # else the rules alone have decided
            pieces, member = len(board.piece_map()), self.member_of(board)
            if not member.tested(pieces):
                source = f"{source}, never tested on {pieces} pieces"
                win, draw, loss = _bounded(found.probabilities[0], UNTESTED_CONFIDENCE).tolist()
            elif not member.calibrated:
                source = f"{source}, not calibrated"
        return Answer((win, draw, loss), OUTCOMES[1 - int(found.values[0])], max(win, draw, loss), source)


def _bounded(probabilities: np.ndarray, most: float) -> np.ndarray:
    """Probabilities float32 [3], moved as far towards a third each as leaves none larger than ``most``."""
    third, largest = 1 / 3, float(probabilities.max())
    weight = min(1.0, (most - third) / max(largest - third, 1e-9))
    return weight * probabilities + np.float32((1 - weight) * third)


def open_oracle(folder: Path | str | None = None) -> Oracle:
    """The oracle in a folder, or one of the network in it: an endgame network's, or a self-play checkpoint's.

    A network alone comes uncalibrated, with the default threshold (``Member``).

    Args:
        folder: None for the oracle that is shipped.

    Raises:
        CheckpointError: a file is missing, damaged, of another version, or none of these.
    """
    folder = shipped_folder() if folder is None else folder
    place = oracle_folder(folder)
    if place is not None:
        return Oracle(read_members(place))
    whole = whole_folder(Path(folder))
    if not (whole / INFO_FILE).exists() and not (whole / CARD_FILE).exists():
        raise CheckpointError(f"{folder}: holds no {ORACLE_FILE}, {CARD_FILE} or {INFO_FILE}: name a folder with one")
    network = load_endgame_network(folder)
    pieces = () if (whole / INFO_FILE).exists() else (read_card(folder).pieces,)
    return Oracle([Member(network, *pieces)])


def shipped_folder() -> Path:
    """The folder of the oracle that comes with the program; raises ``CheckpointError`` if there is none."""
    try:
        place = oracle_folder(str(files(SHIPPED_PACKAGE)))
    except ModuleNotFoundError:
        place = None
    if place is None:
        raise CheckpointError("no oracle comes with this installation: name one with --net, or train one")
    return place
