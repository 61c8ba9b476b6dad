"""Sums, largest and merges of several distributions, with how exact they are."""

import itertools
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.operations import atoms_of, convolved, exact_atoms, largest, reduced
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.truncated_normal import TruncatedNormal
from made_distributions import DISTRIBUTIONS, SECONDS, merged

ATOMS = st.lists(SECONDS, min_size=1, max_size=5).map(Empirical)
STREAM = np.random.default_rng(5).lognormal(5.0, 1.5, 800)
SMOOTH = [
    Uniform(0.0, 10.0),
    Quantiles([0.0, 0.3, 0.9, 1.0], [5.0, 20.0, 100.0, 5000.0]),
    TruncatedNormal(100.0, 50.0),
    LogNormal(5.0, 1.0),
    LogNormal(5.0, 2.0, 3600.0),
    Histogram.from_values(STREAM),
    Histogram.from_values(STREAM).given(200.0),
]
NAMES = ["uniform", "quantiles", "normal", "log-normal", "capped", "histogram", "given"]


def variance(belief):
    mean = belief.mean()
    return belief.expectation(lambda t: (t - mean) ** 2)


@given(st.lists(ATOMS, min_size=1, max_size=3))
def test_sums_of_atoms_are_exact(parts):
    """Every combination, with the product of its probabilities."""
    total = convolved(parts)
    pairs = [list(zip(part.values, part.probabilities, strict=True)) for part in parts]
    slow = {}
    for chosen in itertools.product(*pairs):
        value = 0.0
        for place, _ in chosen:
            value += place
        slow[value] = slow.get(value, 0.0) + np.prod([mass for _, mass in chosen])
    assert total.values.tolist() == sorted(slow)
    assert total.probabilities == pytest.approx([slow[value] for value in sorted(slow)])


@pytest.mark.parametrize("belief", SMOOTH, ids=NAMES)
@pytest.mark.parametrize("other", [SMOOTH[0], SMOOTH[5]], ids=["uniform", "histogram"])
def test_sums_keep_the_mean_and_nearly_the_variance(belief, other):
    """Mean to rounding, variance to 0.5 %."""
    total = convolved([belief, other])
    assert total.mean() == pytest.approx(belief.mean() + other.mean(), rel=1e-9)
    assert variance(total) == pytest.approx(variance(belief) + variance(other), rel=5e-3)


@pytest.mark.parametrize("belief", SMOOTH, ids=NAMES)
def test_sums_are_those_of_many_draws(belief):
    """Three of a kind against 20,000 draws, at nine levels."""
    total = convolved([belief] * 3)
    random = np.random.default_rng(8)
    draws = sum(belief.sample(random, 20_000) for _ in range(3))
    for level in np.linspace(0.1, 0.9, 9):
        value = np.quantile(draws, level)
        gap = 0.01 * value
        assert float(total.cumulative(value - gap)) <= level + 0.015
        assert float(total.cumulative(value + gap)) >= level - 0.015


@settings(max_examples=30)
@given(DISTRIBUTIONS, st.floats(0.01, 0.99))
def test_nodes_keep_the_mean_and_move_nothing_far(belief, level):
    """No probability moves further than to the next node."""
    atoms = atoms_of(belief, 65)
    assert np.all(atoms.masses >= 0.0)
    assert atoms.masses.sum() == pytest.approx(1.0)
    assert atoms.mean() == pytest.approx(belief.mean(), rel=1e-6)
    value = belief.quantile(level)
    below = atoms.values[atoms.values < value - 1e-9 * value]
    above = atoms.values[atoms.values > value + 1e-9 * value]
    near = atoms.as_empirical()
    if above.size:
        assert float(near.cumulative(above[0])) >= level - 1e-9
    if below.size > 1:
        assert float(near.cumulative(below[-2])) <= level + 1e-9


