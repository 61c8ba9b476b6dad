"""3Sigma's synthetic workloads, and the same with chains of jobs.

Their jobs are of classes of a log, or of a population like Google's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.model.errors import require_at_least, require_each_at_least
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


@dataclass(frozen=True, slots=True)
class E2EParameters(SyntheticParameters):
    """Parameters of the generator ``e2e``."""

    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """A deadline is submission plus runtime plus one of these percentages of it, each as likely."""

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_each_at_least(self, 0, "slack_percents")


@register("generator", "e2e", parameters=E2EParameters)
@generator
def e2e(parameters: E2EParameters, random: np.random.Generator) -> Workload:
    """3Sigma's E2E: jobs with deadlines and best-effort jobs of k-means classes, bursty arrivals.

    ``--set load=1.6`` is its E2E-LOAD-1.6, ``--set hours=2`` the two-hour variant.
    """
    return synthesise(parameters, parameters.slack_percents, random).workload


@dataclass(frozen=True, slots=True)
class DeadlineParameters(SyntheticParameters):
    """Parameters of the generator ``deadline``."""

    slack_percent: float = 60.0
    """A deadline is submission plus runtime plus this percentage of it; the study takes 20, 40 ...
    180."""

    def __post_init__(self) -> None:
        SyntheticParameters.__post_init__(self)
        require_at_least(self, 0, "slack_percent")


@register("generator", "deadline", parameters=DeadlineParameters)
@generator
def deadline(parameters: DeadlineParameters, random: np.random.Generator) -> Workload:
    """3Sigma's DEADLINE-n: for one seed the same jobs as E2E, all deadlines equally tight."""
    return synthesise(parameters, (parameters.slack_percent,), random).workload


@dataclass(frozen=True, slots=True)
class E2ESampleParameters(E2EParameters):
    """Parameters of the generator ``e2e_sample``."""

    samples: int = 25
    """Independent samples for each job; the study takes 5, 10, 25, 50, 75 and 100."""

    def __post_init__(self) -> None:
        E2EParameters.__post_init__(self)
        require_at_least(self, 1, "samples")


@register("generator", "e2e_sample", parameters=E2ESampleParameters)
@generator
def e2e_sample(parameters: E2ESampleParameters, random: np.random.Generator) -> Workload:
    """3Sigma's E2E-SAMPLE-n: for one seed the jobs of E2E, with samples of their classes.

    The feature ``runtime_samples`` holds seconds, comma-separated, drawn from the distribution that
    the job's runtime was drawn from; ``foresail_studies.predictors.sampled.samples_of`` reads it.
    """
    made = synthesise(parameters, parameters.slack_percents, random)
    kinds = np.repeat(made.drawn.of_class[:, None], parameters.samples, axis=1)
    samples = made.classes.draw_runtimes(kinds, random.spawn(1)[0]) * made.factor[:, None]
    feature = pl.Series(FEATURE, as_text(samples))
    return made.workload.with_jobs(made.workload.jobs.with_columns(feature))


_FEWEST_JOBS: Final = 2
_MOST_JOBS: Final = 5
"""Of a chain; each number between them is as likely."""


@register("generator", "pipelines", parameters=E2EParameters)
@generator
def pipelines(parameters: E2EParameters, random: np.random.Generator) -> Workload:
    """Jobs with deadlines are linked: each waits for the one before, the last has the deadline.

    The jobs are those of ``e2e`` with the same seed. A chain is submitted with its first job, and
    its deadline leaves as much slack, as a share of all its runtimes, as its last job's did.
    """
    workload = synthesise(parameters, parameters.slack_percents, random).workload
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


@dataclass(frozen=True, slots=True)
class ScalabilityParameters:
    """Parameters of the generator ``scalability``."""

    jobs_per_hour: int = 2000
    """The study takes 2000, 3000 and 4000; Google's highest rate was 3668."""
    hours: float = 5.0
    history_hours: float = 10.0
    part: Literal["run", "history"] = "run"
    """As for ``e2e``."""
    nodes: int = 12_583
    racks: int = 8
    """The machine."""
    load: float = 0.95
    """Offered load, which is reached exactly by scaling runtimes."""
    tasks_per_job: float = 71.4
    """Mean number of tasks of the jobs before those wider than the machine are left out."""
    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """As for ``e2e``."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "jobs_per_hour", "tasks_per_job")
        require_each_at_least(self, 0, "slack_percents")
        self.recipe()

    def recipe(self) -> SyntheticParameters:
        """The same as parameters of the recipe."""
        return SyntheticParameters(
            part=self.part,
            hours=self.hours,
            history_hours=self.history_hours,
            nodes=self.nodes,
            racks=self.racks,
            load=self.load,
            jobs=max(round(self.jobs_per_hour * self.hours), 1),
            fit="empirical",
        )


@register("generator", "scalability", parameters=ScalabilityParameters)
@generator
def scalability(parameters: ScalabilityParameters, random: np.random.Generator) -> Workload:
    """3Sigma's SCALABILITY-n: n jobs an hour on 12,583 nodes, 71.4 tasks a job on average."""
    source = google_like(random.spawn(1)[0])
    source = with_mean_tasks(source, parameters.tasks_per_job)
    source = source.no_wider_than(parameters.nodes)
    return synthesise(parameters.recipe(), parameters.slack_percents, random, source).workload
