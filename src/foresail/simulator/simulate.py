"""Simulate a workload under a policy: compiled where it can be, event by event otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from foresail.control.conventions import FORESAIL, IN_CYCLES, Conventions
from foresail.control.policy import Policy
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.protocols import NeedsTruth, Predictor
from foresail.model.watching import Watch
from foresail.simulator.replay import is_compiled, replay
from foresail.simulator.surroundings import IDEAL, Surroundings
from foresail.simulator.truth import real_runtimes
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload

if TYPE_CHECKING:  # what only simulation by events needs is imported there: replays begin sooner
    from foresail.control.log import EventLog
    from foresail.control.records import Manifest


def simulate(
    workload: Workload,
    policy: Policy,
    conventions: Conventions = FORESAIL,
    *,
    enforce_limits: bool = False,
    watch: Watch | None = None,
) -> Schedule:
    """What would have happened; both ways give the same schedule, job by job.

    Parameters and errors are those of ``foresail.simulator.replay.replay``, but any policy will do.
    ``watch`` is given a measure of the seconds of the log that are simulated.
    """
    if is_compiled(policy) and not workload.has_dependencies:
        return replay(workload, policy, conventions, enforce_limits=enforce_limits, watch=watch)
    return simulate_by_events(
        workload, policy, conventions, enforce_limits=enforce_limits, watch=watch
    )


def simulate_by_events(
    workload: Workload,
    policy: Policy,
    conventions: Conventions = FORESAIL,
    *,
    enforce_limits: bool = False,
    log: EventLog | None = None,
    watch: Watch | None = None,
) -> Schedule:
    """As ``simulate``, through the controller that also drives live clusters.

    Its records go to the log, if there is one; ``manifest`` says how that log begins.
    """
    from foresail.control.loop import Controller
    from foresail.simulator.engine import simulate_events

    real_runtimes(workload)
    controller = Controller(
        Cluster.of_processors(workload.processors), *policy.build(), conventions, log=log
    )
    return simulate_events(
        workload, controller, policy.label, enforce_limits=enforce_limits, watch=watch
    )


def simulate_on_nodes(
    workload: Workload,
    policy: Policy,
    surroundings: Surroundings = IDEAL,
    *,
    teach: Callable[[Predictor], object] | None = None,
    log: EventLog | None = None,
    watch: Watch | None = None,
) -> Schedule:
    """What would have happened on the workload's own nodes, event by event.

    With a cycle in the surroundings the scheduler is asked once per cycle (and told how long that
    is), otherwise after every instant at which anything happened. ``teach`` is given the predictor
    before the first job, unless it is an oracle.

    Raises
    ------
    InputError
        If the workload has no nodes table, a runtime is unknown, or a job prefers what no node has.
    """
    from foresail.control.loop import Controller
    from foresail.simulator.engine import simulate_events
    from foresail.traces.nodes import cluster_of, require_known_preferences

    real_runtimes(workload)
    if workload.nodes is None:
        raise InputError(
            "the workload does not say which nodes there are",
            source=workload.meta.source,
            expected="a workload folder with a nodes table",
        )
    cluster = cluster_of(workload.nodes)
    require_known_preferences(workload.jobs, cluster, workload.meta.source)
    scheduler, predictor, correction = _in_cycles(policy, surroundings).build()
    if teach is not None and not isinstance(predictor, NeedsTruth):
        teach(predictor)
    conventions = _conventions(surroundings)
    controller = Controller(cluster, scheduler, predictor, correction, conventions, log=log)
    return simulate_events(
        workload, controller, policy.label, surroundings=surroundings, watch=watch
    )


def _in_cycles(policy: Policy, surroundings: Surroundings) -> Policy:
    cycle = surroundings.cycle_seconds
    return policy if cycle is None else policy.in_cycles(cycle)


def _conventions(surroundings: Surroundings) -> Conventions:
    return FORESAIL if surroundings.cycle_seconds is None else IN_CYCLES


def manifest_on_nodes(workload: Workload, policy: Policy, surroundings: Surroundings) -> Manifest:
    """The first record of the event log of ``simulate_on_nodes``; raises what that raises."""
    from dataclasses import replace

    from foresail.traces.nodes import cluster_of

    if workload.nodes is None:
        raise InputError("the workload has no nodes table", source=workload.meta.source)
    told = _in_cycles(policy, surroundings)
    first = _manifest(workload, told, cluster_of(workload.nodes), _conventions(surroundings))
    return replace(first, seed=surroundings.seed)


def manifest(workload: Workload, policy: Policy, conventions: Conventions = FORESAIL) -> Manifest:
    """The first record of a simulation's event log.

    Raises
    ------
    InputError
        If the workload does not say how many processors the machine has.
    """
    return _manifest(workload, policy, Cluster.of_processors(workload.processors), conventions)


def _manifest(
    workload: Workload, policy: Policy, cluster: Cluster, conventions: Conventions
) -> Manifest:
    import platform

    from foresail import __version__
    from foresail.control.records import Manifest

    meta = workload.meta
    return Manifest(
        policy=policy.text,
        cluster=cluster,
        conventions=conventions,
        versions={"foresail": __version__, "python": platform.python_version()},
        inputs={} if meta.sha256 is None else {meta.source: meta.sha256},
        origin_unix_seconds=meta.origin_unix_seconds,
    )
