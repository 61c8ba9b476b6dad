"""Starts now on real nodes: what rows let through and no nodes are found for is planned anew.

Rows add up what nodes have; tasks of much memory or several gpus may still fit on none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.model.decision import Placement
from foresail.model.view import ClusterView
from foresail.schedulers._planning.assigning import placements
from foresail.schedulers._planning.cell_map import CellMap
from foresail.schedulers._planning.demands import Demands
from foresail.schedulers._planning.filling import improved, needed_now
from foresail.schedulers._planning.problem import PlanChoice

_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Starting:
    """What a choice comes to now."""

    choice: PlanChoice
    """Which job starts when."""
    jobs: Sequence[int]
    found: Sequence[Placement | None]
    """Numbers of the jobs that are to start now, and where; None where there is no room yet."""
    stopped: Sequence[str]
    """Ids of the running jobs that are stopped for them."""


def starting(
    view: ClusterView, demands: Demands, places: CellMap, choice: PlanChoice, refill: bool
) -> Starting:
    """Which jobs start now, and where.

    If no nodes are found for some, though none are waited for, these start later or elsewhere, and
    others are planned on what that leaves (``refill``); a few times, until all have nodes.
    """
    result = _starting(view, demands, places, choice)
    for _ in range(_ROUNDS if refill else 0):
        lacking = [
            job for job, found in zip(result.jobs, result.found, strict=True) if found is None
        ]
        if not lacking or result.stopped:
            break
        worth = demands.problem.worth.copy()
        worth[result.choice.group[lacking], 0] = 0.0
        demands = replace(demands, problem=replace(demands.problem, worth=worth))
        group, slot = result.choice.group.copy(), result.choice.slot.copy()
        group[lacking] = slot[lacking] = -1
        kept = PlanChoice(group, slot, result.choice.stopped)
        result = _starting(view, demands, places, improved(demands.problem, kept))
    return result


def _starting(view: ClusterView, demands: Demands, places: CellMap, choice: PlanChoice) -> Starting:
    now = [job for job in choice.planned.tolist() if choice.slot[job] == 0]
    groups = choice.group[now]
    stopped = [
        demands.victims[at].job.job_id
        for at in np.flatnonzero(needed_now(demands.problem, choice)).tolist()
    ]
    freed = [
        places.held(each.job, each.placement) for each in view.running if each.job.job_id in stopped
    ]
    found = placements(
        [demands.pending[job].job for job in now],
        [demands.spaces[group] for group in groups],
        demands.problem.worth[groups, 0],
        demands.resources,
        demands.free_cells,
        np.sum([np.zeros(places.amounts.shape), *freed], axis=0)[list(demands.resources)],
        view,
        places,
    )
    return Starting(choice, now, found, stopped)
