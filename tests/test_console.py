"""Tables on terminals of every width, in files and in pipes."""

import io

import pytest
from programs import crownhead_here

from engine.console import Console, Table

WORDS = ["champion alphabeta:8 --openings ballots", "3,450", "97.5%"]


def shown(columns: int, terminal: bool) -> list[str]:
    table = Table("match", "games that were played", "score", title="All matches")
    table.add_row(*WORDS)
    file = io.StringIO()
    Console(file=file, width=columns, force_terminal=terminal, color_system=None).print(table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("columns", [70, 80, 200])
def test_headings_are_broken_before_cells(columns: int, terminal: bool) -> None:
    lines = shown(columns, terminal)
    assert lines[-2].replace("│", " ").split() == " ".join(WORDS).split()  # the row is one line
    assert max(map(len, lines)) <= columns
    assert any("games that were played" in line for line in lines) == (columns >= 80)


def test_a_narrow_terminal_gets_a_text_for_each_row() -> None:
    assert " ".join(shown(40, True)) == f"All matches match {WORDS[0]}, games that were played 3,450, score 97.5%"


def test_a_file_gets_the_whole_table() -> None:
    assert shown(40, False) == shown(200, False)


@pytest.mark.parametrize(("said", "width"), [("0", 80), ("33", 33)])
def test_a_width_of_nothing_is_none(said: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", said)
    assert Console(file=io.StringIO()).width == width


def test_help_needs_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    done = crownhead_here("match", "--help")
    assert done.returncode == 0
    assert "--openings" in done.stdout
