"""Matches between small players whose games are predictable."""

import itertools
import json
import logging
from collections.abc import Sequence

import numpy as np
import pytest

from engine.ballots import ballots, playable_ballots
from engine.board import Board, Move
from engine.fen import START_FEN, Color
from engine.pdn import read_games
from engine.players import RandomPlayer
from selfplay.games.openings import MatchError, Opening, make_openings
from selfplay.matches import match
from selfplay.matches.match import FORFEIT, PLY_CAP, MatchGame, MatchResult, play_match
from selfplay.rating.elo import elo_diff
from selfplay.rating.gate import Gate, GateConfig

START = [Opening("start", Board())]


class IndexPlayer:
    """Plays the legal move whose index follows from the position and the player's number."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.seeds: list[int] = []
        self.batches: list[int] = []

    def seed(self, seed: int) -> None:
        self.seeds.append(seed)

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        self.batches.append(len(boards))
        assert all(len(board.legal_moves) > 1 and board.outcome() is None for board in boards)
        return [board.legal_moves[sum(board.words()) * self.number % len(board.legal_moves)] for board in boards]


class ScriptPlayer(IndexPlayer):
    """As ``IndexPlayer``, but makes an error from a ply on."""

    def __init__(self, name: str, fault: str, ply: int = 0) -> None:
        super().__init__(name, 1)
        self.fault, self.ply = fault, ply

    def choose(self, boards: Sequence[Board]) -> list[Move]:
        moves = super().choose(boards)
        for i, board in enumerate(boards):
            if board.ply < self.ply:
                continue
            if self.fault == "raises":
                raise RuntimeError("lost my\nway")
            if self.fault == "illegal":
                moves[i] = Move(1, 32)
            if self.fault == "nothing":
                moves[i] = None  # type: ignore[call-overload]
            if self.fault == "too few":
                return moves[:i]
            if self.fault == "odd ballots" and int(board.move_stack[0].end) % 2:
                raise RuntimeError("not this opening")
        return moves


def openings(number: int) -> list[Opening]:
    return make_openings("ballots", number, 0)


# Openings


def test_ballot_openings() -> None:
    drawn = make_openings("ballots", 200, 4)
    names = [opening.name for opening in drawn]
    playable = {f"ballot {ballot.number}" for ballot in playable_ballots()}
    assert set(names[:156]) == playable  # each once before any comes twice
    assert len(set(names[156:])) == 44
    assert names[:156] != sorted(names[:156], key=lambda name: int(name.split()[1]))
    numbered = {f"ballot {ballot.number}": ballot for ballot in ballots()}
    for opening in drawn:
        assert [str(move).replace("x", "-") for move in opening.board.move_stack] == [
            text.replace("x", "-") for text in numbered[opening.name].moves
        ]
    assert [opening.name for opening in make_openings("ballots", 200, 4)] == names
    assert [opening.name for opening in make_openings("ballots", 200, 5)] != names


def test_random_openings() -> None:
    drawn = make_openings("random:6", 300, 1)
    assert all(opening.board.ply == 6 and opening.board.outcome() is None for opening in drawn)
    assert len({opening.board.fen() for opening in drawn}) == 300
    assert [opening.name for opening in make_openings("random:6", 300, 1)] == [opening.name for opening in drawn]
    assert all(opening.board.start_fen == START_FEN for opening in drawn)
    first = make_openings("random:1", 20, 0)
    assert len({opening.board.fen() for opening in first}) == 7  # there are no more
    assert len({opening.board.fen() for opening in first[:7]}) >= 6
    assert [opening.board.fen() for opening in make_openings("random:0", 2, 0)] == [Board().fen()] * 2
    assert all(opening.board.outcome() is None for opening in make_openings("random:40", 20, 0))


@pytest.mark.parametrize("spec", ["ballot", "random", "random:", "random:-1", "random:41", "random:9999", ""])
def test_unknown_openings(spec: str) -> None:
    with pytest.raises(MatchError, match="neither ballots nor random:K"):
        make_openings(spec, 1, 0)


# Matches


def replay(game: MatchGame) -> Board:
    board = Board(game.start_fen)
    for move in game.moves:
        board.push(move)
    return board


def test_pairs_swap_colours_and_play_to_the_end() -> None:
    a, b = IndexPlayer("a", 3), IndexPlayer("b", 7)
    starts = openings(10)
    result = play_match(a, b, starts, 20)
    assert [game.index for game in result.played] == list(range(20))
    for game in result.played:
        assert game.first_is_black == (game.index % 2 == 0)
        assert (game.black, game.white) == (("a", "b") if game.first_is_black else ("b", "a"))
        opening = starts[game.index // 2]
        assert game.opening == opening.name
        assert list(game.moves[:3]) == opening.board.move_stack
        board = replay(game)
        outcome = board.outcome()
        assert outcome is not None
        assert (outcome.winner, outcome.termination.name) == (game.winner, game.termination)
        assert len(game.moves) == board.ply
        # every move is the one that this side's player names
        board = Board(game.start_fen)
        for ply, move in enumerate(game.moves):
            number = 3 if (board.turn is Color.BLACK) == game.first_is_black else 7
            legal = board.legal_moves
            if ply >= 3:
                assert move == legal[sum(board.words()) * number % len(legal)]
            board.push(move)
    assert all(opening.board.ply == 3 for opening in starts)  # the openings are left as they were


def test_result_counts_for_the_first_player() -> None:
    result = play_match(IndexPlayer("a", 3), IndexPlayer("b", 7), openings(10), 19)
    points = []
    for game in result.played:
        own = Color.BLACK if game.index % 2 == 0 else Color.WHITE
        points.append(0.5 if game.winner is None else 1.0 if game.winner is own else 0.0)
    assert [game.score for game in result.played] == points
    assert result.pairs == [tuple(points[i : i + 2]) for i in range(0, 19, 2)]
    assert len(result.pairs[-1]) == 1
    pairs = [0] * 5
    for pair in result.pairs[:-1]:
        pairs[round(2 * sum(pair))] += 1
    singles = [0] * 3
    singles[round(2 * points[-1])] += 1
    diff = elo_diff(pairs, singles)
    summary = result.summary()
    assert summary == {
        "player_a": "a",
        "player_b": "b",
        "games": 19,
        "wins": points.count(1.0),
        "draws": points.count(0.5),
        "losses": points.count(0.0),
        "score": sum(points) / 19,
        "elo": diff.elo,
        "elo_error": diff.elo_error,
    }
    assert list(summary) == ["player_a", "player_b", "games", "wins", "draws", "losses", "score", "elo", "elo_error"]
    assert json.loads(json.dumps(summary)) == summary
    assert 0 < result.tally.wins < 19 or 0 < result.tally.losses < 19
    swapped = play_match(IndexPlayer("b", 7), IndexPlayer("a", 3), openings(10), 20)
    full = play_match(IndexPlayer("a", 3), IndexPlayer("b", 7), openings(10), 20)
    assert (swapped.tally.wins, swapped.tally.draws) == (full.tally.losses, full.tally.draws)
    assert swapped.tally.elo_diff().elo == pytest.approx(-full.tally.elo_diff().elo)


@pytest.mark.parametrize("concurrency", [1, 2, 7, 100])
def test_concurrency_does_not_change_the_match(concurrency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = IndexPlayer("a", 5), IndexPlayer("b", 11)
    expected = play_match(IndexPlayer("a", 5), IndexPlayer("b", 11), openings(6), 12)
    monkeypatch.setattr(match, "CONCURRENCY", concurrency)
    result = play_match(a, b, openings(6), 12)
    assert result == expected
    assert max(a.batches) == max(b.batches) == min(12, concurrency)
    assert a.batches[0] == max(1, min(12, concurrency) // 2)  # after a ballot White moves first: every second game


def test_seeds_reach_the_players() -> None:
    def seeds(seed: int) -> tuple[list[int], list[int]]:
        a, b = IndexPlayer("a", 1), IndexPlayer("b", 2)
        play_match(a, b, START, 1, seed=seed, max_plies=4)
        return a.seeds, b.seeds

    assert seeds(1) == seeds(1)
    assert len({tuple(part) for seed in (1, 2) for part in seeds(seed)}) == 4
    matches = [
        play_match(RandomPlayer(), RandomPlayer(), make_openings("random:4", 4, 9), 8, seed=seed).played
        for seed in (1, 1, 2)
    ]
    assert matches[0] == matches[1] != matches[2]


def test_ply_cap() -> None:
    result = play_match(IndexPlayer("a", 3), IndexPlayer("b", 7), openings(3), 6, max_plies=20)
    for game in result.played:
        assert (game.termination, len(game.moves), game.winner, game.result) == (PLY_CAP, 20, None, "1/2-1/2")
    assert (result.tally.elo_diff().score, result.tally.elo_diff().elo) == (0.5, 0)


def test_forced_moves_are_not_asked_for() -> None:
    forced = Opening("forced", Board("B:W10:B6"))  # one capture, and it ends the game
    a, b = IndexPlayer("a", 1), IndexPlayer("b", 1)
    result = play_match(a, b, [forced], 2)
    assert [game.termination for game in result.played] == ["NO_MOVES"] * 2
    assert [game.score for game in result.played] == [1.0, 0.0]
    assert a.batches == b.batches == []


@pytest.mark.parametrize("fault", ["raises", "illegal", "nothing", "too few"])
def test_a_faulty_player_loses_and_the_match_goes_on(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        result = play_match(ScriptPlayer("bad", fault, ply=10), IndexPlayer("good", 2), openings(4), 8)
    assert len(result.played) == 8
    assert (result.tally.wins, result.tally.draws, result.tally.losses) == (0, 0, 8)
    assert len(result.errors) == len(caplog.records) == 8
    for game in result.played:
        assert game.termination == FORFEIT
        assert len(game.moves) >= 10
        assert (replay(game).turn is Color.BLACK) == game.first_is_black
        assert game.error is not None
        assert game.error.startswith("bad (Black, ply " if game.first_is_black else "bad (White, ply ")
        assert "\n" not in game.error
        expected = {
            "raises": "RuntimeError: lost my way",
            "illegal": "IllegalMoveError: 1-32 is illegal",
            "nothing": "IllegalMoveError: None is illegal",
            "too few": "MatchError: 0 moves named for 1 boards",
        }
        assert expected[fault] in game.error
    assert result.errors[0] == f"game 1: {result.played[0].error}"


def test_one_bad_board_does_not_lose_the_others() -> None:
    starts = openings(8)
    bad = [bool(int(opening.board.move_stack[0].end) % 2) for opening in starts]
    assert 0 < sum(bad) < 8
    result = play_match(ScriptPlayer("bad", "odd ballots"), IndexPlayer("good", 2), starts, 16)
    good = play_match(ScriptPlayer("bad", "none"), IndexPlayer("good", 2), starts, 16)
    for game, without in zip(result.played, good.played, strict=True):
        assert (game.termination == FORFEIT) == bad[game.index // 2]
        if game.termination != FORFEIT:
            assert game == without


def test_an_interrupt_is_not_a_forfeit() -> None:
    class Interrupted(IndexPlayer):
        def choose(self, boards: Sequence[Board]) -> list[Move]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_match(Interrupted("a", 1), IndexPlayer("b", 1), START, 2)


@pytest.mark.parametrize("concurrency", [1, 5, 40])
def test_games_are_reported_in_order_and_can_end_the_match(concurrency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def stop_after_seven(game: MatchGame) -> bool:
        seen.append(game.index)
        return len(seen) == 7

    players = IndexPlayer("a", 3), IndexPlayer("b", 7)
    monkeypatch.setattr(match, "CONCURRENCY", concurrency)
    result = play_match(*players, openings(20), 40, on_game=stop_after_seven)
    assert seen == list(range(7))
    assert len(result.played) == 7
    assert result.played == play_match(*players, openings(20), 40).played[:7]


def test_gate_ends_a_match() -> None:
    gate = Gate(GateConfig(rule="winrate", score_threshold=0.5, max_games=40))
    faulty = ScriptPlayer("bad", "illegal", ply=5)
    result = play_match(
        IndexPlayer("good", 2), faulty, openings(20), 40, on_game=lambda game: gate.add_game(game.score) is not None
    )
    assert gate.decision == "promote"
    assert len(result.played) == gate.tally.games == 20
    assert gate.tally == result.tally


def test_pdn_of_a_match() -> None:
    result = play_match(ScriptPlayer("bad", "raises", ply=60), IndexPlayer("good", 2), openings(4), 8, max_plies=70)
    assert {game.termination for game in result.played} > {FORFEIT}
    games = list(read_games("\n".join(game.to_pdn({"Event": "test", "Round": "no"}) for game in result.played)))
    assert len(games) == 8
    for game, pdn in zip(result.played, games, strict=True):
        assert pdn.headers["Event"] == "test"
        assert pdn.headers["Round"] == f"{game.index // 2 + 1}.{game.index % 2 + 1}"
        assert (pdn.headers["Black"], pdn.headers["White"]) == (game.black, game.white)
        assert pdn.headers["Termination"] == game.termination
        assert pdn.result == game.result
        assert pdn.board().fen() == replay(game).fen()
        comments = list(itertools.chain.from_iterable(node.comments for node in pdn.moves))
        assert comments == ([game.error] if game.error else [])


def test_nonsense_is_refused() -> None:
    players = IndexPlayer("a", 1), IndexPlayer("b", 1)
    for games, max_plies, starts in ((0, None, START), (1, 0, START), (1, None, [])):
        with pytest.raises(MatchError, match="a match needs"):
            play_match(*players, starts, games, max_plies=max_plies)


def test_random_players_are_equal() -> None:
    result = play_match(RandomPlayer(), RandomPlayer(), openings(60), 120, seed=3)
    assert isinstance(result, MatchResult)
    assert abs(result.tally.elo_diff().elo) < 1.5 * result.tally.elo_diff().elo_error
    assert not result.errors
    assert len({game.moves for game in result.played}) == 120
    assert np.mean([len(game.moves) for game in result.played]) > 30
