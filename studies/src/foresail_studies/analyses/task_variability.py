"""Variation of a job's mean task over time (similar jobs) and over space (its own tasks).

SLearn (2022), section 4.2 and figure 10: both as coefficients of variation, deviation over mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.analysis.columns import cumulative_shares, known
from foresail.analysis.finding import Answer, Plot, study_with_parameters
from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError, require_at_least
from foresail.model.registry import register
from foresail.traces.measured import task_keys
from foresail.traces.workload import Workload
from foresail_studies.analyses.cpu_volatility import quantile
from foresail_studies.study import require_each_positive

_COUNT: Final = 0
_MEAN: Final = 1
_SQUARES: Final = 2
_SUMS: Final = 3
"""Of a code's values in the window: how many, their mean, and their squares about it."""


def window_variation(
    codes: Integers,
    values: Floats,
    asked_seconds: Floats,
    asked_order: Integers,
    known_seconds: Floats,
    known_order: Integers,
    window_seconds: float,
    least: int,
) -> Floats:
    """Coefficient of variation of earlier similar jobs' values, as each job asks for it.

    Jobs of one code (from 0 on) are similar, -1 is similar to none; ``values`` are what varies,
    finite. Jobs are in ``asked_order`` by when they ask, and in ``known_order`` by when their value
    became known, without those to leave out. Values count that became known in the window before
    the question; ``least`` of them are needed, 1 or more.

    Returns the population deviation over the mean, shape (jobs,); nan with too few similar jobs or
    a mean of 0.
    """
    jobs = np.stack((values, asked_seconds, known_seconds))
    sums = np.zeros((int(codes.max(initial=-1)) + 1, _SUMS))
    answer = np.full(codes.size, np.nan)
    own = np.array(codes)  # writable, which Numba distinguishes from read-only ones
    _fill_variations(own, asked_order, known_order, jobs, window_seconds, least, sums, answer)
    return answer


@bare_kernel
def _fill_variations(
    codes: Integers,
    asked_order: Integers,
    known_order: Integers,
    jobs: Floats,
    window_seconds: float,
    least: int,
    sums: Floats,
    answer: Floats,
) -> None:
    """Fill in the answers; ``sums`` has a row per code, zeros at first."""
    values, asked_seconds, known_seconds = jobs[0], jobs[1], jobs[2]
    entering = 0
    leaving = 0
    for at in range(asked_order.size):
        job = asked_order[at]
        now = asked_seconds[job]
        # Two pointers over the jobs by end: the window slides, no value is looked at more than
        # twice.
        while entering < known_order.size and known_seconds[known_order[entering]] <= now:
            other = known_order[entering]
            entering += 1
            if codes[other] >= 0:
                _count(sums[codes[other]], values[other])
        while leaving < entering and known_seconds[known_order[leaving]] < now - window_seconds:
            other = known_order[leaving]
            leaving += 1
            if codes[other] >= 0:
                _count_no_more(sums[codes[other]], values[other])
        kind = codes[job]
        if kind >= 0 and sums[kind, _COUNT] >= least and sums[kind, _MEAN] > 0.0:
            variance = sums[kind, _SQUARES] / sums[kind, _COUNT]
            answer[job] = math.sqrt(variance) / sums[kind, _MEAN]


@part
def _count(sums: Floats, value: float) -> None:
    sums[_COUNT] += 1.0
    apart = value - sums[_MEAN]
    sums[_MEAN] += apart / sums[_COUNT]
    sums[_SQUARES] += apart * (value - sums[_MEAN])


@part
def _count_no_more(sums: Floats, value: float) -> None:
    sums[_COUNT] -= 1.0
    if sums[_COUNT] == 0.0:
        sums[_MEAN] = 0.0
        sums[_SQUARES] = 0.0
        return
    apart = value - sums[_MEAN]
    sums[_MEAN] -= apart / sums[_COUNT]
    sums[_SQUARES] = max(0.0, sums[_SQUARES] - apart * (value - sums[_MEAN]))


DAY_SECONDS: Final = 86400.0
DAY_AND_HOUR: Final = "day_and_hour"
REQUEST: Final = "request"
_LEAST_PERIOD_DAYS: Final = 7.0
"""Windows that leave less than this to judge on are left out."""
_SCATTERED_JOBS: Final = 70
"""Jobs of the scatter plot, drawn at random."""
_RATIOS: Final = (1.0, 2.0, 5.0, 10.0, 20.0)
"""For which k the share of jobs is given that vary k times as much over time as over space."""
SAMPLED_SHARE: Final = 0.03
"""Share of a job's tasks that the study takes as sampled."""


