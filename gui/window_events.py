"""The events of the window: waiting for them, held keys that repeat, waking the loop from other threads."""

import contextlib
import time

import pygame

from .key_repeat import KeyRepeat
from .views.scene import key_of

FRAMES_PER_SECOND = 60
BUSY_WAIT_MS = 33  # longest wait for events while a search runs
IDLE_WAIT_MS = 100  # longest wait for events otherwise, for clocks and tooltips


class WindowEvents:
    """Reads the events of the window, once per frame."""

    def __init__(self) -> None:
        self._frames = pygame.time.Clock()
        self._repeat = KeyRepeat()
        self._held: pygame.event.Event | None = None  # the key last pressed

    def next(self, lively: bool, busy: bool) -> list[pygame.event.Event]:
        """The events since the last call, and that of a held key if it is time to repeat it.

        Args:
            lively: whether something is animated: waits for the next frame. Otherwise it waits for the first event.
            busy: whether a search runs, whose progress is to be shown soon.
        """
        if lively:
            self._frames.tick(FRAMES_PER_SECOND)
            events = pygame.event.get()
        else:
            first = pygame.event.wait(self._repeat.wait_ms(BUSY_WAIT_MS if busy else IDLE_WAIT_MS, time.monotonic()))
            events = [first, *pygame.event.get()] if first.type != pygame.NOEVENT else []
        return _without_passing_motions([*events, *self._repeated(events)])

    def _repeated(self, events: list[pygame.event.Event]) -> list[pygame.event.Event]:
        now = time.monotonic()
        for event in events:
            if event.type == pygame.KEYDOWN:
                self._repeat.press(event.key, key_of(event), now)
                self._held = event
        key = self._repeat.key
        if key is None or self._held is None or not self._repeat.due(pygame.key.get_pressed()[key], now):
            return []
        return [self._held]


def _without_passing_motions(events: list[pygame.event.Event]) -> list[pygame.event.Event]:
    """The events, with only the last of several consecutive motions."""
    kept: list[pygame.event.Event] = []
    for event in events:
        if kept and event.type == kept[-1].type == pygame.MOUSEMOTION:
            kept[-1] = event
        else:
            kept.append(event)
    return kept


def wake() -> None:
    """Ends the wait for events; may be called by any thread."""
    with contextlib.suppress(pygame.error):  # the window is closed
        pygame.event.post(pygame.event.Event(pygame.USEREVENT))
