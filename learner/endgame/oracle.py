"""The endgame oracle: calibrated networks, with searches where they are unsure; it can be wrong, tables cannot."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import safetensors.torch
from pydantic import BaseModel, JsonValue, field_validator
from torch import Tensor

from engine.board import Board
from engine.errors import one_line
from engine.sealed import sealed
from engine.version import installed_version

from ..checkpoint import INFO_FILE, CheckpointError, naming_errors, read_fields, whole_folder, write_folder
from ..network_base import NetworkError, check_tensors
from ..report import make_writable_folder
from ..shipped import shipped_weights
from .data import FLAG_NONE, flags_of
from .member import MAX_BOARD_PIECES, UNTESTED_CONFIDENCE, Member, OracleError
from .networks import CARD_FILE, EndgameNetwork, StoredNetwork, load_endgame_network, read_card
from .probabilities import bounded
from .resolve import CHANGED, MOST_EVALUATIONS, PROVEN, Resolved, resolve
from .tree_search import TreeSearch, TreeSettings
from .trust import Beyond
from .validation import OUTCOMES

RULES, NETWORK = "rules", "network"
_NUMBERS = "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"
SEARCHES = ("capture search", *(f"{number}-ply search" for number in _NUMBERS), "tree search")
"""Names of the searches by rounds (``resolve``), and behind them that of the tree search."""
TREE = len(SEARCHES) - 1
SCHEMA_VERSION: Literal[1] = 1
ORACLE_FILE = "oracle.json"
ORACLE_FOLDER = "oracle"  # in the folder of a training, and of what is shipped
_MOST_UNSAID = 7  # pieces that cards from before were calibrated on at the most, when they did not say it


class MemberCard(StoredNetwork):
    """What ``oracle.json`` says of a member (``member.Member``); ``file`` holds its weights, beside ``oracle.json``.

    ``calibrated`` is None in a card from before this was written down: then what it is for, as far as tables reached.
    """

    file: str
    temperature: float
    threshold: float
    rounds: int
    evaluations: int = MOST_EVALUATIONS
    search_temperature: float
    changed_temperature: float | None = None
    calibrated: int | None = None
    beyond: Beyond | None = None

    @field_validator("beyond", mode="before")
    @classmethod
    def _no_older_rule(cls, value: Any) -> Any:
        """Rules of another kind, from before 1.0, are as good as none."""
        return None if isinstance(value, dict) and "doubts" in value else value


class OracleCard(BaseModel, frozen=True, extra="forbid"):
    """Contents of ``oracle.json``: ``figures`` of training and calibration, and the version that wrote it; ``trees`` is
    None where no tree is searched."""

    schema_version: Literal[1] = SCHEMA_VERSION
    members: tuple[MemberCard, ...]
    trees: TreeSettings | None = None
    figures: dict[str, JsonValue]
    created: datetime
    crownhead: str


def save_oracle(
    folder: Path | str,
    members: Sequence[Member],
    figures: Mapping[str, Any] | None = None,
    trees: TreeSettings | None = None,
) -> OracleCard:
    """Writes the members of an oracle and, if it has one, its tree search as a folder, whole or not at all.

    One that is already there is replaced.

    Weights are stored as 16-bit floating-point numbers: half the size, and verdicts change on fewer than one position
    in ten thousand. ``figures``: anything that JSON can hold.

    Raises:
        CheckpointError: it cannot be written; what was there before is still there.
    """
    folder = Path(folder)
    contents: dict[str, bytes] = {}
    cards = []
    for member in members:
        name = f"{member.network.kind}_{member.pieces[0]}_{member.pieces[1]}.safetensors"
        try:
            contents[name] = safetensors.torch.save(_halved(member.network))
        except NetworkError as error:
            raise CheckpointError(f"{folder}: {one_line(error)}") from error
        fields = StoredNetwork.fields_of(member.network, member.pieces, contents[name])
        cards.append(MemberCard(**{**fields, **member.settings}, file=name, calibrated=member.calibrated))
    card = OracleCard(
        members=tuple(cards),
        trees=trees,
        figures=dict(figures or {}),
        created=datetime.now(UTC),
        crownhead=installed_version(),
    )
    contents[ORACLE_FILE] = sealed(card.model_dump(mode="json"))
    check_oracle_place(folder)
    with naming_errors(folder):
        write_folder(folder, contents)
    return card


def check_oracle_place(folder: Path | str) -> None:
    """Raises ``CheckpointError`` if an oracle cannot be written as this folder: told before the work, not after it."""
    folder = Path(folder)
    with naming_errors(folder):
        if folder.exists() and not (folder / ORACLE_FILE).exists():
            raise CheckpointError(f"{folder}: is in the way and no oracle; choose another name or remove it")
        make_writable_folder(folder.parent)


def _halved(network: EndgameNetwork) -> dict[str, Tensor]:
    """The network's tensors, floating-point ones in half precision; raises ``NetworkError`` if one overflows."""
    tensors = {}
    for name, tensor in network.state_dict().items():
        tensor = tensor.detach().contiguous()
        tensors[name] = tensor.half() if tensor.is_floating_point() else tensor
    check_tensors({name: tensor.float() for name, tensor in tensors.items()}, network.state_dict())
    return tensors


def read_oracle_card(folder: Path | str) -> OracleCard:
    """Reads ``oracle.json`` alone; raises ``CheckpointError`` if it is missing, damaged or of another version."""
    return read_fields(whole_folder(Path(folder)) / ORACLE_FILE, OracleCard, SCHEMA_VERSION)


