"""Ctrl-C and SIGTERM: every command says that it was interrupted and what was saved; run again, it continues."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import ROOT, crownhead_program, wait_until

import crownhead
from engine.tablebase.folder import SHIPPED
from learner.checkpoint import read_tensors
from learner.endgame.commands import STATE_FILE

INTERRUPTED = 130
SYZYGY = Path(os.environ.get("CROWNHEAD_SHARED", ROOT.parent / "shared")) / "data" / "syzygy"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")


def interrupt(ready: Callable[[], bool], *arguments: object, number: int = signal.SIGINT) -> str:
    """Starts a command, interrupts it as soon as it is ready, and returns its last message.

    The command must not inherit ignored interrupts from the tests.
    """
    process = subprocess.Popen(
        crownhead_program(*arguments),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        wait_until(ready, process)
        until = time.monotonic() + 240
        said = None
        while said is None:  # Python drops an interrupt that comes while an object is being destroyed
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, said = process.communicate(timeout=100)
            assert time.monotonic() < until
    finally:
        process.kill()
    assert process.returncode == INTERRUPTED, said
    assert "crownhead: interrupted" in said
    assert not [line for line in said.splitlines()[:-1] if line.startswith("crownhead")]
    return said.splitlines()[-1]


def interrupt_within(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """Runs a command that is interrupted where it calls a function; returns the handlers of signals that it sets."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    handlers: list[Any] = []
    monkeypatch.setattr("signal.signal", lambda number, handler: handlers.append((number, handler)))
    monkeypatch.setattr(name, interrupted)
    monkeypatch.setattr("sys.argv", ["crownhead", "perft", "3"])
    with pytest.raises(SystemExit) as ended:
        crownhead.main()
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == "crownhead: interrupted\n"
    return handlers


def test_a_command_that_saves_nothing_says_so_much(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = interrupt_within("engine.perft.perft_report", monkeypatch, capsys)
    both = [(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)]
    assert handlers == [(signal.SIGTERM, signal.default_int_handler), *both]  # a second one keeps the exit code


def test_an_interrupt_before_a_command_begins_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While Typer read the arguments, the program ended without a word."""
    interrupt_within("typer.core.TyperGroup.make_context", monkeypatch, capsys)


def test_a_long_count_ends() -> None:
    begun = time.monotonic()
    assert interrupt(lambda: time.monotonic() > begun + 3, "perft", 25) == "crownhead: interrupted"


def test_an_oracle_s_training_is_saved_from_the_beginning(tmp_path: Path) -> None:
    state, began = tmp_path / "out" / STATE_FILE, []

    def trains() -> bool:
        if state.exists() and not began:
            began.append(time.monotonic())
        return bool(began) and time.monotonic() > began[0] + 0.5  # long before it is saved for the second time

    arguments = ("--out", tmp_path / "out", "--minutes", 60, "--pieces", 3, "--dir", SHIPPED)
    said = interrupt(trains, "oracle", "train", *arguments)
    assert said.startswith(f"crownhead: interrupted: the training is saved in {tmp_path / 'out'}; the same command")
    seen = read_tensors(state)[1]["seen"]
    assert seen > 0
    began.clear()
    before = state.stat().st_mtime_ns
    interrupt(lambda: state.stat().st_mtime_ns > before and trains(), "oracle", "train", *arguments)
    assert read_tensors(state)[1]["seen"] > seen


def test_a_build_of_tables_keeps_what_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "my tables"
    said = interrupt(lambda: any(folder.glob("*.wdl")), "tablebase", "build", "--pieces", 6, "--dir", folder)
    assert f"crownhead: interrupted: the slices that were done are in {folder}; the same command goes on" in said


@pytest.mark.slow
@pytest.mark.skipif(not SYZYGY.is_dir(), reason="the folder ../shared with the Syzygy tables is not there")
def test_experiments_that_are_done_stay_in_the_report(tmp_path: Path) -> None:
    pytest.importorskip("chess", reason="python-chess is not installed (pip install 'crownhead[papers]')")
    page = tmp_path / "out" / "report.html"
    arguments = ("abdalla", "--syzygy", SYZYGY, "--minutes", 60, "--out", page.parent)
    said = interrupt(page.exists, "reproduce", *arguments)
    assert said == f"crownhead: interrupted: the report in {page.parent} holds what was done: time"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_says_how_to_go_on(tmp_path: Path, number: int) -> None:
    run = tmp_path / "run"
    said = interrupt((run / "state.json").exists, "train", "--preset", "smoke", "--run", run, number=number)
    assert said == f"crownhead: interrupted: saved; `crownhead train --run {run} --resume` goes on"
