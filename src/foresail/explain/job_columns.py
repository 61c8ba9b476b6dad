"""Columns of jobs that forecasts go by: read once of each job, and kept while it waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.basic import Point
from foresail.distributions.summary import summarise
from foresail.explain.common_factor import keys_of
from foresail.kernels.columns import CPUS, REQUESTED, SPEC_COLUMNS, SUBMIT, SUMMARY_COLUMNS
from foresail.model.distribution import Distribution, Floats, Integers
from foresail.model.job import Job
from foresail.model.view import PendingJob

_SECONDS: Final = ("submitted", "eligible", "deadline", "planned", "due", "latest")
_COLUMNS: Final = np.dtype(
    [
        *((name, np.int64) for name in ("kind", "belief", "arrival")),
        *((name, np.float64) for name in _SECONDS),
        ("key", np.uint64),
        ("waits_for_others", np.bool_),
    ]
)
"""Columns of single jobs: numbers of a kind and of a belief, and those of ``JobColumns``."""

_MEDIAN: Final = SUMMARY_COLUMNS


@dataclass(frozen=True, slots=True, eq=False)
class JobColumns:
    """Columns of jobs that wait, a row each; most jobs are of a few kinds, and share a belief.

    Parameters
    ----------
    pending
        The jobs.
    places
        Row of each by its id.
    table
        Further columns, times in seconds: when it was ``submitted``, is ``eligible`` from, its
        ``deadline`` (nan without one), its ``planned`` runtime, when it is ``due`` and may not be
        put off beyond ``latest`` (infinite for never); its ``arrival``, the ``key`` that is drawn
        by, whether it ``waits_for_others``, and the numbers of its ``kind`` and ``belief``.
    of_kind, of_belief
        The last row of each kind of jobs, which ask for the same under the same name, and belief.
    summaries
        Summary row of each belief, and its exact median.
    """

    pending: Sequence[PendingJob]
    places: Mapping[str, int]
    table: NDArray[np.void]
    of_kind: Integers
    of_belief: Integers
    summaries: Floats

    def __len__(self) -> int:
        return len(self.pending)

    @property
    def kinds(self) -> list[Job]:
        """The last job of each kind."""
        return [self.pending[at].job for at in self.of_kind.tolist()]

    def by_kind(self, function: Callable[[Job], Any]) -> NDArray[Any]:
        """Return for each job what a function, called once a kind, returns for its kind."""
        values = np.array([function(job) for job in self.kinds])
        return values[self.table["kind"]] if len(self) else values

    @property
    def limits(self) -> Floats:
        """Requested times (seconds), infinite where there is none."""
        return self.by_kind(limit_of)

    @property
    def cpus(self) -> Floats:
        """Cpus that each asks for."""
        return self.by_kind(attrgetter("cpus"))

    @property
    def medians(self) -> Floats:
        """Medians of what is believed of runtimes (seconds)."""
        found: Floats = self.summaries[self.table["belief"], _MEDIAN]
        return found

    @property
    def summary_rows(self) -> Floats:
        """Summary rows of beliefs, shape (jobs, SUMMARY_COLUMNS)."""
        return self.summaries[self.table["belief"], :SUMMARY_COLUMNS]

    def specs(self) -> Floats:
        """Rows of jobs as orders see them, shape (jobs, SPEC_COLUMNS)."""
        specs = np.full((len(self), SPEC_COLUMNS), -1.0)
        specs[:, SUBMIT] = self.table["submitted"]
        specs[:, CPUS] = self.cpus
        specs[:, REQUESTED] = self.limits
        return specs

    def some(self, rows: Sequence[int]) -> JobColumns:
        """Return the same of some of the jobs."""
        return columns_of([self.pending[at] for at in rows], self)


_NOTHING: Final = np.zeros(0, np.int64)
NO_JOBS: Final = JobColumns(
    (), {}, np.zeros(0, _COLUMNS), _NOTHING, _NOTHING, np.zeros((0, SUMMARY_COLUMNS + 1))
)


def columns_of(pending: Sequence[PendingJob], before: JobColumns = NO_JOBS) -> JobColumns:
    """Return the columns of jobs, of which each id is there once.

    Rows of jobs that were there ``before``, and are just the same, are taken from there.
    """
    places = {each.job.job_id: at for at, each in enumerate(pending)}
    earlier = np.array(
        [
            at if (at := before.places.get(job_id, -1)) >= 0 and before.pending[at] is each else -1
            for job_id, each in zip(places, pending, strict=True)
        ],
        dtype=np.int64,
    )
    table = np.empty(len(pending), _COLUMNS)
    known = earlier >= 0
    table[known] = before.table[earlier[known]]
    kinds: dict[Hashable, int] = {}
    beliefs: dict[Hashable, int] = {}
    if not known.all():
        kinds = {_kind(job): number for number, job in enumerate(before.kinds)}
        same = (before.pending[at].prediction for at in before.of_belief.tolist())
        beliefs = {_identity(belief): number for number, belief in enumerate(same)}
    new = [pending[at] for at in np.flatnonzero(~known).tolist()]
    table[~known] = np.array([_row(each, kinds, beliefs) for each in new], _COLUMNS)
    table["key"][~known] = keys_of([each.job.job_id for each in new])
    _, of_kind = _renumbered(table["kind"])
    numbers, of_belief = _renumbered(table["belief"])
    summaries = np.empty((len(numbers), SUMMARY_COLUMNS + 1))
    is_old = numbers < len(before.summaries)
    summaries[is_old] = before.summaries[numbers[is_old]]
    for at in np.flatnonzero(~is_old).tolist():
        belief = pending[of_belief[at]].prediction
        summaries[at, :SUMMARY_COLUMNS] = summarise(belief)
        summaries[at, _MEDIAN] = belief.quantile(0.5)
    return JobColumns(pending, places, table, of_kind, of_belief, summaries)


def _row(
    pending: PendingJob, kinds: dict[Hashable, int], beliefs: dict[Hashable, int]
) -> tuple[float, ...]:
    """Return the row of a job, whose key is still to be found."""
    job, due, deadline = pending.job, pending.due, pending.job.deadline_seconds
    return (
        kinds.setdefault(_kind(job), len(kinds)),
        beliefs.setdefault(_identity(pending.prediction), len(beliefs)),
        pending.arrival,
        job.submit_seconds,
        job.eligible_seconds,
        math.nan if deadline is None else deadline,
        pending.planned_seconds,
        *((math.inf, math.inf) if due is None else (due.due_seconds, due.latest_seconds)),
        0,
        bool(job.after) or job.conditions is not None,
    )


def _renumbered(column: Integers) -> tuple[Integers, Integers]:
    """Number without gaps; return the numbers that there were, and the last row of each."""
    numbers, again = np.unique(column, return_inverse=True)
    column[:] = again
    last = np.empty(len(numbers), np.int64)
    last[again] = np.arange(len(column))
    return numbers, last


def _kind(job: Job) -> Hashable:
    """Return what jobs of a kind have in common."""
    asked = job.total, job.requested_seconds
    return job.user, job.name, job.group, job.queue, job.partition, *asked


def _identity(belief: Distribution) -> Hashable:
    """Return what beliefs have in common of which one summary is enough."""
    return belief.value if isinstance(belief, Point) else ("", id(belief))


def limit_of(job: Job) -> float:
    """Return a job's requested time (seconds), infinite without one."""
    return math.inf if job.requested_seconds is None else job.requested_seconds
