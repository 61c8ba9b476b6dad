"""The replay's orders as the queue of waiting policies: an expression becomes ranks of jobs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.settings import Ranking
from foresail.kernels.columns import SLOWDOWN_BOUND_SECONDS, SUMMARY_COLUMNS, URGENCY
from foresail.kernels.expression import SUMMARY, OrderProgram, evaluate_all
from foresail.model.errors import InputError
from foresail.schedulers.order_expression import compile_expression
from foresail.traces.workload import Workload


def static_order(order: str) -> OrderProgram:
    """An order that stays as it is from a job's submission on: without now, wait and probe.

    Raises
    ------
    InputError
        If the text is no such expression, or the order changes while jobs wait.
    UnknownNameError
        If it names a field or function that does not exist.
    """
    program = compile_expression(order)
    if program.changes_with_time or program.follows_probes:
        raise InputError(
            "an order that changes while jobs wait",
            field="order",
            value=order,
            expected="neither now, wait nor probe",
        )
    return program


def ranking(workload: Workload, order: str, believed_seconds: NDArray[np.float64]) -> Ranking:
    """An order for the sweeps of waiting policies; arguments and errors are as below."""
    fields = static_order(order).code[::2]
    by_runtimes = bool((fields == SUMMARY).any())
    return Ranking(waiting_ranks(workload, order, believed_seconds), by_runtimes)


def waiting_ranks(
    workload: Workload, order: str, believed_seconds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Ranks by job, shape (jobs,): waiting jobs go in this order, the least first.

    ``order`` is a name, or an expression such as ``requested * cpus`` (see ``static_order``);
    ``believed_seconds`` are the believed runtimes, shape (jobs,): ``predicted`` and every quantile.

    Raises
    ------
    InputError
        If there is not one belief for each job; and what ``static_order`` raises.
    """
    program = static_order(order)
    believed = np.asarray(believed_seconds, dtype=np.float64)
    if believed.shape != (len(workload),):
        raise InputError(
            "not one for each job",
            field="believed_seconds",
            value=believed.size,
            expected=f"{len(workload)} of them",
        )
    summaries = np.repeat(believed[:, None], SUMMARY_COLUMNS, axis=1)
    summaries[:, URGENCY] = 1.0 / np.maximum(believed, SLOWDOWN_BOUND_SECONDS)
    return evaluate_all(program.code, 0.0, workload.specs, summaries, np.ones(len(workload)))
