"""Study ``beyond-chains``: what it gives to know of deadlines at the end of chains of jobs."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import register
from foresail_studies.beyond import _shared as beyond
from foresail_studies.study import Study, published

_POLICIES: Final = {"each job alone": "", "end to end": "end_to_end=yes"}


@register("study", "beyond-chains", parameters=beyond.BeyondParameters)
def chains(parameters: beyond.BeyondParameters) -> Study:
    """Deadlines at the end of chains of two to five jobs, known to the first one or not."""
    return Study(
        title="What does it give to know of deadlines at the end of a chain?",
        source="Foresail: there is no published figure",
        axis="offered load",
        measures=(
            *(beyond.MISSES, beyond.GOODPUT, beyond.LATENCY),
            *(beyond.PREEMPTIONS, beyond.CYCLE),
        ),
        drawn=(beyond.MISSES.name,),
        cases=tuple(beyond.cases_of(parameters, "pipelines", parameters.load, _POLICIES)),
        claims=published(
            {
                "Fewer deadlines are missed by whom they are known to "
                "from the first job on.": beyond.MISSES.of("end to end").against("each job alone"),
            }
        ),
        notes=("Jobs of a chain that have no deadline of their own count as best effort.",),
    )
