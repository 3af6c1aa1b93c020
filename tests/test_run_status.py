"""The status of a run from its log: while it trains, after a kill, from older versions, or empty."""

import json
import logging
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from programs import ROOT, crownhead_here, crownhead_program
from training_runs import TrainedRun, last_json

from engine.console import Console
from engine.files import StorageError
from selfplay.progress import LadderProgress, TrainingProgress
from selfplay.requests import StatusRequest
from selfplay.run.config import make_config
from selfplay.run.curves import Curves
from selfplay.run.folder import RunError, RunFolder, faults_logged
from selfplay.run.metrics import serve_metrics
from selfplay.run.page import status_command
from selfplay.run.status import last_events, read_status


def a_run(folder: Path, *events: dict[str, object]) -> RunFolder:
    run = RunFolder.create(folder / "run", make_config("smoke"))
    run.log_path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return run


def play(at: float, actor: int, machine: str, games: int, behind: int = 0) -> dict[str, object]:
    counts = {"games": games, "samples": 10 * games, "evaluations": 1000 * games, "window": 50, "behind": behind}
    totals = {"total_games": 7, "total_samples": 70}
    return {"time": at, "event": "play", "actor": actor, "machine": machine, **counts, **totals}


def test_rates_of_machines_and_learner(tmp_path: Path) -> None:
    now = time.time()
    loss = {"loss": 3.0, "policy_loss": 2.0, "wdl_loss": 1.0, "learning_rate": 0.001}
    run = a_run(
        tmp_path,
        play(now - 5000, 0, "old", 1),
        play(now - 100, 0, "a", 30),
        play(now - 95, 1, "a", 20, behind=2),
        play(now - 90, 2, "b", 4),
        {"time": now - 90, "event": "learn", "steps": 100, **loss},
        {**play(now - 80, 0, "a", 20), "gpu_busy": 90},
        {"time": now - 80, "event": "learn", "steps": 150, **loss, "loss": 2.5},
        {"time": now - 80, "event": "fault", "text": "actor 2 died"},
    )
    figures = read_status(run, 300)
    assert figures["machines"] == [
        {
            "machine": "a",
            "actors": 2,
            "games_per_second": 2.0,
            "samples_per_second": 20.0,
            "evaluations_per_second": 2000.0,
            "gpu_busy": 90.0,
            "behind": 2,
        },
        {
            "machine": "b",
            "actors": 1,
            "games_per_second": 0.0,
            "samples_per_second": 0.0,
            "evaluations_per_second": 0.0,
            "gpu_busy": None,
            "behind": 0,
        },
    ]
    assert figures["learner"] == {"steps_per_second": 5.0, **loss, "loss": 2.5}
    assert (figures["games"], figures["samples"], figures["steps"]) == (7, 70, 150)
    assert [fault["text"] for fault in figures["faults"]] == ["actor 2 died"]
    assert figures["seconds_ago"] == pytest.approx(80, abs=2)
    assert [machine["machine"] for machine in read_status(run, 10_000)["machines"]] == ["a", "b", "old"]


def test_rates_are_those_of_the_process_that_trains(tmp_path: Path) -> None:
    """After a kill steps are made again, and the pause is none of its time."""
    now, loss = time.time(), {"loss": 3.0, "policy_loss": 2.0, "wdl_loss": 1.0, "learning_rate": 0.001}
    parts: list[dict[str, object]] = []
    for start, steps in ((now - 280, 250), (now - 20, 100)):
        parts.append({"time": start, "event": "start", "steps": steps})
        for second in (0, 10, 20):
            parts += [play(start + second, 0, "a", 10)]
            parts += [{"time": start + second, "event": "learn", "steps": steps + 5 * second, **loss}]
    figures = read_status(a_run(tmp_path, *parts), 300)
    assert figures["steps"] == 200
    assert figures["learner"]["steps_per_second"] == pytest.approx(5)
    assert figures["machines"][0]["games_per_second"] == pytest.approx(1)


