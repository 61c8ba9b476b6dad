"""The jobs of a trace as waiting policies see them, and the machines that they may run on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.cloud.prices import PriceCatalogue
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError, require_at_least
from foresail.traces.workload import Workload

GIB = 1024.0**3
_SHARES: Final = 1000.0
_LEAST_SHARE: Final = 1e-6
"""Gpus are counted in thousandths, so that shares of one add up exactly; requests are rounded up,
but for what floating point adds to them."""
_MOST_CORES: Final = 100_000_000
_MOST_MACHINES: Final = 10_000_000
"""Cores of a pool, and machines, up to which a simulation of them fits into two gigabytes."""


class Requests(NamedTuple):
    """The distinct requests of a trace, by cores, memory and gpus, and which one each job has."""

    cores: Integers
    memory_bytes: Floats
    gpus: Floats
    of_job: NDArray[np.int32]

    def within(self, cores: int, memory_bytes: float, gpus: float) -> Booleans:
        """Select the requests that ask for no more than that."""
        return (self.cores <= cores) & (self.memory_bytes <= memory_bytes) & (self.gpus <= gpus)

    @property
    def jobs_with_gpus(self) -> int:
        """Number of jobs that ask for gpus."""
        return int((self.gpus > 0.0)[self.of_job].sum()) if self.gpus.any() else 0


@dataclass(frozen=True)
class TraceJobs:
    """Jobs in order of submission."""

    submit_seconds: Floats
    runtime_seconds: Floats
    """Submission, from the workload's origin, and the true runtime of each."""
    cores: Integers
    """Whole cores that each asks for, 1 or more."""
    memory_bytes: Floats | None = None
    gpus: Floats | None = None
    """Gpus that each job asks for, or None where none does. A share of a gpu counts as a part of
    all that a machine has: it is not known on which one the job runs."""

    def __post_init__(self) -> None:
        for name in ("submit_seconds", "runtime_seconds"):
            object.__setattr__(self, name, writable(getattr(self, name)))
        columns = [self.submit_seconds, self.runtime_seconds, self.cores]
        columns += [each for each in (self.memory_bytes, self.gpus) if each is not None]
        if len({column.shape for column in columns}) != 1:
            raise InputError("the columns of the jobs differ in length")
        if np.any(np.diff(self.submit_seconds) < 0.0) or not _all_finite(self.submit_seconds):
            raise InputError("out of order", field="submit_seconds", expected="ascending times")
        if np.any(self.runtime_seconds < 0.0) or not _all_finite(self.runtime_seconds):
            raise InputError("out of range", field="runtime_seconds", expected="0 or more")
        if np.any(self.cores < 1):
            raise InputError("out of range", field="cores", expected="1 or more")
        if self.gpus is not None and (np.any(self.gpus < 0.0) or not _all_finite(self.gpus)):
            raise InputError("out of range", field="gpus", expected="0 or more")

    def __len__(self) -> int:
        return self.submit_seconds.size

    @property
    def span_seconds(self) -> float:
        """Seconds from the first submission to the last."""
        return float(self.submit_seconds[-1] - self.submit_seconds[0])

    @classmethod
    def of_workload(cls, workload: Workload) -> TraceJobs:
        """The jobs of a workload whose runtimes are known; cores are rounded up.

        A job whose cores are not known has one.
        """
        gpus = _of_all_tasks(workload, "gpus_per_task")
        return cls(
            workload.jobs["submit_seconds"].to_numpy(),
            workload.runtime_seconds,
            np.fmax(np.ceil(workload.cpus), 1.0).astype(np.int64),
            _of_all_tasks(workload, "memory_bytes_per_task"),
            gpus if gpus is not None and gpus.any() else None,
        )

    def among(self, rows: slice | Booleans) -> TraceJobs:
        """Some of the jobs."""
        return replace(
            self,
            submit_seconds=self.submit_seconds[rows],
            runtime_seconds=self.runtime_seconds[rows],
            cores=self.cores[rows],
            memory_bytes=None if self.memory_bytes is None else self.memory_bytes[rows],
            gpus=None if self.gpus is None else self.gpus[rows],
        )

    @cached_property
    def requests(self) -> Requests:
        """The distinct requests."""
        if self.memory_bytes is None and self.gpus is None:
            kinds, codes = _coded(self.cores)
            none = np.zeros(kinds.size)
            return Requests(kinds, none, none, codes.astype(np.int32))
        sizes, size = _distinct(self.memory_bytes, len(self))
        shares, share = _distinct(
            None if self.gpus is None else np.ceil(self.gpus * _SHARES - _LEAST_SHARE), len(self)
        )
        own = (self.cores * np.int64(sizes.size) + size) * np.int64(shares.size) + share
        kinds, code = np.unique(own, return_inverse=True)
        cores, rest = np.divmod(kinds, sizes.size * shares.size)
        return Requests(
            cores,
            sizes[rest // shares.size],
            shares[rest % shares.size] / _SHARES,
            code.astype(np.int32).ravel(),
        )

    @property
    def core_seconds(self) -> float:
        """Work of all jobs."""
        return float(self.runtime_seconds @ self.cores)

    @property
    def gpu_seconds(self) -> float:
        """The same for gpus."""
        return 0.0 if self.gpus is None else float(self.runtime_seconds @ self.gpus)


@dataclass(frozen=True, slots=True)
class RentedType:
    """A machine to rent: cores, memory, price per hour and gpus."""

    name: str
    cores: int
    memory_bytes: float
    price_per_hour: float
    gpus: float = 0.0

    def __post_init__(self) -> None:
        sized = self.cores >= 1 and self.memory_bytes > 0.0 and self.gpus >= 0.0
        if not (sized and self.price_per_hour > 0.0):
            raise InputError("a machine needs cores, memory and a price", value=self.name)


def writable(column: ArrayLike) -> Floats:
    """The column as kernels take it: they are compiled anew for arrays that are read-only."""
    return np.require(column, np.float64, ["C", "W"])


@dataclass(frozen=True, slots=True)
class FixedMachines:
    """Equal machines that are paid all the time."""

    count: int
    """Number of machines; 0 or more."""
    cores: int = 64
    memory_bytes: float = math.inf
    """Cores and memory of each; the memory is without limit where it is not known."""
    price_per_hour: float = 0.4 * 64 * 0.0481
    """Price of each."""
    own_price_per_core_hour: float = 0.0
    """Cost of a busy core beyond that (power, say)."""
    gpus: float = 0.0
    """Gpus of each."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "cores")
        require_at_least(self, 0, "count", "price_per_hour", "gpus")
        if self.count > _MOST_MACHINES or self.count * self.cores > _MOST_CORES:
            raise InputError(
                "more machines than can be simulated",
                field="count",
                value=f"{self.count:,} of {self.cores:,} cores",
                expected=f"at most {_MOST_CORES:,} cores, in {_MOST_MACHINES:,} machines or fewer; "
                "see whether jobs ask for as many, or run for too long",
            )

    @property
    def total_cores(self) -> int:
        """Cores of all machines."""
        return self.count * self.cores

    def kept_busy(self, jobs: TraceJobs) -> float:
        """Seconds for which the work would keep one machine busy: its cores, or its gpus.

        Where the machine has no gpus, those that jobs ask for do not count.
        """
        by_cores = jobs.core_seconds / self.cores
        return max(by_cores, jobs.gpu_seconds / self.gpus) if self.gpus else by_cores

    def holds(self, requests: Requests) -> Booleans:
        """Select the requests that fit an idle machine."""
        return requests.within(self.cores, self.memory_bytes, self.gpus)


def rents(requests: Requests, family: Sequence[RentedType]) -> Floats:
    """Money per hour for what each request would be rented.

    It is the cheapest machine that holds it. What none holds gets as many as it needs of the
    machine with the most cores or, if it asks for gpus, of the cheapest with the most gpus.

    Raises ``InputError`` if there is nothing to rent, or no gpus, and jobs ask for some.
    """
    if not family:
        raise InputError("there is no machine to rent", expected="at least one type")
    asks = requests.gpus > 0.0
    if asks.any() and not any(kind.gpus for kind in family):
        raise _no_gpus(requests.jobs_with_gpus)
    price = np.full(requests.cores.size, np.inf)
    for kind in family:
        holds = requests.within(kind.cores, kind.memory_bytes, kind.gpus)
        price = np.where(holds, np.minimum(price, kind.price_per_hour), price)
    largest = max(family, key=lambda kind: (kind.cores, kind.memory_bytes))
    richest = max(family, key=lambda kind: (kind.gpus, -kind.price_per_hour))
    several = np.where(asks, _several(requests, richest), _several(requests, largest))
    return np.where(np.isinf(price), several, price)


def rented_family(catalogue: PriceCatalogue) -> tuple[RentedType, ...]:
    """The types of a catalogue at the buyer's on-demand prices; those without a whole core go.

    Raises ``InputError`` if none has a core.
    """
    family = tuple(
        RentedType(
            offer.instance.name,
            int(offer.instance.cores),
            offer.instance.memory_bytes,
            offer.on_demand_per_hour,
            offer.instance.gpus,
        )
        for offer in catalogue.after_discounts().offers
        if offer.instance.cores >= 1.0
    )
    if not family:
        raise InputError("no machine with a whole core", source=catalogue.name)
    return family


USUAL_SHARE: Final = 0.1
"""Share of the price of a job's machine that its waiting is worth unless it is said."""


def usual_hour_value(jobs: TraceJobs, family: Sequence[RentedType]) -> float:
    """A tenth of what a job's machine costs for an hour on demand, the mean over all jobs."""
    requests = jobs.requests
    return USUAL_SHARE * float(rents(requests, family)[requests.of_job].mean())


def _no_gpus(jobs: int) -> InputError:
    """So many jobs ask for gpus, and nothing on offer has any."""
    return InputError(
        "no machine on offer has gpus",
        field="gpus",
        value=f"asked for by {jobs} job{'' if jobs == 1 else 's'}",
        expected="prices of a type with gpus, or only the other jobs (--filter drop_gpus)",
    )


def in_shares(gpus: ArrayLike) -> Floats:
    """Gpus in thousandths, as kernels take them."""
    return np.rint(np.asarray(gpus, dtype=np.float64) * _SHARES)


def _several(requests: Requests, kind: RentedType) -> Floats:
    """Price of as many of a machine as hold each request."""
    needed = np.maximum(
        np.ceil(requests.cores / kind.cores), np.ceil(requests.memory_bytes / kind.memory_bytes)
    )
    if kind.gpus:
        needed = np.maximum(needed, np.ceil(requests.gpus / kind.gpus))
    return needed * kind.price_per_hour


def _of_all_tasks(workload: Workload, column: str) -> Floats | None:
    """Request of each job in all, 0 where that is not known; None if it is of no job."""
    each = workload.jobs[column]
    if each.null_count() == len(each):
        return None
    total: Floats = each.fill_null(0.0).to_numpy() * workload.jobs["tasks"].to_numpy()
    return total


def _distinct(values: Floats | None, count: int) -> tuple[Floats, Integers]:
    """Distinct values, ascending, and their places; only 0 where there are none."""
    if values is None:
        return np.zeros(1), np.zeros(count, np.int64)
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, places


def _coded(values: Integers) -> tuple[Integers, Integers]:
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
