"""A bootstrap over users: whole weeks of one user's jobs stay together and follow each other.

Each user's own weeks are drawn in runs (a stationary bootstrap, D. N. Politis, J. P. Romano,
Journal of the American Statistical Association 89, 1994) and the user's time on the machine begins
in another week, so that users meet in new combinations. The idea of moving users by whole weeks is
that of N. Zakay, D. G. Feitelson, "Workload resampling for performance evaluation of parallel job
schedulers", Concurrency and Computation 26(12), 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.arrays import Integers


@dataclass(frozen=True, slots=True)
class Blocks:
    """A log cut in blocks: the jobs of one user in one week."""

    jobs: Integers
    """Row numbers, sorted by user, then week, then submission; shape (jobs,)."""
    begins: Integers
    """Where in ``jobs`` the block of (user, week) begins; shape (users, weeks + 1). It ends where
    the next of the same user begins."""
    weeks: int
    """Weeks of the log."""


def cut(user: Integers, week: Integers) -> Blocks:
    """Cut jobs, in order of submission, into blocks; both arrays count from zero, shape (jobs,)."""
    users, weeks = int(user.max()) + 1, int(week.max()) + 1
    jobs = np.lexsort((week, user))
    counts = np.bincount(user * weeks + week, minlength=users * weeks).reshape(users, weeks)
    ends = np.cumsum(counts.ravel()).reshape(users, weeks)
    return Blocks(jobs, np.column_stack([ends[:, 0] - counts[:, 0], ends]), weeks)


@dataclass(frozen=True, slots=True)
class ResampledJobs:
    """Jobs drawn, in no particular order; every array has shape (drawn jobs,)."""

    job: Integers
    """Row number in the log."""
    week: Integers
    """Week they are put in."""
    block: Integers
    """Number of the block drawn: jobs of equal number stay together."""
    copy: Integers
    """Which copy of the user they belong to, from zero."""


def draw(
    blocks: Blocks,
    weeks: int,
    copies: float,
    run_weeks: float,
    random: np.random.Generator,
) -> ResampledJobs:
    """Draw jobs of a log's blocks for so many weeks.

    Each user takes part ``copies`` times on average; ``run_weeks`` is the mean number of weeks of a
    user that stay in their order.
    """
    users = blocks.begins.shape[0]
    chosen: list[tuple[int, int, Integers, Integers]] = []
    for cycle_start in range(0, weeks, blocks.weeks):
        times = np.floor(copies + random.random(users)).astype(np.int64)
        offsets = random.integers(0, blocks.weeks, (users, int(times.max(initial=0))))
        for user in range(users):
            active = np.flatnonzero(np.diff(blocks.begins[user]))
            first, span = int(active[0]), int(active[-1] - active[0]) + 1
            for copy in range(times[user]):
                source = first + _runs(span, run_weeks, random)
                target = (offsets[user, copy] + np.arange(span)) % blocks.weeks + cycle_start
                inside = target < weeks
                chosen.append((user, copy, source[inside], target[inside]))
    nothing = np.empty(0, dtype=np.int64)
    user_of = np.concatenate([nothing, *(np.full(s.size, user) for user, _, s, _ in chosen)])
    copy_of = np.concatenate([nothing, *(np.full(s.size, copy) for _, copy, s, _ in chosen)])
    source_week = np.concatenate([nothing, *(s for _, _, s, _ in chosen)])
    target_week = np.concatenate([nothing, *(t for _, _, _, t in chosen)])
    begin = blocks.begins[user_of, source_week]
    length = blocks.begins[user_of, source_week + 1] - begin
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    block = np.repeat(np.arange(length.size), length)
    return ResampledJobs(
        job=blocks.jobs[begin[block] + within],
        week=target_week[block],
        block=block,
        copy=copy_of[block],
    )


def _runs(span: int, run_weeks: float, random: np.random.Generator) -> Integers:
    """Numbers 0 to span - 1 drawn in runs of geometric length that wrap around; shape (span,)."""
    new = random.random(span) < 1.0 / run_weeks
    new[0] = True
    starts = random.integers(0, span, span)
    at = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    drawn: Integers = (starts[at][run] + np.arange(span) - at[run]) % span
    return drawn
