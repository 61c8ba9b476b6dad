"""Waiting policies as settings, by their names, and what they believe."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.kernels.waiting_choice import WaitingRules, WaitModel
from foresail.model.errors import UnknownNameError, require
from foresail.model.registry import todays_name

Queue = Literal["fcfs", "strict-fcfs", "sjf", "random"]
"""Order of the waiting jobs: by submission, by submission without overtaking, shortest (as
believed) first, or at random. In all but the strict one the first that fits goes."""
QUEUES: Final[tuple[Queue, ...]] = ("fcfs", "strict-fcfs", "sjf", "random")


@dataclass(frozen=True, slots=True)
class WaitingPolicy:
    """Which jobs wait for fixed machines, and which run at once on rented ones.

    Raises
    ------
    InputError
        If a number is negative or the queue has another name.
    """

    waiting_seconds: float = math.inf
    """A job that is believed to wait longer is rented a machine at once; b in the literature."""
    short_seconds: float = 0.0
    """A job that is believed to run for less is rented one at once; t."""
    patience_seconds: float | None = None
    """A job that has waited for so long is rented one; ``waiting_seconds`` unless given."""
    speculation_seconds: float = 0.0
    """A job that finds no fixed machine free is first run on a rented one for so long, and waits
    only if it is not done by then; 0: none is."""
    conserving: bool = True
    """Whether a job takes a fixed machine that is free for it."""
    weighing: bool = False
    """Whether a job that is expected to lose more by waiting than it saves is rented a machine."""
    queue: Queue = "fcfs"
    """Order of the waiting jobs."""
    untried_seconds: float = math.inf
    """A job that is believed to run for so long is a long one anyhow, and waits without a trial."""

    def __post_init__(self) -> None:
        for name in (
            "waiting_seconds",
            "short_seconds",
            "patience_seconds",
            "speculation_seconds",
            "untried_seconds",
        ):
            value = getattr(self, name)
            require(value is None or value >= 0.0, self, name, "0 or more")
        if self.queue not in QUEUES:
            raise UnknownNameError("queue", self.queue, QUEUES)

    @property
    def rules(self) -> WaitingRules:
        """As kernels take it."""
        patience = self.waiting_seconds if self.patience_seconds is None else self.patience_seconds
        return WaitingRules(
            float(self.short_seconds),
            float(self.waiting_seconds),
            float(patience),
            float(self.speculation_seconds),
            int(self.conserving),
            int(self.weighing),
            float(self.untried_seconds),
        )


def waiting_policy(
    name: str,
    waiting_seconds: float = math.inf,
    short_seconds: float = 0.0,
    queue: Queue = "fcfs",
) -> WaitingPolicy:
    """The policy of this name, long or short: one of ``foresail.cloud.waiting.settings``.

    SWW and the compound wait as AJW-T does, and differ by what they believe of waits.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    bounded = WaitingPolicy(waiting_seconds, queue=queue)
    policies = {
        "all-jobs-wait": WaitingPolicy(queue=queue),
        "no-jobs-wait": WaitingPolicy(patience_seconds=0.0, queue=queue),
        "all-jobs-wait-threshold": bounded,
        "short-waits-wait": bounded,
        "long-jobs-wait": WaitingPolicy(short_seconds=short_seconds, queue=queue),
        "compound": replace(bounded, short_seconds=short_seconds),
        "speculative": replace(bounded, speculation_seconds=short_seconds),
        "weighing": replace(bounded, weighing=True),
    }
    name = todays_name("waiting policy", name)
    if name not in policies:
        raise UnknownNameError("waiting policy", name, policies)
    return policies[name]


@dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """An oracle of waits: it names the jobs that would wait beyond their patience.

    Where no waiting job holds up others, that is in any queue but the strict one, it costs
    nothing: a job that leaves a queue has changed nothing for the rest. In the strict queue the
    schedule is simulated forward for every job that finds no machine, from the true runtimes.
    That is exact, too, unless jobs are tried elsewhere and come back.
    """

    missed: NDArray[np.bool_] | None = None
    """By job: it says nothing, and the job waits in vain."""
    false_alarms: NDArray[np.bool_] | None = None
    """By job: it says "too long" whatever is true."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Waits as they would be if no other job came and all runtimes were as believed.

    On the arrival of a job that finds no machine, the schedule is simulated forward from the
    believed ends of what runs and the believed runtimes of what waits. A job that runs for longer
    than believed is taken to end any moment.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """What a policy is told of the jobs, beside their requests."""

    runtime_seconds: NDArray[np.float64]
    """Estimate per job."""
    waits: NDArray[np.float64] | WaitModel | Foresight | Forecast | None = None
    """Where waits come from: seconds per job, a model of the cluster's state, an oracle, a forecast
    from the believed runtimes, or nothing: then no job is believed to wait."""
    delay_per_hour: NDArray[np.float64] | None = None
    """Money that an hour's delay of each job costs, or None: nothing."""

    @classmethod
    def true_runtimes(
        cls,
        jobs: TraceJobs,
        waits: NDArray[np.float64] | WaitModel | Foresight | Forecast | None = None,
    ) -> Beliefs:
        """The oracle of runtimes."""
        return cls(jobs.runtime_seconds, waits)
