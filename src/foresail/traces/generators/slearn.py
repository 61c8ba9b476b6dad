"""Generator ``slearn``: SLearn's traces, from a log with tasks or of published characteristics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.model.limits import require_at_least
from foresail.model.registry import register
from foresail.traces.generators import _preparation as preparation
from foresail.traces.generators._task_jobs import rescaled_times, workload_of
from foresail.traces.workload import Workload

_POPULATION: Final = 8
"""Jobs of the population for each job of the run."""


@dataclass(frozen=True, slots=True)
class SLearnTracesParameters(preparation.PreparationParameters):
    """Parameters of the generator ``slearn``.

    Parameters
    ----------
    jobs
        Jobs of the run, drawn from the later half; fewer where it has fewer.
    """

    jobs: int = 1250

    def __post_init__(self) -> None:
        preparation.PreparationParameters.__post_init__(self)
        require_at_least(self, 2, "jobs")


@register("generator", "slearn", parameters=SLearnTracesParameters)
class SLearnTraces:
    """SLearn's traces: jobs with the runtime of every task, drawn from half a log or a model."""

    def __init__(self, parameters: SLearnTracesParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """The run, or the history to train with."""
        parameters = self._parameters
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
