"""Shares and budgets as value: what users have had lately, and how much less jobs are worth for it.

A job is worth 1 / (1 + had / share) of its worth: half for a user that had just a fair share. It
falls more slowly than the 2 ** -(had / share) of Slurm's priorities, under which, among many users,
the deadlines of a user that has much would soon weigh less than others' jobs without any.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final

from foresail.model.job import Job
from foresail.model.view import ClusterView
from foresail.schedulers._planning.parameters import PlanAheadParameters, shares_by_name

_HOUR_SECONDS: Final = 3600.0
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
    """What each user has had of the cluster, in cpu seconds that count for less the older they are.

    It learns from the views that a scheduler is shown, and from what that starts. A job that is
    gone since the last view is charged until its expected end, or until now if that is earlier.
    """

    def __init__(self, parameters: PlanAheadParameters) -> None:
        self._parameters: Final = parameters
        self._shares: Final = shares_by_name(parameters.shares)
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
                self.name_of(each.job),
                each.job.cpus,
                each.start_seconds,
                each.expected_end_seconds,
            )
            if known is None:
                self._add(self._holdings[job_id], each.start_seconds, now, now)
        self._now = now

    def started(self, job: Job, planned_seconds: float) -> None:
        """Note a start, in case the job has ended before the next view."""
        name, now = self.name_of(job), self._now
        self._holdings[job.job_id] = _Holding(name, job.cpus, now, now + planned_seconds)

    def factors(self, jobs: Iterable[Job]) -> Mapping[str, float]:
        """What the worth of jobs is multiplied by, 0 to 1, by their ids."""
        waiting = {job.job_id: self.name_of(job) for job in jobs}
        active = set(waiting.values()) | {each.name for each in self._holdings.values()}
        total = sum(self._had.values())
        least = _FORGOTTEN * total
        self._had = {n: had for n, had in self._had.items() if had > least or n in active}
        counted = active | set(self._had) | set(self._shares)
        shares = {name: self._shares.get(name, 1.0) for name in sorted(counted)}
        all_shares = sum(shares.values())
        factors: dict[str, float] = {}
        for name in set(waiting.values()):
            had = self._had.get(name, 0.0) / total if total > 0.0 else 0.0
            multiple = had * all_shares / shares[name]
            factors[name] = self._left_of_budget(name) / (
                1.0 + self._parameters.fair_share * multiple
            )
        return {job_id: factors[name] for job_id, name in waiting.items()}

    def name_of(self, job: Job) -> str:
        """The user whose share a job takes from; jobs without a user are those of one."""
        return (job.user if self._parameters.fair_by == "user" else job.group) or ""

    def _left_of_budget(self, name: str) -> float:
        """What is left of a user's budget, as a share of it; 1 where there are no budgets."""
        budget = self._parameters.budget_cpu_hours
        if budget is None:
            return 1.0
        return max(1.0 - self._had.get(name, 0.0) / (_HOUR_SECONDS * budget), 0.0)

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
