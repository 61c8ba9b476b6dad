"""Generator ``lublin``: the Lublin-Feitelson model, with users and requested times on top.

Source: U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", Journal of Parallel and Distributed Computing 63(11), 2003; the
constants are those of the authors' program ``m_lublin99.c``.

With users, the jobs and the arrival times stay exactly those that were drawn; only which job comes
at which arrival is arranged, and to whom it belongs. Jobs of one width and nearly one runtime make
an application; an application belongs to one user (activity after Zipf), and its jobs come in
sessions: the habits that history-based predictors live on (D. G. Feitelson, "Workload Modeling for
Computer Systems Performance Evaluation", 2015, chapter 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import require, require_at_least, require_choice, require_positive
from foresail.model.registry import register
from foresail.traces.generating import gangs, generator
from foresail.traces.workload import Workload, WorkloadMeta

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
    arrivals: Floats, sizes: Floats, runtimes: Floats, users: int, random: np.random.Generator
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
    begins: Booleans,
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


BUCKETS: Final = 48
BUCKET_SECONDS: Final = 1800.0
DAY_SECONDS: Final = BUCKETS * BUCKET_SECONDS
FIRST_BUCKET: Final = 11
"""The cycle's gamma density is laid over the half hours 11 to 58; those past 48 are next day's."""
LOG_LONGEST_RUNTIME: Final = 12.0
"""No runtime above e^12 seconds, about 45 hours: larger draws are drawn again."""
LOG_LONGEST_GAP: Final = 13.0
"""No gap above e^13 seconds of rush hour, about 5 days: larger draws are drawn again."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """Constants of one class of jobs."""

    serial: float
    power_of_two: float
    """Share of one-processor jobs; share of parallel jobs of a power-of-two size."""
    smallest_log2: float
    """Low end of the sizes' first uniform stage, in log2 of processors."""
    below_machine_log2: float
    """Distance of the class's largest size below the machine's, in log2."""
    knee_log2: float
    """Distance of the knee between the two uniform stages below the largest size."""
    first_stage: float
    """Probability of the first uniform stage."""
    short: tuple[float, float]
    long: tuple[float, float]
    """Shape and scale of the two gamma distributions of the natural logarithm of runtime."""
    short_share: tuple[float, float]
    """Probability of the short one: slope x processors + intercept, within [0, 1]."""
    gap_shape: float
    gap_scale: float
    """Gamma distribution of the natural logarithm of rush-hour gaps."""
    gap_stretch: float
    """Ratio of all hours' shape to the rush hours'."""
    cycle: tuple[float, float]
    """Shape and scale of the gamma distribution of arrivals over the half hours of the day."""


COMBINED: Final = JobClass(
    serial=0.244,
    power_of_two=0.576,
    smallest_log2=0.8,
    below_machine_log2=0.0,
    knee_log2=2.5,
    first_stage=0.86,
    short=(4.2, 0.94),
    long=(312.0, 0.03),
    short_share=(-0.0054, 0.78),
    gap_shape=10.2303,
    gap_scale=0.4871,
    gap_stretch=1.0225,
    cycle=(8.1737, 3.9631),
)
"""All jobs as one class."""

BATCH: Final = JobClass(
    serial=0.2927,
    power_of_two=0.6686,
    smallest_log2=1.2,
    below_machine_log2=0.0,
    knee_log2=2.0,
    first_stage=0.875,
    short=(6.57, 0.823),
    long=(639.1, 0.0156),
    short_share=(-0.003, 0.6986),
    gap_shape=6.0415,
    gap_scale=0.8531,
    gap_stretch=1.0519,
    cycle=(6.1271, 5.2740),
)
"""Batch jobs, where interactive ones are a class of their own."""

