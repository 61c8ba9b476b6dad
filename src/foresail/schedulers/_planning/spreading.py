"""Jobs whose tasks are to be apart: at most one task, or so many, in each failure domain.

Which domains these are is chosen with the start: every choice is a set of places of its own. Where
there are few, all of them are looked at; else those of the freest domains, now and for good.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.job import Job
from foresail.model.preference import PreferenceKind
from foresail.schedulers._planning.cell_map import CellMap, Space, bits

_MOST_CHOICES: Final = 16
"""Choices of domains for a job; half of them by what is free now where there are more."""


def spread_spaces(job: Job, places: CellMap, free_cells: NDArray[np.float64]) -> list[Space]:
    """The sets of domains in which a job that prefers to be spread may run, one task in each.

    Parameters
    ----------
    job, places
        Which job runs where.
    free_cells
        Free cpus of every cell; shape (cells,).
    """
    domains = places.domains(job)
    if not 0 < job.tasks <= len(domains):
        return []
    return [Space(sum(parts), 1.0, parts) for parts in _choices(domains, job, places, free_cells)]


def chosen_parts(
    space: Space, job: Job, places: CellMap, free_cells: NDArray[np.float64]
) -> list[Space]:
    """A set of places as it is, or of more parts than tasks, the choices of as many of them.

    Parameters
    ----------
    space, job, places
        Which job runs where.
    free_cells
        Free cpus of every cell; shape (cells,).
    """
    if len(space.parts) <= job.tasks:
        return [space]
    return [
        replace(space, cells=functools.reduce(operator.or_, parts), parts=parts)
        for parts in _choices(space.parts, job, places, free_cells)
    ]


def _choices(
    parts: Sequence[int], job: Job, places: CellMap, free_cells: NDArray[np.float64]
) -> Iterable[tuple[int, ...]]:
    """Parts for all tasks of a job; a part that may hold several tasks is there as often."""
    if math.comb(len(parts), job.tasks) <= _MOST_CHOICES:
        chosen: Iterable[Sequence[int]] = combinations(parts, job.tasks)
    else:
        each = job.cpus / job.tasks
        chosen = [
            choice
            for amounts in (free_cells, places.totals)
            for choice in _in_turn(_freest_first(parts, amounts, each), job.tasks)
        ]
    return dict.fromkeys(tuple(sorted(each)) for each in chosen)


def most_spaces(job: Job, places: CellMap, soft_constraints: bool) -> int:
    """How many sets of places a job may have, of domains and others."""
    anywhere = places.spaces(job, soft_constraints)
    if job.options:
        return sum(_MOST_CHOICES if len(space.parts) > job.tasks else 1 for space in anywhere)
    preference = job.preference
    spreads = preference is not None and preference.kind is PreferenceKind.SPREAD
    return len(anywhere) + (_MOST_CHOICES if spreads and soft_constraints else 0)


def _freest_first(parts: Sequence[int], amounts: NDArray[np.float64], each: float) -> Sequence[int]:
    """The parts by what they have left; one that is there again has a task of ``each`` less."""
    seen: Counter[int] = Counter()
    left = []
    for part in parts:
        left.append(sum(amounts[cell] for cell in bits(part)) - each * seen[part])
        seen[part] += 1
    return [parts[at] for at in sorted(range(len(parts)), key=lambda at: -left[at])]


def _in_turn(domains: Sequence[int], count: int) -> list[Sequence[int]]:
    """So many neighbours each, which overlap as little as may be."""
    most = _MOST_CHOICES // 2
    begins = (
        range(0, len(domains) - count + 1, count)
        if count * 2 <= len(domains)
        else range(len(domains) - count + 1)
    )
    return [domains[begin : begin + count] for begin in begins[:most]]