def test_logs_that_say_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path)
    assert status_command(StatusRequest(run.path), False)["machines"] == []
    assert "nothing has happened yet" in " ".join(capsys.readouterr().out.split())
    run.log_path.write_bytes(b'{"time": 1, "event": "start"}\nnull\n{"time": 2, "eve')
    assert [event["event"] for event in last_events(run.log_path)] == ["start"]
    odd = [b"[" * 100_000, b'{"time": 1e400, "event": "start"}', b'{"time": "x", "event": "play"}']
    odd.append(b'{"time": 1' + b"0" * 400 + b', "event": "start"}')
    run.log_path.write_bytes(b"\n".join([b'{"time": 1, "event": "start"}', *odd]))
    assert [event["event"] for event in last_events(run.log_path)] == ["start"]
    for steps in ("NaN", "-Infinity", "1e400"):  # what ``--json`` printed was no JSON
        text = '{"time": 1, "event": "start"}\n{"time": 2, "event": "learn", "steps": '
        run.log_path.write_text(f"{text}{steps}}}\n")
        assert [event["event"] for event in last_events(run.log_path)] == ["start"]
    large = json.dumps(play(1000, 0, "a", 3) | {"gpu_busy": 10**400})
    run.log_path.write_text(f"{json.dumps(play(990, 0, 'a', 1))}\n{large}\n")
    with pytest.raises(RunError, match=r"did not write \(OverflowError"):
        read_status(run, 60)
    run.log_path.write_bytes(b'{"time": 1, "event": "gate"}\n')
    with pytest.raises(RunError, match=r"log\.jsonl has an event that this program did not write \(KeyError"):
        read_status(run, 60)
    run.log_path.unlink()
    assert read_status(run, 60)["seconds_ago"] is None
    run.log_path.mkdir()
    with pytest.raises(StorageError, match=r"cannot read .*log\.jsonl: Is a directory"):
        read_status(run, 60)
    run.log_path.rmdir()
    with pytest.raises(RunError, match="--json shows the state once"):
        status_command(StatusRequest(run.path, watch=True), True)
    with pytest.raises(RunError, match="holds no run"):
        status_command(StatusRequest(tmp_path), False)


def test_a_file_in_place_of_the_curves_is_named(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run.tensorboard.write_text("x")
    with pytest.raises(StorageError, match=r"cannot make the folder .*tensorboard: a file is in the way"):
        Curves(run.tensorboard)


def test_names_in_brackets_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path / "a[x]", {"time": 1000, "event": "start", "dashboard": "[fe80::1]"}, play(1000, 0, "b[y]", 3))
    status_command(StatusRequest(run.path), False)
    shown = capsys.readouterr().out.replace("\n", "")
    for name in ("a[x]", "b[y]", "[fe80::1]"):
        assert name in shown
    TrainingProgress(False)("begin", {"run": run.path})
    assert "a[x]" in capsys.readouterr().err.replace("\n", "")
    with LadderProgress(1, False) as progress:
        progress.update(progress.task_ids[0], description="a[x] v b[y]")
        Console().print(progress.get_renderable())
    assert "a[x] v b[y]" in capsys.readouterr().out


def test_a_run_that_has_ended_waits_for_no_shards(tmp_path: Path) -> None:
    run = a_run(tmp_path, {**play(1000, 0, "a", 3), "in_flight": 2})
    assert read_status(run, 60)["in_flight"] == 2
    run.log("end", steps=100)
    assert read_status(run, 60)["in_flight"] == 0


