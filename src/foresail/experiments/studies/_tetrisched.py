"""What the studies of TetriSched have in common: workloads, measures, and how a run is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies._trial_grid import TrialSetting
from foresail.experiments.study import Mean, Measure, StudyParameters

ALL: Final = Measure("slo_attainment", "deadlines met", "share")
ACCEPTED: Final = Measure("accepted_slo_attainment", "deadlines met, accepted jobs", "share")
REJECTED: Final = Measure("unreserved_slo_attainment", "deadlines met, rejected jobs", "share")
LATENCY: Final = Measure("best_effort_latency_seconds", "best-effort latency", "duration")
BEST_EFFORT_JOBS: Final = Measure(
    "best_effort_completed_by_the_end", "best-effort jobs done by the last submission"
)
ACCEPTED_JOBS: Final = Measure("accepted_slo_jobs", "accepted jobs")
PREEMPTIONS: Final = Measure("preemptions", "jobs stopped")
CYCLE: Final = Measure("cycle_milliseconds_median", "median cycle (ms)")
SLOW_CYCLE: Final = Measure("cycle_milliseconds_p99", "99 % of cycles below (ms)")

MEASURES: Final = (
    *(ALL, ACCEPTED, REJECTED, LATENCY, BEST_EFFORT_JOBS, ACCEPTED_JOBS, PREEMPTIONS),
    *(CYCLE, SLOW_CYCLE),
)
DRAWN: Final = (ALL.name, ACCEPTED.name, REJECTED.name, LATENCY.name)

SOURCE: Final = "TetriSched (Tumanov and others, EuroSys 2016)"
ERROR_AXIS: Final = "estimate error (%)"

NOTES: Final = (
    "Not published, and chosen: the distributions of widths, runtimes and deadlines, the grid of "
    "estimate errors, the slowdown (1.5), where gpus are, when Rayon places reservations (as late "
    "as possible, or as early as possible where that is said), the inner rules of the "
    "CapacityScheduler, the plan-ahead window (24 slots of 4 s), and the length of runs.",
    "A simulation goes on until all jobs are done: the best-effort latency is that of all of them, "
    "the published one of those that had completed.",
)


@dataclass(frozen=True, slots=True)
class TetriSchedStudyParameters(StudyParameters):
    """What the studies of TetriSched have in common.

    Parameters
    ----------
    hours
        Length of the run.
    load
        Offered load: work where it runs best over what the nodes can do.
    cycle_seconds
        How often the scheduler is asked.
    """

    POSITIVE: ClassVar[tuple[str, ...]] = ("hours", "load", "cycle_seconds")

    hours: float = 1.0
    load: float = 1.0
    cycle_seconds: float = 4.0


def setting(
    parameters: TetriSchedStudyParameters, generator: str, x: float, error_percent: float = 0.0
) -> TrialSetting:
    """A setting named by its generator, whose jobs misstate their runtime by so many per cent."""
    return TrialSetting(
        f"{generator}(hours={parameters.hours:g},load={parameters.load:g})",
        None,
        generator.upper(),
        x,
        estimate_error_percent=error_percent,
    )


STACKS: Final = {
    "rayon-cs": "rayon-cs",
    "rayon-cs, earliest": "capacity(reservations=earliest),requested,"
    "exponential_increment(cycle_seconds=4,growth=1)",
}
"""The capacity stack, with Rayon promising nodes as late and as early as possible."""


def planning_ahead(settings: str) -> str:
    """TetriSched with these settings, in short form."""
    return f"tetrisched({settings}),requested,exponential_increment(cycle_seconds=4,growth=1)"


def met(system: str, *x: float, group: str | None = None, of: Measure = ALL) -> Mean:
    """The share of deadlines met by a system."""
    return Mean(of.name, system, group, x)
