"""The one check that what a reader understood of a log can be, before anything is made of it.

``docs/reference/plausibility.md`` says what is looked for, from which bound on, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

import numpy as np
import polars as pl

from foresail.model.errors import InputError
from foresail.model.words import count, duration, number, percent
from foresail.traces.accounting import STEP
from foresail.traces.facts import in_window, offered_load
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail.traces.partitions import named_partitions
from foresail.traces.reading import FIRST_OF_TWO
from foresail.traces.workload import Oddity, Severity, Workload

LONGEST_RUNTIME_SECONDS: Final = 366 * 86400.0
LONGEST_SPAN_SECONDS: Final = 100 * LONGEST_RUNTIME_SECONDS
LATEST_UNIX_SECONDS: Final = 4102444800.0
"""The beginning of 2100: a log of such times has them in another unit."""
LEAST_LONG_SECONDS: Final = 86400.0
"""Shorter runs may last longer than their log."""
LEAST_LOADED_SECONDS: Final = 3600.0
"""A burst of submissions within less says nothing about a machine's load."""
HIGHEST_LOAD: Final = 2.0
LEAST_SHARE: Final = 0.5
"""Share of the jobs: what half of them have is no exception."""
LEAST_TIME_BEYOND: Final = 0.01
"""Share of the time; clocks that run apart make jobs seem to overlap for less of it."""
LONGEST_GAP_SECONDS: Final = 7 * 86400.0
FEWEST_REQUESTS: Final = 20
"""Fewer may all have asked for much more than they needed, or be alike."""
LEAST_SHARE_AGAIN: Final = 0.05
"""Share of the rows of a table without ids; jobs that are alike in all columns are fewer."""
FEWEST_JOBS: Final = 100
"""Fewer may all be alike."""

_NOBODY: Final = ("unknown", "none", "n/a", "null", "nan", "(null)", "-1", "4294967295")
_SUFFIX: Final = r"#\d+$"
_WIDTH: Final = pl.col("tasks") * pl.col("cpus_per_task")
_RUNTIME: Final = pl.col("runtime_seconds")


def plausibility(read: Workload, cleaned: Workload) -> tuple[Oddity, ...]:
    """Find what cannot be and what is odd about a log, worst first.

    Whether it was understood is seen from what was ``read``, for filters hide it; whether figures
    of it can be trusted from what they left, ``cleaned``.
    """
    found: dict[str, Oddity] = {}
    for checks, workload in ((_OF_READ, read), (_OF_CLEANED, cleaned)):
        if len(workload):
            found |= {each.name: each for check in checks for each in check(workload)}
    return tuple(sorted(found.values(), key=lambda each: each.severity != "impossible"))


def clean_and_check(
    workload: Workload, filters: Sequence[FilterChoice], strict: bool | None = None
) -> Workload:
    """The workload after the filters, with what is odd about it as ``findings``.

    Raises ``InputError`` if something about it cannot be; when strict, if something is odd; as
    ``apply_filters`` does; ``UnknownNameError`` if there is no filter of a name.
    """
    cleaned = apply_filters(workload, filters)
    found = plausibility(workload, cleaned)
    for each in found:
        if strict or each.severity == "impossible":
            raise InputError(
                each.sentence,
                source=workload.meta.source,
                field=each.name,
                value=each.example,
                expected=each.remedy,
            )
    return replace(cleaned, findings=found)


def oddities(
    workload: Workload,
    name: str,
    sentence: str,
    which: pl.Expr,
    column: str,
    remedy: str,
    severity: Severity = "odd",
) -> Iterator[Oddity]:
    """A finding about the jobs for which the expression holds, if there are any.

    ``{}`` in the sentence becomes how many there are, in words.
    """
    jobs = workload.jobs.filter(which.fill_null(value=False))
    if jobs.height:
        job_id, value = jobs["job_id"][0], jobs[column][0]
        example = f"job {job_id}" + ("" if value is None else f", {column} = {value}")
        words = sentence.format(count(jobs.height, "job"))
        yield Oddity(severity, name, words, jobs.height, example, remedy)


def _times(workload: Workload) -> Iterator[Oddity]:
    submit, origin = workload.jobs["submit_seconds"], workload.meta.origin_unix_seconds
    last = _number(submit.max())
    if (origin or 0.0) + last <= LATEST_UNIX_SECONDS and _span(workload) <= LONGEST_SPAN_SECONDS:
        return
    yield Oddity(
        "impossible",
        "times",
        "jobs are submitted after the year 2100, or over more than a century",
        1,
        f"job {workload.jobs['job_id'][submit.arg_max() or 0]}, submit_seconds = {last}",
        "times in seconds: a mapping with the unit that the log has, such as milliseconds",
    )


