"""Text in Open Sans (Apache licence, part of pygame-menu), sharp at every size; each text is rendered once."""

from bisect import bisect_right
from functools import cache, lru_cache

import pygame
import pygame_menu.font

from ..game.pdn_files import clean
from .theme import RGB

REGULAR, BOLD = pygame_menu.font.FONT_OPEN_SANS, pygame_menu.font.FONT_OPEN_SANS_BOLD
_KEPT = 1500  # most rendered texts that are kept


class Text:
    """Renders and measures text, without what no font can draw (see ``clean``); sizes are heights of body text in
    pixels."""

    def __init__(self) -> None:
        # Kept in this object, because fonts must not be used after pygame has ended.
        self.font = cache(lambda size, bold=False: pygame.font.Font(BOLD if bold else REGULAR, max(6, size)))
        self._rendered = lru_cache(maxsize=_KEPT)(
            lambda text, size, color, bold: self.font(size, bold).render(clean(text), True, color)
        )

    def render(self, text: str, size: int, color: RGB, bold: bool = False) -> pygame.Surface:
        """One line as a surface, which is cached and must not be changed."""
        return self._rendered(text, size, color, bold)

    def width(self, text: str, size: int, bold: bool = False) -> int:
        """Pixels that a line takes."""
        return self.font(size, bold).size(clean(text))[0]

    def height(self, size: int) -> int:
        """Pixels from one line to the next."""
        return self.font(size).get_linesize()

    def cut(self, text: str, size: int, width: int, bold: bool = False) -> str:
        """The text, shortened with an ellipsis if it is wider than ``width`` pixels."""
        if self.width(text, size, bold) <= width:
            return text

        def start(length: int) -> str:
            return text[:length].rstrip() + "…"

        longer = bisect_right(range(len(text)), width, lo=1, key=lambda length: self.width(start(length), size, bold))
        return start(longer - 1)

    def wrap(self, text: str, size: int, width: int, bold: bool = False, most: int | None = None) -> list[str]:
        """The text as lines of at most ``width`` pixels, broken between words (a longer word is cut).

        Args:
            most: largest number of lines; the last one ends with an ellipsis if the text is longer.
        """
        lines: list[str] = []
        for paragraph in text.split("\n"):
            line = ""
            for word in paragraph.split():
                longer = f"{line} {word}" if line else word
                if line and self.width(longer, size, bold) > width:
                    lines.append(self.cut(line, size, width, bold))
                    line = word
                else:
                    line = longer
            lines.append(self.cut(line, size, width, bold))
        if most is not None and len(lines) > most:
            lines[most - 1 :] = [self.cut(lines[most - 1].removesuffix("…") + "…", size, width, bold)]
        return lines

    def draw(
        self,
        surface: pygame.Surface,
        text: str,
        at: tuple[int, int],
        size: int,
        color: RGB,
        bold: bool = False,
        align: str = "left",
        width: int | None = None,
    ) -> int:
        """Draws a line; ``at`` is its left, centre or right end at half its height. Returns its width in pixels."""
        if width is not None:
            text = self.cut(text, size, width, bold)
        image = self.render(text, size, color, bold)
        x = at[0] - {"left": 0, "center": image.get_width() // 2, "right": image.get_width()}[align]
        surface.blit(image, (x, at[1] - image.get_height() // 2))
        return image.get_width()
