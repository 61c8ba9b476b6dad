"""Small random logs for waiting policies."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from foresail.cloud.waiting.jobs import GIB, RentedType, TraceJobs


@st.composite
def traces(draw, most_jobs, last_submission, memory, gpus=False):
    """Up to so many jobs; whole times, so that much happens at one instant."""
    count = draw(st.integers(1, most_jobs))

    def column(values):
        return draw(st.lists(values, min_size=count, max_size=count))

    submit = np.sort(np.array(column(st.integers(0, last_submission)), dtype=float))
    runtime = np.array(column(st.integers(0, 30)), dtype=float)
    cores = np.array(column(st.integers(1, 6)))
    bytes_ = np.array(column(st.integers(0, 5)), dtype=float) if memory else None
    shares = np.array(column(st.integers(0, 20))) / 10.0 if gpus else None
    return TraceJobs(submit, runtime, cores, bytes_, shares)


def proportional_family() -> tuple[RentedType, ...]:
    """Machines of 1 to 64 cores with 4 GiB each, whose price grows with them, as published."""
    return tuple(
        RentedType(f"{n}-core", n, n * 4.0 * GIB, n * 0.0481) for n in (1, 2, 4, 8, 16, 32, 64)
    )
