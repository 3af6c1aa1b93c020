"""Commands and arguments in one line, on Windows too."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import shell_words
from engine.shell_words import split_words


@given(st.lists(st.text(max_size=8), max_size=5))
def test_words_are_those_that_were_joined(words: list[str]) -> None:
    assert split_words(shlex.join(words)) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r"C:\engines\scan.exe hub", [r"C:\engines\scan.exe", "hub"]),
        (r'"C:\my engines\scan.exe" hub', [r"C:\my engines\scan.exe", "hub"]),
        ("runs/a#2 random", ["runs/a#2", "random"]),
    ],
)
def test_on_windows_a_backslash_stands_for_itself(line: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_words, "WINDOWS", True)
    assert split_words(line) == words


def test_a_quotation_must_be_closed() -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        split_words('"scan hub')
