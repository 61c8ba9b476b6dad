"""Study ``slearn-variability``: whether similar jobs vary more than the tasks of one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from foresail.analysis.finding import Finding
from foresail.analysis.studies.task_variability import (
    TaskVariabilityParameters,
    task_variability,
)
from foresail.model.registry import register
from foresail_studies.generated import generated
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Measure, Study

_P50: Final = Measure("p50", "half of the jobs below")
_P90: Final = Measure("p90", "90 % of the jobs below")
_MORE: Final = Measure("time_exceeds", "jobs that vary more over time", "share")
_TIME: Final = "over time"
_MANY: Final = "over time, ten similar jobs at least"
_SPACE: Final = "over space"
_AT_LEAST_ONE: Final = "over space, one task at least"
_SCALARS: Final = {
    _TIME: "runtime_over_time",
    _MANY: "runtime_over_time",
    _SPACE: "runtime_over_space",
    _AT_LEAST_ONE: "runtime_over_space_at_least_one",
}
_EXCEEDS: Final = {
    _SPACE: "runtime_time_exceeds_space_share",
    _AT_LEAST_ONE: "runtime_time_exceeds_space_at_least_one_share",
}
_PUBLISHED: Final = {
    "2strace": ((1.00, 3.10), (0.18, 0.55)),
    "gtrace11": ((0.20, 0.73), (0.04, 0.58)),
    "gtrace19": ((1.35, 1.67), (0.70, 1.33)),
}
"""Published medians and 90 % quantiles over time, and over space (table 4)."""
_CLOSE: Final = 1.25


@dataclass(frozen=True, slots=True)
class VariabilityTrial:
    """Variation of the jobs of a generated history, over time or over space."""

    history: str
    seed: int
    where: str

    def measure(self) -> Mapping[str, float]:
        """Quantiles of the coefficient of variation; nothing where nothing can be judged."""
        similar = 10 if self.where == _MANY else 2
        analysis = task_variability(
            TaskVariabilityParameters(window_days=(3.0, 7.0), similar_jobs=similar)
        )
        found = analysis.examine(generated(self.history, self.seed))
        if not isinstance(found, Finding):
            return {}
        name = _SCALARS[self.where]
        figures = {each.name: found.scalars[f"{name}_{each.name}"] for each in (_P50, _P90)}
        if self.where in _EXCEEDS:
            figures[_MORE.name] = found.scalars[_EXCEEDS[self.where]]
        return figures


@register("study", "slearn-variability", parameters=slearn.SLearnStudyParameters)
def variability(parameters: slearn.SLearnStudyParameters) -> Study:
    """Variation of similar jobs over time, and of tasks over space (table 4)."""
    places, systems = slearn.traces(parameters), slearn.by_name(*_SCALARS)
    return Study(
        title="Do similar jobs vary more over time than tasks do within a job?",
        source=f"{slearn.SOURCE}, figure 1 and table 4",
        measures=(_P50, _P90, _MORE),
        drawn=(_P50.name, _P90.name),
        cases=slearn.points(
            places,
            parameters.seeds,
            systems,
            lambda _, history, seed, where: VariabilityTrial(history, seed, where),
        ),
        claims=slearn.claims(_claims),
        notes=(
            "Coefficients of variation: over time of the mean tasks of similar earlier jobs, by "
            "the feature with the least (windows of 3 and 7 days, the better one); over space of "
            "the mean of 3 % of a job's tasks, as published (less than one task of narrow jobs), "
            "and of one task at least.",
            "A coefficient of variation of few values is too low (that of two is 1 at most), and "
            "the least over features picks the lowest. The published logs have some thousand jobs "
            "a day, these a hundred: with two similar jobs or more it comes out too low for that "
            "reason; with ten or more too high where jobs have fewer of their own name, so that "
            "only features are left that mix names. What the published logs would show lies "
            "between, and no claim is made about the latter.",
            *slearn.notes(parameters),
        ),
    )


def _claims(trace: str, group: str) -> dict[str, Bound]:
    over_time, over_space = _PUBLISHED[trace]
    claims = {
        f"Half of the jobs vary by more over time ({over_time[0]:g}) than over space "
        f"({over_space[0]:g}; "
        f"{group}).": Bound(_P50.of(_SPACE, group=group), _P50.of(_TIME, group=group)),
    }
    claims |= {
        f"... {side} it is {value:g} (taken as: {value / _CLOSE:.3g} at least; {group}).": Bound(
            value / _CLOSE, _P50.of(side, group=group)
        )
        for side, value in ((_TIME, over_time[0]), (_SPACE, over_space[0]))
    }
    if trace == "2strace":
        claims |= {
            f"85.4 % of the jobs vary more over time (taken as: 80 % at least; {group}).": Bound(
                0.80, _MORE.of(_SPACE, group=group)
            )
        }
    return claims
