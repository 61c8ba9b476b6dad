"""Generator ``lublin``: the Lublin-Feitelson model, with users and requested times on top."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from foresail.model.arrays import Floats, Integers
from foresail.model.limits import (
    require,
    require_at_least,
    require_choice,
    require_positive,
    require_share,
)
from foresail.model.registry import register
from foresail.traces.generating import gangs, generator
from foresail.traces.generators import _lublin_model as model
from foresail.traces.generators._sessions import arrange
from foresail.traces.workload import Workload, WorkloadMeta

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


def draw_requests(
    runtimes: Floats,
    habit: Integers,
    session: Integers,
    longest_share: float,
    random: np.random.Generator,
) -> Floats:
    """Requested seconds of each job, never below its runtime; all shapes are (jobs,).

    Jobs of one habit (a number from zero) either all ask for the longest time or, but for a share
    ``longest_share`` of habits, none does. Jobs of one session (as well) ask for the same time,
    enough for all of them.
    """
    sessions = int(session.max()) + 1
    longest_runtime = np.zeros(sessions)
    np.maximum.at(longest_runtime, session, runtimes)
    accuracy = random.uniform(LEAST_ACCURACY, 1.0, sessions)
    wished = np.minimum(longest_runtime / accuracy, POPULAR_SECONDS[-1])
    asked = POPULAR_SECONDS[np.searchsorted(POPULAR_SECONDS, wished)]
    always_longest = random.random(int(habit.max()) + 1) < longest_share
    requests: Floats = np.where(always_longest[habit], POPULAR_SECONDS[-1], asked[session])
    return requests


CLASSES: Final = {
    "combined": (("batch", model.COMBINED),),
    "batch": (("batch", model.BATCH),),
    "interactive": (("interactive", model.INTERACTIVE),),
    "both": (("batch", model.BATCH), ("interactive", model.INTERACTIVE)),
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
    activity_exponent: float = 1.0
    """Zipf exponent of the users' activity."""
    runtime_log_deviation: float = 0.7
    """Scatter of runtimes within an application, in the natural logarithm."""
    requests: Literal["modal", "none"] = "modal"
    """``modal``: round requested times above the runtime; ``none``: no requested times (plain
    model)."""
    longest_share: float = 0.15
    """Share of applications (of jobs, without users) that always request the longest time."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "jobs", "processors")
        require_at_least(self, 0, "users")
        fits = self.widest is None or 1 <= self.widest <= self.processors
        require(fits, self, "widest", f"1 to {self.processors}")
        require_positive(self, "load")
        require_at_least(self, 0, "activity_exponent", "runtime_log_deviation")
        require_share(self, "longest_share")
        require_choice(self, classes=CLASSES, requests=("modal", "none"))


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
        arranged = arrange(
            draw.seconds,
            draw.sizes,
            draw.runtimes,
            parameters.users,
            parameters.activity_exponent,
            parameters.runtime_log_deviation,
            random,
        )
        arrivals = draw.seconds
        draw = replace(draw.taken(arranged.job), seconds=arrivals)
        habit, session = arranged.application, arranged.session
        columns = {
            "queue": _queues(draw.kind, parameters),
            "user": np.char.mod("user%d", arranged.user + 1),
            "executable": np.char.mod("application%d", arranged.application + 1),
        }
    if parameters.requests == "modal":
        columns["requested_seconds"] = draw_requests(
            draw.runtimes, habit, session, parameters.longest_share, random
        )
    width = draw.sizes.astype(np.int64)
    jobs = gangs(np.floor(draw.seconds), draw.runtimes, width, **columns)
    return Workload(jobs, WorkloadMeta("", "", processors=parameters.processors))


def _plain(parameters: LublinParameters, random: np.random.Generator) -> _Draw:
    """The jobs of the model before users are thought of, their gaps scaled to the load."""
    classes = CLASSES[parameters.classes]
    cycles = [model.cycle_points(constants) for _, constants in classes]
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
    constants: model.JobClass,
    cycle: Floats,
    parameters: LublinParameters,
    random: np.random.Generator,
) -> _Draw:
    widest = parameters.widest or parameters.processors
    sizes = model.draw_processors(constants, widest, parameters.jobs, random)
    points = np.cumsum(model.draw_gap_points(constants, parameters.jobs, random))
    return _Draw(
        points=points,
        seconds=model.seconds_at(points, cycle),
        sizes=sizes,
        runtimes=model.draw_runtimes(constants, sizes, random),
        kind=np.full(parameters.jobs, number),
    )


def _scaled(jobs: _Draw, cycles: list[Floats], processors: int, load: float) -> _Draw:
    """The same jobs with gaps multiplied so that the offered load is the one wished for.

    Gaps are scaled in points, not in seconds, so that the daily cycle stays where it is.
    """
    last_seconds = float(jobs.sizes @ jobs.runtimes) / (processors * load)
    last_kind = int(jobs.kind[-1])
    factor = model.points_at(last_seconds, cycles[last_kind]) / jobs.points[-1]
    points = jobs.points * factor
    seconds = np.empty_like(points)
    for number, cycle in enumerate(cycles):
        mine = jobs.kind == number
        seconds[mine] = model.seconds_at(points[mine], cycle)
    scaled = replace(jobs, points=points, seconds=seconds)
    return scaled.taken(np.argsort(seconds, kind="stable"))


def _queues(kind: Integers, parameters: LublinParameters) -> Integers:
    names = np.array([name for name, _ in CLASSES[parameters.classes]])
    queues: Integers = names[kind]
    return queues
