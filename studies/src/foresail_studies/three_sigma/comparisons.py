"""Studies of 3Sigma against other systems: end to end, by assumption, on a real log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.study import Bound, GridPoint, Mean, Measure, Study, published
from foresail_studies.three_sigma._shared import (
    BEST_EFFORT,
    CHOSEN,
    DRAWN,
    DROPPING,
    GOODPUT,
    GOODPUT_NOTE,
    MAIN,
    MEASURES,
    MISSES,
    OURS,
    PERFECT,
    POINTS,
    PRIORITY,
    SIGMA,
    SLO_GOODPUT,
    SOURCE,
    E2EStudyParameters,
    ThreeSigmaParameters,
    history_of,
    misses,
    notes_of,
    recipe,
)
from foresail_studies.trial import TrialSetting, beginning_of, cases_of, named

_IDEAL: Final = "ideal cluster"
_REAL: Final = "emulated real cluster"

_TABLE_4_2: Final = {
    SIGMA: 0.2875,
    PERFECT: 0.6784,
    POINTS: 2.025,
    PRIORITY: 1.853,
}
"""Published difference of the share of deadlines missed, real against simulated, in points."""


@dataclass(frozen=True, slots=True)
class EndToEndParameters(E2EStudyParameters, minutes=(4, 120)):
    """Parameters of ``3sigma-end-to-end``."""

    beside: tuple[str, ...] = OURS
    """Policies to run beside the published systems."""
    emulated: bool = True
    """Whether to run the emulated real cluster too (table 4.2)."""
    start_delay_seconds: float = 3.0
    runtime_noise: float = 0.03
    """Of the emulated real cluster: mean time before a job runs on its nodes, and deviation of the
    logarithm of the runtime."""


@register("study", "3sigma-end-to-end", parameters=EndToEndParameters)
def end_to_end(parameters: EndToEndParameters) -> Study:
    """3Sigma against point estimates, perfect knowledge and strict priority (figure 4.6)."""
    ideal, real = _end_to_end_settings(parameters)
    cases = cases_of(parameters, [ideal], named(*MAIN))
    cases += cases_of(parameters, [ideal], named(*parameters.beside))
    if parameters.emulated:
        cases += cases_of(parameters, [real], named(*MAIN))
    return Study(
        title="Do distributions of runtimes keep more deadlines than single estimates?",
        source=f"{SOURCE}, figure 4.6",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases),
        claims=published(_end_to_end_claims(), _transfer_claims() if parameters.emulated else {}),
        notes=notes_of(parameters),
    )


def _end_to_end_settings(parameters: EndToEndParameters) -> tuple[TrialSetting, TrialSetting]:
    workload = recipe(parameters)
    history = history_of(workload, parameters)
    conditions = {
        "start_delay_seconds": parameters.start_delay_seconds,
        "runtime_noise": parameters.runtime_noise,
    }
    return (
        TrialSetting(workload, history, _IDEAL),
        TrialSetting(workload, history, _REAL, conditions=conditions),
    )


def _end_to_end_claims() -> dict[str, Bound]:
    def missed(system: str) -> Mean:
        return misses(system, group=_IDEAL)

    return {
        "3Sigma misses at least 60 % fewer deadlines than PointRealEst (published: 18 % of "
        "deadlines are missed by PointRealEst, 4.0 times "
        "as many as by 3Sigma).": missed(SIGMA).against(POINTS, factor=0.4),
        "3Sigma misses fewer deadlines than PointRealEst.": missed(SIGMA).against(POINTS),
        "3Sigma nearly matches PointPerfEst in deadlines missed (taken as: "
        "within 3 points).": missed(SIGMA).against(PERFECT, margin=0.03),
        "3Sigma misses fewer deadlines than Prio (published: "
        "Prio 12 %, 2.3 times as many).": missed(SIGMA).against(PRIORITY),
        "Prio misses fewer deadlines than PointRealEst (12 % against 18 %).": missed(
            PRIORITY
        ).against(POINTS),
        "Goodput of PointRealEst is lower than that of 3Sigma (by 5.4 %).": GOODPUT.of(
            POINTS, group=_IDEAL
        ).against(SIGMA),
        "More work of jobs with deadlines gets done "
        "in time than under PointRealEst (36 %).": SLO_GOODPUT.of(POINTS, group=_IDEAL).against(
            SIGMA
        ),
        "Best-effort goodput is much worse under Prio than under PointRealEst.": BEST_EFFORT.of(
            PRIORITY, group=_IDEAL
        ).against(POINTS),
        "3Sigma completes fewer best-effort jobs than PointPerfEst.": grid.BEST_EFFORT_JOBS.of(
            SIGMA, group=_IDEAL
        ).against(PERFECT),
        "Best-effort latency is similar for all (taken "
        "as: 3Sigma's within 10 % of PointRealEst's).": grid.LATENCY.of(
            SIGMA, group=_IDEAL
        ).against(POINTS, factor=1.1),
    }


def _transfer_claims() -> dict[str, Bound]:
    """Compare a real cluster's missed deadlines with a simulation's, within the published."""
    return {
        f"On the real cluster {system} misses {points:g} points more or fewer than simulated "
        f"(table 4.2; taken as: at most so many more).": Bound(
            misses(system, group=_REAL),
            misses(system, group=_IDEAL),
            margin=points / 100.0,
        )
        for system, points in _TABLE_4_2.items()
    }


_HISTORY: Final = "runs of each job name learned from"
_SLACK: Final = "deadline slack (%)"
_SLOWDOWN: Final = "times longer on other nodes"
_LOAD: Final = "offered load"


@dataclass(frozen=True, slots=True)
class AssumptionsParameters(
    E2EStudyParameters,
    quick="seeds=3 histories=[2,100] slacks=[20,140] slowdowns=[1,2] loads=[1,1.6]",
    minutes=(6, 600),
):
    """Parameters of ``3sigma-assumptions``; each list is tried with the others as published."""

    histories: tuple[float, ...] = (2.0, 10.0, 100.0)
    """Values of ``history_runs_per_name``."""
    slacks: tuple[float, ...] = (20.0, 60.0, 140.0)
    """Slacks of the deadlines in per cent, each for all jobs of a run."""
    slowdowns: tuple[float, ...] = (1.0, 1.5, 2.0)
    """Values of ``slowdown``."""
    loads: tuple[float, ...] = (1.0, 1.4, 1.6)
    """Values of ``load``."""


@register("study", "3sigma-assumptions", parameters=AssumptionsParameters)
def assumptions(parameters: AssumptionsParameters) -> Study:
    """Find where 3Sigma's claims hold: history, hopeless jobs, slack, slowdown, load (4.6)."""
    settings = _assumptions_settings(parameters)
    return Study(
        title="Where do 3Sigma's claims hold?",
        source=f"{SOURCE}, figure 4.6",
        axis="assumed",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(case for each in settings for case in _cases(parameters, each)),
        claims=published(*(_assumptions_claims(each.group, each.x) for each in settings)),
        notes=notes_of(parameters),
    )