@dataclass(frozen=True, slots=True)
class TaskSpread:
    """A value per task, summed up per job; every array has shape (jobs,), nan where unknown.

    ``tasks`` counts the tasks whose value is known, ``deviation`` is their population deviation.
    """

    tasks: Floats
    mean: Floats
    deviation: Floats

    def over_space(self) -> Floats:
        """Deviation over mean within each job; nan for jobs of one task or with a mean of 0."""
        several = (self.tasks >= 2) & (self.mean > 0)
        return np.divide(
            self.deviation, self.mean, out=np.full_like(self.mean, np.nan), where=several
        )

    def of_sampled_mean(self, *, at_least_one: bool) -> Floats:
        """Variation of the mean of 3 % of a job's tasks, shape (jobs,).

        The study divides by the root of 0.03 x tasks even where that is less than one task, which
        inflates the value of jobs below 34 tasks; ``at_least_one`` samples a whole task there.
        """
        sampled = SAMPLED_SHARE * self.tasks
        if at_least_one:
            sampled = np.maximum(sampled, 1.0)
        return self.over_space() / np.sqrt(sampled)


def runtime_spread(workload: Workload) -> TaskSpread:
    """Real task runtimes per job; without a tasks table a job is its one task."""
    if workload.tasks is None:
        runtime = workload.jobs["runtime_seconds"].fill_null(np.nan).to_numpy().astype(np.float64)
        known = np.isfinite(runtime)
        return TaskSpread(known.astype(np.float64), runtime, np.where(known, 0.0, np.nan))
    return _spread(workload, workload.tasks.lazy(), "runtime_seconds")


def cpu_spread(workload: Workload) -> TaskSpread | None:
    """Each task's average cpus over its measured time, per job; None without a usage table."""
    if workload.usage is None:
        return None
    seconds = pl.col("end_seconds") - pl.col("start_seconds")
    per_task = (
        workload.usage.lazy()
        .filter(pl.col("average_cpus").is_not_null() & (seconds > 0))
        .group_by(task_keys(workload.usage))
        .agg(cpus=(pl.col("average_cpus") * seconds).sum() / seconds.sum())
    )
    return _spread(workload, per_task, "cpus")


def _spread(workload: Workload, tasks: pl.LazyFrame, column: str) -> TaskSpread:
    per_job = (
        tasks.filter(pl.col(column).is_finite())
        .group_by("job_id")
        .agg(
            count=pl.len().cast(pl.Float64),
            mean=pl.col(column).mean(),
            deviation=pl.col(column).std(ddof=0),
        )
    )
    found = (
        workload.jobs.lazy()
        .select("job_id")
        .join(per_job, on="job_id", how="left", maintain_order="left")
        .select(pl.col("count").fill_null(0.0), pl.col("mean", "deviation").fill_null(np.nan))
        .collect()
    )
    return TaskSpread(*(found[name].to_numpy() for name in ("count", "mean", "deviation")))


def feature_codes(workload: Workload, name: str) -> NDArray[np.int64] | None:
    """Jobs of one code have the same value of the feature; -1 where it is unknown. Shape (jobs,).

    A feature is a text column of the jobs table, ``day_and_hour`` (of submission, counted from the
    workload's origin) or ``request`` (cpus of the whole job, and memory and gpus per task). None if
    there is no such column, or nothing in it.
    """
    jobs = workload.jobs
    if name == DAY_AND_HOUR:
        hours = (pl.col("submit_seconds") / 3600.0).floor().cast(pl.Int64)
        return jobs.select(hours % (7 * 24)).to_series().to_numpy()
    if name == REQUEST:
        cpus = (pl.col("tasks") * pl.col("cpus_per_task")).alias("cpus")
        request = jobs.select(cpus, "memory_bytes_per_task", "gpus_per_task")
        return _codes(request.fill_null(-1.0))
    if name not in jobs.columns or jobs[name].null_count() == jobs.height:
        return None
    return _codes(jobs.select(name))


def _codes(values: pl.DataFrame) -> NDArray[np.int64]:
    """Codes from 0 on in order of first appearance; equal rows have one, null has -1."""
    distinct = values.unique(maintain_order=True).with_row_index("__code__")
    joined = values.join(distinct, on=values.columns, how="left", maintain_order="left")
    return joined["__code__"].cast(pl.Int64).fill_null(-1).to_numpy()


