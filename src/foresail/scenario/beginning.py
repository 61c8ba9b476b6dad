"""Beginning of every run, simulated or real: its controller, the first record of its log.

A rehearsal has a policy decide on jobs that are not there, so that what it needs is compiled.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from typing import Final

from foresail import __version__
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.histogram import Histogram
from foresail.model import event as events
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.distribution import Distribution
from foresail.model.errors import ForesailError
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.protocols import Predictor, Scheduler
from foresail.model.registry import blaming_plug_ins
from foresail.record.records import EventLog, Manifest
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import IDEAL


def controller_of(
    scenario: Scenario, log: EventLog | None = None, scheduler: Scheduler | None = None
) -> Controller:
    """A controller as it is when the scenario begins; the log begins with ``manifest_of``.

    ``scheduler`` decides instead of the policy's own, which it may ask in its turn.

    Raises ``InputError`` if it is not known what there is to run on, or what is to be learned
    cannot be.
    """
    policy, before = scenario.policy_in_force, scenario.learned_before
    own, predictor, correction = policy.build()
    decides = own if scheduler is None else scheduler
    if before is not None and not predictor.needs_truth:
        before.teach(policy, predictor)
    conventions = scenario.conventions_in_force
    return Controller(scenario.cluster, decides, predictor, correction, conventions, log=log)


def manifest_of(scenario: Scenario) -> Manifest:
    """The first record of the scenario's event log: what repeats such a run."""
    if scenario.commands is None:
        meta = scenario.jobs.meta
        source, digest, origin = meta.source, meta.sha256, meta.origin_unix_seconds
        is_drawn = scenario.place != "processors" or scenario.conditions != IDEAL
    else:
        (source, digest), origin = scenario.commands.origin(), None
        is_drawn = False
    return Manifest(
        policy=scenario.policy_in_force.text,
        cluster=scenario.cluster,
        conventions=scenario.conventions_in_force,
        seed=scenario.conditions.seed if is_drawn else None,
        versions={"foresail": __version__, "python": platform.python_version()},
        inputs={} if digest is None else {source: digest},
        origin_unix_seconds=origin,
        starts_tasks=scenario.policy_in_force.starts_tasks,
    )


_SHARES: Final = ((1.0, 0.0), (0.5, 0.0), (0.25, 1.0)) * 2
"""Shares of all cpus and of all memory: of each kind one job runs while another waits. Those with
memory ask for no time."""

_MANY: Final = 20
"""Factor from which on jobs that come at once are not taken up bit by bit."""

_SECONDS: Final = 60.0


class _SameBelief(Predictor):
    """Predictor that believes of every job what one with history might."""

    def __init__(self) -> None:
        self._belief = Histogram.from_values([60.0, 300.0, 900.0, 3_600.0])

    def predict(self, job: Job, now: float) -> Distribution:  # noqa: ARG002 - of every job the same
        return self._belief

    def observe(self, job: Job, outcome: events.Outcome) -> None:
        """Learn nothing."""


def rehearse_policy(policy: str) -> None:
    """Let a policy, by its short form, decide on such jobs on four nodes, in cycles.

    Its predictor is left out: the steps of that are compiled apart. A policy that fails does so
    again where it is run.
    """
    nodes = tuple(Node(f"node-{number}", Resources(4.0, 16.0 * 2**30)) for number in range(4))
    cluster = Cluster((Partition("all", Resources(16.0, 64.0 * 2**30), nodes),))
    with suppress(ForesailError), blaming_plug_ins():
        scheduler, _, correction = parse_policy(policy).in_cycles(_SECONDS).build()
        rehearse(Controller(cluster, scheduler, _SameBelief(), correction, events.IN_CYCLES))


def rehearse(controller: Controller) -> None:
    """Let a controller decide on jobs that come, start, are corrected and end."""
    now = 0.0
    controller.step(now, _arrivals(controller.cluster, 1, now))
    for _ in _SHARES:
        for _ in range(3):
            now += 2 * _SECONDS
            running = [each.job.job_id for each in controller.running.values()]
            expired = [events.EstimateExpired(now, job_id) for job_id in running]
            controller.step(now, [*expired, events.Tick(now)])
        ended = [
            events.Outcome(each.job.job_id, each.start_seconds, now, events.EndedBecause.COMPLETED)
            for each in controller.running.values()
        ]
        controller.step(now, [events.Ended(now, each) for each in ended])
    controller.step(now, _arrivals(controller.cluster, _MANY, now))


def _arrivals(cluster: Cluster, many: int, now: float) -> list[events.Submitted]:
    arrivals = list[events.Submitted]()
    for cpus, memory in many * _SHARES:
        tasks = max(1, int(cpus * cluster.total.cpus))
        stage = Stage(tasks, Resources(1.0, memory * cluster.total.memory_bytes / tasks))
        job_id = f"{many}-{len(arrivals)}"
        requested = None if memory else 4 * _SECONDS
        value = DeadlineValue(now + 30 * _SECONDS, 1.0) if memory else None
        arrivals.append(
            events.Submitted(now, Job(job_id, now, (stage,), requested, "nobody", value=value))
        )
    return arrivals
