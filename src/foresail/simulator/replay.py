"""The compiled replay: millions of jobs under any policy whose parts have compiled steps."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.control.conventions import FORESAIL, Conventions
from foresail.control.policy import Policy
from foresail.kernels.columns import CPUS, PREDICTED, Q10, Q90, SUBMIT, SUMMARY_COLUMNS, USER
from foresail.kernels.grains import whole_grains
from foresail.kernels.signatures import (
    CompiledCorrection,
    CompiledPredictor,
    PredictorState,
    PredictorSteps,
)
from foresail.model.errors import InputError
from foresail.model.outcome import EndedBecause
from foresail.model.protocols import NeedsTruth
from foresail.simulator import _loop
from foresail.simulator.truth import real_runtimes
from foresail.traces import schema
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


def is_compiled(policy: Policy) -> bool:
    """Whether all three parts of a policy have compiled steps."""
    return all(hasattr(part, "compiled") for part in policy.build())


def replay(
    workload: Workload,
    policy: Policy,
    conventions: Conventions = FORESAIL,
    *,
    enforce_limits: bool = False,
) -> Schedule:
    """What would have happened to a workload on its machine under a policy.

    Parameters
    ----------
    workload
        Needs real runtimes and the number of processors.
    policy
        Its three parts must have compiled steps (``is_compiled``).
    conventions
        The order of things at the same instant.
    enforce_limits
        Jobs end at their requested time.

    Raises
    ------
    InputError
        If a job's runtime is unknown or negative, or a job is wider than the machine.
    """
    runtime = real_runtimes(workload, enforce_limits=enforce_limits)
    result = replay_arrays(workload, runtime, policy, conventions)
    return _schedule(workload, runtime, policy, conventions, result)


def replay_arrays(
    workload: Workload,
    runtime: NDArray[np.float64],
    policy: Policy,
    conventions: Conventions = FORESAIL,
) -> Replayed:
    """As ``replay``, without making a table of the result.

    ``runtime`` holds the real runtimes (seconds, a row per job) as ``real_runtimes`` checks them.
    """
    scheduler, predictor, correction = policy.build()
    if isinstance(predictor, NeedsTruth):
        ids = workload.jobs["job_id"].to_list()
        predictor.reveal(dict(zip(ids, runtime.tolist(), strict=True)))
    specs = workload.specs
    steps, state = _compiled_predictor(predictor, specs, workload.feature_names)
    correct, correction_parameters = cast("CompiledCorrection", correction).compiled()
    compiled = cast("Any", scheduler).compiled()
    shared = compiled.candidates is compiled.queue
    queue = _loop.waiting_lane(compiled.queue, len(specs))
    candidates = queue if shared else _loop.waiting_lane(compiled.candidates, len(specs))
    users = int(specs[:, USER].max()) + 1
    machine = _loop.idle_machine(workload.processors, whole_grains(specs[:, CPUS]), users)
    kinds = _loop.no_jobs_of(workload.kinds)
    summaries = np.zeros((len(specs), SUMMARY_COLUMNS))
    settings = _loop.Settings(
        correction_parameters,
        compiled.parameters,
        compiled.plan.code,
        compiled.plan.constants,
        compiled.likely.code,
        compiled.likely.constants,
        shared,
        compiled.age_limit_seconds,
        compiled.oldest_limit_seconds,
        conventions.passes == "per_event",
        conventions.free == "expected",
        steps.refresh is not None,
    )
    submitted = summaries if steps.refresh is None else np.empty_like(summaries)
    book = _loop.Book(
        specs,
        summaries,
        submitted,
        state.model,
        state.users,
        state.jobs,
        runtime,
        specs[:, SUBMIT].copy(),
    )
    begin = time.perf_counter()
    _loop.replay_loop(
        queue,
        candidates,
        machine,
        kinds,
        book,
        settings,
        steps.predict,
        steps.started,
        steps.observe,
        correct,
        compiled.one_pass,
        steps.refresh or steps.predict,
    )
    seconds = time.perf_counter() - begin
    counters = machine.counters
    return Replayed(
        machine.start,
        machine.end,
        machine.initial,
        machine.corrections,
        machine.backfilled,
        submitted,
        {
            "passes": int(counters[_loop.PASSES]),
            "corrections": int(counters[_loop.CORRECTIONS]),
            "delayed_heads": int(counters[_loop.DELAYED_HEADS]),
        },
        seconds,
    )


def _compiled_predictor(
    predictor: object, specs: NDArray[np.float64], features: tuple[str, ...]
) -> tuple[PredictorSteps, PredictorState]:
    if not isinstance(predictor, CompiledPredictor):
        raise InputError(
            "the predictor has no compiled steps",
            value=type(predictor).__name__,
            expected="the event engine for policies with parts that are not compiled",
        )
    return predictor.compiled(specs, features)


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
    table = pl.DataFrame(
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
            "placement": pl.Series(["all"]).new_from_index(0, len(workload)),
            "ended_because": because,
            "deadline_seconds": jobs["deadline_seconds"],
            "nominal_runtime_seconds": workload.runtime_seconds,
            "accepted": pl.Series([None]).new_from_index(0, len(workload)),
        },
        schema_overrides=schema.SCHEDULE,
    )
    meta = ScheduleMeta(
        policy=policy.label,
        processors=workload.processors,
        workload=workload.meta.source,
        conventions=conventions.name,
        counters=result.counters,
        replay_seconds=result.seconds,
        manifest={"policy": policy.text},
    )
    return Schedule(table, meta)


def _finite(seconds: NDArray[np.float64]) -> pl.Series:
    """A column in which what is not finite is unknown."""
    return pl.Series(np.where(np.isfinite(seconds), seconds, math.nan)).fill_nan(None)
