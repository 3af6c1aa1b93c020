"""What the codec of chess endings sees two plies ahead, against a slow search with boards of python-chess."""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

chess = pytest.importorskip("chess", reason="needs the extra papers")

from papers.chess_comparison import board_of  # noqa: E402
from papers.chess_endings import endings, exchanged, legal_positions  # noqa: E402
from papers.chess_look_ahead import Black, White, new_buffers, search_word  # noqa: E402
from papers.chess_moves import BLACK, PAWN, WHITE, Ending  # noqa: E402

BY_NAME = {ending.name: ending for ending in endings()}


class Knowledge(NamedTuple):
    """An ending about which some things are known; which ones is drawn at random."""

    ending: Ending
    white: White
    black: Black

    def holds(self, positions: np.ndarray, board: Any) -> bool:
        """Whether a set holds a position."""
        kings = board.king(chess.WHITE), board.king(chess.BLACK)
        roamer_kind = chess.Piece.from_symbol("QRBNPqrbnp"[self.ending.roamer + 5 * self.ending.roamer_color])
        others = [at for at, piece in board.piece_map().items() if piece.piece_type != chess.KING]
        roamer = next(at for at in others if board.piece_at(at) == roamer_kind)
        third = next((at for at in others if at != roamer), 0)
        return bool(int(positions[(*kings, third)]) >> roamer & 1)

    @property
    def both_have_pawns(self) -> bool:
        return self.ending.third == PAWN == self.ending.roamer and self.ending.roamer_color == BLACK

    def moves(self, board: Any) -> Iterator[tuple[Any, bool]]:
        """Positions after moves within the ending, and whether nothing is known of them: see the module's text."""
        for move in board.legal_moves:
            if not board.is_capture(move) and not move.promotion:
                is_pawn = board.piece_type_at(move.from_square) == chess.PAWN
                after = board.copy(stack=False)
                after.push(move)
                yield after, self.both_have_pawns and is_pawn and abs(move.from_square - move.to_square) == 16

    def judge(self, board: Any) -> set[str]:
        """What is known of a position with Black to move."""
        white, black = self.white, self.black
        replies = list(self.moves(board))
        won = self.holds(black.won, board) or any(self.holds(white.lost, q) for q, unclear in replies if not unclear)
        if won:
            return set()
        winning = sum(unclear or self.holds(white.may_lose, q) for q, unclear in replies)
        found = {"holdable"}
        if winning == 0:
            found.add("held")
        else:
            found.add("one" if winning == 1 else "two" if winning == 2 else "few" if winning <= 5 else "many")
        escapes = any(self.holds(white.not_won, q) for q, unclear in replies if not unclear)
        if not escapes and not self.holds(black.stalemate, board) and not self.holds(black.safe, board):
            found.add("losable")
            if not any(unclear or self.holds(white.unknown, q) for q, unclear in replies):
                found.add("losing")
        return found

    def search(self, board: Any) -> tuple[str | None, bool, bool, int]:
        """A known value, whether it may be won and lost otherwise, and what was seen, as a number."""
        after = [
            {"holdable", "one", "two", "few", "many", "losable"} if unclear else self.judge(p)
            for p, unclear in self.moves(board)
        ]
        seen = set[str]().union(*after)
        number = sum(2**place for place, kind in enumerate(("one", "two", "few", "many"), 5) if kind in seen)
        number += 4 * min(7, sum("holdable" in kinds for kinds in after))
        number += 2 * ("held" in seen) + ("losable" in seen)
        if "losing" in seen:
            return "won", False, False, number
        may_lose = self.holds(self.white.may_lose, board)
        if may_lose and "holdable" not in seen and not self.holds(self.white.safe, board):
            return "lost", False, False, number
        return None, "losable" in seen, may_lose and "held" not in seen, number


def knowledge_of(ending: Ending, most_known: bool) -> Knowledge:
    source = np.random.default_rng(1)
    legal = legal_positions(ending)

    def some(share: int) -> np.ndarray:
        """A random set of one position in 2 ** share."""
        words = [source.integers(0, 2**64, legal.shape[1:], np.uint64) for _ in range(share)]
        found = np.bitwise_and.reduce(words)
        return found | exchanged(found) if ending.third == ending.roamer else found

    unknown = legal[WHITE] & (some(3) if most_known else ~some(2))
    known = legal[WHITE] & ~unknown
    share = 3 if most_known else 1  # else some position has a reply that escapes nearly always
    lost = known & some(share + 1)
    white = White(legal[WHITE], some(2), lost, lost | known & some(share), unknown, lost | unknown & some(1))
    won = legal[BLACK] & some(3)
    return Knowledge(ending, white, Black(legal[BLACK], legal[BLACK] & ~won & some(3), won, won | some(2)))


@pytest.mark.parametrize("most_known", [False, True])
@pytest.mark.parametrize("name", ["KNvK", "KPvK", "KRvKN", "KQBvK", "KBPvK", "KPPvK", "KNvKP", "KPvKP"])
def test_search_is_the_slow_one(name: str, most_known: bool) -> None:
    ending, source = BY_NAME[name], Random(name)
    knowledge = knowledge_of(ending, most_known)
    buffers, ahead = new_buffers(ending.thirds), np.zeros(64, np.int64)
    outcomes = set()
    for _ in range(400 if knowledge.both_have_pawns else 12):  # double steps that decide are rare
        word = source.randrange(64), source.randrange(64), source.randrange(ending.thirds)
        found = search_word(*word, ending, knowledge.white, knowledge.black, buffers, ahead)
        for roamer in range(64):
            if int(knowledge.white.unknown[word]) >> roamer & 1:
                board = board_of(ending, (*word, roamer), WHITE)
                value = "won" if int(found.won) >> roamer & 1 else "lost" if int(found.lost) >> roamer & 1 else None
                may_win, may_lose = (bool(int(mask) >> roamer & 1) for mask in (found.may_win, found.may_lose))
                assert (value, may_win, may_lose, ahead[roamer]) == knowledge.search(board), board.fen()
                outcomes.add((value, may_win, may_lose))
    assert outcomes
