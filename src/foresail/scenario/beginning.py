"""How every run begins, simulated or real: its controller, and the first record of its log."""

from __future__ import annotations

import platform

from foresail import __version__
from foresail.control.loop import Controller
from foresail.model.protocols import Scheduler, capabilities_of_predictor
from foresail.record.log import EventLog
from foresail.record.records import Manifest
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import IDEAL


def controller_of(
    scenario: Scenario, log: EventLog | None = None, scheduler: Scheduler | None = None
) -> Controller:
    """A controller as it is when the scenario begins; the log begins with ``manifest_of``.

    ``scheduler`` decides instead of the policy's own, which it may ask in its turn.

    Raises
    ------
    InputError
        If it is not known what there is to run on, or what is to be learned cannot be.
    """
    policy, before = scenario.policy_in_force, scenario.learned_before
    own, predictor, correction = policy.build()
    decides = own if scheduler is None else scheduler
    if before is not None and capabilities_of_predictor(predictor).needs_truth is None:
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
