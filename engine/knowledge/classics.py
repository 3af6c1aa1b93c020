"""The standard endings of the textbooks, and a page that shows what the tables say about them.

The positions come from books (Payne 1756, Sturges, Lees, Lasker 1918, Boland); texts and verdicts are our own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypedDict

from .. import svg
from ..board import Board
from ..fen import Color
from ..files import atomic_write, make_folder
from ..tablebase import MissingTableError, open_tablebase
from ..tablebase.folder import build_advice, default_folder
from .lines import Proof, Prover, Step

PAGE = "classics.md"
_FOLDER = "classics"  # folder of the pictures, next to the page


class Classic(NamedTuple):
    """A standard ending.

    Attributes:
        name: title; the picture's file has the same name with hyphens.
        pieces: FEN without the side to move.
        text: explanation for readers of the page.
    """

    name: str
    pieces: str
    text: str

    @property
    def picture(self) -> str:
        return f"{_FOLDER}/{self.name.lower().replace(' ', '-').replace(',', '').replace(chr(39), '')}.svg"

    def board(self, turn: Color) -> Board:
        return Board(f"{turn.value}:{self.pieces}")


CLASSICS = (
    Classic(
        "King against king",
        "WK32:BK26",
        "Who has the move (the opposition) holds the other king at the edge; without it that king walks into the "
        "double corner and is safe. Count the pieces on your own back row and every "
        "second row from there: if their number is odd and it is your turn, you have the move.",
    ),
    Classic(
        "Two kings against one",
        "WK29:BK18,K19",
        "A lone king away from the double corner. One king takes its squares, the other drives it on.",
    ),
    Classic(
        "Two kings against one in the double corner",
        "WK32:BK18,K19",
        "The lone king steps to and fro between 28 and 32. One of the two kings must enter the corner itself, to turn "
        "the other one out; then the side of the board is its prison.",
    ),
    Classic(
        "Three kings against two on one side",
        "WK22,K23,K24:BK31,K32",
        "The winner offers an exchange, since two kings against one are won. Here the threats come at once.",
    ),
    Classic(
        "Three kings against two in both double corners",
        "WK9,K27:BK10,K15,K19",
        "The defence is best with a king in each double corner: the winner attacks both corners at the same time until "
        "an exchange cannot be refused.",
    ),
    Classic(
        "American position",
        "WK17,K32:BK29,K30",
        "Two kings against two, but those in the single corner do not get out. Who has the move decides.",
    ),
    Classic(
        "First position",
        "W20,K15:B12,K28",
        "The most common of the endings with even pieces. The man on 12 may not pass, so the king must leave the "
        "double corner when the other two pieces, both kings by then, ask it to. Only with the move.",
    ),
    Classic(
        "Second position",
        "W27,30,K22:B20,21,K9",
        "Both men of Black are held at the edges by men of White. White crowns all its men, each relieved of its duty "
        "by a king (changing the guard), gives the move away by one exchange and takes it back by another.",
    ),
    Classic(
        "Fourth position",
        "W30,K31,K32:B21,K20,K22,K23",
        "A man up, but the man on 21 is held by the one on 30. Black to move wins by going into the double corner; "
        "with White to move there is one defence, and it holds.",
    ),
    Classic(
        "Fourth position with kings alone",
        "WK30,K31,K32:B21,K20,K22,K23",
        "As before with a king on 30, which need not stay there. It is still a matter of who is to move.",
    ),
    Classic(
        "Payne's draw",
        "WK15,K23:B12,K7,K28",
        "A man down and safe: a king that steps between 19 and 24 locks one black king into the corner of 28 and 32, "
        "and the other king comes too late. With Black to move the corner opens.",
    ),
)


class Verdict(TypedDict):
    """What the tables say about a classic with one side to move; None for values that they do not cover.

    ``value`` is "win", "draw" or "loss" for the side to move. ``line`` is in PDN; a star marks an only move.
    """

    name: str
    fen: str
    value: str | None
    plies: int | None
    line: list[str]


class ClassicsFigures(TypedDict):
    """Result of ``crownhead classics``; ``page`` is the path of the page, None if none was written."""

    page: str | None
    positions: list[Verdict]


_VALUES = {1: "win", 0: "draw", -1: "loss"}


def classics_command(folder: Path | None, out: Path | None, quiet: bool) -> ClassicsFigures:
    """Proves the classics; see ``crownhead classics --help``.

    Raises ``OSError`` if a folder does not exist or cannot be written, ``TableFileError`` if a table is damaged.

    Args:
        folder: folder of the tables; None for the default one.
        out: folder to write the page to; None prints the page.
        quiet: whether to print nothing.
    """
    verdicts: list[Verdict] = []
    text = [_HEAD]
    with open_tablebase(folder) as tables:
        prover = Prover(tables)
        for classic in CLASSICS:
            proofs = {turn: _prove(prover, classic.board(turn)) for turn in (Color.WHITE, Color.BLACK)}
            verdicts += [_verdict(classic, turn, proof) for turn, proof in proofs.items()]
            text.append(section(classic, proofs, folder))
    if out is not None:
        _write(out, "\n".join(text))
    elif not quiet:
        print("\n".join(text))
    return {"page": None if out is None else str(out / PAGE), "positions": verdicts}


def _write(out: Path, text: str) -> None:
    make_folder(out / _FOLDER)
    for classic in CLASSICS:
        atomic_write(out / classic.picture, svg.board(classic.board(Color.WHITE)).encode())
    atomic_write(out / PAGE, text.encode())


def _prove(prover: Prover, board: Board) -> Proof | None:
    try:
        return prover.prove(board)
    except MissingTableError:
        return None


def _verdict(classic: Classic, turn: Color, proof: Proof | None) -> Verdict:
    return {
        "name": classic.name,
        "fen": classic.board(turn).fen(),
        "value": None if proof is None else _VALUES[proof.value],
        "plies": None if proof is None else proof.plies,
        "line": [] if proof is None else [_marked(step) for step in proof.line],
    }


_HEAD = """# The classics, proven

