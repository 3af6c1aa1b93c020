"""Parts of a pair: their order, and that solving them one by one gives the same values."""

import numpy as np
import pytest

from engine.bitboard import NUM_SQUARES, squares_of
from engine.tablebase import solver
from engine.tablebase.dense import DenseTables
from engine.tablebase.layout import Layout, layout_of, placements
from engine.tablebase.material import Material, pairs_up_to
from engine.tablebase.parts import parts_of, waves_of
from engine.tablebase.solver import Workers, jobs_of

PAIRS = pairs_up_to(6)


def parts_ahead(layout: Layout, part: int) -> list[int]:
    """The parts to which a step of a man of kind ``lead`` leads from ``part``."""
    lead = parts_of(layout).lead
    if lead is None:
        return []
    table = placements(lead, layout.counts[lead])
    return np.unique(table.ranks[table.first[part] : table.first[part + 1]]).tolist()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_each_part_is_in_one_wave_behind_those_that_it_leads_to(pair: Material) -> None:
    layout = layout_of(pair)
    parts, waves = parts_of(layout), waves_of(layout)
    wave_of = {part: number for number, wave in enumerate(waves) for part in wave}
    assert sorted(wave_of) == list(range(parts.total)) == sorted(part for wave in waves for part in wave)
    assert parts.total * parts.words == layout.words
    assert all(wave_of[ahead] < wave_of[part] for part in wave_of for ahead in parts_ahead(layout, part))


def test_parts_follow_the_men() -> None:
    """Two men against two kings: a part for each placement of the men; those furthest ahead come first."""
    layout = layout_of(Material(0, 2, 2, 0))
    parts, waves = parts_of(layout), waves_of(layout)
    assert (parts.lead, parts.total) == (2, 28 * 27 // 2)
    masks = placements(2, 2).masks
    rows = [[sum(square // 4 for square in squares_of(int(masks[part]))) for part in wave] for wave in waves]
    assert rows == [sorted(wave) for wave in rows]
    assert [set(wave) for wave in rows] == [{total} for total in range(2, 15)]
    assert max(max(squares_of(int(mask))) for mask in masks) == NUM_SQUARES - 1


def test_without_men_there_is_one_part() -> None:
    layout = layout_of(Material(0, 3, 0, 2))
    assert parts_of(layout) == (None, 1, layout.words)
    assert waves_of(layout) == [[0]]
    assert parts_ahead(layout, 0) == []


def test_small_parts_are_solved_together() -> None:
    assert list(jobs_of([3, 5, 6, 9, 11], 1 << 17)) == [[3, 5], [6, 9], [11]]
    assert list(jobs_of([3, 5], 1 << 30)) == [[3], [5]]


def test_any_number_of_threads_finds_the_same_in_parts_and_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads, whole in [(1, solver.WHOLE_WORDS), (1, 0), (2, 0), (5, 0)]:
        monkeypatch.setattr(solver, "WHOLE_WORDS", whole)
        tables = DenseTables(4)
        with Workers(threads) as workers:
            found.append([np.stack(tables.solve(pair, workers)) for pair in pairs_up_to(4)])
    for others in found[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(found[0], others, strict=True))