def _times_in_window(workload: Workload) -> Iterator[Oddity]:
    """Filters drop the few jobs outside of it, and may hide that all times have another unit."""
    jobs = workload.jobs
    yield from _times(workload.with_jobs(jobs.filter(in_window(jobs["submit_seconds"]))))


def _clocks(workload: Workload) -> Iterator[Oddity]:
    times = workload.meta.repairs.get(FIRST_OF_TWO, 0)
    if times:
        yield Oddity(
            "odd",
            "local_times_twice",
            f"{count(times, 'local time')} may be an hour later, for clocks were put back and "
            "showed that hour twice; the first was taken, but of what came too soon the second",
            times,
            workload.meta.examples.get(FIRST_OF_TWO),
            "write times with their offset from UTC (%z)",
        )


def _requests(workload: Workload) -> Iterator[Oddity]:
    yield from _of_half(
        workload,
        "runtime_beyond_most_requests",
        "of {} that asked for a time, {} ran for longer",
        pl.col("requested_seconds") > 0,
        pl.col("requested_seconds") < _RUNTIME,
        "runtime_seconds",
        "see whether the unit of requested times is right",
    )


def _runtimes(workload: Workload) -> Iterator[Oddity]:
    span, column = _span(workload), "runtime_seconds"
    beyond_a_year, beyond_span = _RUNTIME > LONGEST_RUNTIME_SECONDS, span < _RUNTIME
    yield from oddities(
        workload,
        "runtime_beyond_the_log",
        "{} ran for more than a year, and for longer than there were submissions: "
        + duration(span),
        beyond_a_year & beyond_span,
        column,
        "a log or mapping put right, or the filter drop_runtime_beyond_a_year",
        severity="impossible",
    )
    yield from oddities(
        workload,
        "runtime_beyond_a_year",
        "{} ran for more than a year",
        beyond_a_year & ~beyond_span,
        column,
        "correct the source, or filter drop_runtime_beyond_a_year",
    )
    yield from oddities(
        workload,
        "runtime_longer_than_log",
        "{} ran for more than a day, and for longer than there were submissions: " + duration(span),
        beyond_span & ~beyond_a_year & (_RUNTIME > LEAST_LONG_SECONDS),
        column,
        "see whether the log is whole, and end times are right",
    )


def _load(workload: Workload) -> Iterator[Oddity]:
    """The median runtime is added to the span, so that one burst of jobs is no load without end."""
    processors, kept = workload.meta.processors, in_window(workload.jobs["submit_seconds"])
    jobs = workload.jobs.filter(kept).drop_nulls(["runtime_seconds", "tasks", "cpus_per_task"])
    if processors is None or not jobs.height:
        return
    widths, runtimes = jobs.select(_WIDTH)["tasks"].to_numpy(), jobs["runtime_seconds"].to_numpy()
    submit = jobs["submit_seconds"].to_numpy()
    seconds = float(submit.max() - submit.min() + np.median(runtimes))
    if seconds < LEAST_LOADED_SECONDS:
        return
    load = offered_load(widths, runtimes, processors, seconds)
    if load > HIGHEST_LOAD:
        yield Oddity(
            "odd",
            "load",
            f"jobs ask for {number(load)} times what {count(processors, workload.meta.unit)} can "
            f"do while they are submitted, {duration(seconds)}",
            1,
            None,
            "see whether --processors, widths and the unit of runtimes are right",
        )


def _recorded_use(workload: Workload) -> Iterator[Oddity]:
    processors = workload.meta.processors
    if processors is None:
        return
    start = pl.col("submit_seconds") + pl.col("recorded_wait_seconds")
    ran = workload.jobs.select(start=start, end=start + _RUNTIME, cpus=_WIDTH).filter(
        pl.col("end") > pl.col("start"), pl.col("end").is_finite(), pl.col("cpus") > 0
    )
    changes = pl.concat(
        [ran.select(at="start", by="cpus"), ran.select(at="end", by=-pl.col("cpus"))]
    )
    use = changes.group_by("at").agg(pl.col("by").sum()).sort("at")
    used = use["by"].cum_sum().to_numpy()[:-1]
    seconds = np.diff(use["at"].to_numpy())
    share = float(seconds[used > processors].sum() / max(seconds.sum(), 1.0))
    if share >= LEAST_TIME_BEYOND:
        yield Oddity(
            "odd",
            "use_beyond_processors",
            f"as recorded, jobs held more than the machine's {processors} {workload.meta.unit}s "
            f"during {percent(share)} of the time, {number(float(used.max()))} at most",
            1,
            None,
            "give --processors as many as there were, or leave out jobs that shared some",
        )


