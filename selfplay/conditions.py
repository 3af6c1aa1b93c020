"""Conditions under which a player is made: limits of its search, backend, seed."""

from dataclasses import dataclass

from engine.search import SearchConfig


@dataclass(frozen=True)
class Conditions:
    """What a player is made for; the text of a network goes before it.

    Attributes:
        simulations: of a network's search per move, where its text does not say; None for the default.
        seconds: per move, instead of simulations or depth, for the players that can be timed.
        timed: time will limit the search, though there are no ``seconds`` yet.
        device: of a network, ``auto``, ``cpu`` or ``cuda``.
        backend: of a network's evaluator, see ``learner.inference.make_evaluator``.
        batch: about the number of games side by side; at 1 leaves of one tree must fill the evaluator's batches.
        plain: without what strengthens a search at the board: probabilities, shots and draws count as they are.
        search: of a network, in place of what its text, ``simulations`` and ``plain`` ask for.
        explore: games vary, by noise and temperature of a network's search.
        seed: of the player's random numbers.
    """

    simulations: int | None = None
    seconds: float | None = None
    timed: bool = False
    device: str = "auto"
    backend: str = "auto"
    batch: int = 1
    plain: bool = False
    search: SearchConfig | None = None
    explore: bool = False
    seed: int = 0

    @property
    def is_timed(self) -> bool:
        """Whether time limits the search."""
        return self.timed or self.seconds is not None


USUAL = Conditions()
