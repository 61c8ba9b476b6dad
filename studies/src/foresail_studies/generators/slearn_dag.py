"""Generator ``slearn_dag``: chains of stages, each of which is a whole job of SLearn's traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.model.arrays import Integers
from foresail.model.errors import InputError, require_at_least
from foresail.model.registry import register
from foresail.traces.generating import achieved, gangs, generator
from foresail.traces.workload import Workload, WorkloadMeta
from foresail_studies.generators import _preparation as preparation
from foresail_studies.generators._task_jobs import (
    JobsWithTasks,
    rescaled_times,
    slot_nodes,
    tasks_table,
)

_POPULATION: Final = 12
"""Jobs of the population for each DAG of the run: half of them, in DAGs of 3.5, and some spare."""


@dataclass(frozen=True, slots=True)
class SLearnDagParameters(preparation.PreparationParameters):
    """Parameters of the generator ``slearn_dag``."""

    calibration: Literal["2strace", "gtrace11", "gtrace19"] = "gtrace19"

    dags: int = 900
    """DAGs of the run; fewer where the source has fewer."""
    fewest_stages: int = 2
    most_stages: int = 5
    """Each number of stages between them is as likely."""

    def __post_init__(self) -> None:
        preparation.PreparationParameters.__post_init__(self)
        require_at_least(self, 1, "fewest_stages")
        require_at_least(self, 2, "dags")
        require_at_least(self, self.fewest_stages, "most_stages")


@register("generator", "slearn_dag", parameters=SLearnDagParameters)
@generator
def slearn_dag(parameters: SLearnDagParameters, random: np.random.Generator) -> Workload:
    """SLearn's DAGs: chains of 2 to 5 stages that share a job name and a user.

    A stage starts when the one before it has ended. ``tasks`` is the width of the widest stage, the
    runtime the sum over stages of the longest task.
    """
    making, earlier, later = random.spawn(3)
    halves = preparation.halves(parameters, _POPULATION * parameters.dags, making)
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
            stages = int(random.integers(parameters.fewest_stages, parameters.most_stages + 1))
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
