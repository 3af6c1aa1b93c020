"""What this machine is, for figures that are kept."""

import os
import platform

import torch

from engine.version import installed_version

from .threads import num_cores

_CPU_INFO = "/proc/cpuinfo"


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
