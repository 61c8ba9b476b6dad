"""Generator ``crowded``: logs of machines with long queues and requests far beyond runtimes.

A plug-in (``--plugin``). A seed draws which machine it is: the typical request is 2 to 100 times
the runtime, 30 to 90 % of jobs are serial, the offered load is 0.7 to 1.1. Users submit in sessions
of one application, some of which are bursts of hundreds of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import require_at_least
from foresail.model.registry import register
from foresail.traces.generating import gangs, generator
from foresail.traces.workload import Workload, WorkloadMeta

LIMITS_SECONDS: Final = 3600.0 * np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24, 48, 72, 168])
"""Times that people ask for."""
DAY_SECONDS: Final = 86400.0


@dataclass(frozen=True, slots=True)
class CrowdedParameters:
    """Parameters of the generator ``crowded``."""

    jobs: int = 4000
    processors: int = 128
    users: int = 40
    """Each has one to four applications."""

    def __post_init__(self) -> None:
        require_at_least(self, 2, "jobs", "processors", "users")


@register("generator", "crowded", parameters=CrowdedParameters)
@generator
def crowded(parameters: CrowdedParameters, random: np.random.Generator) -> Workload:
    """A crowded machine, which the seed draws."""
    times = np.exp(random.uniform(np.log(2.0), np.log(100.0)))
    serial, load = random.uniform(0.3, 0.9), random.uniform(0.7, 1.1)
    owner = np.repeat(np.arange(parameters.users), random.integers(1, 5, parameters.users))
    median = np.exp(random.normal(np.log(1200.0), 1.5, owner.size))
    asked = median * times * np.exp(random.normal(0.0, 0.5, owner.size))
    widest = np.log2(parameters.processors) - 1.0
    wide = np.exp2(np.floor(random.uniform(1.0, widest, owner.size)))
    width = np.where(random.random(owner.size) < serial, 1.0, wide)
    often = random.zipf(1.6, owner.size).clip(max=100).astype(np.float64)
    sizes = np.exp(random.normal(1.0, 1.5, parameters.jobs)).clip(1.0, 400.0).astype(np.int64)
    sessions = int(np.searchsorted(np.cumsum(sizes), parameters.jobs)) + 1
    chosen = random.choice(owner.size, sessions, p=often / often.sum())
    application = np.repeat(chosen, sizes[:sessions])[: parameters.jobs]
    seconds = median[application] * np.exp(random.normal(0.0, 0.6, application.size))
    places = np.searchsorted(LIMITS_SECONDS, asked).clip(max=LIMITS_SECONDS.size - 1)
    requested = LIMITS_SECONDS[places][application]
    runtime = np.ceil(np.minimum(seconds, requested))
    span = float(runtime @ width[application]) / (load * parameters.processors)
    begins = np.sort(np.abs(_by_day(random.uniform(0.0, span, sessions))))
    gaps = random.exponential(20.0, application.size)
    within = np.concatenate([np.cumsum(each) for each in _split(gaps, sizes[:sessions])])
    submit = np.floor(np.repeat(begins, sizes[:sessions])[: parameters.jobs] + within)
    order = np.argsort(submit, kind="stable")
    jobs = gangs(
        submit[order],
        runtime[order],
        width[application][order].astype(np.int64),
        requested_seconds=requested[order],
        user=np.char.mod("user%d", owner[application][order]),
        executable=np.char.mod("application%d", application[order]),
    )
    return Workload(jobs, WorkloadMeta("", "", processors=parameters.processors))


def _by_day(seconds: Floats) -> Floats:
    """Move times of the day towards noon."""
    return seconds + 0.1 * DAY_SECONDS * np.sin(2.0 * np.pi * seconds / DAY_SECONDS)


def _split(values: Floats, sizes: Integers) -> list[Floats]:
    return np.split(values, np.cumsum(sizes)[:-1])
