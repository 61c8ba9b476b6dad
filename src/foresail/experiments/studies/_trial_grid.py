"""Settings of studies whose cases are trials: every system with every seed in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from foresail.experiments.study import GridPoint
from foresail.experiments.trial import Trial


class TrialParameters(Protocol):
    """What the grid asks of a study's parameters."""

    @property
    def seeds(self) -> int:
        """How many seeds, counted from 0."""
        ...

    @property
    def cycle_seconds(self) -> float:
        """How often the scheduler is asked."""
        ...

    @property
    def discarded_hours(self) -> float:
        """For how long at the beginning jobs are run and not measured."""
        ...

    @property
    def hours(self) -> float:
        """Length of a run."""
        ...


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
