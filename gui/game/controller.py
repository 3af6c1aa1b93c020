"""Controls a game in play: turns, agents, clocks, hints, draw offers, messages. No pygame."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from engine.board import Move
from engine.errors import DraughtsError
from engine.fen import Color
from engine.players.watching import Wdl

from .autosave import Autosave
from .clocks import Clock
from .draw_offers import answer_offer
from .endgame_info import EndgameInfo, Verdict
from .messages import Message, message_of, without_fen
from .move_input import MoveInput
from .opponents import OpponentSpec, adviser_of
from .pdn_files import note_clock
from .plan import BOTH, GamePlan, PlayerNames
from .seats import Seats
from .session import GameSession
from .snapshot import Mode, Snapshot, with_verdict
from .thinker import Thinker

_ANALYSIS_STEP = 0.02  # changes of a score smaller than this do not redraw the graph


class GameController:
    """Controls a game. The window calls ``tick`` every frame, and a method for each action of the user.

    Attributes:
        kinds: kinds of agents that are available.
        humans, agents: who plays; see ``GamePlan``.
        analysing: whether to analyse while people think, and show it.
        hint: the move suggested for the position shown.
        notice: one-line message of the last action, or ""; ``alarm``: whether it is bad news.
        shares: ply → win, draw, loss of Black, where agents have given values.
        paused: whether the user has paused agents and clocks.
        browsing: whether the user has gone to another position or line, so that agents do not move there.
        mixed: whether sides were changed during the game, so that it is nobody's result.
        next_agent: who plays in a rematch instead of the agents; None: the same agents.
    """

    def __init__(
        self,
        thinker: Thinker,
        endgame: EndgameInfo,
        autosave: Autosave,
        kinds: Sequence[str] = ("network",),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.thinker, self.endgame, self.autosave = thinker, endgame, autosave
        self.kinds = tuple(kinds)
        self.session = GameSession()
        self.input = MoveInput(self.session.board)
        self.clock = Clock(now=now)
        plan = GamePlan()
        self.humans: frozenset[Color] = plan.humans
        self.agents = dict(plan.agents)
        self.analysing = False
        self.hint: Move | None = None
        self.notice, self.alarm = "", False
        self.shares: dict[int, Wdl] = {}
        self.paused, self.browsing, self.mixed = False, False, False
        self.next_agent: OpponentSpec | None = None
        self._held = False  # whether the clocks stand because an agent is being made
        self._line: list[str] = []
        self._clock_ply = 0  # the clocks show their times after this number of moves
        self._asked: tuple[int, str, tuple[int, int, str]] | None = None  # request number, mode, position
        self._version, self._now, self._asked_at = -1, now, 0.0
        self._names = PlayerNames()
        self._opening: tuple[str, ...] = ()  # moves of the opening, if the game was begun here
        self._shown: tuple[Snapshot, Verdict | None, Snapshot] | None = None
        self._near: tuple[int, tuple[str, ...]] | None = None  # version of the session, and its ``_near_fens``

    # --- beginning

    def start(self, plan: GamePlan) -> None:
        self.session.new_game(plan.fen, self._names.of(plan.humans, plan.agents), plan.opening)
        self.autosave.begin()
        self.resume(plan)
        self._opening = plan.opening
        if len(self.humans) == 1:  # makes the agent while the person thinks
            self.thinker.prepare(self.agents[next(iter(BOTH - self.humans))])

    def rematch(self) -> None:
        """After the end of a game, starts another one from the same position with colours swapped."""
        if not self.session.is_over:
            self.say("a rematch is for the end of the game")
            return
        humans = frozenset(color.other for color in self.humans)
        agents = {color: self.next_agent or self.agents[color.other] for color in Color}
        self.start(GamePlan(humans, agents, self.session.start_fen, self._opening, self.clock.control))

    def loaded(self) -> None:
        """Call after loading a game or position: people play both sides until a player is chosen for one of them."""
        self.resume(GamePlan(BOTH, self.agents))

    def resume(self, plan: GamePlan, left: Mapping[Color, float] | None = None) -> None:
        """Continues the session's game with the players and clock of ``plan`` and ``left`` seconds on the clocks."""
        self.thinker.forget()
        self._opening = ()
        self.humans, self.agents = frozenset(plan.humans), dict(plan.agents)
        self.clock.reset(plan.control, left)
        self._asked, self.hint, self.paused, self.browsing = None, None, False, False
        self.notice, self.alarm = "", False
        self.mixed, self.next_agent = False, None
        self.shares, self._line = {}, []
        self._clock_ply = self.session.ply
        self._synchronise()
        if not self.session.is_over:
            self.clock.start(self.session.board.turn)

    def name_players(self) -> None:
        """Writes the names of the current players into the game."""
        for color, name in self._names.of(self.humans, self.agents).items():
            self.session.rename(color, name)
        self._synchronise()

    # --- every frame

    def tick(self, ready: bool = True) -> None:
        """Follows the session, takes results, makes requests; ``ready``: whether no animation runs."""
        self._synchronise()
        if (fault := self.thinker.fault()) and not self.agent_to_move:  # else its request fails, too
            self.say(fault, alarm=True)
        if self._loading or self._held:
            self._set_clock()
        flagged = self.clock.flagged()
        session = self.session
        if flagged is not None and not session.finished and session.on_main_line and session.at_end:
            self._attempt(lambda: session.flag(flagged))
        answer_offer(self)
        self._collect(ready)
        self._ask()

    def _synchronise(self) -> None:
        if self._version == self.session.version:
            return
        self._version = self.session.version
        self.hint = None
        ending = self.session.ending if self.session.is_over else None
        self.input.set_board(self.session.board, self.humans, f"the game is over: {ending.text}" if ending else "")
        equal = (now == before for now, before in zip(self.session.texts, self._line, strict=False))
        same = sum(takewhile(bool, equal))
        self.shares = {ply: wdl for ply, wdl in self.shares.items() if ply <= same}
        self._line = list(self.session.texts)
        if self._asked is not None and self._asked[2] != self._place():
            self._drop_request()
        if self.session.finished:  # not at the end of a variation of a running game
            self.clock.stop()
            self.thinker.rest()
        self.save()

    def save(self) -> None:
        """Stores the game, with the clocks of its last position: there it will go on, also if moves are taken back."""
        clock, played = self.clock, self.session.played
        if self._clock_ply != len(played):
            clock = Clock(clock.control, self._now)
            clock.rewind(played, self.session.first_color)
        self.autosave.save(self.session, Seats.of(self.humans, self.agents, clock))

    def _place(self) -> tuple[int, int, str]:
        """(game, ply, FEN) of a request; unlike the session's version, it does not change with names and offers."""
        return self.session.game, self.session.ply, self.session.board.fen()

    def _collect(self, ready: bool) -> None:
        snapshot = self.thinker.snapshot
        if snapshot is None or self._asked is None or snapshot.number != self._asked[0]:
            return
        score = snapshot.score
        if score is not None and snapshot.fen == self.session.board.fen():
            before = self.scores.get(self.session.ply)
            if before is None or abs(before - score) > _ANALYSIS_STEP or not snapshot.busy:
                self.shares[self.session.ply] = snapshot.black_wdl or (score, 0.0, 1.0 - score)
        answer_offer(self)
        if snapshot.busy or self._asked is None:  # an accepted draw ends the game
            return
        mode, offered = self._asked[1], self.session.draw_offer
        if snapshot.status == "failed":
            self._asked = None
            self.say(snapshot.error or "the player failed", alarm=True)
            if mode == "play":
                self.paused = True
                self._set_clock()
            else:
                self.analysing = False
        elif mode == "hint":
            self.hint, self._asked = snapshot.move, None
            self.say(f"Hint: {self.session.board.pdn(snapshot.move)}" if snapshot.move else "no hint was found")
        elif mode == "play" and ready:
            self._asked = None
            turn = snapshot.turn
            if turn not in self.humans and self._names.learn(self.agents[turn], snapshot.player):
                self.session.rename(turn, snapshot.player)  # the engine has told its name
            if snapshot.move is not None:
                self.make(snapshot.move)
            if offered is not None and self.session.draw_offer is None:
                self.say(f"{offered.other} declines the draw")

    def _ask(self) -> None:
        session = self.session
        if self.thinking == "analyse" and self.agent_to_move and not self.paused:
            self._drop_request()  # it was begun during a pause
        if self._asked is not None or session.board.outcome() is not None:
            return
        people = session.board.turn in self.humans
        if self.agent_to_move and not self.paused:
            self._request_move()
        elif self.analysing and (people or self.paused or self.browsing or session.is_over):
            self._request(self.adviser(), "analyse")

    def _request_move(self) -> None:
        color = self.session.board.turn
        over = self.session.finished  # what is tried then takes nobody's time
        seconds = None if over else self.clock.budget(color, self.session.ply // 2)
        self._request(self.agents[color], "play", seconds)

    def _request(self, spec: OpponentSpec, mode: Mode, seconds: float | None = None) -> None:
        number = self.thinker.request(self.session.board, spec, mode, seconds)
        self._asked, self._asked_at = (number, mode, self._place()), self._now()

    def adviser(self) -> OpponentSpec:
        """The player for analyses, hints and reports; not the opponent, which may be weak."""
        return adviser_of(self.kinds)

    def _drop_request(self) -> None:
        if self._asked is not None:
            self.thinker.cancel()
            self._asked = None

    # --- what is going on

    @property
    def agent_to_move(self) -> bool:
        """Whether it is an agent's turn in a running game."""
        return not self.browsing and not self.session.is_over and self.session.board.turn not in self.humans

    @property
    def thinking(self) -> str:
        """Mode of the running request, or ""."""
        return self._asked[1] if self._asked is not None else ""

    @property
    def _loading(self) -> bool:
        """Whether the agent to move is still being made, which is not its time."""
        snapshot = self.thinker.snapshot
        if self._asked is None or snapshot is None:
            return False
        number, mode, _ = self._asked
        return mode == "play" and (snapshot.number, snapshot.status) == (number, "loading")

    @property
    def waited(self) -> float:
        """Seconds since the running request was made."""
        return self._now() - self._asked_at

    def thought(self) -> Snapshot | None:
        """The search and the tables' values of the position shown, or None."""
        shown = self.shown_thought()
        return shown if shown is not None and shown.fen == self.session.board.fen() else None

    def shown_thought(self) -> Snapshot | None:
        """The latest search with the tables' values: of the position shown, or of the one before the last move.

        None if the latest search was of another position.
        """
        snapshot, verdict = self.thinker.snapshot, self.verdict()
        if snapshot is None or snapshot.fen not in self._near_fens():
            return None
        if self._shown is None or self._shown[0] is not snapshot or self._shown[1] is not verdict:
            self._shown = snapshot, verdict, with_verdict(snapshot, verdict)  # cached: called several times per frame
        return self._shown[2]

    def _near_fens(self) -> tuple[str, ...]:
        """The position shown and the one before the last move."""
        version = self.session.version
        if self._near is None or self._near[0] != version:
            board = self.session.board.copy()
            fens = [board.fen()]
            if board.move_stack:
                board.pop()
                fens.append(board.fen())
            self._near = version, tuple(fens)
        return self._near[1]

    def verdict(self) -> Verdict | None:
        """What tables and oracle say about the position shown."""
        return self.endgame.ask(self.session.board)

    @property
    def scores(self) -> dict[int, float]:
        """Ply → expected score of Black, 0 to 1, where agents have given values."""
        return {ply: win + draw / 2 for ply, (win, draw, _) in self.shares.items()}

    def say(self, text: str, alarm: bool = False) -> None:
        """Shows one line until the next move or message."""
        self.notice, self.alarm = without_fen(text), alarm

    def message(self) -> Message:
        return message_of(self)

    # --- actions

    def make(self, move: Move) -> None:
        color, ply, timed = self.session.board.turn, self.session.ply, not self.session.finished
        self._drop_request()
        try:
            self.session.push(move)
        except DraughtsError as error:
            self.say(str(error), alarm=True)
            return
        self.browsing = False
        if timed:  # nobody's time runs in what is tried after the end of the game
            self._press_clock(color, ply)
        self.notice = ""
        self._synchronise()

    def _press_clock(self, color: Color, ply: int) -> None:
        """Ends the turn of ``color``, who has made the move after ``ply`` moves, and notes its clock with the move."""
        self._rewind(ply)
        self._clock_ply = ply + 1
        self._set_clock()
        self.clock.press(color)
        note_clock(self.session.nodes[ply], self.clock.remaining(color))

    def go_to(self, ply: int) -> None:
        """Shows the position after ``ply`` moves, limited to the line; the clocks only change if this is its end."""
        ply = min(max(ply, 0), len(self.session.nodes))
        if ply == self.session.ply:
            return
        self._drop_request()
        self.session.go_to(ply)
        self._look(self.session.on_main_line or self.session.finished)  # what is tried after the end, agents answer

    def turn_to_variation(self) -> None:
        """Replaces the last move shown by the next alternative that was played or looked at."""
        if self.session.turn_to_variation():
            self._drop_request()
            self._look(self.session.on_main_line)
        else:
            self.say("no other move was made here")

    def keep_line(self, moves: Sequence[Move]) -> None:
        """Shows a line of play from the start position; moves that were not played become a variation."""
        self._drop_request()
        if self._attempt(lambda: self.session.keep_line(moves)):
            self._look(self.session.on_main_line)

    def remove_variation(self) -> None:
        """Removes the variation that is shown."""
        self._drop_request()
        if self._attempt(self.session.remove_variation):
            self._look(self.session.on_main_line)

    def _look(self, in_play: bool) -> None:
        """Updates the state after a change of position; agents only move at the end of a line ``in_play``."""
        self.notice = ""
        self.browsing = not (self.session.at_end and in_play)
        if not self.browsing:
            self._rewind(self.session.ply)
        self._set_clock()
        self._synchronise()

    def _rewind(self, ply: int) -> None:
        """Sets the clocks to their times after ``ply`` moves, unless they show them already."""
        if ply != self._clock_ply:
            self.clock.rewind(self.session.nodes[:ply], self.session.first_color)
            self._clock_ply = ply

    def _set_clock(self) -> None:
        """Pauses the clocks if the user has paused, or if an agent has to wait while the user browses or it is made."""
        waits = self.browsing and self.clock.running is not None and self.clock.running not in self.humans
        self._held = self._loading
        self.clock.pause(self.paused or waits or self._held)

    def undo(self) -> None:
        """Goes back to the last position with a person to move, with the clocks of that time."""
        self._step(-1)

    def redo(self) -> None:
        """Goes forward to the next position with a person to move."""
        self._step(1)

    def _step(self, step: int) -> None:
        ply = self.session.ply + step
        last = len(self.session.nodes)
        while 0 < ply < last and self.humans and self.session.turn_at(ply) not in self.humans:
            ply += step
        self.go_to(min(max(ply, 0), last))
        if self.session.ending is None:  # the game continues from here with the time of that position
            self._rewind(self.session.ply)
            self._set_clock()

    def ask_hint(self) -> None:
        if self.session.board.outcome() is None and not self.session.is_over and not self.agent_to_move:
            self._drop_request()
            self._request(self.adviser(), "hint")
            self.notice = ""

    def move_now(self) -> None:
        """Makes the agent move at once; in an earlier position, lets the agent move from there."""
        if self.thinking in ("play", "hint"):
            self.thinker.move_now()
        elif self.agent_to_move:
            self.paused = False
            self._set_clock()
        elif not self.session.is_over and not self.session.board.outcome():
            self._drop_request()
            self.browsing = self.paused = False
            if not self.session.finished:
                self._rewind(self.session.ply)
            self._set_clock()
            self._request_move()

    def toggle_pause(self) -> None:
        """Pauses agents and clocks, or continues."""
        self.paused = not self.paused
        self._set_clock()
        if self.paused:
            self._drop_request()
            self.thinker.rest()

    def toggle_analysis(self) -> None:
        """Switches the analysis during people's turns on or off."""
        self.analysing = not self.analysing
        if not self.analysing and self.thinking == "analyse":
            self._drop_request()

    def take_over(self) -> None:
        """Changes sides with the agent; between two people or two agents, the side to move changes hands. A finished
        game keeps the names of those who have played it."""
        turn = self.session.board.turn
        self.mixed |= bool(self.session.nodes)
        self.humans = BOTH - self.humans if len(self.humans) == 1 else self.humans ^ {turn}
        self.session.draw_offer = None  # or one could accept what one has offered
        self._drop_request()
        self.paused = False
        self._set_clock()
        self._version = -1
        if self.session.finished:
            self._synchronise()
        else:
            self.name_players()

    def person(self) -> Color | None:
        """The side that can resign or offer a draw: the person to move, or else the only person."""
        turn = self.session.board.turn
        return turn if turn in self.humans else next(iter(self.humans), None)

    def to_end(self) -> None:
        """Goes to the end of the line, which resigning and offering a draw refer to."""
        self.go_to(len(self.session.nodes))

    def resign(self) -> None:
        self.to_end()
        color = self.person()
        if color is not None:
            self._attempt(lambda: self.session.resign(color))

    def offer_draw(self) -> None:
        """Offers a draw; an agent answers as soon as the tables or its search tell the value."""
        self.to_end()
        color = self.person()
        if color is not None and self._attempt(lambda: self.session.offer_draw(color)):
            answer_offer(self)

    def answer_draw(self, accept: bool) -> None:
        self._attempt(lambda: self.session.answer_draw(accept))

    def _attempt(self, action: Callable[[], None]) -> bool:
        try:
            action()
        except DraughtsError as error:
            self.say(str(error), alarm=True)
            return False
        if self.session.is_over:
            self._drop_request()
            self.notice = ""  # a hint, or a declined draw, would hide how the game has ended
        self._synchronise()
        return True

    def leave(self) -> None:
        """Stops all searches and clocks, because the window closes or the menu opens."""
        self._drop_request()
        self.thinker.rest()
        self.clock.pause()

    def enter(self) -> None:
        """Continues after the menu was closed."""
        self._set_clock()
