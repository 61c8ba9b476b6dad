"""Settings of studies whose cases are trials: every system with every seed in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.study import GridPoint, Measure, StudyParameters
from foresail.experiments.trial import Trial
from foresail.model.errors import InputError

LATENCY: Final = Measure("best_effort_latency_seconds", "best-effort latency", "duration")
BEST_EFFORT_JOBS: Final = Measure(
    "best_effort_completed_by_the_end", "best-effort jobs done by the last submission"
)
PREEMPTIONS: Final = Measure("preemptions", "jobs stopped")
CYCLE: Final = Measure("cycle_milliseconds_median", "median cycle (ms)")
SLOW_CYCLE: Final = Measure("cycle_milliseconds_p99", "99 % of cycles below (ms)")


@dataclass(frozen=True, slots=True)
class TrialParameters(StudyParameters):
    """What the studies of trials have in common.

    Parameters
    ----------
    hours
        Length of the run.
    discarded_hours
        Jobs submitted in so many first hours of it, when the machine fills, are not measured.
    cycle_seconds
        How often the scheduler is asked.
    """

    POSITIVE: ClassVar[tuple[str, ...]] = ("hours", "cycle_seconds")

    hours: float = 5.0
    discarded_hours: float = 1.0
    cycle_seconds: float = 2.0

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
    """A place in a study, and what is run there.

    Parameters
    ----------
    workload, history
        Short forms of the generators of the run, and of what predictors learn from before it.
    group, x
        Where in the study.
    start_delay_seconds, runtime_noise
        Of the cluster.
    estimate_error_percent
        By how much jobs misstate their runtime; None where the generator says what they request.
    """

    workload: str
    history: str | None
    group: str
    x: float | None = None
    start_delay_seconds: float = 0.0
    runtime_noise: float = 0.0
    estimate_error_percent: float | None = None


def cases_of(
    parameters: TrialParameters, setting: TrialSetting, policies: Mapping[str, str]
) -> list[GridPoint]:
    """Every system with every seed in one setting.

    Parameters
    ----------
    parameters
        Of the study.
    setting
        Where in it, and what is run.
    policies
        Policy of each system by the system's name; ``{seed}`` in it becomes the seed.
    """
    return [
        GridPoint(
            setting.group,
            setting.x,
            system,
            seed,
            Trial(
                workload=setting.workload,
                history=setting.history,
                seed=seed,
                policy=policy.replace("{seed}", str(seed)),
                cycle_seconds=parameters.cycle_seconds,
                estimate_error_percent=setting.estimate_error_percent,
                start_delay_seconds=setting.start_delay_seconds,
                runtime_noise=setting.runtime_noise,
                discarded_hours=parameters.discarded_hours,
            ),
        )
        for seed in range(parameters.seeds)
        for system, policy in policies.items()
    ]


def named(*systems: str) -> dict[str, str]:
    """Systems that are named policies."""
    return {system: system for system in systems}


def beginning_of(parameters: TrialParameters) -> str:
    """What becomes of the hours in which the machine fills, in a sentence for a study's notes."""
    if parameters.discarded_hours == 0.0:
        return "Runs begin on an empty machine, and all of their jobs are counted."
    first = f"{parameters.discarded_hours:g} of {parameters.hours:g} hours"
    return (
        f"Runs begin on an empty machine; jobs submitted in the first {first} are run and not "
        "counted."
    )
