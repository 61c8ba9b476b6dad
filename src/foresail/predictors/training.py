"""Training: a predictor told all of a recorded log, as if it had been there."""

from __future__ import annotations

import numpy as np

from foresail.model.errors import UnknownNameError
from foresail.model.outcome import Outcome
from foresail.model.protocols import Predictor, capabilities_of_predictor
from foresail.model.watching import Watch
from foresail.predictors.event_order import START, SUBMISSION, Learning, order_of_events
from foresail.predictors.kernels.feature_values import ATTRIBUTES
from foresail.traces.measured import used_by_job
from foresail.traces.workload import Workload


def train(
    workload: Workload,
    predictor: Predictor,
    learning: Learning = "on_completion",
    watch: Watch | None = None,
) -> int:
    """Tell a predictor every submission, start and end of the jobs whose runtime is known.

    ``watch`` is given a measure of how many of these it was told.

    Returns
    -------
    int
        How many jobs that were.

    Raises
    ------
    UnknownNameError
        If the predictor looks at a column that the log does not have.
    """
    for name in getattr(predictor, "source_features", ()):
        if name not in workload.feature_names:
            known_names = {*ATTRIBUTES, *workload.feature_names}
            raise UnknownNameError("attribute of jobs", name, known_names)
    runtime = workload.runtime_seconds
    known = np.isfinite(runtime) & (runtime >= 0.0)
    jobs = list(workload.specifications())
    capabilities = capabilities_of_predictor(predictor)
    used = used_by_job(workload) if workload.usage is not None else {}
    watcher = capabilities.watches_starts
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
            if watcher is not None:
                watcher.started(job, time)
        else:
            start = time - float(runtime[slot]) if learning == "on_completion" else time
            end = start + float(runtime[slot])
            told = used.get(job.job_id, {})
            predictor.observe(job, Outcome(job.job_id, start, end, used=told))
    return int(known.sum())
