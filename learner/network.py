"""Networks of all families: made from their configuration, or by the name of a size.

A family is a module (``residual``, ``wide``) that has a configuration with the family's name, a ``Network`` and named
sizes, and kernels in ``inference``. Configurations without a family are residual: they are older than the others.
Families of one's own are made known by ``register_family``; nothing that is read from a file has code imported.
"""

import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, get_args

import torch
from pydantic import BeforeValidator, Discriminator, SerializeAsAny, Tag, ValidationError
from pydantic_core import PydanticCustomError

from engine.encoding import NUM_PLANES, NUM_POLICY
from engine.errors import one_line

from . import residual, wide
from .network_base import COLUMNS, ROWS, FamilyConfig, Network, NetworkError
from .own_modules import import_modules
from .residual import ResidualConfig, ResidualNetwork
from .wide import WideConfig, WideNetwork

_OWN = "own"  # tag of all families but those below
_FAMILIES: dict[str, tuple[type[FamilyConfig], Callable[[Any], Network]]] = {
    "residual": (ResidualConfig, ResidualNetwork),
    "wide": (WideConfig, WideNetwork),
}
_BUILT_IN = tuple(_FAMILIES)
_TAGS = (*_BUILT_IN, _OWN, "constrained-int")  # of families of networks; and of a number that may also be a word


def _tag(config: Any) -> str:
    family = config.get("family", "residual") if isinstance(config, dict) else getattr(config, "family", None)
    return family if family in _BUILT_IN else _OWN


def _own_config(config: Any) -> FamilyConfig:
    """The configuration of a family that was registered, from its fields."""
    if isinstance(config, FamilyConfig):
        return config
    name = str(config.get("family") if isinstance(config, dict) else None)
    if name not in _FAMILIES:
        import_modules()
    if name not in _FAMILIES:
        advice = "name the module that registers it: crownhead --import MODULE ..."
        raise PydanticCustomError("family", f"no family of networks is called {name[:40]!r}; {advice}")
    try:
        return _FAMILIES[name][0].model_validate(config)
    except ValidationError as error:
        first = error.errors()[0]
        raise PydanticCustomError("family", f"{name}: {setting_name(first['loc'])}: {first['msg']}") from error


NetworkConfig = Annotated[
    Annotated[ResidualConfig, Tag("residual")]
    | Annotated[WideConfig, Tag("wide")]
    | Annotated[SerializeAsAny[FamilyConfig], BeforeValidator(_own_config), Tag(_OWN)],
    Discriminator(_tag),
]
"""Configuration of a network of any family."""

NETWORKS: dict[str, NetworkConfig] = {**residual.SIZES, **wide.SIZES}
"""Named sizes of all families."""


def register_family(
    config: type[FamilyConfig],
    network: Callable[[Any], Network],
    sizes: Mapping[str, FamilyConfig] | None = None,
) -> None:
    """Makes a family of networks known, so that they can be stored in checkpoints and named in settings.

    Args:
        config: its class of configurations; the default of ``family`` is the family's name.
        network: the class of its networks, made from a configuration.
        sizes: configurations by names that ``--set network=NAME`` knows.

    Raises:
        NetworkError: ``family`` has no default, or another type than its name; or a name is taken already.
    """
    name = config.model_fields["family"].default
    if not isinstance(name, str) or get_args(config.model_fields["family"].annotation) not in ((), (name,)):
        raise NetworkError(f"{config.__name__}: give family one name, also as its default: family: Literal['x'] = 'x'")
    known = _FAMILIES.get(name)
    if known is not None and known[0].__qualname__ != config.__qualname__:  # else a cell of a notebook, run again
        raise NetworkError(f"a family of networks is called {name!r} already: {known[0].__qualname__}")
    for size in sizes or {}:
        if size in NETWORKS and NETWORKS[size].family != name:
            raise NetworkError(f"a network of the family {NETWORKS[size].family!r} is called {size!r} already")
    _FAMILIES[name] = config, network
    NETWORKS.update(sizes or {})


def maker_of(config: NetworkConfig) -> Callable[[Any], Network]:
    """The class, or another callable, that makes the networks of a configuration."""
    return _FAMILIES[config.family][1]


def make_network(config: NetworkConfig) -> Network:
    """A network of random weights."""
    return maker_of(config)(config)


def try_network(config: NetworkConfig) -> None:
    """Makes a network and lets it judge two positions.

    Raises:
        NetworkError: it cannot be made, fails, or answers in other shapes; says where, in one line.
    """
    try:
        network = make_network(config).eval()
        with torch.no_grad():
            shapes = [tuple(answer.shape) for answer in network(torch.zeros(2, NUM_PLANES, ROWS, COLUMNS))]
    except Exception as error:  # of a family of one's own, whose code may raise anything
        frames = traceback.extract_tb(error.__traceback__)
        place = next((frame for frame in reversed(frames) if "site-packages" not in frame.filename), frames[-1])
        where = f"{place.filename}, line {place.lineno}"
        raise NetworkError(f"network {config.family}: {where}: {type(error).__name__}: {one_line(error)}") from error
    wanted = [(2, NUM_POLICY), (2, 3)]
    if shapes != wanted:
        raise NetworkError(f"network {config.family}: for two positions it answers {shapes}, not {wanted}")


def check_registered(network: Network) -> None:
    """Raises ``NetworkError`` if networks made from this one's configuration are of another class."""
    config = network.config
    known = _FAMILIES.get(config.family) if isinstance(config, FamilyConfig) else None
    if known is None or known[1] is not type(network):
        raise NetworkError(f"{type(network).__name__} belongs to no family that is known: see register_family")


def setting_name(location: Iterable[int | str]) -> str:
    """The dotted name of a setting that pydantic found wrong, without the tags of alternatives."""
    return ".".join(str(part) for part in location if part not in _TAGS)
