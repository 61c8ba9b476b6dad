"""What tasks use in equal parts of their lives, against a count of every second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.traces.measured import usage_table
from foresail.traces.quantities import used_by_job
from foresail.traces.use_by_age import average_by_part, parts_of, seconds_in_parts
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

lives = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4)


@given(lives, st.integers(1, 5), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=100)
def test_it_is_what_counting_small_steps_gives(tasks, parts, chance):
    """Each second is cut into as many steps as there are parts, so that none crosses one's end."""
    amounts = [[float(chance.randint(0, 9)) for _ in life] for life in tasks]
    used, lasted = np.zeros(parts), np.zeros(parts)
    for life, use in zip(tasks, amounts, strict=True):
        steps = [amount for seconds, amount in zip(life, use, strict=True) for _ in range(seconds)]
        for number in range(len(steps) * parts):
            used[number // len(steps)] += steps[number // parts] / parts
            lasted[number // len(steps)] += 1.0 / parts
    seconds = np.array([each for life in tasks for each in life], dtype=np.float64)
    of = np.repeat(np.arange(len(tasks)), [len(life) for life in tasks])
    flat = np.array([each for use in amounts for each in use])
    found = average_by_part(seconds, of, flat[:, np.newaxis], parts)
    assert found[0] == pytest.approx(used / lasted)
    assert seconds_in_parts(seconds, of, parts).sum(axis=1) == pytest.approx(seconds)


def workload():
    """A job of two tasks that hold much and then compute, one of which is twice as long."""
    usage = usage_table(
        {
            "job_id": ["a", "a", "a", "a"],
            "task": [0, 0, 1, 1],
            "start_seconds": [0.0, 10.0, 0.0, 20.0],
            "end_seconds": [10.0, 20.0, 20.0, 40.0],
            "average_cpus": [1.0, 3.0, 2.0, 4.0],
            "average_memory_bytes": [9.0, 1.0, 9.0, 1.0],
        }
    )
    jobs = jobs_table(
        {"job_id": ["a", "b"], "submit_seconds": [0.0, 0.0], "runtime_seconds": [40.0, 1.0],
         "tasks": [2, 1]}
    )  # fmt: skip
    return Workload(jobs, WorkloadMeta("made", "made"), usage=usage)


def test_training_is_told_use_by_part_beside_the_averages():
    """Longer tasks count for more, as in the averages; of a job that was not measured, nothing."""
    used = used_by_job(workload(), 2)
    names = (*parts_of("cpu", 2), *parts_of("memory", 2))
    assert [used["a"][name] for name in names] == pytest.approx([50 / 30, 110 / 30, 9.0, 1.0])
    assert np.mean([used["a"][name] for name in names[:2]]) == pytest.approx(used["a"]["cpu"])
    assert not set(names) & set(used["b"])
    assert used_by_job(workload())["a"].keys() == used["a"].keys() - set(names)


def test_what_was_not_measured_is_not_counted():
    """A period without memory is as if it had not been."""
    made = workload()
    first = (pl.col("task") == 0) & (pl.col("start_seconds") == 0.0)
    gap = pl.when(first).then(None).otherwise("average_memory_bytes")
    used = used_by_job(replace(made, usage=made.usage.with_columns(average_memory_bytes=gap)), 2)
    assert used["a"]["cpu_part_1_of_2"] == pytest.approx((5.0 * 3.0 + 20.0 * 2.0) / 25.0)
