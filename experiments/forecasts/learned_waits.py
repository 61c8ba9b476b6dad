"""Waits by gradient-boosted trees over what the queue looks like, trained anew as jobs start.

Trees for each quantile (histogram-based, of scikit-learn) of the logarithm of what is left to
wait. They learn from jobs that have started: as they were submitted, and at a random moment of
their waits.
"""

from __future__ import annotations

import numpy as np
from by_limits import planned_starts
from schedules import Floats, PastSchedule
from scoring import LEVELS
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

_EVERY = 300
"""Starts after which they are trained anew."""
_FEWEST = 200
_MOST = 6_000
_HOUR = 3_600.0


def features(past: PastSchedule, job: int, now: float) -> list[float]:
    """Return what is known of a waiting job and of the queue at a moment."""
    runs = (past.start <= now) & (past.end > now)
    waits = (past.submit <= now) & (past.start > now)
    ahead = waits.copy()
    ahead[job:] = False
    begun = (past.start <= now) & (past.start > now - 24 * _HOUR)
    latest = np.flatnonzero(begun)
    latest_waits = past.start[latest] - past.submit[latest]
    mine = latest_waits[past.users[latest] == past.users[job]]
    alike = latest_waits[past.queues[latest] == past.queues[job]]
    area = past.cpus * past.limits
    left = np.maximum(past.start[runs] + past.limits[runs] - now, 0.0)
    machine = past.processors

    def mean(values: Floats) -> float:
        return float(np.log1p(values).mean()) if len(values) else -1.0

    planned = planned_starts(past, now, np.array([job]))[0] - now
    waiting_since = now - past.submit[waits]
    return [
        past.cpus[job],
        past.limits[job],
        float(past.queues[job]),
        (now / _HOUR) % 24,
        (now / _HOUR / 24) % 7,
        now - past.submit[job],
        float(waits.sum()),
        float(ahead.sum()),
        past.cpus[waits].sum() / machine,
        area[waits].sum() / machine,
        area[ahead].sum() / machine,
        float((ahead & (past.users == past.users[job])).sum()),
        past.cpus[runs].sum() / machine,
        float(runs.sum()),
        float(past.cpus[runs] @ left) / machine,
        float(waiting_since.max(initial=0.0)),
        mean(latest_waits),
        mean(latest_waits[-20:]),
        mean(mine),
        mean(alike),
        float(np.log1p(max(planned, 0.0))),
    ]


@threadpool_limits.wrap(limits=1)  # more threads wait for each other
def stated_waits(past: PastSchedule, jobs: Floats, asked: Floats) -> Floats:
    """Return quantiles of what is left to wait (seconds), shape (questions, 3), in order of time.

    nan where too little is known.
    """
    random = np.random.default_rng(2)
    waited = np.flatnonzero(past.start - past.submit > 1.0)[-2 * _MOST :]
    by_start = waited[np.argsort(past.start[waited], kind="stable")]
    rows: list[list[float]] = []
    targets: list[float] = []
    models: list[HistGradientBoostingRegressor] = []
    at, trained = 0, 0
    answers = np.full((len(jobs), len(LEVELS)), np.nan)
    for question, (job, now) in enumerate(zip(jobs.tolist(), asked.tolist(), strict=True)):
        while at < len(by_start) and past.start[by_start[at]] <= now:
            begun = int(by_start[at])
            wait = past.start[begun] - past.submit[begun]
            for then in (past.submit[begun], past.submit[begun] + wait * random.random()):
                rows.append(features(past, begun, float(then)))
                targets.append(float(np.log1p(past.start[begun] - then)))
            at += 1
        if at >= _FEWEST and (not models or at - trained >= max(_EVERY, at // 10)):
            models, trained = _trained(np.array(rows[-_MOST:]), np.array(targets[-_MOST:])), at
        if models:
            row = np.array([features(past, job, now)])
            found = [float(model.predict(row)[0]) for model in models]
            answers[question] = np.maximum(0.0, np.expm1(np.sort(found)))
    return answers


def _trained(rows: Floats, targets: Floats) -> list[HistGradientBoostingRegressor]:
    return [
        HistGradientBoostingRegressor(
            loss="quantile",
            quantile=level,
            max_iter=80,
            max_leaf_nodes=15,
            min_samples_leaf=20,
            learning_rate=0.1,
            random_state=0,
            early_stopping=False,
        ).fit(rows, targets)
        for level in LEVELS
    ]
