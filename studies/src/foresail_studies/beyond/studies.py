"""Studies ``beyond-chains`` and ``beyond-fair-share``, and how a run of theirs is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import polars as pl

from foresail.model.registry import register
from foresail.scenario.beginning import controller_of
from foresail.scenario.by_events import run_by_events
from foresail.traces.schedule import Schedule
from foresail_studies.generators.e2e import FLOODING_USER
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters, generated, published
from foresail_studies.trial import CycleTrial, clocked, metrics_of

MISSES: Final = Measure("slo_miss_rate", "deadlines missed", "share")
LATENCY: Final = Measure("best_effort_latency_seconds", "best-effort latency", "duration")
GOODPUT: Final = Measure("goodput_hours_by_the_end", "goodput (node hours)")
PREEMPTIONS: Final = Measure("preemptions", "jobs stopped")
CYCLE: Final = Measure("cycle_cpu_milliseconds_mean", "mean cycle, of processors (ms)")
CALM_WAIT: Final = Measure("calm_wait_seconds", "mean wait of the other users", "duration")
FLOOD_WAIT: Final = Measure("flood_wait_seconds", "mean wait of the flooding user", "duration")


@dataclass(frozen=True, slots=True)
class BeyondParameters(
    StudyParameters, quick="seeds=3 hours=0.5 history_hours=1 nodes=64", minutes=(4, 60)
):
    """Parameters that these studies share."""

    POSITIVE: ClassVar[tuple[str, ...]] = (
        "hours",
        "history_hours",
        "nodes",
        "jobs_per_node_hour",
        "cycle_seconds",
    )

    hours: float = 2.0
    history_hours: float = 4.0
    """Length of the run, and of what predictors learn from before it."""
    nodes: int = 256
    """The machine."""
    jobs_per_node_hour: float = 4.0
    """How many jobs there are, for every hour of a node."""
    load: float = 1.4
    """Offered load, half of it from jobs with deadlines."""
    cycle_seconds: float = 20.0
    """How often the scheduler is asked."""


def recipe(parameters: BeyondParameters, generator: str, load: float) -> str:
    """Short form of a generator of the E2E recipe, of this study's size; for the run."""
    jobs = max(round(parameters.jobs_per_node_hour * parameters.nodes * parameters.hours), 2)
    size = f"hours={parameters.hours:g},nodes={parameters.nodes},jobs={jobs},load={load:g}"
    return f"{generator}({size},history_hours={parameters.history_hours:g})"


def cases_of(
    parameters: BeyondParameters, generator: str, load: float, policies: Mapping[str, str]
) -> list[GridPoint]:
    """Every system with every seed at one load.

    ``policies`` say what to set of the scheduler, by the system's name.
    """
    workload = recipe(parameters, generator, load)
    return [
        GridPoint(
            generator,
            load,
            system,
            seed,
            WatchedTrial(
                workload,
                f"{workload[:-1]},part=history)",
                seed,
                f"3sigma({settings}),history,exponential_increment",
                parameters.cycle_seconds,
            ),
        )
        for seed in range(parameters.seeds)
        for system, settings in policies.items()
    ]


@dataclass(frozen=True, slots=True)
class WatchedTrial(CycleTrial):
    """One with an eye on users."""

    def measure(self) -> dict[str, float]:
        """Metrics of the schedule, cost of cycles, and waits by user."""
        scenario = self.scenario(generated(self.workload, self.seed))
        controller = controller_of(scenario)
        clock = clocked(controller.scheduler)
        schedule = run_by_events(scenario, controller)
        return {
            **metrics_of(schedule),
            **clock.metrics(),
            **_waits(schedule),
        }


def _waits(schedule: Schedule) -> dict[str, float]:
    """Mean wait until the first start of the flooding user's jobs, and of all others."""
    flood = pl.col("user") == FLOODING_USER
    wait = (
        schedule.jobs.group_by("job_id")
        .agg(
            (pl.col("start_seconds").min() - pl.col("submit_seconds").first()).alias("wait"),
            flood.fill_null(value=False).first().alias("flood"),
        )
        .group_by("flood")
        .agg(pl.col("wait").mean())
    )
    by_flood = dict(wait.iter_rows())
    return {
        FLOOD_WAIT.name: by_flood.get(True, float("nan")),
        CALM_WAIT.name: by_flood.get(False, float("nan")),
    }


_CHAINS_POLICIES: Final = {"each job alone": "", "end to end": "end_to_end=yes"}


@register("study", "beyond-chains", parameters=BeyondParameters)
def chains(parameters: BeyondParameters) -> Study:
    """Deadlines at the end of chains of two to five jobs, known to the first one or not."""
    return Study(
        title="What does it give to know of deadlines at the end of a chain?",
        source="Foresail: there is no published figure",
        axis="offered load",
        measures=(
            *(MISSES, GOODPUT, LATENCY),
            *(PREEMPTIONS, CYCLE),
        ),
        drawn=(MISSES.name,),
        cases=tuple(cases_of(parameters, "pipelines", parameters.load, _CHAINS_POLICIES)),
        claims=published(
            {
                "Fewer deadlines are missed by whom they are known to "
                "from the first job on.": MISSES.of("end to end").against("each job alone"),
            }
        ),
        notes=("Jobs of a chain that have no deadline of their own count as best effort.",),
    )


_FAIR_SHARE_POLICIES: Final = {
    "no shares": "",
    "fair shares": "fair_share=1",
    "fair shares, thrice": "fair_share=3",
}


@register("study", "beyond-fair-share", parameters=BeyondParameters)
def fair_share(parameters: BeyondParameters) -> Study:
    """One user submits four of five jobs: waits of that user and of the others."""
    return Study(
        title="What do fair shares give to those who ask for little?",
        source="Foresail: there is no published figure",
        axis="offered load",
        measures=(
            *(CALM_WAIT, FLOOD_WAIT, MISSES, GOODPUT),
            *(PREEMPTIONS, CYCLE),
        ),
        drawn=(CALM_WAIT.name, FLOOD_WAIT.name),
        cases=tuple(cases_of(parameters, "flooded", parameters.load, _FAIR_SHARE_POLICIES)),
        claims=published(
            {
                "With fair shares the others wait less.": CALM_WAIT.of("fair shares").against(
                    "no shares"
                ),
                "No work is lost by it (taken as: at most 3 % of the goodput).": GOODPUT.of(
                    "no shares"
                ).against("fair shares", factor=1.03),
            }
        ),
    )
