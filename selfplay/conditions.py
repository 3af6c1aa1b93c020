"""Conditions under which a player is made: limits of its search, backend, seed."""

from dataclasses import dataclass

from engine.search import SearchConfig


@dataclass(frozen=True)
class Conditions:
    """Conditions under which a player is made. Settings in the text of a network override them, but a time limit
    overrides its number of simulations.

    Attributes:
        simulations: simulations per move of a network, if its text names none; None for the default.
        seconds: time per move, in place of simulations or depth, for players that can be timed.
        timed: whether time will limit the search although ``seconds`` is still None.
        device: device of a network: ``auto``, ``cpu`` or ``cuda``.
        backend: backend of a network's evaluator, see ``learner.inference.make_evaluator``.
        batch: approximate number of games side by side; at 1, leaves of one tree must fill the evaluator's batches.
        plain: whether the search has the defaults of ``SearchConfig`` in place of ``BOARD_SEARCH``.
        search: search of a network, in place of what its text, ``simulations`` and ``plain`` ask for.
        explore: whether games vary, by noise and temperature in a network's search.
        seed: seed of the player's random numbers.
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

    def limit_of(self, own: int | None, usual: int) -> int:
        """Simulations, or nodes, per move: ``own`` of the player's text, else ``simulations``, else ``usual``."""
        return next(number for number in (own, self.simulations, usual) if number is not None)


USUAL = Conditions()
