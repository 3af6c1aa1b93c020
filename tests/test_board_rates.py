"""How fast a network searches one position: the figures are consistent."""

from pathlib import Path

import pytest
import torch

from engine.players import PlayerError
from engine.players.search_player import SearchPlayer
from engine.players.spec import parse_network
from engine.search import SearchConfig, UniformEvaluator
from learner.checkpoint import save_checkpoint
from learner.network import NETWORKS, make_network
from selfplay.measures.board_rates import board_rates, board_rates_command
from selfplay.requests import BenchRequest


@pytest.fixture
def network(tmp_path: Path) -> str:
    torch.manual_seed(0)
    save_checkpoint(tmp_path / "net", make_network(NETWORKS["tiny"]))
    return str(tmp_path / "net")


def test_rates(network: str) -> None:
    rates = board_rates(parse_network(network), (0.2, 0.4), backend="torch")
    assert [rate["seconds"] for rate in rates] == [0.2, 0.4]
    for rate in rates:
        assert rate["evaluations"] > 0
        assert rate["simulations"] > 0
    assert torch.get_num_threads() == 1


def test_command(network: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("selfplay.measures.board_rates.TIMES_S", (0.02,))
    request = BenchRequest(board=f"{network}@off", backend="torch")
    figures = board_rates_command(request, quiet=False)
    assert set(figures["rates"][0]) == {"seconds", "threads", "simulations", "evaluations"}
    assert len(figures["rates"]) == 1
    shown = capsys.readouterr()
    assert "simulations/s" in shown.out
    assert "ignored" not in shown.err
    board_rates_command(BenchRequest(board=f"{network}@off@800", backend="torch"), quiet=False)
    assert "time alone limits its search, 800 is ignored" in capsys.readouterr().err
    with pytest.raises(PlayerError, match="is no player"):
        board_rates_command(BenchRequest(board="nobody"), quiet=True)


def test_a_search_by_time_has_room_for_what_the_time_allows() -> None:
    def room(seconds: float) -> int:
        return SearchPlayer("x", UniformEvaluator(), SearchConfig(), seconds).config.num_simulations

    assert (room(0.1), room(1.0), room(10.0)) == (200_000, 2_000_000, 4_000_000)
