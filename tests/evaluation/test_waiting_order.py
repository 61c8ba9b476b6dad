"""Orders of the replay as ranks of those who wait."""

import numpy as np
import pytest

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs, proportional_family
from foresail.cloud.waiting.simulating import Beliefs, WaitingPolicy, simulate
from foresail.evaluation.renting import waiting_ranks
from foresail.model.errors import InputError, UnknownNameError
from foresail.schedulers.order_expression import NAMED_ORDERS
from made_evaluations import made_workload, random_jobs


@pytest.fixture
def workload():
    """Four jobs; the third has no limit."""
    return made_workload(
        {
            "submit_seconds": [0.0, 1.0, 2.0, 3.0],
            "runtime_seconds": [50.0, 5.0, 20.0, 10.0],
            "requested_seconds": [60.0, 60.0, None, 30.0],
            "tasks": [1, 2, 1, 3],
        }
    )


def test_expressions_and_names(workload):
    """By hand; jobs without a limit come last where it counts."""
    believed = workload.runtime_seconds
    assert waiting_ranks(workload, "requested * cpus", believed).tolist() == [
        60.0, 120.0, np.inf, 90.0,
    ]  # fmt: skip
    assert waiting_ranks(workload, "fcfs", believed).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert waiting_ranks(workload, "smallest_area", believed).tolist() == [50.0, 10.0, 20.0, 30.0]
    assert waiting_ranks(workload, "q90 - q10", believed).tolist() == [0.0] * 4
    assert waiting_ranks(workload, "1 / urgency", believed).tolist() == [50.0, 10.0, 20.0, 10.0]


@pytest.mark.parametrize("order", ["now - submit", "wait / predicted", "probe"])
def test_orders_that_change_are_refused(workload, order):
    """A rank is given once."""
    with pytest.raises(InputError, match="changes while jobs wait"):
        waiting_ranks(workload, order, workload.runtime_seconds)


def test_wrong_input(workload):
    """Each is named."""
    with pytest.raises(UnknownNameError, match="lifo"):
        waiting_ranks(workload, "lifo", workload.runtime_seconds)
    with pytest.raises(InputError, match="believed_seconds"):
        waiting_ranks(workload, "fcfs", np.ones(3))


def test_the_simulators_own_orders_are_two_of_them():
    """``fcfs`` and ``shortest`` give what the queues of those names give; others differ."""
    workload = random_jobs(400, weeks=0.05)
    jobs = TraceJobs.of_workload(workload)
    believed = workload.runtime_seconds

    def starts(queue, order):
        ranks = None if order is None else waiting_ranks(workload, order, believed)
        return simulate(
            jobs,
            FixedMachines(2, 16),
            proportional_family(),
            WaitingPolicy(queue=queue),
            Beliefs(believed),
            ranks=ranks,
        ).start_seconds

    found = {order: starts("fcfs", order) for order in NAMED_ORDERS}
    assert np.array_equal(found["fcfs"], starts("fcfs", None))
    assert np.array_equal(found["shortest"], starts("sjf", None))
    assert len({values.tobytes() for values in found.values()}) == len(NAMED_ORDERS)
    waits = {order: (values - jobs.submit_seconds).mean() for order, values in found.items()}
    assert waits["smallest_area"] < waits["fcfs"] < waits["largest_area"]
