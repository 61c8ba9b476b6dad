"""Fair shares as value: what users are charged, and one who floods the queue."""

from dataclasses import replace

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.schedulers._planning.valuing import PlanAheadParameters
from foresail.schedulers._planning.weighing import Ledger
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate
from planning_problems import built, job, outcome, racks, running, view_of, waiting

HOUR = 3600.0


def of(user, made):
    """The same job, of a user."""
    return replace(made, user=user)


def ledger():
    """A ledger with an hour's half-life."""
    return Ledger(PlanAheadParameters(fair_share=1.0, share_half_life_seconds=HOUR))


def seen(now, busy=(), pending=()):
    """What a scheduler sees at a moment."""
    return view_of(racks(8), waiting(*((each, 10) for each in pending)), busy, now)


def test_what_was_had_counts_by_cpus_and_age():
    """A user who has held twice as much, and another as much an hour earlier, count the same."""
    book = ledger()
    early = running(of("ann", job("a", 4)), 1e5, ["n11", "n12", "n13", "n14"])
    book.note(seen(0.0, [early]))
    book.note(seen(60.0, [early]))
    book.note(seen(HOUR))
    late = running(of("bob", job("b", 2)), 1e5, ["n11", "n12"], start=HOUR)
    book.note(seen(HOUR, [late]))
    charged_until = early.expected_end_seconds
    assert charged_until > HOUR  # gone, so charged until it was last missed
    factors = book.factors([of("ann", job("x", 1)), of("bob", job("y", 1))])
    assert factors["y"] == 1.0
    assert factors["x"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("ann", "bob", "expected"), [(1, 1, (0.5, 0.5)), (3, 1, (1 / 2.5, 1 / 1.5))]
)
def test_factors_follow_had_over_share(ann, bob, expected):
    """Half for who had exactly the share, less for who had more, more for who had less."""
    book = ledger()
    names = [f"n1{at}" for at in range(1, 9)]
    busy = [
        running(of("ann", job("a", ann)), 1e5, names[:ann]),
        running(of("bob", job("b", bob)), 1e5, names[4 : 4 + bob], order=1),
    ]
    book.note(seen(0.0, busy))
    book.note(seen(600.0, busy))
    factors = book.factors([of("ann", job("x", 1)), of("bob", job("y", 1))])
    assert (factors["x"], factors["y"]) == pytest.approx(expected)


def test_the_same_view_twice_charges_once():
    """A decision is repeatable: what was charged for a stretch of time is not charged again."""
    once, twice = ledger(), ledger()
    busy = [
        running(of("ann", job("a", 2)), 1e5, ["n11", "n12"]),
        running(of("bob", job("b", 1)), 1e5, ["n13"], order=1),
    ]
    asked = [of("ann", job("x", 1)), of("bob", job("y", 1))]
    for now in (0.0, 60.0, 120.0):
        once.note(seen(now, busy))
        twice.note(seen(now, busy))
        twice.note(seen(now, busy))
    assert once.factors(asked) == twice.factors(asked)


def test_a_job_that_came_and_went_unseen_is_charged_as_planned():
    """It was started by a decision and had ended before the next view."""
    book = ledger()
    book.note(seen(0.0))
    book.started(of("ann", job("a", 4)), 60.0)
    book.note(seen(600.0, [running(of("bob", job("b", 4)), 1e5, ["n11"], start=540.0)]))
    factors = book.factors([of("ann", job("x", 1)), of("bob", job("y", 1))])
    assert 0.45 < factors["x"] < 0.55  # as much as the other, a little earlier
    assert 0.45 < factors["y"] < 0.55


def test_who_had_less_goes_first():
    """Of two jobs that differ in their users alone, the one of who had less starts."""
    busy = [running(of("ann", job("a", 1)), 1e4, ["n11"], start=-100.0)]
    pending = waiting((of("ann", job("hers", 1)), 50), (of("bob", job("his", 1)), 50))
    view = view_of(racks(2), pending, busy)
    for parameters, first in (("", "hers"), ("fair_share=1", "his")):
        starts, _ = outcome(built(f"3sigma({parameters})"), view)
        assert [name for name, start in starts.items() if start == 0.0] == [first]


def test_deadlines_stay_before_jobs_without():
    """With default shares a user's past does not outweigh another's lack of a deadline."""
    busy = [running(of("ann", job("a", 1, deadline=1e5)), 1e4, ["n11"], start=-100.0)]
    pending = waiting((of("ann", job("slo", 1, deadline=60.0)), 50), (of("bob", job("be", 1)), 50))
    view = view_of(racks(2), pending, busy)
    assert outcome(built("3sigma(fair_share=1)"), view)[0]["slo"] == 0.0


def flooded():
    """One user submits 45 jobs in half an hour, another four; the machine runs 24 in that time."""
    flood = [("flood", 40.0 * at, f"f{at}") for at in range(45)]
    calm = [("calm", 205.0 + 410.0 * at, f"c{at}") for at in range(4)]
    jobs = sorted(flood + calm, key=lambda each: each[1])
    return Workload(
        jobs_table(
            {
                "job_id": [name for _, _, name in jobs],
                "submit_seconds": [submit for _, submit, _ in jobs],
                "runtime_seconds": [300.0] * len(jobs),
                "requested_seconds": [300.0] * len(jobs),
                "tasks": [1] * len(jobs),
                "user": [user for user, _, _ in jobs],
            }
        ),
        WorkloadMeta("flooded", "", processors=4),
    )


def waits(schedule, user):
    """Mean wait of a user's jobs, in seconds."""
    jobs = schedule.jobs.filter(pl.col("user") == user)
    return (jobs["start_seconds"] - jobs["submit_seconds"]).mean()


def test_a_flood_does_not_drown_the_others():
    """Who asks for little waits a fraction as long, and no work is lost by it."""
    text = "3sigma(slot_seconds=60,preemption=no,cycle_seconds=0.4{})"
    plain = simulate(flooded(), parse_policy(text.format("")))
    fair = simulate(flooded(), parse_policy(text.format(",fair_share=1")))
    assert waits(fair, "calm") < 0.6 * waits(plain, "calm")
    assert waits(fair, "calm") < 301.0
    assert fair.jobs["end_seconds"].max() <= plain.jobs["end_seconds"].max() + 1.0
    held = [(each.jobs["end_seconds"] - each.jobs["start_seconds"]).sum() for each in (plain, fair)]
    assert held[0] == pytest.approx(held[1])
    mean = [(each.jobs["end_seconds"]).mean() for each in (plain, fair)]
    assert mean[1] == pytest.approx(mean[0], rel=0.02)


def test_off_by_default():
    """Without a fair share nothing is noted, and a belief is worth what it was."""
    scheduler = built("3sigma")
    pending = waiting((of("ann", job("a", 1)), Point(10.0)))
    worth = scheduler.demands(view_of(racks(1), pending)).problem.worth
    assert worth[0, 0] == pytest.approx(1.0, rel=1e-3)
