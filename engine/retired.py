"""Settings that stored files still name and the program no longer has.

What a run or the board's preferences stored stays readable when a setting goes: it is dropped, or becomes the one that
took its place. Nobody can set them any more.
"""

from collections.abc import Mapping
from typing import Any

RETIRED_SEARCH = frozenset(
    {
        "root",  # puct or gumbel; the Gumbel root played 92 to 141 Elo below PUCT
        "gumbel_considered",
        "gumbel_scale",
        "c_visit",
        "c_scale",
        "rescale_q",
        "oracle_pieces",  # a setting of the oracle ``network``, which gained nothing beside tables
        "oracle_confidence",
    }
)
"""Fields that a ``SearchConfig`` had."""

_RUNTIMES = ("onnxruntime", "openvino")  # each also with a precision, like ``openvino-int8``


def present_oracle(name: Any) -> Any:
    """The oracle of a search that stands for a stored one."""
    return "tablebase" if name == "network" else name


def present_backend(name: Any) -> Any:
    """The backend of inference that stands for a stored one."""
    return "auto" if isinstance(name, str) and name.partition("-")[0] in _RUNTIMES else name


def present_search(fields: Any) -> Any:
    """The stored fields of a search without those that are gone; anything but a mapping comes back as it is."""
    if not isinstance(fields, Mapping):
        return fields
    kept = {name: value for name, value in fields.items() if name not in RETIRED_SEARCH}
    return kept | {"oracle": present_oracle(kept["oracle"])} if "oracle" in kept else kept
