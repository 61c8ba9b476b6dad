"""Estimates of runtimes from everything that was known at a job's submission at once.

``seen`` walks through a log and says of every job what its user had done by then; the estimators
turn that into seconds. Each learns, once a fortnight, from jobs that had ended by then (the last
``LEARNED_JOBS`` of them), and says until the first is over what ``similar`` said.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from foresail.traces.workload import Workload

Floats = NDArray[np.float64]
Estimator = Callable[[Floats, Floats], Callable[[Floats], Floats]]
"""From features and runtimes of ended jobs, a function from features to seconds."""

LEARNED_EVERY_SECONDS = 14 * 86_400.0
LEARNED_JOBS = 10_000
FEWEST_JOBS = 200
NEIGHBOURS = 15
PAIRS = 40_000
REMEMBERED = 3


@dataclass(frozen=True)
class Seen:
    """What was known of a job at its submission, beside its request.

    Seconds since the user's last submission and last end (infinite: none), how many submissions of
    the user followed each other within a minute, how many of the user's jobs are under way, how
    many of the last in a row ended before a fiftieth of their limit, the last requests (the job's
    own is the last) and the last runtimes, in seconds.
    """

    gap: float
    think: float
    burst: int
    under_way: int
    crashes: int
    asked: tuple[float, ...]
    ran: tuple[float, ...]


def requested(workload: Workload) -> Floats:
    """Requested seconds, infinite where there are none."""
    return workload.jobs["requested_seconds"].fill_null(math.inf).to_numpy().astype(np.float64)


def recorded_ends(workload: Workload) -> Floats:
    """When jobs ended as the log has it; without recorded waits as if they had started at once."""
    wait = workload.jobs["recorded_wait_seconds"].fill_null(0.0).to_numpy()
    ends: Floats = workload.jobs["submit_seconds"].to_numpy() + wait + workload.runtime_seconds
    return ends


def seen(workload: Workload) -> Iterator[Seen]:
    """What was known of each job, in order of submission."""
    submit = workload.jobs["submit_seconds"].to_numpy()
    runtime, limit, end = workload.runtime_seconds, requested(workload), recorded_ends(workload)
    users = workload.jobs["user"].to_list()
    ends: list[tuple[float, int]] = []
    last_submit: dict[str, float] = {}
    last_end: dict[str, float] = {}
    burst: dict[str, int] = defaultdict(int)
    under_way: dict[str, int] = defaultdict(int)
    crashes: dict[str, int] = defaultdict(int)
    asked: dict[str, tuple[float, ...]] = defaultdict(tuple)
    ran: dict[str, tuple[float, ...]] = defaultdict(tuple)
    for i, user in enumerate(users):
        now = float(submit[i])
        while ends and ends[0][0] <= now:
            ended, j = heapq.heappop(ends)
            other = users[j]
            last_end[other] = ended
            under_way[other] -= 1
            crashes[other] = crashes[other] + 1 if runtime[j] < 0.02 * limit[j] else 0
            ran[other] = (*ran[other][1 - REMEMBERED :], float(runtime[j]))
        gap = now - last_submit.get(user, -math.inf)
        burst[user] = burst[user] + 1 if gap < 60.0 else 0
        asked[user] = (*asked[user][1 - REMEMBERED :], float(limit[i]))
        think = now - last_end.get(user, -math.inf)
        yield Seen(gap, think, burst[user], under_way[user], crashes[user], asked[user], ran[user])
        last_submit[user] = now
        under_way[user] += 1
        heapq.heappush(ends, (float(end[i]), i))


def features(workload: Workload, medians: Floats) -> Floats:
    """Numbers per job: shape (jobs, columns); NaN for what is not known.

    First the code of the user, then what ``similar`` said, the request and what was seen, as
    logarithms to base 2 (a unit is a factor of two), and the hour of the day as a place on a
    circle.
    """
    jobs = workload.jobs
    limit = requested(workload)
    hour = jobs["submit_seconds"].to_numpy() / 86_400.0 * 2.0 * math.pi
    user = jobs["user"].fill_null("").rank("dense").to_numpy().astype(np.float64)
    known = list(seen(workload))

    def octaves(values: Any) -> Floats:
        numbers: Floats = np.asarray(values, np.float64)
        return np.log2(np.where(np.isfinite(numbers), numbers, math.nan) + 1.0)

    def past(name: str, back: int) -> Floats:
        rows = [getattr(each, name) for each in known]
        return octaves([row[-back] if len(row) >= back else math.nan for row in rows])

    columns = [
        user,
        octaves(medians),
        octaves(limit),
        octaves(workload.cpus),
        np.cos(hour),
        np.sin(hour),
        *(octaves([getattr(each, name) for each in known]) for name in ("gap", "think")),
        *(
            octaves([getattr(each, name) for each in known])
            for name in ("burst", "under_way", "crashes")
        ),
        *(past("asked", back) for back in range(2, REMEMBERED + 1)),
        *(past("ran", back) for back in range(1, REMEMBERED + 1)),
    ]
    return np.column_stack(columns)


def estimated(workload: Workload, medians: Floats, learn: Estimator) -> Floats:
    """Seconds for every job, each learned from jobs that had ended when its fortnight began."""
    submit = workload.jobs["submit_seconds"].to_numpy()
    runtime, end = workload.runtime_seconds, recorded_ends(workload)
    table = features(workload, medians)
    limit = requested(workload)
    out = medians.copy()
    ended = np.argsort(end, kind="stable")
    fortnight = np.floor((submit - submit[0]) / LEARNED_EVERY_SECONDS)
    for number in np.unique(fortnight):
        now = submit[0] + number * LEARNED_EVERY_SECONDS
        learned = ended[: np.searchsorted(end[ended], now)][-LEARNED_JOBS:]
        if learned.size >= FEWEST_JOBS:
            asked = np.flatnonzero(fortnight == number)
            out[asked] = learn(table[learned], np.maximum(runtime[learned], 1.0))(table[asked])
    return np.minimum(np.maximum(out, 1.0), limit)


def tree(table: Floats, runtime: Floats) -> Callable[[Floats], Floats]:
    """Boosted trees for the median of the logarithm of the runtime."""
    model = HistGradientBoostingRegressor(loss="absolute_error", max_iter=50, random_state=0)
    model.fit(table, np.log(runtime))
    return lambda asked: np.exp(model.predict(asked))


def tree_of_ranks(table: Floats, runtime: Floats) -> Callable[[Floats], Floats]:
    """Boosted trees for the expected rank; squared errors of ranks are Spearman's correlation."""
    ranks = np.argsort(np.argsort(runtime, kind="stable"), kind="stable") / runtime.size
    model = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    model.fit(table, ranks)
    return in_seconds(model.predict, table, runtime)


