"""How an oracle is believed about more pieces than its tables have: ``trust``, from what its smaller networks did."""

from collections.abc import Callable, Sequence
from functools import partial

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


def rule_beyond(
    members: Sequence[Member], source: Questions, report: Callable[[str, float], object] = lambda what, share: None
) -> Beyond | None:
    """How the last member is believed about more pieces than it was calibrated on; see ``trust``.

    The same is done for the member before, as if there were no larger tables, to test it one piece further on.

    Args:
        report: told what is done, and what share of it.

    Returns:
        None for a member alone.
    """
    further = _further(members, source, partial(report, "confidence about more pieces"))
    if further is None:
        return None
    before = members[:-1]
    pieces = before[-1].edge + 1
    batch = source.draw(pieces, pieces, _TESTED)
    found, close = Oracle(before).stated(batch.positions), is_close(batch.positions)
    rule = Beyond(further=further, most=surest_right(found, batch.classes), pieces=pieces, positions=len(close))
    known = _further(before, source, partial(report, "the same, to test it"))
    if known is None:
        return rule
    tried = rule.model_copy(update={"further": known, "most": 1.0})
    shares = tried.applied(found, np.ones(len(close), np.int64), close)
    return rule.model_copy(update={"tested": error_of(shares, batch.classes)})


def _further(
    members: Sequence[Member], source: Questions, report: Callable[[float], object]
) -> tuple[Further, ...] | None:
    """``Beyond.further`` of the last member, from values of no more pieces than its own."""
    edge = members[-1].edge
    distances = [(abs(member.edge - (edge - 2)), i) for i, member in enumerate(members[:-1]) if member.edge < edge]
    if not distances:
        return None
    smaller = min(distances)[1]  # for two pieces less, even or odd as well; if there is none, the nearest
    asked = [(smaller, pieces) for pieces in range(members[smaller].edge, edge + 1)]
    asked.append((len(members) - 1, edge))
    total, mistakes = len(asked) + _FURTHER, list[Mistakes]()
    for done, (last, pieces) in enumerate(asked):
        report(done / total)
        mistakes.append(_mistakes(members[: last + 1], pieces, source))
    oracle, found = Oracle(members), []
    for times, errors in enumerate(expected_mistakes(mistakes[-1], mistakes[:-1], _FURTHER), 1):
        report((len(asked) + times - 1) / total)
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
