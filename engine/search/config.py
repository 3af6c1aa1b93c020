"""Settings of the search, each beside the value its source published."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..rules import played

MOST_IN_FLIGHT = 256


class SearchConfig(BaseModel):
    """How a search explores and how a move is drawn from it.

    Sources: AlphaZero (Silver et al. 2018), lc0 and KataGo (FPU reduction).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    num_simulations: int = Field(64, ge=0, le=1_000_000, description="descents per move; 0 plays by the prior alone")
    c_puct: float = Field(1.5, gt=0, le=20, description="exploration constant (AlphaZero: 1.25)")
    fpu_reduction: float = Field(
        0.3, ge=0, le=2, description="how far below its parent an untried move is valued, times sqrt(tried prior)"
    )
    policy_temperature: float = Field(
        1.0,
        gt=0,
        le=10,
        description="of the network's move probabilities; above 1 unlikely moves are tried sooner (lc0: 1.36)",
    )
    shot_prior: float = Field(
        0.0,
        ge=0,
        le=0.9,
        description="least probability of a sacrifice that wins material by force; 0: they are not looked for",
    )
    shot_visits: int = Field(
        1, ge=1, le=10_000, description="visits of a position when sacrifices are looked for; it takes some µs"
    )
    draw_value: float = Field(
        0.0,
        ge=-1,
        le=1,
        description="contempt: what a draw is worth to the searcher; -1 is a loss",
    )
    contempt_lead: float = Field(
        0.0,
        ge=0,
        le=1,
        description="how far ahead, in wins minus losses, the searcher shuns draws with its whole contempt; level or "
        "behind it does not; 0: it always does",
    )
    dirichlet_scale: float = Field(
        10.0, gt=0, le=100, description="dirichlet_alpha = scale / legal moves (AlphaZero: 0.3 at about 35 moves)"
    )
    noise_fraction: float = Field(0.25, ge=0, le=1, description="share of Dirichlet noise in the root prior")
    temperature: float = Field(1.0, ge=0, le=10, description="of the draw among visit counts; 0 plays the best")
    temperature_plies: int = Field(30, ge=0, le=1000, description="plies drawn with ``temperature``")
    final_temperature: float = Field(0.0, ge=0, le=10, description="temperature afterwards")
    oracle: Literal["off", "tablebase"] = Field(
        "off", description="what decides leaves of few pieces without an evaluation; it is handed to the search"
    )
    leaves_in_flight: int = Field(
        1,
        ge=1,
        le=MOST_IN_FLIGHT,
        description="leaves of one tree that wait for their evaluation at the same time; beyond 8 one for every "
        "32 visits of the root",
    )
    virtual_loss: float = Field(
        0.0, ge=0, le=2, description="how far below a node's mean a leaf in flight counts; with 0 it counts as the mean"
    )
    transpositions: bool = Field(
        False,
        description="positions after a capture or a man's move that are reached on several ways share what was found "
        "below them",
    )
    reuse_tree: bool = Field(True, description="keep the subtree of the move played")

    def temperature_at(self, ply: int) -> float:
        """Temperature of the move made at ``ply`` (counted from the start of the game)."""
        return self.temperature if ply < self.temperature_plies else self.final_temperature

    def impartial(self) -> "SearchConfig":
        """The same without contempt, for a search that is to find the best move of either side."""
        return self.model_copy(update={"draw_value": 0.0})


BOARD_SEARCH = SearchConfig(
    num_simulations=400,
    oracle="tablebase" if played.HAS_TABLES else "off",
    leaves_in_flight=16,
    policy_temperature=2.0,
    shot_prior=0.3,
    draw_value=-0.3,
    contempt_lead=0.1,
    transpositions=True,
)
"""The search of a network at the board: in games, matches and (``impartial``) analysis.

Leaves in flight make it several times as fast; how all this was chosen is told in ``checkpoints/TRAINING.md``.
"""
