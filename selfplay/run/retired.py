"""Reads configurations of runs that have settings which no longer exist.

A stored ``config.json`` names every setting of its version, also in its stages. Removed settings are dropped or
replaced, so that such a run can still be read, resumed and shown; see ``engine.retired``. This is only for stored
configurations: ``--set`` refuses removed settings.
"""

import logging
from collections.abc import Mapping
from typing import Any

from engine.retired import RETIRED_SEARCH, present_backend, present_oracle, present_search

_LOG = logging.getLogger(__name__)
_SEARCHES = ("search", "match_search")
_RETIRED_LOOP = frozenset({"bucket_steps"})
_RETIRED_GATE = frozenset({"points_factor"})
_DROPPED = frozenset(f"{search}.{name}" for search in _SEARCHES for name in RETIRED_SEARCH) | {
    f"{part}.{name}" for part, names in (("loop", _RETIRED_LOOP), ("gate", _RETIRED_GATE)) for name in names
}
_REPLACED = {
    "selfplay.backend": present_backend,
    "search.oracle": present_oracle,
    "match_search.oracle": present_oracle,
}


def without_retired(fields: Any, source: str) -> Any:
    """Converts the stored fields of a configuration to present settings; anything but a mapping is returned unchanged.

    Args:
        source: name of the configuration in warnings.
    """
    if not isinstance(fields, Mapping):
        return fields
    _warn(fields, source)
    present = dict(fields)
    for search in _SEARCHES:
        if search in present:
            present[search] = present_search(present[search])
    if isinstance(present.get("loop"), Mapping):
        present["loop"] = {name: value for name, value in present["loop"].items() if name not in _RETIRED_LOOP}
    if isinstance(present.get("gate"), Mapping):
        present["gate"] = _present_gate(present["gate"])
    selfplay = present.get("selfplay")
    if isinstance(selfplay, Mapping) and "backend" in selfplay:
        present["selfplay"] = {**selfplay, "backend": present_backend(selfplay["backend"])}
    if isinstance(present.get("stages"), list):
        stages = ((stage, _present_stage(stage)) for stage in present["stages"])
        present["stages"] = [after for before, after in stages if after == before or after["changes"]]
    return present


def _present_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces the old rule ``points`` by ``winrate``.

    It promoted at ``points_factor`` times the points of the best network, with 3 for a win and 1 for a draw.
    """
    present = {name: value for name, value in gate.items() if name not in _RETIRED_GATE}
    factor = gate.get("points_factor", 1.3)
    if gate.get("rule") == "points" and isinstance(factor, int | float) and factor > 0:
        present |= {"rule": "winrate", "win_points": 3.0, "score_threshold": factor / (1 + factor)}
    return present


def _present_stage(stage: Any) -> Any:
    """A stage without changes of removed settings."""
    changes = stage.get("changes") if isinstance(stage, Mapping) else None
    if not isinstance(changes, Mapping):
        return stage
    present = {}
    for key, values in changes.items():
        replace = _REPLACED.get(key)
        now = [replace(value) for value in values] if replace and isinstance(values, list) else values
        if key not in _DROPPED and (now == values or now[0] != now[-1]):
            present[key] = now
    return {**stage, "changes": present}


def _warn(fields: Mapping[str, Any], source: str) -> None:
    searches = [fields[name] for name in _SEARCHES if isinstance(fields.get(name), Mapping)]
    gone = []
    if any(search.get("root") == "gumbel" for search in searches):
        gone.append("with a Gumbel root and continues with PUCT")
    if any(search.get("oracle") == "network" for search in searches):
        gone.append("with a network as endgame oracle and continues with tables")
    if gone:
        _LOG.warning("%s: the run searched %s", source, ", and ".join(gone))
