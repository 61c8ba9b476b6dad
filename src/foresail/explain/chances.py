"""Chances of jobs to run on, and to end by their deadlines."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution, Floats
from foresail.model.job import Job
from foresail.model.preference import PreferenceKind
from foresail.model.view import RunningJob

_GRACE_SECONDS: Final = 1e-6


class PlannedSlowdowns:
    """Factors by which jobs run longer in the partitions of a plan than where they run best.

    Which nodes of these they get is open: a preference counts as given if all of them give it.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._members = {partition.name: partition.nodes for partition in cluster.partitions}
        self._has_nodes = any(self._members.values())

    def factor(self, job: Job, placement: Placement) -> float:
        """The job's own slowdown, or 1 where its preference is given."""
        if job.options:
            return self._of_options(job, placement)
        preference = job.preference
        if preference is None or not self._has_nodes:
            return 1.0
        places = [name for name, _ in placement.tasks_by_partition]
        if preference.kind is PreferenceKind.PARTITION:
            return 1.0 if set(places) <= set(preference.names) else preference.slowdown
        anywhere = [(node, name, 1) for name in places for node in self._members.get(name, ())]
        if preference.kind is PreferenceKind.SPREAD:
            values = {node.attributes.get(preference.names[0]) for node, _, _ in anywhere}
            return 1.0 if len(values - {None}) >= job.tasks else preference.slowdown
        return 1.0 if anywhere and preference.holds(anywhere) else preference.slowdown

    def _of_options(self, job: Job, placement: Placement) -> float:
        """The least slowdown of the options that have nodes in these partitions."""
        there: set[str] = set()
        for name, _ in placement.tasks_by_partition:
            there |= {node.name for node in self._members.get(name, ())} or {name}
        return min(
            (
                option.slowdown
                for option in job.options
                if any(name in there for part in option.parts for name in part.nodes)
            ),
            default=1.0,
        )


def still_running(running: RunningJob, times: Floats, now: float) -> Floats:
    """Probability that a job which runs now still does at times (seconds on the log's clock).

    Up to now it is 1. One that has outlived its belief runs until its corrected end, as schedulers
    assume (3Sigma section 4.3.5).
    """
    belief, slowdown = running.prediction, running.slowdown
    elapsed = max(running.elapsed_seconds(now), 0.0) / slowdown
    left = float(belief.survival(elapsed))
    if left <= 0.0:
        runs_on = times < max(running.expected_end_seconds, now)
        return np.where(times <= now, 1.0, runs_on.astype(np.float64))
    later = belief.survival(np.maximum(times - running.start_seconds, 0.0) / slowdown) / left
    return np.where(times <= now, 1.0, np.minimum(later, 1.0))


def chance_of_running(running: RunningJob, now: float) -> float | None:
    """Probability that a running job ends by its deadline; None without one."""
    deadline = running.job.deadline_seconds
    if deadline is None:
        return None
    if deadline < now:
        return 0.0
    at = np.array([deadline + _GRACE_SECONDS])
    return 1.0 - float(still_running(running, at, now)[0])


def chance_of_start(
    job: Job, belief: Distribution, start_seconds: float, slowdown: float = 1.0
) -> float | None:
    """Probability that a job which starts at some time ends by its deadline; None without one."""
    deadline = job.deadline_seconds
    if deadline is None:
        return None
    left = deadline - start_seconds + _GRACE_SECONDS
    if left < 0.0 or not math.isfinite(start_seconds):
        return 0.0
    return float(belief.cumulative(left / slowdown))
