"""The position as a picture: a PNG file beside the games that are kept, and in the clipboard where there is one."""

import io
from typing import TYPE_CHECKING

import pygame

from engine.files import atomic_write, make_folder

from .board_view import BoardPicture, BoardView, Motion
from .clipboard import put_picture
from .geometry import Rect
from .text import Text
from .theme import Theme

if TYPE_CHECKING:
    from ..app import App

_SIDE = 8 * 90  # pixels


def png_of(picture: BoardPicture, theme: Theme, text: Text) -> bytes:
    """The board as it looks at rest, in PNG."""
    surface = pygame.Surface((_SIDE, _SIDE))
    BoardView(text).draw(surface, Rect(0, 0, _SIDE, _SIDE), picture, theme, Motion())
    with io.BytesIO() as file:
        pygame.image.save(surface, file, "position.png")
        return file.getvalue()


def keep_picture(app: "App", picture: BoardPicture) -> str:
    """Saves a picture beside the kept games, copies it where that is possible, and says what was done.

    Raises:
        StorageError: it cannot be saved.
    """
    path, png = app.autosave.new_path(".png"), png_of(picture, app.style.theme, app.text)
    make_folder(path.parent)
    atomic_write(path, png)
    return f"{'Copied; s' if put_picture(png) else 'S'}aved beside the kept games as {path.name}"