def pairwise(table: Floats, runtime: Floats) -> Callable[[Floats], Floats]:
    """A linear score with the logistic loss of pairs (Burges et al. 2005, RankNet).

    Half of the pairs are two jobs of one user, half any two. The user's code is no number to weigh;
    what is not known counts as the mean.
    """
    random = np.random.default_rng(0)
    numbers = table[:, 1:]
    empty = np.isnan(numbers).all(axis=0)
    middle = np.where(empty, 0.0, np.nanmean(np.where(empty, 0.0, numbers), axis=0))
    spread = np.nanstd(np.where(empty, 0.0, numbers), axis=0) + 1e-9

    def standard(rows: Floats) -> Floats:
        scaled = np.nan_to_num((rows[:, 1:] - middle) / spread)
        squares = scaled**2 - 1.0
        return np.column_stack((scaled, squares))

    x = standard(table)
    by_user = np.argsort(table[:, 0], kind="stable")
    place = random.integers(0, by_user.size - 1, PAIRS)
    step = random.integers(1, 50, PAIRS)
    near = np.minimum(place + step, by_user.size - 1)
    one, other = by_user[place], by_user[near]
    any_two = random.integers(0, runtime.size, (2, PAIRS))
    same = table[one, 0] == table[other, 0]
    first = np.concatenate((one[same], any_two[0]))
    second = np.concatenate((other[same], any_two[1]))
    longer = runtime[first] > runtime[second]
    apart = runtime[first] != runtime[second]
    difference = (x[first] - x[second])[apart]
    sign = np.where(longer[apart], 1.0, -1.0)
    weights = np.zeros(x.shape[1])
    for _ in range(100):
        push = sign / (1.0 + np.exp(np.clip(sign * (difference @ weights), -30.0, 30.0)))
        weights += 0.5 * (difference.T @ push) / sign.size
    return in_seconds(lambda rows: standard(rows) @ weights, table, runtime)


def in_seconds(
    score: Callable[[Floats], Any], table: Floats, runtime: Floats
) -> Callable[[Floats], Floats]:
    """Seconds with the order of a score: the runtime that has the rank that the score has."""
    scores = np.sort(score(table))
    ordered = np.sort(runtime)
    return lambda asked: np.interp(score(asked), scores, ordered)


def nearest(table: Floats, runtime: Floats) -> Callable[[Floats], Floats]:
    """The weighted median of the jobs whose requests are nearest, distance in factors of two.

    The distance is over the request, the two before it and the last runtimes (a unit each is a
    factor of two; what is not known of either is two units away); another user is ten units away.
    Weights fall by a factor of e per unit.
    """
    columns = [2, 3, *range(table.shape[1] - 2 * REMEMBERED + 1, table.shape[1])]
    known, users, logs = table[:, columns], table[:, 0], np.log(runtime)

    def one(row: Floats) -> float:
        apart = np.abs(known - row[columns])
        apart[np.isnan(apart)] = 2.0
        distance = np.sqrt((apart**2).sum(axis=1)) + 10.0 * (users != row[0])
        close = np.argpartition(distance, NEIGHBOURS)[:NEIGHBOURS]
        close = close[np.argsort(logs[close])]
        weights = np.exp(distance[close].min() - distance[close]).cumsum()
        middle = np.searchsorted(weights, 0.5 * weights[-1])
        return float(np.exp(logs[close[middle]]))

    return lambda asked: np.array([one(row) for row in asked])


ESTIMATORS: dict[str, Estimator] = {
    "nearest requests, by distance": nearest,
    "a tree": tree,
    "a tree of ranks": tree_of_ranks,
    "a score by pairs": pairwise,
}
