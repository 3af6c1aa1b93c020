"""The rules of English draughts in a few illustrated pages."""

from typing import NamedTuple

from engine.board import Board, Move
from engine.fen import START_FEN


class Page(NamedTuple):
    """A page of the tutorial.

    Attributes:
        text: paragraphs with an empty line between them.
        fen: the position shown.
        highlights: PDN numbers of the squares to mark.
        moves: example moves from that position, in PDN.
    """

    title: str
    text: str
    fen: str = START_FEN
    highlights: tuple[int, ...] = ()
    moves: tuple[str, ...] = ()


PAGES = (
    Page(
        "The board",
        "Draughts is played on the 32 dark squares. Each has a number, from 1 in Black's back row to 32 in White's.\n\n"
        "Both sides begin with twelve men: Black on 1 to 12, White on 21 to 32. Black makes the first move, then "
        "the sides take turns.",
        highlights=(1, 32),
    ),
    Page(
        "Men move forward",
        "A man steps to a free square diagonally in front of it: Black's men go down this board, White's go up. "
        "Men never step back.\n\nA move is written with the two squares: 10-14 means from 10 to 14.",
        "B:W23:B10",
        (14, 15),
        ("10-14", "23-19"),
    ),
    Page(
        "Taking",
        "Where an enemy piece stands diagonally in front of your man and the square behind it is free, the man jumps "
        "over it and lands there. The jumped piece leaves the board.\n\nCaptures are written with an x: 14x23.",
        "B:W18,31:B14",
        (18,),
        ("14x23",),
    ),
    Page(
        "Taking is compulsory",
        "If you can capture, you must: no other move is allowed. With several captures to choose from you may take "
        "any, even the one that wins fewer pieces.\n\nHere Black may play 10x19, or take two men with 10x17x26. "
        "The two men on 1 and 3 must wait.",
        "B:W14,15,22:B1,3,10",
        (14, 15),
        ("10x19",),
    ),
    Page(
        "Several jumps in one move",
        "When the piece that jumped can jump again from where it landed, it has to go on, and may change direction, "
        "until nothing is left to take. It is all one move.\n\nEnter such a move square by square, or click "
        "its last square.",
        "B:W6,14,22:B1",
        (6, 14, 22),
        ("1x10x17x26",),
    ),
    Page(
        "Becoming a king",
        "A man that reaches the far row becomes a king. Its move ends there: here the new king may not go on and "
        "take the man on 27 at once.\n\nKings show a crown.",
        "B:W26,27:B22",
        (29, 30, 31, 32),
        ("22x31", "27-24"),
    ),
    Page(
        "How kings move",
        "A king steps to any of the four diagonal squares beside it, forward or back, but only one square at a time.",
        "B:W29:BK15",
        (10, 11, 18, 19),
        ("15-10", "29-25", "10-15"),
    ),
    Page(
        "How kings take",
        "A king jumps in all four directions, and may mix them in one move. It too has to take when it can.\n\n"
        "A king can be taken like a man, by men as well.",
        "B:W6,14,22:BK26",
        (6, 14, 22),
        ("26x17x10x1",),
    ),
    Page(
        "Winning",
        "You win when the opponent, whose turn it is, cannot move: because no pieces are left, or because all are "
        "blocked. Here 4-8 leaves White's last man without a move.\n\nA player may also resign.",
        "B:W12:B3,4",
        (12,),
        ("4-8",),
    ),
    Page(
        "Draws",
        "The game is drawn when the same position, with the same side to move, comes up for the third time; when "
        "each side has made 40 moves in a row without a capture and without moving a man; or when both agree.\n\n"
        "Two kings that keep out of each other's way soon repeat the position.",
        "B:WK32:BK1",
        (),
        ("1-5", "32-28", "5-1", "28-32", "1-5", "32-28", "5-1", "28-32"),
    ),
    Page(
        "Give one, take two",
        "That captures are compulsory is also a weapon. Black offers a man with 19-23; White must take it, and the "
        "way is open for a double jump into the king row.\n\nBefore every move ask what your opponent will then "
        "have to take.",
        "B:W25,27:B11,15,19",
        (18, 25),
        ("19-23", "27x18", "15x22x29"),
    ),
)


class Tutorial:
    """A reader's place in the tutorial: the page's ``index``, and its ``board`` after the examples shown so far."""

    def __init__(self) -> None:
        self.go_to(0)

    @property
    def page(self) -> Page:
        return PAGES[self.index]

    @property
    def step(self) -> int:
        """Example moves shown so far."""
        return self.board.ply

    def go_to(self, index: int) -> None:
        """Opens a page, the first or the last if there is none of this index."""
        self.index = min(max(index, 0), len(PAGES) - 1)
        self.rewind()

    def show_move(self) -> Move | None:
        """Makes the page's next example move and returns it; None when all have been shown."""
        if self.step == len(self.page.moves):
            return None
        return self.board.push_pdn(self.page.moves[self.step])

    def rewind(self) -> None:
        self.board = Board(self.page.fen)
