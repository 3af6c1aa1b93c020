"""A position drawn as a board, White at the bottom: lightness tells the sides apart, a crown the kings."""

from matplotlib.axes import Axes
from matplotlib.patches import Circle, Polygon, Rectangle

from engine.bitboard import squares_of
from engine.fen import NUMBERS, Color, parse_fen, to_number

_LIGHT_SQUARE, _DARK_SQUARE = "#f3efe6", "#b4c3a8"
_DISCS = {Color.BLACK: ("#222222", "#f7f4ec"), Color.WHITE: ("#ffffff", "#222222")}  # face; ring and crown
_RADIUS, _RING_RADIUS = 0.35, 0.28
_SHIFT = 0.05  # of a piece to the lower right, away from the number of its square
_CROWN = ((-0.15, -0.14), (0.15, -0.14), (0.20, 0.11), (0.09, 0.0), (0.0, 0.17), (-0.09, 0.0), (-0.20, 0.11))


def square_centre(number: int) -> tuple[float, float]:
    """Where a PDN number (1-32) lies, as column and row from the upper left corner; a square is 1 wide."""
    row, place = divmod(number - 1, 4)
    return 2 * place + 1.5 - row % 2, row + 0.5


def draw_board(axes: Axes, fen: str) -> None:
    """Draws a position on axes that hold nothing else: dark squares with PDN numbers, men as discs, kings crowned.

    White men are plain discs, black ones carry a ring, so that print and poor eyes tell them apart as well.

    Raises:
        FenError: the text is no position.
    """
    turn, own, opp, kings = parse_fen(fen)
    axes.set(xlim=(0, 8), ylim=(8, 0), aspect="equal", xticks=[], yticks=[], facecolor=_LIGHT_SQUARE)
    for number in range(1, NUMBERS + 1):
        x, y = square_centre(number)
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color=_DARK_SQUARE, linewidth=0))
        axes.text(
            x - 0.46, y - 0.46, str(number), fontsize=5, va="top", ha="left", color="#3d4a35", zorder=4, in_layout=False
        )
    for color, pieces in ((turn, own), (turn.other, opp)):
        for square in squares_of(pieces):
            king = square in squares_of(pieces & kings)
            _draw_piece(axes, square_centre(to_number(square, turn)), color, king)


def _draw_piece(axes: Axes, centre: tuple[float, float], color: Color, king: bool) -> None:
    face, mark = _DISCS[color]
    x, y = centre[0] + _SHIFT, centre[1] + _SHIFT
    axes.add_patch(Circle((x, y), _RADIUS, facecolor=face, edgecolor="#222222", linewidth=1, zorder=2))
    if color is Color.BLACK:
        axes.add_patch(Circle((x, y), _RING_RADIUS, fill=False, edgecolor=mark, linewidth=0.8, zorder=3))
    if king:
        points = [(x + right, y - up) for right, up in _CROWN]  # rows are counted downwards
        axes.add_patch(Polygon(points, closed=True, facecolor=mark, edgecolor=mark, linewidth=0.5, zorder=3))