def read_members(folder: Path | str) -> list[Member]:
    """The members of an oracle, their networks ready to judge; raises ``CheckpointError`` if one cannot be read."""
    folder = whole_folder(Path(folder))
    path, members = folder / ORACLE_FILE, []
    for card in read_oracle_card(folder).members:
        network = card.load(folder / Path(card.file).name, path)
        calibrated = min(card.pieces[1], _MOST_UNSAID) if card.calibrated is None else card.calibrated
        try:
            settings = {name: getattr(card, name) for name in Member.SETTINGS}
            members.append(Member(network, **settings, calibrated=calibrated))
        except OracleError as error:
            raise CheckpointError(f"{path}: {error}") from error
    if not members:
        raise CheckpointError(f"{path}: members: there is none")
    return members


def oracle_folder(folder: Path | str) -> Path | None:
    """The folder of the oracle that a folder is, or that a training has left in it; None where there is none."""
    for place in (Path(folder), Path(folder) / ORACLE_FOLDER):
        if (whole_folder(place) / ORACLE_FILE).exists():
            return place
    return None


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

    Args:
        trees: searches what the members' searches leave in doubt; None: nothing does.

    Raises:
        OracleError: no member.
    """

    def __init__(self, members: Sequence[Member], trees: TreeSearch | None = None) -> None:
        if not members:
            raise OracleError("an oracle needs a network")
        self.trees = trees
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
        return [member.settings for member in self.members]

    def member_for(self, pieces: int) -> Member:
        return self.members[self._member_of[pieces]]

    def member_of(self, board: Board) -> Member:
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
        """Judges positions uint32 [N, 4] by captures, and where these leave doubt, by quiet moves, then by a tree."""
        found = self._searched(positions, beyond=True)
        return found if self.trees is None else self._deepened(positions, found, self.trees)

    def stated(self, positions: np.ndarray) -> Resolved:
        """Judges as ``search`` does, with no less confidence beyond the pieces that members were tested on."""
        return self._searched(positions, beyond=False)

    def _searched(self, positions: np.ndarray, beyond: bool) -> Resolved:
        n = len(positions)
        columns = np.empty((n, 3), np.float32), np.empty(n, np.int64), np.empty(n, np.uint8), np.empty(n, np.uint8)
        result = Resolved(*columns)
        for member, places in self._shares(positions):
            own = positions[places]
            part = resolve(own, self.network_probabilities, member.rounds, member.threshold, member.evaluations)
            part = part._replace(probabilities=member.believed(part, own if beyond else None))
            for column, values in zip(result, part, strict=True):
                column[places] = values
        return result

    def _deepened(self, positions: np.ndarray, found: Resolved, trees: TreeSearch) -> Resolved:
        for row in trees.wanted(positions, found.probabilities):
            shares, simulations, proven = trees.judged(positions[row], found.probabilities[row])
            found.probabilities[row], found.rounds[row] = shares, TREE
            found.evaluations[row] += simulations
            found.ways[row] = PROVEN if proven else CHANGED
            further = int(np.bitwise_count(positions[row, 0] | positions[row, 1])) - trees.calibrated
            if further > 0 and not proven:
                found.probabilities[row] = self._bounded(shares, further)
        return found

    def _bounded(self, shares: np.ndarray, further: int) -> np.ndarray:
        """``shares`` float32 [3] of a tree of ``further`` pieces more than any that its weights were fitted on."""
        beyond = self.members[-1].beyond
        most = UNTESTED_CONFIDENCE if beyond is None else beyond.most**further
        return bounded(shares[np.newaxis], most)[0]

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
        if found.ways[0] != PROVEN:
            pieces, member = len(board.piece_map()), self.member_of(board)
            trees = self.trees if found.rounds[0] == TREE else None
            if pieces > (member.edge if trees is None else trees.calibrated):
                source = f"{source}, never tested on {pieces} pieces"
            elif not member.calibrated:
                source = f"{source}, not calibrated"
        return Answer((win, draw, loss), OUTCOMES[1 - int(found.values[0])], max(win, draw, loss), source)


def open_oracle(folder: Path | str | None = None, trees: bool = True) -> Oracle:
    """The oracle in a folder, or one of the network in it: an endgame network's, or a self-play checkpoint's.

    A network alone comes uncalibrated, with the default threshold (``Member``).

    Args:
        folder: None for the oracle that is shipped.
        trees: whether it searches trees, if it can; these take tenths of a second and some hundred megabytes.

    Raises:
        CheckpointError: a file is missing, damaged, of another version, or none of these.
    """
    folder = shipped_folder() if folder is None else folder
    place = oracle_folder(folder)
    if place is not None:
        settings = read_oracle_card(place).trees if trees else None
        return Oracle(read_members(place), None if settings is None else TreeSearch(settings))
    whole = whole_folder(Path(folder))
    if not (whole / INFO_FILE).exists() and not (whole / CARD_FILE).exists():
        raise CheckpointError(f"{folder}: holds no {ORACLE_FILE}, {CARD_FILE} or {INFO_FILE}: name a folder with one")
    network = load_endgame_network(folder)
    pieces = () if (whole / INFO_FILE).exists() else (read_card(folder).pieces,)
    return Oracle([Member(network, *pieces)])


def shipped_folder() -> Path:
    """The folder of the oracle that comes with the program; raises ``CheckpointError`` if there is none."""
    try:
        place = oracle_folder(shipped_weights())
    except ModuleNotFoundError:
        place = None
    if place is None:
        raise CheckpointError("no oracle comes with this installation: name one with --net, or train one")
    return place
