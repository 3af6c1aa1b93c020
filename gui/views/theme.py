"""Colours of the board and of the window. Colour is never the only sign: shapes, outlines or texts differ, too."""

from typing import Any, NamedTuple

RGB = tuple[int, int, int]


def mix(one: RGB, other: RGB, share: float) -> RGB:
    """Mixes two colours: ``share`` (0 to 1) of ``other``, the rest of ``one``."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


class PieceColors(NamedTuple):
    """A side's pieces: face, rim and the engraving on the face."""

    face: RGB
    rim: RGB
    mark: RGB


class Theme(NamedTuple):
    """Colours of everything drawn.

    Attributes:
        highlight: selected piece and its targets.
        capture: outlines of pieces that must capture.
        last, arrow, hint: last move, moves of a search, suggested move.
        wdl: Black wins, draw, White wins, in bars and graphs.
    """

    name: str
    background: RGB
    panel: RGB
    raised: RGB
    edge: RGB
    text: RGB
    dim: RGB
    accent: RGB
    accent_text: RGB
    warning: RGB
    light_square: RGB
    dark_square: RGB
    number: RGB
    black: PieceColors
    white: PieceColors
    highlight: RGB
    capture: RGB
    last: RGB
    arrow: RGB
    hint: RGB
    wdl: tuple[RGB, RGB, RGB]


_NAMES = ("Walnut", "Slate", "Forest", "Paper", "Clear (colour-blind)")
_COLORS = {  # use → colour in each theme; "Clear" has those of Okabe and Ito (2008), for colour-blind people
    "background": "262321 1e232a 1f2520 f0ede7 101216",
    "panel": "312d2a 282e37 29302a fbf9f5 1a1d23",
    "raised": "433d38 38404c 39433a e5e0d7 2e343e",
    "edge": "544d46 4a5462 4b584c cdc6ba 6e7886",
    "text": "eee9e0 e8edf3 e9eee5 2c2824 ffffff",
    "dim": "b0a79c a0acba a3b0a0 686158 c4ccd6",
    "accent": "deaa5c 78b4f0 c4ce6e 966024 f0e442",
    "accent_text": "261c10 0c1a2a 1e220c fffaf2 101216",
    "warning": "f0866a f0866a f0866a b0341c e69f00",
    "light_square": "eedec2 dee3e8 ebe9d0 f6f0e2 e8ecf0",
    "dark_square": "8e6648 687c92 628456 b09474 5c6878",
    "number": "d6b896 b2c2d4 b8cea8 5c462e ecf0f6",
    "black_face": "383230 2e343e 383230 383230 14161a",
    "black_rim": "181514 12151b 181514 181514 000000",
    "black_mark": "706660 626e7e 706660 706660 96a0ac",
    "white_face": "fcf5e7 fafaf8 fcf8ea fcf5e7 ffffff",
    "white_rim": "b8a68a a4acb6 b4ae92 b8a68a 606874",
    "white_mark": "cbbba0 c4cad2 cac4a8 cbbba0 969ea8",
    "highlight": "fcd668 fcd668 fcd668 fcd668 f0e442",
    "capture": "ff965c ff965c ff965c ff965c e69f00",
    "last": "ecc868 ecc868 ecc868 ecc868 cc79a7",
    "arrow": "68bae8 68bae8 68bae8 1c689e 56b4e9",
    "hint": "88d684 88d684 88d684 227834 00c896",
    "black_wins": "161413 111419 141814 342f2c 000000",
    "draw": "8e867c 7e8894 808a7c b4aca2 808892",
    "white_wins": "f7f1e6 f3f5f8 f6f4e6 fffefa ffffff",
}


def _theme(name: str, column: int) -> Theme:
    colors: dict[str, Any] = {use: tuple(bytes.fromhex(row.split()[column])) for use, row in _COLORS.items()}
    for side in ("black", "white"):
        colors[side] = PieceColors(*(colors.pop(f"{side}_{part}") for part in ("face", "rim", "mark")))
    wdl = tuple(colors.pop(result) for result in ("black_wins", "draw", "white_wins"))
    return Theme(name, wdl=wdl, **colors)


THEMES = {name: _theme(name, column) for column, name in enumerate(_NAMES)}


def theme_named(name: str) -> Theme:
    """The theme of that name or, if there is none, the first."""
    return THEMES.get(name, THEMES[_NAMES[0]])
