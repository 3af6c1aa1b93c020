"""A position as a small picture: SVG that a page shows beside its text."""

from ..bitboard import row_column
from ..board import Board
from ..fen import Color

_SIDE = 32  # pixels of a square
_STYLE = {Color.BLACK: ("#2b2b2b", "#f4ead2"), Color.WHITE: ("#faf6ea", "#2b2b2b")}  # fill and outline of pieces


def board_svg(board: Board) -> str:
    """The board with White at the bottom, a ring in every king, and the numbers of the free dark squares."""
    size, pieces = 8 * _SIDE, board.piece_map()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}">',
        f'<rect width="{size}" height="{size}" fill="#e9dcc0"/>',
        '<g font-family="sans-serif" font-size="10" fill="#f4ead2" text-anchor="middle">',
    ]
    for number in range(1, 33):
        y, x = (_SIDE * place for place in row_column(number))
        parts.append(f'<rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" fill="#8a6d4b"/>')
        if number not in pieces:
            parts.append(f'<text x="{x + _SIDE // 2}" y="{y + _SIDE // 2 + 4}">{number}</text>')
    parts.append("</g>")
    for number, (color, king) in sorted(pieces.items()):
        y, x = (_SIDE * place + _SIDE // 2 for place in row_column(number))
        inside, line = _STYLE[color]
        parts.append(f'<circle cx="{x}" cy="{y}" r="12" fill="{inside}" stroke="{line}"/>')
        if king:
            parts.append(f'<circle cx="{x}" cy="{y}" r="7" fill="none" stroke="{line}" stroke-width="2.5"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"
