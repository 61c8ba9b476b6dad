"""The log's own waits beside simulated ones: a table, and whether to use the model at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from rich.table import Table

from foresail.metrics.resemblance import (
    LEAST_RANK_CORRELATION,
    MOST_TIMES,
    Resemblance,
    Side,
    nearest,
    recorded_waits,
)
from foresail.model.words import count, duration, number
from foresail.reports.ranked_table import RankedColumn, ranked_table
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload

COLUMNS: Final[tuple[RankedColumn[Side], ...]] = (
    RankedColumn("average\nslowdown", attrgetter("average_bounded_slowdown"), number),
    RankedColumn("mean\nwait", attrgetter("wait_seconds.mean"), duration),
    RankedColumn("median\nwait", attrgetter("wait_seconds.median"), duration),
    RankedColumn("99 %\nwait", attrgetter("wait_seconds.p99"), duration),
    RankedColumn("longest\nwait", attrgetter("wait_seconds.max"), duration),
)
_WIDTH: Final = 30


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """What the log's own waits say of the model of its machine."""

    words: str
    found: Resemblance | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        """What was recorded, and what was simulated of the same jobs."""
        return () if self.found is None else (self.found.recorded, self.found.simulated)

    @property
    def caption(self) -> str:
        """Which jobs are compared."""
        found = self.found
        if found is None:
            return ""
        jobs = f"{found.jobs:,} of {count(found.of_jobs, 'job')}"
        return f"{jobs}: with a recorded wait, and simulated to their end"

    def table(self) -> Table | None:
        """The two sides, for a terminal."""
        names = [side.policy for side in self.sides]
        if not names:
            return None
        return ranked_table(
            names, self.sides, COLUMNS, heading="same jobs", width=_WIDTH, caption=self.caption
        )

    def as_json(self) -> Mapping[str, Any]:
        """The same for a program."""
        if self.found is None:
            return {"words": self.words}
        figures = dataclasses.asdict(self.found)
        return figures | {"is_usable": self.found.is_usable, "words": self.words}


def verdict_of(workload: Workload, schedules: Sequence[Schedule]) -> ModelVerdict | None:
    """What a log's recorded waits say of simulations of it; None where it has hardly any.

    Of a machine of another size they say nothing, and are not compared.
    """
    recorded = recorded_waits(workload)
    if recorded is None:
        return None
    stated, simulated = workload.meta.stated_processors, workload.meta.processors
    if stated not in (None, simulated):
        return ModelVerdict(
            f"What the log recorded is of {stated:,} processors, not of {simulated:,}: it is not "
            "compared."
        )
    found = nearest(recorded, schedules)
    if found is None:
        return ModelVerdict(
            "No job whose wait was recorded came to its end here: none is compared."
        )
    return ModelVerdict(_said(found), found)


def _said(found: Resemblance) -> str:
    real, made = found.recorded, found.simulated
    compared = (
        f"the log's jobs waited {duration(real.wait_seconds.mean)} on average (median "
        f"{duration(real.wait_seconds.median)}), under simulated {made.policy}, which comes "
        f"nearest, {duration(made.wait_seconds.mean)} (median "
        f"{duration(made.wait_seconds.median)}); the rank correlation of waits is "
        f"{number(found.rank_correlation)}"
    )
    if not found.is_judged:
        return f"Too few jobs ({found.jobs}) to judge the model by: {compared}."
    if found.is_usable:
        return (
            f"The model of the machine passes: {compared}. It knows nothing of outages, "
            "reservations and limits of queues and users, so go by the differences between "
            "policies, not by how long their waits are."
        )
    return (
        f"Do not use this model of the machine: {compared}. To be of use, that is to be at least "
        f"{number(LEAST_RANK_CORRELATION)}, and mean and median within {number(MOST_TIMES)} times "
        "of each other. Partitions, limits of queues and users, reservations, outages or another "
        "number of processors, which it knows nothing of, decided how long jobs waited."
    )
