"""Machines that are taken: at random, and from when on they are out of service."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.model.errors import InputError
from foresail_studies.transient.serving import (
    Cordoned,
    TransientMachines,
    Unprotected,
    absence,
    taken_at_random,
)


def machines(outages, count=3, seconds=1000.0):
    rows = np.array(outages, dtype=float).reshape(-1, 3)
    return TransientMachines(
        np.ones(count), rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], seconds
    )


def random():
    return np.random.default_rng(8)


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


def test_impossible_protection():
    """Times below nothing, or without end, are refused."""
    with pytest.raises(InputError, match="handover_seconds"):
        Cordoned(handover_seconds=np.inf)
    with pytest.raises(InputError, match="detection_seconds"):
        Unprotected(detection_seconds=-1.0)
