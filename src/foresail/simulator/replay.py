"""The compiled replay: millions of jobs under any policy whose parts have compiled steps."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.control.policy import Policy, is_compiled
from foresail.kernels.columns import CPUS, PREDICTED, Q10, Q90, SUBMIT, fixed_point_cpus
from foresail.kernels.compile import Step
from foresail.kernels.steps import CompiledCorrection, CompiledPredictor, step_address
from foresail.model.errors import InputError
from foresail.model.event import STANDARD, Conventions, EndedBecause
from foresail.model.protocols import Progress, ProgressCallback
from foresail.schedulers.kernels.waiting_queue import SLOTS, follows_probes
from foresail.simulator.kernels import partitions_loop
from foresail.simulator.kernels import replay_loop as _loop
from foresail.simulator.truth import real_runtimes
from foresail.traces.nodes import require_processors_bind
from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail.traces.workload import Workload


@dataclass(frozen=True)
class Replayed:
    """A replay's arrays, a row per job in order of submission.

    ``planned`` is the runtime planned with at submission, ``summaries`` the predictions
    then (``foresail.kernels.columns``), ``seconds`` what the replay proper took.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    planned: NDArray[np.float64]
    corrections: NDArray[np.int64]
    backfilled: NDArray[np.bool_]
    summaries: NDArray[np.float64]
    counters: dict[str, float]
    seconds: float


def steps_of_parts(policy: Policy) -> tuple[Step, ...]:
    """The steps of a policy's predictor and correction, which every simulation takes."""
    _, predictor, correction = policy.build()
    of_predictor: tuple[Step, ...] = getattr(predictor, "steps", ())
    if not isinstance(correction, CompiledCorrection):
        return of_predictor
    return (*of_predictor, correction.compiled()[0])


def steps_of(policy: Policy) -> tuple[Step, ...]:
    """Return the steps to compile for a replay under a policy, the longest first."""
    if not is_compiled(policy):
        return ()
    scheduler, predictor, _ = policy.build()
    refreshes = predictor.refreshes_predictions
    of_loop = _loop.parts_for(cast("Any", scheduler).compiled(), refreshes)
    return (*of_loop, *steps_of_parts(policy))


def replay(
    workload: Workload,
    policy: Policy,
    conventions: Conventions = STANDARD,
    *,
    enforce_limits: bool = False,
    watch: ProgressCallback | None = None,
) -> Schedule:
    """Replay a workload on its machine under a policy whose three parts have compiled steps.

    With ``enforce_limits`` jobs end at their requested time; ``watch`` is given a measure of the
    seconds of the log whose jobs have been submitted.

    Raises ``InputError`` if a job's runtime is unknown or negative, a job is wider than the
    machine, the number of processors is unknown, jobs ask for more than processors, or a part has
    no compiled steps.
    """
    require_processors_bind(workload)
    runtime = real_runtimes(workload, enforce_limits=enforce_limits)
    result = replay_arrays(workload, runtime, policy, conventions, watch)
    return _schedule(workload, runtime, policy, conventions, result)


def replay_arrays(
    workload: Workload,
    runtime: NDArray[np.float64],
    policy: Policy,
    conventions: Conventions = STANDARD,
    watch: ProgressCallback | None = None,
) -> Replayed:
    """Replay like ``replay``, without making a table of the result.

    ``runtime`` holds the real runtimes (seconds, a row per job) as ``real_runtimes`` checks them.
    """
    if not is_compiled(policy):
        raise InputError(
            "a part of the policy has no compiled steps",
            value=policy.text,
            expected="the event engine for policies with parts that are not compiled",
        )
    scheduler, predictor, correction = policy.build()
    if predictor.needs_truth:
        ids = workload.jobs["job_id"].to_list()
        predictor.reveal(dict(zip(ids, runtime.tolist(), strict=True)))
    specs = workload.specs
    steps, state = cast("CompiledPredictor", predictor).compiled(specs, workload.feature_names)
    correct, correction_parameters = cast("CompiledCorrection", correction).compiled()
    compiled = cast("Any", scheduler).compiled()
    addresses = _loop.Steps(
        predict=step_address(steps.predict),
        started=step_address(steps.started),
        observe=step_address(steps.observe),
        refresh=0.0 if steps.refresh is None else step_address(steps.refresh),
        correct=step_address(correct),
    )

    def machine(processors: int) -> NDArray[np.float64]:
        return _loop.machine_numbers(
            processors, addresses, conventions, correction_parameters, compiled.shares
        )

    kinds = workload.kinds
    whole = machine(workload.processors)
    tables = _loop.idle(
        specs, fixed_point_cpus(specs[:, CPUS]), runtime, kinds, compiled, whole, state
    )
    every = [
        _loop.partition_of(tables, rows, compiled, machine(processors))
        for rows, processors in _jobs_by_partition(workload)
    ] or [tables]
    run = partitions_loop.prepared(every)
    if watch is not None:
        watch(submitted(specs[:, SUBMIT], [each.queue.counters for each in every], SLOTS))
    begin = time.perf_counter()
    run()
    seconds = time.perf_counter() - begin
    jobs = tables.queue.jobs[: len(specs)]
    counters = np.sum([each.queue.counters for each in every], axis=0)
    return Replayed(
        jobs[:, _loop.START].copy(),
        jobs[:, _loop.END].copy(),
        jobs[:, _loop.INITIAL].copy(),
        jobs[:, _loop.CORRECTIONS].astype(np.int64),
        jobs[:, _loop.BACKFILLED] != 0.0,
        tables.submitted,
        {
            "passes": int(counters[_loop.PASSES]),
            "corrections": int(counters[_loop.CORRECTED]),
            "delayed_heads": int(counters[_loop.DELAYED_HEADS]),
        },
        seconds,
    )


