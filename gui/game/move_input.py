"""Entering a move: by two clicks, by dragging, by one click, by keys, or typed. No pygame, no drawing.

``MoveInput`` is a state machine whose attributes the views read. Its event methods return a ``Move`` once one is
complete. The caller makes it and passes the new position to ``set_board``.
"""

from collections.abc import Iterable
from itertools import pairwise

from engine.board import Board, LegalMove, Move
from engine.errors import IllegalMoveError, InvalidMoveError
from engine.fen import NUMBERS, Color
from engine.move import squares_written

from .move_reasons import capture_message, why_not, why_not_piece
from .squares import cursor_step, square_between

_TYPEABLE = frozenset("0123456789-x:")
_LONGEST_TYPED = 40


class MoveInput:
    """The state of a move being entered by the sides ``colors`` on a copy of ``board``.

    Attributes:
        one_click: whether a click on a piece with only one legal move, or on an empty square where only one move ends,
            plays the move. A second click on that piece or its target, by a user who expects to need two, does nothing.
        auto_complete: whether a capture of several pieces is finished as soon as only one move is left; otherwise every
            square must be entered.
        path: squares entered so far, ``selected`` first; () if nothing is selected.
        jumped: squares of the pieces that ``path`` captures.
        targets: squares that can be entered next.
        finals: last squares of the moves that begin with ``path``; one can be entered if it belongs to only one move.
        movable: squares of pieces with a legal move; empty if it is not the turn of ``colors`` or the game is over.
        must_capture: whether the movable pieces must capture.
        hovered, hover_targets: square under the pointer, and squares that the piece there could enter next.
        cursor: square of the keyboard's cursor, or None while the mouse is used.
        dragging: whether the selected piece is being dragged.
        typed: text of a move being typed.
        message: why the last input was refused; "" if it was not.
    """

    def __init__(
        self,
        board: Board,
        colors: Iterable[Color] = tuple(Color),
        *,
        one_click: bool = False,
        auto_complete: bool = True,
    ) -> None:
        self._spent: frozenset[int] = frozenset()  # squares where a click is the second click of the last move
        self._again = False  # whether the current press is such a second click
        self.one_click, self.auto_complete = one_click, auto_complete
        self.flipped = False
        self.hovered: int | None = None
        self.cursor: int | None = None
        self.set_board(board, colors)

    def set_board(self, board: Board, colors: Iterable[Color] | None = None, closed: str = "") -> None:
        """Sets a new position (and sides) and drops the current input. ``closed``: why no move can be entered although
        the rules allow one, such as a resignation; else ""."""
        self.board = board.copy()
        self._closed = closed
        if colors is not None:
            self.colors = frozenset(colors)
        self.message = self.typed = ""
        self._pressed: int | None = None  # square where the button was pressed
        self._grip: int | None = None  # square of the piece that can be dragged from there
        self._kept: tuple[int, ...] = ()  # the path when the button was pressed
        self._fresh = False  # the current press has selected its piece, so a release there is a first click
        self.dragging = False
        active = not closed and self.board.turn in self.colors and self.board.outcome() is None
        self._legal: list[LegalMove] = self.board.legal_paths() if active else []
        self._pieces = self.board.piece_map()
        self.movable = frozenset(legal.move.start for legal in self._legal)
        self.must_capture = any(legal.move.captured for legal in self._legal)
        self._set_path(())
        self.hover(self.hovered)

    def press(self, square: int | None) -> Move | None:
        """The mouse button is pressed on a square (None: not on a dark square)."""
        self.message = self.typed = ""
        self.cursor = None
        self._again, self._spent = square in self._spent, frozenset()
        return self._press(square)

    def drag(self, square: int | None) -> None:
        """The pointer moves with the button held; squares of a capture that it crosses are entered."""
        self.hovered = square
        if self._pressed is None or self._pressed != self._grip:
            return
        self.dragging = self.dragging or square != self._pressed
        if len(self.path) > len(self._kept) and square == self.path[-2]:
            self._set_path(self.path[:-1])
        elif square in self.targets and self._goes_on_through(square):
            self._set_path((*self.path, square))

    def release(self, square: int | None) -> Move | None:
        """The mouse button is released on a square."""
        pressed, self._pressed = self._pressed, None
        fresh, self._fresh = self._fresh, False
        self.hovered = square
        if self.dragging:
            return self._drop(square)
        if square is None or square != pressed:
            return None
        if fresh:
            plays = self.one_click and not self._again
            return self._spend(square, self._only(self._candidates())) if plays else None
        if self.path == (square,):
            self._set_path(())
        elif not (self.path or self._again) and square not in self._pieces and self._legal:
            return self._spend(square, self._one_click_target(square))
        return None

    def _spend(self, square: int, move: Move | None) -> Move | None:
        if move is not None:
            self._spent = frozenset((square, move.start, move.end))
        return move

    def click(self, square: int | None) -> Move | None:
        return self.press(square) or self.release(square)

    def hover(self, square: int | None) -> None:
        """The pointer moves without a button held."""
        self.hovered, self._pressed, self.dragging = square, None, False
        nexts = (legal.move.path[1] for legal in self._legal if legal.move.start == square and not self.path)
        self.hover_targets = frozenset(nexts)

    def move_cursor(self, direction: str) -> None:
        """Moves the keyboard's cursor ``left``, ``right``, ``up`` or ``down`` on the screen, or shows it."""
        if self.cursor is None:
            self.cursor = self._first_cursor()
        else:
            self.cursor = cursor_step(self.cursor, direction, self.flipped)

    def next_square(self, step: int = 1) -> None:
        """Moves the keyboard's cursor to the next (-1: previous) movable piece, or target if a piece is selected."""
        choices = sorted((self.targets | self.finals) if self.path else self.movable)
        if not choices:
            return
        if self.cursor in choices:
            self.cursor = choices[(choices.index(self.cursor) + step) % len(choices)]
        else:
            after = [square for square in choices if square > (self.cursor or 0)]
            before = [square for square in choices if square < (self.cursor or NUMBERS + 1)]
            self.cursor = (after or choices)[0] if step > 0 else (before or choices)[-1]

    def enter(self) -> Move | None:
        """Enters the typed move if there is one, otherwise clicks the square under the keyboard's cursor."""
        if self.typed:
            return self.enter_text(self.typed)
        cursor = self.cursor
        move = None if cursor is None else self.click(cursor)
        self.cursor = self._first_cursor() if cursor is None else cursor
        return move

    def type_text(self, text: str) -> None:
        """Adds characters to the typed move; characters that cannot be part of a move are ignored."""
        self.message = ""
        allowed = "".join(character for character in text.lower() if character in _TYPEABLE)
        self.typed = (self.typed + allowed)[:_LONGEST_TYPED]

    def backspace(self) -> None:
        self.typed = self.typed[:-1]

    def enter_text(self, text: str) -> Move | None:
        """Enters a whole move in the short or the long form of PDN."""
        self.cancel()
        self.message = ""
        if not self._legal:
            self.message = self._why_inactive()
            return None
        try:
            return self._finish(self.board.parse_pdn(text.strip()))
        except IllegalMoveError as error:
            self.message = self._why_text(text.strip()) or str(error)
            return None

    def cancel(self) -> bool:
        """Drops the typed text and the selection; returns False if there was nothing."""
        had = bool(self.path or self.typed)
        self.message = self.typed = ""
        self._pressed, self._fresh, self.dragging = None, False, False
        self._set_path(())
        return had

    def _set_path(self, path: tuple[int, ...]) -> None:
        self.path = path
        self.selected = path[0] if path else None
        going_on = [legal.move for legal in self._candidates()] if path else []
        self.targets = frozenset(move.path[len(path)] for move in going_on if len(move.path) > len(path))
        self.finals = frozenset(move.end for move in going_on)
        self.jumped = tuple(square_between(a, b) for a, b in pairwise(path)) if self.must_capture else ()
        if path:
            self.hover_targets = frozenset()

    def _candidates(self) -> list[LegalMove]:
        """The legal paths that begin with ``path``."""
        return [legal for legal in self._legal if legal.move.path[: len(self.path)] == self.path]

    def _goes_on_through(self, square: int) -> bool:
        """Whether a capture that enters ``square`` next goes on from there."""
        place = len(self.path)
        paths = (legal.move.path for legal in self._candidates())
        return any(path[place] == square and len(path) > place + 1 for path in paths)

    def _press(self, square: int | None) -> Move | None:
        self._pressed, self._fresh, self.dragging = square, False, False
        self._grip = self.path[-1] if self.path else None
        self._kept = self.path
        if square is None:
            self._set_path(())
            return None
        if not self._legal:
            self.message = self._why_inactive()
            return None
        if self._reaches(square):
            return self._step_to(square)
        if square in self.movable and (not self.path or square != self.path[-1]):
            self._set_path((square,))
            self._fresh, self._grip, self._kept = True, square, self.path
        elif self.path and square in (self.path[0], self.path[-1]):
            return None  # a second click on the piece: ``release`` decides whether it was dragged
        elif self.path and (square not in self._pieces or self._pieces[square][0] is not self.board.turn):
            self.message = self._why_not_target(square)
        elif square in self._pieces:
            self.message = why_not_piece(self.board, square)
            self._set_path(())
        return None

    def _reaches(self, square: int) -> bool:
        """Whether a move that begins with ``path`` enters ``square``. The start square counts only as the next one."""
        if not self.path or square == self.path[0]:
            return square in self.targets
        return any(square in legal.move.path[len(self.path) :] for legal in self._candidates())

    def _step_to(self, square: int) -> Move | None:
        """Extends the path to ``square``, which may be the next square of a candidate or a later one."""
        candidates, place = self._candidates(), len(self.path)
        if square in self.targets:
            prefixes = {(*self.path, square)}
        else:
            over = [legal.move.path for legal in candidates if square in legal.move.path[place:]]
            prefixes = {path[: path.index(square, place) + 1] for path in over}
        if len(prefixes) > 1:
            through = [legal for legal in candidates if square in legal.move.path[place:]]
            if self.auto_complete and (move := self._only(through)) is not None:
                return move
            ways = " or ".join("x".join(map(str, prefix)) for prefix in sorted(prefixes))
            self.message = f"several ways to {square}: enter the jump square by square ({ways})"
            return None
        self._set_path(prefixes.pop())
        return self._settle()

    def _settle(self) -> Move | None:
        """The move, if the path is complete or (with ``auto_complete``) only one move is left; else None."""
        candidates = self._candidates()
        whole = [legal for legal in candidates if legal.move.path == self.path]
        return self._only(whole or (candidates if self.auto_complete else []))

    def _only(self, candidates: list[LegalMove]) -> Move | None:
        """The move, if all these paths belong to the same one; else None."""
        moves = [legal.move for legal in candidates]
        return self._finish(moves[0]) if len(set(moves)) == 1 else None

    def _finish(self, move: Move) -> Move:
        self.cancel()
        return move

    def _drop(self, square: int | None) -> Move | None:
        """The dragged piece is dropped on a square."""
        self.dragging = False
        dragged = self.path
        if square is not None and square == dragged[-1] and dragged != self._kept:
            return self._settle()
        for path in (dragged, self._kept):
            self._set_path(path)
            if square is not None and self._reaches(square):
                return self._step_to(square)
        if square is None or square == self._kept[-1]:
            return None
        self.message = self._why_not_target(square)
        return None

    def _one_click_target(self, square: int) -> Move | None:
        ending = [legal for legal in self._legal if legal.move.end == square]
        if self.one_click and (move := self._only(ending)) is not None:
            return move
        if ending:
            ways = " or ".join(dict.fromkeys(self.board.pdn(legal.move) for legal in ending))
            self.message = f"choose the piece that goes to {square} first: {ways}"
        elif self.must_capture:
            self.message = capture_message(self.board)
        else:
            self.message = f"no move goes to {square}"
        return None

    def _why_not_target(self, square: int) -> str:
        if len(self.path) > 1:
            return f"the jump goes on from {self.path[-1]} to {' or '.join(map(str, sorted(self.targets)))}"
        return why_not(self.board, self.path[0], square)

    def _why_inactive(self) -> str:
        if self._closed:
            return self._closed
        outcome = self.board.outcome()
        return f"the game is over: {outcome.termination.value}" if outcome else f"it is {self.board.turn}'s move"

    def _why_text(self, text: str) -> str:
        """Why a text is not a legal move; "" if it does not look like a move at all."""
        try:
            squares = squares_written(text)
        except InvalidMoveError:
            return ""
        if outside := [number for number in squares if not 1 <= number <= NUMBERS]:
            return f"there is no square {outside[0]}"
        start, end = squares[0], squares[-1]
        ways = [legal.move for legal in self._legal if (legal.move.start, legal.move.end) == (start, end)]
        return why_not(self.board, start, end) or f"from {start} to {end} goes {' or '.join(map(str, ways))}"

    def _first_cursor(self) -> int:
        choices = sorted(self.targets if self.path else self.movable)
        if choices:
            return choices[len(choices) // 2]
        return self.path[-1] if self.path else NUMBERS // 2
