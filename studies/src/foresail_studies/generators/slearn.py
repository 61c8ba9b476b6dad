"""SLearn's traces, chains of stages made of them, and tasks that vary as asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError, require_at_least, require_choice, require_positive
from foresail.model.registry import register
from foresail.traces.folder import load_workload
from foresail.traces.generating import gangs, generator
from foresail.traces.workload import Workload, WorkloadMeta
from foresail_studies.generators import _preparation as preparation
from foresail_studies.generators._demands import achieved
from foresail_studies.generators._preparation import (
    JobsWithTasks,
    rescaled_times,
    slot_nodes,
    tasks_table,
    workload_of,
)

_POPULATION: Final = 8
"""Jobs of the population for each job of the run."""


@dataclass(frozen=True, slots=True)
class SLearnTracesParameters(preparation.PreparationParameters):
    """Parameters of the generator ``slearn``."""

    jobs: int = 1250
    """Jobs of the run, drawn from the later half; fewer where it has fewer."""

    def __post_init__(self) -> None:
        preparation.PreparationParameters.__post_init__(self)
        require_at_least(self, 2, "jobs")


@register("generator", "slearn", parameters=SLearnTracesParameters)
@generator
def slearn(parameters: SLearnTracesParameters, random: np.random.Generator) -> Workload:
    """SLearn's traces: jobs with the runtime of every task, drawn from half a log or a model."""
    making, drawing = random.spawn(2)
    halves = preparation.halves(parameters, _POPULATION * parameters.jobs, making)
    all_later = halves.later.width.size
    rows = drawing.choice(all_later, min(parameters.jobs, all_later), replace=False)
    jobs = halves.later.taken(np.sort(rows))
    letter = ""
    if parameters.part == "history":
        jobs, letter = preparation.sharing(halves.earlier, jobs), "h"
    submit = rescaled_times(jobs.submit_seconds, jobs.size, parameters.slots, halves.load)
    jobs = replace(jobs, submit_seconds=submit)
    header = preparation.figures(submit, jobs.size, jobs.width, parameters.slots)
    return workload_of(jobs, parameters.slots, header, letter)


def scaled_threshold(log: Path) -> float:
    """Seconds below which as many wide jobs of a log's earlier half are as below 1000 s published.

    It scales SLearn's queues to a log whose jobs are shorter or longer than 2Sigma's (table 9);
    jobs that the generator drops do not count. Raises as ``load_workload`` does.
    """
    jobs = preparation.jobs_with_tasks(load_workload(log))
    earlier = jobs.taken(np.arange(jobs.width.size // 2))
    wide = (earlier.width >= preparation.THIN_BELOW) & (earlier.width <= preparation.WIDEST)
    return float(np.quantile(earlier.size[wide], preparation.WIDE_SMALL))


_DAG_POPULATION: Final = 12
"""Jobs of the population for each DAG of the run: half of them, in DAGs of 3.5, and some spare."""
_FEWEST_STAGES: Final = 2
_MOST_STAGES: Final = 5
"""Each number of stages between them is as likely."""


@dataclass(frozen=True, slots=True)
class SLearnDagParameters(preparation.PreparationParameters):
    """Parameters of the generator ``slearn_dag``."""

    calibration: Literal["2strace", "gtrace11", "gtrace19"] = "gtrace19"

    dags: int = 900
    """DAGs of the run; fewer where the source has fewer."""

    def __post_init__(self) -> None:
        preparation.PreparationParameters.__post_init__(self)
        require_at_least(self, 2, "dags")


@register("generator", "slearn_dag", parameters=SLearnDagParameters)
@generator
def slearn_dag(parameters: SLearnDagParameters, random: np.random.Generator) -> Workload:
    """SLearn's DAGs: chains of 2 to 5 stages that share a job name and a user.

    A stage starts when the one before it has ended. ``tasks`` is the width of the widest stage, the
    runtime the sum over stages of the longest task.
    """
    making, earlier, later = random.spawn(3)
    halves = preparation.halves(parameters, _DAG_POPULATION * parameters.dags, making)
    history = parameters.part == "history"
    jobs = halves.earlier if history else halves.later
    rows, stages = _chains(jobs, parameters, earlier if history else later)
    return _workload(jobs.taken(rows), stages, parameters, halves.load)


def _chains(
    jobs: JobsWithTasks, parameters: SLearnDagParameters, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """Rows of the stages' jobs, DAG by DAG in order of submission; and stages of each DAG."""
    names = [name for name in ("user", "executable") if name in jobs.features.columns]
    if not names:
        raise InputError(
            "the jobs have neither users nor names, so none belong together",
            source=parameters.source,
            expected="a log with users or executables",
        )
    group = jobs.features.select(pl.struct(names).rank("dense")).to_series().to_numpy()
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.diff(group[order])) + 1
    chains: list[Integers] = []
    for members in np.split(order, bounds):
        at = 0
        while True:
            stages = int(random.integers(_FEWEST_STAGES, _MOST_STAGES + 1))
            if at + stages > members.size:
                break
            chains.append(members[at : at + stages])
            at += stages
    if len(chains) < 2:
        raise InputError("fewer than two DAGs", source=parameters.source, expected="more jobs")
    drawn = random.choice(len(chains), min(parameters.dags, len(chains)), replace=False)
    chosen = sorted((chains[number] for number in drawn), key=lambda chain: int(chain[0]))
    return np.concatenate(chosen), np.array([chain.size for chain in chosen])


def _workload(
    jobs: JobsWithTasks, stages: Integers, parameters: SLearnDagParameters, load: float
) -> Workload:
    begins = np.cumsum(stages) - stages
    size = np.add.reduceat(jobs.size, begins)
    submit = rescaled_times(jobs.submit_seconds[begins], size, parameters.slots, load)
    longest = np.maximum.reduceat(jobs.task_seconds, jobs.begins)
    letter = "h" if parameters.part == "history" else ""
    ids = np.char.mod(letter + "%d", np.arange(1, stages.size + 1))
    widest = np.maximum.reduceat(jobs.width, begins)
    runtime = np.add.reduceat(longest, begins)
    table = gangs(submit, runtime, widest, letter, **jobs.features[begins].to_dict())
    number = np.arange(stages.sum()) - np.repeat(begins, stages) + 1
    of_task = np.repeat(number, jobs.width).tolist()
    tasks = tasks_table(
        np.repeat(np.repeat(ids, stages), jobs.width),
        jobs.task_seconds,
        jobs.width,
        [f"stage{each}" for each in of_task],
        [f"stage{each - 1}" if each > 1 else None for each in of_task],
    )
    header = preparation.figures(submit, size, widest, parameters.slots)
    header |= achieved(stages_per_dag=float(stages.mean()))
    meta = WorkloadMeta("", "", processors=parameters.slots, header=header)
    return Workload(table, meta, slot_nodes(parameters.slots), tasks)


_WORK_SECONDS: Final = (300.0, 100_000.0)
"""Work of a name's mean job: names lie evenly between them, in logarithms."""


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
    slots: int = 150
    load: float = 1.0
    """Task slots of the cluster, and the mean load over windows of 1000 s."""

    def __post_init__(self) -> None:
        require_choice(self, part=("run", "history"))
        require_at_least(self, 2, "jobs")
        require_at_least(self, 1, "names", "width", "slots")
        require_positive(self, "load")
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
    centre = np.geomspace(*_WORK_SECONDS, parameters.names)
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
