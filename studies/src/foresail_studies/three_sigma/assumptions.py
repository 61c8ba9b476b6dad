"""Study ``3sigma-assumptions``: where 3Sigma's claims hold, by what its publication leaves open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.study import Bound, GridPoint, Mean, Measure, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, cases_of, named

_HISTORY: Final = "runs of each job name learned from"
_SLACK: Final = "deadline slack (%)"
_SLOWDOWN: Final = "times longer on other nodes"
_LOAD: Final = "offered load"


@dataclass(frozen=True, slots=True)
class AssumptionsParameters(three_sigma.E2EStudyParameters):
    """Parameters of ``3sigma-assumptions``; each list is tried with the others as published."""

    QUICK: ClassVar[dict[str, str]] = {
        **three_sigma.QUICK,
        "seeds": "3",
        "histories": "[2,100]",
        "slacks": "[20,140]",
        "slowdowns": "[1,2]",
        "loads": "[1,1.6]",
    }
    QUICK_MINUTES: ClassVar[float] = 6.0
    FULL_MINUTES: ClassVar[float] = 600.0

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
    settings = _settings(parameters)
    return Study(
        title="Where do 3Sigma's claims hold?",
        source=f"{three_sigma.SOURCE}, figure 4.6",
        axis="assumed",
        measures=three_sigma.MEASURES,
        drawn=three_sigma.DRAWN,
        cases=tuple(case for each in settings for case in _cases(parameters, each)),
        claims=published(*(_claims(each.group, each.x) for each in settings)),
        notes=three_sigma.notes_of(parameters),
    )


def _settings(parameters: AssumptionsParameters) -> list[TrialSetting]:
    def setting(group: str, x: float, changed: three_sigma.E2EStudyParameters) -> TrialSetting:
        run = three_sigma.recipe(changed)
        return TrialSetting(run, three_sigma.history_of(run, changed), group, x)

    def tight(slack: float) -> TrialSetting:
        run = three_sigma.recipe(parameters, "deadline", f",slack_percent={slack:g}")
        return TrialSetting(run, three_sigma.history_of(run, parameters), _SLACK, slack)

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
    ours = three_sigma.OURS if setting.group == _HISTORY else ()
    return cases_of(parameters, [setting], named(*three_sigma.MAIN, *ours))


def _claims(group: str, x: float | None) -> dict[str, Bound]:
    assert x is not None
    where = f"{group}: {x:g}"

    def mean(system: str, measure: Measure = three_sigma.MISSES) -> Mean:
        return Mean(measure.name, system, group, (x,))

    return {
        f"3Sigma misses at least 60 % fewer deadlines than PointRealEst ({where}).": mean(
            three_sigma.SIGMA
        ).against(three_sigma.POINTS, factor=0.4),
        f"3Sigma nearly matches PointPerfEst (taken as: within 3 points; {where}).": mean(
            three_sigma.SIGMA
        ).against(three_sigma.PERFECT, margin=0.03),
        f"3Sigma misses fewer deadlines than Prio ({where}).": mean(three_sigma.SIGMA).against(
            three_sigma.PRIORITY
        ),
        f"Prio misses fewer deadlines than PointRealEst ({where}).": mean(
            three_sigma.PRIORITY
        ).against(three_sigma.POINTS),
        f"More work of jobs with deadlines gets done in time than under PointRealEst (published: "
        f"36 %; "
        f"{where}).": mean(three_sigma.POINTS, three_sigma.SLO_GOODPUT).against(three_sigma.SIGMA),
        f"Goodput of PointRealEst is lower (published: by 5.4 %; {where}).": mean(
            three_sigma.POINTS, three_sigma.GOODPUT
        ).against(three_sigma.SIGMA),
    }
