"""How much memory is free, asked beforehand: the system kills a process that takes too much without a message."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

_LINUX = Path("/proc/meminfo")
_OWN_GROUP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Bytes that this process may still take; where the system says only what it has in all, that; None if neither.

    A limit of a control group, as containers and job schedulers set it, is looked at too.
    """
    there = [*_left_in_system(), *_left_in_groups()]
    return min(there) if there else None


def _left_in_system() -> Iterator[int]:
    if _LINUX.is_file():
        found = re.search(r"^MemAvailable:\s+([0-9]+) kB$", _LINUX.read_text(), re.MULTILINE)
        if found is not None:
            yield 1024 * int(found[1])
            return
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _left_in_groups() -> Iterator[int]:
    """What the limits of this process's control groups leave (Linux, cgroup v2, `memory.max`)."""
    own = re.search(r"^0::/(.*)$", _OWN_GROUP.read_text(), re.MULTILINE) if _OWN_GROUP.is_file() else None
    if own is None:
        return
    group = _GROUPS / own[1]
    for folder in (group, *group.parents):
        if not folder.is_relative_to(_GROUPS):
            return
        try:
            limit = (folder / "memory.max").read_text().strip()
            used = int((folder / "memory.current").read_text())
            cached = re.search(r"^inactive_file ([0-9]+)$", (folder / "memory.stat").read_text(), re.MULTILINE)
        except OSError:  # the root has no limit; others may not be seen from a container
            continue
        if limit != "max":  # files that were read are given up before anything else
            yield max(0, int(limit) - used + (int(cached[1]) if cached else 0))


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raises ``ValueError`` if fewer than ``needed`` bytes are free; the message names ``what`` and the advice."""
    there = available_memory()
    if there is not None and needed > there:
        raise ValueError(f"{what} take {needed / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are free: {advice}")
