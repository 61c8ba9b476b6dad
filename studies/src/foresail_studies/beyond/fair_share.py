"""Study ``beyond-fair-share``: one user floods the queue, with and without fair shares."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import register
from foresail_studies.beyond import _shared as beyond
from foresail_studies.study import Study, published

_POLICIES: Final = {
    "no shares": "",
    "fair shares": "fair_share=1",
    "fair shares, thrice": "fair_share=3",
}


@register("study", "beyond-fair-share", parameters=beyond.BeyondParameters)
def fair_share(parameters: beyond.BeyondParameters) -> Study:
    """One user submits four of five jobs: waits of that user and of the others."""
    return Study(
        title="What do fair shares give to those who ask for little?",
        source="Foresail: there is no published figure",
        axis="offered load",
        measures=(
            *(beyond.CALM_WAIT, beyond.FLOOD_WAIT, beyond.MISSES, beyond.GOODPUT),
            *(beyond.PREEMPTIONS, beyond.CYCLE),
        ),
        drawn=(beyond.CALM_WAIT.name, beyond.FLOOD_WAIT.name),
        cases=tuple(beyond.cases_of(parameters, "flooded", parameters.load, _POLICIES)),
        claims=published(
            {
                "With fair shares the others wait less.": beyond.CALM_WAIT.of(
                    "fair shares"
                ).against("no shares"),
                "No work is lost by it (taken as: at most 3 % of the goodput).": beyond.GOODPUT.of(
                    "no shares"
                ).against("fair shares", factor=1.03),
            }
        ),
    )
