"""Generator ``university``: the thesis' year of a university's shared cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.model.errors import require_at_least, require_positive, require_share
from foresail.model.registry import register
from foresail.traces.facts import offered_load
from foresail.traces.generating import achieved, generator
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.bursts import Bursts
from foresail_studies.university import Runtimes, university_jobs

_USUAL: Final = Bursts()


@dataclass(frozen=True, slots=True)
class UniversityParameters:
    """Parameters of the generator ``university``."""

    jobs: int | None = None
    """The first so many; by default the year's 14.3 million."""
    processors: int = 14_376
    """Of the cluster."""
    mean_jobs_of_burst: float = _USUAL.mean_jobs
    """Jobs come in bursts: how many on average; 10 make 90 % of gaps short."""
    burst_tail: float = _USUAL.tail
    """Pareto exponent of the jobs in a burst; smaller is burstier."""
    most_jobs_of_burst: int = _USUAL.most_jobs
    """In one burst."""
    likeness: float = _USUAL.likeness
    """Share of jobs that run about as long as the burst's first job."""
    week_spread: float = _USUAL.week_spread
    """Standard deviation of the logarithm of a week's submissions."""
    middle_mean_seconds: float = Runtimes().middle_mean_seconds
    """Mean runtime of the jobs between three minutes and six hours; the less it is, the longer are
    the longest."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "jobs", "processors", "mean_jobs_of_burst", "most_jobs_of_burst")
        require_at_least(self, 0, "week_spread")
        require_positive(self, "burst_tail")
        require_share(self, "likeness")
        Runtimes(self.middle_mean_seconds)


@register("generator", "university", parameters=UniversityParameters)
@generator
def university(parameters: UniversityParameters, random: np.random.Generator) -> Workload:
    """A year of 14.3 million jobs with the published figures of a university's cluster.

    0.4527 jobs a second in bursts, 90 % of gaps below a second, more by day and on workdays; a mean
    runtime of 6,225 s, 60 % below three minutes and 4 % above six hours; half of the bursts ask for
    one core. How bursts come about was not published. There are no users and no requested times.
    """
    bursts = Bursts(
        parameters.mean_jobs_of_burst,
        parameters.burst_tail,
        parameters.most_jobs_of_burst,
        parameters.likeness,
        parameters.week_spread,
    )
    drawn = university_jobs(
        random, parameters.jobs, bursts, Runtimes(parameters.middle_mean_seconds)
    )
    count = drawn.submit.size
    jobs = jobs_table(
        {
            "job_id": pl.int_range(1, count + 1, eager=True).cast(pl.String),
            "submit_seconds": drawn.submit,
            "runtime_seconds": drawn.runtime,
            "tasks": np.ones(count, np.int64),
            "cpus_per_task": drawn.cores.astype(np.float64),
        }
    )
    seconds = max(float(drawn.submit[-1] - drawn.submit[0]), 1.0)
    load = offered_load(drawn.cores, drawn.runtime, parameters.processors, seconds)
    header = achieved(load=load, mean_runtime_seconds=float(drawn.runtime.mean()))
    return Workload(jobs, WorkloadMeta("", "", processors=parameters.processors, header=header))
