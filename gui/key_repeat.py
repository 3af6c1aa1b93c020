"""Repetition of held keys. Only keys that move something repeat; typed characters do not. No pygame."""

DELAY_S, INTERVAL_S = 0.35, 0.06
KEYS = frozenset({"left", "right", "up", "down", "page up", "page down", "tab", "shift+tab", ",", "."})


class KeyRepeat:
    """Says when a held key is due again.

    The window tells it, after each look at its events, whether the key is still held: a frame that takes long, in which
    nobody could notice that the key was let go, repeats nothing.
    """

    def __init__(self) -> None:
        self.key: int | None = None  # the window's number of the key that may repeat
        self._due = 0.0

    def press(self, key: int, name: str, now: float) -> None:
        """A key was pressed, by its number and its ``gui.help`` combination; ``now`` in seconds."""
        self.key, self._due = (key if name in KEYS else None), now + DELAY_S

    def due(self, held: bool, now: float) -> bool:
        """Whether the key acts once more now."""
        if not held:
            self.key = None
        if self.key is None or now < self._due:
            return False
        self._due = now + INTERVAL_S
        return True

    def wait_ms(self, most: int, now: float) -> int:
        """Milliseconds to wait for events: until the next repetition, but no more than ``most``."""
        return most if self.key is None else max(1, min(most, round(1000 * (self._due - now))))
