"""Sums over the jobs of a simulated waiting policy."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.kernels.placing import CORES, GPUS
from foresail.cloud.waiting.kernels.waiting import (
    AFTER_TRIAL,
    FIXED,
    RENT,
    TRIED,
    WORK_OF,
    Outcomes,
    Shapes,
    TraceColumns,
)
from foresail.cloud.waiting.kernels.waiting_choice import WaitingRules
from foresail.kernels.compile import unlocked_kernel

JOBS: Final = 0
WAIT: Final = 1
WAITED: Final = 2
ON_DEMAND_COST: Final = 3
RENTED_COST: Final = 4
TRIAL_COST: Final = 5
WORK: Final = 6
FIXED_WORK: Final = 7
RENTED_JOBS: Final = 8
TRIED_JOBS: Final = 9
EXPIRED_JOBS: Final = 10
DELAY_COST: Final = 11
FIXED_CORE_SECONDS: Final = 12
FIXED_GPU_SECONDS: Final = 13
TOTALS: Final = 14
"""Jobs; seconds waited, and jobs that waited; cost if all were rented; cost of rented runs and of
trials; the work, and that on fixed machines; jobs rented to the end, tried first, and rented
after a wait; what the delays were worth; and use of the fixed machines' cores and gpus
(thousandths)."""

_HOUR: Final = 3600.0


@unlocked_kernel
def add_up(
    first: int,
    last: int,
    trial_price: float,
    rules: WaitingRules,
    jobs: TraceColumns,
    shapes: Shapes,
    outcomes: Outcomes,
    totals: NDArray[np.float64],
) -> None:
    """Fill in ``totals`` for the jobs from ``first`` to before ``last``.

    ``trial_price`` is the price of a machine for a trial relative to the on-demand price, which a
    trial pays again after its machine was taken back.
    """
    for total in range(TOTALS):
        totals[total] = 0.0
    for job in range(first, last):
        shape = jobs.shape[job]
        runtime = jobs.runtime[job]
        place = outcomes.place[job]
        hourly = shapes.asked[shape, RENT] / _HOUR
        work = runtime * shapes.asked[shape, WORK_OF]
        wait = outcomes.start[job] - jobs.submit[job]
        totals[JOBS] += 1.0
        totals[WAIT] += wait
        totals[WAITED] += wait > 0.0
        if jobs.delay.size > 0:
            totals[DELAY_COST] += jobs.delay[job] * wait / _HOUR
        totals[ON_DEMAND_COST] += runtime * hourly
        totals[WORK] += work
        if place >= TRIED:
            totals[TRIED_JOBS] += 1.0
            tried = min(runtime, rules.speculation_seconds)
            lost = jobs.lost[job] if jobs.lost.size > 0 else 0.0
            if lost > 0.0:
                totals[TRIAL_COST] += (lost * trial_price + tried) * hourly
            else:
                totals[TRIAL_COST] += tried * trial_price * hourly
        if place == TRIED:
            totals[RENTED_JOBS] += 1.0
        elif place % AFTER_TRIAL == FIXED:
            totals[FIXED_WORK] += work
            totals[FIXED_CORE_SECONDS] += runtime * shapes.asked[shape, CORES]
            totals[FIXED_GPU_SECONDS] += runtime * shapes.asked[shape, GPUS]
        else:
            totals[RENTED_JOBS] += 1.0
            totals[EXPIRED_JOBS] += place % AFTER_TRIAL == 2
            totals[RENTED_COST] += runtime * hourly
