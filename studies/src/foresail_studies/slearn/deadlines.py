"""Study ``slearn-deadlines``: whose jobs of many tasks are in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from foresail.model.registry import register
from foresail_studies.generated import generated
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Measure, Study, published

_EARLIEST: Final = "earliest deadline first"
_ODDS: Final = "by the odds"
_SYSTEMS: Final = {
    slearn.SLEARN: slearn.SLEARN,
    _EARLIEST: "task_edf",
    _ODDS: "slearn(deadlines=by_odds)",
    slearn.ORACLE: slearn.ORACLE,
}
_MET: Final = Measure("deadlines_met", "deadlines met", "share")


@dataclass(frozen=True, slots=True)
class DeadlineTrial:
    """A replay of jobs some of which have deadlines."""

    workload: str
    history: str
    seed: int
    policy: str

    def measure(self) -> Mapping[str, float]:
        """Share of the deadlines that are met, and the mean completion time of all jobs."""
        found = slearn.replayed(self.workload, self.history, self.seed, self.policy)
        jobs = generated(self.workload, self.seed).jobs
        deadline = jobs["deadline_seconds"].fill_null(np.nan).to_numpy()
        has_one = ~np.isnan(deadline)
        return {
            _MET.name: float((found.job_end <= deadline)[has_one].mean()),
            slearn.COMPLETION.name: float(slearn.completion(found).mean()),
        }


@dataclass(frozen=True, slots=True)
class SLearnDeadlineParameters(slearn.SLearnStudyParameters):
    """Parameters of ``slearn-deadlines``."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("median_tasks", "some")

    tight_percent: tuple[float, ...] = (30.0, 60.0, 100.0)
    wide_percent: tuple[float, ...] = (100.0, 300.0, 1000.0)
    """Slacks of the jobs with deadlines."""
    some: float = 0.5
    """Share of the jobs that have tight deadlines, where not all have one."""


@register("study", "slearn-deadlines", parameters=SLearnDeadlineParameters)
def deadlines(parameters: SLearnDeadlineParameters) -> Study:
    """Deadlines met by plain SLearn, by the earliest deadline, and by the odds of being in time."""
    places = tuple(_places(parameters))
    return Study(
        title="Whose jobs of many tasks are in time?",
        source="Deadlines are named as an extension in SLearn's section 7; ours",
        measures=(_MET, slearn.COMPLETION),
        drawn=(_MET.name,),
        cases=slearn.points(places, parameters.seeds, _SYSTEMS, DeadlineTrial),
        claims=published(
            {
                f"Ours: by the odds as many deadlines are met as under {other}, or more "
                f"({place.name}).": Bound(
                    _MET.of(other, group=place.name), _MET.of(_ODDS, group=place.name)
                )
                for place in places
                for other in (slearn.SLEARN, _EARLIEST)
            }
        ),
        notes=(
            "A deadline is the submission and what the job takes alone on all slots (its longest "
            "task, and the other work over the slots), times 1 and a slack: so deadlines tell of "
            "sizes, which those that order by them gain from.",
            f"Tight: slacks of {_said(parameters.tight_percent)} %; wide: "
            f"{_said(parameters.wide_percent)} %. The rule and the odds that are too small (0.05) "
            "were chosen on seeds 100 to 102 with all jobs due.",
            "Earliest deadline first has one queue, asks no runtimes, and puts jobs without a "
            "deadline last. SLearn and its oracle do not look at deadlines.",
            *slearn.notes(parameters),
        ),
    )


def _said(percent: tuple[float, ...]) -> str:
    return ", ".join(f"{each:g}" for each in percent)


def _places(parameters: SLearnDeadlineParameters) -> Iterator[slearn.Traces]:
    tight, wide = (
        f"slack_percent=[{','.join(f'{each:g}' for each in percent)}]"
        for percent in (parameters.tight_percent, parameters.wide_percent)
    )
    some = f"{tight},deadline_share={parameters.some:g}"
    for trace in slearn.traces(parameters):
        for name, settings in (
            ("tight", tight),
            ("wide", wide),
            (f"tight, for {parameters.some:.0%} of the jobs", some),
        ):
            run = f"{trace.run.removesuffix(')')},{settings})"
            yield slearn.Traces(f"{trace.name}; {name}", run, trace.history)
