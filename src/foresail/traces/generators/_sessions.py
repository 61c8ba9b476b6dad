"""Users for generated jobs: sessions of similar jobs, without changing any marginal distribution.

The jobs and the arrival times stay exactly those that were drawn; only which job comes at which
arrival is arranged, and to whom it belongs. Jobs of one width and nearly one runtime make an
application; an application belongs to one user (activity after Zipf), and its jobs come in
sessions: the habits that history-based predictors live on. The idea follows D. G. Feitelson,
"Workload Modeling for Computer Systems Performance Evaluation", 2015, chapter 8 (locality of
sampling and user-based models).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.arrays import Floats, Integers

APPLICATION_MEDIAN_JOBS: Final = 30.0
APPLICATION_LOG_DEVIATION: Final = 1.2
APPLICATION_LIFE_SECONDS: Final = 21 * 86400.0
"""Time that an application is in use, unless its work takes longer."""
APPLICATION_LARGEST_SHARE: Final = 0.03
"""No application makes up more than this share of the load while it is in use."""
RUNTIME_LOG_DEVIATION: Final = 0.7
"""Scatter of runtimes of one application: the standard deviation, in the natural logarithm, of the
noise under which jobs count as similar."""
ACTIVITY_EXPONENT: Final = 1.0
"""Exponent of Zipf's law for the number of applications a user has."""
SESSION_MEAN_JOBS: Final = 4.0
SESSION_MEAN_GAP_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Arrivals by user and application; arrays of shape (jobs,), in order."""

    job: Integers
    """Index of the drawn job that arrives here."""
    user: Integers
    application: Integers
    session: Integers
    """Numbers from zero."""


def arrange(
    arrivals: Floats,
    sizes: Floats,
    runtimes: Floats,
    users: int,
    random: np.random.Generator,
) -> Arrangement:
    """Arrange drawn jobs in sessions of users.

    Parameters
    ----------
    arrivals
        Submit times in seconds, ascending; shape (jobs,).
    sizes, runtimes
        Processors and seconds of each drawn job; shape (jobs,).
    users
        Number of users.
    random
        Where chance comes from.
    """
    jobs = arrivals.size
    noisy = np.log(runtimes) + RUNTIME_LOG_DEVIATION * random.standard_normal(jobs)
    application_in_turn = _applications(jobs, random)
    similar = np.lexsort((noisy, sizes))
    shuffled = np.lexsort((random.random(jobs), application_in_turn))
    job_in_turn = similar[shuffled]

    begins = np.diff(application_in_turn, prepend=-1) != 0
    begins |= random.random(jobs) < 1.0 / SESSION_MEAN_JOBS
    session_in_turn = np.cumsum(begins) - 1
    work = (sizes * runtimes)[job_in_turn]
    life = _lives(float(arrivals[-1] - arrivals[0]), application_in_turn, work)
    gaps = runtimes[job_in_turn] + random.exponential(SESSION_MEAN_GAP_SECONDS, jobs)
    wanted = _wanted_times(arrivals, application_in_turn, begins, life, gaps, random)

    rank = np.argsort(wanted, kind="stable")
    applications = int(application_in_turn[-1]) + 1
    weights = np.arange(1, users + 1, dtype=np.float64) ** -ACTIVITY_EXPONENT
    owner = random.choice(users, applications, p=weights / weights.sum())
    application = application_in_turn[rank]
    return Arrangement(
        job=job_in_turn[rank],
        user=owner[application].astype(np.int64),
        application=application,
        session=session_in_turn[rank],
    )


def _applications(jobs: int, random: np.random.Generator) -> Integers:
    """Application of each job in turn: log-normal numbers of jobs, one application after another.

    Ascending, from zero; shape (jobs,).
    """
    lengths = np.empty(0, dtype=np.int64)
    while lengths.sum() < jobs:
        more = random.lognormal(
            np.log(APPLICATION_MEDIAN_JOBS), APPLICATION_LOG_DEVIATION, max(jobs // 50, 16)
        )
        lengths = np.concatenate([lengths, np.ceil(more).astype(np.int64)])
    return np.repeat(np.arange(lengths.size), lengths)[:jobs]


def _lives(span_seconds: float, application: Integers, work: Floats) -> Floats:
    """Share of the log's span that each application is in use: longer for more work."""
    work_of = np.bincount(application, weights=work)
    by_work: Floats = work_of / (APPLICATION_LARGEST_SHARE * work_of.sum())
    shortest = APPLICATION_LIFE_SECONDS / max(span_seconds, APPLICATION_LIFE_SECONDS)
    return np.clip(by_work, shortest, 1.0)


def _wanted_times(
    arrivals: Floats,
    application: Integers,
    begins: NDArray[np.bool_],
    life: Floats,
    gaps: Floats,
    random: np.random.Generator,
) -> Floats:
    """Return when each job would like to come: soon after the one before it in its session.

    Sessions begin at arrival times, so that they follow the daily cycle, within their application's
    life; lives and sessions that reach past an end of the log go on at the other end.
    """
    jobs = arrivals.size
    birth = random.random(life.size)
    first = np.flatnonzero(begins)
    owner = application[first]
    start = np.mod(birth[owner] + life[owner] * random.random(first.size), 1.0)
    start_seconds = arrivals[(start * jobs).astype(np.int64)]
    session = np.cumsum(begins) - 1
    passed = np.cumsum(gaps) - gaps
    wanted = start_seconds[session] + passed - passed[first][session]
    span = max(float(arrivals[-1] - arrivals[0]), 1.0)
    wrapped: Floats = arrivals[0] + np.mod(wanted - arrivals[0], span)
    return wrapped
