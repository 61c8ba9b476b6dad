"""3Sigma's predictor: the history of whatever likeness has predicted runtimes best so far.

Several registered predictors are the same steps with other parameters, JVuPredict among them;
``usage`` has one state for each quantity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.distributions.histogram import Histogram
from foresail.distributions.kernels.streaming_histogram import histogram_columns
from foresail.kernels.columns import SPEC_COLUMNS
from foresail.kernels.steps import PredictorState, PredictorSteps
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import UnknownNameError, require, require_at_least
from foresail.model.job import Job
from foresail.model.registry import register
from foresail.predictors.kernels import experience, experts, history_table
from foresail.predictors.kernels.experts import REMOVED, cut_histogram
from foresail.predictors.kernels.history_merging import absorb
from foresail.predictors.kernels.request import ignore
from foresail.predictors.stepped import Layout, SteppedPredictor

ALL_JOBS: Final = "all"
"""The feature without attributes, of which every job has the same value."""

_NO_USER_COLUMNS: Final = 0
_MOST_VALUES: Final = 2**24
_MEDIAN_OF: Final = 100
"""Number of the last runtimes that the median takes."""
_NEWEST_WEIGHT: Final = 0.6
"""Weight of the newest runtime in the rolling average."""
_NUMBER_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class HistoryParameters:
    """Parameters of ``history`` and its kin."""

    features: tuple[str, ...] = (
        "user",
        "executable",
        "cpus",
        "queue",
        "user+executable",
        "user+cpus",
        "hour",
        "user+hour",
    )
    """Properties in which jobs are alike: attributes joined by ``+``. Known of every source are
    user, group, queue, executable, partition, cpus, tasks, gpus, requested, memory, hour and day;
    any other name is that of a further column of the source. The mean over all jobs stands in where
    no feature has a history."""
    bins: int = 80
    """Bins of each histogram at most."""
    few: int = 3
    """Number of the last runtimes that the mean of the last few takes (at most 100)."""
    false_alarm_jobs: float | None = None
    """Forget a class's history when its runtimes have changed; a class that has not changed is
    suspected once in about so many of its jobs."""
    feature_values: int = 2**17
    """Number of feature-values to keep a history of; the one longest unused is forgotten."""

    def __post_init__(self) -> None:
        most = history_table.MOST_ATTRIBUTES
        for feature in self.features:
            names = feature.split("+")
            sound = all(names) and len(set(names)) == len(names) <= most
            require(
                sound and feature != ALL_JOBS,
                self,
                "features",
                f"one to {most} different attributes joined by +, such as user+cpus",
            )
        different = len(set(self.features)) == len(self.features)
        require(different, self, "features", "different ones")
        require_at_least(self, 2, "bins")
        require_at_least(self, 1, "feature_values")
        require(1 <= self.few <= _MEDIAN_OF, self, "few", f"from 1 to {_MEDIAN_OF}")
        require_at_least(self, 10, "false_alarm_jobs")
        require(self.feature_values <= _MOST_VALUES, self, "feature_values", "from 1 to 2^24")


@dataclass(frozen=True, slots=True)
class HistoryMemory:
    """Content of a state."""

    learned: int
    """Jobs learned from."""
    feature_values: dict[str, int]
    """Number of values each feature has a history of, by the feature's name."""
    row_bytes: int
    used_bytes: int
    """Memory of one feature-value, and of all."""
    evictions: int
    """Number of times a feature-value was forgotten to make room for another."""
    alarms: int
    """Number of times a class was found to have changed."""


