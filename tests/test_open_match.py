"""Matches played by a run's actors: in any order, with actors that die, and after the run was killed."""

import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.search import SearchConfig
from learner.inference import BackendError
from learner.network import NETWORKS, make_network
from learner.trainer import TrainingError
from selfplay.actors.actor import PlayStats
from selfplay.actors.pool import Pool, PoolActor, Result, ThreadPool
from selfplay.actors.pool_match import MatchPart, MatchPlayed, PoolMatch
from selfplay.actors.ray_pool import RayPool, _Handle
from selfplay.actors.weights import Weights
from selfplay.actors.worker import Played, Worker
from selfplay.games.openings import MatchError
from selfplay.matches.record import MatchGame
from selfplay.run.config import make_config
from selfplay.training.loop import Training, make_pool
from selfplay.training.open_match import OpenMatch

CONFIG = make_config("smoke", ["network=wide32", "match_search.num_simulations=4", "selfplay.positions_per_shard=20"])


def weights_of(seed: int) -> Weights:
    torch.manual_seed(seed)
    return Weights.of(make_network(NETWORKS["wide32"]), f"digest {seed}")


CANDIDATE, BEST = weights_of(1), weights_of(2)


def a_match(games: int = 40, number: int = 1, anchor: str | None = None) -> PoolMatch:
    networks = (CANDIDATE, BEST) if anchor is None else (CANDIDATE,)
    return PoolMatch(number, ("candidate", anchor or "best"), networks, anchor, 7, games)


def played_games(match: PoolMatch) -> list[MatchGame]:
    worker = Worker(CONFIG, 0, 1)
    parts = [worker.play_match(part, *match.networks) for part in match.parts()]
    return sorted((game for part in parts if part is not None for game in part.games), key=lambda game: game.index)


@pytest.fixture(scope="module")
def games() -> list[MatchGame]:
    return played_games(a_match())


def test_an_actor_plays_pairs_from_ballots_with_colours_swapped(games: list[MatchGame]) -> None:
    assert [game.index for game in games] == list(range(40))
    for first, second in zip(games[::2], games[1::2], strict=True):
        assert first.opening == second.opening
        assert first.black == second.white == "candidate"
        assert first.white == second.black == "best"
    assert len({game.opening for game in games}) == 20
    assert games == played_games(a_match()), "the same match again"