def _assumptions_settings(parameters: AssumptionsParameters) -> list[TrialSetting]:
    def setting(group: str, x: float, changed: E2EStudyParameters) -> TrialSetting:
        run = recipe(changed)
        return TrialSetting(run, history_of(run, changed), group, x)

    def tight(slack: float) -> TrialSetting:
        run = recipe(parameters, "deadline", f",slack_percent={slack:g}")
        return TrialSetting(run, history_of(run, parameters), _SLACK, slack)

    return [
        *(
            setting(_HISTORY, runs, replace(parameters, history_runs_per_name=runs))
            for runs in parameters.histories
        ),
        *(tight(slack) for slack in parameters.slacks),
        *(
            setting(_SLOWDOWN, slowdown, replace(parameters, slowdown=slowdown))
            for slowdown in parameters.slowdowns
        ),
        *(setting(_LOAD, load, replace(parameters, load=load)) for load in parameters.loads),
    ]


def _cases(parameters: AssumptionsParameters, setting: TrialSetting) -> list[GridPoint]:
    """The published systems; ours too where it matters most, by what was learned before."""
    ours = OURS if setting.group == _HISTORY else ()
    return cases_of(parameters, [setting], named(*MAIN, *ours))


def _assumptions_claims(group: str, x: float | None) -> dict[str, Bound]:
    assert x is not None
    where = f"{group}: {x:g}"

    def mean(system: str, measure: Measure = MISSES) -> Mean:
        return Mean(measure.name, system, group, (x,))

    return {
        f"3Sigma misses at least 60 % fewer deadlines than PointRealEst ({where}).": mean(
            SIGMA
        ).against(POINTS, factor=0.4),
        f"3Sigma nearly matches PointPerfEst (taken as: within 3 points; {where}).": mean(
            SIGMA
        ).against(PERFECT, margin=0.03),
        f"3Sigma misses fewer deadlines than Prio ({where}).": mean(SIGMA).against(PRIORITY),
        f"Prio misses fewer deadlines than PointRealEst ({where}).": mean(PRIORITY).against(POINTS),
        f"More work of jobs with deadlines gets done in time than under PointRealEst (published: "
        f"36 %; "
        f"{where}).": mean(POINTS, SLO_GOODPUT).against(SIGMA),
        f"Goodput of PointRealEst is lower (published: by 5.4 %; {where}).": mean(
            POINTS, GOODPUT
        ).against(SIGMA),
    }