def test_how_busy_gpus_are_is_shown_where_there_are_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path, play(1000, 0, "a", 3), play(1010, 0, "a", 20))
    status_command(StatusRequest(run.path), False)
    assert "GPU" not in capsys.readouterr().out
    run.log_path.write_text(json.dumps({**play(1020, 0, "a", 20), "gpu_busy": 97}) + "\n")
    status_command(StatusRequest(run.path), False)
    shown = capsys.readouterr().out
    assert "GPU" in shown
    assert "97 %" in shown


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(tmp_path, *(play(number, 0, "a", number) for number in range(200)))
    monkeypatch.setattr("selfplay.run.status._TAIL_BYTES", 2000)
    events = last_events(run.log_path)
    assert 5 < len(events) < 20
    assert [event["games"] for event in events] == list(range(200 - len(events), 200))


def test_warnings_are_faults_of_the_run(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    with faults_logged(run):
        logging.getLogger("selfplay.actors.pool").warning("actor %d died", 3)
        logging.getLogger("engine").warning("not of a run")
    logging.getLogger("selfplay.actors.pool").warning("too late")
    assert [fault["text"] for fault in read_status(run, 60)["faults"]] == ["actor 3 died"]


def test_a_warning_that_cannot_be_logged_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run(tmp_path)
    tried: list[bool] = []

    def full(*_: object, **__: object) -> None:
        tried.append(True)
        raise StorageError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "log", full)
    with faults_logged(run):
        logging.getLogger("selfplay.games.replay").warning("old shards are kept")
    assert tried


def test_metrics_are_read_anew_on_loopback_alone(tmp_path: Path) -> None:
    run = a_run(tmp_path, play(1000, 0, "a", 3), play(1010, 0, "a", 20, behind=1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stop = serve_metrics(lambda: read_status(run, 60), port)
    try:
        lines = scrape(port)
        assert 'crownhead_machine_games_per_second{machine="a"} 2.0' in lines
        assert 'crownhead_machine_behind{machine="a"} 1.0' in lines
        assert "crownhead_games_total 7.0" in lines
        with run.log_path.open("a") as log:
            log.write(json.dumps({**play(1020, 0, "a", 20), "total_games": 9}) + "\n")
        lines = scrape(port)
        assert "crownhead_games_total 9.0" in lines
        assert "crownhead_up 1.0" in lines
        for path in (run.state_path, run.elo_path):
            before = path.read_bytes() if path.exists() else None
            path.write_bytes(b"{")
            assert [line for line in scrape(port) if not line.startswith("#")] == ["crownhead_up 0.0"]
            path.write_bytes(before) if before is not None else path.unlink()
        assert "crownhead_up 1.0" in scrape(port)
        with socket.socket() as other:
            other.bind(("127.0.0.2", port))  # is free: the metrics do not listen to all addresses
        with pytest.raises(OSError, match=f"port {port} cannot be opened"):
            status_command(StatusRequest(run.path, prometheus=port), False)
    finally:
        stop()


def scrape(port: int) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read().decode()).splitlines()


def test_the_page_is_shown_again_and_again(tmp_path: Path) -> None:
    run = a_run(tmp_path, play(1000, 0, "a", 3))
    with subprocess.Popen(
        crownhead_program("status", run.path, "--watch"), cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert next(line for line in watching.stdout if "games" in line)
        with run.log_path.open("a") as log:
            log.write(json.dumps({**play(1020, 0, "a", 20), "total_games": 1234}) + "\n")
        assert next(line for line in watching.stdout if "1,234 games" in line)
        away = run.path.rename(tmp_path / "away")
        assert next(line for line in watching.stdout if "The run cannot be read now: " in line)
        away.rename(run.path)
        assert next(line for line in watching.stdout if "1,234 games" in line)
        watching.send_signal(signal.SIGINT)
    assert watching.returncode == 130


@pytest.mark.slow
def test_a_real_run(trained_run: TrainedRun) -> None:
    status = last_json(crownhead_here("status", trained_run.folder, "--json"))
    for key in ("games", "samples", "steps", "best", "promotions"):
        assert status[key] == trained_run.figures[key]
    (machine,) = status["machines"]
    assert machine["actors"] == 1