def _widths(workload: Workload) -> Iterator[Oddity]:
    held = pl.col("allocated_cpus")
    yield from _of_half(
        workload,
        "narrower_than_allocated",
        "of {} whose allocation is known, {} held at least twice as many cpus as they are wide",
        (held > 0) & (_WIDTH > 0),
        held >= 2 * _WIDTH,
        "allocated_cpus",
        "map the column that says how many cpus jobs held as tasks",
    )
    if len(workload) >= FEWEST_JOBS:
        one = (_WIDTH == 1.0).fill_null(value=False).all()
        yield from oddities(
            workload,
            "all_of_one_cpu",
            "all {} are one cpu wide",
            (_WIDTH == 1.0) & one,
            "tasks",
            "map the column that says how many cpus jobs held as tasks, if there is one",
        )


def _unknown(workload: Workload) -> Iterator[Oddity]:
    """Say nothing of logs that know nothing at all of users or statuses."""
    of_many = (
        ("user", "users", "see whether the column of users is right, and rows are jobs"),
        ("status", "statuses", "name all states in the mapping's values"),
    )
    for column, name, remedy in of_many:
        if workload.jobs[column].null_count() < len(workload):
            nobody = pl.col(column).is_null() | pl.col(column).str.to_lowercase().is_in(_NOBODY)
            words = f"of {{}}, the {column} of {{}} is unknown"
            every = pl.col("job_id").is_not_null()
            yield from _of_half(workload, f"unknown_{name}", words, every, nobody, column, remedy)


def _copies(workload: Workload) -> Iterator[Oddity]:
    job_id = pl.col("job_id")
    if workload.jobs["job_id"].str.contains("#", literal=True).any():
        same = pl.struct(job_id.str.replace(_SUFFIX, ""), "submit_seconds", _RUNTIME, "tasks")
        yield from oddities(
            workload,
            "repeated_jobs",
            "copies of jobs, with the same id, submission, runtime and width: {}",
            ~same.is_first_distinct(),
            "submit_seconds",
            "filter merge_duplicates",
        )


def _rows_again(workload: Workload) -> Iterator[Oddity]:
    """Find equal rows of a table without ids; the same id twice is `_copies`."""
    jobs, numbers = workload.jobs, workload.jobs["job_id"].cast(pl.Int64, strict=False)
    is_numbered = not numbers.null_count() and _number(numbers.max()) < 1.1 * len(workload)
    if workload.meta.reader != "table" or len(workload) < FEWEST_REQUESTS or not is_numbered:
        return
    again = ~jobs.select(pl.struct(pl.exclude("job_id")).is_first_distinct()).to_series()
    if again.sum() >= LEAST_SHARE_AGAIN * len(workload):
        yield from oddities(
            workload,
            "repeated_rows",
            f"the same in all columns as an earlier row: {{}} of {len(workload):,}",
            pl.lit(again),
            "submit_seconds",
            "see whether the table holds its rows twice, or map the column of ids",
        )


def _partition_names(workload: Workload) -> Iterator[Oddity]:
    spellings: dict[str, list[str]] = {}
    for name in named_partitions(workload):
        spellings.setdefault(name.casefold(), []).append(name)
    for names in spellings.values():
        if len(names) > 1:
            yield from oddities(
                workload,
                "partitions_by_case",
                f"partitions whose names differ in case only ({', '.join(names)}) are simulated as "
                "several: {} in all but the first",
                pl.col("partition").is_in(names[1:]),
                "partition",
                "write the name of a partition in one way",
            )


def _steps(workload: Workload) -> Iterator[Oddity]:
    job_id = pl.col("job_id")
    if workload.jobs["job_id"].str.contains(".", literal=True).any():
        parents = job_id.str.extract(STEP, 1)
        known = pl.concat([job_id, parents.filter(job_id.str.contains(_NAMED_STEP))]).implode()
        yield from oddities(
            workload,
            "steps_among_jobs",
            "steps of other jobs, by their id: {}",
            parents.is_in(known) | job_id.str.contains(_NAMED_STEP),
            "job_id",
            "leave out steps (sacct -X), or let the rows of a job follow each other",
        )


def outside_window(workload: Workload) -> Iterator[Oddity]:
    """Jobs submitted far from all others, which ``replayable`` drops."""
    kept = in_window(workload.jobs["submit_seconds"])
    yield from oddities(
        workload,
        "outside_window",
        "submitted far from all others, before or after a tenth of the whole time: {}",
        pl.lit(~kept),
        "submit_seconds",
        "filter drop_outside_window",
    )


