"""Training: a predictor is given all of a recorded log, in the order in which it happened."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np

from foresail.kernels.columns import SUBMIT
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import UnknownNameError
from foresail.model.event import Outcome
from foresail.model.protocols import Predictor, ProgressCallback
from foresail.predictors.kernels.history_table import ATTRIBUTES
from foresail.traces.measured import used_by_job
from foresail.traces.workload import Workload

SUBMISSION: Final = 0
START: Final = 1
END: Final = 2


class EventOrder(NamedTuple):
    """Events in order: the kind of each event, its job's slot, and when (seconds)."""

    kind: Integers
    slot: Integers
    time: Floats


Learning = Literal["on_completion", "in_order"]

LEARNING: Final[tuple[Learning, ...]] = ("on_completion", "in_order")
"""Time at which a job is learned: once it has ended, as a live system must; or right after it was
predicted, in the order of submission, as the study's analysis does."""


def order_of_events(workload: Workload, known: Booleans, learning: Learning) -> EventOrder:
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


def train(
    workload: Workload,
    predictor: Predictor,
    learning: Learning = "on_completion",
    watch: ProgressCallback | None = None,
) -> int:
    """Report to a predictor every submission, start and end of the jobs whose runtime is known.

    ``watch`` is given a measure of how many of these it has had.

    Raises ``UnknownNameError`` if the predictor looks at a column that the log does not have.

    Returns
    -------
    int
        How many jobs that were.
    """
    for name in getattr(predictor, "source_features", ()):
        if name not in workload.feature_names:
            known_names = {*ATTRIBUTES, *workload.feature_names}
            raise UnknownNameError("attribute of jobs", name, known_names)
    runtime = workload.runtime_seconds
    known = np.isfinite(runtime) & (runtime >= 0.0)
    jobs = list(workload.specifications())
    used = used_by_job(workload) if workload.usage is not None else {}
    order = order_of_events(workload, known, learning)
    events = zip(order.kind.tolist(), order.slot.tolist(), order.time.tolist(), strict=True)
    position = 0
    if watch is not None:
        watch(lambda: (position, len(order.kind)))
    for position, (kind, slot, time) in enumerate(events):  # noqa: B007 - others look at it
        job = jobs[slot]
        if kind == SUBMISSION:
            predictor.predict(job, time)
        elif kind == START:
            predictor.started(job, time)
        else:
            start = time - float(runtime[slot]) if learning == "on_completion" else time
            end = start + float(runtime[slot])
            measured = used.get(job.job_id, {})
            predictor.observe(job, Outcome(job.job_id, start, end, used=measured))
    return int(known.sum())