INTERACTIVE: Final = JobClass(
    serial=0.1541,
    power_of_two=0.625,
    smallest_log2=1.0,
    below_machine_log2=1.5,
    knee_log2=2.5,
    first_stage=0.705,
    short=(3.8351, 0.6605),
    long=(7.073, 0.6856),
    short_share=(-0.0118, 0.9156),
    gap_shape=6.5510,
    gap_scale=0.6621,
    gap_stretch=0.9797,
    cycle=(8.9186, 3.6680),
)
"""Interactive jobs."""


def draw_processors(
    kind: JobClass, processors: int, jobs: int, random: np.random.Generator
) -> Floats:
    """Processors of each job: serial, or two-stage uniform in log2, rounded for powers of two.

    Returns shape (jobs,). The published constants hold for 128 processors; for others the stages
    move with the machine's size, as the authors advise.
    """
    largest = max(math.log2(processors) - kind.below_machine_log2, 0.0)
    knee = max(largest - kind.knee_log2, min(kind.smallest_log2, largest))
    smallest = min(kind.smallest_log2, knee)
    choice = random.random(jobs)
    first = random.random(jobs) <= kind.first_stage
    within = random.random(jobs)
    size_log2 = np.where(
        first, smallest + within * (knee - smallest), knee + within * (largest - knee)
    )
    rounded = choice <= kind.serial + kind.power_of_two
    size_log2[rounded] = np.floor(size_log2[rounded] + 0.5)
    sizes = np.floor(np.exp2(size_log2) + 0.5)
    sizes[choice <= kind.serial] = 1.0
    return np.clip(sizes, 1.0, math.floor(2.0**largest + 0.5))


def draw_runtimes(kind: JobClass, sizes: Floats, random: np.random.Generator) -> Floats:
    """Runtime of each job in whole seconds: hyper-gamma in the logarithm, longer for wider jobs.

    Sizes are in processors; their shape (jobs,) is also that of the result.
    """
    slope, intercept = kind.short_share
    share = np.clip(slope * sizes + intercept, 0.0, 1.0)
    logarithms = np.full(sizes.size, np.inf)
    again = np.arange(sizes.size)
    while again.size:
        short = random.random(again.size) <= share[again]
        logarithms[again] = np.where(
            short, random.gamma(*kind.short, again.size), random.gamma(*kind.long, again.size)
        )
        again = again[logarithms[again] > LOG_LONGEST_RUNTIME]
    runtimes: Floats = np.floor(np.exp(logarithms))
    return runtimes


def draw_gap_points(kind: JobClass, jobs: int, random: np.random.Generator) -> Floats:
    """Points of arrival time between jobs: half hours of an average hour; shape (jobs,)."""
    logarithms = random.gamma(kind.gap_shape * kind.gap_stretch, kind.gap_scale, jobs)
    while (again := np.flatnonzero(logarithms > LOG_LONGEST_GAP)).size:
        logarithms[again] = random.gamma(
            kind.gap_shape * kind.gap_stretch, kind.gap_scale, again.size
        )
    return np.exp(logarithms) / BUCKET_SECONDS


def cycle_points(kind: JobClass) -> Floats:
    """Points that have passed at each half hour of the day: shape (49,), from 0 to 48."""
    edges = [
        _gamma_distribution(bucket - 0.5, *kind.cycle)
        for bucket in range(FIRST_BUCKET, FIRST_BUCKET + BUCKETS + 1)
    ]
    weights = np.roll(np.diff(edges), FIRST_BUCKET - 1)
    return np.concatenate([[0.0], np.cumsum(weights * (BUCKETS / weights.sum()))])


def seconds_at(points: Floats, cycle: Floats) -> Floats:
    """Seconds since midnight of the first day at which so many points have passed.

    A half hour with few arrivals has few points, so that gaps are long there.
    """
    days, rest = np.divmod(points, float(BUCKETS))
    within = np.interp(rest, cycle, np.arange(BUCKETS + 1) * BUCKET_SECONDS)
    seconds: Floats = days * DAY_SECONDS + within
    return seconds


