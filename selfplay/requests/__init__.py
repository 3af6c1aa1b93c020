"""Requests: each class is a command, its fields are the options, its docstring is the help.

A request checks its values when it is made. Nothing of the engine is loaded before that, so that ``--help`` is quick.
"""

from .board import AnalyseRequest, EngineRequest, PlayRequest
from .matches import BlundersRequest, ConvertRequest, GamesRequest, LadderRequest, MatchesRequest, MatchRequest
from .options import RequestError
from .runs import BenchRequest, CardRequest, ExportRequest, StatusRequest, TrainRequest

__all__ = [
    "AnalyseRequest",
    "BenchRequest",
    "BlundersRequest",
    "CardRequest",
    "ConvertRequest",
    "EngineRequest",
    "ExportRequest",
    "GamesRequest",
    "LadderRequest",
    "MatchRequest",
    "MatchesRequest",
    "PlayRequest",
    "RequestError",
    "StatusRequest",
    "TrainRequest",
]
