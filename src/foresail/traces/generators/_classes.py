"""Job classes: k-means on the logarithm of the runtime, and what is fitted to each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from foresail.model.arrays import Floats, Integers
from foresail.traces.generators._population import SourceJobs

Fit = Literal["log_normal", "empirical"]

_MOST_ROUNDS: Final = 200


def k_means(values: Floats, clusters: int, random: np.random.Generator) -> Integers:
    """Number of each value's cluster, in order of the cluster centres; shape (values,).

    Lloyd's algorithm in one dimension from centres chosen as k-means++ does (D. Arthur, S.
    Vassilvitskii, SODA 2007). Fewer clusters come out where there are fewer distinct values.
    """
    centres = np.sort(_first_centres(values, clusters, random))
    labels = np.zeros(values.size, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        labels = np.searchsorted((centres[1:] + centres[:-1]) / 2.0, values).astype(np.int64)
        counts = np.bincount(labels, minlength=centres.size)
        sums = np.bincount(labels, weights=values, minlength=centres.size)
        moved = sums[counts > 0] / counts[counts > 0]
        if moved.size == centres.size and np.array_equal(moved, centres):
            break
        centres = moved
    used: Integers = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return used


def _first_centres(values: Floats, clusters: int, random: np.random.Generator) -> Floats:
    centres = [float(random.choice(values))]
    distance = (values - centres[0]) ** 2
    while len(centres) < clusters and distance.max() > 0.0:
        centres.append(float(random.choice(values, p=distance / distance.sum())))
        distance = np.minimum(distance, (values - centres[-1]) ** 2)
    return np.array(centres)


@dataclass(frozen=True, slots=True)
class DrawnJobs:
    """Jobs drawn from classes; every array has shape (jobs,)."""

    runtime_seconds: Floats
    width: Integers
    """Width is in nodes."""
    of_class: Integers
    """Number of the class: never shown to a predictor."""
    source: Integers
    """Row of the source jobs whose features it has."""

    def first(self, count: int) -> DrawnJobs:
        """Only so many."""
        return DrawnJobs(*(getattr(self, name)[:count] for name in self.__slots__))


class JobClasses:
    """Classes of source jobs with the distributions fitted to each.

    With ``log_normal`` runtimes of a class are log-normal, and its jobs have one task with the
    share that they have in the source, else a log-normal number of them; with ``empirical`` both
    are drawn from the class's jobs, each on its own. Features are drawn from the class's jobs, all
    of one job together.
    """

    def __init__(
        self,
        jobs: SourceJobs,
        clusters: int,
        fit: Fit,
        widest: int,
        random: np.random.Generator,
    ) -> None:
        logs = np.log(jobs.runtime_seconds)
        self.label = k_means(logs, clusters, random)
        self._fit = fit
        self._jobs = jobs
        self._widest = widest
        self._order = np.argsort(self.label, kind="stable")
        self._size = np.bincount(self.label)
        self._begin = np.cumsum(self._size) - self._size
        kinds = range(self._size.size)
        self._log_mean = np.array([logs[self.label == kind].mean() for kind in kinds])
        self._log_deviation = np.array([logs[self.label == kind].std() for kind in kinds])
        several = [np.log(jobs.width[(self.label == kind) & (jobs.width > 1)]) for kind in kinds]
        self._one_task = 1.0 - np.array([part.size for part in several]) / self._size
        self._tasks_mean = np.array([part.mean() if part.size else 0.0 for part in several])
        self._tasks_deviation = np.array([part.std() if part.size else 0.0 for part in several])

    @property
    def count(self) -> int:
        """How many classes there are."""
        return int(self._size.size)

    def draw(self, jobs: int, random: np.random.Generator) -> DrawnJobs:
        """Jobs, each of a class drawn by its share of the source."""
        kind = random.choice(self.count, jobs, p=self._size / self._size.sum())
        return DrawnJobs(
            runtime_seconds=self.draw_runtimes(kind, random),
            width=self._draw_widths(kind, random),
            of_class=kind,
            source=self._members(kind, random),
        )

    def draw_runtimes(self, kind: Integers, random: np.random.Generator) -> Floats:
        """A runtime of each class in ``kind``, in seconds; same shape."""
        if self._fit == "empirical":
            drawn: Floats = self._jobs.runtime_seconds[self._members(kind, random)]
            return drawn
        normal = random.standard_normal(kind.shape)
        return np.exp(self._log_mean[kind] + self._log_deviation[kind] * normal)

    def _draw_widths(self, kind: Integers, random: np.random.Generator) -> Integers:
        if self._fit == "empirical":
            drawn: Integers = self._jobs.width[self._members(kind, random)]
            return drawn
        normal = random.standard_normal(kind.shape)
        several = np.rint(np.exp(self._tasks_mean[kind] + self._tasks_deviation[kind] * normal))
        several = np.clip(several, min(2, self._widest), self._widest)
        one = random.random(kind.shape) < self._one_task[kind]
        return np.where(one, 1.0, several).astype(np.int64)

    def _members(self, kind: Integers, random: np.random.Generator) -> Integers:
        """A row of the source jobs of each class in ``kind``."""
        within = (random.random(kind.shape) * self._size[kind]).astype(np.int64)
        rows: Integers = self._order[self._begin[kind] + within]
        return rows
