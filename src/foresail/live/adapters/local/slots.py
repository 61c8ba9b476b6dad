"""Slots: which cpus and gpus of this machine each running job has to itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Generic, TypeVar

_Slot = TypeVar("_Slot")


class Slots(Generic[_Slot]):
    """Hands things of a kind to jobs, each to one job at a time.

    Parameters
    ----------
    slots
        All there are, the first ones first; none where nothing is handed out.
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
