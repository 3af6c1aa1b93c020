"""The page for the comment on a move and for removing its variation."""

from ..game.session import GLYPHS
from ..help import Action, keys_of
from ..menus import MenuScene
from .program import Program

_LONGEST = 1000  # characters of a comment in the field, which takes 0.1 ms for each
_MEANINGS = ("good", "bad", "very good", "very bad", "interesting", "doubtful")


class NotePage(MenuScene):
    """Edits comment and glyph of the last move of the position shown."""

    title = "Comment"

    def __init__(self, app: Program) -> None:
        super().__init__(app)
        self._of: tuple[int, int] | None = None  # version and ply of the move whose glyph is edited

    def fill(self) -> None:
        session = self.app.controller.session
        glyph, comment = session.annotation()
        if self._of != (session.version, session.ply):  # else the window was resized, and the choice stays
            self._of, self._glyph = (session.version, session.ply), glyph
        if session.ply == 0:
            self.menu.add.label("Go to a move first: a comment is about the last one")
            return
        move = f"{session.number_of(session.ply - 1)} {session.texts[session.ply - 1]}"
        glyphs = [
            (f"{sign} {text}", number) for number, (sign, text) in enumerate(zip(GLYPHS, _MEANINGS, strict=True), 1)
        ]
        self.selector(f"{move} is", [("not judged", None), *glyphs], self._glyph, self.setter("_glyph"), "")
        title, meaning = "Comment", "Enter keeps it"
        if len(comment) > _LONGEST:
            title, comment, meaning = "New comment", "", f"It replaces the present one of {len(comment):,} characters"
        self._text = self.text_input(title, comment, _LONGEST, meaning, onreturn=lambda _: self._keep())
        self._before = self._text.get_value()
        self.menu.select_widget(self._text)
        self.button("Keep", self._keep, "It is saved with the game")
        if title != "Comment":
            self.button("Remove the comment", lambda: self._annotate(""), "And keep the judgement")
        if session.others():
            others = f"Instead: {', '.join(session.others())} ({keys_of(Action.VARIATION)} on the board)"
            self.button("To the next variation", self._turn, others)
        if not session.on_main_line:
            self.button("Remove this variation", self._remove, "Back to the line that it belongs to")

    def _keep(self) -> None:
        text = self._text.get_value()
        self._annotate(None if text == self._before else text)

    def _annotate(self, comment: str | None) -> None:
        if self.attempt(lambda: self.app.controller.session.annotate(self._glyph, comment)):
            self.leave()

    def _turn(self) -> None:
        self.app.controller.turn_to_variation()
        self.rebuild()

    def _remove(self) -> None:
        self.app.controller.remove_variation()
        self.leave()
