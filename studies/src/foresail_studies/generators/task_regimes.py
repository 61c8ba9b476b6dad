"""Generator ``task_regimes``: jobs of tasks that vary over time and over space as asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from foresail.model.arrays import Floats
from foresail.model.errors import require_at_least, require_choice, require_positive
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.workload import Workload
from foresail_studies.generators import _preparation as preparation
from foresail_studies.generators._task_jobs import JobsWithTasks, rescaled_times, workload_of


@dataclass(frozen=True, slots=True)
class TaskRegimesParameters:
    """Parameters of the generator ``task_regimes``."""

    part: Literal["run", "history"] = "run"
    """``run``, or ``history``: as many other jobs of the same names, to train a predictor with."""
    jobs: int = 400
    """Of either part."""
    names: int = 20
    """That jobs have, one as often as another; it is all that predictors may see."""
    width: int = 50
    """Tasks of every job."""
    job_variation: float = 0.5
    task_variation: float = 0.5
    """Coefficients of variation: of jobs' mean tasks about their name's, and of tasks about their
    job's mean; either log-normal."""
    least_seconds: float = 300.0
    most_seconds: float = 100_000.0
    """Work of a name's mean job: names lie evenly between them, in logarithms."""
    slots: int = 150
    load: float = 1.0
    """Task slots of the cluster, and the mean load over windows of 1000 s."""

    def __post_init__(self) -> None:
        require_choice(self, part=("run", "history"))
        require_at_least(self, 2, "jobs")
        require_at_least(self, 1, "names", "width", "slots")
        require_positive(self, "load", "least_seconds", "most_seconds")
        require_at_least(self, 0, "job_variation", "task_variation")


@register("generator", "task_regimes", parameters=TaskRegimesParameters)
@generator
def task_regimes(parameters: TaskRegimesParameters, random: np.random.Generator) -> Workload:
    """Jobs of equal widths, whose tasks vary over time and over space as asked for."""
    of_run, of_history = random.spawn(2)
    history = parameters.part == "history"
    drawing = of_history if history else of_run
    count = parameters.jobs
    name = drawing.permutation(np.arange(count) % parameters.names)
    centre = np.geomspace(parameters.least_seconds, parameters.most_seconds, parameters.names)
    mean = centre[name] / parameters.width * _about_one(parameters.job_variation, count, drawing)
    width = np.full(count, parameters.width)
    tasks = _about_one(parameters.task_variation, count * parameters.width, drawing)
    jobs = JobsWithTasks(
        np.cumsum(drawing.standard_exponential(count)),
        width,
        tasks * np.repeat(mean, width),
        pl.DataFrame({"executable": np.char.mod("name%d", name + 1)}),
    )
    size = jobs.size
    submit = rescaled_times(jobs.submit_seconds, size, parameters.slots, parameters.load)
    header = preparation.figures(submit, size, width, parameters.slots)
    jobs = JobsWithTasks(submit, width, jobs.task_seconds, jobs.features)
    return workload_of(jobs, parameters.slots, header, "h" if history else "")


def _about_one(variation: float, count: int, random: np.random.Generator) -> Floats:
    """Log-normal values of mean 1 with a coefficient of variation; shape (count,)."""
    spread = np.sqrt(np.log1p(variation * variation))
    values: Floats = np.exp(spread * random.standard_normal(count) - spread * spread / 2.0)
    return values
