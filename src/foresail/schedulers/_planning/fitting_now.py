"""Starts now that no nodes have room for: free amounts may be spread over too many of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from foresail.model.job import Job
from foresail.model.resources import Resources
from foresail.model.view import ClusterView, RunningJob
from foresail.schedulers._planning.cell_map import AMOUNTS, CellMap, Space, bits

_ROUNDING = 1e-9


def fits_now(
    jobs: Sequence[Job],
    spaces: Sequence[Space],
    view: ClusterView,
    victims: Sequence[RunningJob],
    places: CellMap,
) -> NDArray[np.bool_]:
    """Whether the tasks of each job would fit in its set of places, with all victims stopped.

    That is about each job alone, and about those of one stage on named nodes; True for all others.
    """
    room = dict(view.free_nodes)
    for victim in victims:
        request = victim.job.stages[0].request
        for name, tasks in victim.placement.tasks_by_node:
            if name in room:
                room[name] += request * tasks
    fitting = _TasksOnNodes(room, places)
    return np.array(
        [
            len(job.stages) > 1
            or not places.has_nodes
            or fitting.within(job.stages[0].request, space) >= job.tasks
            for job, space in zip(jobs, spaces, strict=True)
        ],
        np.bool_,
    )


class _TasksOnNodes:
    """How many tasks of a kind fit on nodes with so much room."""

    def __init__(self, room: Mapping[str, Resources], places: CellMap) -> None:
        self._cells = places.cells_of(room)
        self._room = np.array([[amount(each) for each in room.values()] for amount in AMOUNTS])
        self._count = places.totals.size
        self._known: dict[Resources, Sequence[float]] = {}

    def within(self, request: Resources, space: Space) -> float:
        """Tasks that ask for so much each, in a set of places."""
        if request not in self._known:
            self._known[request] = self._by_cell(request)
        known = self._known[request]
        if space.parts:
            return sum(any(known[cell] for cell in bits(part)) for part in space.parts)
        return sum(known[cell] for cell in bits(space.cells))

    def _by_cell(self, request: Resources) -> Sequence[float]:
        asked = [(row, amount(request)) for row, amount in enumerate(AMOUNTS)]
        rooms = [self._room[row] / need for row, need in asked if need > 0.0]
        tasks = np.floor(np.min(rooms, axis=0) * (1.0 + _ROUNDING))
        by_cell: list[float] = np.bincount(
            self._cells, np.maximum(tasks, 0.0), self._count
        ).tolist()
        return by_cell
