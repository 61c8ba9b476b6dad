"""The jobs of a trace as waiting policies see them, and the machines that they may run on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.model.errors import InputError
from foresail.traces.workload import Workload

Floats = NDArray[np.float64]
GIB = 1024.0**3


class Requests(NamedTuple):
    """The distinct requests of a trace, by cores and then memory, and which one each job has."""

    cores: NDArray[np.int64]
    memory_bytes: Floats
    of_job: NDArray[np.int32]


@dataclass(frozen=True)
class TraceJobs:
    """Jobs in order of submission.

    Parameters
    ----------
    submit_seconds, runtime_seconds
        From the workload's origin; how long each really runs.
    cores
        Whole cores that each asks for, 1 or more.
    memory_bytes
        What each asks for, or None where nobody does.

    Raises
    ------
    InputError
        If the columns differ in length, are out of order or out of range.
    """

    submit_seconds: Floats
    runtime_seconds: Floats
    cores: NDArray[np.int64]
    memory_bytes: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("submit_seconds", "runtime_seconds"):
            object.__setattr__(self, name, writable(getattr(self, name)))
        columns = [self.submit_seconds, self.runtime_seconds, self.cores]
        columns += [] if self.memory_bytes is None else [self.memory_bytes]
        if len({column.shape for column in columns}) != 1:
            raise InputError("the columns of the jobs differ in length")
        if np.any(np.diff(self.submit_seconds) < 0.0) or not _all_finite(self.submit_seconds):
            raise InputError("out of order", field="submit_seconds", expected="ascending times")
        if np.any(self.runtime_seconds < 0.0) or not _all_finite(self.runtime_seconds):
            raise InputError("out of range", field="runtime_seconds", expected="0 or more")
        if np.any(self.cores < 1):
            raise InputError("out of range", field="cores", expected="1 or more")

    def __len__(self) -> int:
        return self.submit_seconds.size

    @classmethod
    def of_workload(cls, workload: Workload) -> TraceJobs:
        """The jobs of a workload whose runtimes are known; cores are rounded up."""
        memory = workload.jobs["memory_bytes_per_task"]
        total = memory.fill_null(0.0).to_numpy() * workload.jobs["tasks"].to_numpy()
        return cls(
            workload.jobs["submit_seconds"].to_numpy(),
            workload.runtime_seconds,
            np.maximum(np.ceil(workload.cpus), 1.0).astype(np.int64),
            None if memory.null_count() == len(memory) else total.astype(np.float64),
        )

    @cached_property
    def requests(self) -> Requests:
        """The distinct requests."""
        if self.memory_bytes is None:
            kinds, codes = _coded(self.cores)
            return Requests(kinds, np.zeros(kinds.size), codes.astype(np.int32))
        sizes, size = np.unique(self.memory_bytes, return_inverse=True)
        kinds, code = np.unique(self.cores * np.int64(sizes.size) + size, return_inverse=True)
        return Requests(
            kinds // sizes.size, sizes[kinds % sizes.size], code.astype(np.int32).ravel()
        )

    @property
    def core_seconds(self) -> float:
        """Work of all jobs."""
        return float(self.runtime_seconds @ self.cores)


@dataclass(frozen=True, slots=True)
class RentedType:
    """A machine to rent: cores, memory and price per hour."""

    name: str
    cores: int
    memory_bytes: float
    price_per_hour: float

    def __post_init__(self) -> None:
        if not (self.cores >= 1 and self.memory_bytes > 0.0 and self.price_per_hour > 0.0):
            raise InputError("a machine needs cores, memory and a price", value=self.name)


def writable(column: ArrayLike) -> Floats:
    """The column as kernels take it: they are compiled anew for arrays that are read-only."""
    return np.require(column, np.float64, ["C", "W"])


def proportional_family(
    price_per_core_hour: float = 0.0481,
    memory_bytes_per_core: float = 4.0 * GIB,
    cores: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
) -> tuple[RentedType, ...]:
    """Machines whose memory and price grow with their cores, as published families do."""
    return tuple(
        RentedType(f"{n}-core", n, n * memory_bytes_per_core, n * price_per_core_hour)
        for n in cores
    )


@dataclass(frozen=True, slots=True)
class FixedMachines:
    """Equal machines that are paid all the time.

    Parameters
    ----------
    count
        How many; 0 or more.
    cores, memory_bytes
        Of each; the memory is without limit where it is not known.
    price_per_hour
        Of each.
    own_price_per_core_hour
        What a busy core costs beyond that (power, say).

    Raises
    ------
    InputError
        If a number is out of range.
    """

    count: int
    cores: int = 64
    memory_bytes: float = math.inf
    price_per_hour: float = 0.4 * 64 * 0.0481
    own_price_per_core_hour: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("count", 0), ("cores", 1), ("price_per_hour", 0)):
            if not getattr(self, name) >= least:
                value = getattr(self, name)
                raise InputError(
                    "out of range", field=name, value=value, expected=f"{least} or more"
                )

    @property
    def total_cores(self) -> int:
        """Cores of all machines."""
        return self.count * self.cores


def rents(requests: Requests, family: Sequence[RentedType]) -> Floats:
    """Money per hour for what each request would be rented.

    It is the cheapest machine that holds it. What none holds gets as many of the machine with the
    most cores as its cores and memory need.

    Raises
    ------
    InputError
        If there is nothing to rent.
    """
    if not family:
        raise InputError("there is no machine to rent", expected="at least one type")
    price = np.full(requests.cores.size, np.inf)
    for kind in family:
        holds = (requests.cores <= kind.cores) & (requests.memory_bytes <= kind.memory_bytes)
        price = np.where(holds, np.minimum(price, kind.price_per_hour), price)
    largest = max(family, key=lambda kind: (kind.cores, kind.memory_bytes))
    several = np.maximum(
        np.ceil(requests.cores / largest.cores),
        np.ceil(requests.memory_bytes / largest.memory_bytes),
    )
    return np.where(np.isinf(price), several * largest.price_per_hour, price)


def _coded(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct values, ascending, and their places; by counting, where there are few."""
    most = int(values.max(initial=0))
    if most > 4 * values.size + 1024:
        distinct, places = np.unique(values, return_inverse=True)
        return distinct, places
    distinct = np.flatnonzero(np.bincount(values, minlength=most + 1))
    table = np.zeros(most + 1, dtype=np.int64)
    table[distinct] = np.arange(distinct.size)
    return distinct, table[values]


def _all_finite(values: Floats) -> bool:
    return bool(np.isfinite(values).all())
