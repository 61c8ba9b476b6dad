"""Columns of waiting jobs: those kept are those made anew, and places are the order's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foresail.distributions.basic import Point
from foresail.distributions.quantiles import Quantiles
from foresail.explain.job_columns import NO_JOBS, columns_of
from foresail.model.cluster import Resources
from foresail.model.job import Job, Stage, StartConditions
from foresail.model.view import Due, PendingJob
from foresail.schedulers.backfilling import Easy, EasyParameters

SHARED = [Point(10.0), Point(10.0), Quantiles(np.array([0.0, 1.0]), np.array([1.0, 9.0]))]


def some_jobs(random, count):
    """Jobs of a few kinds and beliefs, the rarer properties here and there."""
    for number in range(count):
        stage = Stage(1, Resources(float(random.integers(1, 3)), float(random.integers(0, 2))))
        begin = StartConditions(begin_seconds=50.0) if random.random() < 0.1 else None
        job = Job(f"{number}", float(number), (stage,), 60.0, f"u{random.integers(3)}")
        job = replace(job, conditions=begin, after=("0",) if random.random() < 0.1 else ())
        due = Due(1.0, 2.0 + number, 3.0 + number) if random.random() < 0.3 else None
        yield PendingJob(job, number, SHARED[random.integers(3)], 7.0 + number, due=due)


def test_columns_kept_from_before_are_those_made_anew():
    """Some jobs leave, some come, some are believed to be otherwise or fall due."""
    random = np.random.default_rng(1)
    jobs, columns = list(some_jobs(random, 60)), NO_JOBS
    for _ in range(12):
        chosen = [each for each in jobs if random.random() < 0.6]
        at = int(random.integers(len(jobs)))
        jobs[at] = replace(jobs[at], prediction=Point(float(random.integers(5))), due=None)
        columns, anew = columns_of(chosen, columns), columns_of(chosen)
        for name in columns.table.dtype.names:
            if name not in ("kind", "belief"):  # numbers of no meaning
                np.testing.assert_array_equal(columns.table[name], anew.table[name])
        for told in (columns, anew):
            rows = zip(chosen, told.specs(), told.summary_rows, told.medians, strict=True)
            for each, spec, summary, median in rows:
                assert spec[:3].tolist() == [each.job.submit_seconds, each.job.cpus, 60.0]
                assert median == each.prediction.quantile(0.5)
                assert summary[0] == each.prediction.mean()
            assert [job.user for job in told.by_kind(lambda job: job)] == [
                each.job.user for each in chosen
            ]


class OwnOrder(Easy):
    """Has the last submitted go first, whatever its expression says."""

    def place_in_queue(self, pending, now):
        return -pending.job.submit_seconds


@pytest.mark.parametrize("scheduler", [Easy, OwnOrder])
@pytest.mark.parametrize(
    "queue", ["fcfs", "-wait / (q90 + cpus)", "requested * urgency + predicted"]
)
def test_places_of_all_at_once_are_those_of_each(scheduler, queue):
    """A plug-in's own order is asked of each job."""
    jobs = list(some_jobs(np.random.default_rng(2), 40))
    order, columns = scheduler(EasyParameters(queue=queue)), columns_of(jobs)
    places = order.places_in_queue(jobs, columns.specs(), columns.summary_rows, 100.0)
    assert places.tolist() == [order.place_in_queue(each, 100.0) for each in jobs]
    assert scheduler is Easy or places.tolist() == [-float(number) for number in range(40)]
