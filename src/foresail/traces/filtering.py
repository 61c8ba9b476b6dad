"""Cleaning a workload by named filters, in order, each counted; and samples of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Protocol

import numpy as np
import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import NoParameters, find
from foresail.model.short_form import part_of
from foresail.traces.workload import Workload


class Filter(Protocol):
    """A pure function that drops or changes jobs."""

    def __call__(self, workload: Workload, /) -> tuple[Workload, int]:
        """The workload that is left, and how many jobs were dropped or changed."""


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """A filter by the name it is registered under; without parameters, with its defaults."""

    name: str
    parameters: Any = None


def choices_of(texts: Iterable[str]) -> list[FilterChoice]:
    """Filters as written: ``name`` or ``name(parameter=value, ...)``.

    Raises ``UnknownNameError`` if there is no filter of a name, or it has no parameter of one;
    ``InputError`` if a text is malformed, or a value does not fit.
    """
    parts = [part_of("filter", text) for text in texts]
    return [FilterChoice(part.entry.name, part.parameters) for part in parts]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Some filters under one name, in order: what building it gives."""

    choices: tuple[FilterChoice, ...]

    @classmethod
    def named(cls, *names: str) -> Bundle:
        """Filters of these names, with nothing set."""
        return cls(tuple(map(FilterChoice, names)))


def plain(apply: Filter) -> Callable[[NoParameters], Filter]:
    """Return the builder of a filter that has nothing to set."""

    @wraps(apply)
    def build(parameters: NoParameters) -> Filter:
        del parameters
        return apply

    return build


def apply_filters(workload: Workload, choices: Sequence[FilterChoice]) -> Workload:
    """The workload after the filters, each recorded with its count in ``meta.filters``.

    The filters of a bundle are recorded one by one, under their own names.

    Raises ``UnknownNameError`` if there is no filter of a name; ``InputError`` if a filter lacks
    something of the workload, such as the machine's size.
    """
    for choice in choices:
        entry = find("filter", choice.name)
        record = entry.parameters() if choice.parameters is None else choice.parameters
        built: Filter | Bundle = entry.build(record)
        if isinstance(built, Bundle):
            workload = apply_filters(workload, built.choices)
            continue
        cleaned, touched = built(workload)
        done, examples = (*workload.meta.filters, (choice.name, touched)), workload.meta.examples
        if touched and choice.name not in examples:
            examples = {**examples, choice.name: _first_touched(workload.jobs, cleaned.jobs)}
        workload = _rejoined(workload, cleaned).with_meta(filters=done, examples=examples)
    return workload


def _rejoined(before: Workload, after: Workload) -> Workload:
    """The workload after a filter, where jobs wait for what those waited for that were dropped."""
    if len(before) == len(after) or not before.has_dependencies:
        return after
    chain = before.jobs.select("job_id", pl.col("after_jobs").str.split(",")).drop_nulls()
    waits_for: dict[str, list[str]] = dict(chain.iter_rows())
    dropped = {*before.jobs["job_id"]} - {*after.jobs["job_id"]}

    def left(job_id: str) -> str | None:
        found: dict[str, None] = {}
        stack, seen = waits_for.get(job_id, [])[::-1], set[str]()
        while stack:
            each = stack.pop().strip()
            if each not in dropped:
                found[each] = None
            elif each not in seen:
                seen.add(each)
                stack += waits_for.get(each, [])[::-1]
        return ",".join(found) or None

    links = {
        job_id: left(job_id) for job_id in waits_for if not dropped.isdisjoint(waits_for[job_id])
    }
    if not links:
        return after
    rejoined = pl.col("job_id").replace_strict(
        list(links), list(links.values()), default=pl.col("after_jobs"), return_dtype=pl.String
    )
    return after.with_jobs(after.jobs.with_columns(after_jobs=rejoined))


def _first_touched(before: pl.DataFrame, after: pl.DataFrame) -> str:
    """The first job of a table that is no more, or has changed."""
    columns = before.columns if before.height == after.height else ["job_id"]
    least = min(before.height, after.height)
    differs = pl.repeat(False, least, eager=True)
    for name in columns:
        differs |= before[name].head(least).ne_missing(after[name].head(least))
    row = differs.arg_max() if differs.any() else min(least, before.height - 1)
    return f"job {before['job_id'][row or 0]}"