def known_at(workload: Workload) -> Floats:
    """Return when each job ended, shape (jobs,): its runtime is known from then on."""
    wait = pl.col("recorded_wait_seconds").fill_null(0.0)
    end = pl.col("submit_seconds") + wait + pl.col("runtime_seconds")
    return workload.jobs.select(end.fill_null(np.nan)).to_series().to_numpy()


def over_time(
    workload: Workload,
    means: Floats,
    features: dict[str, NDArray[np.int64]],
    window_days: float,
    similar_jobs: int = 2,
) -> Floats:
    """Least variation, over the features, of the mean tasks of similar jobs; shape (jobs,).

    Similar jobs have the same value of the feature and ended within the window before the job's
    submission; a feature with fewer than ``similar_jobs`` does not count. nan where none counts.
    Jobs whose mean task (``means``, shape (jobs,)) is nan are no history; ``features`` are
    codes as ``feature_codes`` gives them.
    """
    submit = workload.jobs["submit_seconds"].to_numpy()
    asked = np.argsort(submit, kind="stable")
    known = known_at(workload)
    order = np.argsort(known, kind="stable")
    order = order[np.isfinite(known[order]) & np.isfinite(means[order])]
    least = np.full(len(workload), np.nan)
    for codes in features.values():
        found = window_variation(
            np.ascontiguousarray(codes),
            np.ascontiguousarray(means),
            submit,
            asked,
            known,
            order,
            window_days * DAY_SECONDS,
            similar_jobs,
        )
        least = np.fmin(least, found)
    return least


_LITERAL: Final = "space, 3 % of tasks"
_CLAMPED: Final = "space, 3 % but one task at least"
_SAID: Final = {"runtime": "Runtime", "cpu": "Cpu use"}
_SUFFIX: Final = {_LITERAL: "", _CLAMPED: "_at_least_one"}
_WITHIN: Final = "within the job"


@dataclass(frozen=True, slots=True)
class TaskVariabilityParameters:
    """Parameters of the analysis ``task_variability``."""

    features: tuple[str, ...] = ("application_name", "executable", "user", DAY_AND_HOUR, REQUEST)
    """What makes jobs similar: text columns of the jobs table, ``day_and_hour`` (of submission) and
    ``request`` (cpus of the job, memory and gpus per task). Absent ones are left out."""
    window_days: tuple[float, ...] = (3.0, 7.0, 14.0, 30.0)
    """How far back similar jobs count. All windows are judged on the jobs submitted once the
    longest one is full."""
    similar_jobs: int = 2
    """How many similar jobs a feature needs to count, two at least: one never varies."""

    def __post_init__(self) -> None:
        if not self.features:
            raise InputError("no features", field="features", expected="at least one")
        require_each_positive(self, "window_days")
        require_at_least(self, 2, "similar_jobs")


@dataclass(frozen=True, slots=True)
class _Variation:
    """Coefficients of variation of the judged jobs; every array has shape (judged jobs,).

    ``over_space`` is empty where the workload has no tasks.
    """

    over_time: dict[float, Floats]
    over_space: dict[str, Floats]
    within: Floats

    @property
    def best_window(self) -> float:
        """The window with the least median."""
        return min(self.over_time, key=lambda days: _quantile(self.over_time[days], 0.5))

    def curves(self) -> dict[str, Floats]:
        """All of them by what they are."""
        return {_window(days): found for days, found in self.over_time.items()} | self.over_space


