"""Study ``3sigma-segments``: the systems of 3Sigma's evaluation on segments of a real log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail_studies.study import Bound, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, beginning_of, cases_of, named

_GROUP: Final = "segments"


@dataclass(frozen=True, slots=True)
class SegmentsParameters(three_sigma.ThreeSigmaParameters):
    """Parameters of ``3sigma-segments``."""

    QUICK: ClassVar[dict[str, str]] = {"seeds": "8", "cycle_seconds": "30", "discarded_hours": "0"}
    QUICK_MINUTES: ClassVar[float] = 3.0
    FULL_MINUTES: ClassVar[float] = 10.0

    seeds: int = 10
    cycle_seconds: float = 10.0

    log: str = ""
    """The log; each seed draws a segment of it. ``--log PATH`` gives it."""

    def __post_init__(self) -> None:
        three_sigma.ThreeSigmaParameters.__post_init__(self)
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
        source=f"{three_sigma.SOURCE}, figure 4.7",
        measures=three_sigma.MEASURES,
        drawn=three_sigma.DRAWN,
        cases=tuple(cases_of(parameters, [setting], named(*three_sigma.MAIN))),
        claims=published(_claims()),
        notes=(
            three_sigma.DROPPING,
            three_sigma.GOODPUT_NOTE,
            beginning_of(parameters),
            three_sigma.CHOSEN,
            "The published segments are of two logs that are not public. Each seed is another "
            "segment of this one, with deadlines, preferences and load as for E2E; predictors "
            "learn from all jobs of the log that had ended before it.",
        ),
    )


def _claims() -> dict[str, Bound]:
    misses = three_sigma.misses
    return {
        **{
            f"3Sigma misses fewer deadlines than {system}.": misses(three_sigma.SIGMA).against(
                system
            )
            for system in (three_sigma.POINTS, three_sigma.PRIORITY)
        },
        "3Sigma approximately matches PointPerfEst (taken as: within 3 points; published: slightly "
        "better on two logs).": misses(three_sigma.SIGMA).against(three_sigma.PERFECT, margin=0.03),
        "3Sigma does more work by the end than PointRealEst.": three_sigma.GOODPUT.of(
            three_sigma.POINTS
        ).against(three_sigma.SIGMA),
    }
