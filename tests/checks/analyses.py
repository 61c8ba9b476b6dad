"""The conformance suite of analyses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import polars as pl

from foresail.analysis.finding import Analysis, Finding, Plot, Unavailable
from foresail.checks.rules import BrokenRuleError, Make, Rule, bound, demand, require_conformity
from foresail.model.registry import Entry
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

_DAY: Final = 86400.0
_BOX: Final = ("lower_whisker", "quartile_1", "median", "quartile_3", "upper_whisker")
_MOST_ROWS: Final = 5000


def check_analysis(entry: Entry, **options: Any) -> None:
    """Apply every rule that analyses must keep to a registered one; options are its parameters.

    Raises
    ------
    NonconformityError
        If it breaks a rule; the message lists every broken one.
    """
    record = entry.parameters(**options)
    rules: list[Rule] = [bound(rule, entry.name) for rule in _RULES]
    require_conformity(f"analysis {entry.name!r}", lambda: entry.build(record), rules)


def awkward_workloads() -> dict[str, Workload]:
    """Small and ugly workloads by what is odd about them."""
    return {
        "plain": _plain(),
        "no jobs": _plain().with_jobs(_plain().jobs.head(0)),
        "one job": _plain().with_jobs(_plain().jobs.head(1)),
        "two jobs at once": _at_once(2),
        "all at once": _at_once(40),
        "one user": _changed(user=pl.lit("ann")),
        "no users": _changed(user=pl.lit(None, pl.String)),
        "no runtimes": _changed(runtime_seconds=pl.lit(None, pl.Float64)),
        "some runtimes": _changed(
            runtime_seconds=pl.when(pl.col("user") == "ann").then("runtime_seconds")
        ),
        "zero runtimes": _changed(runtime_seconds=pl.lit(0.0)),
        "infinite runtime": _changed(
            runtime_seconds=pl.when(pl.col("job_id") == "3")
            .then(math.inf)
            .otherwise("runtime_seconds")
        ),
        "no cpus": _changed(cpus_per_task=pl.lit(None, pl.Float64)),
        "no requests": _changed(requested_seconds=pl.lit(None, pl.Float64)),
        "no outcomes": _changed(status=pl.lit(None, pl.String)),
        "nothing but submissions": _bare(),
        "no machine, no origin": Workload(_plain().jobs, WorkloadMeta("odd", "hand")),
        "no such time zone": _plain().with_meta(time_zone="Nowhere/At_All"),
        "one huge job": _changed(
            tasks=pl.when(pl.col("job_id") == "3").then(10**9).otherwise("tasks")
        ),
        "empty tables": _with_tables(rows=0),
        "measured": _with_tables(rows=60),
    }


def words_and_finite_numbers(name: str, make: Make) -> None:
    """Every answer has its name, a title, and a verdict or reason; every number is finite."""
    for odd, found in _answers(make):
        demand(found.name == name, f"{odd}: it calls itself {found.name!r}")
        said = found.reason if isinstance(found, Unavailable) else found.verdict
        demand(found.title.strip() and said.strip(), f"{odd}: it says nothing")
        if isinstance(found, Finding):
            wrong = [key for key, value in found.scalars.items() if not math.isfinite(value)]
            demand(not wrong, f"{odd}: not finite: {', '.join(wrong)}")


def tables_match_plots(name: str, make: Make) -> None:
    """Every plot's table and columns are there, with rows; tables have some thousand rows."""
    del name
    for odd, found in _answers(make):
        if isinstance(found, Unavailable):
            continue
        for table_name, table in found.tables.items():
            demand(table.height <= _MOST_ROWS, f"{odd}: {table_name} has {table.height} rows")
        for plot in found.plots:
            demand(plot.table in found.tables, f"{odd}: no table {plot.table!r}")
            table = found.tables[plot.table]
            lacking = [column for column in _columns(plot) if column not in table.columns]
            demand(not lacking, f"{odd}: {plot.table} has no {', '.join(lacking)}")
            demand(table.height, f"{odd}: {plot.table} is drawn but empty")
            demand(plot.alternative.strip(), f"{odd}: a plot without words")
            demand(plot.x_label.strip() and plot.y_label.strip(), f"{odd}: an axis without label")


def input_unchanged(name: str, make: Make) -> None:
    """The workload is as it was."""
    del name
    for odd, examined in _examined(make).items():
        demand(not examined.changed, f"{odd}: its {', '.join(examined.changed)} changed")


def same_workload_same_finding(name: str, make: Make) -> None:
    """Asked twice, also by another instance, it finds the same."""
    del name
    for odd, examined in _examined(make).items():
        workload = examined.workload
        others = (examined.analysis.examine(workload), make().examine(workload))
        for other in others:
            demand(_same(examined.found, other), f"{odd}: another finding")


def unknown_is_unavailable(name: str, make: Make) -> None:
    """Without jobs, or about jobs of which nothing is known, it does not answer or crash."""
    del name
    found = _examined(make)["no jobs"].found
    demand(isinstance(found, Unavailable), "an empty workload gets a finding")


@dataclass(frozen=True, slots=True, eq=False)
class _Examined:
    """An awkward workload, the analysis that was asked about it, and what came of it."""

    workload: Workload
    analysis: Analysis
    found: Finding | Unavailable
    changed: tuple[str, ...]
    """Tables of the workload that are not as they were."""


