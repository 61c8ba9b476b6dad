"""How like the demonstration's log is to others.

usage: python studies/demonstration/likeness.py LOG ...
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from seeds import log, measured

from foresail.model.words import duration, number, percent
from foresail.traces.folder import load_workload
from foresail.traces.workload import Workload

WEEK_SECONDS = 7 * 86400.0
MEASURES = (
    "processors",
    "jobs a day",
    "load",
    "weekly work, deviation over mean",
    "mean runtime",
    "median runtime",
    "runtimes below a minute",
    "median of runtime over request",
    "mean share of the machine",
    "average bounded slowdown under EASY",
    "longest wait under EASY",
)


def facts(workload: Workload) -> list[str]:
    """The measures of a log, in order, as words."""
    jobs, processors = workload.jobs, workload.meta.processors
    submit, runtime, requested, cpus = (
        jobs[name].cast(float).to_numpy()
        for name in ("submit_seconds", "runtime_seconds", "requested_seconds", "allocated_cpus")
    )
    span = float(submit.max() - submit.min())
    work = cpus * runtime / processors
    weeks = np.bincount(((submit - submit.min()) // WEEK_SECONDS).astype(int), weights=work)[:-1]
    slowdown, longest = measured(workload, "easy")
    return [
        f"{processors:,}",
        number(len(jobs) / span * 86400.0),
        f"{work.sum() / span:.2f}",
        f"{weeks.std() / weeks.mean():.2f}",
        duration(float(runtime.mean())),
        duration(float(np.median(runtime))),
        percent(float((runtime < 60.0).mean())),
        percent(float(np.median(runtime / requested))),
        percent(float(cpus.mean()) / processors),
        number(slowdown),
        duration(longest),
    ]


def main(paths: list[str]) -> None:
    """Print a table in Markdown, a column per log."""
    columns = {"demonstration": facts(log(seed=1))}
    for path in map(Path, paths):
        columns[path.name.split(".")[0]] = facts(load_workload(path))
    print("| |", " | ".join(columns), "|")
    print("|---|" + "--:|" * len(columns))
    for row in zip(MEASURES, *columns.values(), strict=True):
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
