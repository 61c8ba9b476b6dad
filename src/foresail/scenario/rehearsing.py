"""A rehearsal: a policy decides on jobs that are not there, so that what it needs is compiled."""

from __future__ import annotations

from typing import Final

from foresail.model.cluster import Cluster, Resources
from foresail.model.event import Ended, EstimateExpired, Submitted, Tick
from foresail.model.job import Job, Stage
from foresail.model.outcome import EndedBecause, Outcome
from foresail.scenario.beginning import controller_of
from foresail.scenario.scenario import Scenario

_SHARES: Final = ((1.0, 0.0), (0.5, 0.0), (0.25, 1.0)) * 2
"""Of all cpus and of all memory: of each kind one job runs while another waits. Those with memory
ask for no time."""

_MANY: Final = 20
"""So many times as many come at once in the end: they are taken up otherwise than bit by bit."""

_SECONDS: Final = 60.0


def rehearse(scenario: Scenario) -> None:
    """Let jobs be submitted, predicted, started, corrected, ended and learned of."""
    controller = controller_of(scenario)
    now = 0.0
    controller.step(now, _arrivals(controller.cluster, 1, now))
    for _ in _SHARES:
        for _ in range(3):
            now += 2 * _SECONDS
            running = [each.job.job_id for each in controller.running.values()]
            expired = [EstimateExpired(now, job_id) for job_id in running]
            controller.step(now, [*expired, Tick(now)])
        ended = [
            Outcome(each.job.job_id, each.start_seconds, now, EndedBecause.COMPLETED)
            for each in controller.running.values()
        ]
        controller.step(now, [Ended(now, each) for each in ended])
    controller.step(now, _arrivals(controller.cluster, _MANY, now))


def _arrivals(cluster: Cluster, many: int, now: float) -> list[Submitted]:
    arrivals = list[Submitted]()
    for cpus, memory in many * _SHARES:
        tasks = max(1, int(cpus * cluster.total.cpus))
        stage = Stage(tasks, Resources(1.0, memory * cluster.total.memory_bytes / tasks))
        job_id = f"{many}-{len(arrivals)}"
        requested = None if memory else 4 * _SECONDS
        arrivals.append(Submitted(now, Job(job_id, now, (stage,), requested, "nobody")))
    return arrivals
