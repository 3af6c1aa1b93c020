"""The clipboard: pygame's own, and what pygame-menu brings where that has none."""

import contextlib

import pygame
import pyperclip  # type: ignore[import-untyped]


def put_text(text: str) -> bool:
    """Copies a text; False if there is no clipboard."""
    with contextlib.suppress(pygame.error):
        if not pygame.scrap.get_init():
            pygame.scrap.init()
        pygame.scrap.put(pygame.SCRAP_TEXT, text.encode())
        return True
    with contextlib.suppress(pyperclip.PyperclipException):
        pyperclip.copy(text)
        return True
    return False


def get_text() -> str:
    """The text in the clipboard, "" if there is none."""
    with contextlib.suppress(pygame.error):
        if not pygame.scrap.get_init():
            pygame.scrap.init()
        data = pygame.scrap.get(pygame.SCRAP_TEXT)
        if data:
            return data.decode("utf-8", "replace").replace("\0", "")
    with contextlib.suppress(pyperclip.PyperclipException):
        return pyperclip.paste()
    return ""
