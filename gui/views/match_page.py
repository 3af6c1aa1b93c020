"""The page for a match of two agents: players, number of games, openings; results; saving."""

import time
from functools import partial
from pathlib import Path

from ..game.match_series import MatchSeries
from ..game.pdn_files import typed_file
from ..menus import MenuScene
from .file_pages import last_folder
from .menu_pages import OpponentPage, stored_spec
from .program import Program

GAMES = (2, 4, 10, 20, 50, 100, 200)
OPENINGS = (("ballots", "ballots"), ("three random moves", "random:3"), ("the normal position", "random:0"))
_MOST_ROWS = 200  # most games shown


class MatchPage(MenuScene):
    """Shows the match being played, which goes on meanwhile, or the settings of the next one."""

    title = "Match"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self._games, self._openings = 10, "ballots"
        self._file_name = f"{time.strftime('%Y-%m-%d_%H-%M')} match.pdn"
        self._shown = 0  # games played when the table was filled
        self._told = ""  # latest message of the board that is shown here, too

    def poll(self) -> None:
        """The game at the board goes on, and after it the next one."""
        controller, series = self.app.controller, self.app.series
        if series is None or not series.at_board(controller):
            return
        controller.enter()
        controller.to_end()  # who has looked back at the board does not stop the match
        controller.tick()
        series.follow(controller, time.monotonic())
        if controller.alarm and controller.notice != self._told:
            self._told = controller.notice
            self.say(controller.notice, alarm=True)
        if len(series.played) != self._shown and not self.typing:
            self.rebuild()

    def fill(self) -> None:
        app, series = self.app, self.app.series
        self._shown = 0 if series is None else len(series.played)
        if series is not None:  # from the beginning, so that the selected button keeps its place
            self.menu.add.label(series.summary())
        if series is not None and not series.over:
            self._under_way(series)
        else:
            self._settings()
        if series is not None and series.played:
            default = last_folder(app) / self._file_name
            self.text_input("Save as PDN", str(default), 500, "Enter saves all games of the match", onreturn=self._save)
            for row in series.rows()[-_MOST_ROWS:]:
                self.menu.add.label(row)

    def _under_way(self, series: MatchSeries) -> None:
        here = series.at_board(self.app.controller)
        if here and not (series.stopped and self.app.controller.session.finished):
            self.button("Watch", self.app.go.to_game, "The games at the board")
        if here and not series.stopped:  # the next button has its place, so that Enter twice does not end the match
            self.button("Stop after this game", partial(self._stop, series), "The games played by then are kept")
        else:
            meaning = "More games are played" if here else "Another game that was begun at the board meanwhile is kept"
            self.button("Go on with the match", partial(self._begin, series), meaning)
        self.button("End the match", self._end, "The table stays until another match begins")

    def _settings(self) -> None:
        self.button("Start", self._start, "Games in pairs: the same opening twice, with the colours swapped")
        for title, who in (("First", "first"), ("Second", "second")):
            label = stored_spec(self.app, who).label
            self.button(f"{title}: {label} …", self.opener(OpponentPage, who=who), "Kind and strength of the player")
        counts = [(str(count), count) for count in GAMES]
        self.selector("Games", counts, self._games, self.setter("_games"), "How many")
        self.selector("From", OPENINGS, self._openings, self.setter("_openings"), "Another opening for every pair")

    def _start(self) -> None:
        tools = self.app.match_tools
        if tools is None:
            self.say("Matches are not available here", alarm=True)
            return
        players = stored_spec(self.app, "first"), stored_spec(self.app, "second")
        openings = tools.openings(self._openings, (self._games + 1) // 2, time.time_ns() % (1 << 32))
        self.app.save_preferences()
        self._begin(MatchSeries(players, self._games, openings, tools))

    def _begin(self, series: MatchSeries) -> None:
        self.app.series = series
        if self.attempt(lambda: series.go_on(self.app.controller)):
            self.app.go.to_game()

    def _stop(self, series: MatchSeries) -> None:
        series.stopped = True
        self.rebuild()

    def _end(self) -> None:
        series = self.app.series
        if series is not None:
            series.end()
            self.app.series = series if series.played else None
        self.rebuild()

    def _save(self, text: str) -> None:
        self.attempt(lambda: self._write(typed_file(text, last_folder(self.app))))

    def _write(self, path: Path) -> None:
        if self.app.series is not None:
            self.app.series.save(path)
            self.say(f"Saved as {path}")
