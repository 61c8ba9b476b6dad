"""Settings of studies whose cases are trials: every system with every seed in each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from foresail.model.errors import InputError
from foresail_studies.study import GridPoint, Measure, StudyParameters
from foresail_studies.trial import Trial

LATENCY: Final = Measure("best_effort_latency_seconds", "best-effort latency", "duration")
BEST_EFFORT_JOBS: Final = Measure(
    "best_effort_completed_by_the_end", "best-effort jobs done by the last submission"
)
PREEMPTIONS: Final = Measure("preemptions", "jobs stopped")
CYCLE: Final = Measure("cycle_milliseconds_median", "median cycle (ms)")
SLOW_CYCLE: Final = Measure("cycle_milliseconds_p99", "99 % of cycles below (ms)")


@dataclass(frozen=True, slots=True)
class TrialParameters(StudyParameters):
    """Parameters that the studies of trials share."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("hours", "cycle_seconds")

    hours: float = 5.0
    """Length of the run."""
    discarded_hours: float = 1.0
    """Jobs submitted in so many first hours of it, when the machine fills, are not measured."""
    cycle_seconds: float = 2.0
    """How often the scheduler is asked."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        if not 0.0 <= self.discarded_hours < self.hours:
            raise InputError(
                "nothing would be measured",
                field="discarded_hours",
                value=self.discarded_hours,
                expected=f"from 0 to less than {self.hours:g}, the hours of the run",
            )


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """A place in a study, and what is run there: short forms of the run and of its history.

    ``conditions`` are further fields of ``Trial``, of the cluster and of what jobs request.
    """

    workload: str
    history: str | None
    group: str
    x: float | None = None
    conditions: Mapping[str, float] = field(default_factory=dict)


def cases_of(
    parameters: TrialParameters, settings: Iterable[TrialSetting], policies: Mapping[str, str]
) -> list[GridPoint]:
    """Every system with every seed in some settings.

    ``policies`` has the policy of each system by its name; ``{seed}`` in it becomes the seed.
    """
    return [
        GridPoint(
            each.group,
            each.x,
            system,
            seed,
            Trial(
                each.workload,
                each.history,
                seed,
                policy.replace("{seed}", str(seed)),
                parameters.cycle_seconds,
                discarded_hours=parameters.discarded_hours,
                **each.conditions,
            ),
        )
        for each in settings
        for seed in range(parameters.seeds)
        for system, policy in policies.items()
    ]


def named(*systems: str) -> dict[str, str]:
    """Systems that are named policies."""
    return {system: system for system in systems}


def beginning_of(parameters: TrialParameters) -> str:
    """Return a sentence on the hours in which the machine fills, for a study's notes."""
    if parameters.discarded_hours == 0.0:
        return "Runs begin on an empty machine, and all of their jobs are counted."
    first = f"{parameters.discarded_hours:g} of {parameters.hours:g} hours"
    return (
        f"Runs begin on an empty machine; jobs submitted in the first {first} are run and not "
        "counted."
    )
