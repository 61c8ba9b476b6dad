"""Study ``beyond-risk``: capacity kept with a probability."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import register
from foresail_studies.beyond import _shared as beyond
from foresail_studies.study import Study, published

_POLICIES: Final = {
    "in expectation": "",
    "risk 0.2": "overflow_risk=0.2",
    "risk 0.05": "overflow_risk=0.05",
}


@register("study", "beyond-risk", parameters=beyond.BeyondParameters)
def risk(parameters: beyond.BeyondParameters) -> Study:
    """Plans that are kept with a probability."""
    expected, surer = "in expectation", "risk 0.05"
    return Study(
        title="What does it give to plan with less risk?",
        source="Foresail: there is no published figure",
        axis="offered load",
        measures=(
            *(beyond.KEPT, beyond.MISSES, beyond.GOODPUT, beyond.LATENCY),
            *(beyond.PREEMPTIONS, beyond.CYCLE),
        ),
        drawn=(beyond.KEPT.name, beyond.MISSES.name),
        cases=tuple(beyond.cases_of(parameters, "e2e", parameters.load, _POLICIES)),
        claims=published(
            {
                "More planned starts are kept with "
                "a risk of 0.05 than in expectation.": beyond.KEPT.of(expected).against(surer),
            }
        ),
    )
