"""The decision of a waiting policy for one job: pure, and the same in a simulation and live."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from foresail.cloud.waiting.kernels import waiting_choice as kernel
from foresail.model.arrays import Floats


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
    """What is certain of a job when it is decided on; money is per hour."""

    fits: bool
    """Whether a fixed machine is free for it."""
    rent_per_hour: float
    """Price of the rented machine that it would get."""
    own_per_hour: float = 0.0
    """What it costs on a fixed machine beyond what is paid anyway."""
    delay_per_hour: float = 0.0
    """What an hour's delay of it is worth (to its user)."""
    tried: bool = False
    """Whether it was tried on a rented machine already, and is a long job."""


def decide(
    rules: kernel.WaitingRules, case: ArrivalCase, runtime_seconds: float, wait_quantiles: Floats
) -> ArrivalChoice:
    """What a policy's rules choose for a job.

    ``runtime_seconds`` is what is believed of its runtime, ``wait_quantiles`` are quantiles of its
    believed wait (seconds, ascending).
    """
    delay_costs = kernel.DelayCosts(
        float(case.rent_per_hour), float(case.own_per_hour), float(case.delay_per_hour)
    )
    choose = kernel.choose_again if case.tried else kernel.choose
    return ArrivalChoice(
        choose(rules, delay_costs, case.fits, float(runtime_seconds), wait_quantiles)
    )
