"""Numbers of pieces of each kind: names of slices, and the order in which they can be solved."""

from typing import NamedTuple

MIN_PIECES, MAX_PIECES = 2, 8
EVEN_PIECES = 8  # with this number, there are only tables of four against four
NUM_CODES = 4096  # codes have three bits for each of the four counts


class Material(NamedTuple):
    """Numbers of pieces of each kind, seen by the side to move. A slice has all positions of one material."""

    own_men: int
    own_kings: int
    opp_men: int
    opp_kings: int

    @property
    def pieces(self) -> int:
        return sum(self)

    @property
    def name(self) -> str:
        """Four digits: own kings, opponent's kings, own men, opponent's men (the order of Wang 2023)."""
        return f"{self.own_kings}{self.opp_kings}{self.own_men}{self.opp_men}"

    @property
    def code(self) -> int:
        """Index of the slice in tables of ``NUM_CODES`` entries."""
        return self.own_men << 9 | self.own_kings << 6 | self.opp_men << 3 | self.opp_kings

    @classmethod
    def of_code(cls, code: int) -> "Material":
        return cls(code >> 9 & 7, code >> 6 & 7, code >> 3 & 7, code & 7)

    def swapped(self) -> "Material":
        """The same pieces with the other side to move."""
        return Material(self.opp_men, self.opp_kings, self.own_men, self.own_kings)

    @property
    def leads(self) -> bool:
        """Whether the side to move is the *first* side of the pair: more pieces, or as many and no fewer kings."""
        own = (self.own_men + self.own_kings, self.own_kings)
        return own >= (self.opp_men + self.opp_kings, self.opp_kings)

    @property
    def pair(self) -> "Material":
        """The slice of the pair (this one or ``swapped()``) with the first side to move."""
        return self if self.leads else self.swapped()

    @property
    def symmetric(self) -> bool:
        """Whether both sides have the same pieces, so that the pair is one slice."""
        return self == self.swapped()

    @property
    def solvable(self) -> bool:
        """Whether there can be a table: both sides have pieces, and of ``EVEN_PIECES`` the same number each."""
        own, opp = self.own_men + self.own_kings, self.opp_men + self.opp_kings
        return min(own, opp) > 0 and (own + opp < EVEN_PIECES or own == opp == EVEN_PIECES // 2)


def slices_of(pair: Material) -> list[Material]:
    """The slices of a pair, first the one with the first side to move; only one if it is symmetric."""
    return [pair] if pair.symmetric else [pair, pair.swapped()]


def parse_name(name: str) -> Material:
    """The material of a slice's name; raises ``ValueError`` if it is not four digits, or there are no tables of it."""
    if len(name) == 4 and name.isascii() and name.isdigit():
        own_kings, opp_kings, own_men, opp_men = map(int, name)
        material = Material(own_men, own_kings, opp_men, opp_kings)
        if material.solvable:
            return material
    raise ValueError(
        f"{name!r} is no slice: write own kings, opponent's kings, own men, opponent's men, like 1211; "
        f"each side needs a piece, and at most {MAX_PIECES} in all, {MAX_PIECES} only as four against four"
    )


def materials(pieces: int) -> list[Material]:
    """All ``solvable`` slices with exactly ``pieces`` pieces, in an order in which they can be solved.

    A capture leads to fewer pieces; a promotion leads to fewer men, with the same number of pieces on each side. So the
    slices are sorted by the first side's number of pieces, then by the number of men. The two slices of a pair are
    neighbours, the leading one first.
    """
    pairs = [
        Material(own_men, own - own_men, opp_men, pieces - own - opp_men)
        for own in range(1, pieces)
        for own_men in range(own + 1)
        for opp_men in range(pieces - own + 1)
    ]
    pairs = [m for m in pairs if m.leads and m.solvable]
    pairs.sort(key=lambda m: (m.own_men + m.own_kings, m.own_men + m.opp_men, m))
    return [material for pair in pairs for material in slices_of(pair)]


def materials_between(fewest: int, most: int) -> list[Material]:
    """All slices with ``fewest`` to ``most`` pieces, in an order in which they can be solved."""
    return [material for pieces in range(fewest, most + 1) for material in materials(pieces)]


def pairs_of(pieces: int) -> list[Material]:
    """The first slice of every pair with exactly ``pieces`` pieces, in an order in which they can be solved."""
    return [material for material in materials(pieces) if material.leads]


def pairs_up_to(pieces: int) -> list[Material]:
    """The first slice of every pair of 2 to ``pieces`` pieces, in an order in which they can be solved."""
    return [material for material in materials_between(MIN_PIECES, pieces) if material.leads]
