"""Machines that are taken: requests that fail, and batch work on what the service leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.transient.planning import plan
from foresail.model.errors import InputError
from foresail_studies.transient.serving import (
    Cordoned,
    Surplus,
    Traffic,
    TransientMachines,
    Unprotected,
    absence,
    machines_of,
    run_batch,
    serve,
    surplus,
    tasks_to_fill,
)
from foresail_studies.transient.taken import taken_at_random
from transient_offers import FIVE, history


def machines(outages, count=3, seconds=1000.0):
    rows = np.array(outages, dtype=float).reshape(-1, 3)
    return TransientMachines(
        np.ones(count), rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], seconds
    )


def random():
    return np.random.default_rng(8)


def test_machines_of_a_plan():
    """Every machine of a type is gone while its market is down, and only then."""
    planned = plan(FIVE, 20.0, 0.999)
    names = tuple(each.name for each in FIVE.types)
    seen = history(
        [10.0, 5.0, 5.0], [[1, 1, 1, 0, 1], [0, 1, 1, 1, 1], [1, 1, 1, 0, 1]], names=names
    )
    found = machines_of(seen, planned)
    assert found.capacities.tolist() == [10.0] * 4
    assert found.seconds == 20.0
    a = next(i for i, each in enumerate(planned.rented) if each.type.name == "a")
    d = next(i for i, each in enumerate(planned.rented) if each.type.name == "d")
    gone = {(int(i), b, e) for i, b, e in zip(found.machine, found.begin, found.end, strict=True)}
    assert gone == {(a, 10.0, 15.0), (d, 0.0, 10.0), (d, 15.0, 20.0)}
    with pytest.raises(InputError, match="market of the plan"):
        machines_of(history([1.0], [[1]]), planned)


def test_taken_at_random():
    """About as often as asked; a machine that is gone is not taken again."""
    found = taken_at_random(
        10, revocations_per_minute=2.0, absent_seconds=30.0, seconds=60_000.0, random=random()
    )
    assert found.machine.size == pytest.approx(2_000, rel=0.2)
    for i in range(10):
        mine = np.flatnonzero(found.machine == i)
        assert (found.begin[mine][1:] >= found.end[mine][:-1]).all()
    for bad in ({"seconds": -1.0}, {"absent_seconds": np.nan}):
        values = {"revocations_per_minute": 1.0, "absent_seconds": 1.0, "seconds": 1.0}
        with pytest.raises(InputError, match=next(iter(bad))):
            taken_at_random(3, random=random(), **(values | bad))
    with pytest.raises(InputError, match="machines"):
        taken_at_random(
            0, revocations_per_minute=1.0, absent_seconds=1.0, seconds=1.0, random=random()
        )


def test_nothing_fails_without_revocations():
    """No outage, no failure, and as many requests as were to come."""
    done = serve(machines([]), Traffic(100.0, 0.5), Unprotected(), random())
    assert done.failed == 0
    assert done.requests == pytest.approx(100_000, rel=0.02)


def test_what_fails_unprotected():
    """A third of the requests for the seconds until the balancer notices, and what is in flight."""
    found = machines([(0, 500, 600)])
    done = serve(found, Traffic(3_000.0, 0.5), Unprotected(detection_seconds=4.0), random())
    assert done.failed_at_handover == pytest.approx(1_000 * 4, rel=0.1)
    assert done.failed_in_flight == pytest.approx(1_000 * 0.5, rel=0.2)
    assert done.failed_without_machine == 0


def test_what_fails_with_a_daemon():
    """Only what arrives between the two steps; a warning that is too short helps nothing."""
    found = machines([(0, 500, 600)])
    traffic = Traffic(3_000.0, 0.05)
    done = serve(found, traffic, Cordoned(handover_seconds=0.5), random())
    assert done.failed_at_handover == pytest.approx(500, rel=0.2)
    assert done.failed_in_flight == 0
    late = Cordoned(warning_seconds=0.0, poll_seconds=5.0, detection_seconds=4.0)
    assert serve(found, traffic, late, random()).failed == pytest.approx(4_050, rel=0.1)


def test_published_service():
    """Ten replicas for five minutes: failures grow with the rate, and fall more than fivefold."""
    for rate in (1.0, 2.0, 4.0):
        found = taken_at_random(
            10,
            revocations_per_minute=rate,
            absent_seconds=30.0,
            seconds=300.0,
            random=np.random.default_rng(1),
        )
        unprotected = serve(found, Traffic(), Unprotected(), random()).failed
        cordoned = serve(found, Traffic(), Cordoned(), random()).failed
        assert unprotected == pytest.approx(160 * found.machine.size, rel=0.35)
        assert unprotected > 5 * cordoned > 0


def test_no_machine_left():
    """While all machines are out of the balancer, every request fails for that reason."""
    found = machines([(i, 200, 300) for i in range(3)])
    done = serve(found, Traffic(100.0, 0.01), Unprotected(detection_seconds=0.0), random())
    assert done.failed_without_machine == pytest.approx(10_000, rel=0.05)


def test_new_machine_is_warned_of_only_once_it_is_there():
    """A machine that is taken again soon cannot have been warned of before it came back."""
    away = absence(machines([(0, 100, 200), (0, 230, 300)]), Cordoned(poll_seconds=0.0), random())
    assert away.closed.tolist() == [0.0, 200.0]


def test_replaced_on_the_warning():
    """Another machine takes its place while the old one is still there, if that is quicker."""
    found = machines([(0, 500, 600), (1, 700, 702)])
    daemon = Cordoned(poll_seconds=0.0, handover_seconds=1.0, replacement_seconds=30.0)
    away = absence(found, daemon, random())
    assert away.left.tolist() == [381.0, 581.0]
    assert away.back.tolist() == [411.0, 611.0]
    late = Cordoned(warning_seconds=0.0, poll_seconds=0.0, replacement_seconds=30.0)
    assert absence(found, late, random()).back.tolist() == [pytest.approx(530.1), 702.0]


def test_surplus_by_hand():
    """Capacity less what is needed: falls when a machine is closed, rises when it is back."""
    found = machines([(0, 500, 600), (1, 550, 900)])
    away = absence(found, Unprotected(), random())
    offered = surplus(found, away, 1.0)
    assert offered.times.tolist() == [0.0, 500.0, 550.0, 600.0, 900.0]
    assert offered.capacity.tolist() == [2.0, 1.0, 0.0, 1.0, 2.0]
    assert offered.capacity_seconds == 1000 + 50 + 0 + 300 + 200


def test_batch_by_hand():
    """Two at a time; the younger is evicted at 5 and begins anew; nothing is lost but its time."""
    offered = Surplus(np.array([0.0, 5.0, 10.0]), np.array([2.0, 1.0, 2.0]), 30.0)
    done = run_batch(offered, np.ones(3), np.array([8.0, 10.0, 4.0]))
    assert (done.tasks, done.evictions) == (3, 1)
    assert done.finished == 22.0
    assert done.lost == 5.0
    assert done.unfinished == 0.0
    assert done.idle == pytest.approx(offered.capacity_seconds - 27.0)


@given(
    st.lists(st.tuples(st.floats(0.5, 20.0), st.integers(0, 5)), min_size=1, max_size=12),
    st.sampled_from([0.5, 0.75, 1.0, 1.5, 3.0]),
    st.floats(0.5, 30.0),
)
def test_tasks_that_fill(steps, units, seconds):
    """With so many tasks there is never room for another one that is not taken."""
    lengths = np.array([length for length, _ in steps])
    times = np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
    offered = Surplus(times, np.array([float(c) for _, c in steps]), float(lengths.sum()))
    many = tasks_to_fill(offered, units, seconds)
    done = run_batch(offered, np.full(many, units), np.full(many, seconds))
    whole = Surplus(times, np.floor(offered.capacity / units) * units, offered.end)
    assert done.idle == pytest.approx(offered.capacity_seconds - whole.capacity_seconds, abs=1e-6)


@given(
    st.lists(st.tuples(st.floats(0.5, 20.0), st.integers(0, 5)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(1, 3), st.floats(0.5, 30.0)), min_size=1, max_size=20),
)
def test_batch_work_is_conserved(steps, tasks):
    """What was offered is finished, lost, unfinished or idle; never more than there was."""
    lengths = np.array([length for length, _ in steps])
    times = np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
    offered = Surplus(times, np.array([float(c) for _, c in steps]), float(lengths.sum()))
    units = np.array([float(u) for u, _ in tasks])
    seconds = np.array([s for _, s in tasks])
    done = run_batch(offered, units, seconds)
    parts = done.finished + done.lost + done.unfinished + done.idle
    assert parts == pytest.approx(offered.capacity_seconds)
    assert min(done.finished, done.lost, done.unfinished) >= 0.0
    assert done.idle >= -1e-6
    assert done.finished <= float(units @ seconds) + 1e-9
    if done.tasks == len(tasks):
        assert done.finished == pytest.approx(float(units @ seconds))


def test_impossible_batch_and_traffic():
    """Tasks of nothing, and rates or times below nothing, are refused."""
    with pytest.raises(InputError, match="takes nothing"):
        run_batch(Surplus(np.zeros(1), np.ones(1), 1.0), np.ones(2), np.array([1.0, 0.0]))
    with pytest.raises(InputError, match="requests_per_second"):
        Traffic(requests_per_second=-1.0)
    with pytest.raises(InputError, match="handover_seconds"):
        Cordoned(handover_seconds=np.inf)