@register("analysis", "task_variability", parameters=TaskVariabilityParameters)
@study_with_parameters("Variability of tasks over time and over space")
def task_variability(parameters: TaskVariabilityParameters, workload: Workload) -> Answer | str:
    """Do similar jobs over time vary more than the tasks of one job? For runtimes and cpu use.

    Over time: the least variation, over the features, of the mean tasks of similar earlier jobs.
    Over space: the variation of the mean of sampled tasks. Coefficients of variation, their
    quantiles, and how often time exceeds space.
    """
    found = {name: feature_codes(workload, name) for name in parameters.features}
    features = {name: codes for name, codes in found.items() if codes is not None}
    if not features:
        wanted = ", ".join(parameters.features)
        return f"no job has any of the features {wanted}"
    submit = workload.jobs["submit_seconds"].to_numpy()
    span_days = float(np.ptp(submit)) / DAY_SECONDS if submit.size else 0.0
    least = _LEAST_PERIOD_DAYS
    windows = [days for days in parameters.window_days if span_days - days >= least]
    if not windows:
        return f"submissions span {span_days:.1f} days: no window leaves {least:g} days to judge"
    judged = submit >= submit.min() + max(windows) * DAY_SECONDS
    spreads = {"runtime": runtime_spread(workload), "cpu": cpu_spread(workload)}
    similar = parameters.similar_jobs
    varied = {
        name: one
        for name, spread in spreads.items()
        if (one := _variation(workload, spread, features, windows, judged, similar))
    }
    if not varied:
        return f"no job has {similar} similar jobs before it"
    return _finding(varied, _notes(parameters, features, windows, judged, workload))


def _variation(
    workload: Workload,
    spread: TaskSpread | None,
    features: dict[str, NDArray[np.int64]],
    windows: list[float],
    judged: NDArray[np.bool_],
    similar_jobs: int,
) -> _Variation | None:
    """Variation by window; None where nothing can be judged over time."""
    if spread is None:
        return None
    times = {
        days: over_time(workload, spread.mean, features, days, similar_jobs)[judged]
        for days in sorted(windows)
    }
    if not all(np.isfinite(found).any() for found in times.values()):
        return None
    within = spread.over_space()[judged]
    spaces = {
        _LITERAL: spread.of_sampled_mean(at_least_one=False)[judged],
        _CLAMPED: spread.of_sampled_mean(at_least_one=True)[judged],
    }
    return _Variation(times, spaces if np.isfinite(within).any() else {}, within)


def _finding(varied: dict[str, _Variation], notes: tuple[str, ...]) -> Answer:
    scalars: dict[str, float] = {}
    quantiles, ratios, plots = [], [], []
    tables = {}
    for name, variation in varied.items():
        scalars |= _scalars(name, variation)
        quantiles += _quantiles(name, variation)
        ratios += _ratios(name, variation)
        tables[f"distribution_{name}"] = pl.concat(
            _curve(label, values) for label, values in variation.curves().items()
        )
        plots.append(
            Plot(
                *("line", f"distribution_{name}", "variation", "share"),
                *(f"coefficient of variation ({_SAID[name].lower()})", "share of jobs up to this"),
                _sentence(name, variation) + ".",
                series="measured",
                y_kind="share",
            )
        )
    row = ["quantity", "measured", "jobs", "p50", "p90"]
    tables["quantiles"] = pl.DataFrame(quantiles, row, orient="row")
    if ratios:
        row, share = ["quantity", "space", "ratio", "share"], {"share": pl.Float64}
        tables["ratios"] = pl.DataFrame(ratios, row, orient="row", schema_overrides=share)
        first = next(name for name, one in varied.items() if one.over_space)
        tables["scatter"] = _scatter(varied[first])
        plots.append(
            Plot(
                *("points", "scatter", "job", "variation", "job, in order of arrival"),
                f"coefficient of variation ({_SAID[first].lower()})",
                "Variation over time and within the job, for jobs drawn at random.",
                series="measured",
            )
        )
    verdict = ". ".join(_sentence(name, one) for name, one in varied.items()) + "."
    return Answer(verdict, scalars, tables, tuple(plots), notes)


def _scalars(name: str, variation: _Variation) -> dict[str, float]:
    """The numbers of one quantity, over time those of the best window."""
    best = variation.over_time[variation.best_window]
    scalars = {
        f"{name}_best_window_days": variation.best_window,
        f"{name}_over_time_p50": _quantile(best, 0.5),
        f"{name}_over_time_p90": _quantile(best, 0.9),
    }
    for label, space in variation.over_space.items():
        suffix = _SUFFIX[label]
        scalars[f"{name}_over_space{suffix}_p50"] = _quantile(space, 0.5)
        scalars[f"{name}_over_space{suffix}_p90"] = _quantile(space, 0.9)
        scalars[f"{name}_time_exceeds_space{suffix}_share"] = _exceeding(best, space)
    return scalars


def _exceeding(time: Floats, space: Floats) -> float:
    """Share of the jobs with both that vary more over time."""
    both = np.isfinite(time) & np.isfinite(space)
    return float((time[both] > space[both]).mean()) if both.any() else float("nan")


