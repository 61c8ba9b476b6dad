"""Queues of jobs whose tasks start apart."""

import numpy as np
import pytest

from foresail.kernels.compile import kernel
from foresail.model.errors import InputError
from foresail.schedulers.kernels import task_queues
from foresail.schedulers.of_tasks.scheduler import QueueParameters


@pytest.mark.parametrize(
    ("milliseconds", "queue"),
    [(0, 0), (999999, 0), (1e6, 1), (9.99e6, 1), (1e7, 2), (3.5e9, 4), (1e14, 9), (1e15, 9)],
)
def test_golden_10_1(milliseconds, queue):
    """Spec slearn 10.1: the queue of a job by its work."""
    rules = QueueParameters(first_threshold_seconds=1e6).rules()
    assert task_queues.queue_of(rules, 10, milliseconds) == queue


def test_unknown_work_is_in_the_first_queue():
    """A job without an estimate goes to the first; one without end to the last."""
    rules = QueueParameters().rules()
    assert task_queues.queue_of(rules, 10, np.nan) == 0
    assert task_queues.queue_of(rules, 10, np.inf) == 9


@kernel
def _fill(queues, jobs, slots, each):
    for job in range(jobs):
        task_queues.submit(queues, job, job, np.inf, task_queues.NOWHERE, 0.0)
        task_queues.make_ready(queues, job, each)
    granted = np.zeros(slots, dtype=np.int64)
    for slot in range(slots):
        job, granted[slot] = task_queues.offered(queues)
        task_queues.launch(queues, job, granted[slot], 0.0)
    return granted


def granted(jobs, slots):
    parameters = QueueParameters()
    rows = np.zeros((jobs, task_queues.QUEUE_COLUMNS))
    queues = task_queues.empty_queues(parameters.rules(), parameters.costs(), rows)
    return _fill(queues, jobs, slots, slots)


def test_shares_of_the_slots():
    """Spec slearn, section 2: 100, 10 and 1 of 111 slots, and 11 and 1 of 12."""
    assert np.bincount(granted(3, 111)).tolist() == [100, 10, 1]
    assert np.bincount(granted(2, 12)).tolist() == [11, 1]


def test_when_the_lower_queue_gets_its_slot():
    """Spec slearn, section 2: at the second grant."""
    assert granted(2, 12).tolist().index(1) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"queues": 0},
        {"first_threshold_seconds": 0.0},
        {"growth": 1.0},
        {"first_threshold_seconds": np.nan},
    ],
)
def test_parameters_out_of_range(wrong):
    """Named, with what is expected."""
    with pytest.raises(InputError, match="out of range") as refused:
        QueueParameters(**wrong)
    assert refused.value.field == next(iter(wrong))
