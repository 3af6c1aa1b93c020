"""Which processes a program has started."""

import subprocess


def _rows(columns: str) -> list[list[str]]:
    table = subprocess.run(["ps", "-ewwo", columns], capture_output=True, text=True, check=True).stdout
    return [line.split(maxsplit=columns.count(",")) for line in table.splitlines()[1:]]


def descendants(parent: int) -> set[int]:
    """A process, the processes that it has started, those that these have started, and so on."""
    pairs = [tuple(map(int, row)) for row in _rows("pid,ppid")]
    family: set[int] = {parent}
    while more := {pid for pid, above in pairs if above in family} - family:
        family |= more
    return family


def named(pids: set[int], part: str) -> list[int]:
    """Those of the processes that are alive and have ``part`` in their command line, in the order of their numbers."""
    return sorted(
        int(pid) for pid, state, args in _rows("pid,stat,args") if int(pid) in pids and state[0] != "Z" and part in args
    )


def local_players(parent: int) -> set[int]:
    """Actors and workers of matches that are processes of this machine, but not the server that they are forks of."""
    rows = [(int(pid), int(above)) for pid, above, args in _rows("pid,ppid,args") if "forkserver" in args]
    servers = {pid for pid, above in rows if above == parent}
    return {pid for pid, above in rows if above in servers}
