"""Events: what happened, as a cluster (simulated or real) reports it to the control loop."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.model.construction import quickly_made
from foresail.model.job import Job
from foresail.model.outcome import Outcome


@quickly_made
@dataclass(frozen=True, slots=True)
class Submitted:
    """A job arrived in the queue."""

    time: float
    job: Job


@quickly_made
@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt of a job ended."""

    time: float
    outcome: Outcome


@quickly_made
@dataclass(frozen=True, slots=True)
class EstimateExpired:
    """A running job has run as long as its current estimate said it would, and runs on."""

    time: float
    job_id: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user withdrew a job that is still pending."""

    time: float
    job_id: str


@dataclass(frozen=True, slots=True)
class HistoryOutcome:
    """An outcome of an earlier run, given to the predictors before this one begins."""

    time: float
    job: Job
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; asks for a scheduling pass."""

    time: float


@dataclass(frozen=True, slots=True)
class NodeDown:
    """A node is gone; what ran on it is reported as ended apart, with ``LOST``."""

    time: float
    node: str


@dataclass(frozen=True, slots=True)
class NodeUp:
    """A node is back, empty."""

    time: float
    node: str


Event = Submitted | Ended | EstimateExpired | Cancelled | HistoryOutcome | NodeDown | NodeUp | Tick
