"""What the first third of a log teaches of waits, for rules that go by them afterwards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.advising.market import Market
from foresail.cloud.waiting.jobs import Floats, TraceJobs
from foresail.cloud.waiting.learning import linear_waits, wait_rows
from foresail.cloud.waiting.policies import Beliefs, Queue, waiting_policy
from foresail.cloud.waiting.simulating import simulate
from foresail.kernels.wait_model import WaitModel

LEARNED_SHARE: Final = 1.0 / 3.0
_EXAMPLES: Final = 30_000
_FEWEST: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class Taught:
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


def taught(
    jobs: TraceJobs,
    believed_seconds: Floats,
    market: Market,
    nodes: int,
    waiting_seconds: float,
    queue: Queue,
) -> Taught | None:
    """A linear model of waits from the cluster's state, learned as somebody could live.

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
        Order of those who wait.

    Returns
    -------
    Taught or None
        None where too few waits were over to learn from.
    """
    first_job = math.ceil(LEARNED_SHARE * len(jobs))
    end = jobs.submit_seconds[min(first_job, len(jobs) - 1)]
    many = int(np.searchsorted(jobs.submit_seconds, end - waiting_seconds))
    if many < _FEWEST:
        return None
    policy = waiting_policy("ajw-t", waiting_seconds, queue=queue)
    seen = simulate(
        jobs.among(slice(many)),
        market.fixed(nodes),
        market.family,
        policy,
        Beliefs(believed_seconds[:many]),
        features_every=math.ceil(many / _EXAMPLES),
    )
    rows = wait_rows(seen, policy)
    if rows.wait_seconds.size < _FEWEST:
        return None
    return Taught(linear_waits(rows), first_job)
