"""Beliefs moved by what was seen: what history holds possible, and what it knows nothing of."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from foresail.distributions.empirical import Empirical
from foresail.distributions.point import Point
from foresail.model.allocation import Allocation
from foresail.model.resources import Resources
from foresail.schedulers._packing.moved_belief import MovedBeliefs, moved


def test_bayes_rule():
    """Weights of two modes are as their likelihoods; what is left goes to what is new."""
    belief, mean, looks = Empirical([1.0, 4.0], [0.25, 0.75]), 1.2, 4.0
    deviation = 0.4 / math.sqrt(looks)

    def density(value):
        z = math.log(mean / value) / deviation
        return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / deviation

    weights = [0.95 * 0.25 * density(1.0), 0.95 * 0.75 * density(4.0), 0.05 / math.log(100.0)]
    after = moved(belief, mean, looks)
    mass = dict(zip(after.values.tolist(), after.probabilities.tolist(), strict=True))
    assert mass[1.0] == pytest.approx(weights[0] / sum(weights))
    assert mass[4.0] == pytest.approx(weights[1] / sum(weights))


def test_several_modes_stay_until_looks_tell_them_apart():
    """One look in the middle leaves both, many looks at one end leave that one."""
    belief = Empirical([1.0, 2.0], [0.5, 0.5])
    between = moved(belief, math.sqrt(2.0), 1.0)
    assert between.cumulative(1.0) > 0.2 < 1.0 - between.cumulative(1.99)
    assert moved(belief, 1.0, 100.0).cumulative(1.2) > 0.999


def test_what_history_knows_nothing_of_is_learned():
    """Ten times what was ever used is believed once it is seen."""
    after = moved(Point(1.0), 10.0, 50.0)
    assert after.mean() == pytest.approx(10.0, rel=0.01)
    assert moved(Point(1.0), 1.1, 1.0).mean() == pytest.approx(1.0, rel=0.05)


def test_all_tasks_of_a_stage_are_believed_alike():
    """Those that wait are moved by those that run, others not; a copy from JSON is alike."""
    beliefs = MovedBeliefs()
    use = {Allocation("a", "s", (task,)): Resources(2.0, 8.0) for task in range(4)}
    assert beliefs.look(use, 0.0) == set()
    assert beliefs.look(use, 900.0) == {("a", "s")}
    assert beliefs.look(use, 910.0) == set()  # hardly more than before
    before = Empirical([1.0, 2.0], [0.9, 0.1]), Point(8.0)
    cpus, memory = beliefs.believe("a", "s", *before)
    assert cpus.mean() == moved(before[0], 2.0, 8.0).mean() > 1.9
    assert memory.mean() == pytest.approx(8.0, rel=0.01)
    assert beliefs.believe("b", "s", *before) == before
    other = MovedBeliefs()
    other.restore(json.loads(json.dumps(beliefs.plain())))
    assert np.array_equal(other.believe("a", "s", *before)[0].values, cpus.values)
    beliefs.forget_all_but({"b"})
    assert beliefs.told_of("a", "s") is None
