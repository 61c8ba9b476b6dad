"""Replay a predictor over a log: predict at submission, learn from what has ended, keep scores."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.control.plug_in_errors import no_belief
from foresail.distributions.summary import belief_row
from foresail.evaluation import _loop
from foresail.evaluation._loop import nanoseconds_to_read
from foresail.kernels.columns import BELIEF_COLUMNS, SUMMARY_COLUMNS
from foresail.kernels.steps import CompiledPredictor, PredictorState, ReportsExpert
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor, ProgressCallback
from foresail.model.short_form import PlugIn, part_of
from foresail.model.words import count
from foresail.predictors import training
from foresail.traces import measured
from foresail.traces.workload import Workload

LEVELS: Final = _loop.LEVELS
QUANTILES: Final = tuple(f"q{f'{level:.3f}'[2:].removesuffix('0')}" for level in LEVELS)
"""The quantiles that are kept of every belief, and their names."""

_RANDOM_SEED: Final = 0
_NANO: Final = 1e-9
_READINGS: Final = 3
"""Readings of the clock within the time of a job: at its submission, its start and its end."""


_PAGE_BYTES: Final = 4096
_NUMBERS_PER_PAGE: Final = _PAGE_BYTES // 8


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of predicting, in seconds per job and in bytes of state.

    The seconds are the processor time of all that the predictor did for a job, from prediction to
    learning; what else the machine did meanwhile is not in them. ``bytes_per_job`` are kept for
    each job that waits or runs, ``state_bytes`` for all else, without pages of memory that were
    never written; both None for a predictor without compiled steps.
    """

    mean_seconds: float
    median_seconds: float
    p999_seconds: float
    state_bytes: int | None
    bytes_per_job: int | None


@dataclass(frozen=True)
class Evaluation:
    """A predictor's predictions for one log, against what happened."""

    source: str
    predictor: str
    """The log's name and the predictor's short form."""
    quantity: str
    unit: str
    """Predicted quantity, and its unit."""
    learning: training.Learning
    """One of ``LEARNING``."""
    jobs: pl.DataFrame
    """A row per scored job, by submission: ``job_id``, ``user``, ``submit_seconds``, ``actual``,
    ``predicted`` (the mean), ``q025`` to ``q975``, ``level`` (where the truth lies in the belief, 0
    to 1), ``crps``, and ``expert`` (null: none)."""
    unknown_jobs: int
    """Jobs left out because what was to be predicted is unknown of them."""
    unpredicted_jobs: int
    """Jobs left out because the predictor gave no finite belief."""
    experts: tuple[str, ...]
    """The experts that the predictor chooses among; none for most predictors."""
    cost: Cost


@dataclass(frozen=True)
class _Replayed:
    """Score rows, followed experts and nanoseconds by slot, and the state at the end."""

    scores: Floats
    expert: Integers
    cost: Integers
    state: PredictorState | None


class _Amount(Outcome):
    """An outcome that teaches an amount, which need not be the time it took."""

    amount: float = math.nan

    @property
    def runtime_seconds(self) -> float:
        """Return the amount that the predictor learns."""
        return self.amount


