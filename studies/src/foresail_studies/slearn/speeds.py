"""Study ``slearn-speeds``: what it gives to know how fast the machines of pilots are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.slearn import _shared as slearn
from foresail_studies.study import Bound, Mean, Study, published

_IGNORED: Final = "speeds ignored"
_SYSTEMS: Final = {
    slearn.SLEARN: slearn.SLEARN,
    _IGNORED: "slearn(speeds=ignored)",
    slearn.JOINT: slearn.JOINT,
    slearn.SIGMA: slearn.SIGMA,
    slearn.ORACLE: slearn.ORACLE,
}
_NOISE: Final = 1.01


@dataclass(frozen=True, slots=True)
class SLearnSpeedsParameters(slearn.SLearnStudyParameters):
    """Parameters of ``slearn-speeds``."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("median_tasks",)

    ranges: tuple[float, ...] = (0.25, 0.75)
    """How far speeds go below and above 1: a third of the slots has each, a third has 1."""


@register("study", "slearn-speeds", parameters=SLearnSpeedsParameters)
def speeds(parameters: SLearnSpeedsParameters) -> Study:
    """Slots of three speeds: pilots that tell what speed 1 would take, against what they took."""
    widths = ((slearn.narrow, ""), (slearn.wider, f",median_tasks={parameters.median_tasks:g}"))
    places = tuple(
        _traces(trace, name(trace), half, f"jobs={parameters.jobs}{more}")
        for name, more in widths
        for trace in slearn.TRACES
        for half in parameters.ranges
    )
    return Study(
        title="Does it matter how fast the machine of a pilot is?",
        source="Extension named in SLearn's section 7; ours",
        measures=(slearn.FASTER, slearn.MEDIAN, slearn.COMPLETION, slearn.ERROR, slearn.RIGHT),
        drawn=(slearn.FASTER.name, slearn.ERROR.name),
        cases=slearn.cases(places, parameters.seeds, _SYSTEMS, faster=slearn.SLEARN),
        claims=published(*(_claims(place.name) for place in places)),
        notes=(
            "Speed-ups are SLearn's, which knows the speeds, over the system of the row. A third "
            "of the slots has each speed; the fastest that is free is taken first. Errors are of "
            "sizes at speed 1. Not published; nothing was chosen by these runs.",
            *slearn.notes(parameters),
        ),
    )


def _traces(trace: str, name: str, half: float, settings: str) -> slearn.Traces:
    low, high = 1.0 - half, 1.0 + half
    of_slots = f"calibration={trace},speeds=[{low:g},1,{high:g}],{settings}"
    return slearn.made_by("slearn", f"{name}, speeds of {low:g}, 1 and {high:g}", of_slots)


def _claims(group: str) -> dict[str, Bound]:
    ignored = Mean(slearn.ERROR.name, _IGNORED, group)
    return {
        f"Ours: estimates err less where speeds are known ({group}).": Bound(
            slearn.ERROR.of(slearn.SLEARN, group=group), ignored
        ),
        f"Ours: who knows speeds is no slower (taken as: 1 %; {group}).": slearn.COMPLETION.of(
            slearn.SLEARN, group=group
        ).against(_IGNORED, factor=_NOISE),
    }
