"""Simulate a workload under a policy: compiled where it can be, event by event otherwise."""

from __future__ import annotations

import platform

from foresail import __version__
from foresail.control.conventions import FORESAIL, Conventions
from foresail.control.log import EventLog
from foresail.control.loop import Controller
from foresail.control.policy import Policy
from foresail.control.records import Manifest
from foresail.model.cluster import Cluster
from foresail.simulator.engine import simulate_events
from foresail.simulator.replay import is_compiled, replay
from foresail.simulator.truth import real_runtimes
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload


def simulate(
    workload: Workload,
    policy: Policy,
    conventions: Conventions = FORESAIL,
    *,
    enforce_limits: bool = False,
) -> Schedule:
    """What would have happened; both ways give the same schedule, job by job.

    Parameters and errors are those of ``foresail.simulator.replay.replay``, but any policy will do.
    """
    if is_compiled(policy):
        return replay(workload, policy, conventions, enforce_limits=enforce_limits)
    return simulate_by_events(workload, policy, conventions, enforce_limits=enforce_limits)


def simulate_by_events(
    workload: Workload,
    policy: Policy,
    conventions: Conventions = FORESAIL,
    *,
    enforce_limits: bool = False,
    log: EventLog | None = None,
) -> Schedule:
    """As ``simulate``, through the controller that also drives live clusters.

    Its records go to the log, if there is one; ``manifest`` says how that log begins.
    """
    real_runtimes(workload)
    controller = Controller(
        Cluster.of_processors(workload.processors), *policy.build(), conventions, log=log
    )
    return simulate_events(workload, controller, policy.label, enforce_limits=enforce_limits)


def manifest(workload: Workload, policy: Policy, conventions: Conventions = FORESAIL) -> Manifest:
    """The first record of a simulation's event log.

    Raises
    ------
    InputError
        If the workload does not say how many processors the machine has.
    """
    meta = workload.meta
    return Manifest(
        policy=policy.text,
        cluster=Cluster.of_processors(workload.processors),
        conventions=conventions,
        versions={"foresail": __version__, "python": platform.python_version()},
        inputs={} if meta.sha256 is None else {meta.source: meta.sha256},
        origin_unix_seconds=meta.origin_unix_seconds,
    )
