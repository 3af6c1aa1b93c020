"""Repeats held keys. Only keys that move or delete something repeat; typed characters do not. No pygame."""

DELAY_S, INTERVAL_S = 0.35, 0.06
_MOVING = frozenset({"left", "right", "up", "down", "page up", "page down", "tab", "shift+tab"})
KEYS = _MOVING | {",", ".", "backspace", "delete"}


class KeyRepeat:
    """Decides when a held key acts again.

    After reading its events, the window tells whether the key is still held. So a long frame, during which a release of
    the key is not noticed, repeats nothing.
    """

    def __init__(self) -> None:
        self.key: int | None = None  # pygame's number of the key that may repeat
        self._due = 0.0

    def press(self, key: int, name: str, now: float) -> None:
        """Notes that a key was pressed; ``key``: number, ``name``: its ``gui.help`` combination, ``now``: seconds."""
        self.key, self._due = (key if name in KEYS else None), now + DELAY_S

    def due(self, held: bool, now: float) -> bool:
        """Whether the key acts again now; ``held``: whether it is still held."""
        if not held:
            self.key = None
        if self.key is None or now < self._due:
            return False
        self._due = now + INTERVAL_S
        return True

    def wait_ms(self, most: int, now: float) -> int:
        """Milliseconds to wait for events: until the next repetition, at most ``most``."""
        return most if self.key is None else max(1, min(most, round(1000 * (self._due - now))))
