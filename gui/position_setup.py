"""Setting up a position: placing and taking away pieces, and whether it can be played."""

from dataclasses import dataclass

from engine.board import Board
from engine.errors import FenError
from engine.fen import MAX_PIECES, NUMBERS, START_FEN, Color, to_square

from .move_reasons import why_no_game
from .pdn_files import fen_of
from .squares import cursor_step


@dataclass(frozen=True)
class Piece:
    """A man or a king."""

    color: Color
    king: bool = False

    def __str__(self) -> str:
        return f"{str(self.color).lower()} {'king' if self.king else 'man'}"


class PositionSetup:
    """The position being set up.

    Args:
        fen: position to begin with.

    Attributes:
        pieces: PDN number → piece.
        turn: the side to move.
        tool: what a click puts down; None takes away.
        problems: why the position cannot be played; empty if it can.
        warnings: why it would make no game, though it can be played.
        cursor: square of the keyboard's cursor.
        flipped: whether Black stands at the bottom, for the arrow keys.
        version: grows with every change.

    Raises:
        FenError: ``fen`` is no position.
    """

    def __init__(self, fen: str = START_FEN) -> None:
        self.tool: Piece | None = Piece(Color.BLACK)
        self.cursor = 18
        self.flipped = False
        self.version = 0
        self.load_fen(fen)

    def load_fen(self, text: str) -> None:
        """Takes a position over; raises ``FenError``, and then all is as it was."""
        board = Board(fen_of(text))
        self.pieces = {number: Piece(color, king) for number, (color, king) in board.piece_map().items()}
        self.turn = board.turn
        self._changed()

    def move_cursor(self, direction: str) -> None:
        """Moves the keyboard's cursor ``left``, ``right``, ``up`` or ``down`` on the screen."""
        self.cursor = cursor_step(self.cursor, direction, self.flipped)

    def click(self, square: int | None) -> None:
        """Puts the tool's piece on a square, or takes it away if it stands there already."""
        if square is not None and self.pieces.get(square) == self.tool:
            self.erase(square)
        else:
            self.paint(square)

    def paint(self, square: int | None) -> None:
        """Puts the tool's piece on a square; the eraser takes away what stands there. For drags over many squares."""
        if square is None:
            return
        if self.tool is None:
            self.erase(square)
        else:
            self.place(square, self.tool)

    def place(self, square: int, piece: Piece) -> None:
        """Puts a piece on a square, in place of what stood there."""
        _check(square)
        if self.pieces.get(square) != piece:
            self.pieces[square] = piece
            self._changed()

    def erase(self, square: int) -> None:
        """Takes away what stands on a square."""
        _check(square)
        if self.pieces.pop(square, None) is not None:
            self._changed()

    def clear(self) -> None:
        """Takes every piece away."""
        self.pieces = {}
        self._changed()

    def start_position(self) -> None:
        """Sets up the position that games start from."""
        self.load_fen(START_FEN)

    def swap_colors(self) -> None:
        """Turns the board round and changes the colours: the same position for the other side."""
        turned = {NUMBERS + 1 - number: Piece(piece.color.other, piece.king) for number, piece in self.pieces.items()}
        self.pieces, self.turn = turned, self.turn.other
        self._changed()

    def set_turn(self, color: Color) -> None:
        """Says whose move it is."""
        if color is not self.turn:
            self.turn = color
            self._changed()

    def fen(self) -> str:
        """The position as FEN; raises ``FenError`` with the first problem."""
        if self.problems:
            raise FenError(self.problems[0])
        return self._text()

    def _text(self) -> str:
        sides = []
        for color in (Color.WHITE, Color.BLACK):
            squares = sorted((piece.king, number) for number, piece in self.pieces.items() if piece.color is color)
            sides.append(color.value + ",".join(f"{'K' * king}{number}" for king, number in squares))
        return ":".join([self.turn.value, *sides])

    def _changed(self) -> None:
        self.version += 1
        self.problems = self._find_problems()
        self.warnings = [] if self.problems else why_no_game(Board(self._text()))

    def _find_problems(self) -> list[str]:
        problems = []
        for color in Color:
            count = sum(piece.color is color for piece in self.pieces.values())
            if count > MAX_PIECES:
                problems.append(f"{color} has {count} pieces, more than {MAX_PIECES}")
            crowned = [
                number
                for number, piece in self.pieces.items()
                if piece == Piece(color) and to_square(number, color) >= NUMBERS - 4
            ]
            problems += [f"the {Piece(color)} on {n}, its promotion row, must be a king" for n in sorted(crowned)]
        return problems


def _check(square: int) -> None:
    if not 1 <= square <= NUMBERS:
        raise ValueError(f"square {square} is not in 1 to {NUMBERS}")
