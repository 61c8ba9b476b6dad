"""The machine: which of its cpus and gpus, and how much of its memory, may be given to jobs."""

from __future__ import annotations

import os
import subprocess
from typing import Final

_RESERVED_SHARE: Final = 0.05
_MOST_RESERVED_BYTES: Final = 2.0 * 2**30
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_NO_DEVICE: Final = "-1"
_LIST_GPUS: Final = ("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")
_PATIENCE_SECONDS: Final = 30.0


def machine_cpus() -> tuple[int, ...]:
    """Numbers of the cpus that this process may use, ascending."""
    return tuple(sorted(os.sched_getaffinity(0)))


def machine_memory_bytes() -> float:
    """Memory for jobs: the machine's, less a twentieth (2 GiB at most) for all that is no job."""
    whole = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float(int(whole - min(whole * _RESERVED_SHARE, _MOST_RESERVED_BYTES)))


def machine_gpus() -> tuple[str, ...]:
    """What CUDA calls the gpus that this process may use; none where the driver names none."""
    visible = os.environ.get(_VISIBLE)
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
        return tuple(name for name in names if name and name != _NO_DEVICE)
    try:
        told = subprocess.run(
            _LIST_GPUS, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in told.stdout.splitlines() if line.strip().isdigit())


def gpu_variables(gpus: tuple[str, ...]) -> dict[str, str]:
    """What shows a job these gpus and no others; numbers are those of ``nvidia-smi``."""
    return {_VISIBLE: ",".join(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
