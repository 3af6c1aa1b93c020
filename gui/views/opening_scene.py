"""The scene of the openings: names, moves with results of games, and the champion's evaluation."""

from functools import partial
from pathlib import Path

import pygame

from engine.board import Move
from engine.errors import DraughtsError
from engine.fen import Color

from ..archive.game_library import GameLibrary, IndexInUseError, Played
from ..archive.opening_tree import OpeningTree, TreeRow, gathered
from ..game.game_lines import numbered
from ..game.plan import BOTH
from ..game.snapshot import Snapshot
from ..help import Action
from .board_scene import STEPS, BoardScene, Passage, stepped
from .board_view import Arrow, BoardPicture
from .entry_scene import EntryScene
from .file_pages import CollectionPage
from .game_facts import short_count, signed
from .move_panels import OPENING_COLUMNS, MoveTable, TableRow, TableState
from .program import Program
from .widgets import Button

_SHOWN_PLIES = (8, 16)  # plies of the line that are shown, in a narrow and in a wide panel


class OpeningScene(EntryScene, BoardScene):
    """A line of play to click through, beginning at the position of the game; the game itself is not changed."""

    name = "openings"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        session = app.controller.session
        self.flipped = app.go.game.flipped
        self.tree = OpeningTree(list(session.boards()), session.ply)
        self.collections: list[GameLibrary] = []
        self.source = 0  # index in ``collections``; one more than the last: all together
        self.rows_known: tuple[TreeRow, ...] = ()
        self._played: list[Played] = []
        self.analysing = app.controller.analysing
        self.chosen: int | None = None  # index of the chosen row
        self._asked: int | None = None  # number of the running search's request
        self._fault = ""
        self._looked_up: object = None
        self._first_row = 0
        self.table = MoveTable(OPENING_COLUMNS)
        self.panels.append(self.table)
        self._collect()
        self._moved()
        self._buttons()

    def _collect(self) -> None:
        """Updates the list of collections and selects all of them."""
        self.collections = self.app.shelf.collections(self.app.preferences.collection)
        self.source = len(self.collections) if len(self.collections) > 1 else 0

    # --- the line

    def make(self, move: Move, dropped: bool = False) -> None:
        before = self.tree.board.copy()
        self.tree.play(move)
        self.show_move(self.tree.board.peek(), before, self.tree.board, dropped)
        self._moved()

    def _go(self, ply: int) -> None:
        self.tree.go_to(ply)
        self.motion.animation = None
        self._moved()

    def _moved(self) -> None:
        """Updates the state after a change of position."""
        self.open_board(self.tree.board, BOTH)
        self.chosen, self._first_row = None, 0
        self.rows_known, self._looked_up = (), None  # a click in the same frame must not play an old move
        self._rest()

    def _rest(self) -> None:
        """Stops the search; ``update`` begins a new one if the analysis is on."""
        if self._asked is not None:
            self.app.thinker.cancel()
            self._asked = None

    def _play_row(self, row: int) -> None:
        if row < len(self.rows_known):
            self.make(self.rows_known[row].move)

    # --- every frame

    def update(self, now: float) -> None:
        super().update(now)
        if self.analysing and self._asked is None and self.tree.board.outcome() is None:
            self._asked = self.app.thinker.request(self.tree.board, self.app.controller.adviser(), "analyse")
        snapshot = self._thought()
        self._look_up(snapshot)
        fits = self.table.room(self.style.unit)
        self._first_row = max(0, min(self._first_row, len(self.rows_known) - fits))
        shown = self.rows_known[self._first_row : self._first_row + fits]
        most = max((row.played.games for row in self.rows_known), default=0) or 1
        texts = tuple(_row(row, most) for row in shown)
        pointed = None if self.chosen is None else self.chosen - self._first_row
        behind = len(self.rows_known) - self._first_row - len(shown)
        self.table.state = TableState(texts, pointed, self._first_row, behind)
        self.passage.state = self._passage(snapshot)
        self._buttons()

    def _thought(self) -> Snapshot | None:
        snapshot = self.app.thinker.snapshot
        return snapshot if snapshot is not None and snapshot.number == self._asked else None

    def _look_up(self, snapshot: Snapshot | None) -> None:
        """Looks the position up in the collections, if it or they have changed."""
        libraries = self._sources()
        asked = self.tree.key, tuple((library, library.count, library.done) for library in libraries), snapshot
        if asked == self._looked_up:
            return
        if self._looked_up is None or asked[:2] != self._looked_up[:2]:  # type: ignore[index]
            try:
                self._played = gathered(libraries, self.tree.key)
                for library in libraries:
                    library.check()
                self._fault = ""
            except IndexInUseError:
                return  # in the next frame
            except (DraughtsError, OSError) as error:
                self._fault = str(error)
        self._looked_up = asked
        self.rows_known = self.tree.rows(self._played, snapshot)

    def _sources(self) -> list[GameLibrary]:
        return self.collections if self.source >= len(self.collections) else [self.collections[self.source]]

    def _passage(self, snapshot: Snapshot | None) -> Passage:
        tree = self.tree
        names = [before.pdn(move) for before, move in zip(tree.boards, tree.line, strict=False)]
        skipped = max(0, len(names) - _SHOWN_PLIES[self.passage.rect.w > 20 * self.style.unit])
        line = " ".join(numbered(names[skipped:], skipped + (tree.boards[0].turn is Color.WHITE), "…"))
        games = sum(row.played.games for row in self.rows_known)
        sources, own = self._sources(), self.app.autosave.folder
        named = len(sources) == 1 and sources[0].path != own  # a button cuts a long name
        of = f" of {sources[0].path.name}" if named else ""
        parts = [f"{games:,} game{'' if games == 1 else 's'}{of} went on from here"]
        parts += [f"reading, {one.count:,} so far" for one in sources if not one.done]
        parts += [f"read to game {one.count:,} only" for one in sources if one.cut_short]
        if not self.collections:
            parts = ["No games yet: play some, or open a file by More"]
        if snapshot is not None and snapshot.count:
            parts.append(f"{short_count(snapshot.count)} {snapshot.counted}")
        faults = [self._fault, self.entry.message, (snapshot.error if snapshot is not None else None) or ""]
        title = self.tree.opening or ("Openings" if self.tree.ply == 0 else "Opening without a name")
        return Passage(title, ("… " if skipped else "") + line, tuple(filter(None, faults)), "; ".join(parts))

    def _buttons(self) -> None:
        controller, tree = self.app.controller, self.tree
        session = controller.session
        may = tree.ply > 0 and (session.finished or controller.humans == BOTH) and session.may_keep(tree.line)
        reading = any(not one.done for one in self.collections)
        several = len(self.collections) > 1
        own = self.app.autosave.folder
        labels = ["Mine" if one.path == own else one.path.name for one in self.collections]
        sources = [
            Button(f"source {place}", label=label, on=self.source == place) for place, label in enumerate(labels)
        ]
        everything = Button(f"source {len(sources)}", label="All", on=self.source == len(sources))
        more = Button("halt", label="Stop reading") if reading else Button("more", label="More")
        enabled = dict.fromkeys(("first", "previous"), tree.ply > 0)
        enabled |= dict.fromkeys(("next", "last"), tree.ply < len(tree.boards) - 1)
        self.set_buttons(
            (*sources, *([everything] if several else []), more),
            tuple(Button(name, label=label, enabled=enabled[name]) for name, label in STEPS.items()),
            (
                Button(Action.ANALYSE, label="Think", on=self.analysing),
                Button("keep", label="To game", enabled=may),
                Button("leave", label="Back"),
            ),
        )

    def place(self) -> None:
        super().place()
        rect = self.passage.rect
        if rect.w > 2.2 * rect.h:
            self.passage.rect, self.table.rect = rect.cut_left(rect.w * 45 // 100, self.style.gap)
        else:
            height = min(round(9 * self.style.unit), rect.h * 36 // 100)
            self.passage.rect, self.table.rect = rect.cut_top(height, self.style.gap)

    def picture(self) -> BoardPicture:
        picture = self.entry_picture(self.tree.board)
        if self.motion.animation is not None or self.chosen is None or self.chosen >= len(self.rows_known):
            return picture
        return picture._replace(arrows=(Arrow(self.rows_known[self.chosen].move.path, 0.8),))

    # --- hands

    def mouse(self, event: pygame.event.Event) -> None:
        inside = self.table.rect.collidepoint(event.pos if event.type != pygame.MOUSEWHEEL else self.motion.pointer)
        if event.type == pygame.MOUSEWHEEL:
            if inside:
                self._first_row -= event.y
            else:
                self._go(self.tree.ply - event.y)
            return
        row = self.table.row_at(event.pos, self.style.unit)
        if event.type == pygame.MOUSEMOTION:
            self.chosen = None if row is None else row + self._first_row
        if event.type == pygame.MOUSEBUTTONDOWN and event.button == 1 and row is not None:
            self._play_row(row + self._first_row)
        super().mouse(event)

    def press(self, name: str) -> None:
        tree = self.tree
        ply = stepped(name, tree.ply, len(tree.boards) - 1)
        if ply is not None:
            self._go(ply)
        elif name.startswith("source "):
            self.source = int(name.split()[1])
        elif name == "more":
            self._rest()
            self.app.go.show(partial(CollectionPage, chosen=self._opened))
        elif name == "halt":
            for one in self.collections:
                one.halt()
        elif name == Action.ANALYSE:
            self.analysing = not self.analysing
            self._rest()
        elif name == "keep":
            self._keep()
        else:
            self.leave()

    def _opened(self, path: str) -> None:
        """Uses another collection and stores it in the preferences."""
        self.app.preferences.collection = path
        self.app.save_preferences()
        self.app.shelf.reopen(Path(path))
        self._collect()

    def _keep(self) -> None:
        """Leaves the scene and adds the line to the game, as a variation of what was played."""
        self.leave()
        self.app.go.to_game()
        self.app.controller.keep_line(self.tree.line)

    def act(self, action: Action, event: pygame.event.Event) -> bool:
        if action in (Action.CURSOR_UP, Action.CURSOR_DOWN):
            self._set_focus(None)  # Enter acts on the row now
            step = 1 if action is Action.CURSOR_DOWN else -1
            chosen = (-1 if step > 0 else 1) if self.chosen is None else self.chosen
            self.chosen = min(max(0, chosen + step), max(0, len(self.rows_known) - 1))
            fits = max(1, len(self.table.state.rows))
            self._first_row = min(max(self._first_row, self.chosen - fits + 1), self.chosen)
        elif action is Action.ENTER and self.focus is None:
            if self.chosen is not None:
                self._play_row(self.chosen)
        else:
            return super().act(action, event)
        return True

    def leave(self) -> None:
        self._rest()
        super().leave()


def _row(row: TreeRow, most: int) -> TableRow:
    played, thought = row.played, row.thought
    champion = "" if thought is None else thought.proof or signed(thought.value)
    won, drawn, lost = (short_count(count) if played.games else "" for count in played[1:4])
    return TableRow((row.pdn, won, drawn, lost, champion), played.games / most)
