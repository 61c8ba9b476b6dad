"""A plan in words: why jobs wait, when things are to happen, and what the picture shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from foresail.explain.reason_words import in_words
from foresail.model.words import count, duration, number, percent
from foresail.record.records import Solved
from foresail.reports.plan.view import Bar, PlanView

_MOST_NAMED: Final = 5


def chance_words(chance: float | None, is_planned: bool) -> str:
    """The chance of a deadline: as planned, or what it would be at most."""
    if chance is None:
        return "no deadline"
    rounded = f"{100 * chance:.0f} %"
    return rounded if is_planned or rounded == "0 %" else f"at most {rounded}"


def solver_words(solved: Solved | None) -> str:
    """What the solver believed of the last plan."""
    if solved is None:
        return "Not known: no solver was asked, or the event log does not hold what it found."
    if solved.failure:
        return (
            f"The solver failed ({solved.failure}): the last plan, worth {number(solved.value)}, "
            "was made without it."
        )
    columns = (
        "no program was needed"
        if solved.columns == 0
        else f"the last program had {count(solved.columns, 'column')}"
    )
    bound = (
        f"no plan can be worth more than {number(solved.bound)} (gap {percent(solved.gap)})"
        if math.isfinite(solved.bound)
        else "how much better the best one may be is not known"
    )
    left_out = ""
    if solved.left_out:
        jobs = count(solved.left_out, "waiting job")
        left_out = f" It left out {jobs}: plan and bound are about the others."
    return (
        f"The last plan is worth {number(solved.value)}; {bound}; {columns}; "
        f"the cycle took {duration(solved.cycle_seconds)}.{left_out}"
    )


def findings_of(view: PlanView) -> list[str]:
    """What the picture shows, in a few sentences."""
    moment = view.moment
    if not moment.running and not moment.waiting:
        return ["Nothing runs and nothing waits."]
    return [
        _running(view),
        *_waiting(view),
        *_deadlines(view),
        *(["Nothing new is started: the run is being drained."] if moment.draining else []),
        *([f"{count(len(moment.down), 'node')} are down."] if len(moment.down) > 1 else []),
        *([f"Node {next(iter(moment.down))} is down."] if len(moment.down) == 1 else []),
    ]


def _running(view: PlanView) -> str:
    moment = view.moment
    total = moment.cluster.total.cpus
    if not moment.running:
        return f"Nothing runs; all {total:g} cpus stand idle."
    cpus = sum(each.held.cpus for each in moment.running)
    jobs = len({each.job.job_id for each in moment.running})
    used = np.array([bar.job.cpus for bar in view.running]) @ view.still_running
    middles = (view.times[:-1] + view.times[1:]) / 2
    later = (middles > moment.now) & (used < cpus / 2)
    half = (
        f"half of that should be free in {duration(float(middles[later][0]) - moment.now)}"
        if later.any()
        else f"half of that is not expected to be free within "
        f"{duration(view.to_seconds - moment.now)}"
    )
    verb = "runs" if jobs == 1 else "run"
    return f"{count(jobs, 'job')} {verb} on {cpus:g} of {total:g} cpus; {half}."


def _waiting(view: PlanView) -> list[str]:
    waiting = view.moment.waiting
    if not waiting:
        return ["No job waits."]
    verb = "waits" if len(waiting) == 1 else "wait"
    first = f"{count(len(waiting), 'job')} {verb}"
    planned = len(view.planned) + view.left_out
    if not planned:
        return [f"{first}; none of them is planned for a time."]
    following = view.planned[0]
    start = in_words(following.start_seconds - view.moment.now)
    named = f"job {following.job.job_id}"
    if planned == len(waiting):
        if planned == 1:
            return [f"{first}; it is planned to start {start}."]
        return [f"{first}; all are planned, {named} first, {start}."]
    return [f"{first}; {planned:,} of them planned, {named} first, {start}."]


def _deadlines(view: PlanView) -> list[str]:
    bars = [bar for bar in (*view.running, *view.planned) if bar.chance is not None]
    if not bars:
        return []
    risky = [bar for bar in bars if bar.at_risk]
    if len(bars) == 1:
        likelier = "likelier to miss it than not" if risky else "likelier to meet it than not"
        only = "the only one with a deadline that runs or is planned"
        return [f"Job {bars[0].job.job_id}, {only}, is {likelier}."]
    if not risky:
        return [
            f"All of the {len(bars):,} jobs with a deadline that run or are planned are likelier "
            "to meet it than not."
        ]
    verb = "is" if len(risky) == 1 else "are"
    return [
        f"Of {len(bars):,} jobs with a deadline that run or are planned, {len(risky):,} "
        f"{verb} likelier to miss it than not: {_names(risky)}."
    ]


def _names(bars: Sequence[Bar]) -> str:
    names = [bar.job.job_id for bar in bars[:_MOST_NAMED]]
    more = f" and {len(bars) - _MOST_NAMED:,} more" if len(bars) > _MOST_NAMED else ""
    return ", ".join(names) + more
