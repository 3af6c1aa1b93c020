"""Decides how many threads and which device a process uses, and describes the machine.

Every process of a run computes with one thread, and there are more processes instead: two torch threads beside another
busy process were measured to fall from thousands of positions per second to a few.
"""

import os
import platform
import re

import torch

from engine.version import installed_version

_CPU_INFO = "/proc/cpuinfo"


def use_single_thread() -> None:
    """Makes torch compute with one thread in this process."""
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # inherited by processes started from here


def num_cores() -> int:
    """Number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_device(name: str) -> str:
    """Turns ``auto`` into ``cuda`` if there is a GPU, else ``cpu``; raises ``ValueError`` if there is none so named."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", name) is None:
        raise ValueError(f"device {name!r}: choose cpu, cuda or auto")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device {name}: torch finds no CUDA device here; use --set device=cpu")
    if name.startswith("cuda:") and int(name[5:]) >= (number := torch.cuda.device_count()):
        raise ValueError(f"device {name}: torch finds {number} CUDA devices here, counted from cuda:0")
    return name


def spread_over_gpus(device: str, number: int) -> tuple[str, int]:
    """(device, turn) of actor ``number``: for ``cuda`` actors are spread over this machine's GPUs in turn.

    ``turn`` counts the actors with smaller numbers on the same GPU; it is 0 without a GPU.
    """
    if device != "cuda":
        return device, number if device.startswith("cuda") else 0
    turn, gpu = divmod(number, torch.cuda.device_count())
    return f"cuda:{gpu}", turn


def gpu_busy(device: str) -> int | None:
    """Present utilisation of a GPU in percent; None for other devices, or if it is unknown."""
    if not device.startswith("cuda"):
        return None
    try:
        return torch.cuda.utilization(device)
    except Exception:  # NVIDIA's library is missing or fails; the figure is not essential
        return None


def describe_machine(device: str) -> str:
    """Device with its name, cores, and the versions that measurements depend on, as one line."""
    processor = f"{_processor()} ({torch.backends.cpu.get_cpu_capability()})"  # doubles a small network's speed
    name = torch.cuda.get_device_name() if device.startswith("cuda") else processor
    versions = ", ".join(f"{package} {installed_version(package)}" for package in ("torch", "numba", "numpy"))
    return f"{device}: {name}, {num_cores()} cores; Python {platform.python_version()}, {versions}"


def _processor() -> str:
    if os.path.exists(_CPU_INFO):
        with open(_CPU_INFO, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
