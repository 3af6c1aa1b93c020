"""The page with the games of a PDN file, which can be searched by words, result and the position on the board."""

from functools import partial
from os.path import exists, isdir

from engine.position_keys import key_of

from ..archive.game_library import GameLibrary, Listed, Query
from ..game.pdn_files import PdnGames
from ..menus import ON_OFF, MenuScene
from .program import Program

SHOWN = 100  # most games on a page
RESULTS = (("any", ""), ("Black won", "1-0"), ("White won", "0-1"), ("draw", "1/2-1/2"), ("open", "*"))


class LibraryPage(MenuScene):
    """Lists the games read so far, while the rest is being read."""

    def __init__(self, app: Program, library: GameLibrary) -> None:
        super().__init__(app)
        self.library, self.title = library, library.path.name
        self._words, self._result, self._here, self._first = "", "", False, 0
        self._shown: tuple[int, bool] = (0, False)  # at the last ``poll``: games read, whether all were
        self._full = False  # whether the page is full
        app.listed = self

    def fill(self) -> None:
        meaning = "Players, event, place, date or opening, like: smith defiance; Enter searches"
        typed, search = self.guard(self.setter("_words")), partial(self._choose, "_words")
        self.text_input("Search", self._words, 100, meaning, onchange=typed, onreturn=search)
        self.selector("Result", RESULTS, self._result, partial(self._choose, "_result"), "How the games ended")
        meaning = "Only games that came to the position on the board, in whatever order of moves"
        self.selector("With the board's position", ON_OFF, self._here, partial(self._choose, "_here"), meaning)
        if exists(self.library.path) and not isdir(self.library.path):
            meaning = "The champion judges every move of every game, while you play; into a file of its own"
            self.button("Analyse all games …", partial(self.app.go.open_analysis, self.library.path), meaning)
        count, games = self._find()
        self._full = len(games) == SHOWN
        last = self._first + len(games)
        so_far = "" if self.library.done else " so far"
        shown = f", shown {self._first + 1:,} to {last:,}" if last else ""
        self.menu.add.label(f"{count:,} {'game' if count == 1 else 'games'}{so_far}{shown}")
        for game in games:
            self.button(f"{game.number}.  {game.title}", partial(self._load, game), game.opening)
        if last < count:
            self.button("More …", partial(self._turn, self._first + SHOWN), "The next games of the list")
        if self._first > 0:
            self.button(
                "Previous …", partial(self._turn, max(0, self._first - SHOWN)), "The previous games of the list"
            )

    def poll(self) -> None:
        seen = self.library.count, self.library.done
        if seen == self._shown:
            return
        self._shown = seen
        if seen[1]:
            self.say("")
            self.attempt(self.library.check)
        else:
            self.say(f"Reading: {seen[0]:,} games so far")
        if not self._full or seen[1]:
            self.rebuild()

    def _find(self) -> tuple[int, list[Listed]]:
        key = key_of(self.app.controller.session.board) if self._here else None
        found: list[tuple[int, list[Listed]]] = []
        query = Query(self._words, self._result, key)
        self.attempt(lambda: found.append(self.library.search(query, self._first, SHOWN)))
        return found[0] if found else (0, [])

    def _choose(self, field: str, value: object) -> None:
        setattr(self, field, value)
        self._turn(0)

    def _turn(self, first: int) -> None:
        self._first = first
        self.rebuild()

    def _load(self, game: Listed) -> None:
        if show_game(self, self.library, game.number) and game.ply is not None:
            self.app.controller.go_to(game.ply)


def show_game(menu: MenuScene, games: GameLibrary | PdnGames, number: int) -> bool:
    """Loads one of several games; returns False and shows a message if it is not valid."""
    app = menu.app
    shown = menu.attempt(lambda: app.controller.session.load_game(games.game(number)))
    if shown:
        app.autosave.show(app.controller.session)
        app.controller.loaded()
        app.go.to_game()
    return shown