class HistoryPredictor(SteppedPredictor):
    """The steps of ``foresail.predictors.kernels.experts`` with their state.

    Parameters
    ----------
    parameters
        As above.
    point_only
        1 to believe the winning estimate alone, 0 to believe the winner's whole history.
    limited
        1 if beliefs end at the requested time, 0 for quantities other than the runtime.
    """

    expert_column = experts.EXPERT

    def __init__(self, parameters: HistoryParameters, *, point_only: int, limited: int) -> None:
        self.feature_names = (*parameters.features, ALL_JOBS)
        self.expert_names = tuple(
            f"{feature} {estimator}"
            for feature in self.feature_names
            for estimator in experience.ESTIMATOR_NAMES
        )
        sources = _source_columns(parameters.features)
        model, size = _model(parameters, sources)
        model[experts.POINT_ONLY] = point_only
        model[experts.LIMITED] = limited
        job_columns = experts.job_columns(len(self.feature_names))
        steps = PredictorSteps(experts.predict, ignore, experts.observe, belief=experts.belief)
        super().__init__(steps, Layout(model, _NO_USER_COLUMNS, job_columns, size, sources))

    def compiled(
        self, specs: Floats, features: tuple[str, ...] = ()
    ) -> tuple[PredictorSteps, PredictorState]:
        """Steps and fresh state for jobs whose slots are the rows of ``specs``.

        Raises ``UnknownNameError`` if a feature names an attribute that neither every source nor
        this one has.
        """
        for name in self._layout.features:
            if name not in features:
                raise UnknownNameError(
                    "attribute of jobs", name, {*history_table.ATTRIBUTES, *features}
                )
        steps, state = super().compiled(specs, features)
        places = {name: SPEC_COLUMNS + place for place, name in enumerate(features)}
        rows = _feature_rows(self.feature_names[:-1], places)
        begin = int(state.model[history_table.AT_FEATURES])
        state.model[begin : begin + rows.size] = rows.ravel()
        return steps, state

    def known(self, job: Job, now: float) -> Distribution | None:
        """Predict like ``predict``, but None where there is no history to go by."""
        belief = self.predict(job, now)
        expert = self._state.jobs[self._slots[job.job_id], experts.EXPERT]
        return None if expert == experts.NO_EXPERT else belief

    def _belief(self, slot: int) -> Distribution:
        model, job = self._state.model, self._state.jobs[slot]
        if job[experts.EXPERT] == experts.NO_EXPERT or model[experts.POINT_ONLY] != 0.0:
            return super()._belief(slot)
        begin = experts.winner_histogram(model, job)
        row = model[begin : begin + histogram_columns(int(model[experience.BINS]))].copy()
        limit = experts.belief_end(model, self._specs[slot])
        cut_histogram(row, limit, np.empty(REMOVED))
        return Histogram(row)

    def memory(self) -> HistoryMemory:
        """Return the content of the state, and how much memory that takes."""
        model = self._state.model
        used = int(model[history_table.USED])
        rows = self.rows()
        counts = np.bincount(rows[:, 0].astype(int), minlength=len(self.feature_names))
        row_bytes = int(model[history_table.ROW_COLUMNS]) * _NUMBER_BYTES
        return HistoryMemory(
            learned=int(model[experts.LEARNED]),
            feature_values=dict(zip(self.feature_names, counts.tolist(), strict=True)),
            row_bytes=row_bytes,
            used_bytes=row_bytes * used,
            evictions=int(model[history_table.EVICTIONS]),
            alarms=int(rows[:, experience.ALARMS].sum()),
        )

    def best_experts(self) -> dict[str, str]:
        """By feature, which estimator scores best for the most of its values, and for how many."""
        rows = self.rows()
        most: dict[str, str] = {}
        for number, feature in enumerate(self.feature_names):
            scored = rows[(rows[:, 0] == number) & (rows[:, experience.SCORED] > 0.0)]
            errors = scored[:, experience.ERRORS : experience.VALUES]
            if errors.size:
                wins = np.bincount(np.argmin(errors, axis=1), minlength=experience.ESTIMATORS)
                best = int(np.argmax(wins))
                most[feature] = f"{experience.ESTIMATOR_NAMES[best]} ({wins[best]} of {wins.sum()})"
        return most

    def rows(self) -> Floats:
        """A view of the rows in use (``predictors.kernels.experience``), one per feature-value."""
        return table_rows(self._state.model)

    def _model_used(self) -> int:
        model = self._state.model
        return int(model[history_table.AT_ROWS]) + int(model[history_table.USED]) * int(
            model[history_table.ROW_COLUMNS]
        )

    def absorb(self, other: HistoryPredictor) -> None:
        """Learn all that another one with the same parameters has learned, but not jobs in flight.

        Sums, counts and scores add up exactly; histograms merge as if their bins had been values;
        the last values are the last of both.
        """
        self._state.model[experts.CLOCK] = max(
            self._state.model[experts.CLOCK], other._state.model[experts.CLOCK]
        )
        absorb(self._state.model, other._state.model, self._codes_of(other))


