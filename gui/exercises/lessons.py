"""Lessons: the rules move by move, then endings to be played out. No pygame."""

from typing import NamedTuple

from engine.board import Board
from engine.fen import START_FEN, Color
from engine.knowledge.classics import CLASSICS
from engine.puzzles.puzzle import Goal
from engine.tablebase import Tablebase

from .ending_exercise import Ending, EndingExercise
from .exercise import Exercise, Task


class Steps(NamedTuple):
    """Moves that the text of a lesson prescribes, in PDN: the learner's, who begins, and the replies."""

    fen: str
    line: str

    def task(self) -> Task:
        board = Board(self.fen)
        after = board.copy()
        moves = tuple(after.push_pdn(text) for text in self.line.split())
        return Task(board, moves, len(moves) - (len(moves) + 1) % 2, f"{board.turn} to move.")


class Lesson(NamedTuple):
    """A lesson: its title, its text, which says what to do, and its exercise."""

    title: str
    text: str
    task: Steps | Ending

    def exercise(self, tables: Tablebase) -> Exercise:
        """Makes the exercise of the lesson; the tables judge endings."""
        return Exercise(self.task.task()) if isinstance(self.task, Steps) else EndingExercise(self.task, tables)


def _classic(name: str, turn: Color) -> str:
    return next(classic for classic in CLASSICS if classic.name == name).board(turn).fen()


LESSONS = (
    Lesson(
        "The board",
        "Draughts is played on the 32 dark squares. Each has a number, from 1 in Black's back row to 32 in White's. "
        "Black has the men on 1 to 12 and begins; then the sides take turns. Move the man on 11 to 15: that is "
        "written 11-15.",
        Steps(START_FEN, "11-15"),
    ),
    Lesson(
        "Men",
        "A man steps to a free square diagonally in front of it, and never back. Step from 10 to 14, and when White "
        "has replied, from 14 to 17.",
        Steps("B:W23,32:B10", "10-14 23-19 14-17"),
    ),
    Lesson(
        "Taking",
        "Where an enemy piece stands diagonally in front of your man and the square behind it is free, the man "
        "jumps over it and lands there. The jumped piece leaves the board. Captures are written with an x: 14x23.",
        Steps("B:W18,31:B14", "14x23"),
    ),
    Lesson(
        "Who can take must take",
        "If you can take, no other move is allowed: the men on 1 and 3 must wait. With a choice of captures any may "
        "be taken, even the one that wins fewer pieces. Take two men: 10x17x26.",
        Steps("B:W14,15,22:B1,3,10", "10x17x26"),
    ),
    Lesson(
        "Jump after jump",
        "A piece that has jumped and can jump again has to go on, and may change direction. It is all one move: "
        "click its last square, or go from square to square. Take all three men.",
        Steps("B:W6,14,22:B1", "1x10x17x26"),
    ),
    Lesson(
        "Becoming a king",
        "A man that reaches the far row becomes a king, which shows a crown. Its move ends there: the new king may "
        "not go on and take the man on 27 at once. Take, and be crowned.",
        Steps("B:W26,27:B22", "22x31"),
    ),
    Lesson(
        "How kings move",
        "A king steps to any of the four diagonal squares beside it, forward or back, one square at a time. Go back "
        "to 10, and when White has moved, forward to 15 again.",
        Steps("B:W29:BK15", "15-10 29-25 10-15"),
    ),
    Lesson(
        "Kings",
        "A king moves and takes forward and back, one square at a time. Take all three men in one move: choose the "
        "king, then where it ends.",
        Ending("B:W6,14,22:BK26", Goal.WIN, 1),
    ),
    Lesson(
        "Moves",
        "Who cannot move has lost, whether blocked or without pieces. Take the last free square from White's man.",
        Ending("B:W12:B3,4", Goal.WIN, 2),
    ),
    Lesson(
        "Draws",
        "A game is drawn when the same position, with the same side to move, comes up for the third time; when each "
        "side has made 40 moves in a row without a capture and without moving a man; or when both agree. Step "
        "to 5, then between 1 and 5 until a position has come up three times.",
        Steps("B:WK32:BK9", "9-5 32-28 5-1 28-32 1-5 32-28 5-1 28-32 1-5"),
    ),
    Lesson(
        "Captures",
        "Who can take must take. Offer a man, and take two with the next move.",
        Ending("B:W25,27:B11,15,19", Goal.WIN, 2),
    ),
    Lesson(
        "Several jumps",
        "With a choice of captures any may be taken. Find the one that wins.",
        Ending("B:W14,15,22:B1,10", Goal.WIN, 1, 1),
    ),
    Lesson(
        "The opposition",
        "King against king, and you have the move. Hold the other king at the edge; do not let it into a double "
        "corner.",
        Ending(_classic("King against king", Color.WHITE), Goal.WIN, 8),
    ),
    Lesson(
        "Two kings against one",
        "One king takes the squares of the lone one, the other drives it on.",
        Ending(_classic("Two kings against one", Color.BLACK), Goal.WIN, 8),
    ),
    Lesson(
        "Turning out of the double corner",
        "The lone king steps between 28 and 32. Send one king into the corner itself, and catch the other at the side.",
        Ending(_classic("Two kings against one in the double corner", Color.BLACK), Goal.WIN, 16),
    ),
    Lesson(
        "Three against two",
        "Two kings against one are won. Force an exchange: the lesson ends when one king is left to Black.",
        Ending(_classic("Three kings against two on one side", Color.WHITE), Goal.WIN, 20, 1),
    ),
    Lesson(
        "Three against two in both corners",
        "White has a king before each double corner. Attack both at the same time until an exchange cannot be refused.",
        Ending(_classic("Three kings against two in both double corners", Color.BLACK), Goal.WIN, 30, 1),
    ),
    Lesson(
        "The bridge",
        "Your men on 1 and 3 are the bridge, which guards your back row. To move one of them now loses: find the "
        "move that keeps both, and hold the draw.",
        Ending("B:W11,K15:B1,3,8", Goal.DRAW, 6),
    ),
    Lesson(
        "Defending the double corner",
        "King against king, and White is close. Go to a double corner and step to and fro there: you cannot be caught.",
        Ending("B:WK23:BK15", Goal.DRAW, 8),
    ),
    Lesson(
        "Payne's draw",
        "A man down and safe: with one king between 19 and 24 a black king stays locked in the corner of 28 and 32.",
        Ending(_classic("Payne's draw", Color.WHITE), Goal.DRAW, 8),
    ),
)
