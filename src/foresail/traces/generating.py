"""Workloads from a seed: the protocol of generators, what they share, calling one by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import update_wrapper
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import polars as pl

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail.traces.workload import MOST_PROCESSORS, Workload, jobs_table

ACHIEVED: Final = "achieved_"
"""Figures that a generator reached (load, mix) are in ``meta.header`` under names that begin so."""


def gangs(
    submit: Floats, runtime: Floats, width: Integers, letter: str = "", /, **columns: Any
) -> pl.DataFrame:
    """A jobs table of gangs of single-cpu tasks; all arrays have shape (jobs,).

    Ids are numbers from 1 behind a letter; ``columns`` are further ones.
    """
    return jobs_table(
        {
            "job_id": letter + pl.arange(1, submit.size + 1, eager=True).cast(pl.String),
            "submit_seconds": submit,
            "runtime_seconds": runtime,
            "tasks": width,
            "allocated_cpus": width.astype(np.float64),
            "status": pl.repeat("completed", submit.size, eager=True),
            **columns,
        }
    )


class Generator(Protocol):
    """Makes workloads; everything random comes from the generator that it is handed."""

    def generate(self, random: np.random.Generator) -> Workload:
        """A workload whose jobs depend on the parameters and the random stream alone."""


Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class _Bound:
    """A generator that is a function of its parameters and of the random stream."""

    make: Callable[[Any, np.random.Generator], Workload]
    parameters: Any

    def generate(self, random: np.random.Generator) -> Workload:
        return self.make(self.parameters, random)


def generator(
    make: Callable[[Record, np.random.Generator], Workload],
) -> Callable[[Record], Generator]:
    """Return the builder of a generator, from the function that makes its workloads."""

    def build(parameters: Record) -> Generator:
        return _Bound(make, parameters)

    update_wrapper(build, make)
    del build.__dict__["__wrapped__"]  # it takes the parameters alone
    return build


def generate(name: str, parameters: Any, seed: int) -> Workload:
    """A workload from the generator of this name; the same seed gives the same workload.

    The generator's own record of parameters and the seed are kept in ``meta.header``.

    Raises ``UnknownNameError`` if no generator has this name; ``InputError`` if a parameter or the
    seed, which is at least zero, is out of its range, or one that counts (jobs, processors) is
    beyond belief.
    """
    if seed < 0:
        raise InputError("the seed is negative", field="seed", value=seed, expected="0 or more")
    for key, value in asdict(parameters).items():
        if isinstance(value, int) and value > MOST_PROCESSORS:
            raise InputError(
                "out of range", field=key, value=value, expected=f"at most {MOST_PROCESSORS:,}"
            )
    maker: Generator = find("generator", name).build(parameters)
    workload = maker.generate(np.random.default_rng(seed))
    given = {key: str(value) for key, value in asdict(parameters).items() if value is not None}
    return workload.with_meta(
        source=f"{name} generator",
        reader=name,
        header={**workload.meta.header, **given, "seed": str(seed)},
    )
