"""Two moves compared by the material that can be forced after each."""

from typing import NamedTuple

from ..board import Board, Move
from ..players.evaluation import LEAST_WIN
from .fault import Fault, behind
from .material import KING, MAN, MaterialSearch, Prospect

_MOST = 12 * KING  # largest material score of a game that is not decided
_DECIDED = 4 * _MOST  # score of a won game, however many plies it takes


class Gap(NamedTuple):
    """A difference in material between two moves that every depth from ``played.depth`` on shows.

    Attributes:
        played, better: prospects of the opponent after the played move and after the better one, at the same depth.
        refutation, continuation: moves that lead to ``played`` and to ``better``.
    """

    played: Prospect
    better: Prospect
    refutation: tuple[Move, ...]
    continuation: tuple[Move, ...]


def gap_of(search: MaterialSearch, fault: Fault) -> Gap | None:
    """The difference that lasts up to the last depth searched, at the smallest depth that shows it; else None.

    At least two depths must show it: with a single one, a recapture may be beyond the horizon.
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
    """Index of the first gap that lasts; None if one of the last two gaps is not above 0.

    From this gap on all are as large as the smaller of the last two, in whole men, and the gap itself is not larger. A
    gap of less than a man counts in full. A decided game counts as one man, so that the reason names the first loss.
    """
    if len(gaps) < 2 or (lasting := min(gaps[-2:])) <= 0:
        return None
    wanted = MAN if lasting > _MOST else max(1, lasting - lasting % MAN)
    first = len(gaps)
    while first > 0 and gaps[first - 1] >= wanted:
        first -= 1
    return next(place for place in range(first, len(gaps)) if gaps[place] <= lasting)


def _paired(played: list[Prospect], better: list[Prospect]) -> list[tuple[Prospect, Prospect]]:
    """Pairs of prospects of the same depth; the last prospect of a decided game is repeated for greater depths."""
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
    """A line that begins with the expected reply, if this reply has the same score as ``played``; else ()."""
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
