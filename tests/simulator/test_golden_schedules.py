"""The golden schedules of the backfilling reference (section 11), through replay and engine."""

from __future__ import annotations

import numpy as np
import pytest
from fixed_predictor import fixed_policy, workload_of

from foresail.control.conventions import FORESAIL, PREDICTSIM
from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay
from foresail.simulator.simulate import simulate_by_events

SIX = [(0, 2, 100, 150), (0, 2, 50, 100), (1, 4, 60, 120), (2, 2, 50, 60), (3, 2, 30, 90)]
SIX += [(4, 2, 20, 40)]
EXTRA = [(0, 3, 100, 200), (10, 3, 50, 100), (20, 1, 150, 180), (30, 1, 60, 60), (40, 1, 30, 120)]
EXTRA += [(50, 1, 20, 200)]
LONG = [(0, 2, 600, 3600), (0, 2, 900, 3600), (10, 4, 300, 3600), (20, 1, 500, 3600)]
LONG += [(30, 1, 100, 3600), (40, 2, 200, 3600)]
LONG_ESTIMATES = [300, 1000, 300, 550, 60, 100]

OVERTAKEN = [0, 0, 1160, 660, 600, 900]
AS_CLAIRVOYANT = [0, 0, 900, 1200, 600, 700]

GOLDEN = [
    (SIX, "easy", None, [0, 0, 100, 50, 160, 160], 3.607222),
    (SIX, "easy(order=shortest)", None, [0, 0, 120, 70, 180, 50], 2.923889),
    (SIX, "easy,clairvoyant", None, [0, 0, 100, 50, 160, 160], 3.607222),
    (SIX, "easy(order=shortest),clairvoyant", None, [0, 0, 100, 160, 70, 50], 2.557222),
    *(
        (EXTRA, text, None, [0, 100, 20, 150, 150, 150], 3.077778)
        for text in (
            "easy",
            "easy(order=shortest)",
            "easy,clairvoyant",
            "easy(order=shortest),clairvoyant",
        )
    ),
    *(
        (SIX, f"easy(order=shortest),requested,{correction}", [10] * 6, [0, 0, 100, 50, 160, 160], 3.607222)
        for correction in ("requested", "incremental", "incremental(reading=absolute)", "doubling")
    ),
    *(
        row
        for order in ("easy", "easy(order=shortest)")
        for row in (
            (LONG, f"{order},requested,requested", LONG_ESTIMATES, OVERTAKEN, 3.518889),
            (LONG, f"{order},requested,incremental", LONG_ESTIMATES, AS_CLAIRVOYANT, 3.387778),
            (LONG, f"{order},requested,doubling", LONG_ESTIMATES, AS_CLAIRVOYANT, 3.387778),
            (LONG, f"{order},clairvoyant", None, AS_CLAIRVOYANT, 3.387778),
            (LONG, order, None, [0, 0, 900, 1200, 1200, 1200], 4.804444),
        )
    ),
]


def bounded_slowdown(table):
    """AVEbsld as the reference defines it, from a schedule's columns."""
    wait = (table["start_seconds"] - table["submit_seconds"]).to_numpy()
    run = (table["end_seconds"] - table["start_seconds"]).to_numpy()
    return np.maximum((wait + run) / np.maximum(run, 10), 1).mean()


@pytest.mark.parametrize("way", [replay, simulate_by_events])
@pytest.mark.parametrize("conventions", [FORESAIL, PREDICTSIM], ids=lambda each: each.name)
@pytest.mark.parametrize(("jobs", "text", "estimates", "starts", "slowdown"), GOLDEN)
def test_golden_starts(jobs, text, estimates, starts, slowdown, conventions, way):
    """Every start and the average bounded slowdown."""
    policy = parse_policy(text) if estimates is None else fixed_policy(text, estimates)
    table = way(workload_of(jobs), policy, conventions).jobs
    assert table["start_seconds"].to_list() == starts
    assert bounded_slowdown(table) == pytest.approx(slowdown, abs=5e-7)


@pytest.mark.parametrize("way", [replay, simulate_by_events])
def test_golden_corrections(way):
    """All estimates are 10 s: one correction each to the request; doubling job 1 takes four."""
    requested = way(workload_of(SIX), fixed_policy("easy(order=shortest)", [10.0] * 6)).jobs
    assert requested["corrections"].to_list() == [1] * 6
    doubling = fixed_policy("easy(order=shortest),requested,doubling", [10.0] * 6)
    assert way(workload_of(SIX), doubling).jobs["corrections"][0] == 4


@pytest.mark.parametrize("way", [replay, simulate_by_events])
def test_the_mistake_in_what_predictsim_calls_free(way):
    """On a full machine of 4, a job starts while the one that makes room for it still runs.

    Job 1 holds all 4 cpus until second 10, as predicted. Job 2 arrives in second 10, and
    submissions come before ends: it starts on cpus that job 1 has not given back (8 of 4 in use).
    Job 3, submitted long before, wants 2 cpus; it is passed over only because of that.
    """
    jobs = [(0, 4, 10, 10), (10, 4, 5, 5)]
    table = way(workload_of(jobs), parse_policy("easy,clairvoyant"), PREDICTSIM)
    first_pass_after_submission = table.meta.counters["passes"]
    assert table.jobs["start_seconds"].to_list() == [0, 10]
    assert first_pass_after_submission == 2  # the pass of second 10 precedes job 1's end
