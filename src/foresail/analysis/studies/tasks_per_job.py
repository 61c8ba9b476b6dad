"""Numbers of tasks of jobs."""

from __future__ import annotations

import numpy as np

from foresail.analysis import columns
from foresail.analysis.finding import Answer, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares, known
from foresail.model.registry import register
from foresail.model.words import count, number, percent
from foresail.traces.workload import Workload


@register("analysis", "tasks_per_job")
@study("How many tasks has a job?", "3.4")
def tasks_per_job(workload: Workload) -> Answer | str:
    """Cumulative shares of the number of tasks.

    Spec section 10, W8 (dissertation, figure 3.6). Tasks of the jobs that say how many they have.
    """
    every = columns.tasks(workload)
    tasks = known(every)
    if not tasks.size:
        return "No job says how many tasks it has."
    single = float((tasks == 1).mean())
    scalars = {
        "share_of_single_task": single,
        "mean_tasks": float(tasks.mean()),
        "p50_tasks": float(np.median(tasks)),
        "p90_tasks": float(np.quantile(tasks, 0.9)),
        "most_tasks": float(tasks.max()),
    }
    verdict = (
        f"{percent(single)} of the jobs have a single task, nine in ten at most "
        f"{number(scalars['p90_tasks'])}; the largest has {number(scalars['most_tasks'])}."
    )
    plot = cumulative_plot(
        "tasks", "tasks", "tasks of a job (log scale)", "share of jobs with no more", verdict
    )
    notes = ["Logs in the Standard Workload Format count every processor as a task."]
    if every.size > tasks.size:
        notes.append(f"{count(every.size - tasks.size, 'job')} without tasks left out.")
    return Answer(
        verdict, scalars, {"tasks": cumulative_shares(tasks, "tasks")}, (plot,), tuple(notes)
    )
