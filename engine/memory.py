"""How much memory there is, asked before it is taken: what has been taken too much of ends in a kill without a word."""

import os
import re
from pathlib import Path

_LINUX = Path("/proc/meminfo")


def available_memory() -> int | None:
    """Bytes that programs may still take; where the system does not say that, all it has; None if it says neither."""
    if _LINUX.is_file():
        found = re.search(r"^MemAvailable:\s+([0-9]+) kB$", _LINUX.read_text(), re.MULTILINE)
        if found is not None:
            return 1024 * int(found[1])
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raises ``ValueError`` if fewer than ``needed`` bytes are free; the message names ``what`` and the advice."""
    there = available_memory()
    if there is not None and needed > there:
        raise ValueError(f"{what} take {needed / 1e9:.1f} GB of memory, and {there / 1e9:.1f} GB are free: {advice}")