def keep(workload: Workload, condition: pl.Expr) -> tuple[Workload, int]:
    """The jobs for which the condition holds (unknown counts as no), and how many were dropped."""
    mask = workload.jobs.select(condition.fill_null(value=False)).to_series()
    if mask.all():  # a copy of a long log takes its time, and as much memory again
        return workload, 0
    kept = workload.jobs.filter(mask)
    return workload.with_jobs(kept), len(workload) - kept.height


def change(workload: Workload, condition: pl.Expr, **columns: pl.Expr) -> tuple[Workload, int]:
    """The workload with columns replaced where the condition holds, and in how many jobs."""
    chosen = workload.jobs.select(condition.fill_null(value=False)).to_series()
    if not chosen.any():
        return workload, 0
    mask = pl.lit(chosen)
    jobs = workload.jobs.with_columns(
        pl.when(mask).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in columns.items()
    )
    return workload.with_jobs(jobs), int(chosen.sum())


WEEK_SECONDS: Final = 7 * 86400.0


def sample_weeks(workload: Workload, weeks: int, first_week: int = 0) -> Workload:
    """Some successive weeks: the part that keeps load, daily cycle and habits as they are.

    Weeks count from 0 at the workload's second zero; fewer are given where the workload ends.
    Second zero becomes the beginning of the first of these weeks, and the origin moves with it.

    Raises ``InputError`` if a number is out of its range, or no job was submitted in these weeks.
    """
    if weeks < 1:
        raise InputError("too few", field="weeks", value=weeks, expected="at least 1")
    if first_week < 0:
        raise InputError("negative", field="first week", value=first_week, expected="0 or more")
    start = first_week * WEEK_SECONDS
    submit = pl.col("submit_seconds")
    part = workload.jobs.filter(submit >= start, submit < start + weeks * WEEK_SECONDS)
    part = part.with_columns(submit - start, pl.col("deadline_seconds") - start)
    origin = workload.meta.origin_unix_seconds
    moved = workload.with_meta(origin_unix_seconds=None if origin is None else origin + start)
    return _replayable(moved, part, f"weeks from {first_week}: {weeks}")


def sample_users(workload: Workload, users: int, seed: int) -> Workload:
    """All jobs of some users, drawn at random: habits stay whole, the load shrinks.

    Jobs of unknown users are left out.

    Raises ``InputError`` if there are not so many users.
    """
    names = workload.jobs["user"].drop_nulls().unique().sort().to_list()
    if not 1 <= users <= len(names):
        raise InputError(
            "not that many users",
            source=workload.meta.source,
            field="users",
            value=users,
            expected=f"1 to {len(names)}",
        )
    drawn = np.random.default_rng(seed).choice(len(names), users, replace=False)
    part = workload.jobs.filter(pl.col("user").is_in([names[number] for number in drawn]))
    return _replayable(workload, part, f"users: {users}, seed {seed}")


def sample_fraction(workload: Workload, fraction: float, seed: int) -> Workload:
    """Each job with a probability, on its own: marginals stay, the load and sessions thin out.

    Raises ``InputError`` if the fraction is not above 0 and at most 1, or no job was drawn.
    """
    if not 0.0 < fraction <= 1.0 or math.isnan(fraction):
        raise InputError(
            "not a fraction", field="fraction", value=fraction, expected="above 0, at most 1"
        )
    drawn = np.random.default_rng(seed).random(len(workload)) < fraction
    part = workload.jobs.filter(pl.Series(drawn))
    return _replayable(workload, part, f"fraction: {fraction}, seed {seed}")


def _replayable(workload: Workload, part: pl.DataFrame, note: str) -> Workload:
    """The part as a workload, without dependencies on jobs that are not in it."""
    if not part.height:
        raise InputError("the sample holds no job", source=workload.meta.source, value=note)
    present = pl.col("after_job_id").is_in(part["job_id"].to_list())
    part = part.with_columns(
        pl.when(present).then(pl.col(name)).alias(name)
        for name in ("after_job_id", "think_seconds")
    )
    header = {**workload.meta.header, "Sample": note}
    return workload.with_jobs(part).with_meta(header=header)
