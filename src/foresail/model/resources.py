"""Resources: how much of a machine something asks for, holds or offers."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.model.construction import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of cpus (cores), memory (bytes) and gpus (count)."""

    cpus: float = 0.0
    memory_bytes: float = 0.0
    gpus: float = 0.0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.cpus + other.cpus, self.memory_bytes + other.memory_bytes, self.gpus + other.gpus
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.cpus - other.cpus, self.memory_bytes - other.memory_bytes, self.gpus - other.gpus
        )

    def __mul__(self, times: float) -> Resources:
        return Resources(self.cpus * times, self.memory_bytes * times, self.gpus * times)

    def fits_in(self, room: Resources) -> bool:
        """Whether this much can be taken from ``room`` without going below zero anywhere."""
        return (
            self.cpus <= room.cpus
            and self.memory_bytes <= room.memory_bytes
            and self.gpus <= room.gpus
        )
