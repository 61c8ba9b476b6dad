"""Sizes of jobs: cumulative shares of cpus, memory, gpus, tasks and runtimes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares, known, variation
from foresail.model.registry import register
from foresail.model.words import count, duration, number, percent
from foresail.traces.workload import Workload

_SMALL: Final = 0.0001
_LARGE: Final = 0.001
_GIBIBYTE: Final = 2.0**30


@register("analysis", "job_sizes")
@study("How large are jobs?", "3.2")
def job_sizes(workload: Workload) -> Answer | str:
    """Cumulative shares of what jobs ask for, and shares of jobs small and large for the machine.

    Spec section 10, W1 (dissertation, figure 3.1). Jobs that do not say how many cpus they ask for
    are left out.
    """
    asked = columns.cpus(workload)
    cpus = known(asked)
    if not cpus.size:
        return "No job says how many cpus it asks for."
    levels = dict(zip((50, 80, 90, 99), np.quantile(cpus, (0.5, 0.8, 0.9, 0.99)), strict=True))
    scalars = {f"p{level}_cpus": float(value) for level, value in levels.items()}
    scalars |= {"mean_cpus": float(cpus.mean()), "largest_cpus": float(cpus.max())}
    verdict = (
        f"Half of the jobs ask for at most {_cpus(levels[50])}, nine in ten for at most "
        f"{_cpus(levels[90])}; the mean is {number(scalars['mean_cpus'])}."
    )
    notes = [f"{count(asked.size - cpus.size, 'job')} without cpus left out."]
    processors = workload.meta.processors
    if processors:
        small = float((cpus < _SMALL * processors).mean())
        large = float((cpus > _LARGE * processors).mean())
        scalars |= {"share_below_0.01_percent": small, "share_above_0.1_percent": large}
        verdict = (
            f"{verdict[:-1]}; {percent(large)} ask for more than 0.1 % of the machine, "
            f"{percent(small)} for less than 0.01 %."
        )
    else:
        notes.append("The machine's size is unknown, so sizes are not compared with it.")
    tables = {"cpus": cumulative_shares(cpus, "cpus")}
    plots = [_plot("cpus", "cpus of a job (log scale)", verdict)]
    for name, unit, sizes in (
        ("memory", "GiB of memory of a job (log scale)", _memory(workload)),
        ("gpus", "gpus of a job (log scale)", known(columns.gpus(workload))),
    ):
        if sizes.size:
            tables[name] = cumulative_shares(sizes, name)
            scalars |= {
                f"p50_{name}": float(np.median(sizes)),
                f"p90_{name}": float(np.quantile(sizes, 0.9)),
            }
            said = (
                f"{percent(sizes.size / asked.size)} of the jobs say; half of these ask for at "
                f"most {number(scalars[f'p50_{name}'])}, nine in ten for at most "
                f"{number(scalars[f'p90_{name}'])}."
            )
            plots.append(_plot(name, unit, said))
    return Answer(verdict, scalars, tables, tuple(plots), _true_notes(notes))


def _memory(workload: Workload) -> NDArray[np.float64]:
    return known(columns.memory_bytes(workload)) / _GIBIBYTE


def _cpus(value: float) -> str:
    return f"{number(float(value))} {'cpu' if value == 1 else 'cpus'}"


def _plot(name: str, label: str, said: str) -> Plot:
    return cumulative_plot(name, name, label, "share of jobs that ask for no more", said)


def _true_notes(notes: list[str]) -> tuple[str, ...]:
    return tuple(note for note in notes if not note.startswith("0 "))


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


@register("analysis", "job_durations")
@study("How long do jobs run?", "3.2")
def job_durations(workload: Workload) -> Answer | str:
    """Cumulative shares of runtimes.

    Spec section 10, W2 and the runtimes of W16 (dissertation, figures 3.2 and 4.2a). Jobs without
    a runtime are left out.
    """
    every = columns.runtimes(workload)
    runtimes = known(every)
    if not runtimes.size:
        return "No job's runtime is known."
    median, p80, p99 = (float(q) for q in np.quantile(runtimes, (0.5, 0.8, 0.99)))
    scalars = {
        "mean_seconds": float(runtimes.mean()),
        "p50_seconds": median,
        "p80_seconds": p80,
        "p99_seconds": p99,
        "longest_seconds": float(runtimes.max()),
        "share_of_zero": float((runtimes == 0).mean()),
    }
    if runtimes.any():
        scalars["coefficient_of_variation"] = variation(runtimes)
    verdict = (
        f"Half of the jobs run for at most {duration(median)}, four in five for at most "
        f"{duration(p80)}; the longest runs for {duration(scalars['longest_seconds'])}."
    )
    plot = cumulative_plot(
        "runtimes",
        "runtime_seconds",
        "runtime (log scale)",
        "share of jobs that run no longer",
        verdict,
        x_kind="duration",
    )
    left_out = every.size - runtimes.size
    return Answer(
        verdict,
        scalars,
        {"runtimes": cumulative_shares(runtimes, "runtime_seconds")},
        (plot,),
        (f"{count(left_out, 'job')} of unknown runtime left out.",) if left_out else (),
    )
