"""The logs that are replayed: generated ones everywhere, the real ones where they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from foresail.model.registry import find
from foresail.traces.folder import load_workload
from foresail.traces.generating import generate
from foresail.traces.workload import Workload

PROCESSORS: Final = 512
_REAL = Path(__file__).resolve().parents[2] / "shared" / "traces" / "predictsim-sc15"
_REAL_NAMES: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie")


@cache
def generated(jobs: int, load: float = 0.7) -> Workload:
    """Jobs of the Lublin-Feitelson model on 512 processors."""
    parameters = find("generator", "lublin").parameters(jobs=jobs, processors=PROCESSORS, load=load)
    return generate("lublin", parameters, seed=1)


@cache
def backlog(waiting: int, stream: int) -> Workload:
    """So many jobs of ``generated`` that wait from the first second on, and a stream of more.

    These are submitted as quickly as the machine works, so that about as many wait all the while.
    """
    workload = generated(waiting + stream)
    work = np.cumsum(workload.runtime_seconds * workload.cpus)[:stream] / (0.9 * PROCESSORS)
    submit = pl.Series("submit_seconds", np.concatenate([np.zeros(waiting), work]))
    return replace(workload, jobs=workload.jobs.with_columns(submit))


def columns(workload: Workload, *, clairvoyant: bool) -> tuple[np.ndarray, ...]:
    """Submission, runtime, width and planned runtime (requested, or the real one) of each job."""
    submit = workload.jobs["submit_seconds"].to_numpy()
    requested = workload.jobs["requested_seconds"].to_numpy()
    runtime = workload.runtime_seconds
    return submit, runtime, workload.cpus, runtime if clairvoyant else requested


def path_of(name: str) -> Path:
    """Where a log of the published study is, if it is beside this checkout."""
    return _REAL / f"{name}.filtered.swf.gz"


def real() -> Iterator[tuple[str, Workload]]:
    """The logs of the published study, as far as they are beside this checkout."""
    for name in _REAL_NAMES:
        path = path_of(name)
        if path.exists():
            yield name, load_workload(path)
