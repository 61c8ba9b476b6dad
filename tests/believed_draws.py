"""Draws of runtimes as a policy's predictor believes, by which futures can be foretold."""

import zlib
from functools import partial

import numpy as np

from foresail.explain import forecast


def draw_runtimes(pending, running, now, count, seed):
    """So many possible runtimes (seconds) of each job that waits or runs, as it is believed now.

    Those of a running job exceed what it has run for; if its belief leaves none that does, they are
    its current estimate. Draws depend on the seed and the job's id alone.
    """
    drawn = {}
    for each in pending:
        job_id = each.job.job_id
        drawn[job_id] = each.prediction.sample(_random_of(job_id, seed), count)
    for runs in running:
        job_id = runs.job.job_id
        elapsed = runs.elapsed_seconds(now) / runs.slowdown
        if runs.prediction.survival(elapsed) > 0.0:
            belief = runs.prediction.given(elapsed)
            drawn[job_id] = belief.sample(_random_of(job_id, seed), count)
        else:
            expected = runs.expected_end_seconds - runs.start_seconds
            drawn[job_id] = np.full(count, expected / runs.slowdown)
    return drawn


def _random_of(job_id, seed):
    return np.random.default_rng([seed, zlib.crc32(job_id.encode())])


def draw_believed(waiting, running, now, count, seed):
    """The same as tables: runtimes of waiting and of running jobs, shapes (count, jobs)."""
    drawn = draw_runtimes(waiting.pending, running, now, count, seed)
    waits = [drawn[each.job.job_id] for each in waiting.pending]
    runs = [drawn[each.job.job_id] for each in running]
    return tuple(np.array(some).reshape(-1, count).T for some in (waits, runs))


forecast_waiting = partial(forecast.forecast_waiting, draw=draw_believed)
forecast_running = partial(forecast.forecast_running, draw=draw_believed)
