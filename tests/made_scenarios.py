"""Scenarios in short: by the quickest engine, by the event engine, on the workload's own nodes."""

from foresail.model.event import STANDARD
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import IDEAL


def simulate(workload, policy, **more):
    """By the quickest engine that can."""
    return run_scenario(Scenario(workload, policy, **more))


def simulate_by_events(workload, policy, conventions=STANDARD, **more):
    """By the event engine, called as the compiled replay is."""
    return simulate(workload, policy, conventions=conventions, engine="event-engine", **more)


def simulate_on_nodes(workload, policy, conditions=IDEAL, **more):
    """On the workload's own nodes."""
    return simulate(workload, policy, place="nodes", conditions=conditions, **more)
