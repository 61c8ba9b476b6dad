"""The guard of ``guarded_backfilling`` on schedules drawn by hand.

Two jobs fill the 4 cpus from 0 to 200, so that the longest wait under EASY is 100 s. Job 2, of
60 s, comes at 150 and is at once the next in EASY's line: its turn is at 150, and with a patience
of 0.8 it is due in the second after 150 + 80. Requests are exact, and EASY would start it at 200.
"""

from __future__ import annotations

import pytest

from fixed_predictor import workload_of
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.reason_words import reason_words
from foresail.model.cluster import Cluster
from foresail.model.event import PREDICTSIM, STANDARD
from foresail.simulator.engine import simulate_events
from foresail.simulator.replay import replay
from made_scenarios import simulate_by_events

CPUS = 4
FILLED = [(0, 4, 100, 100), (0, 4, 100, 100)]

WIDE = [
    *FILLED,
    (150, 4, 60, 60),
    (160, 2, 20, 20),
    (160, 2, 20, 20),
    (210, 2, 15, 15),
    (210, 2, 15, 15),
    (225, 2, 20, 20),
    (225, 2, 20, 20),
]
"""Short jobs go before the wide job 2, but the last two, which come too late for that."""

NARROW = [*FILLED, (150, 2, 60, 60), (160, 2, 50, 50), (160, 2, 20, 20), (215, 4, 10, 10)]
"""From 220 on there is room for job 2, which would delay the last job, shorter and wide."""

STARTS = {
    ("wide", "guarded(queue=q50,patience=0.8,bound=1)"): [
        0,
        100,
        235,
        200,
        200,
        220,
        220,
        295,
        295,
    ],
    ("wide", "guarded(queue=q50,patience=9,bound=9)"): [0, 100, 255, 200, 200, 220, 220, 235, 235],
    ("narrow", "guarded(queue=q50,patience=0.8,bound=1)"): [0, 100, 231, 200, 200, 291],
    ("narrow", "guarded(queue=q50,patience=9,bound=9)"): [0, 100, 260, 200, 200, 250],
}
"""Job 2 is first in line from 231 on, without and with anything else happening then."""

JOBS = {"wide": WIDE, "narrow": NARROW}


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=lambda each: each.name)
@pytest.mark.parametrize(("drawn", "policy"), STARTS)
def test_starts_are_as_drawn(drawn, policy, conventions):
    """By events and compiled."""
    workload = workload_of(JOBS[drawn], CPUS)
    for way in (simulate_by_events, replay):
        starts = way(workload, parse_policy(policy), conventions).jobs["start_seconds"]
        assert starts.to_list() == STARTS[drawn, policy]


@pytest.mark.parametrize("way", [simulate_by_events, replay])
def test_turns_are_noticed_in_the_next_second(way):
    """Whatever happens in the run.

    EASY starts job 1 as it comes; here it would delay the last job, until it is due at 81. And in
    EASY's schedule job 0, which runs from 0, has to end at 100, when nothing happens here. Job 1,
    which is known to take 10 s, starts then, and it is job 2's turn. From 101 on that may delay the
    last job, as it may not before.
    """

    def starts(jobs, shares):
        policy = parse_policy(f"guarded(queue=q50,{shares})")
        return way(workload_of(jobs, CPUS), policy).jobs["start_seconds"].to_list()

    at_once = [(70, 1, 20, 20), (80, 2, 200, 200), (80, 4, 20, 20)]
    assert starts(at_once, "patience=0,bound=1") == [70, 81, 281]
    between = [(0, 1, 100, 100), (0, 4, 10, 10), (0, 1, 100, 200), (10, 4, 100, 100)]
    assert starts(between, "patience=0,bound=1") == [10, 0, 101, 201]
    assert starts(between, "patience=9,bound=9") == [10, 0, 210, 110]


def test_nothing_that_starts_puts_off_the_job_that_is_due_next():
    """A job of 2 cpus that would run from 220 to 300, beyond what job 2 may wait, is passed over.

    With a bound of one share, job 2 may be put off until 250; with two, until 350.
    """
    jobs = [*FILLED, (150, 4, 60, 60), (160, 4, 20, 20), (215, 2, 30, 80)]
    starts = {}
    for bound in (1, 2):
        policy = parse_policy(f"guarded(queue=q25,patience=0.8,bound={bound}),clairvoyant")
        starts[bound] = replay(workload_of(jobs, CPUS), policy).jobs["start_seconds"].to_list()
    assert starts == {1: [0, 100, 220, 200, 280], 2: [0, 100, 250, 200, 220]}


def test_why_others_wait_and_why_it_goes_first():
    """What the controller says at 231, when only the tick has happened."""
    policy = parse_policy("guarded(queue=q50,patience=0.8,bound=1)")
    controller = Controller(Cluster.of_processors(CPUS), *policy.build())
    told = {}
    step = controller.step

    def watched(now, events):
        instructions = step(now, events)
        told[now] = {
            job_id: reason_words(reason, now) for job_id, reason in controller.reasons().items()
        }
        return instructions

    controller.step = watched
    simulate_events(workload_of(WIDE, CPUS), controller, policy.text)
    assert told[231]["3"] == (
        "goes first: EASY would have come to it 81 s ago; 4 cpus should be free in 4 s"
    )
    assert told[225]["3"] == "needs 4 cpus and 0 are free"
    assert told[231]["8"] == told[225]["8"] == "needs 2 cpus and 0 are free"
