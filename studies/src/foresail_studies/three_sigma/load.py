"""Study ``3sigma-load``: deadlines and best-effort work as the load grows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from foresail.model.registry import register
from foresail_studies.study import Bound, Mean, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, cases_of, named


@dataclass(frozen=True, slots=True)
class LoadParameters(three_sigma.E2EStudyParameters):
    """Parameters of ``3sigma-load``."""

    QUICK: ClassVar[dict[str, str]] = {**three_sigma.QUICK, "loads": "[1,1.4,1.6]"}
    QUICK_MINUTES: ClassVar[float] = 3.0
    FULL_MINUTES: ClassVar[float] = 60.0

    loads: tuple[float, ...] = (1.0, 1.2, 1.4, 1.6)
    """Offered loads, half of each from jobs with deadlines; instead of ``load``."""


@register("study", "3sigma-load", parameters=LoadParameters)
def load(parameters: LoadParameters) -> Study:
    """Deadlines and best-effort work as the load grows (figure 4.10)."""
    settings = [_setting(parameters, each) for each in parameters.loads]
    return Study(
        title="What happens as the load grows?",
        source=f"{three_sigma.SOURCE}, figure 4.10",
        axis="offered load",
        measures=three_sigma.MEASURES,
        drawn=three_sigma.DRAWN,
        cases=tuple(cases_of(parameters, settings, named(*three_sigma.MAIN))),
        claims=published(_claims(min(parameters.loads), max(parameters.loads))),
        notes=three_sigma.notes_of(parameters),
    )


def _setting(parameters: LoadParameters, each: float) -> TrialSetting:
    loaded = replace(parameters, load=each)
    workload = three_sigma.recipe(loaded)
    return TrialSetting(workload, three_sigma.history_of(workload, loaded), "E2E-LOAD", each)


def _claims(least: float, most: float) -> dict[str, Bound]:
    misses = three_sigma.misses

    def best_effort(system: str, *x: float) -> Mean:
        return Mean(three_sigma.BEST_EFFORT.name, system, x=x)

    return {
        **{
            f"More deadlines are missed at a higher load ({system}).": Bound(
                misses(system, least), misses(system, most)
            )
            for system in three_sigma.MAIN
        },
        **{
            f"3Sigma misses fewer deadlines than {system} over all loads.": misses(
                three_sigma.SIGMA
            ).against(system)
            for system in (three_sigma.POINTS, three_sigma.PRIORITY)
        },
        "3Sigma matches PointPerfEst closely (taken as: within 3 points).": misses(
            three_sigma.SIGMA
        ).against(three_sigma.PERFECT, margin=0.03),
        **{
            f"Best-effort goodput falls with the load ({system}).": Bound(
                best_effort(system, most), best_effort(system, least)
            )
            for system in three_sigma.MAIN
        },
        "At the highest load 3Sigma does less best-effort work than PointPerfEst.": best_effort(
            three_sigma.SIGMA, most
        ).against(three_sigma.PERFECT),
    }
