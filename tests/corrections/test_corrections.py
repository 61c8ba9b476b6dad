"""Corrections: the golden sequences, and what every rule promises."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.distributions.basic import Point
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.summary import summarise
from foresail.kernels.steps import CompiledCorrection, corrected_estimate, step_address
from foresail.model.job import Job
from foresail.model.protocols import Correction
from foresail.model.registry import entries, find

VARIANTS = [
    *((entry.name, {}) for entry in entries("correction")),
    ("incremental", {"reading": "absolute"}),
]


def built(name, changes):
    entry = find("correction", name)
    return entry.build(entry.parameters(**changes))


def estimates(correction, initial, runtime, requested, belief=None):
    """All estimates of a job of this runtime after the first, as they expire."""
    job = Job.gang("job", 0.0, 1, requested)
    current, made = initial, []
    while current < runtime:
        current = correction.correct(job, belief or Point(initial), initial, current, len(made))
        made.append(current)
    return made


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("requested", {}, [20_000]),
        ("incremental", {}, [160, 460, 1360, 3160, 6760]),
        ("incremental", {"reading": "absolute"}, [160, 400, 1000, 1900, 3700, 7300]),
        ("doubling", {}, [200, 400, 800, 1600, 3200, 6400]),
    ],
)
def test_golden_sequences(name, changes, expected):
    """Spec section 3: a job of 5000 s and a limit of 20000 s, thought to take 100 s."""
    assert estimates(built(name, changes), 100.0, 5000.0, 20_000.0) == expected


@pytest.mark.parametrize("reading", ["cumulative", "absolute"])
def test_the_last_increment_repeats(reading):
    """After a hundred hours, another hundred hours."""
    made = estimates(built("incremental", {"reading": reading}), 100.0, 3e6, None)
    assert len(made) > 12
    assert {later - earlier for earlier, later in pairwise(made[11:])} == {360_000.0}


def test_quantile_climbs_the_belief_and_then_doubles():
    """The quantiles above the expired estimate in turn, then twice the last, up to the limit."""
    belief = Quantiles([0.0, 0.5, 1.0], [0.0, 1000.0, 2000.0])
    made = estimates(built("quantile", {}), 400.0, 6000.0, 5000.0 * 2, belief)
    assert made == [500.0, 1000.0, 1500.0, 1800.0, 3600.0, 7200.0]


@given(
    st.sampled_from(VARIANTS),
    st.floats(1.0, 1e6),
    st.floats(1.0, 1e6),
    st.one_of(st.none(), st.floats(1.0, 1e6)),
    st.integers(0, 40),
    st.floats(1.0, 1e6),
)
def test_next_estimate_is_longer_and_within_the_limit(
    variant, initial, current, requested, count, mean
):
    """Always more than what has passed; never beyond a limit that still lies ahead."""
    job = Job.gang("job", 0.0, 1, requested)
    following = built(*variant).correct(job, Point(mean), initial, current, count)
    assert current < following < math.inf
    if requested is not None and current < requested:
        assert following <= requested


@pytest.mark.parametrize(("name", "changes"), VARIANTS)
def test_an_outrun_limit_is_doubled(name, changes):
    """Where nobody enforces the limit, the job's estimate goes on growing."""
    job = Job.gang("job", 0.0, 1, 600.0)
    assert built(name, changes).correct(job, Point(600.0), 600.0, 600.0, 0) == 1200.0


@pytest.mark.parametrize(("name", "changes"), VARIANTS)
def test_object_and_step_agree(name, changes):
    """The event loop and the compiled replay are given the same numbers."""
    correction = built(name, changes)
    assert isinstance(correction, Correction)
    assert isinstance(correction, CompiledCorrection)
    step, parameters = correction.compiled()
    belief = Quantiles([0.0, 0.5, 1.0], [1.0, 900.0, 4000.0])
    job = Job.gang("job", 0.0, 1, 5000.0)
    for count, current in enumerate((250.0, 777.7, 1999.0, 4999.0, 5000.0)):
        summary = summarise(belief)
        assert correction.correct(job, belief, 250.0, current, count) == corrected_estimate(
            step_address(step), 250.0, current, 5000.0, count, summary, parameters
        )
