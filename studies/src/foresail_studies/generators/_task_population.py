"""A population of jobs with tasks that has SLearn's published characteristics.

Jobs belong to names. A job's mean task runtime varies about its name's (over time), its tasks vary
about the job's mean (over space). Both coefficients of variation are log-normal over jobs, with the
medians and 90 % quantiles of SLearn's table 4; the one over space is that of the mean of 3 % of the
tasks, as the table has it. Widths and sizes are mixed as in table 9 (published for the 2Sigma trace
alone, and taken for all), with the share of jobs of three and four tasks that section 5.3.5 gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import Final

import numpy as np
import polars as pl

from foresail.model.arrays import Booleans, Floats, Integers
from foresail_studies.generators._arrivals import draw_arrivals
from foresail_studies.generators._task_jobs import JobsWithTasks


@dataclass(frozen=True, slots=True)
class Calibration:
    """Published characteristics of one of SLearn's traces (its tables 4 and 5)."""

    time: tuple[float, float]
    space: tuple[float, float]
    """Median, and standard deviation of the natural logarithm, of the coefficient of variation."""
    load: float
    """Mean load over windows of 1000 s."""
    scatter: float
    """How far the sizes of names lie about their mode, the modes (of small and of large jobs) being
    2 apart; chosen so that the median of the windows' loads is near the published one."""
    few: float = (0.5850 - 0.1884) / 0.8116
    """Share of jobs of three or four tasks among those with three or more (section 5.3.5)."""
    tasks: float = 15.0
    """Median number of tasks of the others, before it is held between 5 and 150 (chosen)."""


CALIBRATIONS: Final = MappingProxyType(
    {
        "2strace": Calibration((1.00, 0.883), (0.18, 0.872), 1.05, 0.1),
        "gtrace11": Calibration((0.20, 1.010), (0.04, 2.087), 1.01, 0.8),
        "gtrace19": Calibration((1.35, 0.166), (0.70, 0.501), 1.04, 1.2),
    }
)

SMALL_SECONDS: Final = 1000.0
THIN_BELOW: Final = 3
WIDEST: Final = 150
_THIN: Final = 0.1884
_THIN_SMALL: Final = 4.55 / 18.84
_WIDE_SMALL: Final = 28.73 / 81.16
_THIN_WORK: Final = 0.0542
_WIDE_SMALL_WORK: Final = 0.06 / 94.58
_ONE_TASK: Final = 0.6
"""Share among the thin jobs (chosen)."""
_WIDTH_LOG_DEVIATION: Final = 1.0
_WIDTH_SCATTER: Final = 0.3

_PILOT_SHARE: Final = 0.03
_JOBS_PER_NAME: Final = 60
_LEAST_JOBS_PER_NAME: Final = 20
_NAMES_PER_USER: Final = 3
_NAMES_PER_APPLICATION: Final = 2
_ARRIVAL_VARIABILITY: Final = 2.0
_MOST_OF_POSSIBLE: Final = 0.9
_STEPS: Final = 60


