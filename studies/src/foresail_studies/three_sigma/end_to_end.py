"""Study ``3sigma-end-to-end``: 3Sigma against points, perfect knowledge and strict priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial_grid as grid
from foresail_studies.study import Bound, Mean, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, cases_of, named

_IDEAL: Final = "ideal cluster"
_REAL: Final = "emulated real cluster"

_TABLE_4_2: Final = {
    three_sigma.SIGMA: 0.2875,
    three_sigma.PERFECT: 0.6784,
    three_sigma.POINTS: 2.025,
    three_sigma.PRIORITY: 1.853,
}
"""Published difference of the share of deadlines missed, real against simulated, in points."""


@dataclass(frozen=True, slots=True)
class EndToEndParameters(three_sigma.E2EStudyParameters):
    """Parameters of ``3sigma-end-to-end``."""

    QUICK: ClassVar[dict[str, str]] = three_sigma.QUICK
    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 120.0

    beside: tuple[str, ...] = three_sigma.OURS
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
    ideal, real = _settings(parameters)
    cases = cases_of(parameters, [ideal], named(*three_sigma.MAIN))
    cases += cases_of(parameters, [ideal], named(*parameters.beside))
    if parameters.emulated:
        cases += cases_of(parameters, [real], named(*three_sigma.MAIN))
    return Study(
        title="Do distributions of runtimes keep more deadlines than single estimates?",
        source=f"{three_sigma.SOURCE}, figure 4.6",
        measures=three_sigma.MEASURES,
        drawn=three_sigma.DRAWN,
        cases=tuple(cases),
        claims=published(_claims(), _transfer_claims() if parameters.emulated else {}),
        notes=three_sigma.notes_of(parameters),
    )


def _settings(parameters: EndToEndParameters) -> tuple[TrialSetting, TrialSetting]:
    workload = three_sigma.recipe(parameters)
    history = three_sigma.history_of(workload, parameters)
    conditions = {
        "start_delay_seconds": parameters.start_delay_seconds,
        "runtime_noise": parameters.runtime_noise,
    }
    return (
        TrialSetting(workload, history, _IDEAL),
        TrialSetting(workload, history, _REAL, conditions=conditions),
    )


def _claims() -> dict[str, Bound]:
    def misses(system: str) -> Mean:
        return three_sigma.misses(system, group=_IDEAL)

    return {
        "3Sigma misses at least 60 % fewer deadlines than PointRealEst (published: 18 % of "
        "deadlines are missed by PointRealEst, 4.0 times "
        "as many as by 3Sigma).": misses(three_sigma.SIGMA).against(three_sigma.POINTS, factor=0.4),
        "3Sigma misses fewer deadlines than PointRealEst.": misses(three_sigma.SIGMA).against(
            three_sigma.POINTS
        ),
        "3Sigma nearly matches PointPerfEst in deadlines missed (taken as: "
        "within 3 points).": misses(three_sigma.SIGMA).against(three_sigma.PERFECT, margin=0.03),
        "3Sigma misses fewer deadlines than Prio (published: "
        "Prio 12 %, 2.3 times as many).": misses(three_sigma.SIGMA).against(three_sigma.PRIORITY),
        "Prio misses fewer deadlines than PointRealEst (12 % against 18 %).": misses(
            three_sigma.PRIORITY
        ).against(three_sigma.POINTS),
        "Goodput of PointRealEst is lower than that of 3Sigma (by 5.4 %).": three_sigma.GOODPUT.of(
            three_sigma.POINTS, group=_IDEAL
        ).against(three_sigma.SIGMA),
        "More work of jobs with deadlines gets done "
        "in time than under PointRealEst (36 %).": three_sigma.SLO_GOODPUT.of(
            three_sigma.POINTS, group=_IDEAL
        ).against(three_sigma.SIGMA),
        "Best-effort goodput is much worse "
        "under Prio than under PointRealEst.": three_sigma.BEST_EFFORT.of(
            three_sigma.PRIORITY, group=_IDEAL
        ).against(three_sigma.POINTS),
        "3Sigma completes fewer best-effort jobs than PointPerfEst.": grid.BEST_EFFORT_JOBS.of(
            three_sigma.SIGMA, group=_IDEAL
        ).against(three_sigma.PERFECT),
        "Best-effort latency is similar for all (taken "
        "as: 3Sigma's within 10 % of PointRealEst's).": grid.LATENCY.of(
            three_sigma.SIGMA, group=_IDEAL
        ).against(three_sigma.POINTS, factor=1.1),
    }


def _transfer_claims() -> dict[str, Bound]:
    """Compare a real cluster's missed deadlines with a simulation's, within the published."""
    return {
        f"On the real cluster {system} misses {points:g} points more or fewer than simulated "
        f"(table 4.2; taken as: at most so many more).": Bound(
            three_sigma.misses(system, group=_REAL),
            three_sigma.misses(system, group=_IDEAL),
            margin=points / 100.0,
        )
        for system, points in _TABLE_4_2.items()
    }
