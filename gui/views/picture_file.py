"""Saves the position as a PNG file next to the saved games, and copies it to the clipboard if possible."""

import io

import pygame

from engine.files import atomic_write, make_folder

from .board_view import BoardPicture, BoardView, Motion
from .clipboard import put_picture
from .geometry import Rect
from .program import Program
from .text import Text
from .theme import Theme

_SIDE = 8 * 90  # pixels


def png_of(picture: BoardPicture, theme: Theme, text: Text) -> bytes:
    """The picture of a board as PNG."""
    surface = pygame.Surface((_SIDE, _SIDE))
    BoardView(text).draw(surface, Rect(0, 0, _SIDE, _SIDE), picture, theme, Motion())
    with io.BytesIO() as file:
        pygame.image.save(surface, file, "position.png")
        return file.getvalue()


def keep_picture(app: Program) -> str:
    """Saves the picture of the position next to the saved games, copies it if possible, and returns a message.

    Raises:
        StorageError: the file cannot be written.
    """
    path, png = app.autosave.new_path(".png"), png_of(app.go.game.plain_picture(), app.style.theme, app.text)
    make_folder(path.parent)
    atomic_write(path, png)
    return f"{'Copied; s' if put_picture(png) else 'S'}aved beside the kept games as {path.name}"
