"""Worth of jobs to others: deadlines at the end of chains, less for users who have had much.

A job is in time for a deadline further on if it, and then the longest way from its end to the end
of that job, take no longer than is left. What else those on the way wait for is not known to it: a
deadline that waits for two jobs is claimed for both, each with half of its worth.

Shares: a job is worth 1 / (1 + had / share) of its worth: half for a user that had just a fair
share. It decays more slowly than the 2 ** -(had / share) of Slurm's priorities, under which, among
many users, the deadlines of a user that has much would soon weigh less than others' jobs without
any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache, partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, cast

import numpy as np

from foresail.distributions.basic import Point
from foresail.distributions.operations import convolved, largest
from foresail.model.distribution import Distribution, Floats
from foresail.model.job import DeadlineValue, Job
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._planning import valuing

_NODES: Final = 65
"""Nodes of a belief in a sum of runtimes."""
_REMEMBERED: Final = 2048
"""Sums of runtimes: beliefs are values, and the same chain is asked about in every cycle."""
_NOTHING: Final = Point(0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ChainWorth:
    """Worth of a job to a deadline further on."""

    decay: valuing.UtilityDecay
    """The worth, by when the job at the end of the chain is done."""
    rest: Distribution
    """Seconds from this job's end until then."""

    def times(self, factor: float) -> ChainWorth:
        """Scale the worth by a factor."""
        return ChainWorth(self.decay.times(factor), self.rest)

    def until_done(self, belief: Distribution, slowdown: float) -> Distribution:
        """Seconds from this job's start, where it runs so much longer, until then."""
        return _in_turn(belief, slowdown, self.rest)


def claims_of(
    view: ClusterView, parameters: valuing.PlanAheadParameters
) -> dict[str, list[ChainWorth]]:
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
            decay = valuing.utility_decay(replace(goal, prediction=chain), parameters)
            claim = ChainWorth(decay.times(1.0 / len(leading)), rests[name])
            claims.setdefault(name, []).append(claim)
    return claims


def claimed_worth(
    beliefs: Sequence[Distribution],
    claims: Sequence[Sequence[ChainWorth]],
    slowdown: float,
    now: float,
    parameters: valuing.PlanAheadParameters,
) -> Floats:
    """Worth of jobs to deadlines further on if they start in a slot; shape (jobs, slots).

    Of every job, its runtime where it likes best and the claims on it; it runs ``slowdown`` times
    longer.
    """
    worth = np.zeros((len(beliefs), parameters.window_slots))
    at = [job for job, of_job in enumerate(claims) for _ in of_job]
    if at:
        flat = [claim for of_job in claims for claim in of_job]
        wholes = [
            claim.until_done(beliefs[job], slowdown) for job, claim in zip(at, flat, strict=True)
        ]
        decays = [claim.decay for claim in flat]
        of_claims = valuing.decaying_worth(
            valuing.RuntimeBeliefs(wholes), decays, 1.0, now, parameters
        )
        np.add.at(worth, at, of_claims * valuing.rather_earlier(parameters))
    return worth


