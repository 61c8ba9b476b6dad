"""A rehearsal: a policy's scheduler plans for a few jobs, so that what it needs gets compiled."""

from __future__ import annotations

from typing import Final

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.histogram import Histogram
from foresail.model.distribution import Distribution
from foresail.model.event import IN_CYCLES
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.model.registry import find
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.engine import simulate_events
from foresail.traces.generating import generate
from foresail.traces.nodes import cluster_of

_CYCLE_SECONDS: Final = 60.0


class _SameBelief:
    """Believes of every job what a predictor with history might."""

    _belief: Final = Histogram.of([60.0, 300.0, 900.0, 3_600.0])

    def predict(self, job: Job, now: float) -> Distribution:  # noqa: ARG002 - of every job the same
        return self._belief

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn nothing."""


def rehearse(policy: str) -> None:
    """Simulate a few minutes of jobs with deadlines on nodes under a policy's scheduler.

    The predictor is another: its steps are compiled apart from this.
    """
    entry = find("generator", "e2e")
    workload = generate("e2e", entry.parameters(hours=0.2, load=3.0), 1)
    if workload.nodes is None:
        return
    scheduler, _, correction = parse_policy(policy).in_cycles(_CYCLE_SECONDS).build()
    controller = Controller(
        cluster_of(workload.nodes), scheduler, _SameBelief(), correction, IN_CYCLES
    )
    around = ClusterConditions(cycle_seconds=_CYCLE_SECONDS)
    simulate_events(workload, controller, policy, conditions=around)
