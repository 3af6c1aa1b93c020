"""Settings of the search, with values that other programs have published."""

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
        description="temperature of the network's priors; above 1 unlikely moves are tried sooner (lc0: 1.36)",
    )
    shot_prior: float = Field(
        0.0,
        ge=0,
        le=0.9,
        description="smallest prior of a sacrifice that wins material by force; 0: no search for sacrifices",
    )
    shot_visits: int = Field(
        1, ge=1, le=10_000, description="visits after which sacrifices are searched in a position; takes some µs"
    )
    draw_value: float = Field(
        0.0, ge=-1, le=1, description="contempt: value of a draw for the searching side; -1 is a loss"
    )
    contempt_lead: float = Field(
        0.0,
        ge=0,
        le=1,
        description="value (wins minus losses) from which on the searching side has its full contempt; level or behind "
        "it has none; 0: always full",
    )
    dirichlet_scale: float = Field(
        10.0, gt=0, le=100, description="dirichlet_alpha = scale / legal moves (AlphaZero: 0.3 at about 35 moves)"
    )
    noise_fraction: float = Field(0.25, ge=0, le=1, description="fraction of Dirichlet noise in the root priors")
    temperature: float = Field(
        1.0, ge=0, le=10, description="temperature for drawing a move by visit counts; 0 plays the best move"
    )
    temperature_plies: int = Field(30, ge=0, le=1000, description="plies of a game that use ``temperature``")
    final_temperature: float = Field(0.0, ge=0, le=10, description="temperature after ``temperature_plies``")
    oracle: Literal["off", "tablebase"] = Field(
        "off", description="what gives exact values of leaves with few pieces, in place of an evaluation"
    )
    leaves_in_flight: int = Field(
        1,
        ge=1,
        le=MOST_IN_FLIGHT,
        description="most leaves of one tree that wait for their evaluation at the same time; more than 8 only with "
        "32 visits of the root for each",
    )
    virtual_loss: float = Field(
        0.0,
        ge=0,
        le=2,
        description="a leaf in flight counts as its node's mean value minus this; with transpositions another way to "
        "its position may keep some of it until the next visit",
    )
    transpositions: bool = Field(
        False,
        description="share results between nodes with the same position, if it follows a capture or a move of a man",
    )
    reuse_tree: bool = Field(True, description="keep the subtree of the move played")

    def temperature_at(self, ply: int) -> float:
        """Temperature of the move made at ``ply`` (counted from the start of the game)."""
        return self.temperature if ply < self.temperature_plies else self.final_temperature

    def impartial(self) -> "SearchConfig":
        """The same settings without contempt, for a search that should find the best moves of both sides."""
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
"""Settings of a network's search in games, matches and (``impartial``) analysis.

Leaves in flight make it several times as fast. ``checkpoints/TRAINING.md`` tells how the values were chosen.
"""
