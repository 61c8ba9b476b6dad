"""What the first third of a log teaches of waits, for rules that go by them afterwards."""

from __future__ import annotations

from foresail.cloud.advising.market import Market
from foresail.cloud.waiting.jobs import TraceJobs
from foresail.cloud.waiting.kernels.wait_model import WaitModel
from foresail.cloud.waiting.learning import linear_waits
from foresail.cloud.waiting.lived_waits import lived_waits
from foresail.cloud.waiting.policies import Beliefs, Queue, WaitingPolicy, waiting_policy
from foresail.cloud.waiting.simulating import Simulated, simulate
from foresail.model.arrays import Floats


def fitted_waits(
    jobs: TraceJobs,
    believed_seconds: Floats,
    market: Market,
    nodes: int,
    waiting_seconds: float,
    queue: Queue,
) -> WaitModel | None:
    """A linear model of waits from the cluster's state, learned as it could be live.

    The first third of the jobs wait for so many nodes up to a limit. Learned is from those whose
    wait was over by its end, whatever came of it; None where these are too few. It may be used from
    ``first_told`` on.

    ``believed_seconds`` are runtimes as they were believed, shape (jobs,); the limit is finite.
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
    return None if rows is None else linear_waits(rows)