def _gaps(workload: Workload) -> Iterator[Oddity]:
    kept = in_window(workload.jobs["submit_seconds"])
    submit = workload.jobs["submit_seconds"].filter(kept).drop_nulls().sort()
    gap = _number(submit.diff().max())
    if gap > max(LONGEST_GAP_SECONDS, LEAST_SHARE * _number(submit.max())):
        yield Oddity(
            "odd",
            "gap",
            f"no job was submitted for {duration(gap)}, most of the time that the log is of",
            1,
            None,
            "filter keep_between, for one part of the log",
        )


def _dropped(workload: Workload) -> Iterator[Oddity]:
    dropped = sum(jobs for name, jobs in workload.meta.filters if name.startswith("drop_"))
    if dropped >= LEAST_SHARE * (dropped + len(workload)):
        yield Oddity(
            "odd",
            "most_dropped",
            f"cleaning dropped {count(dropped, 'job')} and left {number(len(workload))}",
            dropped,
            None,
            "see which filter did, and whether the log says what it should",
        )


def _dependencies(workload: Workload) -> Iterator[Oddity]:
    if not workload.has_dependencies:
        return
    links = (
        workload.jobs.select("job_id", before=pl.col("after_jobs").str.split(","))
        .drop_nulls("before")
        .explode("before")
    )
    unknown = links.join(workload.jobs, left_on="before", right_on="job_id", how="anti")
    if unknown.height:
        yield Oddity(
            "odd",
            "unknown_dependency",
            "the job waits for one that is not in the workload: simulations do not wait for it",
            unknown.height,
            f"job {unknown['job_id'][0]}, after_jobs = {unknown['before'][0]}",
            "correct the source, or keep both jobs",
        )
    after: dict[str, list[str]] = {}
    for job_id, before in links.iter_rows():
        after.setdefault(job_id, []).append(before)
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        circle = error.args[1]
        yield Oddity(
            "odd",
            "circular_dependency",
            "the job waits for jobs that wait for it: none of them will ever start",
            len(circle) - 1,
            f"job {circle[0]}, after_jobs = {' < '.join(circle)}",
            "correct the source",
        )


def _of_half(
    workload: Workload,
    name: str,
    sentence: str,
    known: pl.Expr,
    odd: pl.Expr,
    column: str,
    remedy: str,
) -> Iterator[Oddity]:
    """Find what is odd if half of the jobs of which something is known have it."""
    of = int(workload.jobs.select(known.fill_null(value=False).sum()).item() or 0)
    odd = known & odd
    having = int(workload.jobs.select(odd.fill_null(value=False).sum()).item() or 0)
    if of and having >= LEAST_SHARE * of:
        words = sentence.format(count(of, "job"), number(having))
        yield from oddities(workload, name, words, odd, column, remedy)


def _units(workload: Workload) -> Iterator[Oddity]:
    yield from _of_half(
        workload,
        "runtime_below_a_second",
        "of {} that ran, {} ran for less than a second",
        _RUNTIME > 0,
        _RUNTIME < 1.0,
        "runtime_seconds",
        "see whether times are in seconds, or in days or hours",
    )
    both = workload.jobs.filter(_RUNTIME > 0, pl.col("requested_seconds") > 0)
    beyond = both.select((pl.col("requested_seconds") >= 50.0 * _RUNTIME).all()).item()
    if both.height >= FEWEST_REQUESTS and beyond:
        yield Oddity(
            "odd",
            "request_beyond_all_runtimes",
            f"none of {count(both.height, 'job')} ran for more than a fiftieth of the time that "
            "it asked for",
            both.height,
            None,
            "see whether the units of requested times and of runtimes are right",
        )


def _starts(workload: Workload) -> Iterator[Oddity]:
    """Such waits are unknown since they were read, and counted."""
    early = workload.meta.repairs.get(_EARLY, 0)
    if early >= max(1.0, LEAST_SHARE * len(workload)):
        yield Oddity(
            "odd",
            "start_before_submission",
            f"{count(early, 'job')} of {len(workload):,} started before they were submitted",
            early,
            workload.meta.examples.get(_EARLY),
            "see whether the columns of submissions and starts are the right ones",
        )


def _span(workload: Workload) -> float:
    submit = workload.jobs["submit_seconds"]
    return _number(submit.max()) - _number(submit.min())


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


_EARLY: Final = "unknown_for_negative_recorded_wait_seconds"
_NAMED_STEP: Final = r"\.(?:batch|extern|interactive)$"
_Check = Callable[[Workload], Iterator[Oddity]]
_OF_READ: Final[tuple[_Check, ...]] = (
    *(_times_in_window, _clocks, _requests, _widths, _steps),
    *(_units, _starts, _rows_again, _partition_names),
)
_OF_CLEANED: Final[tuple[_Check, ...]] = (
    *(_times, _runtimes, _load, _recorded_use, _unknown, _copies),
    *(outside_window, _gaps, _dropped, _dependencies),
)