@cache
def _examined(make: Make) -> dict[str, _Examined]:
    """Examine each awkward workload once, for all rules, by its name."""
    examined = {}
    for odd, workload in awkward_workloads().items():
        before = {
            part: table.clone()
            for part in ("jobs", "tasks", "usage")
            if (table := getattr(workload, part)) is not None
        }
        analysis: Analysis = make()
        try:
            found = analysis.examine(workload)
        except Exception as error:
            raise BrokenRuleError(f"{odd}: raised {type(error).__name__}: {error}") from error
        changed = tuple(
            part for part, table in before.items() if not getattr(workload, part).equals(table)
        )
        examined[odd] = _Examined(workload, analysis, found, changed)
    return examined


def _answers(make: Make) -> Iterator[tuple[str, Finding | Unavailable]]:
    for odd, examined in _examined(make).items():
        yield odd, examined.found


def _columns(plot: Plot) -> list[str]:
    wanted = [plot.x, plot.y, plot.series, plot.shade]
    if plot.kind == "band":
        wanted += ["low", "high"]
    if plot.kind == "box":
        wanted += _BOX
    return [column for column in wanted if column is not None]


def _same(left: Finding | Unavailable, right: Finding | Unavailable) -> bool:
    if isinstance(left, Unavailable) or isinstance(right, Unavailable):
        return left == right
    tables = left.tables.keys() == right.tables.keys() and all(
        table.equals(right.tables[name]) for name, table in left.tables.items()
    )
    return tables and (left.verdict, dict(left.scalars), left.plots, left.notes) == (
        right.verdict,
        dict(right.scalars),
        right.plots,
        right.notes,
    )


_RULES: Final = (
    words_and_finite_numbers,
    tables_match_plots,
    input_unchanged,
    same_workload_same_finding,
    unknown_is_unavailable,
)


def _plain() -> Workload:
    """Ninety days, 270 jobs, three users, all outcomes, everything known."""
    numbers = range(270)
    jobs = jobs_table(
        {
            "job_id": [str(number) for number in numbers],
            "submit_seconds": [
                _DAY / 3 * number + 3600.0 * (number % 7) + number % 11 for number in numbers
            ],
            "recorded_wait_seconds": [60.0 * (number % 5) for number in numbers],
            "runtime_seconds": [30.0 * (1 + number % 13) ** 2 for number in numbers],
            "tasks": [1 + number % 6 for number in numbers],
            "requested_seconds": [3600.0 * (1 + number % 2) for number in numbers],
            "memory_bytes_per_task": [2.0**30] * 270,
            "used_cpu_seconds": [20.0 * (1 + number % 13) ** 2 for number in numbers],
            "used_memory_bytes": [2.0 ** (20 + number % 10) for number in numbers],
            "status": [
                ("completed", "completed", "failed", "cancelled", "partial")[number % 5]
                for number in numbers
            ],
            "user": [("ann", "bob", "cid")[number % 3] for number in numbers],
            "executable": [f"program{number % 40}" for number in numbers],
            "queue": [("short", "long")[number % 2] for number in numbers],
        }
    )
    return Workload(jobs, WorkloadMeta("plain", "hand", 16, 1.3e9, "Europe/Paris"))


def _changed(**columns: pl.Expr) -> Workload:
    plain = _plain()
    return plain.with_jobs(plain.jobs.with_columns(**columns))


def _at_once(jobs: int) -> Workload:
    plain = _plain()
    return plain.with_jobs(plain.jobs.head(jobs).with_columns(submit_seconds=pl.lit(0.0)))


def _bare() -> Workload:
    known = _plain().jobs.select("job_id", "submit_seconds", "tasks", "runtime_seconds")
    nothing = known.with_columns(
        tasks=pl.lit(None, pl.Int64), runtime_seconds=pl.lit(None, pl.Float64)
    )
    return Workload(jobs_table(nothing.to_dict()), WorkloadMeta("bare", "hand"))


def _with_tables(rows: int) -> Workload:
    """Tasks and usage of the first jobs: two tasks each, four periods each."""
    plain = _plain()
    tasks = [(str(job), task) for job in range(rows) for task in range(2)]
    periods = [(job, task, 10.0 * period) for job, task in tasks for period in range(4)]
    used = [1.0 + (len(job) + 3 * task + start) % 4 for job, task, start in periods]
    usage = usage_table(
        {
            "job_id": pl.Series([job for job, _, _ in periods], dtype=pl.String),
            "task": pl.Series([task for _, task, _ in periods], dtype=pl.Int64),
            "start_seconds": pl.Series([start for _, _, start in periods], dtype=pl.Float64),
            "end_seconds": pl.Series([start + 10 for _, _, start in periods], dtype=pl.Float64),
            "average_cpus": pl.Series(used, dtype=pl.Float64),
            "maximum_cpus": pl.Series([cpus + 1 for cpus in used], dtype=pl.Float64),
            "sampled_cpus": pl.Series([cpus + 0.5 for cpus in used], dtype=pl.Float64),
            "average_memory_bytes": pl.Series([2.0**20 * cpus for cpus in used], dtype=pl.Float64),
        }
    )
    table = tasks_table(
        {
            "job_id": pl.Series([job for job, _ in tasks], dtype=pl.String),
            "stage": pl.Series(["all"] * len(tasks), dtype=pl.String),
            "task": pl.Series([task for _, task in tasks], dtype=pl.Int64),
            "runtime_seconds": pl.Series(
                [30.0 + 7 * (int(job) % 9) + task for job, task in tasks], dtype=pl.Float64
            ),
        }
    )
    return Workload(plain.jobs, plain.meta, tasks=table, usage=usage)
