"""A scheduler in one file: start the waiting job that will most likely end soonest.

`foresail simulate LOG --plugin shortest_likely.py --policy shortest_likely` finds it by its name.
Run as a script, it compares itself with first-come first-served on five jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, Reason, ReasonCode, Start
from foresail.model.protocols import Scheduler
from foresail.model.registry import find, register
from foresail.model.view import ClusterView, PendingJob
from foresail.simulator.engine import simulate_events


@dataclass(frozen=True, slots=True)
class ShortestLikelyParameters:
    """Parameters of ``shortest_likely``."""

    level: float = 0.5
    """Which quantile of the predicted runtime to trust: 0.5 is the median, more is more careful."""


@register("scheduler", "shortest_likely", parameters=ShortestLikelyParameters)
class ShortestLikely(Scheduler):
    """Starts jobs in order of a quantile of their predicted runtime; whatever fits, starts."""

    def __init__(self, parameters: ShortestLikelyParameters) -> None:
        self.level = parameters.level

    def decide(self, view: ClusterView) -> Decision:
        """Go through the waiting jobs, likely shortest first, and start those that fit."""
        free = dict(view.free)
        starts, reasons = [], {}
        for pending in sorted(view.pending, key=self._likely_seconds):
            job = pending.job
            names = [job.partition] if job.partition in free else list(free)
            place = next((name for name in names if job.total.fits_in(free[name])), None)
            if place is None:
                most = max(free[name].cpus for name in names)
                reasons[job.job_id] = Reason(ReasonCode.NO_ROOM, {"cpus": job.cpus, "free": most})
                continue
            free[place] = free[place] - job.total
            starts.append(Start(job.job_id, Placement.whole(place, job.tasks)))
        return Decision(starts=tuple(starts), reasons=reasons)

    def _likely_seconds(self, pending: PendingJob) -> tuple[float, int]:
        return pending.prediction.quantile(self.level), pending.arrival


def main() -> None:
    """Replay five jobs on four processors under two schedulers and print their waits."""
    workload = tiny_workload(
        [  # submitted at, cpus, real runtime, requested time (all in seconds)
            (0.0, 3, 600.0, 900.0),
            (10.0, 2, 3000.0, 3600.0),
            (20.0, 1, 300.0, 300.0),
            (30.0, 4, 100.0, 120.0),
            (40.0, 1, 200.0, 600.0),
        ]
    )
    for name in ("fcfs", "shortest_likely"):
        parts = [("scheduler", name), ("predictor", "requested"), ("correction", "requested")]
        entries = [find(family, part) for family, part in parts]
        policy = (entry.build(entry.parameters()) for entry in entries)
        controller = Controller(Cluster.of_processors(4), *policy)
        schedule = simulate_events(workload, controller, policy=name)
        waits = schedule.jobs["start_seconds"] - schedule.jobs["submit_seconds"]
        listed = " ".join(f"{wait:5.0f}" for wait in waits)
        print(f"{name:<16} waits {listed}   mean {waits.mean():5.0f} s")


if __name__ == "__main__":
    main()
