"""The main line of a game with its variations, as in PDN, and the line that is shown."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from engine.board import Move
from engine.pdn import PdnNode

Branches = list[tuple[int, list[PdnNode]]]  # variations from the outside in: ply at which each begins, and its nodes


def copied(nodes: list[PdnNode]) -> list[PdnNode]:
    """A deep copy of a line with its variations."""
    return [
        replace(
            node,
            nags=node.nags.copy(),
            comments_before=node.comments_before.copy(),
            comments=node.comments.copy(),
            variations=[copied(line) for line in node.variations],
        )
        for node in nodes
    ]


def move_number(half: int, dots: str = "...") -> str:
    """The number before a move: ``3.`` for Black's, ``3...`` for White's; ``half``: moves before it, as if Black had
    begun."""
    return f"{half // 2 + 1}{dots if half % 2 else '.'}"


def numbered(moves: Sequence[str], half: int, dots: str = "...") -> tuple[str, ...]:
    """Moves with numbers before Black's and before the first; ``half``, ``dots``: see ``move_number``."""
    return tuple(
        f"{move_number(place, dots)} {move}" if place == half or place % 2 == 0 else move
        for place, move in enumerate(moves, half)
    )


class GameLines:
    """A tree of lines, one of which is shown.

    Attributes:
        main: the line that was played; its nodes contain the variations.
    """

    def __init__(self, main: list[PdnNode]) -> None:
        self.main = main
        self._branches: Branches = []

    @property
    def on_main_line(self) -> bool:
        """Whether the line shown is the main line."""
        return not self._branches

    def nodes(self) -> list[PdnNode]:
        """The nodes of the line shown, from the start of the game."""
        nodes = self.main
        for ply, variation in self._branches:
            nodes = nodes[:ply] + variation
        return list(nodes)

    def play(self, ply: int, move: Move, keep: bool) -> None:
        """Makes a move after ``ply`` moves of the line shown, or shows the line that already has it there.

        Args:
            keep: what to do if the line has another move there. True: the new move begins a variation. False: the new
                move continues the line, and the old moves become a variation.
        """
        here = self._until(ply)
        known = next((branches for branches, node in self._choices(ply) if node.move == move), None)
        line, start = self._line_at(ply)
        if known is not None and (keep or known == here):
            self._branches = self._branches if known == here else known
        elif ply - start == len(line):
            line.append(PdnNode(move))
        elif keep:
            variation = [PdnNode(move)]
            line[ply - start].variations.append(variation)
            self._branches = [*here, (ply, variation)]
        else:
            before = line[ply - start :]
            instead = [PdnNode(move)] if known is None else _taken_out(before[0], known[-1][1])
            instead[0].variations = [before, *before[0].variations, *instead[0].variations]
            before[0].variations = []
            line[ply - start :] = instead
            self._branches = here

    def others(self, ply: int) -> list[Move]:
        """The alternatives to move ``ply`` (from 0) of the line shown, in other lines."""
        here = self._until(ply)
        return [node.move for branches, node in self._choices(ply) if branches != here]

    def turn_to_next(self, ply: int) -> bool:
        """Shows the next line (cyclically) that differs in move ``ply``; returns False if there is none."""
        choices = [branches for branches, _ in self._choices(ply)]
        if len(choices) < 2:
            return False
        self._branches = choices[(choices.index(self._until(ply)) + 1) % len(choices)]
        return True

    def promote(self) -> None:
        """Makes the line shown the main line; what was played there before becomes variations."""
        moves, self._branches = [node.move for node in self.nodes()], []
        for ply, move in enumerate(moves):
            self.play(ply, move, keep=False)

    def remove(self) -> None:
        """Removes the variation shown and shows the line that it belongs to. Other variations in the place of its first
        move, which lie in it, are kept."""
        ply, variation = self._branches.pop()
        line, start = self._line_at(ply)
        if ply - start < len(line):
            beside = line[ply - start].variations
            kept = ([other] if other is not variation else variation[0].variations for other in beside)
            beside[:] = chain.from_iterable(kept)

    def _until(self, ply: int) -> Branches:
        """The branches of the line shown up to its move ``ply``."""
        return [branch for branch in self._branches if branch[0] <= ply]

    def _line_at(self, ply: int) -> tuple[list[PdnNode], int]:
        """The list of nodes for move ``ply`` of the line shown, and the ply of its first node."""
        start, line = self._until(ply)[-1] if self._until(ply) else (0, self.main)
        return line, start

    def _choices(self, ply: int) -> Iterator[tuple[Branches, PdnNode]]:
        """All moves after ``ply`` moves of the line shown: the branches that lead to each, and its node."""
        base = [branch for branch in self._branches if branch[0] < ply]
        start, line = base[-1] if base else (0, self.main)
        if ply - start < len(line):
            yield base, line[ply - start]
            yield from _variations(base, ply, line[ply - start])


def _variations(base: Branches, ply: int, node: PdnNode) -> Iterator[tuple[Branches, PdnNode]]:
    for variation in node.variations:
        branches = [*base, (ply, variation)]
        yield branches, variation[0]
        yield from _variations(branches, ply, variation[0])


def _taken_out(node: PdnNode, variation: list[PdnNode]) -> list[PdnNode]:
    """Removes a variation from a node, or from the node's variations, and returns it."""
    node.variations = [line for line in node.variations if line is not variation]
    for line in node.variations:
        _taken_out(line[0], variation)
    return variation
