"""Generator ``scalability``: thousands of jobs an hour on a machine of Google's size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from foresail.model.errors import require_at_least, require_each_at_least
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.workload import Workload
from foresail_studies.generators import _population as population
from foresail_studies.generators._synthetic import SyntheticParameters, synthesise


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
    source = population.google_like(random.spawn(1)[0])
    source = population.with_mean_tasks(source, parameters.tasks_per_job)
    source = source.no_wider_than(parameters.nodes)
    return synthesise(parameters.recipe(), parameters.slack_percents, random, source).workload
