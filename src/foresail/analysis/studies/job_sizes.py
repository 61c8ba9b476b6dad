"""Sizes of jobs: cumulative shares of cpus, memory and gpus asked for."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares, known
from foresail.model.registry import register
from foresail.model.words import count, number, percent
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
