"""Generating workloads from a seed: the protocol of a generator, and calling one by its name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, Protocol

import numpy as np

from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail.traces.workload import MOST_PROCESSORS, Workload

ACHIEVED: Final = "achieved_"
"""What a generator reached (load, mix) is in ``meta.header`` under names that begin so."""


class Generator(Protocol):
    """Makes workloads; everything random comes from the generator that it is handed."""

    def generate(self, random: np.random.Generator) -> Workload:
        """A workload whose jobs depend on the parameters and the random stream alone."""
        ...


def generate(name: str, parameters: Any, seed: int) -> Workload:
    """A workload from the generator of this name; the same seed gives the same workload.

    Parameters
    ----------
    name
        Name it is registered under.
    parameters
        The generator's own record. It and the seed are kept in ``meta.header``.
    seed
        At least zero.

    Raises
    ------
    UnknownNameError
        If no generator has this name.
    InputError
        If a parameter or the seed is out of its range, or one that counts (jobs, processors) is
        beyond belief.
    """
    if seed < 0:
        raise InputError("the seed is negative", field="seed", value=seed, expected="0 or more")
    for key, value in asdict(parameters).items():
        if isinstance(value, int) and value > MOST_PROCESSORS:
            raise InputError(
                "out of range", field=key, value=value, expected=f"at most {MOST_PROCESSORS:,}"
            )
    generator: Generator = find("generator", name).build(parameters)
    workload = generator.generate(np.random.default_rng(seed))
    given = {key: str(value) for key, value in asdict(parameters).items() if value is not None}
    return workload.with_meta(
        source=f"{name} generator",
        reader=name,
        header={**workload.meta.header, **given, "seed": str(seed)},
    )
