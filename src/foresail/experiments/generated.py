"""Workloads of generators, kept for the next run that asks for the same."""

from __future__ import annotations

from functools import lru_cache

from foresail.model.short_form import part_of
from foresail.traces.generating import generate
from foresail.traces.workload import Workload


@lru_cache(maxsize=4)
def generated(text: str, seed: int) -> Workload:
    """The workload of a generator's short form, such as ``e2e(hours=2,load=1.6)``.

    Raises
    ------
    InputError
        If the short form is malformed, or a parameter or the seed is out of its range.
    UnknownNameError
        If there is no such generator.
    """
    part = part_of("generator", text)
    return generate(part.entry.name, part.parameters, seed)
