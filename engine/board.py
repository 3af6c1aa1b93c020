"""``Board``: a game of draughts in play, with the habits of python-chess."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import svg
from .bitboard import BIT_OF_SQUARE, turned
from .draw_rules import REPETITIONS_TO_DRAW, REVERSIBLE_PLIES_TO_DRAW
from .errors import AmbiguousMoveError, IllegalMoveError
from .fen import EMPTY_FEN, NUMBERS, START_FEN, Color, Piece, fen_of_pieces, format_fen, parse_fen, pieces_of, to_square
from .move import SHOWN, LegalMove, Move, generated_moves, moves_named, written
from .outcomes import Outcome, Termination

_BITS = {color: {n: int(BIT_OF_SQUARE[to_square(n, color)]) for n in range(1, NUMBERS + 1)} for color in Color}


class _State(NamedTuple):
    words: tuple[int, int, int]
    reversible_plies: int


class Board:
    """A position with the moves that led to it.

    Boards are equal if position, side to move and reversible plies are; the moves before these do not count.

    Args:
        fen: position to start from; the normal start position if left out.

    Raises:
        FenError: the text is no position.
    """

    __hash__ = None  # type: ignore[assignment]  # it changes with every move

    def __init__(self, fen: str = START_FEN) -> None:
        self.set_fen(fen)

    @classmethod
    def empty(cls) -> "Board":
        """A board without pieces, with the side to move that begins games."""
        return cls(EMPTY_FEN)

    def set_fen(self, fen: str) -> None:
        """Sets the position and forgets the moves made; on ``FenError`` the board stays as it was."""
        turn, own, opp, kings = parse_fen(fen)
        self._turn = turn
        self.start_fen = format_fen(turn, own, opp, kings)
        self.move_stack: list[Move] = []
        self._states = [_State((own, opp, kings), 0)]
        self._legal: list[LegalMove] | None = None

    def fen(self) -> str:
        """The position as FEN."""
        return format_fen(self.turn, *self.words())

    def reset(self) -> None:
        """Sets up the normal start position and forgets the moves made."""
        self.set_fen(START_FEN)

    def clear(self) -> None:
        """Takes all pieces away and forgets the moves made; the side that begins games is to move."""
        self.set_fen(EMPTY_FEN)

    def copy(self, *, stack: bool = True) -> "Board":
        """A board of its own with the same position, and with the same moves unless ``stack`` is false.

        Without its moves a board counts repetitions and reversible plies from here.
        """
        if not stack:
            return Board(self.fen())
        other = Board.__new__(Board)
        other._turn, other.start_fen, other._legal = self.turn, self.start_fen, self._legal
        other.move_stack, other._states = self.move_stack.copy(), self._states.copy()
        return other

    def __copy__(self) -> "Board":
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Board":
        return self.copy()

    def root(self) -> "Board":
        """A board with the position before the first move."""
        return Board(self.start_fen)

    def mirror(self) -> "Board":
        """The same game with the colours exchanged and the board turned by 180 degrees: ``words()`` are the same."""
        other = self.copy()
        other._turn = self.turn.other
        start_turn = other.turn if self.ply % 2 == 0 else self.turn
        other.start_fen = format_fen(start_turn, *self._states[0].words)
        other.move_stack = [move.mirror() for move in self.move_stack]
        other._legal = None
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Board):
            return NotImplemented
        return (self.turn, self._states[-1]) == (other.turn, other._states[-1])

    @property
    def turn(self) -> Color:
        """The side to move. Setting it forgets the moves made; raises ``FenError`` for what is no ``Color``."""
        return self._turn

    @turn.setter
    def turn(self, color: Color) -> None:
        self.set_fen(fen_of_pieces(color, self.piece_map()))

    @property
    def ply(self) -> int:
        """Number of moves made since the set-up position."""
        return len(self.move_stack)

    @property
    def reversible_plies(self) -> int:
        """Plies since the last capture or man move."""
        return self._states[-1].reversible_plies

    def words(self) -> tuple[int, int, int]:
        """``own``, ``opp``, ``kings``: 32-bit words seen by the side to move (layout: ``engine.bitboard``)."""
        return self._states[-1].words

    def history(self) -> list[tuple[int, int, int]]:
        """The words of the positions since the last irreversible move, oldest first, the present one last.

        Each is seen by the side to move in it, so equal words two plies apart mean the same position.
        """
        return [state.words for state in self._states[-1 - self.reversible_plies :]]

    def piece_map(self) -> dict[int, Piece]:
        """The pieces by their PDN numbers."""
        return pieces_of(self.turn, *self.words())

    def piece_at(self, square: int) -> Piece | None:
        """The piece on a PDN number, or None; raises ``IndexError`` if that is not 1 to 32."""
        if not 1 <= square <= NUMBERS:
            raise IndexError(f"square {square} is outside 1 to {NUMBERS}")
        bit = _BITS[self.turn][square]
        own, opp, kings = (word >> bit & 1 for word in self.words())
        return Piece(self.turn if own else self.turn.other, bool(kings)) if own or opp else None

    def color_at(self, square: int) -> Color | None:
        """The colour of the piece on a PDN number, or None; raises ``IndexError`` as ``piece_at`` does."""
        piece = self.piece_at(square)
        return None if piece is None else piece.color

    def set_piece_map(self, pieces: Mapping[int, Piece]) -> None:
        """Puts these pieces on the board in place of all others and forgets the moves made.

        Raises:
            FenError: such a position cannot be; the board stays as it was.
        """
        self.set_fen(fen_of_pieces(self.turn, pieces))

    def set_piece_at(self, square: int, piece: Piece | None) -> None:
        """Puts a piece on a PDN number, or takes one away, and forgets the moves made.

        Raises:
            IndexError: the number is not 1 to 32.
            FenError: such a position cannot be; the board stays as it was.
        """
        self.piece_at(square)
        others = {number: other for number, other in self.piece_map().items() if number != square}
        self.set_piece_map(others if piece is None else {**others, square: piece})

    def remove_piece_at(self, square: int) -> Piece | None:
        """Takes the piece on a PDN number away, returns it, and forgets the moves made; None if there is none."""
        piece = self.piece_at(square)
        self.set_piece_at(square, None)
        return piece

    def legal_paths(self) -> list[LegalMove]:
        """Every legal path; several may be one move."""
        return self._paths().copy()

    def _paths(self) -> list[LegalMove]:
        """``legal_paths``, made once for a position; copies of the board share the list."""
        if self._legal is None:
            self._legal = generated_moves(*self.words(), self._turn, distinct=False)
        return self._legal

    def _legal_path(self, move: Move) -> LegalMove:
        """The legal path that is this move, or one of them; raises ``IllegalMoveError`` if none is."""
        for legal in self._paths():
            if _is_same(legal.move, move):
                return legal
        raise IllegalMoveError(self._why_illegal(str(move)))

    def is_legal(self, move: Move) -> bool:
        """Whether ``push`` would make the move."""
        return any(_is_same(legal.move, move) for legal in self._paths())

    @property
    def legal_moves(self) -> list[Move]:
        """The legal moves, each once (several paths of one capture are one move). Draw rules do not end the list."""
        return list(dict.fromkeys(legal.move for legal in self._paths()))

    @property
    def distinct_moves(self) -> list[Move]:
        """The moves that lead to different positions, in the order of ``movegen.generate(distinct=True)``.

        A search that has chosen move number ``i`` of that order plays ``distinct_moves[i]``.
        """
        return [legal.move for legal in generated_moves(*self.words(), self.turn, distinct=True)]

    def push(self, move: Move) -> None:
        """Makes a move; raises ``IllegalMoveError`` if it is not legal here, and then the board stays as it was."""
        legal = self._legal_path(move)
        own, opp, kings = legal.after
        plies = 0 if self.is_zeroing(legal.move) else self.reversible_plies + 1
        words = int(turned(np.uint32(opp))), int(turned(np.uint32(own))), int(turned(np.uint32(kings)))
        self._states.append(_State(words, plies))
        self.move_stack.append(legal.move)
        self._turn = self._turn.other
        self._legal = None

    def pop(self) -> Move:
        """Takes the last move back and returns it; raises ``IndexError`` if none has been made."""
        move = self.move_stack.pop()
        self._states.pop()
        self._turn = self.turn.other
        self._legal = None
        return move

    def peek(self) -> Move:
        """The last move made; raises ``IndexError`` if there is none."""
        return self.move_stack[-1]

    def is_capture(self, move: Move) -> bool:
        """Whether the move takes a piece."""
        return bool(move.captured)

    def is_zeroing(self, move: Move) -> bool:
        """Whether the move takes a piece or moves a man, so that no earlier position comes back."""
        own, _, kings = self.words()
        return bool(move.captured or (own & ~kings) >> _BITS[self._turn].get(move.start, 0) & 1)

    def find_move(self, start: int, end: int) -> Move:
        """The legal move between two PDN numbers.

        Raises:
            IllegalMoveError: there is none, or (``AmbiguousMoveError``) there are several.
        """
        fits = [move for move in self.legal_moves if (move.start, move.end) == (start, end)]
        return self._only(fits, f"{start}-{end}")

    def pdn(self, move: Move) -> str:
        """The move in PDN: start and end, or every square where several capture paths share these.

        Raises:
            IllegalMoveError: the move is not legal here.
        """
        path, ends = self._legal_path(move).move.path, (move.start, move.end)
        sharing = sum((legal.move.start, legal.move.end) == ends for legal in self._paths())
        squares = path if sharing > 1 else ends
        return written(squares, bool(move.captured))

    def pdn_line(self, moves: Iterable[Move]) -> tuple[str, ...]:
        """A line of moves from here in PDN; raises ``IllegalMoveError`` at the first that is not legal."""
        after, texts = self.copy(), []
        for move in moves:
            texts.append(after.pdn(move))
            after.push(move)
        return tuple(texts)

    def parse_pdn(self, text: str) -> Move:
        """The legal move that a PDN text names, in the short or the long form.

        Raises:
            IllegalMoveError: the text is no move (``InvalidMoveError``), fits no legal move, or several
                (``AmbiguousMoveError``).
        """
        fits = moves_named(text, [legal.move for legal in self._paths()])
        return self._only(fits, text)

    def push_pdn(self, text: str) -> Move:
        """Reads a move as ``parse_pdn`` does and makes it."""
        move = self.parse_pdn(text)
        self.push(move)
        return move

    def _only(self, fits: list[Move], text: str) -> Move:
        """The first of paths that are the same move; raises for none, or for several moves that a text fits."""
        if not fits:
            raise IllegalMoveError(self._why_illegal(text))
        if len(set(fits)) > 1:
            choices = " or ".join(map(str, fits))
            raise AmbiguousMoveError(f"{text} is ambiguous in {self.fen()}: write {choices}")
        return fits[0]

    def _why_illegal(self, text: str) -> str:
        legal, text = self.legal_moves, text[:SHOWN]
        if not legal:
            return f"{text} is illegal in {self.fen()}: {self.turn} has no legal move"
        shown = ", ".join(map(str, legal[:8])) + (", ..." if len(legal) > 8 else "")
        if legal[0].captured and not set("xX:") & set(text):
            return f"{text} is illegal in {self.fen()}: {self.turn} must capture ({shown})"
        return f"{text} is illegal in {self.fen()}; legal: {shown}"

    def repetitions(self) -> int:
        """How often the present position has occurred, this time included, with the same side to move."""
        return self.history()[::-2].count(self.words())

    def is_repetition(self, count: int = REPETITIONS_TO_DRAW) -> bool:
        """Whether the present position has occurred this often, this time included."""
        return self.repetitions() >= count

    def is_game_over(self) -> bool:
        """Whether ``outcome`` is one."""
        return self.outcome() is not None

    def outcome(self) -> Outcome | None:
        """How the game ended, or None while it goes on.

        A side without a move loses. The third occurrence of a position with the same side to move and
        ``REVERSIBLE_PLIES_TO_DRAW`` consecutive plies without a capture and without a man moving are draws.
        """
        if not self._paths():
            return Outcome(Termination.NO_MOVES, self.turn.other)
        if self.is_repetition():
            return Outcome(Termination.REPETITION, None)
        if self.reversible_plies >= REVERSIBLE_PLIES_TO_DRAW:
            return Outcome(Termination.REVERSIBLE_PLIES, None)
        return None

    def result(self) -> str:
        """PDN result of the position, see ``Outcome.result``; ``*`` while the game goes on."""
        outcome = self.outcome()
        return outcome.result if outcome else "*"

    def __repr__(self) -> str:
        return f"Board({self.fen()!r})"

    def _repr_svg_(self) -> str:
        """The picture that notebooks show."""
        return svg.board(self, lastmove=self.move_stack[-1] if self.move_stack else None)

    def __str__(self) -> str:
        """The board as text, White at the bottom: b, w men, B, W kings."""
        letters = ["."] * 32
        for number, piece in self.piece_map().items():
            letters[number - 1] = piece.symbol()
        rows = ("   ".join(letters[start : start + 4]) for start in range(0, 32, 4))
        return "\n".join(("" if index % 2 else "  ") + row for index, row in enumerate(rows))


def _is_same(legal: Move, move: Move) -> bool:
    """Whether a move is this legal one; if it has a path, by the same path."""
    return legal == move and move.path in ((), legal.path)
