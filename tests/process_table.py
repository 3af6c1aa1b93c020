"""Which processes a program has started."""

import subprocess


def descendants(parent: int) -> set[int]:
    """A process, the processes that it has started, those that these have started, and so on."""
    table = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in table.splitlines()[1:]]
    family: set[int] = {parent}
    while more := {pid for pid, ppid in pairs if ppid in family} - family:
        family |= more
    return family


def named(pids: set[int], part: str) -> list[int]:
    """Those of the processes that are alive and have ``part`` in their command line, in the order of their numbers."""
    table = subprocess.run(["ps", "-ewwo", "pid,stat,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in table.splitlines()[1:]]
    return sorted(int(pid) for pid, state, args in rows if int(pid) in pids and state[0] != "Z" and part in args)


def local_players(parent: int) -> set[int]:
    """Actors and workers of matches that are processes of this machine, but not the server that they are forks of."""
    servers = named(descendants(parent), "forkserver")
    return {pid for server in servers[:1] for pid in named(descendants(server) - {server}, "forkserver")}
