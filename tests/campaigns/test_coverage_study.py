"""The study of stated ranges: what chance alone would do, and logs with longer jobs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from made_evaluations import random_jobs

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "accuracy"


@pytest.fixture
def study(monkeypatch):
    """The script as a module."""
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location(
        "coverage_study", FOLDER / "coverage_of_ranges.py"
    )
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_chance_of_one_job_and_of_many(study):
    """One job is inside or outside of each range, never near; a million jobs are never off."""
    assert set(study.off_by_chance([1])) == {4}
    assert set(study.off_by_chance([1_000_000])) == {0}


def test_chance_is_that_of_the_binomials(study):
    """The mean is the sum of the probabilities, counted out range by range."""
    jobs = 100
    expected = 0.0
    for stated in (0.5, 0.8, 0.9, 0.95):
        chances = np.ones(1)
        for _ in range(jobs):
            chances = np.convolve(chances, [1.0 - stated, stated])
        shares = np.arange(jobs + 1) / jobs
        expected += chances[np.abs(shares - stated) > study.TOLERANCE].sum()
    assert study.off_by_chance([jobs]).mean() == pytest.approx(expected, abs=0.05)


def test_stretched_jobs_run_and_ask_longer(study):
    """Submissions stay, runtimes and requests are so many times as long."""
    workload = random_jobs(20, seed=3)
    longer = study.stretched(workload, 30.0)
    assert longer.runtime_seconds == pytest.approx(30.0 * workload.runtime_seconds)
    for name in ("submit_seconds", "requested_seconds"):
        factor = 30.0 if name == "requested_seconds" else 1.0
        ratio = longer.jobs[name] / workload.jobs[name]
        assert ratio.drop_nulls().drop_nans().to_list() == pytest.approx(
            [factor] * ratio.drop_nulls().drop_nans().len()
        )
