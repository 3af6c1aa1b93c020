"""How an oracle is believed about more pieces than its tables have: ``trust``, from what its smaller networks did."""

from collections.abc import Sequence

import numpy as np

from .member import Member
from .oracle import Oracle
from .questions import Questions
from .trust import (
    Beyond,
    Further,
    Mistakes,
    error_of,
    expected_mistakes,
    is_close,
    matching_temperature,
    mistakes_of,
    surest_right,
)

_MORE = 3  # times as many positions to count errors on: they are few, and all hangs on them
_FURTHER = 4  # numbers of pieces beyond the calibrated ones for which temperatures are sought
_TESTED, _COUNTED = 1 << 10, 1 << 11  # added to the seed of positions to test on, and of those to count errors on


def rule_beyond(members: Sequence[Member], source: Questions) -> Beyond | None:
    """How the last member is believed about more pieces than it was calibrated on; see ``trust``.

    The same is done for the member before, as if there were no larger tables, to test it one piece further on.

    Returns:
        None for a member alone.
    """
    further = _further(members, source)
    if further is None:
        return None
    before = members[:-1]
    pieces = before[-1].edge + 1
    batch = source.draw(pieces, pieces, _TESTED)
    found, close = Oracle(before).stated(batch.positions), is_close(batch.positions)
    rule = Beyond(further=further, most=surest_right(found, batch.classes), pieces=pieces, positions=len(close))
    known = _further(before, source)
    if known is None:
        return rule
    tried = rule.model_copy(update={"further": known, "most": 1.0})
    shares = tried.applied(found, np.ones(len(close), np.int64), close)
    return rule.model_copy(update={"tested": error_of(shares, batch.classes)})


def _further(members: Sequence[Member], source: Questions) -> tuple[Further, ...] | None:
    """``Beyond.further`` of the last member, from values of no more pieces than its own."""
    edge = members[-1].edge
    distances = [(abs(member.edge - (edge - 2)), i) for i, member in enumerate(members[:-1]) if member.edge < edge]
    if not distances:
        return None
    smaller = min(distances)[1]  # for two pieces less, even or odd as well; if there is none, the nearest
    steps = [_mistakes(members[: smaller + 1], n, source) for n in range(members[smaller].edge, edge + 1)]
    oracle, found = Oracle(members), []
    for times, errors in enumerate(expected_mistakes(_mistakes(members, edge, source), steps, _FURTHER), 1):
        close, others = (
            matching_temperature(oracle.stated(source.fresh(edge + times, kind)), share)
            for kind, share in zip((True, False), errors, strict=True)
        )
        found.append(Further(errors=errors, temperatures=(close, others)))
    return tuple(found)


def _mistakes(members: Sequence[Member], pieces: int, source: Questions) -> Mistakes:
    """Of an oracle of these members, on positions with this number of pieces."""
    batch = source._replace(positions=_MORE * source.positions).draw(pieces, pieces, _COUNTED)
    return mistakes_of(Oracle(members).stated(batch.positions), batch.classes, is_close(batch.positions))
