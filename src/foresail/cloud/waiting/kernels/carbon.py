"""When to start a job so that its power is greenest."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part, unlocked_kernel


@part
def emitted_by(intensity: NDArray[np.float64], sums: NDArray[np.float64], steps: float) -> float:
    """Intensity summed over the time from 0, which is counted in steps; it repeats at its end.

    ``sums[i]`` is the sum of the first ``i`` steps.
    """
    count = intensity.size
    rounds = math.floor(steps / count)
    rest = steps - rounds * count
    whole = min(int(rest), count - 1)
    return float(rounds * sums[count] + sums[whole] + (rest - whole) * intensity[whole])


@unlocked_kernel
def emitted_between(
    intensity: NDArray[np.float64],
    sums: NDArray[np.float64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    emitted: NDArray[np.float64],
) -> None:
    """Fill in ``emitted``: intensity summed from each start to its end (in steps)."""
    for run in range(start.size):
        before = emitted_by(intensity, sums, start[run])
        emitted[run] = emitted_by(intensity, sums, end[run]) - before


@part
def mean_emission(
    intensity: NDArray[np.float64],
    sums: NDArray[np.float64],
    start: float,
    runtimes: NDArray[np.float64],
) -> float:
    """Emission of a run from ``start``, averaged over equally likely runtimes (all in steps)."""
    before = emitted_by(intensity, sums, start)
    total = 0.0
    for k in range(runtimes.size):
        total += emitted_by(intensity, sums, start + runtimes[k]) - before
    return total / runtimes.size


@unlocked_kernel
def greenest_starts(
    intensity: NDArray[np.float64],
    sums: NDArray[np.float64],
    submit: NDArray[np.float64],
    runtimes: NDArray[np.float64],
    patience: NDArray[np.float64],
    delay_value: NDArray[np.float64],
    start: NDArray[np.float64],
) -> None:
    """Fill in ``start``: least emission plus ``delay_value`` a step of delay (times in steps).

    ``runtimes`` has a row of equally likely runtimes for each job. The sum is piecewise linear in
    the start, with corners where it or an end meets a change of intensity: one of them is best, or
    the latest start. Of equals, the earliest is taken, and what rounding could make up is equal.
    """
    for job in range(submit.size):
        now, last = submit[job], submit[job] + patience[job]
        best, best_start = mean_emission(intensity, sums, now, runtimes[job]), now
        # Emissions are differences of sums from time 0 on, and no more exact than those.
        slack = 1e-14 * abs(emitted_by(intensity, sums, last)) + 1e-12 * abs(best)
        for corner in range(-1, runtimes.shape[1]):
            offset = 0.0 if corner < 0 else runtimes[job, corner]
            edge = math.floor(now + offset) + 1.0
            at = now
            while at < last:
                at = min(max(edge - offset, now), last)
                cost = mean_emission(intensity, sums, at, runtimes[job])
                cost += delay_value[job] * (at - now)
                if cost < best - slack or (cost == best and at < best_start):
                    best, best_start = cost, at
                edge += 1.0
        start[job] = best_start