def _quantiles(name: str, variation: _Variation) -> list[tuple[str, str, int, float, float]]:
    """Table 4: a row per window and for both ways to count the sampled tasks."""
    return [
        (name, label, known(values).size, _quantile(values, 0.5), _quantile(values, 0.9))
        for label, values in variation.curves().items()
    ]


def _ratios(name: str, variation: _Variation) -> list[tuple[str, str, float, float | None]]:
    """Share of the jobs with both that vary k times as much, or more, over time as over space."""
    time = variation.over_time[variation.best_window]
    rows = []
    for label, space in variation.over_space.items():
        both = np.isfinite(time) & np.isfinite(space)
        for k in _RATIOS:
            above = (time[both] > 0) & (time[both] >= k * space[both])
            rows.append((name, label, k, float(above.mean()) if both.any() else None))
    return rows


def _scatter(variation: _Variation) -> pl.DataFrame:
    """Figure 10: some jobs at random, in order of arrival, with the longest window."""
    days = max(variation.over_time)
    both = np.isfinite(variation.over_time[days]) & np.isfinite(variation.within)
    count = min(_SCATTERED_JOBS, int(both.sum()))
    chosen = np.sort(np.random.default_rng(1).choice(np.flatnonzero(both), count, replace=False))
    sides = {_window(days): variation.over_time[days], _WITHIN: variation.within}
    return pl.DataFrame(
        {
            "job": np.tile(np.arange(1, count + 1), len(sides)),
            "measured": np.repeat(list(sides), count),
            "variation": np.concatenate([values[chosen] for values in sides.values()]),
        },
        schema={"job": pl.Int64, "measured": pl.String, "variation": pl.Float64},
    )


def _sentence(name: str, variation: _Variation) -> str:
    """Return one quantity's behaviour as a sentence without the full stop."""
    days = variation.best_window
    best = variation.over_time[days]
    said = (
        f"{_SAID[name]} varies by {_quantile(best, 0.5):.2f} "
        f"(P90 {_quantile(best, 0.9):.2f}) over {days:g} days"
    )
    if not variation.over_space:
        return said
    literal, clamped = variation.over_space[_LITERAL], variation.over_space[_CLAMPED]
    return said + (
        f" and by {_quantile(literal, 0.5):.2f} (P90 {_quantile(literal, 0.9):.2f}) over 3 % of the"
        f" tasks, {_quantile(clamped, 0.5):.2f} over one at least; time exceeds space in"
        f" {_exceeding(best, literal):.0%} and {_exceeding(best, clamped):.0%} of the jobs"
    )


def _notes(
    parameters: TaskVariabilityParameters,
    features: dict[str, NDArray[np.int64]],
    windows: list[float],
    judged: NDArray[np.bool_],
    workload: Workload,
) -> tuple[str, ...]:
    notes = [
        f"{int(judged.sum())} of {len(workload)} jobs are judged: those submitted once the longest "
        f"window ({max(windows):g} days) is full, the same for every window.",
        "Similar jobs ended within the window before the job's submission and share a value of "
        f"one of: {', '.join(features)}; of those with {parameters.similar_jobs} similar jobs or "
        "more the feature of least variation counts.",
        "A short window holds fewer similar jobs, and the least variation of few is lower for that "
        "reason alone: windows compare fairly only where jobs have many similar ones.",
    ]
    absent = [name for name in parameters.features if name not in features]
    if absent:
        notes.append(f"Not in this log: {', '.join(absent)}.")
    left_out = [days for days in parameters.window_days if days not in windows]
    if left_out:
        days = ", ".join(f"{one:g}" for one in left_out)
        notes.append(f"The log is too short for windows of {days} days.")
    if workload.tasks is None:
        notes.append(
            "The log knows jobs, not tasks: variation over time is that of job runtimes, and "
            "variation over space is unknown."
        )
    else:
        notes.append("Jobs of one task are left out of variation over space.")
    if workload.jobs["recorded_wait_seconds"].null_count():
        notes.append("Where the wait is unknown, a job counts as started at its submission.")
    return tuple(notes)


def _window(days: float) -> str:
    return f"time, {days:g} days"


def _quantile(values: Floats, probability: float) -> float:
    return quantile(known(values), probability)


def _curve(label: str, values: Floats) -> pl.DataFrame:
    return cumulative_shares(known(values)).select(
        pl.lit(label).alias("measured"), variation="value", share="share"
    )
