"""Generator ``pipelines``: the E2E workload with chains of jobs that have one deadline together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from foresail.model.errors import require_at_least
from foresail.model.registry import register
from foresail.traces.generating import achieved, generator
from foresail.traces.workload import Workload
from foresail_studies.generators._synthetic import synthesise
from foresail_studies.generators.e2e import E2EParameters


@dataclass(frozen=True, slots=True)
class PipelinesParameters(E2EParameters):
    """Parameters of the generator ``pipelines``."""

    fewest_jobs: int = 2
    most_jobs: int = 5
    """Of a chain; each number between them is as likely."""

    def __post_init__(self) -> None:
        E2EParameters.__post_init__(self)
        require_at_least(self, 1, "fewest_jobs")
        require_at_least(self, self.fewest_jobs, "most_jobs")


@register("generator", "pipelines", parameters=PipelinesParameters)
@generator
def pipelines(parameters: PipelinesParameters, random: np.random.Generator) -> Workload:
    """Jobs with deadlines are linked: each waits for the one before, the last has the deadline.

    The jobs are those of ``e2e`` with the same seed. A chain is submitted with its first job, and
    its deadline leaves as much slack, as a share of all its runtimes, as its last job's did.
    """
    workload = synthesise(parameters, parameters.slack_percents, random).workload
    if parameters.part == "history":
        return workload
    jobs, chains = _linked(workload.jobs, parameters, random.spawn(1)[0])
    header = dict(workload.meta.header) | achieved(chains=float(chains))
    return workload.with_jobs(jobs).with_meta(header=header)


def _linked(
    jobs: pl.DataFrame, parameters: PipelinesParameters, random: np.random.Generator
) -> tuple[pl.DataFrame, int]:
    """The jobs with their links, and the number of chains."""
    urgent = np.flatnonzero(jobs["deadline_seconds"].is_not_null().to_numpy())
    submit = jobs["submit_seconds"].to_numpy().copy()
    runtime = jobs["runtime_seconds"].to_numpy()
    deadline = jobs["deadline_seconds"].to_list()
    names = jobs["job_id"].to_list()
    after: list[str | None] = [None] * jobs.height
    at = chains = 0
    while at < urgent.size:
        count = int(random.integers(parameters.fewest_jobs, parameters.most_jobs + 1))
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
