"""The one place that decides how many threads and devices a process uses, and that tells what machine this is.

Every process of a run computes with one thread and there are more processes or actors instead: a torch team of two
threads beside another busy process was measured to fall from thousands of positions a second to a few.
"""

import os
import platform

import torch

from engine.version import installed_version

_CPU_INFO = "/proc/cpuinfo"


def use_single_thread() -> None:
    """Makes torch compute with the calling thread alone, in this process."""
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # inherited by processes started from here


def num_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_device(name: str) -> str:
    """``auto`` becomes ``cuda`` where there is one, else ``cpu``; raises ``ValueError`` where cuda is missing."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device {name}: torch finds no CUDA device here; use --set device=cpu")
    return name


def spread_over_gpus(device: str, number: int) -> tuple[str, int]:
    """``cuda`` becomes one of this machine's GPUs, in turn by number, and how often it has had a turn; others stay."""
    if device != "cuda":
        return device, 0
    turn, gpu = divmod(number, torch.cuda.device_count())
    return f"cuda:{gpu}", turn


def gpu_busy(device: str) -> int | None:
    """For how much of the last moments a GPU was at work, in percent; None of other devices, or where it isn't told."""
    if not device.startswith("cuda"):
        return None
    try:
        return torch.cuda.utilization(device)
    except Exception:  # NVIDIA's library is missing, or has an error of its own: a figure less is no fault
        return None


def describe_machine(device: str) -> str:
    """Device, its name, cores, and the versions that figures depend on."""
    processor = f"{_processor()} ({torch.backends.cpu.get_cpu_capability()})"  # half of a small network's speed
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