_GROUP: Final = "segments"


@dataclass(frozen=True, slots=True)
class SegmentsParameters(
    ThreeSigmaParameters, quick="seeds=8 cycle_seconds=30 discarded_hours=0", minutes=(3, 10)
):
    """Parameters of ``3sigma-segments``."""

    seeds: int = 10
    cycle_seconds: float = 10.0

    log: str = ""
    """The log; each seed draws a segment of it. ``--log PATH`` gives it."""

    def __post_init__(self) -> None:
        ThreeSigmaParameters.__post_init__(self)
        if not self.log:
            raise InputError("the study needs a real log", field="log", expected="--log PATH")
        if not Path(self.log).exists():
            raise InputError("there is no such log", field="log", source=self.log)


@register("study", "3sigma-segments", parameters=SegmentsParameters)
def segments(parameters: SegmentsParameters) -> Study:
    """The same systems on segments of a real log, with deadlines made up (figure 4.7)."""
    size = f"hours={parameters.hours:g},nodes={parameters.nodes}"
    segment = f'segment(source="{parameters.log}",{size})'
    setting = TrialSetting(segment, f"{segment[:-1]},part=history)", _GROUP)
    return Study(
        title="Do distributions keep more deadlines on a real log?",
        source=f"{SOURCE}, figure 4.7",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases_of(parameters, [setting], named(*MAIN))),
        claims=published(_segments_claims()),
        notes=(
            DROPPING,
            GOODPUT_NOTE,
            beginning_of(parameters),
            CHOSEN,
            "The published segments are of two logs that are not public. Each seed is another "
            "segment of this one, with deadlines, preferences and load as for E2E; predictors "
            "learn from all jobs of the log that had ended before it.",
        ),
    )


def _segments_claims() -> dict[str, Bound]:
    return {
        **{
            f"3Sigma misses fewer deadlines than {system}.": misses(SIGMA).against(system)
            for system in (POINTS, PRIORITY)
        },
        "3Sigma approximately matches PointPerfEst (taken as: within 3 points; published: slightly "
        "better on two logs).": misses(SIGMA).against(PERFECT, margin=0.03),
        "3Sigma does more work by the end than PointRealEst.": GOODPUT.of(POINTS).against(SIGMA),
    }
