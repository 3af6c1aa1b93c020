"""Runs of the preset ``smoke``, for tests that train, kill and resume."""

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from programs import ROOT, crownhead_here, crownhead_program

STEPS_PER_ITERATION = 10
FAST = ["--set", "loop.anchor_games=0", "--set", "gate.max_games=2"]
FAST += ["--set", f"loop.steps_per_iteration={STEPS_PER_ITERATION}"]
SHORT = [*FAST, "--set", "loop.max_iterations=1"]


class TrainedRun(NamedTuple):
    """A finished run."""

    folder: Path
    figures: dict[str, object]  # what the command printed


def crownhead(*arguments: object, check: bool = True, **options: object) -> subprocess.CompletedProcess[str]:
    command = crownhead_program(*arguments)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, **options)
    assert not check or done.returncode == 0, done.stderr
    return done


def trained(*arguments: object) -> dict[str, object]:
    """The figures of ``crownhead train ARGUMENTS --json``, run in this process."""
    done = crownhead_here("train", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return last_json(done)


def start(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(crownhead_program(*arguments), cwd=ROOT)


def last_json(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    return json.loads(done.stdout.strip().splitlines()[-1])


def events(run: Path, name: str) -> list[dict[str, object]]:
    lines = (run / "log.jsonl").read_text().splitlines() if (run / "log.jsonl").exists() else []
    parsed = []
    for line in lines:
        try:
            parsed.append(json.loads(line))
        except ValueError:
            continue  # cut short by a kill
    return [event for event in parsed if event["event"] == name]


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Asserts that a command ended with one line on standard error and exit code 2."""
    assert done.returncode == 2, done.stderr
    message = done.stderr.strip().splitlines()
    assert len(message) == 1, done.stderr
    for word in words:
        assert word in message[0]
