"""How near a simulation comes to what the log recorded, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from foresail.metrics.summary import Summary
from foresail.model.words import count, duration, number, percent
from foresail.traces.recorded import RECORDED


def how_near(summaries: Sequence[Summary]) -> str:
    """The first policy's mean wait against the recorded one; empty where nothing is recorded."""
    recorded = next((each for each in summaries if each.policy == RECORDED), None)
    if recorded is None:
        return ""
    first = summaries[0]
    share = first.mean_wait_seconds / recorded.mean_wait_seconds
    of = ""
    if recorded.jobs < first.jobs:
        of = f" (known of {count(recorded.jobs, 'job')})"
    elif recorded.jobs > first.jobs:
        of = f" (all {count(recorded.jobs, 'job')}, of which {number(first.jobs)} started here)"
    told = (
        f"The log's jobs waited {duration(recorded.mean_wait_seconds)} on average{of}; simulated "
        f"{first.policy} comes to {duration(first.mean_wait_seconds)}, "
    )
    if share > 1.0:
        return told + (
            f"{number(share)} times that: either the log's scheduler was better for these jobs, or "
            f"its machine was larger than {count(first.processors, 'processor')} (foresail trace "
            "validate says whether more were in use at once)."
        )
    return told + (
        f"{percent(share)} of that: "
        "it knows nothing of outages, reservations and limits of queues and users, so go by the "
        "differences between policies, not by how long their waits are."
    )
