"""What a log has not been told yet: plans and reasons that are not as they were."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from foresail.model.construction import quickly_made
from foresail.model.decision import PlannedStart
from foresail.model.reason import Reason, ReasonCode
from foresail.record.frequent_lines import shared

_ROUNDING_SECONDS = 1e-6


@quickly_made
@dataclass(frozen=True, slots=True)
class PlanChange:
    """How a plan differs from the one before; the fields are those of ``records.Decided``."""

    slides: bool
    plan: Mapping[str, float]
    places: Mapping[str, tuple[tuple[str, int], ...]]
    dropped: tuple[str, ...]


_UNCHANGED: Final = PlanChange(False, {}, {}, ())


class Changes:
    """Compares each plan, and each pass's reasons, with those before.

    A plan in slots that count from now moves on with the clock although nothing about it changes.
    Whichever is less to tell is taken as unchanged: the planned times, or how far off they are.
    """

    def __init__(self) -> None:
        self._time = 0.0
        self._plan: Mapping[str, PlannedStart] = {}
        self._moved: set[str] = set()
        self._reasons: dict[str, tuple[ReasonCode, object]] = {}

    def take_over(self, plan: Iterable[PlannedStart], now: float) -> None:
        """Go on from a plan made now; all reasons are news then."""
        self._time = now
        self._plan = {each.job_id: each for each in plan}

    def of_plan(self, plan: Iterable[PlannedStart], now: float) -> PlanChange:
        """How a plan made now differs from the one before."""
        later = {each.job_id: each for each in plan}
        earlier = self._plan
        self._time, before = now, self._time
        if later == earlier:
            return _UNCHANGED
        stays = _others(earlier, later, 0.0)
        moves_on = _others(earlier, later, now - before) if stays else stays
        slides = len(moves_on) < len(stays)
        changed = moves_on if slides else stays
        self._moved.update(changed)
        self._plan = later
        return PlanChange(
            slides=slides,
            plan={job_id: later[job_id].start_seconds for job_id in changed},
            places={
                job_id: each.placement.tasks_by_partition
                for job_id, each in later.items()
                if job_id not in earlier or earlier[job_id].placement != each.placement
            },
            dropped=tuple(job_id for job_id in earlier if job_id not in later),
        )

    @property
    def moved(self) -> set[str]:
        """Jobs planned for another time since reasons were last compared."""
        return self._moved

    def of_reasons(self, reasons: Mapping[str, Reason], anew: Set[str]) -> Mapping[str, Reason]:
        """Those of all reasons that differ in kind, or in the start they promise.

        And those of jobs that are to be told ``anew``, whatever is known of them.
        """
        earlier, self._reasons = self._reasons, {}
        return self._compared(reasons, earlier, anew)

    def of_some_reasons(
        self, reasons: Mapping[str, Reason], others: Iterable[str], anew: Set[str]
    ) -> Mapping[str, Reason]:
        """As ``of_reasons``, of jobs among whom are all that differ.

        ``others`` wait no more, or their reasons are told without being compared here.
        """
        for job_id in others:
            self._reasons.pop(job_id, None)
        return self._compared(reasons, self._reasons, anew)

    def _compared(
        self,
        reasons: Mapping[str, Reason],
        earlier: Mapping[str, tuple[ReasonCode, object]],
        anew: Set[str],
    ) -> Mapping[str, Reason]:
        changed: dict[str, Reason] = {}
        for job_id, reason in reasons.items():
            promises = reason.code is ReasonCode.RESERVED
            start = promises and job_id not in self._plan and reason.numbers.get("start")
            known = shared((reason.code, start))  # most are promised nothing
            moved = promises and job_id in self._moved
            if moved or job_id in anew or earlier.get(job_id) != known:
                changed[job_id] = reason
            self._reasons[job_id] = known
        self._moved.clear()
        return changed


def _others(
    earlier: Mapping[str, PlannedStart], later: Mapping[str, PlannedStart], moved_by: float
) -> list[str]:
    """Jobs that were not planned, or for another time than that so many seconds later."""
    return [
        job_id
        for job_id, each in later.items()
        if job_id not in earlier
        or not math.isclose(
            each.start_seconds,
            earlier[job_id].start_seconds + moved_by,
            rel_tol=1e-12,
            abs_tol=_ROUNDING_SECONDS,
        )
    ]