def _rests(
    goal: Job, blocked: Mapping[str, PendingJob], parameters: valuing.PlanAheadParameters
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
    """Map all jobs that a blocked one waits for to those which wait for them on the way to it."""
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


def _planned(belief: Distribution, parameters: valuing.PlanAheadParameters) -> Distribution:
    return belief if parameters.distribution else valuing.as_point(belief)


def _sum(belief: Distribution, slowdown: float, rest: Distribution) -> Distribution:
    """A job, so much longer, and then the rest."""
    if rest is _NOTHING:
        return belief.scaled(slowdown)
    return convolved([belief.scaled(slowdown), rest], _NODES)


_in_turn: Final = cast(
    "Callable[[Distribution, float, Distribution], Distribution]",
    lru_cache(maxsize=_REMEMBERED)(_sum),
)
_longest: Final = cast(
    "Callable[[tuple[Distribution, ...]], Distribution]",
    lru_cache(maxsize=_REMEMBERED)(partial(largest, nodes=_NODES)),
)


_FORGOTTEN: Final = 1e-9
"""A user that has had less than this share of all, and has no job, is forgotten."""


@dataclass(frozen=True, slots=True)
class _Holding:
    """A job that runs, as it was last seen."""

    name: str
    cpus: float
    start_seconds: float
    expected_end_seconds: float


class Ledger:
    """Account of what each user has had, in cpu seconds that count for less the older they are.

    It learns from the views that a scheduler is shown, and from what that starts. A job that is
    gone since the last view is charged until its expected end, or until now if that is earlier.
    Jobs without a user are those of one.
    """

    def __init__(self, parameters: valuing.PlanAheadParameters) -> None:
        self._parameters: Final = parameters
        self._had: dict[str, float] = {}
        self._holdings: dict[str, _Holding] = {}
        self._now = -math.inf

    def plain(self) -> dict[str, Any]:
        """Plain values for ``restore``."""
        holdings = {job_id: astuple(held) for job_id, held in self._holdings.items()}
        return {"had": dict(self._had), "holdings": holdings, "now": self._now}

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Know what another one knew, and nothing else."""
        self._had = dict(plain["had"])
        self._holdings = {job_id: _Holding(*held) for job_id, held in plain["holdings"].items()}
        self._now = plain["now"]

    def note(self, view: ClusterView) -> None:
        """Charge what was held since the last view; the same view again changes nothing."""
        now = view.now
        if now > self._now:
            half_life = self._parameters.share_half_life_seconds
            remains = 0.5 ** ((now - self._now) / half_life)
            self._had = {name: had * remains for name, had in self._had.items()}
            self._charge({each.job.job_id for each in view.running}, now)
        for each in view.running:
            job_id = each.job.job_id
            known = self._holdings.get(job_id)
            self._holdings[job_id] = _Holding(
                each.job.user or "", each.job.cpus, each.start_seconds, each.expected_end_seconds
            )
            if known is None:
                self._add(self._holdings[job_id], each.start_seconds, now, now)
        self._now = now

    def started(self, job: Job, planned_seconds: float) -> None:
        """Note a start, in case the job has ended before the next view."""
        name, now = job.user or "", self._now
        self._holdings[job.job_id] = _Holding(name, job.cpus, now, now + planned_seconds)

    def factors(self, jobs: Iterable[Job]) -> Mapping[str, float]:
        """Return what the worth of jobs is multiplied by, 0 to 1, by their ids."""
        waiting = {job.job_id: job.user or "" for job in jobs}
        active = set(waiting.values()) | {each.name for each in self._holdings.values()}
        total = sum(self._had.values())
        least = _FORGOTTEN * total
        self._had = {n: had for n, had in self._had.items() if had > least or n in active}
        users = float(len(active | set(self._had)))
        factors: dict[str, float] = {}
        for name in set(waiting.values()):
            had = self._had.get(name, 0.0) / total if total > 0.0 else 0.0
            factors[name] = 1.0 / (1.0 + self._parameters.fair_share * (had * users))
        return {job_id: factors[name] for job_id, name in waiting.items()}

    def _charge(self, running: set[str], now: float) -> None:
        for job_id, held in list(self._holdings.items()):
            since = max(held.start_seconds, self._now)
            if job_id in running:
                self._add(held, since, now, now)
            else:
                self._add(held, since, min(max(held.expected_end_seconds, since), now), now)
                del self._holdings[job_id]

    def _add(self, held: _Holding, begin: float, end: float, now: float) -> None:
        """Charge a stretch of time, each second as it counts now."""
        rate = math.log(2.0) / self._parameters.share_half_life_seconds
        counts = (math.exp(-rate * (now - end)) - math.exp(-rate * (now - begin))) / rate
        self._had[held.name] = self._had.get(held.name, 0.0) + held.cpus * counts
