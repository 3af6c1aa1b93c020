"""Games of a gate that was killed: they go on where they stood, for the same two networks only."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.players import make_simple_player, parse_player
from engine.players.base import Player
from selfplay import gate_games
from selfplay.gate_games import GateGames
from selfplay.match import Running, play_match
from selfplay.match_record import MatchResult
from selfplay.openings import make_openings

NETWORKS = ("candidate", "best")
GAMES = 6
OPENINGS = make_openings("ballots", GAMES // 2, 3)


class Killed(Exception):  # noqa: N818
    pass


@pytest.fixture(autouse=True)
def _saved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_games, "_SAVE_S", 0.0)


def a_player(seed: int) -> Player:
    player = make_simple_player(parse_player("random"))
    player.seed(seed)
    return player


def play(games: GateGames, seed: int, rounds: int | None = None) -> MatchResult:
    """Plays on with the games; killed after so many rounds."""
    played = [0]

    def on_round(running: Sequence[Running]) -> None:
        games.note(running)
        played[0] += 1
        if rounds is not None and played[0] >= rounds and any(game.ended is None for game in running):
            raise Killed

    players = a_player(seed), a_player(seed + 1)
    return play_match(*players, OPENINGS, GAMES, seed=seed, on_round=on_round, boards=games.boards())


def moves_of(games: GateGames) -> dict[int, list[str]]:
    return {
        number: [str(move) for move in board.move_stack[OPENINGS[number // 2].board.ply :]]
        for number, board in games.boards().items()
    }


@pytest.mark.parametrize("rounds", [1, 8, 20])
def test_killed_again_and_again_it_goes_on(tmp_path: Path, rounds: int) -> None:
    path, before, kills = tmp_path / "gate.json", dict[int, list[str]](), 0
    while True:
        games = GateGames(path, NETWORKS, OPENINGS)
        now = moves_of(games)
        assert all(now[number][: len(moves)] == moves for number, moves in before.items())
        assert kills == 0 or sum(map(len, now.values())) > sum(map(len, before.values()))
        before = now
        try:
            result = play(games, seed=kills, rounds=rounds)
            break
        except Killed:
            kills += 1
    assert kills > 0
    assert [game.index for game in result.played] == list(range(GAMES))
    for game in result.played:
        made = [str(move) for move in game.moves[OPENINGS[game.index // 2].board.ply :]]
        assert made[: len(before[game.index])] == before[game.index]
        assert game.termination in ("NO_MOVES", "REPETITION", "REVERSIBLE_PLIES")


def test_other_networks_begin_anew(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    with pytest.raises(Killed):
        play(GateGames(path, NETWORKS, OPENINGS), 1, 5)
    assert len(moves_of(GateGames(path, NETWORKS, OPENINGS))) == GAMES
    assert moves_of(GateGames(path, ("next", "best"), OPENINGS)) == {}


@pytest.mark.parametrize(
    "change", [lambda data: data[:-30], lambda data: data.replace(b"-", b"+", 1), lambda data: b"[]"]
)
def test_a_damaged_file_begins_anew(tmp_path: Path, change: object, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "gate.json"
    with pytest.raises(Killed):
        play(GateGames(path, NETWORKS, OPENINGS), 1, 5)
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    assert GateGames(path, NETWORKS, OPENINGS).boards() == {}
    assert "the gate begins anew" in caplog.text
