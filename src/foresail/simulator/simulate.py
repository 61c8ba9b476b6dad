"""Simulate a workload under a policy: compiled where it can be, event by event otherwise."""

from __future__ import annotations

from foresail.control.conventions import FORESAIL, Conventions
from foresail.control.loop import Controller
from foresail.control.policy import Policy
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
) -> Schedule:
    """As ``simulate``, through the controller that also drives live clusters."""
    real_runtimes(workload)
    controller = Controller(
        Cluster.of_processors(workload.processors), *policy.build(), conventions
    )
    return simulate_events(workload, controller, policy.label, enforce_limits=enforce_limits)
