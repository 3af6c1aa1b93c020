"""Matches at the board: seats, openings, the table, what interrupts them, and what is saved."""

import os
from collections.abc import Sequence
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"

import pytest

pytest.importorskip("pygame", reason="the window needs pygame")

from windows import frames_until, opened_app

from engine.board import Board
from engine.fen import Color
from engine.files import StorageError
from engine.pdn import read_games
from gui.app import App
from gui.game.match_series import PAUSE_S, MatchSeries, MatchTools, points_text
from gui.game.opponents import OpponentSpec
from gui.game.plan import GamePlan
from gui.views.match_page import MatchPage

SHORT = "W:W31,K30:BK1,K2"
FIRST, SECOND = OpponentSpec(kind="random"), OpponentSpec(kind="alphabeta", depth=1)


def openings(text: str, number: int, seed: int) -> list[Board]:
    board = Board()
    board.push_pdn("11-15")
    return [board, Board()][:number]


def elo(results: Sequence[Sequence[float]]) -> tuple[float, float]:
    return 100.0 * sum(map(sum, results)), float(len(results))


TOOLS = MatchTools(openings, elo)


@pytest.fixture
def series(app: App) -> MatchSeries:
    made = MatchSeries((FIRST, SECOND), 4, openings("ballots", 2, 1), TOOLS)
    app.series = made
    made.begin(app.controller)
    return made


@pytest.fixture
def app(tmp_path: Path) -> App:  # type: ignore[misc]
    with opened_app(tmp_path, window_width=800, window_height=600, animation_ms=0) as app:
        app.match_tools = TOOLS
        yield app  # type: ignore[misc]


def end(app: App, series: MatchSeries, loser: Color, now: float) -> None:
    """Ends the game at the board, so that the next one begins."""
    app.controller.session.resign(loser)
    series.follow(app.controller, now)
    series.follow(app.controller, now + PAUSE_S / 2)
    series.follow(app.controller, now + PAUSE_S)


def test_pairs_have_an_opening_and_swap_the_colours(app: App, series: MatchSeries) -> None:
    seen = []
    for number in range(4):
        controller = app.controller
        seen.append((controller.agents[Color.BLACK], controller.session.texts, controller.session.headers["Round"]))
        end(app, series, Color.WHITE, 10.0 * number)
    assert seen == [(FIRST, ["11-15"], "1"), (SECOND, ["11-15"], "2"), (FIRST, [], "3"), (SECOND, [], "4")]
    assert series.over
    assert app.controller.notice.startswith("The match is over. random: 2 of 4 points")
    assert [one.score for one in series.played] == [1.0, 0.0, 1.0, 0.0]


def test_the_table(app: App, series: MatchSeries) -> None:
    assert series.line() == "game 1 of 4, 0 : 0, random – alphabeta:1"
    assert "0 of 0" in series.summary()
    end(app, series, Color.WHITE, 0.0)
    end(app, series, Color.WHITE, 10.0)
    app.controller.session.offer_draw(Color.BLACK)
    app.controller.session.answer_draw(True)
    series.follow(app.controller, 20.0)
    assert series.line() == "game 3 of 4, 1½ : 1½, random – alphabeta:1"
    assert series.summary().endswith("1½ of 3 points (+1 =1 −1), Elo +150 ± 2")
    assert [row.split("   ")[1] for row in series.rows()] == ["1-0", "1-0", "1/2-1/2"]
    assert [points_text(points) for points in (0, 0.5, 2, 2.5)] == ["0", "½", "2", "2½"]


def test_a_pause_says_first_how_to_go_on(app: App, series: MatchSeries) -> None:
    app.controller.toggle_pause()
    app.go.game.update(0.0)
    assert app.go.game.status.state.detail == "Move now goes on; game 1 of 4, 0 : 0, random – alphabeta:1"


