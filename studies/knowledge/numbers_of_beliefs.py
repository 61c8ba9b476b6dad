"""Which number of a belief is near the runtime: within a factor of two, and on average.

usage: python studies/knowledge/numbers_of_beliefs.py TRACES [--log NAME ...]

``combined`` states a distribution; its estimate is the mean. One thing is swapped at a time: which
number of the same belief is taken (its mean, the exponential of the mean logarithm, its median),
and which member is left out. The points of ``jvu``, with the requested time among its features as
inside ``combined``, stand beside. Per cell: the share of jobs within a factor of two, in per cent,
and the summed absolute errors over the summed runtimes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from ablation import asked_logs
from numpy.typing import NDArray

from foresail.evaluation.replaying import LEVELS, QUANTILES, evaluate
from foresail.predictors.combined import CombinedParameters
from foresail.traces.workload import Workload

MEMBERS: Final = CombinedParameters().members

Floats = NDArray[np.float64]


def mean_of_logarithms(quantiles: Floats) -> Floats:
    """Seconds per job from rows of quantiles at ``LEVELS``.

    A logarithm is constant before the first and after the last level, and linear between.
    """
    logs = np.log(np.maximum(quantiles, 1.0))
    levels = np.array([0.0, *LEVELS, 1.0])
    padded = np.column_stack((logs[:, :1], logs, logs[:, -1:]))
    middle = 0.5 * (padded[:, 1:] + padded[:, :-1])
    mean: Floats = np.exp(middle @ np.diff(levels))
    return mean


def numbers(workload: Workload) -> Iterator[tuple[str, str]]:
    """What is taken, and the cell."""

    def cell(estimate: Floats) -> str:
        near = (estimate <= 2.0 * actual) & (actual <= 2.0 * estimate)
        error = np.abs(estimate - actual).sum() / actual.sum()
        return f"{100.0 * near.mean():.1f}, {error:.3f}"

    jobs = evaluate(workload, "combined").jobs
    actual = np.maximum(jobs["actual"].to_numpy(), 1.0)
    yield "mean", cell(jobs["predicted"].to_numpy())
    yield "mean of logarithms", cell(mean_of_logarithms(jobs.select(QUANTILES).to_numpy()))
    yield "median", cell(jobs["q50"].to_numpy())
    for member in MEMBERS:
        others = ",".join(each for each in MEMBERS if each != member)
        jobs = evaluate(workload, f"combined(members=[{others}])").jobs
        name = member.partition("(")[0]
        yield f"mean, without `{name}`", cell(jobs["predicted"].to_numpy())
        yield f"median, without `{name}`", cell(jobs["q50"].to_numpy())
    for member in MEMBERS:
        jobs = evaluate(workload, member).jobs
        name = member.partition("(")[0]
        yield f"mean of `{name}` alone", cell(jobs["predicted"].to_numpy())
        yield f"median of `{name}` alone", cell(jobs["q50"].to_numpy())


def main() -> None:
    """Print a table in Markdown."""
    logs = asked_logs(__doc__)
    tables = [dict(numbers(workload)) for workload in logs.values()]
    print(f"| estimate | {' | '.join(logs)} |")
    print("|---" * (1 + len(logs)) + "|")
    for taken in tables[0]:
        print(f"| {taken} | {' | '.join(table[taken] for table in tables)} |")


if __name__ == "__main__":
    main()
