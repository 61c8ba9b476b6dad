"""Generator ``slearn``: SLearn's traces, from a log with tasks or of published characteristics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from foresail.model.arrays import Floats
from foresail.model.errors import (
    require,
    require_at_least,
    require_each_at_least,
    require_each_positive,
    require_share,
)
from foresail.model.registry import register
from foresail.traces.facts import deadline_seconds
from foresail.traces.generating import generator
from foresail.traces.workload import Workload
from foresail_studies.generators import _preparation as preparation
from foresail_studies.generators._demands import draw_slacks
from foresail_studies.generators._task_jobs import rescaled_times, slot_nodes, workload_of

_POPULATION: Final = 8
"""Jobs of the population for each job of the run."""


@dataclass(frozen=True, slots=True)
class SLearnTracesParameters(preparation.PreparationParameters):
    """Parameters of the generator ``slearn``."""

    jobs: int = 1250
    """Jobs of the run, drawn from the later half; fewer where it has fewer."""
    slack_percent: tuple[float, ...] = ()
    """Deadlines: how much longer than alone on all slots a job may take from its submission to its
    end, in percent of that, each value as likely. None: no job has a deadline."""
    deadline_share: float = 1.0
    """Share of the jobs that have deadlines, if any have."""
    speeds: tuple[float, ...] = ()
    """Of the slots, of which there are as many of each (one more of the first, where that does not
    go up); runtimes are those at speed 1, and the load is that of slots of speed 1. None: all have
    it."""

    def __post_init__(self) -> None:
        preparation.PreparationParameters.__post_init__(self)
        require_at_least(self, 2, "jobs")
        require_share(self, "deadline_share")
        if self.slack_percent:
            require_each_at_least(self, 0, "slack_percent")
        if self.speeds:
            require_each_positive(self, "speeds")
            require(len(self.speeds) <= self.slots, self, "speeds", "at most one for each slot")


@register("generator", "slearn", parameters=SLearnTracesParameters)
@generator
def slearn(parameters: SLearnTracesParameters, random: np.random.Generator) -> Workload:
    """SLearn's traces: jobs with the runtime of every task, drawn from half a log or a model."""
    making, drawing, promising = random.spawn(3)
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
    made = workload_of(jobs, parameters.slots, header, letter)
    if parameters.speeds:
        made = replace(made, nodes=slot_nodes(parameters.slots, parameters.speeds))
    if not parameters.slack_percent:
        return made
    return _with_deadlines(made, jobs.size, parameters, promising)


def _with_deadlines(
    made: Workload, size: Floats, parameters: SLearnTracesParameters, random: np.random.Generator
) -> Workload:
    longest = made.jobs["runtime_seconds"].to_numpy()
    alone = longest + (size - longest) / parameters.slots
    slack = draw_slacks(parameters.slack_percent, alone.size, random)
    deadline = deadline_seconds(made.jobs["submit_seconds"].to_numpy(), alone, slack)
    has_one = random.random(alone.size) < parameters.deadline_share
    known = pl.Series(np.where(has_one, deadline, np.nan)).fill_nan(None)
    return made.with_jobs(made.jobs.with_columns(deadline_seconds=known))
