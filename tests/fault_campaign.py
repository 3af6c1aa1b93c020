"""Causes random faults during a run on a Ray cluster of this machine, and reports what is lost, doubled or delayed.

    PYTHONPATH=.:tests python tests/fault_campaign.py [--faults 100] [--nodes 2] [--seed 1] [--calm 0] [--shared]
        [--set NAME=VALUE]... [--folder FOLDER]

Faults: an actor, a raylet or a whole node is killed (kill -9), a node is paused for 20 s (SIGSTOP), a node joins, a
node is drained and killed 5 s later, the learner is killed or ended by SIGTERM and resumed. With --shared, all actors
use shared evaluators, which are killed, too. After each fault, the campaign waits until all expected actors have
delivered a shard, and --calm seconds more; with --calm it also reports when self-play was back at 95 % of its rate.
With --set a run can be as large as people's: shards, gates and networks as small as here hide what takes long.
Prints a line for each fault and a summary.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from process_table import descendants, named
from programs import until
from test_ray_cluster import Cluster

from selfplay.games.shards import SUFFIX, Shard, read_shard

TOKEN = "f00d" * 16
SETTINGS = [
    "selfplay.actors=auto", "loop.max_iterations=1000000", "loop.anchor_games=0", "gate.max_games=2", "loop.reuse=1e9",
    "loop.steps_per_iteration=5000", "network=wide32", "selfplay.positions_per_shard=500", "selfplay.nice=10",
]  # fmt: skip
PAUSE_S = 20.0
PATIENCE_S = 240.0
STALL_S = 5.0
WINDOW_S = 10.0  # over which a rate is measured
AROUND = 3  # calm times before and after a fault that tell the usual rate
FAULTS = ("actor", "raylet", "node", "pause", "join", "drain", "kill learner", "end learner")


class Campaign:
    def __init__(self, folder: Path, nodes: int, seed: int, shared: bool, more: list[str]) -> None:
        self.random, self.most = random.Random(seed), nodes + 1
        self.settings = [*SETTINGS, *(["selfplay.evaluator=shared"] if shared else []), *more]
        self.faults = (*FAULTS, "evaluator") if shared else FAULTS
        self.cluster = Cluster(folder, TOKEN)
        self.run, self.output = folder / "run", open(folder / "output", "w")  # noqa: SIM115 - open to the end
        self.others = [self.join() for _ in range(nodes)]
        self.stopped: list[tuple[float, float]] = []  # times when there was no learner
        self.learner = self.train()

    def train(self) -> subprocess.Popen[bytes]:
        options = [text for setting in self.settings for text in ("--set", setting)]
        if (self.run / "state.json").exists():
            return self.cluster.crownhead(self.output, "train", "--run", self.run, "--resume")
        return self.cluster.crownhead(self.output, "train", "--preset", "smoke", "--run", self.run, *options)

    def join(self) -> int:
        return self.cluster.add("--address", self.cluster.address)

    def events(self) -> Iterator[dict[str, Any]]:
        if (self.run / "log.jsonl").exists():
            for line in (self.run / "log.jsonl").read_text().splitlines():
                try:
                    yield json.loads(line)
                except ValueError:  # cut short by a kill
                    continue

    def wait_for_all(self, since: float) -> float:
        """Waits until as many actors as there are nodes have delivered a shard; returns the time this took."""
        while True:
            at_work = {event["actor"] for event in self.events() if event["event"] == "play" and event["time"] > since}
            if len(at_work) > len(self.others):
                return time.time() - since
            if time.time() - since > PATIENCE_S or self.learner.poll() is not None:
                raise AssertionError(f"not at work again: see {self.output.name}, exit code {self.learner.poll()}")
            time.sleep(0.3)

    def fault(self, kind: str) -> None:
        node = self.random.choice(self.others) if self.others else None
        processes = self.cluster.processes(node) if node is not None else set()
        match kind:
            case "actor":
                workers = named(self.cluster.all_processes(), "ray::_RayWorker")
                os.kill(self.random.choice(workers), signal.SIGKILL)
            case "evaluator":
                os.kill(self.random.choice(evaluators()), signal.SIGKILL)
            case "raylet":
                for raylet in named(processes, "raylet/raylet"):
                    os.kill(raylet, signal.SIGKILL)
                self.replace(node)
            case "node":
                self.replace(node)
            case "pause":
                self.pause(processes)
            case "join":
                self.others.append(self.join())
            case "drain":
                self.cluster.drain(node)
                time.sleep(5)
                self.replace(node)
            case "kill learner" | "end learner":
                self.restart(signal.SIGKILL if kind == "kill learner" else signal.SIGTERM)

    def replace(self, node: int | None) -> None:
        assert node is not None
        self.others.remove(node)
        self.cluster.kill(node)
        self.others.append(self.join())

    def pause(self, processes: set[int]) -> None:
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in processes:
                if named({pid}, ""):
                    os.kill(pid, number)
            time.sleep(PAUSE_S if number == signal.SIGSTOP else 0)

    def restart(self, number: signal.Signals) -> None:
        began, family = time.time(), descendants(self.learner.pid) - {self.learner.pid}
        self.learner.send_signal(number)
        self.learner.wait(60)
        until(lambda: not named(family, ""), "the end of the learner's processes", 60)
        self.learner = self.train()
        before = sum(event["event"] == "start" for event in self.events())
        until(lambda: sum(event["event"] == "start" for event in self.events()) > before, "a learner", 120)
        self.stopped.append((began, time.time()))

    def close(self) -> list[int]:
        """Ends all processes; returns those of the learner that are left."""
        family = descendants(self.learner.pid)
        self.learner.send_signal(signal.SIGTERM)  # what a shell starts in its background may be deaf to SIGINT
        self.learner.wait(60)
        time.sleep(15)
        left = named(family, "")
        self.cluster.close()
        self.output.close()
        return left

    def stalls(self) -> list[float]:
        """Pauses of the learner longer than ``STALL_S``, except for the first games and times without a learner."""
        found = []
        for event, later in pairwise(self.events()):
            began, ended = event["time"], later["time"]
            gone = any(began <= end and begin <= ended for begin, end in self.stopped)
            if ended - began > STALL_S and event["event"] != "start" and not gone:
                found.append(ended - began)
        return found

    def recovered_after(self, calm: list[tuple[float, float]]) -> list[float]:
        """Seconds from the end of each fault until self-play is back at 95 % of its rate.

        That is the median at the end of the calm times around it: shared machines are slower for minutes at a time.

        Args:
            calm: beginning and end of each calm time; the first is before all faults, each other one after a fault.
        """
        played = [(event["time"], event["evaluations"]) for event in self.events() if event["event"] == "play"]

        def rate(begin: float) -> float:
            return sum(count for time_, count in played if begin <= time_ < begin + WINDOW_S) / WINDOW_S

        usual = [rate(end - WINDOW_S) for _, end in calm]
        found = []
        for number, (begin, end) in enumerate(calm[1:], 1):
            wanted = 0.95 * statistics.median(usual[max(0, number - AROUND) : number + AROUND + 1])
            starts = [begin + 0.5 * n for n in range(int(2 * (end - WINDOW_S - begin)) + 1)]
            found.append(next((start - begin for start in starts if rate(start) >= wanted), end - begin))
        return found

    def accounts(self) -> dict[str, int]:
        """Numbers of games acknowledged in the log, games on disk, and games that are on disk twice."""
        shards = [read_shard(path) for path in sorted((self.run / "shards").glob(f"*{SUFFIX}"))]
        on_disk = Counter(game for shard in shards for game in games_of(shard))
        acknowledged = sum(event["games"] for event in self.events() if event["event"] == "play")
        set_aside = len(list((self.run / "shards").glob("*.damaged")))
        doubled = sum(count - 1 for count in on_disk.values())
        total = sum(on_disk.values())
        return {"acknowledged": acknowledged, "on disk": total, "doubled": doubled, "set aside": set_aside}


def evaluators() -> list[int]:
    """Processes that evaluate for actors."""
    found = subprocess.run(["pgrep", "-f", "shared_evaluator import serve"], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def games_of(shard: Shard) -> Iterator[bytes]:
    """What identifies each game: its start, its moves, and the results of its searches."""
    samples, moves = shard.sample_offsets, shard.move_offsets
    for n in range(shard.info.games):
        rows = slice(samples[n], samples[n + 1])
        yield b"".join(
            (
                shard.start_positions[n].tobytes(),
                shard.moves[moves[n] : moves[n + 1]].tobytes(),
                shard.samples.search_wdl[rows].tobytes(),
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=2, help="beside the head")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calm", type=float, default=0.0, help="seconds after each fault; more than 10")
    parser.add_argument("--shared", action="store_true", help="shared evaluators")
    parser.add_argument("--set", dest="more", action="append", default=[], help="a setting of the run")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    campaign = Campaign(folder, options.nodes, options.seed, options.shared, options.more)
    recovered: dict[str, list[float]] = {}
    calm = list[tuple[float, float]]()

    def be_calm(begin: float) -> None:
        time.sleep(max(0.0, options.calm - (time.time() - begin)))
        calm.append((begin, time.time()))

    try:
        print(f"all at work after {campaign.wait_for_all(time.time()):.1f} s", flush=True)
        be_calm(time.time())
        for number in range(1, options.faults + 1):
            kinds = [kind for kind in campaign.faults if kind != "join" or len(campaign.others) < campaign.most]
            kind = campaign.random.choice(kinds)
            campaign.fault(kind)
            ended = time.time()
            seconds = campaign.wait_for_all(ended)
            recovered.setdefault(kind, []).append(seconds)
            print(f"{number}: {kind}, all at work after {seconds:.1f} s", flush=True)
            if len(campaign.others) == campaign.most:  # one leaves as nodes do that are not needed any more
                campaign.cluster.kill(campaign.others.pop())
            be_calm(ended)
    finally:
        left = campaign.close()
    for kind, times in sorted(recovered.items()):
        print(f"{kind}: {len(times)}, at work again after {statistics.median(times):.1f} s, at most {max(times):.1f}")
    if options.calm > WINDOW_S:
        back = campaign.recovered_after(calm)
        each = [round(seconds) for seconds in back]
        print(f"rate back at 95 % after {statistics.median(back):.1f} s, at most {max(back):.1f}: {each}")
    stalls = campaign.stalls()
    accounts = campaign.accounts()
    print(", ".join(f"{count} games {what}" for what, count in accounts.items()))
    print(f"{len(stalls)} stalls above {STALL_S:.0f} s {[round(stall, 1) for stall in stalls]}, {len(left)} orphans")
    text = (campaign.run.parent / "output").read_text()
    print(f"{text.count('Traceback')} tracebacks")
    lost = accounts["acknowledged"] > accounts["on disk"]
    sys.exit(bool(stalls or left or lost or accounts["doubled"] or accounts["set aside"]))


if __name__ == "__main__":
    main()
