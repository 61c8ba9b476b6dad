"""Jobs whose tasks vary over time and over space as asked for."""

import numpy as np
import pytest

from foresail.model.errors import InputError
from foresail.traces.generating import generate
from foresail_studies.generators.slearn import TaskRegimesParameters


def regimes(seed=1, **parameters):
    return generate("task_regimes", TaskRegimesParameters(**parameters), seed)


def means_and_variations(workload, width):
    """Of the tasks of each job."""
    tasks = workload.tasks["runtime_seconds"].to_numpy().reshape(-1, width)
    return tasks.mean(axis=1), tasks.std(axis=1) / tasks.mean(axis=1)


def test_tasks_vary_as_asked_for():
    """Within jobs, and jobs about their name's mean; all jobs are as wide."""
    made = regimes(jobs=600, names=2, width=150, job_variation=0.4, task_variation=0.2)
    assert set(made.jobs["tasks"]) == {150}
    mean, within = means_and_variations(made, 150)
    assert within.mean() == pytest.approx(0.2, rel=0.05)
    names = made.jobs["executable"].to_numpy()
    for name, work in (("name1", 300.0), ("name2", 100_000.0)):
        own = mean[names == name]
        assert own.mean() * 150 == pytest.approx(work, rel=0.1)
        assert own.std() / own.mean() == pytest.approx(0.4, rel=0.2)
    assert float(made.meta.header["achieved_load"]) == pytest.approx(1.0, rel=0.05)


def test_history_is_of_other_jobs():
    """Of the same names, with none of the run's jobs."""
    run, history = regimes(), regimes(part="history")
    assert set(run.jobs["executable"]) == set(history.jobs["executable"])
    assert not set(run.jobs["job_id"]) & set(history.jobs["job_id"])
    assert not np.array_equal(run.tasks["runtime_seconds"], history.tasks["runtime_seconds"])


def test_without_variation_all_tasks_of_a_name_are_equal():
    """Zero is a variation too; less is none."""
    made = regimes(names=1, job_variation=0.0, task_variation=0.0)
    assert made.tasks["runtime_seconds"].n_unique() == 1
    with pytest.raises(InputError, match="out of range"):
        TaskRegimesParameters(task_variation=-0.1)