def test_a_network_that_fails_loses_no_games(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise BackendError("no memory")

    monkeypatch.setattr("learner.inference.NetworkEvaluator.evaluate", broken)
    monkeypatch.setattr("learner.inference.NetworkEvaluator.search", broken, raising=False)
    worker, match = Worker(make_config("smoke"), 0, 1), tiny_match()
    with pytest.raises(MatchError, match=r"a game of a match cannot be played: .* BackendError: no memory"):
        worker.play_match(match.parts()[0], *match.networks)


def tiny_match() -> PoolMatch:
    """A match of two residual networks, which are evaluated by torch."""
    networks = tuple(Weights.of(make_network(NETWORKS["tiny"]), name) for name in ("one", "two"))
    return PoolMatch(1, ("one", "two"), networks, None, 7, 4)


def test_an_actor_plays_an_anchor() -> None:
    match = a_match(4, anchor="random")
    assert {game.white for game in played_games(match)[::2]} == {"random"}


@pytest.mark.parametrize("end", [None, 17])
def test_games_count_in_the_order_of_their_openings(games: list[MatchGame], end: int | None) -> None:
    counted = list[int]()

    def on_game(game: MatchGame) -> bool:
        counted.append(game.index)
        return game.index == end

    opened = OpenMatch(a_match(), on_game)
    for part in (games[32:], games[:5], games[16:32], games[5:16], games[:3]):
        opened.take_in(MatchPlayed(1, tuple(part)))
    assert opened.over
    assert counted == list(range(40 if end is None else end + 1))
    assert opened.result.played == tuple(games[: len(counted)])


def test_games_of_another_match_do_not_count(games: list[MatchGame]) -> None:
    opened = OpenMatch(a_match(number=2))
    opened.take_in(MatchPlayed(1, tuple(games)))
    assert opened.known == []


def test_after_a_kill_games_are_there(games: list[MatchGame], tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    OpenMatch(a_match(), path=path).take_in(MatchPlayed(1, tuple(games[10:20])))
    OpenMatch(a_match(), path=path).take_in(MatchPlayed(1, tuple(games[:3])))
    again = OpenMatch(a_match(number=5), path=path)
    assert {game.index: game for game in again.known} == {game.index: game for game in (*games[:3], *games[10:20])}
    assert again.result.played == tuple(games[:3])
    assert OpenMatch(a_match(38), path=path).known == [], "other openings"


def test_games_of_another_search_do_not_count(games: list[MatchGame], tmp_path: Path) -> None:
    path, search = tmp_path / "gate.json", SearchConfig(num_simulations=8)
    OpenMatch(a_match(), path=path, search=search).take_in(MatchPlayed(1, tuple(games[:3])))
    assert len(OpenMatch(a_match(), path=path, search=search).known) == 3
    assert OpenMatch(a_match(), path=path, search=SearchConfig(num_simulations=9)).known == []


@pytest.mark.parametrize(
    "change", [lambda data: data[:-30], lambda data: data.replace(b"best", b"rest", 1), lambda data: b"[]"]
)
def test_a_damaged_file_begins_anew(
    games: list[MatchGame], tmp_path: Path, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "gate.json"
    OpenMatch(a_match(), path=path).take_in(MatchPlayed(1, tuple(games)))
    path.write_bytes(change(path.read_bytes()))
    assert OpenMatch(a_match(), path=path).known == []
    assert "the match begins anew" in caplog.text


class Died(Exception):  # noqa: N818
    pass


class FakePool(Pool):
    """Actors that answer requests at once; some die when their answer is read."""

    dead = Died
    nodes = 2

    def __init__(self, actors: int) -> None:
        self.number, self.deaths, self.shards = actors, 0, 0
        self.waiting: set[int] = set()  # numbers of actors that have no place
        super().__init__(CONFIG, 0)
        self.set_weights(CANDIDATE)

    def _places(self) -> Sequence[Hashable]:
        return range(self.number)

    def _may_play(self, actor: PoolActor) -> bool:
        return actor.number not in self.waiting

    def _start(self, actor: PoolActor, seed: int) -> Any:
        return actor.number

    def _ask(self, handle: Any, method: str, *arguments: Any) -> Any:
        if method == "play":
            return Played(handle, "here", b"", PlayStats())
        part, *networks = arguments
        assert networks == [CANDIDATE, BEST]
        return part

    def _wait(self, requests: Sequence[Any], timeout: float) -> None:
        return

    def _is_done(self, request: Any) -> bool:
        return True

    def _result(self, request: Any) -> Result:
        if self.deaths > 0:
            self.deaths -= 1
            raise Died
        return MatchPlayed(request.match.number, request.games) if isinstance(request, MatchPart) else request

    def close(self) -> list[Result]:
        return []


def asked(pool: FakePool, in_flight: int) -> list[Result]:
    pool.refill(in_flight)
    return pool.collect(0.0)


def test_matches_go_before_shards_and_are_all_that_is_played_at_the_end() -> None:
    pool = FakePool(2)
    pool.set_match(a_match(50))
    first = asked(pool, 2)
    assert [type(result) for result in first] == [MatchPlayed] * 4
    assert sorted(number for result in first for number in result.games) == list(range(50))  # type: ignore[union-attr]
    assert [type(result) for result in asked(pool, 2)] == [Played] * 4
    assert asked(pool, 0) == []


def test_actors_that_wait_for_a_place_get_no_games_of_a_match() -> None:
    pool = FakePool(3)
    pool.waiting = {0, 2}
    pool.set_match(a_match(50))
    games = [number for _ in range(9) for result in asked(pool, 0) for number in result.games]  # type: ignore[union-attr]
    assert sorted(games) == list(range(50))
    pool.set_match(a_match(50))
    pool.waiting = {0, 1, 2}
    assert [type(result) for result in asked(pool, 2)] == [Played] * 6
    pool.waiting = set()
    assert {type(result) for result in asked(pool, 2)} == {MatchPlayed, Played}


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_games_of_actors_that_die_are_played_by_others(deaths: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selfplay.actors.pool._LONGEST_PAUSE_S", 0.0)
    pool = FakePool(3)
    pool.set_match(a_match(100))
    pool.deaths, found = deaths, list[int]()
    for _ in range(20):
        found += [number for result in asked(pool, 0) for number in result.games]  # type: ignore[union-attr]
    assert sorted(found) == list(range(100))


def test_a_match_that_has_ended_is_played_no_more() -> None:
    pool = FakePool(1)
    pool.set_match(a_match(100))
    asked(pool, 0)
    pool.refill(0)
    pool.set_match(None)
    pool.deaths = 1
    assert asked(pool, 0) == []
    assert pool.in_flight == 0
    assert [type(result) for result in asked(pool, 2)] == [Played] * 2


def test_games_that_are_over_are_not_played_again() -> None:
    match = PoolMatch(1, ("a", "b"), (CANDIDATE, BEST), None, 7, 40, frozenset(range(0, 40, 2)))
    assert [number for part in match.parts() for number in part.games] == list(range(1, 40, 2))


def test_stopped_it_gives_up_its_games() -> None:
    worker = Worker(CONFIG, 0, 1)
    worker.stop()
    assert worker.play_match(a_match().parts()[0], CANDIDATE, BEST) is None


def test_no_two_starts_of_actors_have_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor those of a run that was resumed, after fewer shards than there had been starts."""
    seeds: list[int] = []

    class Seeds(ThreadPool):
        def _start(self, actor: PoolActor, seed: int) -> Any:
            seeds.append(seed)
            return super()._start(actor, seed)

    monkeypatch.setattr("selfplay.training.loop.ThreadPool", Seeds)
    for shards in (0, 2, 3):
        pool = make_pool(CONFIG.model_copy(update={"pool": "threads"}), SimpleNamespace(next_number=shards))  # type: ignore
        for _ in range(3):
            for actor in pool._actors:  # type: ignore[attr-defined]
                actor.handle = None
            pool._start_missing()  # type: ignore[attr-defined]
        pool.close()
    assert len(seeds) == len(set(seeds)) >= 9


def test_a_run_that_takes_turns_goes_on_after_its_actor_has_died() -> None:
    pool = FakePool(1)
    pool.deaths = 1
    training = SimpleNamespace(replay=SimpleNamespace(next_number=0))

    def collect(source: Pool, timeout: float) -> None:
        training.collected = training.collected + 1
        assert training.collected < 100
        training.replay.next_number += len(source.collect(0.0))

    training.collected, training._collect = 0, collect
    Training._collect_one(training, pool)  # type: ignore[arg-type]
    assert training.replay.next_number == 1


def test_a_ray_actor_that_dies_while_it_starts_gets_games_and_so_fails() -> None:
    class Gone(Exception):  # noqa: N818
        pass

    def get(_: object) -> str:
        raise Gone

    pool = RayPool.__new__(RayPool)
    done = {"greeted", "dead"}
    pool._cluster = SimpleNamespace(is_done=lambda greeting: greeting in done)  # type: ignore[assignment]
    pool._ray = SimpleNamespace(get=get, exceptions=SimpleNamespace(RayError=Gone))
    actor = PoolActor(0, None)
    assert not pool._may_play(actor)
    actor.handle = _Handle(None, "waiting", 0.0)
    assert not pool._may_play(actor)
    actor.handle = _Handle(None, "dead", 0.0)
    assert (pool._is_ready(actor), pool._may_play(actor)) == (False, True)


def test_actors_that_do_not_start_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    pool, now = RayPool.__new__(RayPool), time.monotonic()
    pool._cluster = SimpleNamespace(is_done=lambda greeting: greeting == "here")  # type: ignore[assignment]
    pool._ray = SimpleNamespace(get=str, cluster_resources=lambda: {"CPU": 2.0})
    pool._config, pool._warn_at = make_config("smoke", ["selfplay.actors=3"]), now
    pool._actors = [PoolActor(number, None) for number in range(3)]
    for actor, greeting, since in zip(pool._actors, ("here", "waiting", "waiting"), (100.0, 30.0, 30.0), strict=True):
        actor.handle = _Handle(None, greeting, now - since)
    pool._warn_of_missing()
    assert caplog.text == ""
    pool._actors[2].handle.since = now - 61
    pool._warn_of_missing()
    pool._warn_of_missing()  # not again so soon
    assert caplog.text.count("1 of 3 actors have not started for a minute: the cluster has 2 CPUs") == 1


def test_a_state_that_cannot_be_saved_keeps_nothing_else_from_it(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: str) -> None:
        raise TrainingError("weights are not finite")

    saved: list[object] = []
    keeper = SimpleNamespace(save=saved.append)
    folder = SimpleNamespace(trainer_path="trainer", student_path="student")
    training = SimpleNamespace(
        trainer=SimpleNamespace(save=fail), student=keeper, folder=folder, _judge=keeper, minutes=1.5, _mirror=None
    )
    Training._save(training)  # type: ignore[arg-type]
    assert saved == ["student", 1.5]
    assert "weights are not finite" in caplog.text