def test_a_pause_between_two_games_holds_the_next_one(app: App, series: MatchSeries) -> None:
    app.controller.session.resign(Color.BLACK)
    series.follow(app.controller, 10.0)
    app.controller.toggle_pause()
    series.follow(app.controller, 11.0 + PAUSE_S)
    assert app.controller.session.finished
    assert app.go.game._message().detail.startswith("paused (P goes on); game 1 of 4")
    app.controller.toggle_pause()
    series.follow(app.controller, 12.0 + PAUSE_S)
    assert not app.controller.session.finished


def test_another_game_at_the_board_interrupts_it(app: App, series: MatchSeries) -> None:
    end(app, series, Color.WHITE, 0.0)
    app.controller.start(GamePlan())
    assert not series.at_board(app.controller)
    app.controller.session.resign(Color.BLACK)
    series.follow(app.controller, 50.0)
    series.follow(app.controller, 60.0)
    assert len(series.played) == 1
    series.begin(app.controller)
    assert app.controller.session.headers["Round"] == "2"


def test_it_is_stopped_after_a_game(app: App, series: MatchSeries) -> None:
    series.stopped = True
    end(app, series, Color.WHITE, 0.0)
    assert len(series.played) == 1
    assert app.controller.session.headers["Round"] == "1"


def test_a_stopped_match_goes_on_with_the_game_at_the_board(app: App, series: MatchSeries) -> None:
    game = app.controller.session.game
    series.stopped = True
    series.go_on(app.controller)
    assert (series.stopped, app.controller.session.game) == (False, game)


def test_the_game_at_the_board_does_not_count_once_the_match_is_ended(app: App, series: MatchSeries) -> None:
    end(app, series, Color.WHITE, 0.0)
    series.end()
    end(app, series, Color.WHITE, 10.0)
    assert (series.over, len(series.played)) == (True, 1)


def test_games_are_saved_but_never_over_others(app: App, series: MatchSeries, tmp_path: Path) -> None:
    end(app, series, Color.BLACK, 0.0)
    end(app, series, Color.WHITE, 10.0)
    path = tmp_path / "match.pdn"
    series.save(path)
    games = list(read_games(path.read_text()))
    assert [(game.headers["Black"], game.result) for game in games] == [("random", "0-1"), ("alphabeta:1", "1-0")]
    with pytest.raises(StorageError, match="there already"):
        series.save(path)


@pytest.mark.parametrize("table", [False, True], ids=["at the board", "while its table is shown"])
def test_two_players_play_it_to_the_end(app: App, monkeypatch: pytest.MonkeyPatch, table: bool) -> None:
    """The real loop, from a position of few moves."""
    monkeypatch.setattr("gui.game.match_series.PAUSE_S", 0.0)
    monkeypatch.setattr("gui.window_events.IDLE_WAIT_MS", 5)
    monkeypatch.setattr("gui.window_events.BUSY_WAIT_MS", 5)
    app.series = MatchSeries((FIRST, FIRST), 2, [Board(SHORT)], TOOLS)
    app.series.begin(app.controller)
    if table:
        app.go.open("match")
    for _ in range(4000):
        if app.series.over:
            break
        for event in app._events():
            app._dispatch(event)
        app.frame()
    assert app.series.over
    assert [one.game.start_fen for one in app.series.played] == [Board(SHORT).fen()] * 2
    assert isinstance(app.go.scene, MatchPage) == table


def test_a_path_that_is_typed_outlives_the_end_of_a_game(app: App, series: MatchSeries) -> None:
    end(app, series, Color.WHITE, 0.0)
    app.go.open("match")
    page = app.go.scene
    assert isinstance(page, MatchPage)
    app.frame()
    (field,) = (widget for widget in page.menu.get_widgets() if "Save" in widget.get_title())
    page.menu.select_widget(field)
    field.set_value("/tmp/typed.pdn")
    app.controller.session.resign(Color.BLACK)
    app.frame()
    assert len(series.played) == 2
    assert field in page.menu.get_widgets()
    page.menu.select_widget(page.menu.get_widgets()[1])
    app.frame()
    assert field not in page.menu.get_widgets()


