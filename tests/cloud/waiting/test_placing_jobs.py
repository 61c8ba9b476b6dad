"""Best fit, timetables and queues that share links, against lists that are searched."""

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.waiting.kernels import placing
from foresail.cloud.waiting.kernels.placing import links_of, machines_of, timetable

# Parts of kernels cannot be called from Python itself.
enter = numba.njit(lambda *given: placing.enter(*given))
leave_first = numba.njit(lambda table: placing.leave_first(table))
melded = numba.njit(lambda *given: placing.melded(*given))
without_root = numba.njit(lambda *given: placing.without_root(*given))
best_fit = numba.njit(lambda *given: placing.best_fit(*given))
take = numba.njit(lambda *given: placing.take(*given))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60))
def test_a_timetable_gives_the_earliest_first(steps):
    """By time and then by number, whatever comes in between."""
    table, entries = timetable(len(steps)), []
    for job, (time, remove) in enumerate(steps):
        enter(table, float(time), job)
        entries.append((float(time), job))
        if remove:
            first = min(entries)
            entries.remove(first)
            assert leave_first(table) == first[1]
    assert [leave_first(table) for _ in range(len(entries))] == [job for _, job in sorted(entries)]
    assert table[0, 0] == 0.0


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=60),
)
def test_queues_give_the_lowest_rank_first(steps):
    """Three queues over one pair of link arrays."""
    links = links_of(np.array([float(rank) for _, rank, _ in steps]))
    roots, queues = [-1, -1, -1], [[], [], []]
    for job, (queue, rank, remove) in enumerate(steps):
        roots[queue] = melded(links, roots[queue], job)
        queues[queue].append((rank, job))
        if remove:
            first = min(queues[queue])
            assert roots[queue] == first[1]
            queues[queue].remove(first)
            roots[queue] = without_root(links, roots[queue])
    for root, queue in zip(roots, queues, strict=True):
        for _, job in sorted(queue):
            assert root == job
            root = without_root(links, root)
        assert root == -1


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 4)), max_size=6),
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 4), st.booleans()),
        max_size=40,
    ),
)
def test_best_fit_is_the_tightest_machine(sizes, steps):
    """Fewest free cores, enough memory and gpus, and of equals the one that changed last."""
    machines = machines_of(
        np.array([cores for cores, _, _ in sizes], dtype=np.int64),
        np.array([memory for _, memory, _ in sizes], dtype=np.float64),
        np.array([gpus for _, _, gpus in sizes], dtype=np.float64),
    )
    free = [[*size, change] for change, size in enumerate(sizes)]
    held, change = [], len(sizes)
    for *asked, give_back in steps:
        fitting = [
            (each[0], -each[3], machine)
            for machine, each in enumerate(free)
            if all(has >= needs for has, needs in zip(each[:3], asked, strict=True))
        ]
        expected = min(fitting)[2] if fitting else -1
        assert best_fit(machines, np.array(asked, np.float64)) == expected
        amounts = (*asked, expected)
        if give_back and held:
            amounts = held.pop(0)
            amounts = (*(-amount for amount in amounts[:3]), amounts[3])
        elif expected >= 0:
            held.append(amounts)
        else:
            continue
        cores, memory, gpus, machine = amounts
        take(machines, machine, np.array([cores, memory, gpus], np.float64), 1.0)
        left = zip(free[machine][:3], amounts[:3], strict=True)
        free[machine] = [*(has - amount for has, amount in left), change]
        change += 1
    assert machines.free[:, 0].tolist() == [each[0] for each in free]