def evaluate(
    workload: Workload,
    predictor: str | PlugIn,
    *,
    quantity: str = "runtime",
    learning: training.Learning = "on_completion",
    watch: ProgressCallback | None = None,
) -> Evaluation:
    """Evaluate a predictor on a log.

    Raises ``InputError`` if nothing is known of any job, or the predictor is malformed or predicts
    nothing; ``UnknownNameError`` if there is no such predictor, quantity or way of learning.

    Parameters
    ----------
    workload
        Jobs that ended at their recorded submission + wait + runtime.
    predictor
        A predictor, or its short form such as ``recent(k=2)``.
    quantity
        One of ``foresail.traces.measured.QUANTITIES``; jobs that it is unknown of are left out.
    learning
        ``on_completion`` (a job is learned when it has ended) or ``in_order`` (a job is learned
        right after it was predicted, in order of submission).
    watch
        Is given a measure of how many submissions, starts and ends there have been.

    Returns
    -------
    Evaluation
        ``level`` is drawn at random, always the same way, between the probability of less than the
        truth and of at most the truth where the truth is an atom of the belief, so that levels are
        uniform for a predictor that is right (Czado, Gneiting and Held 2009).
    """
    part = part_of("predictor", predictor) if isinstance(predictor, str) else predictor
    if learning not in training.LEARNING:
        raise UnknownNameError("way of learning", learning, training.LEARNING)
    truth = np.ascontiguousarray(measured.quantity(workload, quantity))
    known = np.isfinite(truth) & (truth >= 0)
    if learning == "on_completion":
        runtime = workload.runtime_seconds
        known &= np.isfinite(runtime) & (runtime >= 0)
    if not known.any():
        raise InputError(
            f"no job whose {quantity.replace('_', ' ')} is known",
            source=workload.meta.source,
            field=quantity,
            expected="a log that recorded it",
        )
    order = training.order_of_events(workload, known, learning)
    built = part.build()
    if built.needs_truth:
        ids = workload.jobs["job_id"].to_list()
        built.reveal(dict(zip(ids, truth.tolist(), strict=True)))
    expert = built if isinstance(built, ReportsExpert) else None
    if built.is_compiled:
        column = -1 if expert is None else expert.expert_column
        replayed = _replay_steps(built, column, workload, order, truth, watch)
    else:
        replayed = _replay_objects(built, workload, order, truth, watch)
    experts = () if expert is None or not built.is_compiled else expert.expert_names
    jobs = _jobs(workload, truth, replayed, experts).filter(pl.Series(known))
    predicted = jobs.filter(pl.col("predicted").is_not_nan())
    if predicted.is_empty():
        raise InputError(
            f"the predictor {part.text} predicts a time of none of {count(jobs.height, 'job')}",
            source=workload.meta.source,
            field="predict",
            value=math.nan,
            expected="a Distribution of finite seconds for some of them",
        )
    return Evaluation(
        source=workload.meta.source,
        predictor=part.text,
        quantity=quantity,
        unit=measured.QUANTITIES[quantity],
        learning=learning,
        jobs=predicted,
        unknown_jobs=int((~known).sum()),
        unpredicted_jobs=jobs.height - predicted.height,
        experts=experts,
        cost=_cost(replayed, known),
    )


def _replay_steps(
    predictor: CompiledPredictor,
    expert_column: int,
    workload: Workload,
    order: training.EventOrder,
    truth: Floats,
    watch: ProgressCallback | None,
) -> _Replayed:
    """By the predictor's compiled steps."""
    specs = workload.specs
    steps, state = predictor.compiled(specs, workload.feature_names)
    arrays = _empty_arrays(specs, state, truth)
    if watch is not None:
        watch(lambda: (float(arrays.taken[0]), float(order.kind.size)))
    _loop.evaluation_loop(
        order, arrays, _loop.step_addresses(steps), expert_column, np.zeros(BELIEF_COLUMNS)
    )
    cost = np.maximum(arrays.cost - _READINGS * nanoseconds_to_read(), 0)
    return _Replayed(arrays.scores, arrays.expert, cost, state)


def _empty_arrays(specs: Floats, state: PredictorState, truth: Floats) -> _loop.JobArrays:
    jobs = len(specs)
    return _loop.JobArrays(
        specs,
        np.zeros((jobs, SUMMARY_COLUMNS)),
        state.model,
        state.users,
        state.jobs,
        truth,
        np.full((jobs, _loop.SCORE_COLUMNS), math.nan),
        np.full(jobs, -1),
        np.zeros(jobs, np.int64),
        np.zeros(1, np.int64),
    )


def _replay_objects(
    predictor: Predictor,
    workload: Workload,
    order: training.EventOrder,
    truth: Floats,
    watch: ProgressCallback | None,
) -> _Replayed:
    """By the predictor's methods, in the same order."""
    jobs = list(workload.specifications())
    scores = np.full((len(jobs), _loop.SCORE_COLUMNS), math.nan)
    cost = np.zeros(len(jobs), np.int64)
    start = np.full(len(jobs), math.nan)
    belief = np.zeros(BELIEF_COLUMNS)
    events = zip(order.kind.tolist(), order.slot.tolist(), order.time.tolist(), strict=True)
    taken = 0
    if watch is not None:
        watch(lambda: (taken, order.kind.size))
    for taken, (kind, slot, now) in enumerate(events):  # noqa: B007 - others look at it
        job = jobs[slot]
        begin = time.thread_time_ns()
        if kind == training.SUBMISSION:
            predicted = _ask(predictor, job, now, belief)
            cost[slot] += time.thread_time_ns() - begin
            _loop.score(predicted, belief, truth[slot], scores[slot])
            continue
        if kind == training.START:
            start[slot] = now
            predictor.started(job, now)
        else:
            amount = float(truth[slot])
            outcome = _Amount(job.job_id, start[slot], now, amount=amount)  # type: ignore[call-arg] # a field of its own
            predictor.observe(job, outcome)
        cost[slot] += time.thread_time_ns() - begin
    return _Replayed(scores, np.full(len(jobs), -1), cost, None)


