"""Phases of tasks: while it loads a task holds much memory, while it computes it uses many cpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.model.arrays import Floats, Integers
from foresail.traces.generators._usage_series import MeasuredTasks

_LOADING_SHARES: Final = (0.2, 0.5)
_WRITING_SHARES: Final = (0.05, 0.2)
_PHASES: Final = 3
_CPUS: Final = ("average_cpus", "maximum_cpus", "sampled_cpus")
_MEMORY: Final = ("average_memory_bytes", "maximum_memory_bytes")


@dataclass(frozen=True, slots=True)
class Phases:
    """Loading, computing and writing, of each application; arrays have shape (applications, 3)."""

    ends: Floats
    """At what share of a task's runtime each phase ends; the last at 1."""
    cpus: Floats
    memory: Floats
    """What is used in each phase, as a share of the task's average over all of them."""

    @classmethod
    def drawn(cls, applications: int, contrast: float, random: np.random.Generator) -> Phases:
        """Phases of so many applications.

        Loading takes 20 to 50 % of the runtime, and ``contrast`` times the memory of the other two;
        writing takes 5 to 20 %; computing takes the rest, and ``contrast`` times the cpus of the
        other two.
        """
        loading = random.uniform(*_LOADING_SHARES, applications)
        writing = random.uniform(*_WRITING_SHARES, applications)
        shares = np.column_stack((loading, 1.0 - loading - writing, writing))
        cpus, memory = np.array([1.0, contrast, 1.0]), np.array([contrast, 1.0, 1.0])
        ends = np.cumsum(shares, axis=1)
        ends[:, -1] = 1.0
        return cls(
            ends, cpus / (shares @ cpus)[:, np.newaxis], memory / (shares @ memory)[:, np.newaxis]
        )

    def of_use(
        self, usage: pl.DataFrame, tasks: MeasuredTasks, application: Integers
    ) -> pl.DataFrame:
        """The usage of tasks in phases: periods in which a phase ends become two.

        ``usage`` is the table without phases; ``application`` is that of each task, of shape
        (tasks,). Phases end at whole seconds after a task's start.
        """
        keys = {"job_id": tasks.job_id, "task": tasks.task}
        number = pl.DataFrame(keys).with_row_index("number")
        joined = usage.join(number, on=list(keys), how="left", maintain_order="left")
        of = joined["number"].to_numpy()
        application, start = application[of], tasks.start_seconds[of]
        seconds = tasks.end_seconds[of] - start
        ends = start[:, np.newaxis] + np.round(self.ends[application] * seconds[:, np.newaxis])
        begins = np.column_stack((start, ends[:, :-1]))
        parts = []
        for phase in range(_PHASES):
            factors = {
                **dict.fromkeys(_CPUS, self.cpus[application, phase]),
                **dict.fromkeys(_MEMORY, self.memory[application, phase]),
            }
            parts.append(
                usage.with_row_index("period").with_columns(
                    pl.max_horizontal("start_seconds", pl.lit(pl.Series(begins[:, phase]))),
                    pl.min_horizontal("end_seconds", pl.lit(pl.Series(ends[:, phase]))).alias(
                        "end_seconds"
                    ),
                    *(pl.col(name) * pl.Series(factor) for name, factor in factors.items()),
                )
            )
        pieces = pl.concat(parts).filter(pl.col("end_seconds") > pl.col("start_seconds"))
        return pieces.sort("period", "start_seconds").drop("period")
