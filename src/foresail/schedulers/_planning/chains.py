"""Jobs that others wait for: what they are worth to the deadlines at the ends of their chains.

A job is in time for a deadline further on if it, and then the longest way from its end to the end
of that job, take no longer than is left. What else those on the way wait for is not known to it: a
deadline that waits for two jobs is claimed for both, each with half of its worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Final, cast

import numpy as np

from foresail.distributions.operations import convolved, largest
from foresail.distributions.point import Point
from foresail.model.arrays import Floats
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.value import DeadlineValue
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._planning.beliefs import RuntimeBeliefs, as_point
from foresail.schedulers._planning.parameters import PlanAheadParameters
from foresail.schedulers._planning.valuing import (
    Fall,
    fall_of,
    rather_earlier,
    worth_of_falls,
)

_NODES: Final = 65
"""Nodes of a belief in a sum of runtimes."""
_REMEMBERED: Final = 2048
"""Sums of runtimes: beliefs are values, and the same chain is asked about in every cycle."""
_NOTHING: Final = Point(0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ChainWorth:
    """What a job is worth to a deadline further on."""

    fall: Fall
    """The worth, by when the job at the end of the chain is done."""
    rest: Distribution
    """Seconds from this job's end until then."""

    def times(self, factor: float) -> ChainWorth:
        """The same, worth so much more or less."""
        return ChainWorth(self.fall.times(factor), self.rest)

    def until_done(self, belief: Distribution, slowdown: float) -> Distribution:
        """Seconds from this job's start, where it runs so much longer, until then."""
        return _in_turn(belief, slowdown, self.rest)


def claims_of(view: ClusterView, parameters: PlanAheadParameters) -> dict[str, list[ChainWorth]]:
    """The claims on those pending and running jobs that a deadline waits for, by job id."""
    blocked = {each.job.job_id: each for each in view.blocked}
    known = [(each.job.job_id, each.prediction) for each in view.pending]
    known += [(each.job.job_id, each.prediction) for each in view.running]
    beliefs = {job_id: _planned(belief, parameters) for job_id, belief in known}
    claims: dict[str, list[ChainWorth]] = {}
    for goal in view.blocked:
        if not isinstance(goal.job.value, DeadlineValue):
            continue
        rests = _rests(goal.job, blocked, parameters)
        leading = [name for name in rests if name in beliefs]
        for name in leading:
            chain = _in_turn(beliefs[name], 1.0, rests[name])
            fall = fall_of(replace(goal, prediction=chain), parameters)
            claim = ChainWorth(fall.times(1.0 / len(leading)), rests[name])
            claims.setdefault(name, []).append(claim)
    return claims


def claimed_worth(
    beliefs: Sequence[Distribution],
    claims: Sequence[Sequence[ChainWorth]],
    slowdown: float,
    now: float,
    parameters: PlanAheadParameters,
) -> Floats:
    """What jobs are worth to deadlines further on if they start in a slot; shape (jobs, slots).

    Parameters
    ----------
    beliefs, claims
        Of every job, its runtime where it likes best, and the claims on it.
    slowdown
        How many times longer it runs.
    now, parameters
        As everywhere in a plan.
    """
    worth = np.zeros((len(beliefs), parameters.window_slots))
    at = [job for job, of_job in enumerate(claims) for _ in of_job]
    if at:
        flat = [claim for of_job in claims for claim in of_job]
        wholes = [
            claim.until_done(beliefs[job], slowdown) for job, claim in zip(at, flat, strict=True)
        ]
        falls = [claim.fall for claim in flat]
        of_claims = worth_of_falls(RuntimeBeliefs(wholes), falls, 1.0, now, parameters)
        np.add.at(worth, at, of_claims * rather_earlier(parameters))
    return worth


def _rests(
    goal: Job, blocked: Mapping[str, PendingJob], parameters: PlanAheadParameters
) -> dict[str, Distribution]:
    """Seconds from the end of each job that a blocked one waits for to the end of that one.

    Of several ways there it is the longest. Nothing for jobs that wait for each other.
    """
    rests: dict[str, Distribution] = {goal.job_id: _NOTHING}
    successors = _successors(goal, blocked)
    try:
        order = tuple(TopologicalSorter(successors).static_order())  # the goal first
    except CycleError:
        return {}
    for name in order:
        if name != goal.job_id:
            ways = tuple(
                _in_turn(_planned(blocked[each].prediction, parameters), 1.0, rests[each])
                for each in successors[name]
            )
            rests[name] = ways[0] if len(ways) == 1 else _longest(ways)
    return rests


def _successors(goal: Job, blocked: Mapping[str, PendingJob]) -> dict[str, list[str]]:
    """Of all jobs that a blocked one waits for: which wait for them on the way to it."""
    successors: dict[str, list[str]] = {}
    seen = {goal.job_id}
    left = [goal]
    while left:
        job = left.pop()
        for name in job.after:
            successors.setdefault(name, []).append(job.job_id)
            if name in blocked and name not in seen:
                seen.add(name)
                left.append(blocked[name].job)
    return successors


def _planned(belief: Distribution, parameters: PlanAheadParameters) -> Distribution:
    return belief if parameters.distribution else as_point(belief)


def _sum(belief: Distribution, slowdown: float, rest: Distribution) -> Distribution:
    """A job, so much longer, and then the rest."""
    if rest is _NOTHING:
        return belief.scaled(slowdown)
    return convolved([belief.scaled(slowdown), rest], _NODES)


def _largest(ways: tuple[Distribution, ...]) -> Distribution:
    return largest(ways, _NODES)


_in_turn: Final = cast(
    "Callable[[Distribution, float, Distribution], Distribution]",
    lru_cache(maxsize=_REMEMBERED)(_sum),
)
_longest: Final = cast(
    "Callable[[tuple[Distribution, ...]], Distribution]",
    lru_cache(maxsize=_REMEMBERED)(_largest),
)
