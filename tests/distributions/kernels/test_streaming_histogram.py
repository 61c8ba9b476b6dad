"""The streaming histogram against the description of its source, written out slowly."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.distributions.kernels.streaming_histogram import (
    CENTROIDS,
    COUNT,
    MERGED,
    USED,
    count_up_to,
    counts_up_to,
    fill_histogram_belief,
    histogram_columns,
    histogram_mean,
    histogram_pieces,
    insert_all,
    merge,
    summarise_histogram,
    value_at,
    values_at,
)
from foresail.distributions.kernels.survival_grid import pieces_survival
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS, SUMMARY_COLUMNS

survival_at = numba.njit(lambda *given: pieces_survival(*given))
VALUES = st.lists(st.integers(0, 400).map(float), min_size=1, max_size=40)
BINS = st.integers(1, 9)


class Slow:
    """Bins as a sorted list, merged pair by pair; the rest by the formulas of the spec."""

    def __init__(self, bins):
        self.kept, self.bins, self.merged = bins, {}, False
        self.low, self.high = np.inf, -np.inf

    def add(self, value, count=1.0):
        self.low, self.high = min(self.low, value), max(self.high, value)
        self.bins[value] = self.bins.get(value, 0.0) + count
        self.shrink()

    def shrink(self):
        while len(self.bins) > self.kept:
            places = sorted(self.bins)
            gap, i = min((b - a, i) for i, (a, b) in enumerate(zip(places, places[1:])))  # noqa: B905, RUF007
            left, right = places[i], places[i + 1]
            m, n = self.bins.pop(left), self.bins.pop(right)
            self.bins[left + n / (m + n) * gap] = m + n
            self.merged = True

    def edges(self):
        return [(self.low, 0.0), *sorted(self.bins.items()), (self.high, 0.0)]

    def total(self):
        return sum(self.bins.values())

    def up_to(self, value):
        if value < self.low:
            return 0.0
        if value >= self.high:
            return self.total()
        if not self.merged:
            return sum(count for place, count in self.bins.items() if place <= value)
        edges = self.edges()
        i = max(i for i, (place, _) in enumerate(edges[:-1]) if place <= value)
        (p, m), (q, n) = edges[i], edges[i + 1]
        z = (value - p) / (q - p)
        here = m + (n - m) * z
        return sum(count for _, count in edges[:i]) + m / 2 + (m + here) / 2 * z


def made(values, bins):
    row = np.zeros(histogram_columns(bins))
    insert_all(row, np.array(values, dtype=float))
    slow = Slow(bins)
    for value in values:
        slow.add(value)
    return row, slow


def bins_of(row):
    used, rooms = int(row[USED]), (row.size - CENTROIDS) // 2
    centroids = row[CENTROIDS : CENTROIDS + used]
    return centroids, row[CENTROIDS + rooms : CENTROIDS + rooms + used]


def same(row, slow):
    centroids, counts = bins_of(row)
    assert centroids.tolist() == sorted(slow.bins)
    assert counts.tolist() == [count for _, count in sorted(slow.bins.items())]
    assert bool(row[MERGED]) == slow.merged
    assert row[COUNT] == slow.total()


@given(VALUES, BINS)
def test_bins_are_those_of_the_description(values, bins):
    """Insertion, ties and merging of the nearest two, bit by bit."""
    same(*made(values, bins))


@given(VALUES, VALUES, BINS, BINS)
def test_merging_puts_all_bins_together_first(one, other, bins, more):
    """Then the nearest two merge until as many are left as the first histogram keeps."""
    (row, slow), (second, slow_second) = made(one, bins), made(other, more)
    before = second.copy()
    merge(row, second, np.empty(row.size + second.size))
    assert second.tolist() == before.tolist()
    for place, count in slow_second.bins.items():
        slow.bins[place] = slow.bins.get(place, 0.0) + count
    slow.low, slow.high = min(slow.low, slow_second.low), max(slow.high, slow_second.high)
    slow.merged |= slow_second.merged
    slow.shrink()
    same(row, slow)


@given(VALUES, BINS, st.lists(st.floats(-10, 410), min_size=1, max_size=20))
def test_counts_are_those_of_the_description(values, bins, at):
    """The estimated number up to a value, one at a time, in a batch and by the pieces."""
    row, slow = made(values, bins)
    pieces = histogram_pieces(row)
    for value, count in zip(at, counts_up_to(row, np.array(at)), strict=True):
        assert count == count_up_to(row, value)
        assert count == pytest.approx(slow.up_to(value), abs=1e-9)
        survival = survival_at(pieces, 0, pieces.shape[0], value)
        assert survival == pytest.approx(1.0 - count / len(values), abs=1e-12)


@given(VALUES, BINS, st.floats(0.0, 1.0))
def test_value_inverts_count(values, bins, level):
    """At least the level has passed at its value, and no more just before it."""
    row, slow = made(values, bins)
    value = value_at(row, level)
    assert value == values_at(row, np.array([level]))[0]
    assert slow.up_to(value + 1e-7) >= level * len(values) - 1e-6
    assert slow.up_to(value - 1e-7) <= level * len(values) + 1e-6


@given(VALUES, BINS)
def test_summaries_are_those_of_evenly_spaced_levels(values, bins):
    """Mean, quantiles and urgency against a fine sample of the quantile function."""
    row, _ = made(values, bins)
    sample = values_at(row, (np.arange(20_000) + 0.5) / 20_000)
    summary, belief = np.empty(SUMMARY_COLUMNS), np.empty(BELIEF_COLUMNS)
    summarise_histogram(row, summary)
    compiled(fill_histogram_belief)(row, belief)
    assert histogram_mean(row) == pytest.approx(sample.mean(), abs=0.05)
    assert summary[0] == histogram_mean(row)
    assert summary[-1] == pytest.approx(np.mean(1.0 / np.maximum(sample, 10.0)), rel=1e-3)
    assert belief[1:].tolist() == [value_at(row, level) for level in BELIEF_LEVELS[1:]]
    assert belief[0] == min(values)


def test_bins_of_the_paper_on_the_way():
    """G4: after two merges, and after nine values."""
    values = [23, 19, 10, 16, 36, 2, 9, 32, 30, 45]
    row, _ = made(values[:6], 5)
    assert [part.tolist() for part in bins_of(row)] == [[2, 10, 17.5, 23, 36], [1, 1, 2, 1, 1]]
    row, _ = made(values[:7], 5)
    assert [part.tolist() for part in bins_of(row)] == [[2, 9.5, 17.5, 23, 36], [1, 2, 2, 1, 1]]


def test_the_lowest_of_equal_gaps_merges():
    """G4: three bins, gaps of ten everywhere."""
    row, _ = made([10, 20, 30, 40], 3)
    assert [part.tolist() for part in bins_of(row)] == [[15, 30, 40], [2, 1, 1]]


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_ranks_on_heavy_tailed_streams(sigma):
    """Where the true rank of a quantile is off, next to a KLL sketch of DataSketches.

    The bins are nearest in value, not in rank: on a heavy tail most bins go to the tail, and the
    body is known worse than by a sketch that bounds the rank error (KLL with k = 200: 1.33 %).
    """
    datasketches = pytest.importorskip("datasketches")
    values = np.random.default_rng(11).lognormal(6.0, sigma, 20_000)
    row = np.zeros(histogram_columns(80))
    insert_all(row, values)
    sketch = datasketches.kll_doubles_sketch(200)
    sketch.update(values)
    levels = np.linspace(0.05, 0.95, 19)
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values_at(row, levels)) / values.size
    others = np.searchsorted(ordered, sketch.get_quantiles(levels)) / values.size
    assert np.abs(others - levels).max() < 0.02
    assert np.abs(ranks - levels).max() < {0.5: 0.01, 1.0: 0.05, 2.0: 0.5}[sigma]
