"""Studies ``beyond-chains`` and ``beyond-fair-share``."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import register
from foresail_studies.beyond._shared import (
    CALM_WAIT,
    CYCLE,
    FLOOD_WAIT,
    GOODPUT,
    LATENCY,
    MISSES,
    PREEMPTIONS,
    BeyondParameters,
    cases_of,
)
from foresail_studies.study import Study, published

_CHAINS_POLICIES: Final = {"each job alone": "", "end to end": "end_to_end=yes"}


@register("study", "beyond-chains", parameters=BeyondParameters)
def chains(parameters: BeyondParameters) -> Study:
    """Deadlines at the end of chains of two to five jobs, known to the first one or not."""
    return Study(
        title="What does it give to know of deadlines at the end of a chain?",
        source="Foresail: there is no published figure",
        axis="offered load",
        measures=(
            *(MISSES, GOODPUT, LATENCY),
            *(PREEMPTIONS, CYCLE),
        ),
        drawn=(MISSES.name,),
        cases=tuple(cases_of(parameters, "pipelines", parameters.load, _CHAINS_POLICIES)),
        claims=published(
            {
                "Fewer deadlines are missed by whom they are known to "
                "from the first job on.": MISSES.of("end to end").against("each job alone"),
            }
        ),
        notes=("Jobs of a chain that have no deadline of their own count as best effort.",),
    )


_FAIR_SHARE_POLICIES: Final = {
    "no shares": "",
    "fair shares": "fair_share=1",
    "fair shares, thrice": "fair_share=3",
}


@register("study", "beyond-fair-share", parameters=BeyondParameters)
def fair_share(parameters: BeyondParameters) -> Study:
    """One user submits four of five jobs: waits of that user and of the others."""
    return Study(
        title="What do fair shares give to those who ask for little?",
        source="Foresail: there is no published figure",
        axis="offered load",
        measures=(
            *(CALM_WAIT, FLOOD_WAIT, MISSES, GOODPUT),
            *(PREEMPTIONS, CYCLE),
        ),
        drawn=(CALM_WAIT.name, FLOOD_WAIT.name),
        cases=tuple(cases_of(parameters, "flooded", parameters.load, _FAIR_SHARE_POLICIES)),
        claims=published(
            {
                "With fair shares the others wait less.": CALM_WAIT.of("fair shares").against(
                    "no shares"
                ),
                "No work is lost by it (taken as: at most 3 % of the goodput).": GOODPUT.of(
                    "no shares"
                ).against("fair shares", factor=1.03),
            }
        ),
    )
