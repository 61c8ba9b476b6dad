"""The order of a log's events: submissions, starts and ends in the order in which they happened."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import SUBMIT
from foresail.traces.workload import Workload

SUBMISSION: Final = 0
START: Final = 1
END: Final = 2


class EventOrder(NamedTuple):
    """What happens, in order: the kind of each event, its job's slot, and when (seconds)."""

    kind: NDArray[np.int64]
    slot: NDArray[np.int64]
    time: NDArray[np.float64]


Learning = Literal["on_completion", "in_order"]

LEARNING: Final[tuple[Learning, ...]] = ("on_completion", "in_order")
"""When a job is learned: once it has ended, as a live system must; or right after it was predicted,
in the order of submission, as the study's analysis does (spec A-9)."""


def order_of_events(workload: Workload, known: NDArray[np.bool_], learning: Learning) -> EventOrder:
    """The events of the jobs that are known.

    Parameters
    ----------
    workload
        Starts are recorded submissions plus recorded waits, at once where no wait is recorded;
        ends follow after the recorded runtime.
    known
        Shape (jobs,): which jobs take part.
    learning
        One of ``LEARNING``.

    Returns
    -------
    EventOrder
        At the same instant ends come first, in order of start, then submissions in the order given,
        then starts; a job of no runtime ends after its start.
    """
    slots = np.flatnonzero(known)
    submit = workload.specs[slots, SUBMIT]
    if learning == "in_order":
        kind = np.tile(np.array([SUBMISSION, START, END]), slots.size)
        return EventOrder(kind, np.repeat(slots, 3), np.repeat(submit, 3))
    wait = workload.jobs["recorded_wait_seconds"].fill_null(0.0).to_numpy()[slots]
    start = submit + np.where(np.isfinite(wait), np.maximum(wait, 0.0), 0.0)
    end = start + workload.runtime_seconds[slots]
    time = np.concatenate((end, submit, start))
    phase = np.repeat(np.array([0, 1, 2]), slots.size)
    phase[: slots.size][end <= start] = 3
    turn = np.concatenate((start, submit, start))
    order = np.lexsort((turn, phase, time))
    kind = np.repeat(np.array([END, SUBMISSION, START]), slots.size)
    return EventOrder(kind[order], np.tile(slots, 3)[order], time[order])