@register("predictor", "history", parameters=HistoryParameters)
class History(HistoryPredictor):
    """Predicts a distribution: the history of the feature-value with the best past estimates."""

    def __init__(self, parameters: HistoryParameters) -> None:
        super().__init__(parameters, point_only=0, limited=1)


@register("predictor", "jvu", parameters=HistoryParameters)
class Jvu(HistoryPredictor):
    """Predicts the estimate of the expert that has been best so far: a point, from history."""

    def __init__(self, parameters: HistoryParameters) -> None:
        super().__init__(parameters, point_only=1, limited=1)


def table_rows(model: Floats) -> Floats:
    """A view of the rows in use of a history's model, shape (rows, columns)."""
    begin, width = int(model[history_table.AT_ROWS]), int(model[history_table.ROW_COLUMNS])
    return model[begin : begin + int(model[history_table.USED]) * width].reshape(-1, width)


def alarm_level(false_alarm_jobs: float | None) -> float:
    """Level that one of two cumulative sums crosses once in so many values while nothing changes.

    By Siegmund's approximation for sums with a drift of k = 1/2 (Sequential Analysis, 1985):
    a single sum reaches h after (exp(2kb) - 2kb - 1) / (2k^2) values, b = h + 1.166.
    """
    if false_alarm_jobs is None:
        return math.inf
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        b = middle + 1.166
        if 2.0 * (math.exp(b) - b - 1.0) < 2.0 * false_alarm_jobs:
            low = middle
        else:
            high = middle
    return high


def _source_columns(features: Sequence[str]) -> tuple[str, ...]:
    """The attributes that only some sources have, in order of appearance."""
    names = dict.fromkeys(name for feature in features for name in feature.split("+"))
    return tuple(name for name in names if name not in history_table.ATTRIBUTES)


def _feature_rows(features: Sequence[str], places: Mapping[str, int]) -> Floats:
    """Rows for ``feature_values``, the feature without attributes last.

    ``places`` are the columns of attributes that only some sources have.
    """
    rows = np.zeros((len(features) + 1, history_table.FEATURE_COLUMNS))
    for row, feature in zip(rows, features, strict=False):
        names = feature.split("+")
        row[0] = len(names)
        for i, name in enumerate(names):
            how, column = (
                history_table.ATTRIBUTES[name]
                if name in history_table.ATTRIBUTES
                else (history_table.CODE, places[name])
            )
            row[1 + 2 * i] = how
            row[2 + 2 * i] = column
    return rows


def _model(parameters: HistoryParameters, sources: Sequence[str]) -> tuple[Floats, int]:
    """The model's beginning and its whole length."""
    places = {name: SPEC_COLUMNS + place for place, name in enumerate(sources)}
    width = experience.row_columns(parameters.bins, _MEDIAN_OF)
    model, size = history_table.table_model(
        experts.HEAD_COLUMNS,
        _feature_rows(parameters.features, places),
        parameters.feature_values,
        width,
    )
    model[experience.BINS] = parameters.bins
    model[experience.RECENT] = _MEDIAN_OF
    model[experience.FEW] = parameters.few
    model[experience.ALPHA] = _NEWEST_WEIGHT
    model[experience.ALARM_LEVEL] = alarm_level(parameters.false_alarm_jobs)
    model[experts.CLOCK] = -math.inf
    return model, size
