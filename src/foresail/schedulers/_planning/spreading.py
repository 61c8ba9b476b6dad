"""Jobs whose tasks are to be apart: one task in each of as many failure domains.

Which domains these are is chosen with the start: every choice is a set of places of its own. Where
there are few, all of them are looked at; else those of the freest domains, now and for good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
        Who runs where.
    free_cells
        Free cpus of every cell; shape (cells,).
    """
    domains = places.domains(job)
    if not 0 < job.tasks <= len(domains):
        return []
    if math.comb(len(domains), job.tasks) <= _MOST_CHOICES:
        chosen: Iterable[Sequence[int]] = combinations(domains, job.tasks)
    else:
        free = [sum(free_cells[cell] for cell in bits(domain)) for domain in domains]
        whole = [sum(places.totals[cell] for cell in bits(domain)) for domain in domains]
        now = _in_turn([domains[at] for at in _descending(free)], job.tasks)
        later = _in_turn([domains[at] for at in _descending(whole)], job.tasks)
        chosen = [*now, *later]
    distinct = dict.fromkeys(tuple(sorted(each)) for each in chosen)
    return [Space(sum(parts), 1.0, parts) for parts in distinct]


def most_spaces(job: Job, places: CellMap, soft_constraints: bool) -> int:
    """How many sets of places a job may have, of domains and others."""
    anywhere = len(places.spaces(job, soft_constraints))
    preference = None if job.options else job.preference
    spreads = preference is not None and preference.kind is PreferenceKind.SPREAD
    return anywhere + _MOST_CHOICES if spreads and soft_constraints else anywhere


def _descending(amounts: Sequence[float]) -> Sequence[int]:
    return sorted(range(len(amounts)), key=lambda at: -amounts[at])


def _in_turn(domains: Sequence[int], count: int) -> list[Sequence[int]]:
    """So many neighbours each, which overlap as little as may be."""
    most = _MOST_CHOICES // 2
    begins = (
        range(0, len(domains) - count + 1, count)
        if count * 2 <= len(domains)
        else range(len(domains) - count + 1)
    )
    return [domains[begin : begin + count] for begin in begins[:most]]
