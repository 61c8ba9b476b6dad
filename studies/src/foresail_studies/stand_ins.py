"""Stand-ins for the logs of the thesis, which are not at hand: a university's year, Google's week.

Published of the week of a cell of Google's log of 2019 (section 7.5.3): 14 million sampled jobs,
4,000 fixed machines of 192 cores and 768 GB, prices of customised machines, unbalanced requests,
and runtimes distributed much as the university's.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.cloud.waiting.jobs import GIB, TraceJobs
from foresail_studies.generators.university import (
    MEAN_RUNTIME_SECONDS,
    Runtimes,
    arrivals,
    cores_of,
    levels,
    university_jobs,
)

WEEK_SECONDS: Final = 7.0 * 86400.0
JOBS: Final = 14_000_000
MACHINES: Final = 4_000
MACHINE_CORES: Final = 192
MACHINE_BYTES: Final = 768.0 * GIB
CUSTOM_CORE_HOUR: Final = 0.031611
CUSTOM_GIB_HOUR: Final = 0.004237
CORE_HOUR: Final = 0.048
"""Of a core with 4 GB on demand; a fixed one costs 60 % less."""
MEAN_CORES: Final = MACHINES * MACHINE_CORES * WEEK_SECONDS / (JOBS * MEAN_RUNTIME_SECONDS)
"""Per job: as much work as the fixed machines could do in a week, the best for the university."""

_CORES: Final = np.array([1, 2, 4, 8, 16, 32, 64], dtype=np.int64)
_MEMORY_RATIOS: Final = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
_RATIO_SHARES: Final = np.array([0.12, 0.17, 0.27, 0.28, 0.16])
"""Memory per core relative to that of all jobs together: of 2,502 jobs of Google's log of 2011."""
_MEAN_GIB_PER_CORE: Final = 4.0


def university_year(
    jobs: int | None = None, seed: int = 0, runtimes: Runtimes | None = None
) -> TraceJobs:
    """Jobs of a year (section 6.7), or its first ones: those of the generator ``university``."""
    return TraceJobs(*university_jobs(np.random.default_rng(seed), jobs, runtimes=runtimes))


def google_week(scale: float = 1.0, seed: int = 0) -> TraceJobs:
    """Jobs of a week of a cell, or of one that is so many times as large.

    Bursts are as large in a small cell as in a large one, so that its load is more uneven.
    """
    random = np.random.default_rng(seed)
    count = round(scale * JOBS)
    come = arrivals(random, count, count / WEEK_SECONDS)
    order = np.argsort(come.submit, kind="stable")
    runtime = Runtimes().at(levels(random, come))
    cores = cores_of(random, come.bursts, MEAN_CORES, _CORES)[come.burst]
    ratio = random.choice(_MEMORY_RATIOS, size=come.bursts, p=_RATIO_SHARES)[come.burst]
    gib = cores * ratio * (_MEAN_GIB_PER_CORE / float(_MEMORY_RATIOS @ _RATIO_SHARES))
    return TraceJobs(come.submit[order], runtime[order], cores[order], gib[order] * GIB)
