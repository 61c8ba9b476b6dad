"""Sizes of jobs, and their outcomes: cumulative shares of requests and runtimes, by outcome."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study
from foresail.model.distribution import Floats, Integers
from foresail.model.registry import register
from foresail.model.words import count, duration, number, percent, signed
from foresail.traces.workload import Workload

_SMALL: Final = 0.0001
_LARGE: Final = 0.001
_GIBIBYTE: Final = 2.0**30


@register("analysis", "job_sizes")
@study("How large are jobs?", "3.2")
def job_sizes(workload: Workload) -> Answer | str:
    """Cumulative shares of what jobs ask for, and shares of jobs small and large for the machine.

    Park's dissertation, figure 3.1. Jobs that do not say how many cpus they ask for
    are left out.
    """
    asked = columns.cpus(workload)
    cpus = columns.known(asked)
    if not cpus.size:
        return "No job says how many cpus it asks for."
    levels = dict(zip((50, 80, 90, 99), np.quantile(cpus, (0.5, 0.8, 0.9, 0.99)), strict=True))
    scalars = {f"p{level}_cpus": float(value) for level, value in levels.items()}
    scalars |= {"mean_cpus": float(cpus.mean()), "largest_cpus": float(cpus.max())}
    verdict = (
        f"Half of the jobs ask for at most {_cpus(levels[50])}, nine in ten for at most "
        f"{_cpus(levels[90])}; the mean is {number(scalars['mean_cpus'])}."
    )
    left_out = asked.size - cpus.size
    notes = [f"{count(left_out, 'job')} without cpus left out."] if left_out else []
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
    tables = {"cpus": columns.cumulative_shares(cpus, "cpus")}
    plots = [_plot("cpus", "cpus of a job (log scale)", verdict)]
    memory = columns.known(columns.memory_bytes(workload))
    for name, unit, sizes in (
        ("memory", "GiB of memory of a job (log scale)", memory / _GIBIBYTE),
        ("gpus", "gpus of a job (log scale)", columns.known(columns.gpus(workload))),
    ):
        if sizes.size:
            tables[name] = columns.cumulative_shares(sizes, name)
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
    return Answer(verdict, scalars, tables, tuple(plots), tuple(notes))


def _cpus(value: float) -> str:
    return f"{number(float(value))} {'cpu' if value == 1 else 'cpus'}"


def _plot(name: str, label: str, said: str) -> Plot:
    return columns.cumulative_plot(name, name, label, "share of jobs that ask for no more", said)


@register("analysis", "tasks_per_job")
@study("How many tasks has a job?", "3.4")
def tasks_per_job(workload: Workload) -> Answer | str:
    """Cumulative shares of the number of tasks.

    Park's dissertation, figure 3.6. Tasks of the jobs that say how many they have.
    """
    every = columns.tasks(workload)
    tasks = columns.known(every)
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
    plot = columns.cumulative_plot(
        "tasks", "tasks", "tasks of a job (log scale)", "share of jobs with no more", verdict
    )
    notes = ["Logs in the Standard Workload Format count every processor as a task."]
    if every.size > tasks.size:
        notes.append(f"{count(every.size - tasks.size, 'job')} without tasks left out.")
    return Answer(
        verdict,
        scalars,
        {"tasks": columns.cumulative_shares(tasks, "tasks")},
        (plot,),
        tuple(notes),
    )


@register("analysis", "job_durations")
@study("How long do jobs run?", "3.2")
def job_durations(workload: Workload) -> Answer | str:
    """Cumulative shares of runtimes.

    Park's dissertation, figures 3.2 and 4.2a. Jobs without
    a runtime are left out.
    """
    every = columns.runtimes(workload)
    runtimes = columns.known(every)
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
        scalars["coefficient_of_variation"] = columns.variation(runtimes)
    verdict = (
        f"Half of the jobs run for at most {duration(median)}, four in five for at most "
        f"{duration(p80)}; the longest runs for {duration(scalars['longest_seconds'])}."
    )
    plot = columns.cumulative_plot(
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
        {"runtimes": columns.cumulative_shares(runtimes, "runtime_seconds")},
        (plot,),
        (f"{count(left_out, 'job')} of unknown runtime left out.",) if left_out else (),
    )


@register("analysis", "outcome_breakdown")
@study("How do jobs end?", "3.5")
def outcome_breakdown(workload: Workload) -> Answer | str:
    """Shares of jobs and of cpu time by outcome.

    Park's dissertation, figure 3.7. Shares over the jobs whose outcome is known;
    unknown work counts as none.
    """
    outcome = columns.outcomes(workload)
    if outcome is None:
        return columns.NOT_STATED
    work = np.nan_to_num(columns.cpus(workload) * columns.runtimes(workload))
    ended = pl.DataFrame({"outcome": outcome, "work": work}).drop_nulls()
    sums = ended.group_by("outcome").agg(jobs=pl.len(), work=pl.col("work").sum())
    by_outcome = {row["outcome"]: row for row in sums.iter_rows(named=True)}
    total = float(ended["work"].to_numpy().sum())
    rows = []
    for measure, whole in (("jobs", float(ended.height)), ("work", total)):
        for name in columns.OUTCOMES:
            amount = by_outcome.get(name, {"jobs": 0, "work": 0.0})[measure]
            said = "jobs" if measure == "jobs" else "cpu time"
            rows.append((name, said, float(amount), amount / whole if whole else 0.0))
    table = pl.DataFrame(rows, ["outcome", "of", "amount", "share"], orient="row")
    share = {(name, of): part for name, of, _, part in rows}
    unsuccessful = {of: sum(share[name, of] for name in columns.UNSUCCESSFUL) for of in _MEASURES}
    scalars = {
        f"{name.replace(' ', '_')}_share_of_{of.replace(' ', '_')}": share[name, of]
        for name in columns.OUTCOMES
        for of in _MEASURES
    }
    scalars |= {
        "unsuccessful_share_of_jobs": unsuccessful["jobs"],
        "unsuccessful_share_of_cpu_time": unsuccessful["cpu time"],
    }
    verdict = (
        f"{percent(unsuccessful['jobs'])} of the jobs are unsuccessful and take "
        f"{percent(unsuccessful['cpu time'])} of the cpu time; "
        f"{percent(share['timed out', 'jobs'])} time out and take "
        f"{percent(share['timed out', 'cpu time'])}."
    )
    unknown = len(workload) - ended.height
    left_out = f"{count(unknown, 'job')} of unknown or partial outcome left out."
    plot = Plot(
        kind="bars",
        table="outcomes",
        x="outcome",
        y="share",
        x_label="outcome",
        y_label="share of jobs, share of cpu time",
        alternative=verdict,
        series="of",
        x_kind="category",
        y_kind="share",
    )
    return Answer(
        verdict,
        scalars,
        {"outcomes": table},
        (plot,),
        (columns.DEFINITION, *([left_out] if unknown else [])),
    )


_MEASURES: Final = ("jobs", "cpu time")


@register("analysis", "sizes_by_outcome")
@study("Are unsuccessful jobs larger?", "3.5")
def sizes_by_outcome(workload: Workload) -> Answer | str:
    """Cumulative shares of cpus asked for, successful and unsuccessful jobs apart.

    Park's dissertation, figure 3.8. Sizes of the jobs whose size and outcome are
    known.
    """
    outcome = columns.outcomes(workload)
    if outcome is None:
        return columns.NOT_STATED
    cpus = columns.cpus(workload)
    sized = np.isfinite(cpus)
    successful = cpus[sized & (outcome == "successful").fill_null(value=False).to_numpy()]
    among = outcome.is_in(list(columns.UNSUCCESSFUL)).fill_null(value=False).to_numpy()
    unsuccessful = cpus[sized & among]
    for sample, name in ((successful, "successful"), (unsuccessful, "unsuccessful")):
        if not sample.size:
            return f"No {name} job of known size."
    scalars = {
        "mean_cpus_successful": float(successful.mean()),
        "mean_cpus_unsuccessful": float(unsuccessful.mean()),
        "p50_cpus_successful": float(np.median(successful)),
        "p50_cpus_unsuccessful": float(np.median(unsuccessful)),
        "p90_cpus_successful": float(np.quantile(successful, 0.9)),
        "p90_cpus_unsuccessful": float(np.quantile(unsuccessful, 0.9)),
    }
    scalars["unsuccessful_to_successful_mean"] = (
        scalars["mean_cpus_unsuccessful"] / scalars["mean_cpus_successful"]
    )
    verdict = (
        f"Unsuccessful jobs ask for {number(scalars['unsuccessful_to_successful_mean'])} times "
        f"as many cpus in the mean; medians {number(scalars['p50_cpus_unsuccessful'])} and "
        f"{number(scalars['p50_cpus_successful'])}."
    )
    table = pl.concat(
        columns.cumulative_shares(sample, "cpus").with_columns(outcome=pl.lit(name))
        for name, sample in (("successful", successful), ("unsuccessful", unsuccessful))
    )
    plot = columns.cumulative_plot(
        "sizes",
        "cpus",
        "cpus of a job (log scale)",
        "share of jobs that ask for no more",
        verdict,
        series="outcome",
    )
    return Answer(verdict, scalars, {"sizes": table}, (plot,), (columns.DEFINITION,))


_HOUR_SECONDS: Final = 3600.0
_LEAST_DECADE: Final = -2
_LEAST_JOBS: Final = 30
"""A bin with fewer jobs is drawn but does not count for the trend."""


@register("analysis", "success_by_cpu_hours")
@study("Do longer, larger jobs fail more?", "3.5")
def success_by_cpu_hours(workload: Workload) -> Answer | str:
    """Share of successful jobs by decade of the cpu hours they took.

    Park's dissertation, figure 3.9. Everything below 0.01 cpu hours is one bin.
    Success of the jobs whose outcome, size and runtime are known.
    """
    outcome = columns.outcomes(workload)
    if outcome is None:
        return columns.NOT_STATED
    hours = columns.cpus(workload) * columns.runtimes(workload) / _HOUR_SECONDS
    usable = np.isfinite(hours) & outcome.is_not_null().to_numpy()
    if not usable.any():
        return "No job's outcome, size and runtime are all known."
    success = (outcome == "successful").fill_null(value=False).to_numpy()[usable]
    decade = _decades(hours[usable])
    bins = np.arange(_LEAST_DECADE - 1, decade.max() + 1)
    jobs = np.bincount(decade - bins[0], minlength=bins.size)
    successful = np.bincount((decade - bins[0])[success], minlength=bins.size)
    table = pl.DataFrame(
        {
            "decade": bins,
            "cpu_hours": [_said(int(each)) for each in bins],
            "jobs": jobs,
            "successful": successful,
        }
    ).with_columns(success=pl.when(pl.col("jobs") > 0).then(pl.col("successful") / pl.col("jobs")))
    trend = table.filter(pl.col("jobs") >= _LEAST_JOBS)
    scalars = {"success_share": float(success.mean())}
    verdict = f"{percent(scalars['success_share'])} of the jobs succeed"
    if trend.height >= 2:
        slope = _slope(trend)
        first, last = trend.row(0, named=True), trend.row(-1, named=True)
        scalars |= {
            "success_change_per_decade": slope,
            "success_of_smallest": first["success"],
            "success_of_largest": last["success"],
        }
        verdict = (
            f"{percent(first['success'])} of the jobs of {first['cpu_hours']} cpu hours "
            f"succeed, {percent(last['success'])} of those of {last['cpu_hours']}: "
            f"{signed(number(100 * slope))} percentage points per decade."
        )
    else:
        verdict += "; too few of other sizes to see a trend."
    plot = Plot(
        kind="bars",
        table="decades",
        x="cpu_hours",
        y="success",
        x_label="cpu hours of a job",
        y_label="share of successful jobs",
        alternative=verdict,
        x_kind="category",
        y_kind="share",
    )
    note = (
        f"Trend: least squares over the decades of at least {_LEAST_JOBS} jobs, each weighted "
        "by its jobs."
    )
    return Answer(verdict, scalars, {"decades": table}, (plot,), (columns.DEFINITION, note))


def _decades(hours: Floats) -> Integers:
    """Exponent of the decade's lower end; the first one takes all that is smaller."""
    least = 10.0**_LEAST_DECADE
    powers = np.floor(np.log10(np.maximum(hours, least)) + 1e-12).astype(np.int64)
    return np.where(hours < least, _LEAST_DECADE - 1, powers)


def _said(decade: int) -> str:
    if decade < _LEAST_DECADE:
        return f"< {_power(_LEAST_DECADE)}"
    return f"{_power(decade)}–{_power(decade + 1)}"


def _power(exponent: int) -> str:
    """A power of ten, short enough to stand under a bar."""
    for least, letter in ((9, "G"), (6, "M"), (3, "k")):
        if exponent >= least:
            return f"{10 ** (exponent - least)}{letter}"
    return number(10.0**exponent)


def _slope(table: pl.DataFrame) -> float:
    decade = table["decade"].to_numpy().astype(np.float64)
    success, weight = table["success"].to_numpy(), table["jobs"].to_numpy().astype(np.float64)
    away = decade - np.average(decade, weights=weight)
    return float((weight * away * success).sum() / (weight * away * away).sum())