def points_at(seconds: float, cycle: Floats) -> float:
    """Points that have passed at a time: the inverse of ``seconds_at``."""
    days, rest = divmod(seconds, DAY_SECONDS)
    passed = np.interp(rest, np.arange(BUCKETS + 1) * BUCKET_SECONDS, cycle)
    return days * BUCKETS + float(passed)


def _gamma_distribution(x: float, shape: float, scale: float) -> float:
    """Probability that a gamma variable is at most x, by the power series."""
    z = x / scale
    term = math.exp(shape * math.log(z) - z - math.lgamma(shape + 1.0))
    total, k = term, 1
    while term > total * 1e-16:
        term *= z / (shape + k)
        total += term
        k += 1
    return total


MINUTE: Final = 60.0
HOUR: Final = 3600.0
POPULAR_SECONDS: Final = np.array(
    [
        *(m * MINUTE for m in (5, 10, 15, 20, 30, 45)),
        *(h * HOUR for h in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 30, 36, 48)),
    ]
)
"""The values users ask for; the last is the machine's limit, above every runtime of the model."""
LEAST_ACCURACY: Final = 0.02
LONGEST_SHARE: Final = 0.15
"""Share of applications (of jobs, without users) that always request the longest time."""


def _draw_requests(
    runtimes: Floats, habit: Integers, session: Integers, random: np.random.Generator
) -> Floats:
    """Requested seconds of each job, never below its runtime; all shapes are (jobs,).

    Jobs of one habit (a number from zero) either all ask for the longest time or, but for a share
    ``LONGEST_SHARE`` of habits, none does. Jobs of one session (as well) ask for the same time,
    enough for all of them.
    """
    sessions = int(session.max()) + 1
    longest_runtime = np.zeros(sessions)
    np.maximum.at(longest_runtime, session, runtimes)
    accuracy = random.uniform(LEAST_ACCURACY, 1.0, sessions)
    wished = np.minimum(longest_runtime / accuracy, POPULAR_SECONDS[-1])
    asked = POPULAR_SECONDS[np.searchsorted(POPULAR_SECONDS, wished)]
    always_longest = random.random(int(habit.max()) + 1) < LONGEST_SHARE
    requests: Floats = np.where(always_longest[habit], POPULAR_SECONDS[-1], asked[session])
    return requests


CLASSES: Final = {
    "combined": (("batch", COMBINED),),
    "batch": (("batch", BATCH),),
    "interactive": (("interactive", INTERACTIVE),),
    "both": (("batch", BATCH), ("interactive", INTERACTIVE)),
}
"""Queue name and constants of the classes that take part."""