def test_few_atoms_stay_as_they_are():
    """Reducing to more nodes than atoms changes nothing; to fewer, only the details."""
    atoms = exact_atoms(Empirical(np.linspace(0.0, 100.0, 2001)))
    assert atoms is not None
    assert reduced(atoms, 4001) is atoms
    fewer = reduced(atoms, 33)
    assert fewer.values.size <= 33 + 48
    assert fewer.mean() == pytest.approx(50.0)


@given(st.lists(ATOMS, min_size=1, max_size=3))
def test_largest_of_atoms_is_exact(parts):
    """At every value the product of the cumulative probabilities."""
    values = np.concatenate([part.values for part in parts])
    expected = np.prod([part.cumulative(values) for part in parts], axis=0)
    assert largest(parts).cumulative(values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("count", [1, 2, 50, 3000])
@pytest.mark.parametrize("belief", SMOOTH, ids=NAMES)
def test_largest_of_many_has_the_quantiles_of_the_power(belief, count):
    """The quantile at p of the largest is the quantile at p to the 1/n of each, to 5 %."""
    found = largest([belief] * count)
    for level in (0.1, 0.5, 0.9):
        expected = belief.quantile(level ** (1.0 / count))
        assert found.quantile(level) == pytest.approx(expected, rel=0.05)


def test_largest_keeps_the_mean():
    """Of n uniform on 0 to 1: n / (n + 1); of two different ones by the integral."""
    assert largest([Uniform(0.0, 1.0)] * 9).mean() == pytest.approx(0.9, rel=1e-12)
    assert largest([LogNormal(5.0, 2.0)]).mean() == pytest.approx(np.exp(7.0), rel=1e-6)
    # E max(U(0,1), U(0,2)) = integral of 1 - F: 1 - 1/6 up to 1, then 1/4.
    both = largest([Uniform(0.0, 1.0), Uniform(0.0, 2.0)])
    assert both.mean() == pytest.approx(5 / 6 + 1 / 4, rel=1e-12)
    assert largest([Uniform(0.0, 1.0), Point(3.0)]).mean() == pytest.approx(3.0, rel=1e-12)


@given(st.lists(st.integers(0, 50).map(float), min_size=2, max_size=40), st.integers(1, 39))
def test_a_split_stream_merges_without_loss_before_the_first_merge(values, cut):
    """Atoms are atoms, in whatever shards they were counted."""
    cut = min(cut, len(values) - 1)
    parts = [Histogram.from_values(values[:cut]), Histogram.from_values(values[cut:])]
    whole, together = Histogram.from_values(values), merged(*parts)
    assert together.row.tolist() == whole.row.tolist()


def test_a_split_stream_merges_nearly_without_loss_after():
    """Four shards of a heavy-tailed stream: count, extremes and mean are kept."""
    parts = [Histogram.from_values(STREAM[i::4]) for i in range(4)]
    together = reduce(merged, parts)
    assert (together.count, together.smallest, together.largest) == (
        STREAM.size,
        STREAM.min(),
        STREAM.max(),
    )
    assert together.mean() == pytest.approx(STREAM.mean(), rel=0.02)
    assert together.bins == 80


def test_histogram_operations_refuse_what_they_cannot_do():
    """Nothing impossible is inserted."""
    for value in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="values must be finite"):
            Histogram.from_values([value])
    with pytest.raises(ValueError, match="bins must be 1"):
        Histogram.from_values([1.0], 0)
    with pytest.raises(ValueError, match="one or more"):
        Histogram.from_values([])
    belief = Histogram.from_values(STREAM)
    row = belief.row.copy()
    row[0] += 1.0
    with pytest.raises(ValueError, match="counts must be above 0"):
        Histogram(row)
    with pytest.raises(ValueError, match="row must have the length"):
        Histogram(belief.row[:-1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: convolved([]), "one or more"),
        (lambda: convolved([Point(1.0)], 1), "nodes must be 2"),
        (lambda: largest([]), "one or more"),
    ],
    ids=["sum", "nodes", "largest"],
)
def test_operations_refuse_nothing_and_nonsense(call, words):
    """With a word about what would do."""
    with pytest.raises(ValueError, match=words):
        call()
