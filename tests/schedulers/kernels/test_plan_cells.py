"""Tasks of jobs that start now by cell, against the same in arrays of all cells."""

import numpy as np
import pytest

from foresail.schedulers.kernels.plan_filling import grant, take_in_turn

ROUNDING = 1e-7


def slowly_in_turn(order, each, tasks, allowed, wanted, free):
    """For each job all cells are sorted anew, and all that fits on any of them is added up."""
    shares = np.zeros(allowed.shape, np.int64)
    wanted, free = wanted.copy(), free.copy()
    for job in order:
        cells = np.argsort(wanted, kind="stable")
        cells = cells[allowed[job, cells]]
        asked = each[job] > 0.0
        room = np.maximum(free[:, cells], 0.0)[asked] / each[job, asked, np.newaxis] + ROUNDING
        fitting = np.floor(room.min(axis=0, initial=2.0**52))
        before = np.concatenate(([0.0], np.cumsum(fitting)[:-1]))
        shares[job, cells] = np.minimum(np.maximum(tasks[job] - before, 0.0), fitting)
        wanted -= allowed[job] * each[job, 0] * tasks[job]
        if shares[job].sum() < tasks[job]:
            shares[job] = 0
        free -= each[job][:, np.newaxis] * shares[job]
    return shares, free


def slowly_granted(order, each, shares, free):
    granted, free = np.zeros(len(each), bool), free.copy()
    for job in order:
        need = shares[job] * each[job][:, np.newaxis]
        if shares[job].any() and (need <= free).all():
            free -= need
            granted[job] = True
    return granted, free


def crowd(random):
    """Jobs of many kinds before cells of which many are wanted alike, some of them overdrawn."""
    jobs, cells, resources = random.integers(1, 30), random.integers(1, 12), random.integers(1, 4)
    units = random.choice([1.0, 0.5, 1.0 / 3.0])
    each = random.integers(0, 4, (jobs, resources)) * units
    tasks = random.integers(1, 9, jobs)
    allowed = random.random((jobs, cells)) < random.choice([0.3, 0.8, 1.0])
    allowed[np.arange(jobs), random.integers(0, cells, jobs)] = True
    free = random.integers(-1, 12, (resources, cells)) * units
    return each, tasks, allowed, free


@pytest.mark.parametrize("seed", range(8))
def test_cells_in_turn_and_what_is_granted(seed):
    """The same tasks on the same cells, and the same left of them, to the last digit."""
    random = np.random.default_rng(seed)
    some_wait = some_start = 0
    for _ in range(60):
        each, tasks, allowed, free = crowd(random)
        order = np.argsort(allowed.sum(axis=1), kind="stable")
        wanted = allowed.T @ (each[:, 0] * tasks)
        shares, left = np.zeros(allowed.shape, np.int64), free.copy()
        cells = random.permutation(free.shape[1])
        expected = slowly_in_turn(order, each, tasks, allowed, wanted, free)
        take_in_turn(order, each, tasks, allowed, wanted, left, cells, shares)
        assert shares.tolist() == expected[0].tolist()
        assert left.tolist() == expected[1].tolist()
        some_wait += int((shares.sum(axis=1) == 0).sum())
        some_start += int((shares.sum(axis=1) > 0).sum())

        less = free - random.integers(0, 3, free.shape)
        order = random.permutation(len(tasks))
        granted, left = np.zeros(len(tasks), bool), less.copy()
        expected = slowly_granted(order, each, shares, less)
        grant(order, each, shares, left, granted)
        assert granted.tolist() == expected[0].tolist()
        assert left.tolist() == expected[1].tolist()
    assert some_wait > 50
    assert some_start > 50