def _ask(predictor: Predictor, job: Job, now: float, belief: Floats) -> float:
    """The predicted mean; the whole belief is put into the row."""
    distribution = predictor.predict(job, now)
    if not hasattr(distribution, "quantile"):
        raise no_belief(predictor, distribution, job.job_id)
    belief[:] = belief_row(distribution)
    return float(distribution.mean())


def _jobs(
    workload: Workload, truth: Floats, replayed: _Replayed, experts: tuple[str, ...]
) -> pl.DataFrame:
    scores = replayed.scores
    below, at_or_below = scores[:, _loop.BELOW], scores[:, _loop.AT_OR_BELOW]
    share = np.random.default_rng(_RANDOM_SEED).random(len(scores))
    columns: dict[str, Any] = {
        "actual": truth,
        "predicted": scores[:, 0],
        **{name: scores[:, _loop.QUANTILES + place] for place, name in enumerate(QUANTILES)},
        "level": below + share * (at_or_below - below),
        "crps": scores[:, _loop.CRPS],
    }
    names = pl.Series("expert", [*experts, None], dtype=pl.String)
    places = np.where(
        (replayed.expert >= 0) & (replayed.expert < len(experts)), replayed.expert, len(experts)
    )
    return workload.jobs.select("job_id", "user", "submit_seconds").with_columns(
        **{name: pl.Series(values) for name, values in columns.items()}, expert=names.gather(places)
    )


def _cost(replayed: _Replayed, known: Booleans) -> Cost:
    seconds = replayed.cost[known] * _NANO
    state = replayed.state
    median, p999 = np.quantile(seconds, [0.5, 0.999])
    return Cost(
        mean_seconds=float(seconds.mean()),
        median_seconds=float(median),
        p999_seconds=float(p999),
        state_bytes=None if state is None else _used_bytes(state.model) + state.users.nbytes,
        bytes_per_job=None if state is None else state.jobs.itemsize * state.jobs.shape[1],
    )


def _used_bytes(numbers: Floats) -> int:
    """Bytes of the pages of an array that hold anything but zeros."""
    whole = numbers.size // _NUMBERS_PER_PAGE * _NUMBERS_PER_PAGE
    pages = numbers[:whole].reshape(-1, _NUMBERS_PER_PAGE).any(axis=1)
    return int(np.count_nonzero(pages)) * _PAGE_BYTES + numbers[whole:].nbytes


KNOWN = "known"
REQUESTED = "requested"


def believed_runtimes(workload: Workload, by: str) -> Floats:
    """Seconds by job, shape (jobs,).

    Raises ``InputError`` if the log has no limits, where these are asked for, or the short form is
    malformed; ``UnknownNameError`` if there is no such predictor.

    Parameters
    ----------
    workload
        The log.
    by
        ``known``: the truth. ``requested``: the users' limits. Else a predictor's short form: its
        medians, as it learns while jobs end. Jobs that it says nothing of are taken for endless.
    """
    if by == KNOWN:
        return workload.runtime_seconds
    if by == REQUESTED:
        limits = workload.jobs["requested_seconds"]
        if limits.null_count() == len(limits):
            raise InputError(
                "no job has a limit", source=workload.meta.source, field="requested_seconds"
            )
        return limits.cast(pl.Float64).fill_null(np.inf).to_numpy().astype(np.float64)
    evaluated = evaluate(workload, by).jobs.select("job_id", "q50")
    found = workload.jobs.select("job_id").join(evaluated, on="job_id", how="left")["q50"]
    return found.cast(pl.Float64).fill_null(np.inf).to_numpy().astype(np.float64)
