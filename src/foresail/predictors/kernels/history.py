"""A user's history as the twenty features that the regressions learn from.

Source: Reis' thesis, table 2.2. History is what has ended, in order of ending; running
jobs are those started and not ended. Rows of zeros are a user (or slot) without history.
"""

from __future__ import annotations

import math
from typing import Final

from foresail.kernels.columns import CPUS, REQUESTED
from foresail.kernels.compile import Floats, bare_step, part
from foresail.kernels.steps import PREDICTOR_STEP, PredictorInputs
from foresail.predictors.kernels.request import DAY_SECONDS, limit_or_stand_in, user_row

FEATURES: Final = 20
WEEK_SECONDS: Final = 604_800.0

COMPLETED: Final = 0
LAST: Final = 1
SECOND: Final = 2
THIRD: Final = 3
RUNTIME_SUM: Final = 4
LONGEST: Final = 5
CPUS_SUM: Final = 6
LAST_END: Final = 7
RUNNING: Final = 8
RUNNING_CPUS: Final = 9
START_SUM: Final = 10
OLDEST: Final = 11
NEWEST: Final = 12
USER_COLUMNS: Final = 13
"""A user's row: ended jobs (count, last three runtimes, sum and longest of runtimes, sum of cpus,
time of the last end), then running jobs (count, cpus, sum of start times, and the ends of their
list in order of start: slot + 1, or 0)."""

START: Final = 0
OLDER: Final = 1
NEWER: Final = 2
FIRST_FEATURE: Final = 3
JOB_COLUMNS: Final = FIRST_FEATURE + FEATURES
"""A job's row: start time (nan while it waits), its neighbours among the user's running jobs
(slot + 1, or 0), then the features at submission."""


@part
def _mean_of_last(user: Floats, count: int) -> float:
    """Mean of the last ``count`` (up to three) runtimes, of those there are; 0 without any."""
    seen = min(int(user[COMPLETED]), count)
    if seen == 0:
        return 0.0
    total = 0.0
    for i in range(seen):
        total += user[LAST + i]
    return total / seen


@part
def write_features(inputs: PredictorInputs) -> None:
    """Fill the job's row: a waiting job with its features by now."""
    now, jobs, spec = inputs.now, inputs.jobs, inputs.specs[inputs.slot]
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    job = jobs[inputs.slot]
    # Numbers of features are those of the published table, from 0.
    job[START] = math.nan
    job[OLDER] = 0.0
    job[NEWER] = 0.0
    features = job[FIRST_FEATURE : FIRST_FEATURE + FEATURES]
    cpus = spec[CPUS]
    completed = user[COMPLETED]
    running = user[RUNNING]
    usual_cpus = user[CPUS_SUM] / completed if completed > 0.0 else 0.0
    features[0] = limit_or_stand_in(spec[REQUESTED], user[LONGEST])
    features[1] = user[LAST]
    features[2] = user[SECOND]
    features[3] = user[THIRD]
    for count in range(2, 4):
        features[2 + count] = _mean_of_last(user, count)
    features[6] = user[RUNTIME_SUM] / completed if completed > 0.0 else 0.0
    features[7] = cpus
    features[8] = usual_cpus
    features[9] = cpus / usual_cpus if usual_cpus > 0.0 else 1.0
    features[10] = user[RUNNING_CPUS] / running if running > 0.0 else 0.0
    features[11] = running
    features[12] = 0.0
    features[13] = 0.0
    if running > 0.0:
        features[12] = max(now - jobs[int(user[OLDEST]) - 1, START], 0.0)
        features[13] = max(running * now - user[START_SUM], 0.0)
    features[14] = user[RUNNING_CPUS]
    features[15] = max(now - user[LAST_END], 0.0) if completed > 0.0 else 0.0
    day = 2.0 * math.pi * (now % DAY_SECONDS) / DAY_SECONDS
    week = 2.0 * math.pi * (now % WEEK_SECONDS) / WEEK_SECONDS
    features[16] = math.cos(day)
    features[17] = math.sin(day)
    features[18] = math.cos(week)
    features[19] = math.sin(week)


@bare_step(PREDICTOR_STEP)
def started(inputs: PredictorInputs) -> None:
    """Enter the job among its user's running jobs, as the newest."""
    slot, now, jobs = inputs.slot, inputs.now, inputs.jobs
    user = inputs.users[user_row(inputs.specs, slot)]
    job = jobs[slot]
    job[START] = now
    job[OLDER] = user[NEWEST]
    job[NEWER] = 0.0
    if user[NEWEST] > 0.0:
        jobs[int(user[NEWEST]) - 1, NEWER] = slot + 1
    else:
        user[OLDEST] = slot + 1
    user[NEWEST] = slot + 1
    user[RUNNING] += 1.0
    user[RUNNING_CPUS] += inputs.specs[slot, CPUS]
    user[START_SUM] += now


@part
def leave(inputs: PredictorInputs) -> None:
    """Take the job out of its user's running jobs, if it is among them."""
    jobs = inputs.jobs
    job = jobs[inputs.slot]
    if math.isnan(job[START]):
        return
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    if job[OLDER] > 0.0:
        jobs[int(job[OLDER]) - 1, NEWER] = job[NEWER]
    else:
        user[OLDEST] = job[NEWER]
    if job[NEWER] > 0.0:
        jobs[int(job[NEWER]) - 1, OLDER] = job[OLDER]
    else:
        user[NEWEST] = job[OLDER]
    user[RUNNING] -= 1.0
    if user[RUNNING] > 0.0:
        user[RUNNING_CPUS] -= inputs.specs[inputs.slot, CPUS]
        user[START_SUM] -= job[START]
    else:  # exact again after fractional cpus and times
        user[RUNNING_CPUS] = 0.0
        user[START_SUM] = 0.0
    job[START] = math.nan


@part
def record(inputs: PredictorInputs) -> None:
    """Add an ended job to its user's history."""
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    user[THIRD] = user[SECOND]
    user[SECOND] = user[LAST]
    user[LAST] = inputs.runtime
    user[COMPLETED] += 1.0
    user[RUNTIME_SUM] += inputs.runtime
    user[LONGEST] = max(user[LONGEST], inputs.runtime)
    user[CPUS_SUM] += inputs.specs[inputs.slot, CPUS]
    user[LAST_END] = inputs.now
