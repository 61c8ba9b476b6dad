"""The year of a university's cluster (section 6.7) as waiting policies see it."""

from __future__ import annotations

import numpy as np

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.traces.bursts import Bursts
from foresail.traces.university import Runtimes, university_jobs


def university_year(
    jobs: int | None = None,
    seed: int = 0,
    bursts: Bursts | None = None,
    runtimes: Runtimes | None = None,
) -> TraceJobs:
    """Jobs of a year, or so many of its first ones: those of the generator ``university``."""
    return TraceJobs(*university_jobs(np.random.default_rng(seed), jobs, bursts, runtimes))
