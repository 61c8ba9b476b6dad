"""Sweeps: every setting once, on several threads, and resumed from what is kept."""

import numpy as np
import pytest

from foresail.cloud.waiting import sweeping
from foresail.cloud.waiting.jobs import FixedMachines, proportional_family
from foresail.cloud.waiting.metrics import measured
from foresail.cloud.waiting.policies import Beliefs, Foresight
from foresail.cloud.waiting.simulating import simulate
from foresail.cloud.waiting.sweeping import grid, sweep
from foresail.cloud.waiting.year import university_year
from foresail.model.errors import InputError, UnknownNameError

FAMILY = proportional_family()


@pytest.fixture(scope="module")
def jobs():
    """An hour or so of the generated year."""
    return university_year(jobs=3_000)


@pytest.fixture(scope="module")
def beliefs(jobs):
    """Truth about both."""
    return {"oracle": Beliefs.true_runtimes(jobs, Foresight())}


def points():
    """Twelve settings."""
    fixed = [FixedMachines(count) for count in (0, 20, 60)]
    return grid("compound", fixed, waiting_seconds=(600.0, 7200.0), short_seconds=(60.0, 180.0))


def test_as_one_by_one(jobs, beliefs):
    """Threads change nothing."""
    found = dict(sweep(jobs, points(), FAMILY, beliefs, workers=2))
    assert set(found) == set(points())
    for setting, result in found.items():
        alone = simulate(jobs, setting.fixed, FAMILY, setting.policy, beliefs["oracle"])
        assert result == measured(alone, setting.fixed, setting.policy)


def test_what_is_kept_is_not_simulated_again(jobs, beliefs, tmp_path, monkeypatch):
    """An interrupted sweep goes on; other jobs or beliefs are another sweep."""
    first = sweep(jobs, points(), FAMILY, beliefs, kept=tmp_path)
    half = [next(first) for _ in range(5)]
    first.close()
    calls = []

    def counted(*arguments, **named):
        calls.append(arguments)
        return simulate(*arguments, **named)

    monkeypatch.setattr(sweeping, "simulate", counted)
    found = list(sweep(jobs, points(), FAMILY, beliefs, kept=tmp_path))
    assert len(found) == 12
    assert len(calls) <= 12 - 5
    assert dict(half).items() <= dict(found).items()
    calls.clear()
    assert dict(sweep(jobs, points(), FAMILY, beliefs, kept=tmp_path)) == dict(found)
    assert not calls
    other = {"oracle": Beliefs(2.0 * jobs.runtime_seconds, Foresight())}
    list(sweep(jobs, points()[:1], FAMILY, other, kept=tmp_path))
    assert len(calls) == 1


def test_wrong_input(jobs, beliefs, tmp_path):
    """A damaged file and an unknown name are said."""
    list(sweep(jobs, points()[:1], FAMILY, beliefs, kept=tmp_path))
    next(tmp_path.glob("*.json")).write_text("{")
    with pytest.raises(InputError, match="damaged"):
        list(sweep(jobs, points()[:1], FAMILY, beliefs, kept=tmp_path))
    with pytest.raises(UnknownNameError, match="beliefs"):
        list(sweep(jobs, points(), FAMILY, {"truth": beliefs["oracle"]}))


def test_the_year_has_the_published_moments():
    """The first twentieth of it, but for the mean, which its longest jobs move by chance."""
    jobs = university_year(jobs=700_000, seed=3)
    gaps = np.diff(jobs.submit_seconds)
    runtime = jobs.runtime_seconds
    assert np.mean(gaps < 1.0) == pytest.approx(0.90, abs=0.02)
    assert gaps.mean() == pytest.approx(1.0 / 0.4527, rel=0.02)
    assert np.mean(runtime < 180.0) == pytest.approx(0.60, abs=0.05)
    assert np.mean(runtime > 6 * 3600.0) == pytest.approx(0.04, abs=0.02)
    assert np.mean(runtime > 96 * 3600.0) < 0.004
    assert runtime.mean() == pytest.approx(6225.0, rel=0.3)
