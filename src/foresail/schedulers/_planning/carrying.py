"""What one cycle hands to the next: its plan and its prices, moved on by the time that passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foresail.model.arrays import Floats
from foresail.schedulers._planning.demands import Demands
from foresail.schedulers._planning.filling import densities, filled, improved
from foresail.schedulers._planning.problem import PlanChoice, Problem
from foresail.schedulers._planning.solving import Hint, SolvedChoice
from foresail.schedulers._planning.triage import Turn


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A plan and prices, by what they are about instead of by number."""

    now: float
    """When they were made."""
    starts: Mapping[str, float]
    """Planned start (seconds) by job id."""
    stopped: frozenset[str]
    """Ids of the running jobs that are to be stopped."""
    prices: Mapping[str, Floats]
    """Worth of a unit of every row in every slot, by the row's name."""
    gap: float
    """How far a plan was from the bound when these prices were new."""
    in_vain: float
    """How much value programs have looked for lately without finding any."""
    turn: Turn
    """How far the round through a queue that is too long had come."""

    def plain(self) -> dict[str, Any]:
        """Plain values that ``carried_of`` makes the same of."""
        return {
            "now": self.now,
            "starts": self.starts,
            "stopped": sorted(self.stopped),
            "prices": {row: prices.tolist() for row, prices in self.prices.items()},
            "gap": self.gap,
            "in_vain": self.in_vain,
            "turn": [self.turn.last, self.turn.until],
        }


def carried_of(plain: Mapping[str, Any]) -> Carried:
    """What was handed on, from plain values."""
    return Carried(
        plain["now"],
        plain["starts"],
        frozenset(plain["stopped"]),
        {row: np.array(prices) for row, prices in plain["prices"].items()},
        plain["gap"],
        plain.get("in_vain", 0.0),  # logs of earlier versions have neither this
        Turn(*plain.get("turn", ())),  # nor that
    )


def carried_from(
    demands: Demands, solved: SolvedChoice, now: float, slot_seconds: float, turn: Turn
) -> Carried:
    """What a cycle hands on."""
    choice, prices = solved.choice, solved.prices
    planned = choice.planned.tolist()
    return Carried(
        now,
        {demands.pending[at].job.job_id: now + choice.slot[at] * slot_seconds for at in planned},
        frozenset(demands.victims[at].job.job_id for at in np.flatnonzero(choice.stopped).tolist()),
        {} if prices is None else dict(zip(demands.rows, prices, strict=True)),
        solved.priced_gap,
        solved.in_vain,
        turn,
    )


def moved_on(carried: Carried, now: float, slot_seconds: float) -> Carried:
    """The same seen from a later moment: prices are those of the slots that begin then."""
    passed = now - carried.now
    prices = {}
    for row, earlier in carried.prices.items():
        moments = np.arange(earlier.size) * slot_seconds
        prices[row] = np.interp(moments + passed, moments, earlier)
    return replace(carried, now=now, prices=prices)


def hint_from(carried: Carried, demands: Demands, problem: Problem) -> Hint:
    """What was handed on as a plan and prices of a problem of this moment.

    Jobs are planned again in order of their starts, new ones after them.
    """
    jobs = [each.job.job_id for each in demands.pending]
    starts = np.array([carried.starts.get(job_id, np.inf) for job_id in jobs])
    order = np.lexsort((-densities(problem), starts))
    stopped = np.array([each.job.job_id in carried.stopped for each in demands.victims], np.bool_)
    nothing = replace(PlanChoice.nothing(problem), stopped=stopped)
    choice = improved(problem, filled(problem, order, problem.worth, nothing))
    if not carried.prices:
        return Hint(choice, None, 0.0)
    unknown = np.zeros(problem.slots)
    prices = [carried.prices.get(row, unknown) for row in demands.rows]
    return Hint(choice, np.array(prices).reshape(problem.capacity.shape), carried.gap)
