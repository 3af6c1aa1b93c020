"""Levels with names: their texts, their players, and the one that follows a person's results."""

import os
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

from engine.board import Board
from engine.fen import Color
from engine.players import Player
from engine.players.levels import LEVELS, LevelPlayer, level_named
from engine.players.simple import RandomPlayer
from engine.players.spec import NetworkSpec, PlayerSpecError, parse_player
from gui.game.opponents import OpponentSpec, strength_position, strength_steps, strength_text, with_strength
from selfplay.conditions import Conditions
from selfplay.games.openings import make_openings
from selfplay.matches.match import play_match
from selfplay.players import make_player, search_of, settings_text


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_every_level_has_a_text_and_an_opponent_at_the_board(level) -> None:
    spec = parse_player(f"level:{level.name}")
    assert isinstance(spec, NetworkSpec)
    assert (spec.text, spec.level) == (f"level:{level.name}", level)
    assert search_of(spec, Conditions(5000, seconds=3.0)) == level.search
    assert f"temperature={level.temperature:g}" in settings_text(spec, Conditions())
    opponent = OpponentSpec(kind="level", level=level.name)
    assert opponent.player == spec
    assert not opponent.changed(timed=True).by_time
    place = strength_position(opponent)
    assert with_strength(opponent.changed(level="beginner"), place) == opponent
    assert f"level {place + 1} of {len(LEVELS)}" in strength_text(opponent)
    assert len(strength_steps(opponent)) == len(LEVELS)


def test_levels_become_stronger_from_one_to_the_next() -> None:
    assert len(LEVELS) >= 8
    assert [level.elo for level in LEVELS] == sorted(level.elo for level in LEVELS)
    strength = [(level.simulations, -level.temperature) for level in LEVELS]
    assert strength == sorted(strength)
    assert len({level.name for level in LEVELS}) == len({level.title for level in LEVELS}) == len(LEVELS)


def test_a_level_that_is_none_is_told_with_those_that_are() -> None:
    with pytest.raises(PlayerSpecError, match="levels are beginner, novice"):
        parse_player("level:Beginner")
    with pytest.raises(ValueError, match="levels are"):
        OpponentSpec(kind="level", level="nobody")


def test_a_level_plays_by_its_policy_and_varies_with_the_seed() -> None:
    player = make_player(parse_player("level:club"), Conditions(seconds=60.0))  # which it does not need
    assert isinstance(player, LevelPlayer)
    boards = [Board()] * 40
    player.seed(1)
    first = player.choose(boards)
    assert set(first) <= set(Board().legal_moves)
    assert len(set(first)) > 1
    player.seed(1)
    assert player.choose(boards) == first
    player.seed(2)
    assert player.choose(boards) != first


def score_of(player: Player, other: Player, games: int) -> float:
    pairs = play_match(player, other, make_openings("random:3", games // 2, 5), games).pairs
    return sum(map(sum, pairs)) / games


def test_a_beginner_loses_to_who_looks_one_ply_ahead_and_sometimes_to_random() -> None:
    beginner, one_ply, random = (
        make_player(parse_player(text), Conditions()) for text in ("level:beginner", "alphabeta:1", "random")
    )
    assert score_of(one_ply, beginner, 20) > 0.8
    assert 0.02 < score_of(random, beginner, 60) < 0.5


def test_the_level_follows_results(tmp_path: Path) -> None:
    pytest.importorskip("pygame", reason="the window needs pygame")
    import pygame

    from gui.app import App
    from gui.display import start_pygame
    from gui.game.endgame_info import EndgameInfo
    from gui.game.opponents import Opponents
    from gui.game.plan import GamePlan
    from gui.views.menu_pages import WelcomePage, store_spec, stored_spec

    def at(app: App) -> str:
        return stored_spec(app, "agent").level

    def lose(app: App, color: Color) -> None:
        app.controller.session.flag(color)
        app.frame()
        app.frame()

    start_pygame()
    app = App(Opponents(network=lambda spec: RandomPlayer()), EndgameInfo(), tmp_path)
    app.open_window()
    app.begin(None, menu=False)
    assert isinstance(app.go.scene, WelcomePage)
    app.go.to_game()
    store_spec(app, "agent", OpponentSpec(kind="level", level="learner"))
    plan = GamePlan(frozenset({Color.BLACK}), dict.fromkeys(Color, stored_spec(app, "agent")))
    app.controller.start(plan)
    app.frame()
    lose(app, Color.WHITE)
    assert at(app) == "learner"  # nobody has asked for that
    app.preferences.adaptive = True
    for loser, level in ((Color.WHITE, "casual"), (Color.BLACK, "learner"), (Color.BLACK, "novice")):
        app.controller.start(plan._replace(agents=dict.fromkeys(Color, stored_spec(app, "agent"))))
        app.frame()
        lose(app, loser)
        assert at(app) == level
        assert level_named(level).title in app.controller.notice
    app.controller.session.load_game(app.controller.session.to_game())  # a game that was over
    app.frame()
    assert at(app) == "novice"
    named = OpponentSpec(kind="level", level="novice")  # as the command line names it
    store_spec(app, "agent", named.changed(depth=named.depth + 1))
    app.controller.start(plan._replace(agents=dict.fromkeys(Color, named)))
    app.frame()
    lose(app, Color.WHITE)
    assert at(app) == "learner"
    app.close()
    pygame.quit()


def test_a_backend_for_all_players_is_recorded_as_one_s_own_is() -> None:
    own, common = parse_player("champion@torch"), parse_player("champion")
    assert isinstance(own, NetworkSpec)
    assert isinstance(common, NetworkSpec)
    assert settings_text(own, Conditions()) == settings_text(common, Conditions(backend="torch"))
    assert settings_text(common, Conditions(backend="numba")) != settings_text(common, Conditions())


def test_a_rematch_is_against_the_level_that_was_announced(tmp_path: Path) -> None:
    pygame = pytest.importorskip("pygame", reason="the window needs pygame")
    from gui.app import App
    from gui.display import start_pygame
    from gui.game.endgame_info import EndgameInfo
    from gui.game.opponents import Opponents
    from gui.game.plan import GamePlan
    from gui.views.menu_pages import store_spec, stored_spec

    start_pygame()
    app = App(Opponents(network=lambda spec: RandomPlayer()), EndgameInfo(), tmp_path)
    app.open_window()
    app.begin(None, menu=False)
    app.go.to_game()
    app.preferences.adaptive = True
    store_spec(app, "agent", OpponentSpec(kind="level", level="learner"))
    plan = GamePlan(frozenset({Color.BLACK}), dict.fromkeys(Color, stored_spec(app, "agent")))
    controller = app.controller
    controller.start(plan)
    for person in (Color.BLACK, Color.WHITE, Color.BLACK):  # each rematch counts, too
        app.frame()
        controller.session.flag(person.other)
        app.frame()
        assert level_named(stored_spec(app, "agent").level).title in controller.notice
        controller.rematch()
        assert controller.agents[person] == stored_spec(app, "agent")
    before = stored_spec(app, "agent").level
    app.frame()
    app.controller.make(controller.session.board.legal_moves[0])
    controller.take_over()  # who plays both sides has not beaten the level
    app.frame()
    controller.session.flag(next(iter(controller.humans)).other)
    app.frame()
    assert stored_spec(app, "agent").level == before
    app.close()
    pygame.quit()
