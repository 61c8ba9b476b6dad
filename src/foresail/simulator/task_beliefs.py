"""Predictors of tasks in the compiled replay: a slot per stage, and the history learned before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import polars as pl

from foresail.kernels.columns import CPUS, SUBMIT, SUMMARY_COLUMNS, TASKS
from foresail.kernels.steps import (
    CompiledPredictor,
    PredictorInputs,
    PredictorState,
    PredictorSteps,
    step_address,
)
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.model.protocols import Predictor
from foresail.predictors.training import END, SUBMISSION, order_of_events
from foresail.simulator.kernels import task_loop as _loop
from foresail.traces.measured import TaskStages, task_stages
from foresail.traces.workload import Workload

SLOT_STAGE: Final = "stage"
"""The attribute that a stage's name is, for predictors that look at it."""
_WEEK_SECONDS: Final = 604_800.0


@dataclass(frozen=True)
class AskedPredictor:
    """Predictor's steps by address, and what they read and write, a slot per stage."""

    steps: Floats
    inputs: PredictorInputs

    @classmethod
    def with_history(
        cls,
        predictor: Predictor,
        workload: Workload,
        stages: TaskStages,
        history: Workload | None,
        proved: Floats,
    ) -> AskedPredictor:
        """The predictor of a policy, which has learned from the history.

        What the history says of its beliefs is added to ``proved``.
        """
        if not predictor.is_compiled:
            raise InputError(
                "the predictor has no compiled steps",
                value=type(predictor).__name__,
                expected="one that has",
            )
        both = workload if history is None else _with_history(workload, history)
        known = [stages] if history is None else [stages, task_stages(history)]
        specs, features = _stage_specs(both, known)
        if predictor.needs_truth:
            means = np.concatenate([each.stage_seconds / each.width for each in known])
            predictor.reveal({str(slot): mean for slot, mean in enumerate(means.tolist())})
        steps, state = cast("CompiledPredictor", predictor).compiled(specs, features)
        asked = cls(_addresses(steps), _inputs(specs, state))
        if history is not None:
            _teach(asked, history, known[1], stages.width.size, proved)
        return asked


def _addresses(steps: PredictorSteps) -> Floats:
    addresses = np.zeros(_loop.STEPS)
    addresses[_loop.PREDICT] = step_address(steps.predict)
    addresses[_loop.NOTE_START] = step_address(steps.started)
    addresses[_loop.OBSERVE] = step_address(steps.observe)
    return addresses


def _inputs(specs: Floats, state: PredictorState) -> PredictorInputs:
    summaries = np.zeros((len(specs), SUMMARY_COLUMNS))
    return PredictorInputs(0, 0.0, 0.0, specs, state.model, state.users, state.jobs, summaries)


NOT_ASKED: Final = AskedPredictor(
    np.zeros(_loop.STEPS),
    _inputs(np.zeros((1, 1)), PredictorState(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)))),
)


def _with_history(workload: Workload, history: Workload) -> Workload:
    """Both, with the history's jobs whole weeks earlier, so that they end before the first job."""
    ends = history.jobs["submit_seconds"] + history.jobs["runtime_seconds"].fill_null(0.0)
    late = float(ends.max()) - float(workload.jobs["submit_seconds"][0])  # type: ignore[arg-type]
    shift = math.ceil(max(late, 0.0) / _WEEK_SECONDS) * _WEEK_SECONDS
    earlier = history.jobs.with_columns(pl.col("submit_seconds") - shift)
    names = [name for name in workload.jobs.columns if name in earlier.columns]
    both = pl.concat([workload.jobs.select(names), earlier.select(names)])
    return workload.with_jobs(both)


def _stage_specs(both: Workload, known: list[TaskStages]) -> tuple[Floats, tuple[str, ...]]:
    """Specification rows of all stages, with the stage's name behind the source's features."""
    rows, begin = [], 0
    for stages in known:
        rows.append(stages.stage_job + begin)
        begin += stages.first_stage.size - 1
    of_job = both.specs[np.concatenate(rows)]
    width = np.concatenate([stages.width for stages in known])
    of_job[:, CPUS] *= width / of_job[:, TASKS]
    of_job[:, TASKS] = width
    names = pl.concat([stages.stage_name for stages in known]).rank("dense").to_numpy()
    specs = np.column_stack((of_job, names.astype(np.float64)))
    return np.ascontiguousarray(specs), (*both.feature_names, SLOT_STAGE)


def _teach(
    asked: AskedPredictor, history: Workload, stages: TaskStages, first_slot: int, proved: Floats
) -> None:
    """Let the predictor learn the history, every stage as if it had begun with its job.

    Its beliefs are judged as soon as half of the jobs have taught it: a beginner's say little.
    """
    order = order_of_events(history, np.ones(len(history), dtype=np.bool_), "on_completion")
    shift = float(asked.inputs.specs[first_slot, SUBMIT] - history.jobs["submit_seconds"][0])
    mean = stages.stage_seconds / stages.width
    observed = (order.kind == SUBMISSION) | (order.kind == END)
    jobs = order.slot[observed]
    counts = np.diff(stages.first_stage)[jobs]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.repeat(stages.first_stage[jobs], counts) + within
    is_end = order.kind[observed] == END
    ends = np.repeat(is_end, counts)
    learned = np.cumsum(is_end)
    experienced = np.zeros(len(history), dtype=np.bool_)
    experienced[jobs[~is_end]] = 2 * learned[~is_end] >= learned[-1]
    _loop.teach_loop(
        asked.steps,
        asked.inputs,
        rows + first_slot,
        np.repeat(order.time[observed], counts) + shift,
        np.where(ends, mean[rows], np.nan),
        (within == 0) & np.repeat(experienced[jobs], counts),
        proved,
    )
