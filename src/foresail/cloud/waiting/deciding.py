"""The decision of a waiting policy for one job: pure, and the same in a simulation and live."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from foresail.cloud.waiting.jobs import Floats
from foresail.cloud.waiting.kernels import waiting_choice as kernel
from foresail.cloud.waiting.policies import WaitingPolicy
from foresail.model.distribution import Distribution

PARTS: Final = 20
"""Equal parts of probability that a belief about a wait is cut into."""


class ArrivalChoice(Enum):
    """Where a job goes on arrival."""

    START = kernel.START
    """To the fixed machine that is free."""
    WAIT = kernel.WAIT
    """Into the queue for fixed machines."""
    RENT = kernel.RENT
    """To a rented machine."""
    SPECULATE = kernel.SPECULATE
    """To a rented machine for a short time, then perhaps into the queue."""


@dataclass(frozen=True, slots=True)
class ArrivalCase:
    """What is certain of a job when it is decided on; money is per hour.

    Parameters
    ----------
    fits
        Whether a fixed machine is free for it.
    rent_per_hour
        Price of the rented machine that it would get.
    own_per_hour
        What it costs on a fixed machine beyond what is paid anyway.
    delay_per_hour
        What an hour's delay of it is worth (to its user).
    tried
        Whether it was tried on a rented machine already, and is a long job.
    """

    fits: bool
    rent_per_hour: float
    own_per_hour: float = 0.0
    delay_per_hour: float = 0.0
    tried: bool = False


def decide(
    policy: WaitingPolicy, case: ArrivalCase, runtime: Distribution, wait: Distribution
) -> ArrivalChoice:
    """What a policy chooses, given what is believed of a job's runtime and of its wait (s).

    Thresholds on the runtime are compared with its median; a policy that weighs costs uses its
    mean, which what is paid grows with.
    """
    believed = runtime.mean() if policy.weighing else runtime.quantile(0.5)
    levels = (np.arange(PARTS) + 0.5) / PARTS
    waits = np.array([wait.quantile(float(level)) for level in levels])
    return decide_by_numbers(policy.rules, case, believed, waits)


def decide_by_numbers(
    rules: kernel.WaitingRules, case: ArrivalCase, runtime_seconds: float, wait_quantiles: Floats
) -> ArrivalChoice:
    """As ``decide``, from a believed runtime and quantiles of the believed wait (s, ascending)."""
    delay_costs = kernel.DelayCosts(
        float(case.rent_per_hour), float(case.own_per_hour), float(case.delay_per_hour)
    )
    choose = kernel.choose_again if case.tried else kernel.choose
    return ArrivalChoice(
        choose(rules, delay_costs, case.fits, float(runtime_seconds), wait_quantiles)
    )
