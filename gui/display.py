"""Starting pygame, and why there may be no display to open a window on."""

import os

import pygame

from engine.errors import DraughtsError

from .menus import forget_fonts
from .views.sounds import quiet_libraries

_INVISIBLE = ("offscreen", "dummy")  # video drivers that SDL uses if there is no screen
_NO_DISPLAY = "no display to open a window on (crownhead play --text needs none)"


class WindowError(DraughtsError):
    """No window can be opened, because there is no display."""


def start_pygame() -> None:
    """Initialises the parts of pygame that the window needs; raises ``WindowError`` if there is no display."""
    # Only X11 uses this: with the DirectColor visual that SDL prefers there, screenshots would be black.
    os.environ.setdefault("SDL_VIDEO_X11_NODIRECTCOLOR", "1")
    os.environ.setdefault("SDL_VIDEO_X11_WMCLASS", "crownhead")
    try:
        with quiet_libraries():
            pygame.display.init()
    except pygame.error as error:
        raise WindowError(f"{_NO_DISPLAY}: {_what_is_missing()} ({error})") from None
    if not os.environ.get("SDL_VIDEODRIVER") and pygame.display.get_driver() in _INVISIBLE:
        pygame.display.quit()
        raise WindowError(f"{_NO_DISPLAY}: {_what_is_missing()}")
    driver = os.environ.get("SDL_AUDIODRIVER")
    os.environ["SDL_AUDIODRIVER"] = "dummy"  # ``Sounds`` opens the audio device itself and reports if there is none
    pygame.init()  # pygame-menu needs the rest of pygame initialised
    forget_fonts()
    pygame.mixer.quit()
    pygame.joystick.quit()  # while text input is on, waiting for events costs processor time
    if driver is None:
        del os.environ["SDL_AUDIODRIVER"]
    else:
        os.environ["SDL_AUDIODRIVER"] = driver


def _what_is_missing() -> str:
    display = os.environ.get("DISPLAY")
    if display:
        return f"the display {display}, which DISPLAY names, cannot be reached"
    return "this session has no screen; on Linux, DISPLAY is not set"