def test_the_page_begins_stops_and_ends_a_match(app: App) -> None:
    app.go.open("match")
    page = app.go.scene
    assert isinstance(page, MatchPage)
    page._start()
    series = app.series
    assert series is not None
    assert app.go.scene is app.go.game
    assert series.at_board(app.controller)
    app.frame()
    assert "game 1 of 10" in app.go.game.status.state.detail
    app.go.open("match")
    titles = [widget.get_title() for widget in app.go.scene.menu.get_widgets()]  # type: ignore[attr-defined]
    assert titles[1:3] == ["Watch", "Stop after this game"]
    end(app, series, Color.WHITE, 0.0)
    app.go.scene._end()  # type: ignore[attr-defined]
    assert series.over


def test_enter_twice_does_not_end_the_match(app: App, series: MatchSeries) -> None:
    """The selection went on from *Stop after this game* to *End the match*, and nobody could watch the last game."""
    app.series = series
    app.go.open("match")
    page = app.go.scene
    assert isinstance(page, MatchPage)
    app.frame()
    page.menu.select_widget(next(one for one in page.menu.get_widgets() if one.get_title().startswith("Stop")))
    page.menu.get_selected_widget().apply()
    app.frame()
    titles = [widget.get_title() for widget in page.menu.get_widgets()]
    assert titles[1:4] == ["Watch", "Go on with the match", "End the match"]
    assert page.menu.get_selected_widget().get_title() == "Go on with the match"
    page.menu.get_selected_widget().apply()
    assert (series.stopped, series.over, app.go.scene) == (False, False, app.go.game)


def test_a_game_in_which_a_person_took_over_does_not_count(app: App, series: MatchSeries) -> None:
    controller = app.controller
    controller.take_over()
    series.follow(controller, 0.0)
    controller.take_over()  # and gave it back
    controller.session.resign(Color.WHITE)
    series.follow(controller, 0.5)
    assert "game 1 of 4" in series.line()
    assert "does not count" in controller.notice
    series.follow(controller, 0.5 + PAUSE_S)
    controller.take_over()
    series.follow(controller, 0.9)
    controller.take_over()
    end(app, series, Color.WHITE, 1.0)
    assert not series.played
    assert (controller.session.headers["Round"], controller.humans) == ("1", set())
    assert "game 1 of 4" in series.line()
    end(app, series, Color.WHITE, 10.0)
    assert len(series.played) == 1


def test_the_board_shows_no_match_that_is_ended(app: App, series: MatchSeries) -> None:
    app.go.to_game()
    app.frame()
    assert "game 1 of 4" in app.go.game.status.state.detail
    series.end()
    app.frame()
    assert "game" not in app.go.game.status.state.detail


def test_the_page_tells_that_a_player_has_failed(app: App, series: MatchSeries) -> None:
    app.go.open("match")
    app.frame()
    app.controller.toggle_pause()  # a move would remove the message
    app.controller.say("the engine has gone", alarm=True)
    app.frame()
    page = app.go.scene
    assert isinstance(page, MatchPage)
    assert page._foot == ("the engine has gone", True)


def test_a_match_goes_on_at_its_page_after_one_has_looked_back(app: App, series: MatchSeries) -> None:
    controller = app.controller
    controller.make(controller.session.board.legal_moves[0])
    controller.go_to(1)
    app.go.open("match")
    moves = len(controller.session.nodes)
    frames_until(app, lambda: len(controller.session.nodes) > moves or series.played)


def test_a_game_in_which_moves_were_taken_back_does_not_count(app: App, series: MatchSeries) -> None:
    controller = app.controller
    controller.make(controller.session.board.legal_moves[0])
    controller.go_to(1)
    controller.make(controller.session.board.legal_moves[1])  # as the agent does when it has to move from there
    controller.session.resign(Color.WHITE)
    series.follow(controller, 0.0)
    assert not series.played
    assert "does not count" in controller.notice
