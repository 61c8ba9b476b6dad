"""Shared parts of the studies of TetriSched: workloads, measures, and how a run is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from foresail_studies import trial as grid
from foresail_studies.policies import dropping
from foresail_studies.study import Mean, Measure, PublishedClaim, Study
from foresail_studies.trial import (
    TrialParameters,
    TrialSetting,
    beginning_of,
    cases_of,
    named,
)

ALL: Final = Measure("slo_attainment", "deadlines met", "share")
ACCEPTED: Final = Measure("accepted_slo_attainment", "deadlines met, accepted jobs", "share")
REJECTED: Final = Measure("unreserved_slo_attainment", "deadlines met, rejected jobs", "share")
ACCEPTED_JOBS: Final = Measure("accepted_slo_jobs", "accepted jobs")

MEASURES: Final = (
    *(ALL, ACCEPTED, REJECTED, grid.LATENCY, grid.BEST_EFFORT_JOBS, ACCEPTED_JOBS),
    *(grid.PREEMPTIONS, grid.CYCLE, grid.SLOW_CYCLE),
)
DRAWN: Final = (ALL.name, ACCEPTED.name, REJECTED.name, grid.LATENCY.name)

SOURCE: Final = "TetriSched (Tumanov and others, EuroSys 2016)"
ERROR_AXIS: Final = "estimate error (%)"

GLOBAL: Final = "tetrisched-published"
NO_SOFT_CONSTRAINTS: Final = "tetrisched-nh-published"
ONE_BY_ONE: Final = "tetrisched-ng-published"
OURS: Final = "tetrisched"
"""The first, with jobs that have become hopeless run on leftovers: our own default."""


@dataclass(frozen=True, slots=True)
class TetriSchedStudyParameters(TrialParameters, quick="seeds=4 hours=0.75 discarded_hours=0.25"):
    """Parameters that the studies of TetriSched share."""

    POSITIVE: ClassVar[tuple[str, ...]] = (*TrialParameters.POSITIVE, "load")

    cycle_seconds: float = 4.0

    load: float = 1.0
    """Offered load: work where it runs best over what the nodes can do."""
    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """Slacks of the deadlines, each as likely."""
    slowdown: float = 1.5
    """How many times longer a job runs on nodes that it does not prefer."""


@dataclass(frozen=True, slots=True)
class EstimateErrorsParameters(TetriSchedStudyParameters, quick="error_percents=[-50,0,50]"):
    """Parameters of the studies whose axis is the error of estimates."""

    error_percents: tuple[float, ...] = (-50.0, -20.0, 0.0, 20.0, 50.0, 100.0)
    """By how much jobs misstate their runtime."""


def study_of_errors(
    parameters: EstimateErrorsParameters,
    title: str,
    figures: str,
    generators: Sequence[str],
    systems: Sequence[str],
    claims: tuple[PublishedClaim, ...],
) -> Study:
    """A study of systems, and of the capacity stack, on generated workloads as estimates err."""
    policies = {**named(*systems), **STACKS}
    settings = [
        setting(parameters, generator, error, error)
        for generator in generators
        for error in parameters.error_percents
    ]
    return Study(
        title=title,
        source=f"{SOURCE}, {figures}",
        axis=ERROR_AXIS,
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases_of(parameters, settings, policies)),
        claims=claims,
        notes=notes_of(parameters),
    )


def setting(
    parameters: TetriSchedStudyParameters, generator: str, x: float, error_percent: float = 0.0
) -> TrialSetting:
    """A setting named by its generator, whose jobs misstate their runtime by so many per cent."""
    slacks = ",".join(f"{slack:g}" for slack in parameters.slack_percents)
    run = f"hours={parameters.hours:g},load={parameters.load:g},slack_percents=[{slacks}]"
    return TrialSetting(
        f"{generator}({run},slowdown_elsewhere={parameters.slowdown:g})",
        None,
        generator.upper(),
        x,
        {"estimate_error_percent": error_percent},
    )


STACKS: Final = {
    "rayon-cs": "rayon-cs",
    "rayon-cs, earliest": "capacity(reservations=earliest),requested,"
    "exponential_increment(cycle_seconds=4,growth=1)",
}
"""The capacity stack, with Rayon promising nodes as late and as early as possible."""


def planning_ahead(settings: str) -> str:
    """TetriSched as published, with these settings, in short form."""
    text = f"tetrisched({settings}),requested,exponential_increment(cycle_seconds=4,growth=1)"
    return dropping(text)


def met(system: str, *x: float, group: str | None = None, of: Measure = ALL) -> Mean:
    """The share of deadlines met by a system."""
    return Mean(of.name, system, group, x)


def notes_of(parameters: TetriSchedStudyParameters) -> tuple[str, ...]:
    """Return where the studies differ from the published ones, and what is left open."""
    return (
        "Systems named -published drop jobs whose deadline is out of reach, as the published ones "
        "do; those without run them on nodes that no other job wants, which is our default.",
        "Deadlines have a slack of 20, 40, 60 or 80 %, as in 3Sigma's evaluation. TetriSched's "
        "does not state its own; 3Sigma's says that it was 250 and 300 %, where nearly all "
        "deadlines can be met by any of these systems (tetrisched-assumptions).",
        beginning_of(parameters),
        "Not published, and chosen: the distributions of widths, runtimes and deadlines, the grid "
        "of estimate errors, the slowdown (1.5), where gpus are, when Rayon places reservations "
        "(as late as possible, or as early as possible where that is said), the inner rules of the "
        "CapacityScheduler, the plan-ahead window (24 slots of 4 s), and the length of runs.",
        "A simulation goes on until all jobs are done: the best-effort latency is that of all of "
        "them, the published one of those that had completed.",
    )
