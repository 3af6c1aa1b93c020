"""Endgame knowledge of players and actors: the installed tables and the endgame oracle."""

from functools import cache

from engine.rules import played
from engine.search import LeafOracle, SearchConfig
from engine.tablebase import Tablebase, open_tablebase
from learner.endgame.data import held_out
from learner.endgame.oracle import Oracle, open_oracle

from .games.endgame import EndgameKnowledge
from .run.config import RunConfig


@cache
def shared_tablebase() -> Tablebase:
    """The tables of the default folder, opened once per process; raises ``TableFileError`` if one is damaged."""
    return open_tablebase()


@cache
def shared_oracle() -> Oracle:
    """The endgame oracle that comes with the program, read once per process; raises ``CheckpointError``.

    It searches no trees: at the board these took up to 200 MB more (``docs/measured.md``).
    """
    return open_oracle(trees=False)


def leaf_oracle(config: SearchConfig) -> LeafOracle | None:
    """The tables if ``config.oracle`` asks for them, else None; raises what ``shared_tablebase`` raises."""
    return shared_tablebase() if config.oracle == "tablebase" else None


def endgame_knowledge(config: RunConfig) -> EndgameKnowledge:
    """Endgame knowledge of a run's actors; raises what ``shared_tablebase`` raises."""
    needs_table = config.selfplay.adjudicate or config.selfplay.rescore
    return EndgameKnowledge(
        leaf_oracle=leaf_oracle(config.search) or leaf_oracle(config.match_search),  # by which opponents search
        table=shared_tablebase() if needs_table else None,
        held_out=held_out if played.HAS_TABLES else None,  # without tables nothing is validated on those positions
    )
