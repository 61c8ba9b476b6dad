"""Distributions in bulk against NumPy: running jobs on a slot grid, and streaming histograms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.distributions.histogram import DEFAULT_BINS, Histogram
from foresail.distributions.kernels.streaming_histogram import histogram_columns, insert_all
from foresail.distributions.packed import PackedDistributions

_JOBS = 1_000
_SLOTS = 50
_SLOT_SECONDS = 30.0
_HISTORY = 300
_INSERTED = 20_000


@benchmark("distributions")
def measure() -> Iterator[Measurement]:
    """1,000 running jobs with full histograms on a grid of 50 slots; 20,000 values inserted."""
    random = np.random.default_rng(17)
    yield _grid(random)
    yield _insertion(random.lognormal(6.0, 1.5, _INSERTED))


def _grid(random: np.random.Generator) -> Measurement:
    histograms = [Histogram.from_values(random.lognormal(5.0, 2.0, _HISTORY)) for _ in range(_JOBS)]
    elapsed = np.array([histogram.quantile(0.4) for histogram in histograms])
    offsets = _SLOT_SECONDS * np.arange(_SLOTS)
    packed = PackedDistributions.pack(histograms)
    pieces = np.stack([histogram.pieces() for histogram in histograms])
    seconds, reference = best_in_turns(
        1.0,
        lambda: packed.survival_grid(elapsed, offsets),
        lambda: _grid_by_numpy(pieces, elapsed, offsets),
    )
    return Measurement(
        "distributions grid", seconds, "NumPy", reference, _JOBS * _SLOTS, "probability"
    )


def _grid_by_numpy(
    pieces: NDArray[np.float64], elapsed: NDArray[np.float64], offsets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The same for distributions of equally many pieces: all of them compared with all slots."""
    at = elapsed[:, np.newaxis] + np.concatenate(([0.0], offsets))
    here = np.sum(pieces[:, np.newaxis, :, 0] <= at[:, :, np.newaxis], axis=2) - 1
    found = np.take_along_axis(pieces, np.maximum(here, 0)[:, :, np.newaxis], axis=1)
    into = at - found[:, :, 0]
    survival = found[:, :, 1] - into * (found[:, :, 2] + found[:, :, 3] * into)
    survival = np.where(here < 0, 1.0, survival)
    return np.asarray(survival[:, 1:] / survival[:, :1])


def _insertion(values: NDArray[np.float64]) -> Measurement:
    def by_kernel() -> None:
        insert_all(np.zeros(histogram_columns(DEFAULT_BINS)), values)

    seconds, reference = best_in_turns(1.0, by_kernel, lambda: _insertion_by_numpy(values))
    return Measurement("distributions insert", seconds, "NumPy", reference, values.size, "value")


def _insertion_by_numpy(values: NDArray[np.float64]) -> None:
    """The same bins, an array operation at a time (the values differ, so that none is found)."""
    centroids, counts = np.empty(0), np.empty(0)
    for value in values:
        place = np.searchsorted(centroids, value)
        centroids, counts = np.insert(centroids, place, value), np.insert(counts, place, 1.0)
        if centroids.size > DEFAULT_BINS:
            i = int(np.argmin(np.diff(centroids)))
            both = counts[i] + counts[i + 1]
            centroids[i] = (centroids[i] * counts[i] + centroids[i + 1] * counts[i + 1]) / both
            counts[i] = both
            centroids, counts = np.delete(centroids, i + 1), np.delete(counts, i + 1)
