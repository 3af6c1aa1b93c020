"""Measures the window: work per frame, frames per second, memory over many games, idle processor time, the first move.

Argument: minutes of fast games for measuring memory (default 5). Opens windows on its own screen (Xvfb) and prints a
table. With ``networks`` as the second argument, two networks play for this time instead, with animation, and nothing
else is measured.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pygame
from programs import until
from real_window import screen, window

from crownhead_board import ask_oracle, find_networks, make_network
from engine.fen import Color
from gui.app import App
from gui.display import start_pygame
from gui.game.endgame_info import EndgameInfo
from gui.game.opponents import Opponents, OpponentSpec
from gui.game.plan import GamePlan
from gui.help import Action
from gui.preferences import Preferences, save_preferences

IDLE_SECONDS = 20.0
PLAY_SECONDS = 40.0
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def resident_mib(process: int | str = "self") -> float:
    """Resident memory of a process in MiB."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE / 2**20


def cpu_seconds(process: int) -> float:
    """Processor time that a process has used, of all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def say(what: str, value: str) -> None:
    print(f"{what:58} {value}", flush=True)


def opened(home: Path, animation_ms: int) -> App:
    """Opens the program in this process, on the screen in DISPLAY."""
    save_preferences(Preferences(sounds=False, animation_ms=animation_ms), home / "preferences.json")
    start_pygame()
    app = App(Opponents(make_network, None, find_networks), EndgameInfo(oracle=ask_oracle), home)
    app.open_window()
    return app


def run_for(app: App, seconds: float, after_frame: Callable[[float], None]) -> None:
    """Runs the program's loop for some time."""
    end, frame = time.monotonic() + seconds, app.frame

    def counted() -> None:
        frame()
        after_frame(time.monotonic())
        app.running = time.monotonic() < end

    app.frame = counted  # type: ignore[method-assign]
    app.loop()
    app.frame = frame  # type: ignore[method-assign]


def restarted(app: App, plan: GamePlan) -> bool:
    """Begins the next game if one is over."""
    if app.controller.session.is_over:
        app.go.start_game(plan)
        return True
    return False


def count_work(app: App) -> list[float]:
    """Measures the processor time of the window's thread in every frame that draws something."""
    work: list[float] = []
    frame = app.frame

    def counted() -> None:
        before, begin = len(app.frame_seconds), time.thread_time()
        frame()
        if len(app.frame_seconds) > before:
            work.append(time.thread_time() - begin)

    app.frame = counted  # type: ignore[method-assign]
    return work


def forget(app: App, work: list[float]) -> None:
    app.frame_seconds.clear()
    work.clear()


def say_work(what: str, app: App, work: list[float]) -> None:
    times, wall = sorted(work), sorted(app.frame_seconds)
    say(f"work of a drawn frame, {what}: median", f"{1000 * statistics.median(times):.1f} ms")
    say("  19 of 20 frames take less than", f"{1000 * times[len(times) * 19 // 20]:.1f} ms")
    say("  with waiting for the X server: median", f"{1000 * statistics.median(wall):.1f} ms")


def measure_frames(home: Path) -> None:
    """Measures frames while two networks play with 400 simulations per move and long animations."""
    app = opened(home, 220)
    frame_work = count_work(app)
    spec = OpponentSpec(kind="network").changed(search={"num_simulations": 400, "oracle": "tablebase"})
    plan = GamePlan(frozenset(), dict.fromkeys(Color, spec))
    app.begin(plan, menu=False)
    run_for(app, 10.0, lambda now: None)  # everything is loaded
    forget(app, frame_work)
    gaps: list[float] = []
    last = [0.0]

    def after(now: float) -> None:
        lively = app.go.scene.lively
        if lively and last[0]:
            gaps.append(now - last[0])
        last[0] = now if lively else 0.0
        restarted(app, plan)

    run_for(app, PLAY_SECONDS, after)
    say_work("two networks playing", app, frame_work)
    say("frames per second while a move is animated: mean", f"{len(gaps) / sum(gaps):.1f}")
    app.go.open(Action.SETTINGS)
    app.go.to_game()
    app.controller.start(GamePlan(frozenset(Color), dict.fromkeys(Color, spec)))
    app.controller.toggle_analysis()
    run_for(app, 3.0, lambda now: None)
    forget(app, frame_work)
    run_for(app, PLAY_SECONDS / 2, lambda now: None)
    say_work("analysing", app, frame_work)
    app.close()


def measure_memory(home: Path, minutes: float, networks: bool) -> None:
    """Measures memory over many games: random players without animation, or two networks with it."""
    app = opened(home, 220 if networks else 0)
    spec = OpponentSpec(kind="random")
    if networks:
        spec = OpponentSpec(kind="network").changed(search={"num_simulations": 60, "oracle": "tablebase"})
    plan = GamePlan(frozenset(), dict.fromkeys(Color, spec))
    app.begin(plan, menu=False)
    games = [0]

    def after(now: float) -> None:
        games[0] += restarted(app, plan)

    run_for(app, 10.0, after)
    seen = [resident_mib()]
    for _ in range(2):
        run_for(app, minutes * 30, after)
        seen.append(resident_mib())
    text = ", ".join(f"{value:.1f}" for value in seen)
    say(f"memory in {minutes:g} minutes, {games[0]} games: start, middle, end", f"{text} MiB")
    app.close()


def measure_idle(display: str, home: Path) -> None:
    """Measures the processor time of the whole program in another process, without input."""
    for what, options, keys in (
        ("idle at the board", ("--opponent", "random", "--side", "black"), ()),
        ("idle in the menu", ("--menu",), ()),
        ("analysing", ("--side", "black"), ("a",)),
    ):
        with window(display, home, *options, preferences=Preferences(sounds=False)) as seen:
            seen.still_picture()
            seen.focus()
            if keys:
                seen.keys(*keys)
            time.sleep(5)
            begin, used = time.monotonic(), cpu_seconds(seen.process.pid)
            time.sleep(IDLE_SECONDS)
            share = (cpu_seconds(seen.process.pid) - used) / (time.monotonic() - begin)
            say(f"processor time, {what}", f"{100 * share:.1f} %")
            say(f"closing, {what}: process ended after", f"{seen.close():.2f} s")


def measure_start(display: str, home: Path) -> None:
    """Measures the time from the command to the network's first move, at the second start."""
    for number in (1, 2):
        folder = home / str(number)
        folder.mkdir()
        with window(display, folder, "--side", "white", preferences=Preferences(sounds=False)) as seen:
            shown = time.monotonic() - seen.started
            until(seen.plies, "the first move")
            moved = time.monotonic() - seen.started
    say("window open after", f"{shown:.1f} s")
    say("first move of the network after", f"{moved:.1f} s")


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    networks = sys.argv[2:] == ["networks"]
    with screen() as display, tempfile.TemporaryDirectory() as folder:
        os.environ |= {"DISPLAY": display, "SDL_VIDEODRIVER": "x11", "SDL_AUDIODRIVER": "dummy"}
        say("load of the machine before", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        for name, measure in (
            ("start", lambda home: measure_start(display, home)),
            ("idle", lambda home: measure_idle(display, home)),
            ("frames", measure_frames),
            ("memory", lambda home: measure_memory(home, minutes, networks)),
        ):
            if networks and name != "memory":
                continue
            home = Path(folder) / name
            home.mkdir()
            measure(home)
        pygame.quit()


if __name__ == "__main__":
    main()