@dataclass(frozen=True, slots=True)
class LublinParameters:
    """Parameters of the generator ``lublin``."""

    jobs: int = 10_000
    """Number of jobs."""
    processors: int = 128
    """Processors of the machine."""
    widest: int | None = None
    """Processors of the widest jobs that the model draws; None for those of the machine. On large
    machines few jobs ask for more than a third of it."""
    load: float | None = 0.7
    """Offered load (processor seconds over processors x last submission) to which the gaps are
    scaled; None keeps the model's gaps."""
    classes: Literal["combined", "batch", "interactive", "both"] = "combined"
    """``combined`` (the model's single class), ``batch``, ``interactive``, or ``both``."""
    users: int = 64
    """Number of users whose sessions the jobs are arranged in; 0 gives the plain model, where jobs
    are independent and belong to no user."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "jobs", "processors")
        require_at_least(self, 0, "users")
        fits = self.widest is None or 1 <= self.widest <= self.processors
        require(fits, self, "widest", f"1 to {self.processors}")
        require_positive(self, "load")
        require_choice(self, classes=CLASSES)


@dataclass(frozen=True, slots=True)
class _Draw:
    """Jobs of the plain model in order of arrival; every array has shape (jobs,).

    ``points`` is arrival time in points of the class's daily cycle, ``kind`` the class's number.
    """

    points: Floats
    seconds: Floats
    sizes: Floats
    runtimes: Floats
    kind: Integers

    def taken(self, order: Integers) -> _Draw:
        return _Draw(*(getattr(self, name)[order] for name in self.__slots__))


@register("generator", "lublin", parameters=LublinParameters)
@generator
def lublin(parameters: LublinParameters, random: np.random.Generator) -> Workload:
    """Lublin-Feitelson 2003: sizes, runtimes and daily cycle of rigid parallel jobs.

    Second zero is midnight of the first day.
    """
    draw = _plain(parameters, random)
    columns: dict[str, object] = {"queue": _queues(draw.kind, parameters)}
    habit = session = np.arange(parameters.jobs)
    if parameters.users > 0:
        arranged = arrange(draw.seconds, draw.sizes, draw.runtimes, parameters.users, random)
        arrivals = draw.seconds
        draw = replace(draw.taken(arranged.job), seconds=arrivals)
        habit, session = arranged.application, arranged.session
        columns = {
            "queue": _queues(draw.kind, parameters),
            "user": np.char.mod("user%d", arranged.user + 1),
            "executable": np.char.mod("application%d", arranged.application + 1),
        }
    columns["requested_seconds"] = _draw_requests(draw.runtimes, habit, session, random)
    width = draw.sizes.astype(np.int64)
    jobs = gangs(np.floor(draw.seconds), draw.runtimes, width, **columns)
    return Workload(jobs, WorkloadMeta("", "", processors=parameters.processors))


def _plain(parameters: LublinParameters, random: np.random.Generator) -> _Draw:
    """The jobs of the model before users are thought of, their gaps scaled to the load."""
    classes = CLASSES[parameters.classes]
    cycles = [cycle_points(constants) for _, constants in classes]
    drawn = [
        _one_class(number, constants, cycles[number], parameters, random)
        for number, (_, constants) in enumerate(classes)
    ]
    merged = _Draw(*(np.concatenate([getattr(d, n) for d in drawn]) for n in _Draw.__slots__))
    order = np.argsort(merged.seconds, kind="stable")[: parameters.jobs]
    jobs = merged.taken(order)
    if parameters.load is None:
        return jobs
    return _scaled(jobs, cycles, parameters.processors, parameters.load)


def _one_class(
    number: int,
    constants: JobClass,
    cycle: Floats,
    parameters: LublinParameters,
    random: np.random.Generator,
) -> _Draw:
    widest = parameters.widest or parameters.processors
    sizes = draw_processors(constants, widest, parameters.jobs, random)
    points = np.cumsum(draw_gap_points(constants, parameters.jobs, random))
    return _Draw(
        points=points,
        seconds=seconds_at(points, cycle),
        sizes=sizes,
        runtimes=draw_runtimes(constants, sizes, random),
        kind=np.full(parameters.jobs, number),
    )


def _scaled(jobs: _Draw, cycles: list[Floats], processors: int, load: float) -> _Draw:
    """The same jobs with gaps multiplied so that the offered load is the one wished for.

    Gaps are scaled in points, not in seconds, so that the daily cycle stays where it is.
    """
    last_seconds = float(jobs.sizes @ jobs.runtimes) / (processors * load)
    last_kind = int(jobs.kind[-1])
    factor = points_at(last_seconds, cycles[last_kind]) / jobs.points[-1]
    points = jobs.points * factor
    seconds = np.empty_like(points)
    for number, cycle in enumerate(cycles):
        mine = jobs.kind == number
        seconds[mine] = seconds_at(points[mine], cycle)
    scaled = replace(jobs, points=points, seconds=seconds)
    return scaled.taken(np.argsort(seconds, kind="stable"))


def _queues(kind: Integers, parameters: LublinParameters) -> Integers:
    names = np.array([name for name, _ in CLASSES[parameters.classes]])
    queues: Integers = names[kind]
    return queues
