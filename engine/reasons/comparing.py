"""Two moves compared by the material that can be forced after each."""

from typing import NamedTuple

from ..board import Board, Move
from ..players.evaluation import LEAST_WIN
from .fault import Fault, behind
from .material import KING, MAN, MaterialSearch, Prospect

_MOST = 12 * KING  # that can be won without winning the game
_DECIDED = 4 * _MOST  # a game that is won or lost, however long it takes


class Gap(NamedTuple):
    """What the played move is worse by, for every depth from ``played.depth`` on.

    Attributes:
        played, better: prospects of the opponent after the move played and after the better one, with the same depth.
        refutation, continuation: the moves that lead to them.
    """

    played: Prospect
    better: Prospect
    refutation: tuple[Move, ...]
    continuation: tuple[Move, ...]


def gap_of(search: MaterialSearch, fault: Fault) -> Gap | None:
    """The difference that lasts to the last depth searched, at the least depth that shows it; None if there is none.

    Two depths at least have to show it: with a single one a recapture may lie beyond the horizon.
    """
    after, instead = behind(fault.board, fault.move), behind(fault.board, fault.better)
    if not after.legal_moves or not instead.legal_moves:
        return None
    pairs = _paired(search.prospects(after), search.prospects(instead))
    place = _first_lasting([_score(played) - _score(better) for played, better in pairs])
    if place is None:
        return None
    played, better = pairs[place]
    refutation = _favoured(search, after, played, fault.reply) or search.line(after, played)
    continuation = search.line(instead, better)
    if refutation is None or continuation is None:
        return None
    return Gap(played, better, refutation, continuation)


def _first_lasting(gaps: list[int]) -> int | None:
    """The first of the gaps from which on all are worth as many pieces as the last two; None if the last are nothing.

    A gap of less than a man counts as it is, and a game that is decided as a man, so that the first loss is told.
    """
    if len(gaps) < 2 or (lasting := min(gaps[-2:])) <= 0:
        return None
    wanted = MAN if lasting > _MOST else max(1, lasting - lasting % MAN)
    first = len(gaps)
    while first > 0 and gaps[first - 1] >= wanted:
        first -= 1
    return next(place for place in range(first, len(gaps)) if gaps[place] <= lasting)


def _paired(played: list[Prospect], better: list[Prospect]) -> list[tuple[Prospect, Prospect]]:
    """Prospects of the same depths; a decided game stays decided with every greater depth."""
    depth = max(len(played), len(better))
    for found in (played, better):
        if abs(found[-1].score) <= LEAST_WIN:
            depth = min(depth, len(found))
    return [(played[min(i, len(played) - 1)], better[min(i, len(better) - 1)]) for i in range(depth)]


def _score(prospect: Prospect) -> int:
    if abs(prospect.score) > LEAST_WIN:
        return _DECIDED if prospect.score > 0 else -_DECIDED
    return prospect.score


def _favoured(search: MaterialSearch, after: Board, played: Prospect, reply: tuple[Move, ...]) -> tuple[Move, ...]:
    """A line that begins with the expected reply, if that refutes the move as well; else ()."""
    if not reply or played.depth < 2 or abs(played.score) > LEAST_WIN:
        return ()
    replied = behind(after, reply[0])
    if not replied.legal_moves:
        return ()
    answered = search.prospects(replied, played.depth - 1)[-1]
    if answered.score != -played.score:
        return ()
    line = search.line(replied, answered)
    return (reply[0], *line) if line is not None else ()
