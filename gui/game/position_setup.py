"""Setting up a position: adding and removing pieces, and checking whether it can be played."""

from engine.board import Board
from engine.errors import FenError
from engine.fen import MAX_PIECES, NUMBERS, START_FEN, Color, Piece, fen_of_pieces, to_square

from .move_reasons import why_no_game
from .pdn_files import fen_of
from .squares import cursor_step


class PositionSetup:
    """The position being set up.

    Attributes:
        pieces: PDN number → piece.
        tool: piece that a click places; None removes pieces.
        problems: why the position is not allowed; empty if it is.
        warnings: why no game can begin at the position, though it is allowed.
        cursor: square of the keyboard's cursor.
        flipped: whether Black is at the bottom, for the arrow keys.
    """

    def __init__(self, fen: str = START_FEN) -> None:
        self.tool: Piece | None = Piece(Color.BLACK)
        self.cursor = 18
        self.flipped = False
        self._dragged: tuple[int, Piece | None] | None = None  # latest square of a drag, and what it puts there
        self._states: list[tuple[dict[int, Piece], Color]] = []  # pieces and side to move, from the first to those now
        self.load_fen(fen)

    @property
    def changed(self) -> bool:
        """Whether the position is another than the first one."""
        return self._states[-1] != self._states[0]

    def undo(self) -> None:
        """Takes the last change back."""
        if len(self._states) > 1:
            self._states.pop()
            pieces, self.turn = self._states[-1]
            self.pieces = dict(pieces)
            self._check()

    def load_fen(self, text: str) -> None:
        """Loads a position; raises ``FenError`` if it is not valid, and then changes nothing."""
        board = Board(fen_of(text))
        self.pieces = board.piece_map()
        self.turn = board.turn
        self._check()

    def move_cursor(self, direction: str) -> None:
        """Moves the keyboard's cursor ``left``, ``right``, ``up`` or ``down`` on the screen."""
        self.cursor = cursor_step(self.cursor, direction, self.flipped)

    def click(self, square: int | None) -> None:
        """Puts the tool's piece on a square, or removes it if it is there already; a drag may follow."""
        self._dragged = None
        if square is not None:
            piece = None if self.pieces.get(square) == self.tool else self.tool
            self._put(square, piece)
            self._dragged = square, piece

    def drag(self, square: int | None) -> None:
        """Does the same as the click before, on another square."""
        if square is not None and self._dragged is not None and square != self._dragged[0]:
            self._dragged = square, self._dragged[1]
            self._put(*self._dragged)

    def release(self) -> None:
        """Ends a drag."""
        self._dragged = None

    def _put(self, square: int, piece: Piece | None) -> None:
        if piece is None:
            self.pieces.pop(square, None)
        else:
            self.pieces[square] = piece
        self._check()

    def clear(self) -> None:
        self.pieces = {}
        self._check()

    def swap_colors(self) -> None:
        """Rotates the board and exchanges the colours, which gives the same position for the other side."""
        turned = {NUMBERS + 1 - number: Piece(piece.color.other, piece.king) for number, piece in self.pieces.items()}
        self.pieces, self.turn = turned, self.turn.other
        self._check()

    def set_turn(self, color: Color) -> None:
        self.turn = color
        self._check()

    def fen(self) -> str:
        """The position as FEN; raises ``FenError`` with the first of ``problems``, if any."""
        if self.problems:
            raise FenError(self.problems[0])
        return fen_of_pieces(self.turn, self.pieces)

    def _check(self) -> None:
        state = dict(self.pieces), self.turn
        if not self._states or state != self._states[-1]:
            self._states.append(state)
        self.problems: list[str] = []
        for color in Color:
            count = sum(piece.color is color for piece in self.pieces.values())
            if count > MAX_PIECES:
                self.problems.append(f"{color} has {count} pieces, more than {MAX_PIECES}")
            man = Piece(color)
            for number in sorted(number for number, piece in self.pieces.items() if piece == man):
                if to_square(number, color) >= NUMBERS - 4:
                    self.problems.append(f"the {man} on {number}, its promotion row, must be a king")
        self.warnings = [] if self.problems else why_no_game(Board(self.fen()))