Standard endings of the textbooks, with what the exact tables say of them. This page is written by
`crownhead classics --out docs/endgames`; a verdict that the tables do not confirm cannot stand here.

Squares are numbered 1 to 32, Black's men move down the board. A star marks the only move that wins, where there are
others. Where a win is counted ("wins in 17 plies"), the line is best play to the end: the winner takes the shortest
way, the loser the longest. Elsewhere the tables have no distances: the winner takes the shortest way to the next
capture or move of a man that keeps the win, and the loser puts it off, so other lines may be shorter.
"""


def section(classic: Classic, proofs: dict[Color, Proof | None], folder: Path | None = None) -> str:
    """The section of the page about one classic, in Markdown; ``folder``: of the tables, None for the default one."""
    parts = [f"## {classic.name}", "", f"![{classic.name}]({classic.picture})", "", classic.text, ""]
    pieces = len(classic.board(Color.WHITE).piece_map())
    advice = build_advice(folder or default_folder(), pieces, False)
    for turn, proof in proofs.items():
        parts += [f"**{turn} to move** (`{classic.board(turn).fen()}`): {_said(turn, proof, advice)}", ""]
        if proof is not None and proof.line:
            parts += [*_numbered(turn, proof.line), ""]
    return "\n".join(parts)


def _said(turn: Color, proof: Proof | None, advice: str) -> str:
    if proof is None:
        return f"not proven here; {advice} makes the tables."
    if proof.value == 0:
        held = f", held by {' or '.join(proof.keeping)} alone" if proof.keeping else ", whatever is played"
        return f"a draw{held}."
    winner = turn if proof.value == 1 else turn.other
    return f"{winner} wins." if proof.plies is None else f"{winner} wins in {proof.plies} plies."


def _marked(step: Step) -> str:
    return step.text + "*" * step.only


def _numbered(turn: Color, line: tuple[Step, ...]) -> Iterator[str]:
    """The moves in lines of eight pairs, each pair with its number."""
    moves = [*(["..."] if turn is Color.WHITE else []), *map(_marked, line)]
    pairs = [f"{i // 2 + 1}. {' '.join(moves[i : i + 2])}" for i in range(0, len(moves), 2)]
    for first in range(0, len(pairs), 8):
        yield "    " + "  ".join(pairs[first : first + 8])
