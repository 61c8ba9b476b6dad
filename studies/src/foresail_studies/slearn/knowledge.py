"""Studies of what sampling and history tell: errors, variability, spread over jobs and time.

Each seed of ``slearn-over-time`` is a group of its own, since it is another trace: the mean of
several would show no load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.analysis.finding import Finding
from foresail.model.distribution import Floats, Integers
from foresail.model.registry import register
from foresail_studies.analyses.task_variability import TaskVariabilityParameters, task_variability
from foresail_studies.slearn._shared import (
    AHEAD,
    AHEAD_IS,
    COMPLETION,
    ERROR,
    JOINT,
    LARGE_ERROR,
    ORACLE,
    OVER,
    POINT,
    RIGHT,
    SIGMA,
    SIGNED_ERROR,
    SLEARN,
    SOURCE,
    TOO_HIGH,
    TOO_LOW,
    TRACES,
    WAITING,
    SLearnStudyParameters,
    by_job,
    by_name,
    cases,
    claims,
    completion,
    notes,
    points,
    replayed,
    traces,
)
from foresail_studies.study import Bound, GridPoint, Mean, Measure, Study, generated, published

_ESTIMATES_SYSTEMS: Final = by_name(SLEARN, SIGMA, POINT, JOINT)
_MEDIANS: Final = {
    "2strace": (0.1898, 0.3657),
    "gtrace11": (0.1368, 0.2139),
    "gtrace19": (0.5184, 0.7156),
}
"""Published medians of the errors of SLearn and of 3Sigma."""
_LARGE: Final = {
    "2strace": (0.5866, 4.7578),
    "gtrace11": (0.4995, 2.9452),
    "gtrace19": (0.9225, 19.2751),
}
"""Published 90 % quantiles of the errors."""
_RIGHT: Final = {
    "2strace": (0.8909, 0.7384),
    "gtrace11": (0.8645, 0.7620),
    "gtrace19": (0.7396, 0.5807),
}
"""Published shares of wide jobs in the right queue (table 7)."""


@register("study", "slearn-estimates", parameters=SLearnStudyParameters)
def estimates_study(parameters: SLearnStudyParameters) -> Study:
    """Errors of predicted sizes, and wide jobs in the right queue (figure 2, tables 7 and 10)."""
    return Study(
        title="How wrong are sampled and remembered runtimes, and which jobs do they misplace?",
        source=f"{SOURCE}, figure 2, tables 7 and 10",
        measures=(
            *(ERROR, LARGE_ERROR, OVER),
            *(RIGHT, TOO_LOW, TOO_HIGH),
        ),
        drawn=(ERROR.name, RIGHT.name),
        cases=cases(traces(parameters), parameters.seeds, _ESTIMATES_SYSTEMS, slower=SIGMA),
        claims=claims(_estimates_claims),
        notes=(
            "Jobs with three tasks or more; errors of the seconds of all tasks.",
            *notes(parameters),
        ),
    )


def _estimates_claims(trace: str, group: str) -> dict[str, Bound]:
    def of(name: str, system: str) -> Mean:
        return Mean(name, system, group)

    sampled, remembered = (f"{value:.1%}" for value in _MEDIANS[trace])
    large, larger = (f"{value:.0%}" for value in _LARGE[trace])
    right, fewer = (f"{value:.1%}" for value in _RIGHT[trace])
    return {
        f"Half of SLearn's errors are below {sampled}, of 3Sigma's below {remembered}: "
        f"SLearn errs less ({group}).": of(ERROR.name, SLEARN).against(SIGMA),
        f"... as much as published, or less ({sampled}).": Bound(
            of(ERROR.name, SLEARN), _MEDIANS[trace][0]
        ),
        f"90 % of SLearn's errors are below {large}, of 3Sigma's below {larger}: SLearn "
        f"errs less ({group}).": of(LARGE_ERROR.name, SLEARN).against(SIGMA),
        f"More wide jobs are in the right queue under SLearn ({right}) than under "
        f"3Sigma ({fewer}; {group}).": of(RIGHT.name, SIGMA).against(SLEARN),
        f"Most of 3Sigma's estimates are too long (published: 60 % on 2STrace; {group}).": Bound(
            0.5, of(OVER.name, SIGMA)
        ),
    }


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


@register("study", "slearn-variability", parameters=SLearnStudyParameters)
def variability(parameters: SLearnStudyParameters) -> Study:
    """Variation of similar jobs over time, and of tasks over space (table 4)."""
    places, systems = traces(parameters), by_name(*_SCALARS)
    return Study(
        title="Do similar jobs vary more over time than tasks do within a job?",
        source=f"{SOURCE}, figure 1 and table 4",
        measures=(_P50, _P90, _MORE),
        drawn=(_P50.name, _P90.name),
        cases=points(
            places,
            parameters.seeds,
            systems,
            lambda _, history, seed, where: VariabilityTrial(history, seed, where),
        ),
        claims=claims(_variability_claims),
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
            *notes(parameters),
        ),
    )


def _variability_claims(trace: str, group: str) -> dict[str, Bound]:
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


_SHARES: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_DISTRIBUTIONS_SYSTEMS: Final = (SLEARN, SIGMA, ORACLE)


@dataclass(frozen=True, slots=True)
class DistributionTrial:
    """Share of the jobs below each value, of one replay."""

    workload: str
    history: str
    seed: int
    policy: str
    share: float

    def measure(self) -> Mapping[str, float]:
        """Quantiles of normalised waits, signed errors of wide jobs, and resistance."""
        found = by_job(self.workload, self.history, self.seed, self.policy)
        return {name: float(np.nanquantile(each, self.share)) for name, each in found.items()}


@dataclass(frozen=True, slots=True)
class DistributionParameters(SLearnStudyParameters, quick="seeds=3", minutes=(2, 10)):
    """Parameters of ``slearn-distributions``."""

    seeds: int = 10


@register("study", "slearn-distributions", parameters=DistributionParameters)
def distributions(parameters: DistributionParameters) -> Study:
    """Waits, signed errors and work ahead by the share of jobs below (section 5.4)."""
    cases = [
        GridPoint(trace.name, share, each, seed, DistributionTrial(*trace[1:], seed, each, share))
        for trace in traces(parameters)
        for seed in range(parameters.seeds)
        for each in _DISTRIBUTIONS_SYSTEMS
        for share in _SHARES
    ]
    return Study(
        title="How are waits, errors and the work ahead spread over the jobs?",
        source=f"{SOURCE}, section 5.4 and table 10",
        axis="share of the jobs below",
        measures=(WAITING, SIGNED_ERROR, AHEAD),
        drawn=(WAITING.name, SIGNED_ERROR.name, AHEAD.name),
        cases=tuple(cases),
        claims=claims(lambda _, group: _distributions_claims(group)),
        notes=(
            "Waits are those of a job's tasks over their mean runtime. Errors are cut at 1000 %.",
            AHEAD_IS,
            *notes(parameters),
        ),
    )


def _distributions_claims(group: str) -> dict[str, Bound]:
    def below(measure: Measure, share: float) -> Mean:
        return Mean(measure.name, SLEARN, group, (share,))

    return {
        f"The largest tenth of 3Sigma's errors is larger than that of SLearn's ({group}).": below(
            SIGNED_ERROR, 0.9
        ).against(SIGMA),
        f"The most work ahead of a job is less under SLearn than under 3Sigma ({group}).": below(
            AHEAD, 0.9
        ).against(SIGMA),
        f"Jobs that wait the longest for their length wait less under SLearn ({group}).": below(
            WAITING, 0.9
        ).against(SIGMA),
        f"Work ahead is no more than the oracle's (taken as: 10 %, "
        f"of 90 % of jobs; {group}).": below(AHEAD, 0.9).against(ORACLE, factor=1.1),
    }


_LOAD: Final = Measure("load", "work submitted, over what all slots can do")
_SUBMITTED: Final = "submitted"
_OVER_TIME_SYSTEMS: Final = (SLEARN, SIGMA, ORACLE)
_WINDOWS: Final = 25
_TRACE: Final = "2strace"


@dataclass(frozen=True, slots=True)
class LoadTrial:
    """The work that is submitted in one of the windows that the time of submissions is cut into."""

    workload: str
    history: str
    seed: int
    window: int

    def measure(self) -> Mapping[str, float]:
        """Its seconds over those of all slots."""
        found = replayed(self.workload, self.history, self.seed, SLEARN)
        slots = generated(self.workload, self.seed).processors
        reach = float(found.submit[-1] - found.submit[0])
        within = _windows(found.submit) == self.window
        work = float(found.stages.job_seconds[within].sum())
        return {_LOAD.name: work * _WINDOWS / (slots * reach)}


@dataclass(frozen=True, slots=True)
class TimelineTrial:
    """Metrics of the jobs that are submitted in one of the windows."""

    workload: str
    history: str
    seed: int
    policy: str
    window: int

    def measure(self) -> Mapping[str, float]:
        """Means over these jobs; nan where there are none."""
        found = replayed(self.workload, self.history, self.seed, self.policy)
        within = _windows(found.submit) == self.window
        of_jobs = by_job(self.workload, self.history, self.seed, self.policy)
        values = {
            AHEAD.name: of_jobs[AHEAD.name],
            SIGNED_ERROR.name: of_jobs[SIGNED_ERROR.name],
            COMPLETION.name: completion(found),
        }
        known = {name: each[within & np.isfinite(each)] for name, each in values.items()}
        return {name: float(each.mean()) if each.size else np.nan for name, each in known.items()}


def _windows(submit: Floats) -> Integers:
    """The window of each submission, from 0; the last one is in the last."""
    share = (submit - submit[0]) / max(float(submit[-1] - submit[0]), 1.0)
    windows: Integers = np.minimum((share * _WINDOWS).astype(np.int64), _WINDOWS - 1)
    return windows


@dataclass(frozen=True, slots=True)
class OverTimeParameters(SLearnStudyParameters, quick="seeds=3", minutes=(1, 3)):
    """Parameters of ``slearn-over-time``."""

    seeds: int = 10


@register("study", "slearn-over-time", parameters=OverTimeParameters)
def over_time(parameters: OverTimeParameters) -> Study:
    """Load, work ahead, errors and completion times of jobs by when they come (figure 14)."""
    trace = traces(parameters)[list(TRACES).index(_TRACE)]
    cases = []
    for seed in range(parameters.seeds):
        for window in range(_WINDOWS):
            where = (f"{trace.name} {seed}", (window + 0.5) / _WINDOWS)
            made = (trace.run, trace.history, seed)
            cases.append(GridPoint(*where, _SUBMITTED, seed, LoadTrial(*made, window)))
            cases += [
                GridPoint(*where, system, seed, TimelineTrial(*made, system, window))
                for system in _OVER_TIME_SYSTEMS
            ]
    measures = (_LOAD, AHEAD, SIGNED_ERROR, COMPLETION)
    return Study(
        title="What happens to jobs when much work comes?",
        source=f"{SOURCE}, section 5.4.4 and figure 14",
        axis="share of the time from the first submission to the last",
        measures=measures,
        drawn=tuple(measure.name for measure in measures),
        cases=tuple(cases),
        claims=published(
            {
                "Work ahead of a job is less under SLearn than under 3Sigma.": AHEAD.of(
                    SLEARN
                ).against(SIGMA),
                "Work ahead of a job is no more than under the oracle (taken as: 10 %).": AHEAD.of(
                    SLEARN
                ).against(ORACLE, factor=1.1),
                "3Sigma takes more jobs for longer than they are than SLearn "
                "does (mean error).": SIGNED_ERROR.of(SLEARN).against(SIGMA),
            }
        ),
        notes=(
            f"A window is a {_WINDOWS}th of the time of submissions, and has the jobs submitted "
            "then. Each seed is another trace, and drawn by itself. Published curves have a point "
            "for each 1000 s.",
            AHEAD_IS,
            *notes(parameters),
        ),
    )
