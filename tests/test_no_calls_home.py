"""Commands open no connections to other machines and look up no names, as seen from outside by strace.

Python could not see all of them: C libraries can connect by themselves.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import ROOT, crownhead_program
from training_runs import SHORT

from engine.board import Board
from engine.players import HubPlayer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

CALLS = "connect,sendto,sendmsg,sendmmsg,bind"
INNOCENT = {"AF_UNIX", "AF_NETLINK", "AF_UNSPEC"}  # netlink: what interfaces this machine has
FAMILY = re.compile(r"sa_family=(\w+)")
PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
LOOPBACK = re.compile(r'"(127\.[0-9.]+|::1|::ffff:127\.[0-9.]+)"')
RESOLVER = re.compile(r'sun_path="[^"]*(nscd|systemd[./]resolve|resolve1|avahi)')
DNS = 53


def suspicious(line: str) -> bool:
    """Whether a line of strace looks up a name or has an address of another machine."""
    family = FAMILY.search(line)
    if family is None:  # sent where the socket is connected to, which has a line of its own
        return False
    if family[1] in INNOCENT:
        return RESOLVER.search(line) is not None
    port = PORT.search(line)
    return LOOPBACK.search(line) is None or (port is not None and int(port[1]) == DNS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('connect(4, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("20.1.2.3")}, 16) = 0', True),
        ('connect(4, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16) = 0', True),
        ('connect(4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0', False),
        ('bind(4, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("0.0.0.0")}, 16) = 0', True),
        ('bind(4, {sa_family=AF_INET6, sin6_port=htons(0), inet_pton(AF_INET6, "::1", &sin6_addr)}, 28) = 0', False),
        ('bind(4, {sa_family=AF_INET6, sin6_port=htons(0), inet_pton(AF_INET6, "::", &sin6_addr)}, 28) = 0', True),
        ('sendto(4, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(9), sin_addr=inet_addr("8.8.8.8")}, 16) = 1', True),
        (
            'sendmmsg(4, [{msg_hdr={msg_name={sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("8.8.8.8")}',
            True,
        ),
        ('sendto(4, "x", 1, MSG_NOSIGNAL, NULL, 0) = 1', False),
        ('connect(4, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT', True),
        ('connect(4, {sa_family=AF_UNIX, sun_path="/run/systemd/resolve/io.systemd.Resolve"}, 42) = 0', True),
        ('connect(4, {sa_family=AF_UNIX, sun_path="/tmp/.X11-unix/X0"}, 20) = 0', False),
        ("bind(4, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 0", False),
    ],
)
def test_what_is_suspicious(line: str, expected: bool) -> None:
    assert suspicious(line) == expected


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The start of a traced command for a user without any files; its system calls are written to ``calls``."""
    command = ["strace", "-f", "--seccomp-bpf", "-qq", "-s", "256", "-e", f"trace={CALLS}", "-e", "signal=none"]
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: what programs connect to cannot be seen")
    if subprocess.run([*command, "-o", os.devnull, "true"], capture_output=True).returncode:
        pytest.skip("strace may not trace programs here: what they connect to cannot be seen")
    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        folder = tmp_path / variable
        folder.mkdir()
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.setenv("LOGNAME", "somebody")  # as at every login; without it torch asks the system for the user's name
    return [*command, "-o", str(tmp_path / "calls")]


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def run(command: list[str], text: str | None = None) -> str:
    done = subprocess.run(command, input=text, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_strace_sees_what_children_do(traced: list[str], tmp_path: Path) -> None:
    code = 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))'
    try_it = f"{shlex.join([shutil.which('python3') or 'python3', '-c', code])} || true"
    run([*traced, "sh", "-c", try_it])
    assert any(suspicious(line) and "192.0.2.1" in line for line in calls(tmp_path))


def test_a_game_in_the_terminal(traced: list[str], tmp_path: Path) -> None:
    shown = run([*traced, *crownhead_program("play", "--text", "--opponent", "champion@8")], "11-15\nquit\n")
    assert "11-15" in shown
    assert [line for line in calls(tmp_path) if suspicious(line)] == []


def test_a_training(traced: list[str], tmp_path: Path) -> None:
    run([*traced, *crownhead_program("train", "--preset", "smoke", "--run", tmp_path / "run", *SHORT)])
    assert (tmp_path / "run" / "elo.json").is_file()
    assert [line for line in calls(tmp_path) if suspicious(line)] == []


def test_an_engine(traced: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    board = Board()
    with HubPlayer(
        shlex.join([*traced, *crownhead_program("engine", "champion")]), seconds=0.1, start_patience=900
    ) as engine:
        (move,) = engine.choose([board])
    assert move in board.legal_moves
    assert [line for line in calls(tmp_path) if suspicious(line)] == []
