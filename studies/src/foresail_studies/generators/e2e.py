"""3Sigma's synthetic workloads, and the same with chains of jobs.

Their jobs are of classes of a population like Google's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from foresail.model.errors import require_at_least
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.workload import Workload
from foresail_studies.generators._demands import achieved
from foresail_studies.generators._synthetic import (
    SyntheticParameters,
    google_like,
    synthesise,
    with_mean_tasks,
)
from foresail_studies.predictors.sampled import FEATURE, as_text


@register("generator", "e2e", parameters=SyntheticParameters)
@generator
def e2e(parameters: SyntheticParameters, random: np.random.Generator) -> Workload:
    """3Sigma's E2E: jobs with deadlines and best-effort jobs of k-means classes, bursty arrivals.

    ``--set load=1.6`` is its E2E-LOAD-1.6, ``--set slack_percents=[120]`` its DEADLINE-120, and
    ``--set hours=2`` the two-hour variant.
    """
    return synthesise(parameters, random).workload


@dataclass(frozen=True, slots=True)
class E2ESampleParameters(SyntheticParameters):
    """Parameters of the generator ``e2e_sample``."""

    samples: int = 25
    """Independent samples for each job; the study takes 5, 10, 25, 50, 75 and 100."""

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_at_least(self, 1, "samples")


@register("generator", "e2e_sample", parameters=E2ESampleParameters)
@generator
def e2e_sample(parameters: E2ESampleParameters, random: np.random.Generator) -> Workload:
    """3Sigma's E2E-SAMPLE-n: for one seed the jobs of E2E, with samples of their classes.

    The feature ``runtime_samples`` holds seconds, comma-separated, drawn from the distribution that
    the job's runtime was drawn from; ``foresail_studies.predictors.sampled.samples_of`` reads it.
    """
    made = synthesise(parameters, random)
    kinds = np.repeat(made.drawn.of_class[:, None], parameters.samples, axis=1)
    samples = made.classes.draw_runtimes(kinds, random.spawn(1)[0]) * made.factor[:, None]
    feature = pl.Series(FEATURE, as_text(samples))
    return made.workload.with_jobs(made.workload.jobs.with_columns(feature))


_FEWEST_JOBS: Final = 2
_MOST_JOBS: Final = 5
"""Of a chain; each number between them is as likely."""


@register("generator", "pipelines", parameters=SyntheticParameters)
@generator
def pipelines(parameters: SyntheticParameters, random: np.random.Generator) -> Workload:
    """Jobs with deadlines are linked: each waits for the one before, the last has the deadline.

    The jobs are those of ``e2e`` with the same seed. A chain is submitted with its first job, and
    its deadline leaves as much slack, as a share of all its runtimes, as its last job's did.
    """
    workload = synthesise(parameters, random).workload
    if parameters.part == "history":
        return workload
    jobs, chains = _linked(workload.jobs, random.spawn(1)[0])
    header = dict(workload.meta.header) | achieved(chains=float(chains))
    return workload.with_jobs(jobs).with_meta(header=header)


def _linked(jobs: pl.DataFrame, random: np.random.Generator) -> tuple[pl.DataFrame, int]:
    """The jobs with their links, and the number of chains."""
    urgent = np.flatnonzero(jobs["deadline_seconds"].is_not_null().to_numpy())
    submit = jobs["submit_seconds"].to_numpy().copy()
    runtime = jobs["runtime_seconds"].to_numpy()
    deadline = jobs["deadline_seconds"].to_list()
    names = jobs["job_id"].to_list()
    after: list[str | None] = [None] * jobs.height
    at = chains = 0
    while at < urgent.size:
        count = int(random.integers(_FEWEST_JOBS, _MOST_JOBS + 1))
        chain = urgent[at : at + count]
        first, last = chain[0], chain[-1]
        slack = (deadline[last] - submit[last]) / runtime[last]
        submit[chain] = submit[first]
        for before, job in pairwise(chain.tolist()):
            after[job] = names[before]
            deadline[before] = None
        deadline[last] = float(submit[first] + slack * runtime[chain].sum())
        at, chains = at + count, chains + 1
    linked = jobs.with_columns(
        submit_seconds=submit,
        deadline_seconds=pl.Series(deadline, dtype=pl.Float64),
        after_jobs=pl.Series(after, dtype=pl.String),
    )
    return linked.sort("submit_seconds", maintain_order=True), chains


_TASKS_PER_JOB: Final = 71.4
"""Mean number of tasks of the jobs before those wider than the machine are left out."""


@dataclass(frozen=True, slots=True)
class ScalabilityParameters(SyntheticParameters):
    """Parameters of the generator ``scalability``."""

    nodes: int = 12_583
    load: float = 0.95

    jobs_per_hour: int = 2000
    """The study takes 2000, 3000 and 4000; Google's highest rate was 3668."""

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_at_least(self, 1, "jobs_per_hour")


@register("generator", "scalability", parameters=ScalabilityParameters)
@generator
def scalability(parameters: ScalabilityParameters, random: np.random.Generator) -> Workload:
    """3Sigma's SCALABILITY-n: n jobs an hour on 12,583 nodes, 71.4 tasks a job on average."""
    source = with_mean_tasks(google_like(random.spawn(1)[0]), _TASKS_PER_JOB)
    source = source.no_wider_than(parameters.nodes)
    jobs = max(round(parameters.jobs_per_hour * parameters.hours), 1)
    return synthesise(replace(parameters, jobs=jobs), random, source, "empirical").workload
