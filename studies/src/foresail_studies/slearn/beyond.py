"""Study ``slearn-beyond``: which jobs are too narrow to sample, and what their last task tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Study, published

_SYSTEMS: Final = {
    slearn.SLEARN: slearn.SLEARN,
    "adaptive thin limit": "slearn(thin_limit=adaptive)",
    "tail counted": "slearn(tail=counted)",
    "both": "slearn(thin_limit=adaptive,tail=counted)",
    slearn.ORACLE: slearn.ORACLE,
}
_OPTIONS: Final = ("adaptive thin limit", "tail counted")
_NOISE: Final = 1.01


@dataclass(frozen=True, slots=True)
class SLearnBeyondParameters(slearn.SLearnStudyParameters):
    """Parameters of ``slearn-beyond``."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("median_tasks", "equal_jobs")

    equal_jobs: int = 400
    """Of each run whose jobs are all as wide."""
    widths: tuple[int, ...] = (10, 50, 150)
    """Tasks of every job of such a run."""
    variations: tuple[float, ...] = (0.3, 1.5)
    """Of these runs' tasks: the coefficient over space."""


@register("study", "slearn-beyond", parameters=SLearnBeyondParameters)
def beyond(parameters: SLearnBeyondParameters) -> Study:
    """A thin limit that adapts, and sizes that count the tail of a job, against plain SLearn."""
    places = (*slearn.traces(parameters), *_equally_wide(parameters))
    return Study(
        title="Which jobs are too narrow to be sampled, and does their last task matter?",
        source="Extensions named in SLearn's section 7; ours",
        measures=(slearn.FASTER, slearn.MEDIAN, slearn.COMPLETION, slearn.ERROR),
        drawn=(slearn.FASTER.name,),
        cases=slearn.cases(places, parameters.seeds, _SYSTEMS, slower=slearn.SLEARN),
        claims=published(
            *(_no_slower(option, place.name) for place in places for option in _OPTIONS)
        ),
        notes=(
            "Speed-ups are those over SLearn. Not published; options were chosen on seeds 100 to "
            "105 of the traces, and on 100 to 103 of jobs that are equally wide.",
            "Jobs that are equally wide belong to 20 names; work within a name varies by 0.5, "
            "tasks within a job as said. Load 1, 150 slots.",
            *slearn.notes(parameters),
        ),
    )


def _equally_wide(parameters: SLearnBeyondParameters) -> Iterator[slearn.Traces]:
    for width in parameters.widths:
        for space in parameters.variations:
            settings = f"jobs={parameters.equal_jobs},width={width},task_variation={space:g}"
            name = f"all jobs of {width} tasks, which vary by {space:g}"
            yield slearn.made_by("task_regimes", name, settings)


def _no_slower(option: str, group: str) -> dict[str, Bound]:
    return {
        f"Ours: {option} is no slower than "
        f"plain SLearn (taken as: 1 %; {group}).": slearn.COMPLETION.of(
            option, group=group
        ).against(slearn.SLEARN, factor=_NOISE)
    }
