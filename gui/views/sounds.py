"""Computes and plays the sounds of moves and of the end of a game."""

import contextlib
import os
from collections.abc import Iterator, Sequence

import numpy as np
import pygame

_RATE = 44_100  # samples per second
_TONES = {"move": (310.0, 0.07), "capture": (230.0, 0.11), "crown": (620.0, 0.22)}  # hertz, seconds
_TUNES = {"won": (392.0, 494.0, 587.0), "lost": (392.0, 330.0, 262.0), "drawn": (392.0, 392.0)}  # hertz of the notes
_NOTE = 0.22  # seconds
_PAUSE = 0.35  # seconds of pause, for the sound of the last move


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silences the messages that libraries write to standard error if there is no audio device or screen."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def knock(hertz: float, seconds: float) -> np.ndarray:
    """The sound of a short wooden knock: int16 [samples, 2]."""
    time = np.arange(round(_RATE * seconds)) / _RATE
    tone = np.sin(2 * np.pi * hertz * time) + 0.5 * np.sin(2 * np.pi * 2.76 * hertz * time)
    fade = np.exp(-time * 7 / seconds) * np.minimum(1.0, time * 800)
    return np.repeat((tone * fade * 9000).astype(np.int16)[:, None], 2, axis=1)


def tune(notes: Sequence[float]) -> np.ndarray:
    """A pause, then one knock after another: int16 [samples, 2]."""
    pause = np.zeros((round(_RATE * _PAUSE), 2), np.int16)
    return np.concatenate([pause, *(knock(hertz, _NOTE) for hertz in notes)])


class Sounds:
    """Plays sounds; the audio device is opened at the first one. ``error`` says in one line why that failed, or is
    ""."""

    def __init__(self) -> None:
        self.error = ""
        self._sounds: dict[str, pygame.mixer.Sound] = {}

    def _open(self) -> None:
        try:
            with quiet_libraries():
                pygame.mixer.init(_RATE, -16, 2, 512, allowedchanges=0)  # the sounds are made for these
            for name, (hertz, seconds) in _TONES.items():
                self._sounds[name] = pygame.sndarray.make_sound(knock(hertz, seconds))
            for name, notes in _TUNES.items():
                self._sounds[name] = pygame.sndarray.make_sound(tune(notes))
        except (pygame.error, ValueError) as error:
            self.error = f"no sound: {error}"

    def play(self, name: str, on: bool) -> None:
        """Plays one of ``_TONES`` and ``_TUNES`` if sounds are ``on`` and the device works."""
        if not on or self.error:
            return
        if not self._sounds:
            self._open()
        if name in self._sounds:
            self._sounds[name].play()
