"""Gpus in waiting policies: shares of them, what they rent, what is owned, how work is counted."""

import math

import numpy as np
import pytest
from drawn_traces import proportional_family
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.waiting.jobs import (
    GIB,
    FixedMachines,
    RentedType,
    TraceJobs,
    rents,
)
from foresail.cloud.waiting.kernels.waiting import FIXED, RENTED
from foresail.cloud.waiting.simulating import Beliefs, simulate, waiting_policy
from foresail.model.errors import InputError
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.waiting.metrics import measured

SMALL = RentedType("small", 8, 64.0 * GIB, 1.0, 1.0)
LARGE = RentedType("large", 64, 512.0 * GIB, 10.0, 8.0)
DEAR = RentedType("dear", 64, 512.0 * GIB, 30.0, 8.0)
FAMILY = (*proportional_family(), SMALL, LARGE, DEAR)


def jobs_of(gpus, runtime=100.0, cores=1, submit=None):
    """Jobs that ask for these gpus."""
    count = len(gpus)
    return TraceJobs(
        np.zeros(count) if submit is None else np.array(submit, dtype=float),
        np.full(count, runtime),
        np.full(count, cores, dtype=np.int64),
        gpus=np.array(gpus, dtype=float),
    )


def workload(**columns):
    """A log of a few jobs."""
    count = len(next(iter(columns.values())))
    base = {
        "job_id": [str(job) for job in range(count)],
        "submit_seconds": [60.0 * job for job in range(count)],
        "runtime_seconds": [3600.0] * count,
        "tasks": [1] * count,
    }
    return Workload(jobs_table(base | columns), WorkloadMeta("log", "made"))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 40))
def test_shares_add_up_exactly(parts, gpus):
    """So many shares of a gpu fill whole ones to the last, and not one more finds room."""
    share = math.floor(1000.0 / parts) / 1000.0
    many = int(round(gpus * 1000) // round(share * 1000))
    jobs = jobs_of([share] * (many + 1))
    fixed = FixedMachines(1, 4000, gpus=float(gpus))
    policy = waiting_policy("no-jobs-wait")
    found = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs))
    assert found.place.tolist() == [FIXED] * many + [RENTED]


@settings(deadline=None)
@given(st.data(), st.integers(1, 3))
def test_no_gpu_is_used_twice(data, count):
    """No machine ever holds more gpus than it has, and whoever asks for more is rented some."""
    size = data.draw(st.integers(1, 30))

    def column(values):
        return data.draw(st.lists(values, min_size=size, max_size=size))

    gpus = np.array(column(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0])))
    submit = sorted(column(st.integers(0, 40)))
    jobs = jobs_of(gpus, submit=submit, runtime=17.0)
    fixed = FixedMachines(count, 6, gpus=4.0)
    policy = waiting_policy("all-jobs-wait")
    found = simulate(jobs, fixed, FAMILY, policy, Beliefs.true_runtimes(jobs))
    assert np.array_equal(found.place == RENTED, gpus > 4.0)
    on_fixed = found.machine >= 0
    for time in found.start_seconds[on_fixed]:
        held = on_fixed & (found.start_seconds <= time) & (time < found.start_seconds + 17.0)
        used = np.bincount(found.machine[held], gpus[held], minlength=count)
        assert used.max() <= 4.0


def test_the_cheapest_machine_that_holds_it():
    """By cores, memory and gpus; beyond the largest, several of the cheapest with most gpus."""
    jobs = TraceJobs(
        np.arange(6.0),
        np.ones(6),
        np.array([1, 1, 9, 1, 1, 200]),
        np.array([1.0, 1.0, 1.0, 1.0, 100.0, 1.0]) * GIB,
        np.array([0.0, 0.5, 1.0, 20.0, 1.0, 1.0]),
    )
    requests = jobs.requests
    hourly = rents(requests, FAMILY)[requests.of_job]
    assert hourly == pytest.approx([0.0481, 1.0, 10.0, 30.0, 10.0, 40.0])


def test_no_gpus_for_rent():
    """It is said how many jobs ask for some, and what was expected."""
    jobs = jobs_of([0.0, 0.5, 2.0])
    with pytest.raises(InputError, match="2 jobs") as caught:
        rents(jobs.requests, proportional_family())
    assert "gpus" in (caught.value.expected or "")
    with pytest.raises(InputError, match="gpus"):
        jobs_of([0.0, -1.0])
    with pytest.raises(InputError, match="gpus"):
        FixedMachines(1, gpus=-1.0)


def test_gpus_of_a_log():
    """Those of all tasks; a log in which nobody asks for any has none; some jobs of all."""
    jobs = TraceJobs.of_workload(
        workload(tasks=[1, 4, 2], gpus_per_task=[0.46, 1.0, None], cpus_per_task=[1.0, 2.0, 0.5])
    )
    assert jobs.gpus.tolist() == [0.46, 4.0, 0.0]
    assert jobs.gpu_seconds == pytest.approx(4.46 * 3600.0)
    assert jobs.requests.jobs_with_gpus == 2
    assert jobs.among(slice(1, None)).gpus.tolist() == [4.0, 0.0]
    assert jobs.among(np.array([True, False, True])).cores.tolist() == [1, 1]
    assert TraceJobs.of_workload(workload(gpus_per_task=[0.0, None])).gpus is None


def test_work_counts_by_its_price():
    """A gpu that costs as much as twenty cores is twenty times the work; use is of the scarcer."""
    jobs = TraceJobs(
        np.array([0.0, 0.0, 3600.0]),
        np.full(3, 3600.0),
        np.array([1, 8, 1]),
        gpus=np.array([1.0, 0.0, 0.0]),
    )
    family = (RentedType("cores", 8, 64.0 * GIB, 1.0), RentedType("gpu", 8, 64.0 * GIB, 4.0, 1.0))
    fixed = FixedMachines(1, 16, price_per_hour=2.0, gpus=1.0)
    narrow = FixedMachines(1, 4, price_per_hour=2.0, gpus=1.0)
    policy = waiting_policy("no-jobs-wait")
    told = Beliefs.true_runtimes(jobs)
    all_fit = measured(simulate(jobs, fixed, family, policy, told), fixed, policy)
    assert all_fit.rented_work == 0.0
    assert all_fit.fixed_utilisation == 1.0  # the gpu; of the cores 10 / 16
    some_fit = measured(simulate(jobs, narrow, family, policy, told), narrow, policy)
    assert some_fit.rented_work == pytest.approx(1.0 / 6.0)
    assert fixed.kept_busy(jobs) == 3600.0
    assert FixedMachines(1, 4).kept_busy(jobs) == 9000.0


def test_a_core_for_gpus():
    """Jobs with gpus whose cores nobody knows are kept, with one core a task."""
    log = workload(
        gpus_per_task=[1.0, 1.0, 0.0, None, 2.0],
        cpus_per_task=[None, 0.0, None, None, 4.0],
        allocated_cpus=[None, None, None, None, None],
        tasks=[2, 1, 1, 1, 1],
    )
    names = ("core_for_gpus", "drop_no_processors", "fill_processors")
    result = apply_filters(log, [*map(FilterChoice, names)])
    assert dict(result.meta.filters)["core_for_gpus"] == 2
    assert result.cpus.tolist() == [2.0, 1.0, 4.0]
