"""What the first third of a log teaches of waits, for rules that go by them afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.cloud.advising.market import Market
from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.kernels.wait_model import WaitModel
from foresail.cloud.waiting.learning import linear_waits
from foresail.cloud.waiting.lived_waits import first_told, lived_waits
from foresail.cloud.waiting.policies import Beliefs, Queue, WaitingPolicy, waiting_policy
from foresail.cloud.waiting.simulating import Simulated, simulate
from foresail.model.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class FittedWaits:
    """A model of waits.

    Parameters
    ----------
    model
        What the first jobs teach.
    first_job
        Place of the first job that is submitted after that: only from there on it may be used.
    """

    model: WaitModel
    first_job: int


def fitted_waits(
    jobs: TraceJobs,
    believed_seconds: Floats,
    market: Market,
    nodes: int,
    waiting_seconds: float,
    queue: Queue,
) -> FittedWaits | None:
    """A linear model of waits from the cluster's state, learned as it could be live.

    The first third of the jobs wait for so many nodes up to a limit. Learned is from those whose
    wait was over by its end, whatever came of it.

    Parameters
    ----------
    jobs, believed_seconds
        The log, and runtimes as they were believed; shape (jobs,).
    market, nodes
        The nodes that are waited for.
    waiting_seconds
        The longest wait, finite.
    queue
        Order of the waiting jobs.

    Returns
    -------
    FittedWaits or None
        None where too few waits were over to learn from.
    """

    def all_wait(many: int, every: int) -> tuple[Simulated, WaitingPolicy]:
        policy = waiting_policy("all-jobs-wait-threshold", waiting_seconds, queue=queue)
        seen = simulate(
            jobs.among(slice(many)),
            market.fixed(nodes),
            market.family,
            policy,
            Beliefs(believed_seconds[:many]),
            features_every=every,
        )
        return seen, policy

    rows = lived_waits(jobs.submit_seconds, waiting_seconds, all_wait)
    return None if rows is None else FittedWaits(linear_waits(rows), first_told(len(jobs)))
