"""The clipboard: pygame's; pyperclip (from pygame-menu) where that does not work; desktop tools for pictures."""

import contextlib
import shutil
import subprocess

import pygame
import pyperclip  # type: ignore[import-untyped]

_PICTURE = "image/png"
_TEXTS = (pygame.SCRAP_TEXT, "text/plain;charset=utf-8")  # names of the kind in versions and systems of pygame
_TOOLS = (("wl-copy", "--type", _PICTURE), ("xclip", "-selection", "clipboard", "-t", _PICTURE))
_PATIENCE_S = 2.0


def put_picture(png: bytes) -> bool:
    """Copies a PNG picture with a tool of the desktop (pygame only copies text); False if there is no tool."""
    for tool in _TOOLS:
        if shutil.which(tool[0]) is None:
            continue
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            nowhere = subprocess.DEVNULL  # the tool stays in the background and would keep our streams open
            subprocess.run(tool, input=png, stdout=nowhere, stderr=nowhere, timeout=_PATIENCE_S, check=True)
            return True
    return False


def _begin() -> None:
    if not pygame.scrap.get_init():
        pygame.scrap.init()


def put_text(text: str) -> bool:
    """Copies a text; returns False if there is no clipboard."""
    for kind in _TEXTS:
        with contextlib.suppress(pygame.error):
            _begin()
            pygame.scrap.put(kind, text.encode())
            return True
    with contextlib.suppress(pyperclip.PyperclipException):
        pyperclip.copy(text)
        return True
    return False


def get_text() -> str:
    """The text in the clipboard, "" if there is none."""
    for kind in _TEXTS:
        with contextlib.suppress(pygame.error):
            _begin()
            if data := pygame.scrap.get(kind):
                return data.decode("utf-8", "replace").replace("\0", "")
    with contextlib.suppress(pyperclip.PyperclipException):
        return pyperclip.paste()
    return ""
