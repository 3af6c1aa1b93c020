"""The table of shared positions compared with a dictionary, also if it is too small for all of them."""

import numpy as np
import pytest

from engine.search.graph import NO_NODE, enter, find_twin, forget, table_size
from engine.search.tree import NODE

SLOTS, OTHER = 2, 1


def _nodes(rng: np.random.Generator, number: int, positions: int) -> np.ndarray:
    """Evaluated nodes with children, with at most ``positions`` different positions."""
    nodes = np.zeros(number, NODE)
    words = rng.integers(0, 2**32, (positions, 3), dtype=np.uint32)
    drawn = words[rng.integers(positions, size=number)]
    nodes["own"], nodes["opp"], nodes["kings"] = drawn.T
    nodes["judged"], nodes["num_children"] = 1, 2
    return nodes


def _key(node: np.void) -> tuple[int, int, int]:
    return int(node["own"]), int(node["opp"]), int(node["kings"])


@pytest.mark.parametrize("positions", [20, 3000])
def test_a_twin_is_the_first_node_of_its_position(positions: int) -> None:
    nodes = _nodes(np.random.default_rng(positions), 4000, positions)
    table = np.zeros(SLOTS * table_size(len(nodes)), np.int32)
    first: dict[tuple[int, int, int], int] = {}
    for index, node in enumerate(nodes):
        twin = int(find_twin(nodes, table, SLOTS, OTHER, index))
        expected = first.get(_key(node), NO_NODE)
        assert twin == expected or (positions > len(table) // SLOTS and twin == NO_NODE)
        enter(nodes, table, SLOTS, OTHER, index)
        if find_twin(nodes, table, SLOTS, OTHER, index) != NO_NODE:
            first.setdefault(_key(node), index)
    entered = table[len(table) // SLOTS :]
    assert set(entered[entered > 0] - 1) == set(first.values())
    assert len(first) > min(len({_key(node) for node in nodes}) - 1, len(entered) // 2)
    assert not table[: len(table) // SLOTS].any()
    forget(table, SLOTS, OTHER)
    assert not table.any()


@pytest.mark.parametrize(("field", "value"), [("judged", 0), ("reversible", 1), ("num_children", 1)])
def test_what_may_not_be_shared_is_not_entered(field: str, value: int) -> None:
    nodes = _nodes(np.random.default_rng(1), 1, 1)
    nodes[field] = value
    table = np.zeros(table_size(64), np.int32)
    enter(nodes, table, 1, 0, 0)
    assert not table.any()
