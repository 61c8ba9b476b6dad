"""Cpu slots: which cpus of this machine each running job is bound to."""

from __future__ import annotations

import os
from collections.abc import Sequence


def machine_cpus() -> tuple[int, ...]:
    """Numbers of the cpus that this process may use, ascending."""
    return tuple(sorted(os.sched_getaffinity(0)))


class CpuSlots:
    """Hands distinct cpus to jobs, where the machine has as many as the cluster was given.

    A cluster of more cpus than the machine has binds nothing: the kernel then shares them out.

    Parameters
    ----------
    count
        Cpus of the cluster.
    machine
        Numbers of the machine's cpus; the first ``count`` are used.
    """

    def __init__(self, count: int, machine: Sequence[int]) -> None:
        self._free = list(machine[:count]) if len(machine) >= count else []
        self._known = frozenset(self._free)
        self._held: dict[str, tuple[int, ...]] = {}

    def take(self, job_id: str, count: int) -> tuple[int, ...]:
        """The cpus to bind a job to: ``count`` of them, or none where it is not bound."""
        cpus = tuple(self._free[:count]) if len(self._free) >= count else ()
        self.hold(job_id, cpus)
        return cpus

    def hold(self, job_id: str, cpus: Sequence[int]) -> None:
        """Note that a job is bound to these cpus already."""
        self._held[job_id] = tuple(cpu for cpu in cpus if cpu in self._known)
        self._free = [cpu for cpu in self._free if cpu not in cpus]

    def give_back(self, job_id: str) -> None:
        """The job has ended: its cpus are free."""
        self._free = sorted((*self._free, *self._held.pop(job_id, ())))
