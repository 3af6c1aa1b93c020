"""Colours of the board and of the window. Nothing is told by colour alone: shapes, outlines and text say it too."""

from dataclasses import dataclass, replace

RGB = tuple[int, int, int]


def mix(one: RGB, other: RGB, share: float) -> RGB:
    """``one`` with ``share`` (0 to 1) of ``other`` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


@dataclass(frozen=True)
class PieceColors:
    """A side's pieces: face, rim and the engraving on the face."""

    face: RGB
    rim: RGB
    mark: RGB


@dataclass(frozen=True)
class Theme:
    """Colours of everything drawn.

    Attributes:
        highlight: selected piece and squares to move to; ``capture`` outlines pieces that must capture;
            ``last`` the last move; ``arrow`` moves under thought; ``hint`` the suggested move.
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


WALNUT = Theme(
    name="Walnut",
    background=(38, 35, 33),
    panel=(49, 45, 42),
    raised=(67, 61, 56),
    edge=(84, 77, 70),
    text=(238, 233, 224),
    dim=(176, 167, 156),
    accent=(222, 170, 92),
    accent_text=(38, 28, 16),
    warning=(240, 134, 106),
    light_square=(238, 222, 194),
    dark_square=(142, 102, 72),
    number=(214, 184, 150),
    black=PieceColors((56, 50, 48), (24, 21, 20), (112, 102, 96)),
    white=PieceColors((252, 245, 231), (184, 166, 138), (203, 187, 160)),
    highlight=(252, 214, 104),
    capture=(255, 150, 92),
    last=(236, 200, 104),
    arrow=(104, 186, 232),
    hint=(136, 214, 132),
    wdl=((22, 20, 19), (142, 134, 124), (247, 241, 230)),
)
SLATE = replace(
    WALNUT,
    name="Slate",
    background=(30, 35, 42),
    panel=(40, 46, 55),
    raised=(56, 64, 76),
    edge=(74, 84, 98),
    text=(232, 237, 243),
    dim=(160, 172, 186),
    accent=(120, 180, 240),
    accent_text=(12, 26, 42),
    light_square=(222, 227, 232),
    dark_square=(104, 124, 146),
    number=(178, 194, 212),
    black=PieceColors((46, 52, 62), (18, 21, 27), (98, 110, 126)),
    white=PieceColors((250, 250, 248), (164, 172, 182), (196, 202, 210)),
    wdl=((17, 20, 25), (126, 136, 148), (243, 245, 248)),
)
FOREST = replace(
    WALNUT,
    name="Forest",
    background=(31, 37, 32),
    panel=(41, 48, 42),
    raised=(57, 67, 58),
    edge=(75, 88, 76),
    text=(233, 238, 229),
    dim=(163, 176, 160),
    accent=(196, 206, 110),
    accent_text=(30, 34, 12),
    light_square=(235, 233, 208),
    dark_square=(98, 132, 86),
    number=(184, 206, 168),
    white=PieceColors((252, 248, 234), (180, 174, 146), (202, 196, 168)),
    wdl=((20, 24, 20), (128, 138, 124), (246, 244, 230)),
)
PAPER = replace(
    WALNUT,
    name="Paper",
    background=(240, 237, 231),
    panel=(251, 249, 245),
    raised=(229, 224, 215),
    edge=(205, 198, 186),
    text=(44, 40, 36),
    dim=(104, 97, 88),
    accent=(150, 96, 36),
    accent_text=(255, 250, 242),
    warning=(176, 52, 28),
    light_square=(246, 240, 226),
    dark_square=(176, 148, 116),
    number=(92, 70, 46),
    arrow=(28, 104, 158),
    hint=(34, 120, 52),
    wdl=((52, 47, 44), (180, 172, 162), (255, 254, 250)),
)
CLEAR = replace(
    WALNUT,
    name="Clear (colour-blind)",
    background=(16, 18, 22),
    panel=(26, 29, 35),
    raised=(46, 52, 62),
    edge=(110, 120, 134),
    text=(255, 255, 255),
    dim=(196, 204, 214),
    # Colours of Okabe and Ito (2008), which colour-blind people tell apart.
    accent=(240, 228, 66),
    accent_text=(16, 18, 22),
    warning=(230, 159, 0),
    light_square=(232, 236, 240),
    dark_square=(92, 104, 120),
    number=(236, 240, 246),
    black=PieceColors((20, 22, 26), (0, 0, 0), (150, 160, 172)),
    white=PieceColors((255, 255, 255), (96, 104, 116), (150, 158, 168)),
    highlight=(240, 228, 66),
    capture=(230, 159, 0),
    last=(204, 121, 167),
    arrow=(86, 180, 233),
    hint=(0, 200, 150),
    wdl=((0, 0, 0), (128, 136, 146), (255, 255, 255)),
)
THEMES = {theme.name: theme for theme in (WALNUT, SLATE, FOREST, PAPER, CLEAR)}


def theme_named(name: str) -> Theme:
    """The theme of that name or, if there is none, the first."""
    return THEMES.get(name, WALNUT)
