"""Networks of all families: made from their configuration, or by the name of a size.

A family is a module (``residual``, ``wide``) that has a configuration with the family's name, a ``Network`` and named
sizes, and kernels in ``inference``. Configurations without a family are residual: they are older than the others.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from . import residual, wide
from .network_base import Network
from .residual import ResidualConfig, ResidualNetwork
from .wide import WideConfig, WideNetwork

_TAGS = ("residual", "wide", "constrained-int")  # of families of networks; and of a number that may also be a word


def _family(config: Any) -> str:
    return str(config.get("family", "residual") if isinstance(config, dict) else getattr(config, "family", None))


NetworkConfig = Annotated[
    Annotated[ResidualConfig, Tag("residual")] | Annotated[WideConfig, Tag("wide")], Discriminator(_family)
]
"""Configuration of a network of any family."""

NETWORKS: dict[str, NetworkConfig] = {**residual.SIZES, **wide.SIZES}
"""Named sizes of all families."""


def make_network(config: NetworkConfig) -> Network:
    """A network of random weights."""
    return ResidualNetwork(config) if isinstance(config, ResidualConfig) else WideNetwork(config)


def setting_name(location: Iterable[int | str]) -> str:
    """The dotted name of a setting that pydantic found wrong, without the tags of alternatives."""
    return ".".join(str(part) for part in location if part not in _TAGS)
