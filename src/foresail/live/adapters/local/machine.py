"""The machine: what of it may be given to jobs, and which cpus and gpus each running job has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from itertools import chain
from typing import Final, Generic, TypeVar

_Slot = TypeVar("_Slot")


class Slots(Generic[_Slot]):
    """Hands things of a kind to jobs, each to one job at a time.

    ``slots`` are all there are, the first ones first; none where nothing is handed out.
    """

    def __init__(self, slots: Iterable[_Slot]) -> None:
        self._slots = tuple(slots)
        self._held: dict[str, tuple[_Slot, ...]] = {}

    def take(self, job_id: str, count: int) -> tuple[_Slot, ...]:
        """What a job has from now on: ``count`` of them, or none where so many are not free."""
        held = {*chain.from_iterable(self._held.values())}
        free = [each for each in self._slots if each not in held]
        taken = tuple(free[:count]) if len(free) >= count else ()
        self.hold(job_id, taken)
        return taken

    def hold(self, job_id: str, slots: Iterable[_Slot]) -> None:
        """Note what a job has already."""
        self._held[job_id] = tuple(slots)

    def give_back(self, job_id: str) -> None:
        """The job has ended: what it had is free."""
        self._held.pop(job_id, None)


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