def replays_apart(workload: Workload, policy: Policy, conventions: Conventions) -> bool:
    """Return whether partitions share nothing but what predictors learn.

    Each job names one that has its own processors, and what happens in one changes nothing that is
    decided about another.
    """
    if not is_compiled(policy):
        return False
    scheduler, predictor, _ = policy.build()
    compiled = cast("Any", scheduler).compiled()
    return (
        conventions == STANDARD
        and not any("," in name for name in workload.partitions)
        and workload.jobs["partition"].is_in([*workload.partitions]).fill_null(value=False).all()
        and not follows_probes(compiled)
        and compiled.shares is None
        and not predictor.refreshes_predictions
    )


def _jobs_by_partition(workload: Workload) -> Iterator[tuple[NDArray[np.int64], int]]:
    """The rows of the jobs of each partition that has some, and its processors."""
    for name, processors in workload.partitions.items():
        rows = (workload.jobs["partition"] == name).arg_true().to_numpy().astype(np.int64)
        if len(rows):
            yield rows, processors


def submitted(
    submit: NDArray[np.float64], counters: Sequence[NDArray[Any]], place: int
) -> Progress:
    """Return a measure of a replay's progress: it counts where other threads can see it.

    ``submit`` are seconds, ascending; how many jobs have come is in this place of the counters.
    """

    def measure() -> tuple[float, float]:
        at = min(sum(int(each[place]) for each in counters), len(submit) - 1)
        return float(submit[at] - submit[0]), float(submit[-1] - submit[0])

    return measure


def _schedule(
    workload: Workload,
    runtime: NDArray[np.float64],
    policy: Policy,
    conventions: Conventions,
    result: Replayed,
) -> Schedule:
    jobs = workload.jobs
    limited = runtime < workload.runtime_seconds
    because = np.where(limited, EndedBecause.LIMIT.value, EndedBecause.COMPLETED.value)
    return Schedule.from_columns(
        {
            "job_id": jobs["job_id"],
            "attempt": np.ones(len(workload), dtype=np.int64),
            "submit_seconds": jobs["submit_seconds"],
            "start_seconds": result.start,
            "end_seconds": result.end,
            "cpus": workload.cpus,
            "user": jobs["user"],
            "requested_seconds": jobs["requested_seconds"],
            "predicted_seconds": _finite(result.summaries[:, PREDICTED]),
            "predicted_low_seconds": _finite(result.summaries[:, Q10]),
            "predicted_high_seconds": _finite(result.summaries[:, Q90]),
            "corrections": result.corrections,
            "backfilled": result.backfilled,
            "placement": jobs["partition"]
            if workload.partitions
            else pl.Series(["all"]).new_from_index(0, len(workload)),
            "ended_because": because,
            "deadline_seconds": jobs["deadline_seconds"],
            "nominal_runtime_seconds": workload.runtime_seconds,
        },
        ScheduleMeta(
            policy=policy.label,
            processors=workload.processors,
            workload=workload.meta.source,
            conventions=conventions.name,
            counters=result.counters,
            replay_seconds=result.seconds,
            manifest={"policy": policy.text},
        ),
    )


def _finite(seconds: NDArray[np.float64]) -> pl.Series:
    """A column in which what is not finite is unknown."""
    return pl.Series(np.where(np.isfinite(seconds), seconds, math.nan)).fill_nan(None)
