"""The golden schedules of the backfilling reference (section 11), through replay and engine."""

from __future__ import annotations

import numpy as np
import pytest

from fixed_predictor import fixed_policy, workload_of
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster
from foresail.model.decision import Start
from foresail.model.event import PREDICTSIM, STANDARD, Submitted
from foresail.model.job import Job
from foresail.simulator.replay import replay
from made_scenarios import simulate_by_events

SIX = [(0, 2, 100, 150), (0, 2, 50, 100), (1, 4, 60, 120), (2, 2, 50, 60), (3, 2, 30, 90)]
SIX += [(4, 2, 20, 40)]
EXTRA = [(0, 3, 100, 200), (10, 3, 50, 100), (20, 1, 150, 180), (30, 1, 60, 60), (40, 1, 30, 120)]
EXTRA += [(50, 1, 20, 200)]
LONG = [(0, 2, 600, 3600), (0, 2, 900, 3600), (10, 4, 300, 3600), (20, 1, 500, 3600)]
LONG += [(30, 1, 100, 3600), (40, 2, 200, 3600)]
LONG_ESTIMATES = [300, 1000, 300, 550, 60, 100]

LATE = [0, 0, 900, 1200, 600, 700]
INCREMENTAL = ("incremental", "incremental(reading=absolute)")
CORRECTIONS = ("requested", *INCREMENTAL, "doubling")

GOLDEN = [
    (SIX, "easy", [0, 0, 100, 50, 160, 160], 3.607222),
    (SIX, "easy(order=shortest)", [0, 0, 120, 70, 180, 50], 2.923889),
    (SIX, "easy,clairvoyant", [0, 0, 100, 50, 160, 160], 3.607222),
    (SIX, "easy(order=shortest),clairvoyant", [0, 0, 100, 160, 70, 50], 2.557222),
    (EXTRA, "easy", [0, 100, 20, 150, 150, 150], 3.077778),
    (EXTRA, "easy(order=shortest)", [0, 100, 20, 150, 150, 150], 3.077778),
    (EXTRA, "easy,clairvoyant", [0, 100, 20, 150, 150, 150], 3.077778),
    (EXTRA, "easy(order=shortest),clairvoyant", [0, 100, 20, 150, 150, 150], 3.077778),
    (LONG, "easy", [0, 0, 900, 1200, 1200, 1200], 4.804444),
    (LONG, "easy(order=shortest)", [0, 0, 900, 1200, 1200, 1200], 4.804444),
    (LONG, "easy,clairvoyant", LATE, 3.387778),
    (LONG, "easy(order=shortest),clairvoyant", LATE, 3.387778),
]
"""Hold under both conventions."""

TEN_EACH = [10] * 6
ESTIMATED = [
    *(
        (SIX, "easy(order=shortest)", correction, TEN_EACH, STANDARD, [0, 0, 100, 50, 160, 160])
        for correction in CORRECTIONS
    ),
    *(
        # A pass per end: that of job 1 at 100 comes before that of job 4, and 5 and 6 slip in.
        (SIX, "easy(order=shortest)", correction, TEN_EACH, PREDICTSIM, [0, 0, 130, 50, 100, 100])
        for correction in CORRECTIONS
    ),
    *(
        (LONG, order, correction, LONG_ESTIMATES, conventions, LATE)
        for order in ("easy", "easy(order=shortest)")
        for correction in (*INCREMENTAL, "doubling")
        for conventions in (STANDARD, PREDICTSIM)
    ),
    # The reference has 5:600 4:660 6:900 3:1160 here: it makes a pass when job 5's estimate expires
    # at 660. Neither convention does; job 4 cannot start before anything ends.
    (LONG, "easy", "requested", LONG_ESTIMATES, STANDARD, LATE),
    # Job 2's end alone cannot start job 3, which job 6's new estimate has put off to 4300.
    (LONG, "easy", "requested", LONG_ESTIMATES, PREDICTSIM, [0, 0, 1400, 900, 600, 700]),
]


def bounded_slowdown(table):
    """AVEbsld as the reference defines it, from a schedule's columns."""
    wait = (table["start_seconds"] - table["submit_seconds"]).to_numpy()
    run = (table["end_seconds"] - table["start_seconds"]).to_numpy()
    return np.maximum((wait + run) / np.maximum(run, 10), 1).mean()


@pytest.mark.parametrize("way", [replay, simulate_by_events])
@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=lambda each: each.name)
@pytest.mark.parametrize(("jobs", "text", "starts", "slowdown"), GOLDEN)
def test_golden_starts(jobs, text, starts, slowdown, conventions, way):
    """Every start and the average bounded slowdown."""
    table = way(workload_of(jobs), parse_policy(text), conventions=conventions).jobs
    assert table["start_seconds"].to_list() == starts
    assert bounded_slowdown(table) == pytest.approx(slowdown, abs=5e-7)


@pytest.mark.parametrize("way", [replay, simulate_by_events])
@pytest.mark.parametrize(
    ("jobs", "scheduler", "correction", "estimates", "conventions", "starts"), ESTIMATED
)
def test_golden_starts_with_given_estimates(
    jobs, scheduler, correction, estimates, conventions, starts, way
):
    """Estimates that are too short, under every correction."""
    policy = fixed_policy(f"{scheduler},requested,{correction}", estimates)
    assert (
        way(workload_of(jobs), policy, conventions=conventions).jobs["start_seconds"].to_list()
        == starts
    )


@pytest.mark.parametrize("way", [replay, simulate_by_events])
def test_golden_corrections(way):
    """All estimates are 10 s: one correction each to the request; doubling job 1 takes four."""
    requested = way(workload_of(SIX), fixed_policy("easy(order=shortest)", [10.0] * 6)).jobs
    assert requested["corrections"].to_list() == [1] * 6
    doubling = fixed_policy("easy(order=shortest),requested,doubling", [10.0] * 6)
    assert way(workload_of(SIX), doubling).jobs["corrections"][0] == 4


@pytest.mark.parametrize(("conventions", "in_use"), [(PREDICTSIM, 8), (STANDARD, 4)])
def test_the_mistake_in_what_predictsim_calls_free(conventions, in_use):
    """Job 2 starts on cpus that job 1 holds: 8 of 4 are in use until job 1's end is reported.

    Job 1 takes all 4 cpus at 0 and is expected to end at 10. Job 2 arrives at 10, before any end
    has been reported: that job 1 *should* have ended is taken for that it has.
    """
    controller = Controller(Cluster.of_processors(4), *parse_policy("easy").build(), conventions)
    controller.step(0.0, [Submitted(0.0, Job.gang("1", 0.0, 4, 10.0))])
    instructions = controller.step(10.0, [Submitted(10.0, Job.gang("2", 10.0, 4, 5.0))])
    assert any(isinstance(each, Start) for each in instructions) == (conventions is PREDICTSIM)
    assert sum(running.job.cpus for running in controller.running.values()) == in_use