def calibrated(jobs: int, calibration: Calibration, random: np.random.Generator) -> JobsWithTasks:
    """So many jobs over a length of time of one second each on average (to be rescaled).

    Published are the shares of jobs and of work by width and by size: width and size are taken as
    independent.
    """
    name = _names(jobs, random)
    names = int(name.max()) + 1
    members = np.bincount(name)
    thin_name = _share_of_names(members, _THIN, random)
    thin = thin_name[name]
    width = _widths(name, thin, calibration, random)
    centre = _centres(members, thin_name, calibration.scatter, random)
    variation = calibration.time[0] * np.exp(calibration.time[1] * _stratified(members, random))
    order = np.argsort(name, kind="stable")
    relative = np.empty(jobs)
    relative[order] = spread(members, variation, random)
    mean = _means(width, thin, centre[name], relative)
    over_space = calibration.space[0] * np.exp(
        calibration.space[1] * _stratified(np.ones(jobs, dtype=np.int64), random)
    )
    tasks = spread(width, over_space * np.sqrt(_PILOT_SHARE * width), random)
    features = pl.DataFrame(
        {
            "user": np.char.mod("user%d", np.arange(names) // _NAMES_PER_USER + 1)[name],
            "executable": np.char.mod("name%d", np.arange(names) + 1)[name],
            "application": np.char.mod(
                "application%d", np.arange(names) // _NAMES_PER_APPLICATION + 1
            )[name],
        }
    )
    submit = draw_arrivals(jobs, float(jobs), _ARRIVAL_VARIABILITY, random)
    return JobsWithTasks(submit, width, tasks * np.repeat(mean, width), features)


def _names(jobs: int, random: np.random.Generator) -> Integers:
    """The name of each job, from 0; each has at least twenty jobs where there are as many."""
    names = max(jobs // _JOBS_PER_NAME, 1)
    least = min(_LEAST_JOBS_PER_NAME, jobs // names)
    shares = random.exponential(1.0, names)
    rest = random.choice(names, jobs - least * names, p=shares / shares.sum())
    name: Integers = random.permutation(np.concatenate([np.repeat(np.arange(names), least), rest]))
    return name


def _share_of_names(members: Integers, share: float, random: np.random.Generator) -> Booleans:
    """Return whether each name is one of those that together have this share of the jobs."""
    order = random.permutation(members.size)
    sums = np.concatenate(([0], np.cumsum(members[order])))
    chosen = np.zeros(members.size, dtype=np.bool_)
    chosen[order[: int(np.argmin(np.abs(sums - share * members.sum())))]] = True
    return chosen


def _stratified(weight: Integers, random: np.random.Generator) -> Floats:
    """Standard normal values whose distribution, so weighted, is as exact as can be."""
    order = random.permutation(weight.size)
    sums = np.cumsum(weight[order])
    levels = (sums - weight[order] / 2.0) / sums[-1]
    values = np.empty(weight.size)
    values[order] = [NormalDist().inv_cdf(level) for level in levels.tolist()]
    return values


def _centres(
    members: Integers, thin: Booleans, scatter: float, random: np.random.Generator
) -> Floats:
    """Centre of each name's logarithm of the size: one mode for small jobs, one for large ones."""
    centres = np.empty(members.size)
    for part, small in ((thin, _THIN_SMALL), (~thin, _WIDE_SMALL)):
        if part.any():
            normal = _stratified(members[part], random)
            large = normal > NormalDist().inv_cdf(small)
            centres[part] = np.where(large, 1.0, -1.0) + scatter * normal
    return centres


def _widths(
    name: Integers, thin: Booleans, calibration: Calibration, random: np.random.Generator
) -> Integers:
    names = int(name.max()) + 1
    base = calibration.tasks * np.exp(_WIDTH_LOG_DEVIATION * random.standard_normal(names))
    scatter = np.exp(_WIDTH_SCATTER * random.standard_normal(name.size))
    many = np.clip(np.rint(base[name] * scatter), THIN_BELOW + 2, WIDEST)
    few = random.integers(THIN_BELOW, THIN_BELOW + 2, name.size)
    wide = np.where(random.random(name.size) < calibration.few, few, many)
    one_or_two = np.where(random.random(name.size) < _ONE_TASK, 1, 2)
    return np.where(thin, one_or_two, wide).astype(np.int64)


def spread(members: Integers, variation: Floats, random: np.random.Generator) -> Floats:
    """Positive values of mean 1 in each group of so many members, group by group.

    The coefficient of variation (population standard deviation over mean) of each group is exactly
    the one wished; no group can have more than the root of its size less one, of which 90 % at most
    are given. Shapes are (groups,), and of the result (sum of members,).
    """
    begins = np.cumsum(members) - members
    wished = np.minimum(variation, _MOST_OF_POSSIBLE * np.sqrt(members - 1.0))
    normal = random.standard_normal(int(members.sum()))
    normal -= np.repeat(np.maximum.reduceat(normal, begins), members)

    def values(strength: Floats) -> Floats:
        raised = np.exp(np.repeat(strength, members) * normal)
        return raised / np.repeat(np.add.reduceat(raised, begins) / members, members)

    def reached(strength: Floats) -> Floats:
        squares = np.add.reduceat((values(strength) - 1.0) ** 2, begins)
        root: Floats = np.sqrt(squares / members)
        return root

    low, high = np.zeros(members.size), np.full(members.size, 1000.0)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        below = reached(middle) < wished
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return values(low)


def _means(width: Integers, thin: Booleans, centre: Floats, relative: Floats) -> Floats:
    """Mean task runtime of each job so that counts and work are shared out as in table 9.

    Wide and thin jobs each have their scale and the spread of their names' centres: the scale puts
    as many jobs below 1000 s as are to be small, the spread gives the small wide jobs and the thin
    jobs their share of the work.
    """

    def sizes(part: Booleans, small: float, spread_of_names: float) -> Floats:
        size = width[part] * relative[part] * np.exp(spread_of_names * centre[part])
        scaled: Floats = size * (SMALL_SECONDS / np.quantile(size, small))
        return scaled

    size = np.empty(width.size)
    wide = ~thin
    if wide.any():

        def small_work(spread_of_names: float) -> float:
            drawn = sizes(wide, _WIDE_SMALL, spread_of_names)
            return float(drawn[drawn < SMALL_SECONDS].sum() / drawn.sum())

        size[wide] = sizes(wide, _WIDE_SMALL, _falling(small_work, _WIDE_SMALL_WORK))
    if thin.any():
        total = float(size[wide].sum()) * _THIN_WORK / (1.0 - _THIN_WORK)

        def less_work(spread_of_names: float) -> float:
            return -float(sizes(thin, _THIN_SMALL, spread_of_names).sum())

        size[thin] = sizes(thin, _THIN_SMALL, _falling(less_work, -total))
    return size / width


def _falling(function: Callable[[float], float], wished: float) -> float:
    """Find where a falling function has this value, between 0 and 6."""
    low, high = 0.0, 6.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if function(middle) > wished else (low, middle)
    return high
