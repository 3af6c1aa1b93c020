"""Which held keys repeat, and when."""

import pytest

from gui.key_repeat import DELAY_S, INTERVAL_S, KeyRepeat


@pytest.mark.parametrize("name", ["1", "-", "x", "u", "return", "ctrl+z", "r", "escape"])
def test_what_acts_does_so_once(name: str) -> None:
    repeat = KeyRepeat()
    repeat.press(7, name, 0.0)
    assert repeat.key is None
    assert not any(repeat.due(True, second / 10) for second in range(50))
    assert repeat.wait_ms(100, 0.0) == 100


@pytest.mark.parametrize("name", ["left", "down", "page up", "tab", ".", "backspace"])
def test_what_moves_about_repeats_while_it_is_held(name: str) -> None:
    repeat = KeyRepeat()
    repeat.press(7, name, 10.0)
    assert repeat.key == 7
    assert not repeat.due(True, 10.0 + DELAY_S - 0.01)
    assert repeat.wait_ms(100, 10.0 + DELAY_S - 0.01) == 10
    assert repeat.wait_ms(100, 10.0) == 100
    assert repeat.due(True, 10.0 + DELAY_S)
    assert not repeat.due(True, 10.0 + DELAY_S + INTERVAL_S / 2)
    assert repeat.due(True, 10.0 + DELAY_S + INTERVAL_S + 0.001)
    assert not repeat.due(False, 12.0)
    assert not repeat.due(True, 13.0)  # let go and, for all it knows, another key since


def test_a_slow_frame_repeats_nothing_that_was_let_go_in_it() -> None:
    repeat = KeyRepeat()
    repeat.press(7, "left", 0.0)
    assert not repeat.due(False, 2.0)
    repeat.press(7, "left", 3.0)
    repeat.press(8, "1", 3.1)
    assert not repeat.due(True, 9.0)
